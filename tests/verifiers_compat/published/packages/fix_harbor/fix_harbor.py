"""Files to be written, as tasks of Harbor's: a program asks the model for a line and writes it."""

from pathlib import Path

import verifiers as vf
from verifiers.envs.experimental.harbor_env import HarborEnv

TASKS = Path(__file__).parent / "tasks"

AGENT = r"""
import json, os, urllib.request

instruction = open(os.environ["HARBOR_INSTRUCTION_PATH"]).read()
body = {"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": instruction}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions",
    json.dumps(body).encode(),
    {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")},
)
with urllib.request.urlopen(request) as reply:
    said = json.load(reply)["choices"][0]["message"]["content"]
with open("answer.txt", "w") as file:
    file.write(said)
print(said)
"""


class WritingEnv(HarborEnv):
    async def post_sandbox_setup(self, state: vf.State) -> None:
        await super().post_sandbox_setup(state)
        await self.upload_content(state["sandbox_id"], AGENT, "/opt/agent.py")


def load_environment(dataset_path: str = str(TASKS), tasks: list[str] | None = None) -> vf.Environment:
    return WritingEnv(run_command="python3 /opt/agent.py", dataset_path=dataset_path, tasks=tasks)
