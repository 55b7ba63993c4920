"""Questions that a command answers, which asks the model itself."""

import sys

import verifiers.v1 as vf

AGENT = """
import json, os, sys, urllib.request

def ask(messages):
    body = {"model": os.environ.get("AGENT_MODEL") or os.environ.get("OPENAI_MODEL", "m"), "messages": messages}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]

question = sys.argv[1]
messages = [{"role": "user", "content": question}]
draft = ask(messages)
messages += [{"role": "assistant", "content": draft}, {"role": "user", "content": "Check this, and say the answer only."}]
print(ask(messages))
"""


class AgentHarness(vf.Harness):
    @vf.metric
    async def num_calls(self, task, state) -> float:
        return float(len(state["trajectory"]))


def rows():
    return [{"question": "6 * 7", "answer": "42"}, {"question": "9 - 4", "answer": "5"}]


async def is_right(task, state) -> float:
    return float((state["completion"] or [{"content": ""}])[-1]["content"].strip() == task["answer"])


def load_environment(config: vf.EnvConfig | None = None) -> vf.Env:
    taskset = vf.Taskset(source=rows, rewards=[is_right], taskset_id="echo-agent")
    harness = AgentHarness(program={"command": [sys.executable, "-c", AGENT, "task.question"]})
    return vf.Env(taskset=taskset, harness=harness)
