"""`OracleAgent`: the right answers, where the environment knows them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.environments import Quiz
from vfgym import SingleTurnEnv
from vfgym.agents.oracle import OracleAgent
from vfgym.aio.background import wait
from vfgym.aio.bridge import bridge
from vfgym.calls import is_awaitable
from vfgym.errors import ConfigurationError, ModelError
from vfgym.state import State


async def test_oracle_agent_is_awaited_by_an_evaluation_and_holds_nobody_up() -> None:
    class Slow(Quiz):
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
    class Forgetful(Quiz):
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
