"""The Gymnasium face of an environment: reset and step, options and seeds, info, rendering, closing, and what is refused."""

from __future__ import annotations

import asyncio
import json
import math
import re
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

from tests.environments import RandomTalk
from tests.models import Failing, InOrder
from vfgym import (
    ChatEnv,
    EnvGroup,
    MultiTurnEnv,
    Parser,
    Rubric,
    SingleTurnEnv,
    State,
    StatefulToolEnv,
    ToolEnv,
    Usage,
    UserMessage,
    advantage,
    cleanup,
    setup,
    stop,
    teardown,
    update,
)
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import ConfigurationError, EpisodeBusy, InvalidAction, ResetNeeded, UnknownArgument
from vfgym.messages import Message
from vfgym.rubrics import RubricGroup
from vfgym.tools import as_tool

ROWS = [{"question": f"question {index}", "answer": f"secret {index}", "info": {"level": index}} for index in range(5)]


def first_word(completion: list[Message], answer: str) -> float:
    """Score the first word of the answer."""
    return float(str(completion[0]["content"]).startswith(answer))


def length(completion: list[Message]) -> float:
    """Score the number of messages."""
    return len(completion) / 10


BOUNDED = Rubric()
BOUNDED.add_reward_func(length, range=(-1, 1))


class ThreeTurns(RandomTalk):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": ROWS, "rubric": Rubric([first_word, length]), "max_turns": 3, **kwargs})


class AsyncThreeTurns(ThreeTurns):
    async def env_response(self, messages: list[Message], state: State) -> Any:
        await asyncio.sleep(0)
        return super().env_response(messages, state)


class Custom(ChatEnv):
    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = await self.init_state(input, client, model, sampling_args)
        first = (await self.get_model_response(state, state["prompt"])).message
        second = (await self.get_model_response(state, [*state["prompt"], first, UserMessage("sure?")])).message
        state["completion"] = [first, UserMessage("sure?"), second]
        return state


def search(query: str, limit: int = 3) -> str:
    """Search for something."""
    return f"{limit} pages about {query}"


class Ledger(StatefulToolEnv):
    def __init__(self) -> None:
        super().__init__(dataset=ROWS, max_turns=4, rubric=Rubric(length))
        self.add_tool(self.note, args_to_skip=["book"])

    def setup_state(self, state: State) -> Any:
        state["book"] = []
        return super().setup_state(state)

    def note(self, text: str, book: list[str]) -> str:
        """Write something down."""
        book.append(text)
        return f"{len(book)} lines"

    def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], messages: Any, state: State, **kwargs: Any) -> dict[str, Any]:
        return {**tool_args, "book": state["book"]}


ENVS: dict[str, Callable[..., ChatEnv]] = {
    "single turn": lambda **kwargs: SingleTurnEnv(ROWS, rubric=Rubric(first_word), system_prompt="Be brief.", **kwargs),
    "multi turn": ThreeTurns,
    "async hooks": AsyncThreeTurns,
    "tools": lambda **kwargs: ToolEnv(tools=[search], dataset=ROWS, max_turns=4, rubric=Rubric(length), **kwargs),
    "stateful tools": lambda **kwargs: Ledger(),
    "own loop": lambda **kwargs: Custom(ROWS, rubric=Rubric(first_word), **kwargs),
}
ALL = pytest.mark.parametrize("make", ENVS.values(), ids=list(ENVS))
"""A test for an environment of every class."""


@pytest.fixture
def strict_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# What Gymnasium asks of every environment


@ALL
def test_gymnasiums_checker_has_nothing_to_say(make: Callable[..., ChatEnv], strict_warnings: None) -> None:
    check_env(make(), skip_render_check=True)


@ALL
def test_a_seed_replays_the_stream_of_tasks_and_random_numbers(make: Callable[..., ChatEnv]) -> None:
    def stream(env: ChatEnv) -> list[Any]:
        env.action_space.seed(3)
        seen: list[Any] = []
        for episode in range(7):
            seen.append(env.reset(seed=11 if episode == 0 else None))
            for _ in range(2):
                seen.append(outcome := env.step(env.action_space.sample()))
                if outcome.terminated or outcome.truncated:
                    break
        env.close()
        return seen

    env = make()
    first = stream(env)
    assert data_equivalence(first, stream(env))
    assert data_equivalence(first, stream(make()))


@ALL
def test_info_has_the_same_keys_at_reset_in_a_turn_and_at_the_end(make: Callable[..., ChatEnv]) -> None:
    env = make()
    env.action_space.seed(0)
    _, info = env.reset(seed=0)
    infos = [info]
    for _ in range(4):
        outcome = env.step(env.action_space.sample())
        infos.append(outcome.info)
        if outcome.terminated or outcome.truncated:
            break
    assert all(info.keys() == {"example_id", "tools", "metrics", "stop_condition", "ending"} for info in infos)
    assert len({tuple(info["metrics"]) for info in infos}) == 1
    assert {type(value) for info in infos for value in info["metrics"].values()} == {float}
    assert all(set(info["metrics"].values()) == {0.0} for info in infos[:-1])
    assert infos[-1]["metrics"] == env.state["metrics"]
    assert [info["ending"] is None for info in infos] == [True] * (len(infos) - 1) + [False]
    assert [info["stop_condition"] is None for info in infos] == [True] * (len(infos) - 1) + [False]
    assert "secret" not in json.dumps(infos)
    names, tools = set(infos[0]["metrics"]), list(infos[0]["tools"])
    for info in infos:
        info["metrics"].clear()
        info["tools"].clear()
    assert (set(env.state["metrics"]), env.reset()[1]["tools"]) == (names, tools)


# Tasks, seeds and options


def example_ids(env: gym.Env[Any, Any], count: int, seed: int | None = None) -> list[int]:
    return [env.reset(seed=seed if episode == 0 else None)[1]["example_id"] for episode in range(count)]


def test_example_id_picks_a_task_and_draws_nothing() -> None:
    env = SingleTurnEnv(ROWS)
    expected = example_ids(env, 6, seed=4)
    ids = example_ids(env, 2, seed=4)
    for example_id in (3, 0, 3):
        observation, info = env.reset(options={"example_id": example_id})
        assert (info["example_id"], observation[-1]["content"]) == (example_id, f"question {example_id}")
    assert [*ids, *example_ids(env, 4)] == expected


# Tasks that are replaced


def shown(env: EpisodeSeat, episodes: int = 2, **options: Any) -> list[str]:
    """Return the questions of some episodes, in the order of the alphabet."""
    return sorted(env.reset(options=options or None)[0][-1]["content"] for _ in range(episodes))


@pytest.mark.parametrize("count", [1, 2, 9])
@pytest.mark.parametrize("split", ["train", "eval"])
def test_every_seat_meets_the_tasks_that_replace_others(split: Any, count: int) -> None:
    env = SingleTurnEnv(ROWS, ROWS)
    seats = [env, env.fork()]
    for seat in seats:
        seat.reset(seed=0, options={"split": split})
    questions = [f"new {index}" for index in range(count)]
    env.set_tasks(split, [{"question": question} for question in questions])
    for seat in seats:
        assert (shown(seat, count, split=split), shown(seat, count, split=split)) == (questions, questions)
    assert len(env.tasks_of("eval" if split == "train" else "train")) == len(ROWS)


def test_a_group_has_the_tasks_that_its_environments_have_now() -> None:
    first, second = SingleTurnEnv(ROWS), SingleTurnEnv([{"question": "a"}])
    group = EnvGroup([EnvGroup([first]), second], ["inner", "second"])
    group.reset(seed=0)
    assert group.tasks is group.tasks
    first.set_tasks("train", [{"question": "b"}, {"question": "c"}])
    assert (len(group.tasks), shown(group, 3)) == (3, ["a", "b", "c"])
    second.set_tasks("train", [{"question": "d"}])
    assert shown(group, 3) == ["b", "c", "d"]


@pytest.mark.parametrize("example_id", [5, -1, "0", None, 1.0, True])
def test_an_example_id_that_does_not_exist_is_refused(example_id: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"no task with example_id .* among the 5 tasks"):
        SingleTurnEnv(ROWS).reset(options={"example_id": example_id})


def test_a_task_of_ones_own_can_be_given() -> None:
    env = SingleTurnEnv(ROWS, system_prompt="Be brief.", rubric=Rubric(first_word))
    observation, _ = env.reset(options={"task": {"question": "mine?", "answer": "yes"}})
    assert ([message["content"] for message in observation], env.step("yes").reward) == (["Be brief.", "mine?"], 1.0)
    assert env.state["example_id"] == -1


# Actions


@pytest.mark.parametrize(
    ("action", "says"),
    [
        *[(None, "NoneType"), (7, "int"), (b"text", "bytes"), ([], "list"), ([{"role": "assistant", "content": "x"}], "list")],
        *[({}, "role"), ({"content": "x"}, "role"), ({"role": "user", "content": "x"}, "user"), (UserMessage("x"), "user")],
        ({"role": "narrator", "content": "x"}, "narrator"),
        ({"role": "assistant", "content": 5}, "content"),
        ({"role": "assistant", "content": "x", "tool_calls": "add"}, "tool_calls"),
        ({"role": "assistant", "content": "x", "tool_calls": [{"id": "1"}]}, "name"),
        ({"role": "assistant", "content": "x", "tool_calls": [{"function": {"name": "f", "arguments": 3}}]}, "arguments"),
        ({"role": "assistant", "content": "x", 1: 2}, "1"),
        ({"role": "assistant", "content": "x", "self": 1}, "self"),
    ],
)
def test_anything_else_is_refused_and_leaves_the_episode_as_it_was(action: Any, says: str) -> None:
    """The error says what was expected and what came; it is a ValueError too."""
    env, twin = ThreeTurns(), ThreeTurns()
    for each in (env, twin):
        each.reset(seed=0)
        each.step("a")
    assert not env.action_space.contains(action)
    with pytest.raises(InvalidAction, match="assistant message") as raised:
        env.step(action)
    assert says in str(raised.value)
    assert isinstance(raised.value, ValueError)
    assert (env.step("b"), env.step("c")) == (twin.step("b"), twin.step("c"))


def test_step_before_reset_and_after_the_end_asks_for_reset() -> None:
    env = SingleTurnEnv(ROWS)
    for call in (lambda: env.step("a"), lambda: env.fail(TimeoutError()), env.truncate):
        with pytest.raises(ResetNeeded, match=r"no episode has begun: call reset\(\) first"):
            call()
    env.reset(seed=0)
    env.step("a")
    with pytest.raises(ResetNeeded, match=r"the episode is over: call reset\(\) first"):
        env.step("a")


# Definitions


def test_an_unknown_argument_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(UnknownArgument, match=r"ThreeTurns has no argument 'max_turn'\. Did you mean `max_turns`") as raised:
        ThreeTurns(max_turn=3)
    assert isinstance(raised.value, TypeError)
    with pytest.raises(UnknownArgument, match="`dataset`"):
        ToolEnv(tools=[], datset=ROWS)


@pytest.mark.parametrize("name", ["step", "reset", "astep", "areset"])
def test_overriding_the_face_is_refused_naming_the_hook(name: str) -> None:
    hook = "setup_state" if "reset" in name else "env_response"
    with pytest.raises(ConfigurationError, match=rf"Wrong overrides {name}\(\).*{hook}"):
        type("Wrong", (MultiTurnEnv,), {name: lambda self, *args, **kwargs: None})


def test_a_rubric_that_scores_groups_cannot_be_stepped_alone() -> None:
    def ranks(completions: list[Any]) -> list[float]:
        return [0.0] * len(completions)

    env = ThreeTurns(rubric=Rubric(ranks))
    assert env.requires_group_rollouts
    with pytest.raises(ConfigurationError, match="ranks"):
        env.reset(seed=0)
    assert not ThreeTurns(rubric=Rubric(ranks), score_rollouts=False).requires_group_rollouts


# The state


def test_the_state_is_that_of_the_current_or_last_episode() -> None:
    env = ThreeTurns()
    assert env.state is None
    env.reset(seed=0)
    first = env.state
    env.step("a")
    assert env.state is first
    env.truncate()
    assert env.state is first
    env.reset()
    assert env.state is not first
    last = env.state
    env.close()
    assert env.state is last


def test_the_state_has_the_documented_keys() -> None:
    env = ThreeTurns(sampling_args={"temperature": 0.5})
    env.reset(seed=0)
    state = env.state
    documented = {
        *("input", "task", "client", "model", "sampling_args", "is_completed", "is_truncated", "tool_defs", "trajectory"),
        *("completion", "usage_tracker", "usage", "trajectory_id", "reward", "metrics", "error", "final_env_response", "timing"),
        "stop_condition",
    }
    assert documented <= state.keys()
    assert (state["is_completed"], state["reward"], state["completion"]) == (False, None, None)
    env.truncate()
    assert (state["is_completed"], state["reward"], state["completion"]) == (True, 0.0, [])
    assert state["metrics"].keys() == {"first_word", "length", "num_turns"}


def test_info_has_the_tools_that_the_state_has_now() -> None:
    """A hook may exchange them, one for one, or add some; what is given is nobody else's."""

    def other(query: str) -> str:
        """Search elsewhere."""
        return query

    class Changing(ToolEnv):
        def env_response(self, messages: list[Message], state: State) -> Any:
            turn = len(state["trajectory"])
            if turn == 1:
                state["tool_defs"] = ToolEnv(tools=[other], dataset=ROWS).tool_defs.copy()
            else:
                state["tool_defs"].append(self.tool_defs[0])
            return [UserMessage("on")]

        def no_tools_called(self, state: State) -> bool:
            return False

    env = Changing(tools=[search], dataset=ROWS)
    _, info = env.reset(options={"example_id": 0})
    infos = [info, env.step("a").info, env.step("b").info, env.step("c").info]
    names = [[tool["function"]["name"] for tool in each["tools"]] for each in infos]
    assert names == [["search"], ["other"], ["other", "search"], ["other", "search", "search"]]
    infos[-1]["tools"].clear()
    assert len(env.truncate().info["tools"]) == 3


@pytest.mark.parametrize(
    ("own", "given", "expected"),
    [
        (None, None, None),
        ({}, {}, {}),
        ({"n": 1, "top_p": 0}, None, {"n": 1, "top_p": 0}),
        ({"n": 1, "top_p": 0}, {"n": 2}, {"n": 2, "top_p": 0}),
        ({}, {"n": 2}, {"n": 2}),
    ],
)
async def test_parameters_of_a_call_go_before_those_of_the_environment(own: Any, given: Any, expected: Any) -> None:
    env = ThreeTurns(sampling_args=own)
    model = InOrder("a", "b", "c")
    state = await env.rollout(env.tasks.input(0), model, "m", given)
    assert (state["sampling_args"], env.sampling_args) == (expected, own or {})
    assert [(asked["model"], asked["sampling_args"], asked["tools"], asked["state"]) for asked in model.asked] == [
        ("m", expected or {}, None, state)
    ] * 3


async def test_a_client_is_asked_with_what_the_state_has_where_the_call_says_nothing() -> None:
    env = ToolEnv(tools=[search], dataset=ROWS)
    first, second = InOrder("a"), InOrder("b", "c")
    state = await env.init_state(ROWS[0], first, "m", {"n": 1})
    other = {"name": "other", "description": "", "parameters": {}}
    await env.get_model_response(state, ({"role": "user", "content": "Who?"},))
    await env.get_model_response(state, [UserMessage("Who?")], second, "n", [as_tool(other)], {})
    await env.get_model_response(state, [UserMessage("Who?")], second, tool_defs=[])
    prompt = [UserMessage("Who?")]
    assert [(*asked.values(),) for asked in first.asked] == [(prompt, "m", {"n": 1}, state["tool_defs"], state)]
    assert [(*asked.values(),) for asked in second.asked] == [
        (prompt, "n", {}, [as_tool(other)], state),
        (prompt, "m", {"n": 1}, None, state),
    ]
    state["client"] = None
    with pytest.raises(ConfigurationError, match=r"^there is no client to ask: a rollout needs one \(step\(\) needs none\)$"):
        await env.get_model_response(state, [])


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (Usage(3, 0, 5, 8), {"input_tokens": 3, "output_tokens": 5}),
        ({"prompt_tokens": 3}, {"input_tokens": 3, "output_tokens": 0}),
        ({"input_tokens": 2.5, "output_tokens": 0}, {"input_tokens": 2.5, "output_tokens": 0}),
        ({"prompt_tokens": -1, "input_tokens": 4, "output_tokens": True}, {"input_tokens": 4, "output_tokens": 0}),
        ({"prompt_tokens": "3", "completion_tokens": None}, {"input_tokens": 0, "output_tokens": 0}),
        (None, None),
    ],
    ids=str,
)
def test_tokens_are_counted_as_they_are_reported(usage: Any, counted: Any) -> None:
    env = ThreeTurns()
    env.reset(seed=0)
    env.increment_state_usage_from_response(env.state, SimpleNamespace(usage=usage))
    assert env.get_state_usage(env.state) == counted
    if counted:
        env.increment_state_usage(env.state, 1, 2)
        assert env.get_state_usage(env.state) == {
            "input_tokens": counted["input_tokens"] + 1,
            "output_tokens": counted["output_tokens"] + 2,
        }
        with pytest.raises(ValueError, match="-1"):
            env.increment_state_usage(env.state, 0, -1)


def test_the_tools_of_a_task_take_the_place_of_the_environments() -> None:
    other = {"name": "other", "description": "Another.", "parameters": {"type": "object", "properties": {}}}
    rows = [{"question": "?", "info": {"tool_defs": [other]}}, {"question": "?", "info": {"tool_defs": []}}, {"question": "?"}]
    env = ToolEnv(tools=[search], dataset=rows)
    names = [[tool["function"]["name"] for tool in env.reset(options={"example_id": index})[1]["tools"]] for index in range(3)]
    assert names == [["other"], ["search"], ["search"]]
    assert env.state["tool_defs"] is not env.tool_defs


# What an environment is, without an episode


def test_what_hooks_say_where_nobody_wrote_them() -> None:
    env = ThreeTurns(env_id="talk")
    env.reset(options={"example_id": 2})
    state = env.state
    said = (
        env.step_info(state),
        env.render_picture(state),
        env.random_action(state, env.np_random),
        env.why_no_action(UserMessage("a"), state),
    )
    assert said == (None, None, None, None)
    assert (env.oracle(state), env.oracle(State(input={"answer": 0})), env.oracle(State(input={}))) == ("secret 2", "0", None)
    assert (asyncio.run(_awaited(env.copy_resources(state))), asyncio.run(_awaited(env.open_resources(state)))) == ({}, None)
    assert (env.can_go_back, Custom(ROWS).can_go_back, env.definition, env.routed({"a": 1})) == (True, False, env, (env, {"a": 1}))
    assert env.argument_names().count("max_turns") == 1
    state["stop_condition"] = "max_turns_reached"
    assert env.end_flags(state) == (False, True)
    state["stop_condition"] = "anything else"
    assert env.end_flags(state) == (True, False)


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def test_what_its_episodes_share_is_named() -> None:
    class Holding(ThreeTurns):
        def __init__(self) -> None:
            rubric = Rubric(parser=self.own_parser)
            rubric.add_step_reward_func(lambda step: 0.0)
            super().__init__(rubric=rubric, tool_defs=[{"name": "a"}, {"name": "b"}])
            self.book: list[str] = []
            self.empty, self.kind, self.number = (), dict, 3

        own_parser = Parser()

    env = Holding()
    env.reset(seed=0)
    parts = env.shared_parts()
    ((function, objects),) = env.rubric.step_scorers()
    expected = {
        **{"": env, "message_types": env.message_types, "self.book": env.book, "self.rubric": env.rubric, "self.parser": env.parser},
        **{"tool 0": env.tool_defs[0], "tool 1": env.tool_defs[1], "step function 0": function, "objects of step function 0": objects},
    }
    assert {name: parts[name] for name in expected} == expected
    assert all(parts[name] is expected[name] for name in expected if not name.startswith("objects"))
    assert parts.keys().isdisjoint(
        {f"self.{name}" for name in ("empty", "kind", "number", "action_space", "_episode", "_streams", "_numbers")}
    )


def test_a_split_without_tasks_has_those_of_the_other() -> None:
    both, train, evaluation, none = (
        *(SingleTurnEnv(ROWS, ROWS[:2]), SingleTurnEnv(ROWS), SingleTurnEnv(None, ROWS[:2])),
        Custom(tool_defs=[{"name": "f"}]),
    )
    assert [(len(env.tasks), len(env.eval_tasks)) for env in (both, train, evaluation)] == [(5, 2), (5, 5), (2, 2)]
    splits = [(env.has_tasks("train"), env.has_tasks("eval")) for env in (both, train, evaluation, none)]
    assert splits == [(True, True), (True, False), (False, True), (False, False)]
    for call in (lambda: both.tasks_of("test"), lambda: both.set_tasks("test", ROWS)):
        with pytest.raises(ConfigurationError, match=r"^the reset option 'split' must be 'train' or 'eval', got 'test'$"):
            call()
    both.set_system_prompt("Now.")
    for split in ("train", "eval"):
        assert [message.content for message in both.reset(options={"split": split, "example_id": 1})[0]] == ["Now.", "question 1"]
    both.set_tasks("eval", [{"question": "new"}])
    assert [message.content for message in both.reset(options={"split": "eval"})[0]] == ["Now.", "new"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"render_mode": "png"}, "render_mode must be one of ['ansi', 'human', 'rgb_array'] or None, got 'png'"),
        ({"rubric": length}, "rubric must be a vfgym.Rubric, got"),
        ({"parser": Parser}, "parser must be a vfgym.Parser (or have parse and parse_answer), got"),
        ({"parser": object()}, "parser must be a vfgym.Parser (or have parse and parse_answer), got"),
        ({"failure_reward": math.inf}, "failure_reward must be a finite number, at most the lowest reward that an episode can have, or"),
        ({"failure_reward": True}, "known; got True"),
        ({"failure_reward": "0"}, "known; got '0'"),
        (
            {"rubric": BOUNDED, "failure_reward": 1.5},
            "failure_reward is 1.5, and no episode can earn more than 1: failing would pay.",
        ),
    ],
)
def test_an_argument_that_does_not_fit_is_refused(arguments: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        ThreeTurns(**arguments)


@pytest.mark.parametrize(
    ("declared", "rubric", "failure_reward", "bounds"),
    [
        (None, Rubric(length), None, None),
        (0, Rubric(length), 0.0, None),
        (None, BOUNDED, -1.0, (-1.0, 1.0)),
        (0, BOUNDED, 0.0, (-1.0, 1.0)),
        (np.float32(1), BOUNDED, 1.0, (-1.0, 1.0)),
        (-3, BOUNDED, -3.0, (-1.0, 1.0)),
    ],
)
def test_what_failures_count_with_is_declared_or_the_lowest_reward(declared: Any, rubric: Any, failure_reward: Any, bounds: Any) -> None:
    env = ThreeTurns(rubric=rubric, failure_reward=declared)
    assert (env.failure_reward, env.reward_range, env.fork().failure_reward) == (failure_reward, bounds, failure_reward)
    env.failure_reward = -9
    assert (env.failure_reward, type(env.failure_reward)) == (-9.0, float)
    if bounds:
        with pytest.raises(ConfigurationError, match="failing would pay"):
            env.failure_reward = 2


def test_rubrics_are_added_beside_each_other() -> None:
    first, second, third = (Rubric(function) for function in (first_word, length, lambda completion: 0.0))
    env = Custom(ROWS, rubric=first)
    env.add_rubric(second)
    once = env.rubric
    env.add_rubric(third)
    assert [rubric.rubrics for rubric in (once, env.rubric)] == [[first, second], [first, second, third]]
    env.rubric = group = RubricGroup([first, second])
    env.add_rubric(third)
    assert env.rubric.rubrics == [group, third], "an author's group is one member"
    env.set_score_rollouts(False)
    env.set_max_seq_len(7)
    assert (env.score_rollouts, env.max_seq_len) == (False, 7)


def test_a_notebook_shows_what_an_environment_is() -> None:
    env = ThreeTurns(env_id="talk", env_args={"level": 2, "api_key": "sk-123"}, system_prompt="Be <brief>.", tool_defs=[{"name": "f"}])
    html = env._repr_html_()
    for part in ("talk", "ThreeTurns", "level", "Be &lt;brief&gt;.", "f: ", "first_word, length"):
        assert part in html
    assert "sk-123" not in html
    bare = Custom()._repr_html_()
    assert "Custom" in bare
    assert not any(part in bare for part in ("system prompt", "tools", "arguments"))


def test_an_environment_without_a_loop_says_what_to_write() -> None:
    with pytest.raises(NotImplementedError, match=r"^ChatEnv must write rollout\(\), or subclass MultiTurnEnv and write env_response\(\)$"):
        asyncio.run(ChatEnv(ROWS).rollout(ROWS[0], None, ""))


@pytest.mark.parametrize(
    ("base", "members", "says"),
    [
        (
            MultiTurnEnv,
            {"a": advantage(lambda self: 0)},
            "Wrong marks a method as @advantage: advantages are rewards",
        ),
        (
            ChatEnv,
            {"a": setup(lambda self, state: 0)},
            "Wrong writes its own rollout(), which @setup methods are not part of",
        ),
        (
            MultiTurnEnv,
            {"a": stop(lambda self, prompt: 0)},
            "Wrong.a is a stop handler and asks for 'prompt'; it can have env, state, ",
        ),
        (
            MultiTurnEnv,
            {"a": cleanup(lambda self, state, x: 0)},
            "Wrong.a is a cleanup handler and asks for 'x'; it can have env, state, task",
        ),
        (MultiTurnEnv, {"a": update(stage="group")(lambda self, state: 0)}, "Wrong.a: @update runs for each rollout; stage='group' is for"),
    ],
)
def test_a_mark_that_means_nothing_is_refused(base: type, members: Any, says: str) -> None:
    for name, member in members.items():
        member.__name__ = name
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        type("Wrong", (base,), members)


# Rendering


def test_render_returns_the_conversation_as_text() -> None:
    env = ToolEnv(tools=[search], dataset=ROWS, render_mode="ansi")
    assert env.render() == ""
    env.reset(options={"example_id": 0})
    call = {"id": "1", "function": {"name": "search", "arguments": '{"query": "cats"}'}}
    env.step({"role": "assistant", "content": None, "tool_calls": [call]})
    text = env.render()
    assert text == '[user] question 0\n[assistant] search({"query": "cats"})\n[tool] 3 pages about cats'


# Closing


def test_close_tears_down_once() -> None:
    class Holding(ThreeTurns):
        def __init__(self) -> None:
            super().__init__()
            self.events: list[str] = []

        @teardown
        async def b_release(self) -> None:
            await asyncio.sleep(0)
            self.events.append("released")

        @teardown(priority=5)
        def flush(self) -> None:
            self.events.append("flushed")

    env = Holding()
    env.fork().close()
    assert env.events == [], "a fork is not the definition"
    env.reset(seed=0)
    env.close()
    env.close()
    env.run_teardown()
    assert (env.events, env.cleaned) == (["flushed", "released"], 1)


# What a player keeps between episodes


class Arcade(ThreeTurns):
    """Opens a game for each player, which lives on from episode to episode."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.opened = 0
        self.closed: list[int] = []

    def setup_state(self, state: State) -> Any:
        if state.session is None:
            state.session = self.opened
            self.opened += 1
        if state["info"].get("broken"):
            raise ZeroDivisionError("a bug")
        return super().setup_state(state)

    def close_session(self, session: int) -> None:
        self.closed.append(session)


async def test_a_rollout_closes_its_session_also_when_it_raises() -> None:
    env = Arcade()
    with pytest.raises(ConnectionError):
        await env.rollout(env.tasks.input(0), Failing(ConnectionError("refused")), "m")
    assert env.closed == [0]


async def test_two_steps_of_one_episode_at_once_are_refused() -> None:
    """They would tear the conversation apart; each player has a fork of its own."""

    class Slow(MultiTurnEnv):
        async def env_response(self, messages: list[Message], state: State) -> list[Message]:
            await asyncio.sleep(0)
            return [UserMessage("on")]

    env = Slow(dataset=[{"question": "?"}])
    await env.areset(seed=0)
    first, second = await asyncio.gather(env.astep("a"), env.astep("b"), return_exceptions=True)
    assert isinstance(second, EpisodeBusy)
    assert [message.content for message in first.observation] == ["?", "a", "on"]
    assert [message.content for message in (await env.astep("c")).observation] == ["?", "a", "on", "c", "on"]
