"""Agents: what they answer, that episodes do not share what they remember, and how they are found by name."""

from __future__ import annotations

import asyncio
import functools
import io
import math
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.wrappers import TransformAction

from tests import environments
from vfgym import NewMessages, SingleTurnEnv, ToolEnv
from vfgym.agents.base import per_episode, seat_of
from vfgym.agents.human import EndOfInput, HumanAgent
from vfgym.agents.loading import agent_name, as_agent, load_agent
from vfgym.agents.oracle import OracleAgent
from vfgym.agents.random import RandomAgent
from vfgym.agents.scripted import ScriptedAgent
from vfgym.aio.background import in_event_loop, wait
from vfgym.aio.bridge import bridge
from vfgym.calls import is_awaitable
from vfgym.errors import ConfigurationError, ModelError
from vfgym.messages import Message
from vfgym.runs import evaluate
from vfgym.state import State
from vfgym.testing import ScriptedClient

LEGAL = ["rock", "paper", "scissors"]


class Echo(environments.Echo):
    """Ten tasks with an answer each."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": [{"question": f"question {i}", "answer": f"answer {i}"} for i in range(10)], **kwargs})


class Legal(Echo):
    """Names the legal actions."""

    def step_info(self, state: State) -> dict[str, Any]:
        return {"legal_actions": LEGAL.copy()}


def ask(agent: Any, env: gymnasium.Env[Any, Any], seed: int, times: int = 5) -> list[Any]:
    observation, info = env.reset(seed=seed)
    answer = per_episode(agent)(env)
    return [answer(observation, info) for _ in range(times)]


# Random


def test_random_agent_replays_under_the_seed_of_the_episode_and_differs_between_seeds() -> None:
    env = Echo()
    assert ask(RandomAgent(), env, seed=1) == ask(RandomAgent(), env, seed=1)
    assert ask(RandomAgent(), env, seed=1) != ask(RandomAgent(), env, seed=2)
    assert ask(RandomAgent(), env, seed=1) != ask(RandomAgent(seed=1), env, seed=1)
    assert ask(RandomAgent(seed=1), env, seed=1) == ask(RandomAgent(seed=1), env, seed=1)


def test_random_agent_leaves_the_random_numbers_of_the_environment_alone() -> None:
    env = Echo()
    env.reset(seed=1)
    untouched = env.np_random.random()
    ask(RandomAgent(), env, seed=1)
    assert env.np_random.random() == untouched


def test_random_agent_answers_differently_in_each_episode_of_an_unseeded_loop() -> None:
    env, agent = Echo(), RandomAgent()
    env.reset(seed=0)
    answers = []
    for _ in range(5):
        observation, info = env.reset()
        answers.append(per_episode(agent)(env)(observation, info))
    assert len({str(answer) for answer in answers}) > 1


def test_random_agent_prefers_legal_actions() -> None:
    answers = ask(RandomAgent(), Legal(), seed=0, times=50)
    assert set(answers) == set(LEGAL)


def test_random_agent_samples_the_action_space_of_a_wrapper() -> None:
    shared = gymnasium.spaces.Discrete(3)
    env = TransformAction(Legal(), lambda number: LEGAL[number], shared)
    answers = ask(RandomAgent(), env, seed=0, times=50)
    assert set(answers) == {0, 1, 2}
    assert answers == ask(RandomAgent(), env, seed=0, times=50)


def test_episodes_of_one_random_agent_do_not_share_numbers() -> None:
    agent, first, second = RandomAgent(), Echo(), Echo()
    alone = ask(agent, first, seed=3, times=4)
    (observation, info), _ = first.reset(seed=3), second.reset(seed=4)
    answer, other = agent.for_episode(first), agent.for_episode(second)
    taken = []
    for _ in range(4):
        taken.append(answer(observation, info))
        other(observation, info)
    assert taken == alone


# Oracle


def test_oracle_agent_gives_the_right_answer_through_wrappers() -> None:
    env = NewMessages(Echo())
    observation, info = env.reset(options={"example_id": 4})
    assert OracleAgent().for_episode(env)(observation, info) == "answer 4"


def test_oracle_agent_waits_for_an_async_oracle() -> None:
    class Slow(Echo):
        async def oracle(self, state: State) -> str:
            return "found"

    env = Slow()
    observation, info = env.reset(seed=0)
    assert OracleAgent().for_episode(env)(observation, info) == "found"


async def test_oracle_agent_is_awaited_by_an_evaluation_and_holds_nobody_up() -> None:
    class Slow(Echo):
        async def oracle(self, state: State) -> str:
            await asyncio.sleep(0)
            return "found"

    def ask_as_an_evaluation_does() -> Any:
        env = Slow()
        observation, info = env.reset(seed=0)
        answer = OracleAgent().for_episode(env)(observation, info)
        assert is_awaitable(answer)
        return wait(answer)

    assert await bridge(ask_as_an_evaluation_does) == "found"


@pytest.mark.parametrize("is_async", [False, True])
def test_oracle_agent_names_the_turn_to_which_the_environment_knows_no_answer(is_async: bool) -> None:
    class Forgetful(Echo):
        def oracle(self, state: State) -> Any:
            known = None if state["trajectory"] else "found"
            return self.found(known) if is_async else known

        async def found(self, known: str | None) -> str | None:
            return known

    env = Forgetful()
    observation, info = env.reset(seed=0)
    answer = OracleAgent().for_episode(env)
    assert answer(observation, info) == "found"
    observation, _, _, _, info = env.step("found")
    with pytest.raises(ModelError, match="no right answer to turn 2"):
        answer(observation, info)


def test_oracle_agent_names_the_environment_that_knows_no_answer() -> None:
    env = SingleTurnEnv([{"question": "why?"}], env_id="mystery")
    env.reset(seed=0)
    with pytest.raises(ConfigurationError, match="mystery knows no right answer"):
        OracleAgent().for_episode(env)


def test_an_environment_without_a_conversation_is_told_of_to_chat() -> None:
    with pytest.raises(ConfigurationError, match=r"take 'gymnasium/CartPole-v1', or wrap it with vfgym\.to_chat\('CartPole-v1'\)"):
        seat_of(gymnasium.make("CartPole-v1"))
    with pytest.raises(ConfigurationError, match=r"answer: wrap it with vfgym\.to_chat"):
        seat_of(CartPoleEnv())


# Scripted


def test_scripted_agent_begins_its_script_anew_in_each_episode() -> None:
    agent, env = ScriptedAgent(["a", "b"]), Echo()
    assert ask(agent, env, seed=0, times=2) == ask(agent, env, seed=1, times=2) == ["a", "b"]


def test_scripted_agent_answers_by_example() -> None:
    env = Echo()
    agent = ScriptedAgent({2: ["two"], 3: ["three"]})
    observation, info = env.reset(options={"example_id": 3})
    assert agent.for_episode(env)(observation, info) == "three"
    observation, info = env.reset(options={"example_id": 5})
    with pytest.raises(ModelError, match="no answers to example 5; it has some to 2, 3"):
        agent.for_episode(env)(observation, info)


def test_scripted_agent_says_when_its_script_is_used_up() -> None:
    env = Echo()
    with pytest.raises(ModelError, match="the script has 1 answers, and the episode of example"):
        ask(ScriptedAgent(["only"]), env, seed=0, times=2)


# Human


def test_human_agent_shows_what_is_new_and_reads_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\nbye\n"))
    env = Legal()
    observation, info = env.reset(options={"example_id": 1})
    answer = HumanAgent().for_episode(env)
    first = answer(observation, info)
    assert first == "hello"
    shown = capsys.readouterr().out
    assert "question 1" in shown
    assert "rock, paper, scissors" in shown
    observation, _, _, _, info = env.step(first)
    assert answer(observation, info) == "bye"
    shown = capsys.readouterr().out
    assert "you said hello" in shown
    assert "question 1" not in shown


def test_human_agent_takes_no_empty_line_for_an_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n \nhello\n\n"))
    env = Echo()
    answer = HumanAgent().for_episode(env)
    assert answer(*env.reset(seed=0)) == "hello"
    assert capsys.readouterr().out.count("nothing was typed") == 2
    with pytest.raises(EOFError):
        answer(*env.reset(seed=0))


@pytest.mark.parametrize("answers", ["42", {0: ["42"], 1: "42"}])
def test_scripted_agent_refuses_a_text_for_its_answers(answers: Any) -> None:
    """Its letters would be answers."""
    with pytest.raises(ConfigurationError, match=r"must be a list, with one for each turn, got the text '42'"):
        ScriptedAgent(answers)
    with pytest.raises(ConfigurationError, match=r"must be a list, with one for each turn, got the text '42'"):
        ScriptedClient("42")


def test_human_agent_calls_tools(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    monkeypatch.setattr("sys.stdin", io.StringIO('/add {"a": 1, "b": 2}\n/unknown\n'))
    env = ToolEnv(tools=[add], dataset=[{"question": "1 + 2?"}])
    observation, info = env.reset(seed=0)
    answer = HumanAgent().for_episode(env)
    observation, _, _, _, info = env.step(answer(observation, info))
    assert observation[-1].content == "3"
    assert "tools: add" in capsys.readouterr().out
    assert answer(observation, info) == "/unknown"


def test_human_agent_is_asked_on_a_thread_where_input_is_not_the_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A notebook has an `input` of its own."""
    lines = iter(["one", "two"])

    def notebook_input(prompt: str) -> str:
        assert not in_event_loop()
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", notebook_input)
    done: list[Any] = []
    with pytest.raises(EndOfInput):
        evaluate(Echo(max_turns=1), HumanAgent(), on_progress=lambda row, progress: done.append(row["completion"][0]["content"]))
    assert done == ["one", "two"]
    shown = capsys.readouterr()
    assert shown.out.count("question") == 3, "episodes are shown one after the other"
    assert shown.err == "", "no progress is drawn over the conversation"


class WithoutInfo(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Passes no info on."""

    def step(self, action: Any) -> Any:
        return (*self.env.step(action)[:4], {})


def test_a_human_sees_the_end_behind_a_wrapper_that_passes_no_info_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    env = WithoutInfo(Echo(max_turns=2))
    (row,) = evaluate(env, HumanAgent(), num_examples=1)["outputs"]
    assert (row["error"], row["stop_condition"]) == (None, "max_turns_reached")
    assert row["human"] == {"hints": 0, "undone": 0, "refused": 0}
    assert "cut off (max_turns_reached): reward 0\n  num_turns: 2" in capsys.readouterr().out


# By name


@pytest.mark.parametrize(("name", "kind"), [("random", RandomAgent), ("oracle", OracleAgent), ("human", HumanAgent)])
def test_named_agents(name: str, kind: type) -> None:
    agent = load_agent(name)
    assert isinstance(agent, kind)
    assert agent_name(agent) == name


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    """Return a function that writes a module into the current directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [entry for entry in sys.path if entry])

    def write(name: str, code: str) -> str:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
        return name

    return write


def test_load_agent_imports_from_the_current_directory(module: Callable[[str, str], str]) -> None:
    name = module(
        "agents_of_mine",
        """
        def answer(observation, info): return "from a function"
        class Agent:
            def __call__(self, observation, info): return "from an object"
        """,
    )
    function: Any = load_agent(f"{name}:answer")
    instance: Any = load_agent(f"{name}:Agent")
    assert function([], {}) == "from a function"
    assert instance([], {}) == "from an object"


def test_a_class_that_does_not_tell_what_it_takes_is_tried(module: Callable[[str, str], str]) -> None:
    name = module(
        "silent_agents",
        """
        class Silent:
            __signature__ = "none"
            def __call__(self, observation, info): return "made"
        """,
    )
    agent: Any = load_agent(f"{name}:Silent")
    assert agent([], {}) == "made"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("randm", "no agent 'randm': give one of random, oracle, human, or module:callable. Did you mean `random`?"),
        ("nowhere_at_all:agent", "there is no module 'nowhere_at_all'"),
        ("string:capwordz", "string has no 'capwordz'. Did you mean `capwords`?"),
        ("string:digits", "it is text: '0123456789'"),
        ("math:pi", "got float"),
        ("vfgym.agents:ScriptedAgent", "cannot be made without arguments (missing a required argument: 'answers')"),
        (":agent", "'' is not a name of a module"),
        ("a b:agent", "'a b' is not a name of a module"),
    ],
)
def test_load_agent_says_what_is_wrong(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        load_agent(name)


def test_load_agent_lets_a_module_fail_with_its_own_error(module: Callable[[str, str], str]) -> None:
    name = module("agents_that_miss_something", "import a_package_that_is_not_there")
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        load_agent(f"{name}:agent")


def test_as_agent_takes_functions_and_agents_and_refuses_others() -> None:
    def answer(observation: list[Message], info: dict[str, Any]) -> str:
        return "x"

    agent = RandomAgent()
    assert as_agent(answer) is answer
    assert as_agent(agent) is agent
    assert isinstance(as_agent("random"), RandomAgent)
    with pytest.raises(ConfigurationError, match="got int"):
        as_agent(7)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"make one, RandomAgent\(\)"):
        as_agent(RandomAgent)  # type: ignore[arg-type]


class Greeter:
    """An agent that is an object."""

    def __call__(self, observation: list[Message]) -> str:
        return "hello"


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (lambda observation: "x", "<lambda> takes (observation)"),
        (lambda observation, info, more: "x", "missing a required argument: 'more'"),
        (math.sqrt, "sqrt takes (x, /)"),
        (Greeter(), "Greeter takes (observation: 'list[Message]')"),
    ],
)
def test_as_agent_refuses_what_cannot_be_called_with_observation_and_info(agent: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        as_agent(agent)


def test_as_agent_takes_what_can_be_called_with_observation_and_info() -> None:
    def remembers(memory: list[Any], observation: list[Message], info: dict[str, Any], more: int = 0) -> str:
        return "x"

    for agent in (functools.partial(remembers, []), lambda *args: "x", max):  # max tells nothing of what it takes
        assert as_agent(agent) is agent


def test_agents_are_called_by_their_names() -> None:
    def my_agent(observation: list[Message], info: dict[str, Any]) -> str:
        return "x"

    assert [agent_name(agent) for agent in (my_agent, RandomAgent(), "module:agent")] == ["my_agent", "random", "module:agent"]
