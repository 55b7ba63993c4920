"""`ScriptedAgent`: answers that were written down before."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from tests import environments
from vfgym.agents.base import per_episode
from vfgym.agents.scripted import ScriptedAgent
from vfgym.errors import ConfigurationError, ModelError
from vfgym.testing import ScriptedClient


class Echo(environments.Echo):
    """Ten tasks with an answer each."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": [{"question": f"question {i}", "answer": f"answer {i}"} for i in range(10)], **kwargs})


def ask(agent: Any, env: gymnasium.Env[Any, Any], seed: int, times: int = 5) -> list[Any]:
    observation, info = env.reset(seed=seed)
    answer = per_episode(agent)(env)
    return [answer(observation, info) for _ in range(times)]


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


@pytest.mark.parametrize("answers", ["42", {0: ["42"], 1: "42"}])
def test_scripted_agent_refuses_a_text_for_its_answers(answers: Any) -> None:
    """Its letters would be answers."""
    with pytest.raises(ConfigurationError, match=r"must be a list, with one for each turn, got the text '42'"):
        ScriptedAgent(answers)
    with pytest.raises(ConfigurationError, match=r"must be a list, with one for each turn, got the text '42'"):
        ScriptedClient("42")
