"""Environments that trainers play in tests, each with what is answered to it: the nth rollout of a task answers as the nth player."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import vfgym
from tests.environments import Talk


class Unit(Enum):
    ones = "ones"
    tens = "tens"


def add(a: int, b: int, unit: Unit = Unit.ones) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
        unit: What they count.
    """
    return (a + b) * (10 if unit is Unit.tens else 1)


async def is_right(completion: Any, answer: str) -> float:
    return float(bool(completion) and completion[-1].content == answer)


def credit_calls(state: Any) -> float:
    return 0.125 * sum(bool(step["completion"][0].get("tool_calls")) for step in state["trajectory"])


def make_sums(**arguments: Any) -> vfgym.ToolEnv:
    """Sums, with a tool: the last answer counts, and a little each call."""
    rubric = vfgym.Rubric([is_right, credit_calls])
    rows = [{"question": f"{n} + 2?", "answer": str(n + 2)} for n in range(3)]
    return vfgym.ToolEnv(tools=[add], dataset=rows, rubric=rubric, **arguments)


class Counting(Talk):
    """Rewards small letters in the answers, and keeps each episode's answers with what they earned."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(dataset=[{"question": f"{n}?"} for n in range(3)], rubric=vfgym.Rubric(self.count_letters), **arguments)
        self.played: list[Any] = []

    def count_letters(self, state: Any) -> float:
        answers = [step["completion"][0].content for step in state["trajectory"]]
        reward = sum(character.islower() for character in "".join(answers)) / 16
        self.played.append([state["example_id"], reward, len(answers)])
        return reward


def make_guess(**arguments: Any) -> vfgym.SingleTurnEnv:
    """One answer each."""
    rows = [{"question": f"{n} + 2?", "answer": str(n + 2)} for n in range(3)]
    return vfgym.SingleTurnEnv(dataset=rows, rubric=vfgym.Rubric(is_right), **arguments)


def make_lake(is_slippery: bool = False, **arguments: Any) -> Any:
    """A game of several turns, some of whose moves fall into a hole."""
    return vfgym.to_chat("FrozenLake-v1", is_slippery=is_slippery, **arguments)


def call(name: str, **arguments: Any) -> str:
    """Return the text of a call."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


ACROSS = ["down", "down", "right", "right", "down", "right"]
"""The way over the lake."""
INTO_A_HOLE = ["down", "right"]


def answers_to_sums(example_id: int, number: int) -> list[str]:
    """Call the tool `number` times, and be right where that is odd."""
    calls = [call("add", a=example_id, b=2, unit="ones")] * number
    return [*calls, str(example_id + 2) if number % 2 else "no idea"]


class Broken(Talk):
    """Its hook raises where it should answer."""

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        raise KeyError("the task is broken")


class Unreachable(Talk):
    """What its hook needs cannot be reached."""

    async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
        raise vfgym.errors.SandboxError("the host of the sandbox is gone")


class Flaky(Counting):
    """Some episodes, by their number, lose their sandbox after the first answer; what they are scored with then says nothing."""

    def __init__(self, lost: set[int], **arguments: Any) -> None:
        super().__init__(**arguments)
        self.lost, self.begun = lost, 0

    def setup_state(self, state: Any) -> None:
        state["is_lost"] = self.begun in self.lost
        self.begun += 1

    def env_response(self, messages: Any, state: Any) -> Any:
        if state["is_lost"]:
            raise vfgym.errors.SandboxError("the host of the sandbox is gone")
        return super().env_response(messages, state)


def make_broken(**arguments: Any) -> Broken:
    """An environment whose rollouts say nothing of the policy."""
    return Broken(dataset=[{"question": f"{n}?"} for n in range(3)], rubric=vfgym.Rubric(lambda: 1.0), **arguments)


def make_unreachable(**arguments: Any) -> Unreachable:
    """An environment on a host that is gone."""
    return Unreachable(dataset=[{"question": f"{n}?"} for n in range(3)], rubric=vfgym.Rubric(lambda: 1.0), **arguments)
