"""What the code of an episode calls outside of its sandbox: with which arguments, what it is told, and what is counted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from vfgym import SingleTurnEnv, Usage
from vfgym.envs.recursion.calls import CallsFromInside
from vfgym.envs.recursion.sub_calls import SubModel
from vfgym.errors import InfraError, ModelError, OverlongPromptError, ToolCallError
from vfgym.messages import MESSAGE_TYPES, Response, UserMessage
from vfgym.state import State
from vfgym.tools import Tool, ToolFunction


def look(where: str, deep: int = 1, **more: int) -> dict[str, Any]:
    """Look."""
    return {"where": where, "deep": deep, **more}


async def things() -> Any:
    """Return what JSON can't say."""
    return {1: {2}, "none": None}


def broken(error: Exception) -> Any:
    def fail() -> None:
        """Fail."""
        raise error

    return fail


class Asked:
    """Answers a prompt with its text in capitals; one that names an error raises it."""

    errors: dict[str, Exception]

    def __init__(self, **errors: Exception) -> None:
        self.errors = errors
        self.prompts: list[str] = []
        self.at_once = self.most_at_once = 0
        self.given: list[Any] = []

    async def __call__(self, messages: Any, tools: Any, client: Any = None, model: Any = None) -> Response:
        text = messages[-1].content
        self.prompts.append(text)
        self.given.append((tools, client, model))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            for _ in range(2):
                await asyncio.sleep(0)
            if text == "forever":
                await asyncio.Event().wait()
            if text in self.errors:
                raise self.errors[text]
        finally:
            self.at_once -= 1
        return Response(
            "r",
            0,
            "m",
            Usage(prompt_tokens=3, reasoning_tokens=0, completion_tokens=2, total_tokens=5),
            {"role": "assistant", "content": text.upper()},
        )


def calls_of(asked: Asked, *tools: Any, has_sub_model: bool = True, most_at_once: int = 5, turns: int = 0) -> CallsFromInside:
    sub_model = SubModel([], 2, MESSAGE_TYPES, Tool)
    state = State(trajectory=[{}] * turns, trajectory_id="t")

    async def answer(state: State, ask: Any, conversation: Any) -> Any:
        return await sub_model.answer(ask, conversation)

    functions = {function.name: function for function in map(ToolFunction, tools)}
    env = SingleTurnEnv([{"question": "?"}])
    return CallsFromInside(env, state, asked, answer, sub_model if has_sub_model else None, functions, most_at_once)


def given(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"args": args, "kwargs": kwargs}


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (given("a"), {"where": "a", "deep": 1}),
        (given("a", 0), {"where": "a", "deep": 0}),
        (given("", deep=2), {"where": "", "deep": 2}),
        (given(where="a", x=1, y=0), {"where": "a", "deep": 1, "x": 1, "y": 0}),
    ],
)
async def test_a_root_tool_takes_arguments_by_place_and_by_name(arguments: Any, result: Any) -> None:
    calls = calls_of(Asked(), look, things)
    assert await calls.call("look", arguments) == result
    assert await calls.call("things", given()) == {"1": "{2}", "none": None}
    assert (calls.names, calls.counts.root_tool_calls) == (["llm_batch", "look", "things"], {"look": 1, "things": 1})
    assert calls.counts.root_tool_seconds.keys() == {"look", "things"}


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("find", given(), "^there is no function 'find' here; there are llm_batch, look, fail$"),
        ("look", given(), "^TypeError: missing a required argument: 'where'$"),
        ("look", given("a", 1, 2), "^TypeError: too many positional arguments$"),
        ("look", {"args": ["a"]}, "^KeyError: 'kwargs'$"),
        ("look", given("a", deep="much"), "deep"),
        ("fail", given(), None),
        ("llm_batch", given("text"), "^TypeError: llm_batch takes a list of prompts, got str$"),
        ("llm_batch", given(), "TypeError: .*prompts"),
    ],
)
@pytest.mark.parametrize("error", [LookupError("gone"), InfraError("the disk is gone"), ToolCallError("own")])
async def test_what_fails_is_told_to_the_code_and_counts(name: str, arguments: Any, told: str | None, error: Exception) -> None:
    """An error of the library by its text alone; that of a tool's is told as it is."""
    calls = calls_of(Asked(), look, broken(error))
    if told is None:
        told = "^LookupError: gone$" if isinstance(error, LookupError) else f"^{error}$"
    with pytest.raises(ToolCallError, match=told) as caught:
        await calls.call(name, arguments)
    if name == "fail":
        assert error in (caught.value, caught.value.__cause__)
    assert calls.counts.root_tool_calls == ({} if name == "find" else {name: 1})
    assert (calls.failure, calls.counts.batch_sizes) == (None, [])


async def test_prompts_are_answered_in_order_and_their_turns_are_noted() -> None:
    asked = Asked()
    calls = calls_of(asked, turns=2)
    assert await calls.call("llm_batch", given(["a", [{"role": "system", "content": "s"}, {"role": "user", "content": "b"}]])) == ["A", "B"]
    assert await calls.llm_batch([]) == []
    assert await calls.llm_batch(["c"]) == ["C"]
    noted = [(turns, step["prompt"][-1].content, step["extras"]) for turns, step in calls.sub_steps]
    extras: dict[str, Any] = {"is_sub_llm_call": True}
    assert noted == [
        (2, "a", {**extras, "batch": 0, "request": 0}),
        (2, "b", {**extras, "batch": 0, "request": 1}),
        (2, "c", {**extras, "batch": 2, "request": 0}),
    ]
    counts = calls.counts
    assert (counts.batch_sizes, counts.sub_turns, counts.sub_prompt_tokens, counts.sub_completion_tokens) == ([2, 0, 1], 3, 9, 6)
    assert asked.given == [([], None, None)] * 3


@pytest.mark.parametrize(("most", "seen"), [(1, 1), (2, 2), (5, 3)])
async def test_so_many_are_asked_at_once(most: int, seen: int) -> None:
    asked = Asked()
    assert await calls_of(asked, most_at_once=most).llm_batch(["a", "b", "c"]) == ["A", "B", "C"]
    assert asked.most_at_once == seen


async def test_a_prompt_that_is_too_long_is_told_as_its_answer_and_counts() -> None:
    calls = calls_of(Asked(long=OverlongPromptError("9 > 8")))
    assert await calls.llm_batch(["long", "a"]) == ["Error: the prompt is too long for the model: 9 > 8", "A"]
    assert (calls.failure, calls.counts.sub_turns, len(calls.sub_steps)) == (None, 1, 1)


@pytest.mark.parametrize("error", [ModelError("503"), KeyError("refused")])
async def test_a_model_that_gives_no_answer_ends_the_batch_and_the_episode(error: Exception) -> None:
    asked = Asked(fails=error)
    calls = calls_of(asked, most_at_once=2)
    with pytest.raises(type(error)):
        await calls.llm_batch(["forever", "fails", "never asked"])
    assert calls.failure is error
    await asyncio.sleep(0)
    assert (asked.at_once, calls.sub_steps) == (0, []), "those that waited are cancelled"
    with pytest.raises(ToolCallError):
        await calls.call("llm_batch", given(["fails"]))


async def test_a_batch_that_is_cancelled_cancels_what_it_asks_and_is_no_failure() -> None:
    asked = Asked()
    calls = calls_of(asked)
    batch = asyncio.create_task(calls.call("llm_batch", given(["forever", "a"])))
    while not calls.counts.sub_turns:
        await asyncio.sleep(0)
    batch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await batch
    await asyncio.sleep(0)
    assert (asked.at_once, calls.failure) == (0, None)
    assert [step["prompt"] for _, step in calls.sub_steps] == [[UserMessage("a")]], "what was answered is noted"
    assert calls.counts.root_tool_calls == {"llm_batch": 1}


async def test_a_prompt_that_is_none_is_refused_before_any_is_asked() -> None:
    asked = Asked()
    calls = calls_of(asked)
    with pytest.raises(ToolCallError, match="prompt"):
        await calls.call("llm_batch", given(["a", 7]))
    assert (asked.prompts, calls.counts.batch_sizes) == ([], [])


async def test_without_sub_calls_there_is_no_batch() -> None:
    calls = calls_of(Asked(), look, has_sub_model=False)
    assert calls.names == ["look"]
    with pytest.raises(ToolCallError, match=r"there is no function 'llm_batch' here; there are look$"):
        await calls.call("llm_batch", given(["a"]))
