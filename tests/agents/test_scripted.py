"""`ScriptedAgent`: answers that were written down before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.agents.test_random import ask
from tests.environments import Quiz
from vfgym.agents.scripted import ScriptedAgent
from vfgym.errors import ConfigurationError, ModelError
from vfgym.testing import ScriptedClient


def test_scripted_agent_begins_its_script_anew_in_each_episode() -> None:
    agent, env = ScriptedAgent(["a", "b"]), Quiz()
    assert ask(agent, env, seed=0, times=2) == ask(agent, env, seed=1, times=2) == ["a", "b"]


def test_scripted_agent_answers_by_example() -> None:
    env = Quiz()
    agent = ScriptedAgent({2: ["two"], 3: ["three"]})
    observation, info = env.reset(options={"example_id": 3})
    assert agent.for_episode(env)(observation, info) == "three"
    observation, info = env.reset(options={"example_id": 5})
    with pytest.raises(ModelError, match="no answers to example 5; it has some to 2, 3"):
        agent.for_episode(env)(observation, info)


def test_scripted_agent_says_when_its_script_is_used_up() -> None:
    env = Quiz()
    with pytest.raises(ModelError, match="the script has 1 answers, and the episode of example"):
        ask(ScriptedAgent(["only"]), env, seed=0, times=2)


@pytest.mark.parametrize("answers", ["42", {0: ["42"], 1: "42"}])
def test_scripted_agent_refuses_a_text_for_its_answers(answers: Any) -> None:
    """Its letters would be answers."""
    with pytest.raises(ConfigurationError, match=r"must be a list, with one for each turn, got the text '42'"):
        ScriptedAgent(answers)
    with pytest.raises(ConfigurationError, match=r"must be a list, with one for each turn, got the text '42'"):
        ScriptedClient("42")
