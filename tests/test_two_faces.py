"""Stepping with scripted answers and rolling out with a client that gives the same answers are one and the same episode."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    """Shows the model the last two messages only."""

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
    """A tool that works on the episode's state."""

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


class Debate(ChatEnv):
    """A loop of its own: two voices at once, then a verdict."""

    def __init__(self) -> None:
        super().__init__(dataset=ROWS, rubric=Rubric([length, first_is_answer]))

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state: State = await self.init_state(input, client, model, sampling_args)

        async def voice(name: str) -> Message:
            response = await self.get_model_response(state, [*state["prompt"], UserMessage(name)])
            return AssistantMessage(response.message.content)

        voices = list(await asyncio.gather(voice("for"), voice("against")))
        state["completion"] = [*voices, await voice("verdict")]
        state["is_completed"], state["stop_condition"] = True, "debated"
        return state


class Retold(Hearing):
    """Adds to what the library's own loop played."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await super().rollout(input, client, model, sampling_args)
        state["retold"] = [message["role"] for message in state["completion"]]
        return state


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
    (Hearing, [*TALKS, [REASONED, "hush"]]),
    (AsyncHearing, TALKS),
    (Forgetful, TALKS),
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
    (Debate, [["1", "no", "maybe"]]),
    (Retold, TALKS),
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
    state = await env.rollout(env.tasks.input(1), InOrder(*script), "m", {"temperature": 0.5})
    await env.rubric.score_rollout(state)
    if type(env).rollout is Debate.rollout:  # all of which is its author's: nobody decides how it ended when it is called by hand
        assert state["ending"] is None
        state["ending"] = "terminated"
    return state


@EACH
def test_stepping_and_rolling_out_give_equal_states(make: Callable[[], ChatEnv], script: list[Any]) -> None:
    expected = comparable(stepped(make(), script))
    assert comparable(asyncio.run(astepped(make(), script))) == expected
    rolled = asyncio.run(rolled_out(make(), script))
    assert comparable(rolled) == expected
    assert (rolled["model"], rolled["sampling_args"]) == ("m", {"temperature": 0.5})


@given(script=st.lists(st.sampled_from(["a", "1", "end", "break", "hush", ""]), min_size=4, max_size=4), is_async=st.booleans())
def test_any_script_gives_equal_states(script: list[str], is_async: bool) -> None:
    kind = AsyncHearing if is_async else Hearing
    env = kind()
    env.reset(options={"example_id": 1})
    for answer in script:
        _, _, terminated, truncated, _ = env.step(answer)
        if terminated or truncated:
            break
    assert env.state is not None
    assert comparable(asyncio.run(rolled_out(kind(), script))) == comparable(env.state)


async def test_the_client_is_asked_with_what_the_episode_has() -> None:
    env = ToolEnv(tools=[add], dataset=ROWS)
    client = InOrder(calling("add", '{"a": 1}'), "done")
    state = await env.rollout(env.tasks.input(1), client, "m", {"temperature": 0.5})
    assert [asked["prompt"] for asked in client.asked] == [list(step["prompt"]) for step in state["trajectory"]]
    assert all(asked["state"] is state for asked in client.asked)
    assert all((asked["model"], asked["sampling_args"]) == ("m", {"temperature": 0.5}) for asked in client.asked)
    assert [[tool.name for tool in asked["tools"]] for asked in client.asked] == [["add"], ["add"]]


async def test_an_environment_without_tools_sends_none() -> None:
    client = InOrder("done")
    await SingleTurnEnv(ROWS).rollout(ROWS[0] | {"prompt": [UserMessage("?")]}, client, "m")
    assert client.asked[0]["tools"] is None
    assert client.asked[0]["sampling_args"] == {}


async def test_a_rollout_is_played_and_not_scored() -> None:
    env = Hearing()
    state = await env.rollout(env.tasks.input(0), InOrder("hush"), "m")
    assert (state["is_completed"], state["reward"], state["metrics"]) == (True, None, None)
    assert state["completion"] == [AssistantMessage("hush")]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": [{"role": "user", "content": "q"}], "answer": "a", "info": '{"level": 1}', "example_id": 0},
        {"prompt": [UserMessage("q")], "answer": "a", "info": {"level": 1}, "example_id": 0},
    ],
)
async def test_a_rollout_takes_a_dataset_row_and_leaves_it_as_it_is(row: dict[str, Any]) -> None:
    """The state starts from a copy of the row, with a prompt of messages and info that is parsed."""

    class Writes(Hearing):
        def setup_state(self, state: State) -> Any:
            assert state["info"] == {"level": 1}
            assert all(isinstance(message, Message) for message in state["prompt"])
            state["info"]["level"] = 99
            state["answer"] = "changed"
            state["prompt"].append(UserMessage("more"))
            return super().setup_state(state)

    before = {**row, "prompt": list(row["prompt"]), "info": row["info"] if isinstance(row["info"], str) else dict(row["info"])}
    client = InOrder("hush")
    state = await Writes().rollout(row, client, "m")
    assert client.asked[0]["prompt"] == [UserMessage("q"), UserMessage("more")]
    assert state["completion"] == [AssistantMessage("hush")]
    assert row == before


async def test_a_rollout_without_a_client_says_that_it_needs_one() -> None:
    state = await Hearing().rollout({"prompt": [UserMessage("?")]}, None, "m")
    assert isinstance(state["error"], ConfigurationError)
    assert "client" in str(state["error"])


@pytest.mark.parametrize("make", [Hearing, AsyncHearing, Debate])
def test_the_documented_async_methods_are_coroutines_to_asyncio(make: Callable[[], ChatEnv]) -> None:
    """`asyncio.run` and `asyncio.create_task` take coroutines only."""
    script = ["1", "hush", "maybe"]

    async def in_a_task() -> State:
        env = make()
        state = await asyncio.create_task(env.rollout(env.tasks.input(1), InOrder(*script), "m"))
        await asyncio.create_task(env.rubric.score_rollout(state))
        return state

    env = make()
    state = asyncio.run(env.rollout(env.tasks.input(1), InOrder(*script), "m"))
    asyncio.run(env.rubric.score_rollout(state))
    assert comparable(asyncio.run(in_a_task())) == comparable(state)


async def test_get_model_response_falls_back_to_the_state_and_counts_no_turn() -> None:
    env = Hearing()
    state = await env.init_state(env.tasks.input(0), InOrder("from the state"), "m", {"temperature": 0.5})
    response: Awaitable[Response] = env.get_model_response(state, state["prompt"])
    assert (await response).message.content == "from the state"
    other = InOrder("from another")
    response = env.get_model_response(state, "text", client=other, model="judge", sampling_args={"n": 1})
    assert (await response).message.content == "from another"
    assert (other.asked[0]["model"], other.asked[0]["sampling_args"]) == ("judge", {"n": 1})
    assert state["trajectory"] == []
    state["client"] = None
    with pytest.raises(ConfigurationError, match="client"):
        await env.get_model_response(state, state["prompt"])


async def test_the_environments_sampling_arguments_are_the_defaults_of_its_rollouts() -> None:
    env = Hearing(sampling_args={"temperature": 0.5, "max_tokens": 9})
    client = InOrder("hush")
    state = await env.rollout(env.tasks.input(0), client, "m", {"temperature": 1.0})
    assert client.asked[0]["sampling_args"] == state["sampling_args"] == {"temperature": 1.0, "max_tokens": 9}
    assert env.sampling_args == {"temperature": 0.5, "max_tokens": 9}
