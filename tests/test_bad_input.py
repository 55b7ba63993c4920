"""What bad input gets: an error that says what was expected and what came, when it is given and not later; nothing is lost."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

import vfgym
from tests.environments import Talk
from vfgym.errors import ConfigurationError, EpisodeBusy, InvalidMessage, UnknownArgument
from vfgym.state import State

ROWS = [{"question": "1 + 1?", "answer": "2"}, {"question": "2 + 2?", "answer": "4"}]


def exact(completion: list[vfgym.Message], answer: str) -> float:
    return float(completion[-1].content == answer)


def search(query: str) -> str:
    """Search."""
    return query


search_tool = {"name": "search", "description": "", "parameters": {"type": "object", "properties": {}}}


class Forgetful(Talk):
    def __init__(self) -> None:
        self.anything = 1


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: vfgym.SingleTurnEnv(ROWS, max_turns=3), UnknownArgument, "one turn; use MultiTurnEnv"),
        (lambda: vfgym.SingleTurnEnv(ROWS, rubrik=None), UnknownArgument, "Did you mean `rubric`"),
        (lambda: vfgym.SingleTurnEnv(ROWS, rubric=exact), ConfigurationError, r"vfgym\.Rubric, got function: wrap"),
        (lambda: vfgym.SingleTurnEnv(ROWS, rubric=[exact]), ConfigurationError, r"vfgym\.Rubric, got list"),
        (lambda: vfgym.SingleTurnEnv(ROWS, parser="xml"), ConfigurationError, r"vfgym\.Parser.*got str"),
        (lambda: vfgym.SingleTurnEnv({"train": ROWS}), ConfigurationError, r"got dict\. Pick one split of it: dataset\['train'\]"),
        (lambda: vfgym.SingleTurnEnv("rows.jsonl"), ConfigurationError, "a dataset must be .* got str"),
        (lambda: vfgym.SingleTurnEnv(ROWS, few_shot=[{"role": "narrator"}]), InvalidMessage, r"few_shot\[0\]: .*narrator"),
        (lambda: vfgym.SingleTurnEnv(ROWS, system_prompt=3), InvalidMessage, "content must be text or a list of parts, got int"),
        (lambda: vfgym.SingleTurnEnv(), ConfigurationError, "needs tasks: .*dataset="),
        (lambda: vfgym.SingleTurnEnv([]).reset(seed=0), ConfigurationError, "dataset is empty"),
        (lambda: vfgym.EnvGroup([vfgym.SingleTurnEnv(ROWS)]).set_tasks("train", ROWS), ConfigurationError, "an EnvGroup has the tasks of"),
        (lambda: vfgym.SingleTurnEnv(ROWS, render_mode="depth_array"), ConfigurationError, "render_mode must be one of"),
        (lambda: Talk(max_turns="3"), ConfigurationError, "max_turns must be an integer .* got '3'"),
        (lambda: Forgetful().reset(), ConfigurationError, r"Forgetful\.__init__ must call super\(\)\.__init__"),
        (lambda: vfgym.Rubric([exact], weights=[1.0, 2.0]), ConfigurationError, "got 2 for 1"),
        (lambda: vfgym.Rubric(exact, weights=0.5), ConfigurationError, "weights must be a list"),
        (lambda: vfgym.Rubric(exact, weights=["a"]), ConfigurationError, "weight of exact must be a number, got 'a'"),
        (lambda: vfgym.Rubric([3]), ConfigurationError, "a reward function must be a function: .*int"),
        (lambda: vfgym.stop("x"), ConfigurationError, "@stop takes its arguments by name"),
        (lambda: vfgym.StatefulToolEnv(dataset=ROWS), ConfigurationError, "must write update_tool_args"),
        (
            lambda: vfgym.ToolEnv(tools=search, dataset=ROWS),
            ConfigurationError,
            r"tools must be a list of functions, got function: .*\[search\]",
        ),
        (lambda: vfgym.ToolEnv(tools="search", dataset=ROWS), ConfigurationError, "tools must be a list of functions, got str"),
        (lambda: vfgym.ToolEnv(tools={"search": search}, dataset=ROWS), ConfigurationError, "tools must be a list of functions, got dict"),
        (lambda: vfgym.ToolEnv(tools=3, dataset=ROWS), ConfigurationError, "tools must be a list of functions, got int"),
        (lambda: vfgym.ToolEnv(stop_errors=KeyError, dataset=ROWS), ConfigurationError, r"stop_errors must be a list of .*\[KeyError\]"),
        (
            lambda: vfgym.ToolEnv(stop_errors=["KeyError"], dataset=ROWS),
            ConfigurationError,
            "stop_errors must be exceptions, got 'KeyError'",
        ),
        (lambda: vfgym.ToolEnv(error_formatter="{}", dataset=ROWS), ConfigurationError, "error_formatter must be a function .*got str"),
        (lambda: vfgym.SingleTurnEnv(ROWS, tool_defs=search_tool), ConfigurationError, "tool_defs must be a list of tools, got dict"),
        (lambda: vfgym.SingleTurnEnv(ROWS, parser=vfgym.XMLParser), ConfigurationError, r"parser must be .*, got the class XMLParser"),
        (lambda: vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric), ConfigurationError, r"rubric must be .*, got the class Rubric"),
        (lambda: vfgym.SingleTurnEnv(["1 + 1?", "2 + 2?"]), ConfigurationError, "row 0 of the dataset must be a dict, got str"),
        (lambda: vfgym.SingleTurnEnv(ROWS, eval_dataset=[5]), ConfigurationError, "row 0 of the dataset must be a dict, got int"),
        (lambda: vfgym.RubricGroup(vfgym.Rubric(exact)), ConfigurationError, "rubrics must be a list of rubrics, got Rubric"),
        (lambda: vfgym.EnvGroup(Talk(dataset=ROWS)), ConfigurationError, "envs must be a list of environments, got Talk"),
        (lambda: vfgym.to_chat("CartPole-v1", max_turn=3), UnknownArgument, "'max_turn'. Did you mean `max_turns`"),
        (lambda: vfgym.to_chat("CartPole-v1", dataset=ROWS), UnknownArgument, "tasks of a game are its seeds"),
        (lambda: vfgym.to_chat("CartPole-v1", few_shot=[]), UnknownArgument, "tasks of a game are its seeds"),
    ],
)
def test_a_definition_that_cannot_work_is_refused_when_it_is_made(make: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


HOOKS: dict[str, tuple[type, Any, str]] = {
    "no state": (
        vfgym.MultiTurnEnv,
        {"env_response": lambda self, messages: []},
        r"env_response\(self, messages, state\), got .*\(self, messages\)",
    ),
    "no self": (vfgym.MultiTurnEnv, {"env_response": lambda messages, state: []}, r"env_response\(self, messages, state\)"),
    "one more": (vfgym.MultiTurnEnv, {"env_response": lambda self, messages, state, tools: []}, "missing a required argument: 'tools'"),
    "only by name": (vfgym.MultiTurnEnv, {"env_response": lambda self, messages, *, state: []}, "too many positional arguments"),
    "no method": (vfgym.MultiTurnEnv, {"env_response": [vfgym.UserMessage("on")]}, r"env_response must be a method, got list"),
    "static": (vfgym.MultiTurnEnv, {"env_response": staticmethod(lambda state: [])}, r"got .*\(state\)"),
    "setup_state": (vfgym.MultiTurnEnv, {"setup_state": lambda self: None}, r"setup_state\(self, state\)"),
    "get_prompt_messages": (vfgym.MultiTurnEnv, {"get_prompt_messages": lambda self: []}, r"get_prompt_messages\(self, state\)"),
    "render_completion": (vfgym.MultiTurnEnv, {"render_completion": lambda self: None}, r"render_completion\(self, state\)"),
    "add_trajectory_step": (vfgym.MultiTurnEnv, {"add_trajectory_step": lambda self, state: None}, "trajectory_step"),
    "apply_action": (vfgym.MultiTurnEnv, {"apply_action": lambda self, message: None}, r"apply_action\(self, message, state\)"),
    "is_completed": (vfgym.MultiTurnEnv, {"is_completed": lambda self: False}, r"is_completed\(self, state\)"),
    "init_state": (
        vfgym.MultiTurnEnv,
        {"init_state": lambda self, input: None},
        r"init_state\(self, input, client, model, sampling_args\)",
    ),
    "rollout": (vfgym.ChatEnv, {"rollout": lambda self, input, client: None}, r"rollout\(self, input, client, model, sampling_args\)"),
    "close_session": (vfgym.MultiTurnEnv, {"close_session": lambda self: None}, r"close_session\(self, session\)"),
    "call_tool": (vfgym.ToolEnv, {"call_tool": lambda self, name, args: None}, r"call_tool\(self, tool_name, tool_args, tool_call_id\)"),
    "update_tool_args": (vfgym.StatefulToolEnv, {"update_tool_args": lambda self, name, args: args}, r"update_tool_args\(self, tool_name,"),
    "score_rollout": (vfgym.Rubric, {"score_rollout": lambda self: None}, r"score_rollout\(self, state\)"),
    "score_group": (vfgym.Rubric, {"score_group": lambda self: None}, r"score_group\(self, states\)"),
    "parse": (vfgym.Parser, {"parse": lambda self: None}, r"parse\(self, text\)"),
    "parse_answer": (vfgym.Parser, {"parse_answer": lambda self, text, key: None}, r"parse_answer\(self, completion\).* missing .*'key'"),
    "inherited": (vfgym.MultiTurnEnv, {"env_response": lambda self, messages: []}, r"env_response\(self, messages, state\)"),
}


@pytest.mark.parametrize("case", HOOKS)
def test_a_hook_that_cannot_be_called_is_refused_when_its_class_is_made(case: str) -> None:
    base, hooks, says = HOOKS[case]
    mixins = (type("Mixin", (), hooks), base) if case == "inherited" else (base,)
    with pytest.raises(ConfigurationError, match=says):
        type("Mine", mixins, {} if case == "inherited" else hooks)


def test_hooks_may_be_written_in_any_form_that_can_be_called() -> None:
    class Mine(vfgym.StatefulToolEnv):
        async def setup_state(self, state: State, **kwargs: Any) -> None:
            """More than asked for, by name."""

        def env_response(self, *arguments: Any) -> Any:
            """Everything."""

        def update_tool_args(self, tool, args, messages, the_state, /, more=None):  # type: ignore[no-untyped-def]
            """Other names, and one that is left to its default."""

        def get_prompt_messages(self, state: State, *, window: int = 3) -> Any:
            """One that is given by name."""

        @classmethod
        def is_completed(cls, state: State) -> bool:  # type: ignore[override]
            """A class's."""
            return False

        render_completion = functools.partialmethod(lambda self, window, state: None, 3)
        apply_action = mock.Mock()

    assert Mine(dataset=ROWS)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (3, "options must be a dict, got int"),
        ({"example": 1}, "unknown reset option 'example'.*Did you mean `example_id`"),
        ({"example_id": 9}, "no task with example_id 9 among the 2 tasks"),
        ({"split": "test"}, "'split' must be 'train' or 'eval', got 'test'"),
        ({"task": "hello"}, "'task' must be a row"),
        ({"task": {"answer": "2"}}, "the reset option 'task': a row needs a 'prompt'"),
        ({"game_options": {}}, "not a wrapped game"),
    ],
)
def test_wrong_reset_options_leave_the_running_episode_as_it_was(options: Any, says: str) -> None:
    env, twin = (vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric(exact)) for _ in range(2))
    env.reset(seed=0)
    twin.reset(seed=0)
    with pytest.raises(ConfigurationError, match=says):
        env.reset(seed=5, options=options)
    assert (env.step("2"), env.reset()[0]) == (twin.step("2"), twin.reset()[0])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"split": "test"}, "'split' must be"),
        ({"example_id": "a"}, "example_id of a game is its seed, an integer from 0; got 'a'"),
        ({"example_id": -1}, "got -1"),
        ({"game_options": 4}, "'game_options' must be a dict"),
        ({"task": {}}, "no reset option 'task'"),
    ],
)
def test_wrong_reset_options_of_a_game(options: Any, says: str) -> None:
    env = vfgym.to_chat("Blackjack-v1")
    observation, _ = env.reset(seed=3)
    with pytest.raises(ConfigurationError, match=says):
        env.reset(options=options)
    assert env.episode is not None
    assert env.episode.conversation() == observation


def test_failing_an_episode_that_is_over_changes_nothing() -> None:
    class Closed(Talk):
        @vfgym.stop
        def at_once(self, state: State) -> bool:
            return True

    env = Closed(dataset=ROWS)
    env.reset(seed=0)
    outcome = env.fail(vfgym.errors.ModelError("late"))
    assert (outcome.info["stop_condition"], env.state["error"]) == ("at_once", None)


async def test_a_reset_while_a_step_runs_is_refused() -> None:
    import asyncio

    class Slow(vfgym.MultiTurnEnv):
        async def env_response(self, messages: list[vfgym.Message], state: State) -> Any:
            await asyncio.sleep(0)
            return [vfgym.UserMessage("on")]

    env = Slow(dataset=ROWS)
    await env.areset(seed=0)
    outcome, refused = await asyncio.gather(env.astep("a"), env.areset(), return_exceptions=True)
    assert isinstance(refused, EpisodeBusy)
    assert outcome.observation[-1].content == "on"
