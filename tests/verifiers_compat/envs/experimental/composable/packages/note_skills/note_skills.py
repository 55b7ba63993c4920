"""Notes that a program writes with the skills it is given: a task set without a sandbox of its own, whose sub-agents are left out."""

import verifiers as vf
from datasets import Dataset
from verifiers.envs.experimental.composable import ComposableEnv, Harness, SandboxSpec, TaskSet

AGENT = """
import json, os, urllib.request

def ask(text, depth):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": "any", "messages": [{"role": "user", "content": text}]}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "X-Agent-Depth": depth},
    )
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]

skill = open("/skills/rhyme/SKILL.md").read().strip()
task = open("/task/instruction.md").read()
plan = ask(task + " Plan first.", "1")
note = ask(task + " " + skill + " Plan: " + plan, "0")
open(os.environ["AGENT_WORKDIR"] + "/note.txt", "w").write(note)
json.dump({"session": {"depths": 2, "words": len(note.split()), "style": "short"}}, open("/tmp/metrics.json", "w"))
"""


class NoteTaskSet(TaskSet):
    def get_instruction(self, info: dict) -> str:
        return f"Write a note on {info['topic']}."

    def get_rubric(self):
        return vf.Rubric(funcs=[self.mentions_topic])

    async def mentions_topic(self, state, info) -> float:
        return float(info["topic"] in state["note"])


class NoteEnv(ComposableEnv):
    def get_sandbox_resources(self, state) -> dict:
        return {**super().get_sandbox_resources(state), "memory_gb": 1}

    async def post_rollout(self, state: vf.State) -> None:
        await super().post_rollout(state)
        state["note"] = await self.read_file(state["sandbox_id"], "/app/note.txt") or ""


def load_environment(**kwargs) -> vf.Environment:
    taskset = NoteTaskSet(dataset=Dataset.from_list([{"info": {"topic": topic}} for topic in ("rain", "snow", "fog")]), name="notes").take(
        2
    )
    harness = Harness(
        run_command="python3 /tmp/agent.py",
        post_install_uploads={"/tmp/agent.py": AGENT},
        sandbox_spec=SandboxSpec(memory_gb=2, disk_size_gb=1),
        skills_path="/skills",
        metrics_path="/tmp/metrics.json",
        metrics_key="session",
        metrics_keys=["depths", "words", "missing"],
        keep_trajectory_step=lambda step, state, headers: headers.get("x-agent-depth") == "0",
    )
    return NoteEnv(taskset=taskset, harness=harness, **kwargs)
