"""An environment of an author, tested with the kit in ten lines; then with faults, each of which a check finds and explains."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest

import vfgym
from tests.testing.grocer import Grocer
from vfgym.testing import EnvironmentCheck, call, checks, play


@pytest.mark.parametrize("check", checks(Grocer), ids=str)
def test_it_keeps_its_promises(check: EnvironmentCheck) -> None:
    check()


def test_the_cheaper_stall_is_right() -> None:
    asked = play(Grocer(), [[call("price", stall="left"), call("price", stall="right")]], options={"example_id": 1})
    left, right = (int(reply.content) for reply in asked.replies[0])
    stall = "left" if left < right else "right"
    played = play(Grocer(), [call("buy", stall=stall, amount=3), f"That was {3 * min(left, right)} in all."], options={"example_id": 1})
    played.expect(reward=1.5, metrics={"bought": 1.0, "buy_calls": 1.0}, stop_condition="no_tools_called", ending="terminated")


# Faults


class Unseeded(Grocer):
    """Draws prices from the random numbers of the process."""

    def setup_state(self, state: vfgym.State) -> Any:
        ready = super().setup_state(state)
        state["prices"] = {stall: random.randint(100, 10**9) for stall in state["prices"]}
        return ready


class HashOrdered(Grocer):
    """Draws prices in the order of a set, which is another one in each process."""

    def setup_state(self, state: vfgym.State) -> Any:
        ready = super().setup_state(state)
        order = list({f"price {number}" for number in range(1000)})
        state["prices"] = {"left": int(order[0].split()[1]), "right": int(order[1].split()[1])}
        return ready


def brief(completion: list[Any]) -> float:
    """A reward that silence earns, too."""
    return float(sum(len(str(message["content"])) for message in completion if message["role"] == "assistant") < 100)


class WrongSchema(Grocer):
    """Tells the model of an argument that the tool does not have."""

    def __init__(self) -> None:
        super().__init__()
        properties = {"stall": {"enum": ["left", "right"]}, "number": {"type": "integer"}}
        schema = {"type": "object", "properties": properties, "required": ["stall", "number"]}
        self.tool_defs[1] = vfgym.Tool(name="buy", description="Buy apples.", parameters=schema)


class LosesAnswers(Grocer):
    """Answers the first of several calls only."""

    async def env_response(self, messages: Any, state: vfgym.State, **kwargs: Any) -> Any:
        answers = await super().env_response(messages, state, **kwargs)
        return answers[:1]


class LosesWords(Grocer):
    """Records an answer without what it says."""

    def add_trajectory_step(self, state: vfgym.State, trajectory_step: Any) -> Any:
        [answer] = trajectory_step["completion"]
        trajectory_step["completion"] = [answer.replace(content="...")]
        return super().add_trajectory_step(state, trajectory_step)


class AnyBasket(Grocer):
    """Pays for a basket, whoever asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.rubric = vfgym.Rubric(lambda completion: float(bool(completion)))


@pytest.mark.parametrize(
    ("make", "promise", "says"),
    [
        (Unseeded, "replays the same episodes under a seed", r"two runs from the same seed differ, first in turn \d of episode \d: '\d+'"),
        (HashOrdered, "replays the same episodes in another process", "this process and one with another hash seed .* differ"),
        (
            lambda: Grocer(brief),
            "pays nothing for silence, failure and garbage",
            r"that ended before any answer earned 0.25, and should earn 0 at most; its metrics: .*'brief': 1.0",
        ),
        (WrongSchema, "its tools take what their schemas say", 'buy refuses .*"number".*, which fits its schema: .*"amount"'),
        (
            LosesAnswers,
            "answers each tool call with one message, in order",
            r"price \(call_0\), buy \(call_1\), no_such_tool .* should get one tool message each, .* are for \['call_0'\]",
        ),
        (
            LosesWords,
            "loses no message of the conversation",
            r"after turn \d .*, the answer .* is lost: .* '...' in its place",
        ),
        (AnyBasket, "pays more for a right answer than for a wrong one", r"the right answer calling buy\(.* earned 1.0, and '' earned 1.0"),
    ],
    ids=["a seed", "a seed elsewhere", "a reward for nothing", "a schema", "a lost tool message", "a lost answer", "a reward for anything"],
)
def test_a_fault_is_found_by_its_check_and_explained(make: Callable[[], Any], promise: str, says: str) -> None:
    by_name = {str(check): check for check in checks(make)}
    with pytest.raises(AssertionError) as failed:
        by_name[promise]()
    assert str(failed.value).startswith(f"a promise is broken: {promise}\n")
    assert re.search(says, str(failed.value)), failed.value
