"""The harness, and a taskset to try it on."""

import re
import sys
from pathlib import Path

import verifiers_compat.v1 as vf

SOLVE = Path(__file__).with_name("solve.py")


class CheckedAnswers(vf.Harness):
    """Plays a task with ``solve.py``: one question, one check. It plays any taskset whose tasks have a ``question``."""

    def __init__(self, config: vf.HarnessConfig | None = None) -> None:
        """Make the harness. ``task.question`` is a path: each rollout's task gives the argument."""
        super().__init__(program={"command": [sys.executable, str(SOLVE), "task.question"]}, config=config)

    @vf.metric
    async def changed(self, task: vf.Task, state: vf.State) -> float:
        """Measure whether the check changed the answer."""
        answers = [last_number(message["content"]) for message in state["completion"] if message["role"] == "assistant"]
        return float(len(set(answers)) > 1)


class Sums(vf.Taskset):
    """Sums of two numbers."""

    def __init__(self, num_tasks: int = 10) -> None:
        """Make the tasks; the same ones each time."""
        pairs = [(7 * number % 50, 13 * number % 50) for number in range(1, num_tasks + 1)]
        super().__init__([{"question": f"What is {a} + {b}?", "answer": str(a + b)} for a, b in pairs])

    @vf.reward
    async def correct(self, task: vf.Task, state: vf.State) -> float:
        """Reward the right sum in what the command printed."""
        return float(last_number(state["command"]["stdout"]) == task["answer"]) if state["error"] is None else 0.0


def last_number(text: str) -> str | None:
    """Return the last number in a text."""
    return next(reversed(re.findall(r"\d+", text)), None)


def load_environment(num_tasks: int = 10) -> vf.Env:
    """Return the environment. Its arguments are what `vf-eval --env-args` can set."""
    return vf.Env(Sums(num_tasks), CheckedAnswers())
