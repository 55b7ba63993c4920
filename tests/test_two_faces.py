"""Stepping with scripted answers and rolling out with a client that gives the same answers are one and the same episode."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.models import InOrder
from vfgym import ChatEnv, MultiTurnEnv, Response, Rubric, SingleTurnEnv, State, StatefulToolEnv, ToolEnv, UserMessage, stop
from vfgym.errors import ConfigurationError, InfraError, ToolParseError
from vfgym.messages import AssistantMessage, Message

ROWS = [{"question": f"question {index}", "answer": str(index), "info": {"level": index}} for index in range(3)]

EXCLUDED = {"client", "model", "sampling_args", "trajectory_id", "timing", "usage", "usage_tracker", "task"}
"""What may differ: who answered, ids, clocks and token counts (`task` is compared through `input`)."""


def comparable(state: State) -> dict[str, Any]:
    """Return the state without what may differ."""
    steps = [{key: value for key, value in step.items() if key not in ("response", "trajectory_id")} for step in state["trajectory"]]
    error = None if state["error"] is None else repr(state["error"])
    kept = {key: value for key, value in state.items() if key not in EXCLUDED}
    return {**kept, "trajectory": steps, "error": error, "emitted": state.emitted, "rewards": state.rewards}


# Environments of every class


def length(completion: list[Message]) -> float:
    return len(completion) / 10


async def first_is_answer(completion: list[Message], answer: str) -> bool:
    await asyncio.sleep(0)
    return bool(completion[0]["content"] == answer)


def said(step: Any) -> float:
    return len(step["completion"][0]["content"] or "") * 0.1


def rubric() -> Rubric:
    scores = Rubric([length, first_is_answer], weights=[0.3, 0.7])
    scores.add_step_reward_func(said, weight=0.1)
    return scores


class Hearing(MultiTurnEnv):
    """Draws random numbers, ends when told so, and breaks when told so."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(dataset=ROWS, rubric=rubric(), **{"max_turns": 4, **kwargs})

    def setup_state(self, state: State) -> Any:
        state["heard"] = []
        return super().setup_state(state)

    def env_response(self, messages: list[Message], state: State) -> Any:
        state["heard"].append(messages[-1]["content"])
        if "break" in state["heard"]:
            raise InfraError("broken")
        if "end" in state["heard"]:
            state["final_env_response"] = "bye"
        return [UserMessage(f"{len(messages)}")]

    @stop
    def hushed(self, state: State) -> bool:
        return bool(state["trajectory"]) and state["trajectory"][-1]["completion"][0]["content"] == "hush"


class AsyncHearing(Hearing):
    """The same with async hooks, all of which call the library's own."""

    async def setup_state(self, state: State) -> None:
        await super().setup_state(state)

    async def env_response(self, messages: list[Message], state: State) -> Any:
        await asyncio.sleep(0)
        return super().env_response(messages, state)

    async def get_prompt_messages(self, state: State) -> list[Message]:
        prompt: list[Message] = await super().get_prompt_messages(state)
        return prompt

    async def add_trajectory_step(self, state: State, trajectory_step: Any) -> None:
        trajectory_step["extras"]["turn"] = len(state["trajectory"])
        await super().add_trajectory_step(state, trajectory_step)

    async def render_completion(self, state: State) -> None:
        await super().render_completion(state)


class Forgetful(Hearing):
    def get_prompt_messages(self, state: State) -> Any:
        if not state["trajectory"]:
            return list(state["prompt"])
        last = state["trajectory"][-1]
        return [*last["completion"], *self.env_response([*last["prompt"], *last["completion"]], state)]

    def render_completion(self, state: State) -> None:
        state["completion"] = [step["completion"][0] for step in state["trajectory"]]


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def search(query: str) -> dict[str, Any]:
    """Search for something."""
    await asyncio.sleep(0)
    if query == "nothing":
        raise LookupError(query)
    return {"found": query}


class Ledger(StatefulToolEnv):
    def __init__(self) -> None:
        super().__init__(dataset=ROWS, rubric=rubric(), max_turns=4, stop_errors=[ToolParseError])
        self.add_tool(self.note, args_to_skip=["book"])

    def setup_state(self, state: State) -> Any:
        state["book"] = []
        return super().setup_state(state)

    async def note(self, text: str, book: list[str]) -> int:
        """Write something down."""
        book.append(text)
        await asyncio.sleep(0)
        return len(book)

    async def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: State, **kwargs: Any
    ) -> dict[str, Any]:
        return {**tool_args, "book": state["book"]}


def calling(name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"name": name, "arguments": arguments}}],
        **fields,
    }


TALKS = [["1", "b", "c", "d"], ["a", "end"], ["a", "break"], ["hush"], ["", "hush"]]
REASONED = {"content": "1", "reasoning_content": "because", "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}
CASES: list[tuple[Callable[[], ChatEnv], list[list[Any]]]] = [
    (lambda: SingleTurnEnv(ROWS, rubric=rubric(), system_prompt="Be brief."), [["1"], [""], [REASONED]]),
    *[(Hearing, [*TALKS, [REASONED, "hush"]]), (AsyncHearing, TALKS), (Forgetful, TALKS)],
    (
        lambda: ToolEnv(tools=[add, search], dataset=ROWS, rubric=rubric(), max_turns=3),
        [
            ["1"],
            [calling("add", '{"a": 1}'), "done"],
            [calling("search", '{"query": "cats"}'), calling("search", '{"query": "nothing"}'), "done"],
            [calling("add", "{"), calling("nope", "{}"), calling("add", '{"a": 1}')],
        ],
    ),
    (Ledger, [[calling("note", '{"text": "a"}'), calling("note", {"text": "b"}), "done"], [calling("note", "{")]]),
]
EACH = pytest.mark.parametrize(("make", "script"), [(make, script) for make, scripts in CASES for script in scripts])


def as_action(answer: Any) -> Any:
    return {"role": "assistant", **answer} if isinstance(answer, dict) else answer


def stepped(env: ChatEnv, script: list[Any]) -> State:
    env.reset(options={"example_id": 1})
    for answer in script:
        _, _, terminated, truncated, _ = env.step(as_action(answer))
    assert terminated or truncated
    assert env.state is not None
    return env.state


async def astepped(env: ChatEnv, script: list[Any]) -> State:
    await env.areset(options={"example_id": 1})
    for answer in script:
        await env.astep(as_action(answer))
    assert env.state is not None
    return env.state


async def rolled_out(env: ChatEnv, script: list[Any]) -> State:
    state: State = await env.rollout(env.tasks.input(1), InOrder(*script), "m", {"temperature": 0.5})
    await env.rubric.score_rollout(state)
    return state


@EACH
def test_stepping_and_rolling_out_give_equal_states(make: Callable[[], ChatEnv], script: list[Any]) -> None:
    expected = comparable(stepped(make(), script))
    assert comparable(asyncio.run(astepped(make(), script))) == expected
    rolled = asyncio.run(rolled_out(make(), script))
    assert (comparable(rolled), rolled["model"], rolled["sampling_args"]) == (expected, "m", {"temperature": 0.5})


@pytest.mark.parametrize("info", [{"level": 1}, '{"level": 1}'])
@pytest.mark.parametrize("message", [{"role": "user", "content": "q"}, UserMessage("q")])
async def test_a_rollout_takes_a_dataset_row_and_leaves_it_as_it_is(info: Any, message: Any) -> None:
    """The state starts from a copy of the row, with a prompt of messages and info that is parsed."""

    class Writes(Hearing):
        def setup_state(self, state: State) -> Any:
            assert state["info"] == {"level": 1}
            assert all(isinstance(message, Message) for message in state["prompt"])
            state["info"]["level"] = 99
            state["answer"] = "changed"
            state["prompt"].append(UserMessage("more"))
            return super().setup_state(state)

    row = {"prompt": [message], "answer": "a", "info": info, "example_id": 0}
    before = copy.deepcopy(row)
    client = InOrder("hush")
    state = await Writes().rollout(row, client, "m")
    assert (client.asked[0]["prompt"], state["completion"]) == ([UserMessage("q"), UserMessage("more")], [AssistantMessage("hush")])
    assert (client.asked[0]["sampling_args"], client.asked[0]["tools"]) == ({}, None)
    assert (state["is_completed"], state["reward"], state["metrics"]) == (True, None, None), "a rollout is played and not scored"
    assert row == before


async def test_a_rollout_without_a_client_says_that_it_needs_one() -> None:
    state = await Hearing().rollout({"prompt": [UserMessage("?")]}, None, "m")
    assert isinstance(state["error"], ConfigurationError)
    assert "client" in str(state["error"])


@pytest.mark.parametrize("make", [Hearing, AsyncHearing])
def test_the_documented_async_methods_are_coroutines_to_asyncio(make: Callable[[], ChatEnv]) -> None:
    """`asyncio.run` and `asyncio.create_task` take coroutines only."""

    async def in_tasks() -> State:
        env = make()
        state = await asyncio.create_task(env.rollout(env.tasks.input(1), InOrder("1", "hush"), "m"))
        await asyncio.create_task(env.rubric.score_rollout(state))
        return state

    env = make()
    state = asyncio.run(env.rollout(env.tasks.input(1), InOrder("1", "hush"), "m"))
    asyncio.run(env.rubric.score_rollout(state))
    assert comparable(asyncio.run(in_tasks())) == comparable(state)


async def test_get_model_response_falls_back_to_the_state_and_counts_no_turn() -> None:
    env = Hearing()
    state = await env.init_state(env.tasks.input(0), InOrder("from the state"), "m", {"temperature": 0.5})
    response: Awaitable[Response] = env.get_model_response(state, state["prompt"])
    assert (await response).message.content == "from the state"
    other = InOrder("from another")
    response = env.get_model_response(state, "text", client=other, model="judge", sampling_args={"n": 1})
    assert (await response).message.content == "from another"
    assert (other.asked[0]["model"], other.asked[0]["sampling_args"], state["trajectory"]) == ("judge", {"n": 1}, [])
    state["client"] = None
    with pytest.raises(ConfigurationError, match="client"):
        await env.get_model_response(state, state["prompt"])


async def test_the_environments_sampling_arguments_are_the_defaults_of_its_rollouts() -> None:
    env = Hearing(sampling_args={"temperature": 0.5, "max_tokens": 9})
    client = InOrder("hush")
    state = await env.rollout(env.tasks.input(0), client, "m", {"temperature": 1.0})
    assert client.asked[0]["sampling_args"] == state["sampling_args"] == {"temperature": 1.0, "max_tokens": 9}
    assert env.sampling_args == {"temperature": 0.5, "max_tokens": 9}
