"""What a program is told, and what is kept of it: commands of this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat.v1 as vf
from tests.models import Recording
from vfgym.messages import Response

ASK = """
import os, sys, json, urllib.request
body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": [{"role": "user", "content": sys.argv[1]}]}).encode()
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json"})
answer = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
print(" ", answer, os.environ.get("EXTRA", ""), " ")
"""


async def test_what_a_command_says_to_the_model_is_its_completion(tmp_path: Path) -> None:
    """As with verifiers 0.1.14; what it prints is in ``state["command"]``."""
    script = tmp_path / "ask.py"
    script.write_text(ASK, encoding="utf-8")
    program = {"command": [sys.executable, str(script)], "args": "task.question", "env": {"EXTRA": "task.answer"}}
    client = Recording(["four ✓"])
    state = await vf.Harness(program, client=client, model="m").run({"prompt": "?", "question": "2+2?", "answer": "42"})
    assert (state["prompt"], state["completion"]) == ([{"role": "user", "content": "2+2?"}], [{"role": "assistant", "content": "four ✓"}])
    assert state["command"]["stdout"].strip() == "four ✓ 42"
    assert (state["stop_condition"], state["num_model_requests"]) == ("command_completed", 1)
    assert (state["command"]["returncode"], state["command"]["argv"][-1]) == (0, "2+2?")
    assert client.asked[0]["prompt"] == [{"role": "user", "content": "2+2?"}]


async def test_the_program_of_the_configuration_is_completed_by_that_of_the_code() -> None:
    program = {"command": [sys.executable, "-c", "import os; print(os.environ['A'], os.environ['B'])"], "env": {"A": "1", "B": "2"}}
    state = await vf.Harness({"env": {"B": "3"}}, model="m", config={"program": program}).run({"prompt": "go"})
    assert state["completion"] == [{"role": "assistant", "content": "1 3"}]


class Commanding(vf.Harness):
    """A harness with a name of its own."""


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["/no/such/program"], "the command '/no/such/program' of Commanding could not be started"),
        ([sys.executable, "-c", "raise SystemExit(3)"], "of Commanding ended with code 3: it printed nothing"),
        (
            [sys.executable, "-c", "import sys; print('nowhere', file=sys.stderr)"],
            "of Commanding ended without an answer: it must print one",
        ),
    ],
)
async def test_a_command_without_an_answer_says_whose_it_is_and_what_to_do(command: list[str], says: str) -> None:
    state = await Commanding({"command": command}, model="m").run({"prompt": "?"})
    assert (state["stop_condition"], state["error"]["error"], state["completion"]) == ("has_error", "InfraError", [])
    assert says in state["error"]["error_chain_repr"].replace('\\"', '"').replace("\\'", "'")


async def test_a_failure_of_the_model_that_the_program_got_over_is_not_that_of_the_rollout() -> None:
    """What the program raises later is its own; and one that gives up for it ends with the model's."""

    class Once(Recording):
        async def get_response(self, *args: Any, **kwargs: Any) -> Response:
            if not self.asked:
                self.asked.append(kwargs)
                raise vf.ModelError("down for a moment")
            return await super().get_response(*args, **kwargs)

    def program(goes_on: bool) -> Any:
        async def run(state: vf.State) -> None:
            client = state.get_client()
            for _ in range(2 if goes_on else 1):
                try:
                    await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "go"}])
                except Exception:
                    continue
            raise ZeroDivisionError("the program's own")

        return run

    with pytest.raises(ZeroDivisionError, match="the program's own"):
        await vf.Harness(program(True), client=Once(["x"]), model="m").run({"prompt": "go"})
    state = await vf.Harness(program(False), client=Once(["x"]), model="m").run({"prompt": "go"})
    assert (state["stop_condition"], state["error"]["error"]) == ("has_error", "ModelError")
