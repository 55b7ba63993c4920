"""Tools and the conversation: schemas that can be called, every call answered, no message lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import vfgym
from tests.environments import Talk
from vfgym import SingleTurnEnv, State, Tool, ToolEnv, ToolMessage
from vfgym.checks.comparison import Broken
from vfgym.checks.tool_calls import message_promises
from vfgym.messages import Message

KEEPS, ANSWERS, SCHEMAS = (
    "loses no message of the conversation",
    "answers each tool call with one message, in order",
    "its tools take what their schemas say",
)


def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    return a + b


async def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


class Tools(ToolEnv):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"tools": [add, shout], "dataset": [{"question": "?"}], **kwargs})


def check(make: Callable[[], Any]) -> dict[str, str]:
    """Return what each check says, or how its promise is broken."""
    found = {}
    for promise, carry_out in message_promises(make().unwrapped, make):
        try:
            found[promise] = carry_out()
        except Broken as broken:
            found[promise] = f"BROKEN {broken}"
    return found


def test_sound_environments_keep_their_promises() -> None:
    found = check(Tools)
    assert (found.keys(), found[ANSWERS], found[SCHEMAS]) == ({KEEPS, ANSWERS, SCHEMAS}, "3 messages with calls", "2 tools")
    assert check(lambda: Talk(max_turns=2)) == {KEEPS: "6 turns"}, "one without tools has one promise"
    assert check(lambda: SingleTurnEnv(dataset=[{"question": "?"}])) == {KEEPS: "3 turns"}


def test_where_an_answer_ends_the_episode_no_call_can_be_answered() -> None:
    assert check(lambda: Tools(max_turns=1))[ANSWERS].startswith("not compared")


class Reversed(Tools):
    async def env_response(self, messages: list[Message], state: State, **kwargs: Any) -> Any:
        return (await super().env_response(messages, state, **kwargs))[::-1]


class Doubled(Tools):
    async def env_response(self, messages: list[Message], state: State, **kwargs: Any) -> Any:
        answers = await super().env_response(messages, state, **kwargs)
        return [*answers, *answers[:1]]


class Last(Tools):
    """Loses the answer to a single call, but not those to several."""

    async def env_response(self, messages: list[Message], state: State, **kwargs: Any) -> Any:
        answers = await super().env_response(messages, state, **kwargs)
        return answers if len(answers) > 1 else []


class Interrupted(Tools):
    async def env_response(self, messages: list[Message], state: State, **kwargs: Any) -> Any:
        answers = await super().env_response(messages, state, **kwargs)
        return [answers[0], vfgym.UserMessage("by the way"), *answers[1:]]


class Renamed(Tools):
    def call_tool(self, tool_name: str, tool_args: Any, tool_call_id: str, **kwargs: Any) -> Any:
        return ToolMessage("done", tool_call_id="1")


class Picky(Tools):
    """Answers no call of a tool that it does not have."""

    async def env_response(self, messages: list[Message], state: State, **kwargs: Any) -> Any:
        answers = await super().env_response(messages, state, **kwargs)
        return [answer for answer in answers if answer["tool_call_id"] != "call_unknown"]


@pytest.mark.parametrize("make", [Reversed, Doubled, Last, Interrupted, Renamed, Picky])
def test_an_answer_that_is_lost_or_misplaced_is_found(make: Callable[[], Any]) -> None:
    found = check(make)
    assert found[ANSWERS].startswith("BROKEN the calls add (call_0)" if make is not Renamed else "BROKEN the calls")
    assert "in order" in found[ANSWERS]


def with_tool(**changes: Any) -> Callable[[], Any]:
    def make() -> Tools:
        env = Tools()
        env.tool_defs[0] = Tool(**{**env.tool_defs[0].model_dump(), **changes})
        return env

    return make


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (with_tool(description=" "), "the tool add has no description"),
        (with_tool(parameters={"type": "object", "properties": {}, "required": ["a"]}), "the schema of add requires 'a', and describes no"),
        (with_tool(parameters={"type": "object", "properties": {}}), 'add refuses {}, which fits its schema: .*missing argument "a"'),
        (
            with_tool(parameters={"type": "object", "properties": {"a": {"enum": ["one"]}}, "required": ["a"]}),
            'add refuses {"a": "one"}, which fits its schema',
        ),
        (with_tool(name="plus"), "plus refuses .*unknown tool"),
    ],
    ids=["no description", "requires what it lacks", "lacks what is required", "another type", "another name"],
)
def test_a_schema_that_the_tool_does_not_fit_is_found(make: Callable[[], Any], says: str) -> None:
    found = dict(message_promises(make(), make))
    with pytest.raises(Broken, match=says):
        found[SCHEMAS]()


class Forgetful(Talk):
    def add_trajectory_step(self, state: State, trajectory_step: Any) -> Any:
        if len(state["trajectory"]) == 1:
            state["trajectory"][0]["prompt"] = trajectory_step["prompt"] = [vfgym.UserMessage("!")]
        return super().add_trajectory_step(state, trajectory_step)


class Mishearing(Talk):
    def add_trajectory_step(self, state: State, trajectory_step: Any) -> Any:
        if len(state["trajectory"]) == 1:
            trajectory_step["completion"] = [vfgym.AssistantMessage("what?")]
        return super().add_trajectory_step(state, trajectory_step)


def test_episodes_with_several_seeds_are_looked_at() -> None:
    drawn: list[float] = []

    class Noted(Talk):
        def setup_state(self, state: State) -> Any:
            drawn.append(state.rng.random())
            return super().setup_state(state)

    assert check(lambda: Noted(max_turns=1)) == {KEEPS: "3 turns"}
    assert len(set(drawn)) == 3


def test_a_message_that_is_lost_or_changed_is_found() -> None:
    forgotten = check(lambda: Forgetful(max_turns=3))[KEEPS]
    assert forgotten == "BROKEN after turn 2 of the episode with seed 0, message 1 of the conversation is lost or changed: it was '?'"
    misheard = check(lambda: Mishearing(max_turns=3))[KEEPS]
    assert misheard.startswith("BROKEN after turn 2 of the episode with seed 0, the answer ")
    assert misheard.endswith(" is lost: the conversation has 'what?' in its place")


def test_an_environment_may_show_another_history() -> None:
    class Short(Talk):
        def get_prompt_messages(self, state: State) -> Any:
            return [vfgym.UserMessage("the last part")]

    assert check(lambda: Short(max_turns=3))[KEEPS].startswith("not compared: get_prompt_messages")

    class Rendered(Talk):
        def render_completion(self, state: State) -> Any:
            state["completion"] = []

    assert check(lambda: Rendered(max_turns=3)) == {KEEPS: "9 turns"}
