"""`RandomAgent`: legal where the environment lists moves, and the same under the same seed."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.wrappers import TransformAction

from tests.environments import LegalQuiz, Quiz
from vfgym.agents.base import per_episode
from vfgym.agents.random import RandomAgent

LEGAL = ["rock", "paper", "scissors"]


def ask(agent: Any, env: gymnasium.Env[Any, Any], seed: int, times: int = 5) -> list[Any]:
    observation, info = env.reset(seed=seed)
    answer = per_episode(agent)(env)
    return [answer(observation, info) for _ in range(times)]


def test_random_agent_replays_under_the_seed_of_the_episode_and_differs_between_seeds() -> None:
    env = Quiz()
    assert ask(RandomAgent(), env, seed=1) == ask(RandomAgent(), env, seed=1)
    assert ask(RandomAgent(), env, seed=1) != ask(RandomAgent(), env, seed=2)
    assert ask(RandomAgent(), env, seed=1) != ask(RandomAgent(seed=1), env, seed=1)
    assert ask(RandomAgent(seed=1), env, seed=1) == ask(RandomAgent(seed=1), env, seed=1)
    assert ask(RandomAgent(), env, seed=1) != ask(RandomAgent(seed=0), env, seed=1) != ask(RandomAgent(seed=1), env, seed=1)


def test_random_agent_leaves_the_random_numbers_of_the_environment_alone() -> None:
    env = Quiz()
    env.reset(seed=1)
    untouched = env.np_random.random()
    ask(RandomAgent(), env, seed=1)
    assert env.np_random.random() == untouched


def test_random_agent_prefers_legal_actions() -> None:
    answers = ask(RandomAgent(), LegalQuiz(), seed=0, times=50)
    assert set(answers) == set(LEGAL)


def test_random_agent_plays_the_moves_that_the_environment_draws_first() -> None:
    """Where that is silent, legal ones; and a sample where there are none."""

    class Draws(LegalQuiz):
        move: Any = ""

        def random_action(self, state: Any, rng: Any) -> Any:
            return self.move

        def step_info(self, state: Any) -> dict[str, Any]:
            return super().step_info(state) if self.move is None else {"legal_actions": []}

    env = Draws()
    assert ask(RandomAgent(), env, seed=0, times=2) == ["", ""]
    env.move = None
    assert set(ask(RandomAgent(), env, seed=0)) <= set(LEGAL)
    observation, info = env.reset(seed=0)
    assert env.action_space.contains(RandomAgent().for_episode(env)(observation, {**info, "legal_actions": []}))


def test_random_agent_samples_the_action_space_of_a_wrapper() -> None:
    shared = gymnasium.spaces.Discrete(3)
    env = TransformAction(LegalQuiz(), lambda number: LEGAL[number], shared)
    shared.seed(5)
    untouched = [shared.sample() for _ in range(9)]
    shared.seed(5)
    answers = ask(RandomAgent(), env, seed=0, times=50)
    assert [shared.sample() for _ in range(9)] == untouched
    assert (set(answers), answers) == ({0, 1, 2}, ask(RandomAgent(), env, seed=0, times=50))


def test_episodes_of_one_random_agent_do_not_share_numbers() -> None:
    agent, first, second = RandomAgent(), Quiz(), Quiz()
    alone = ask(agent, first, seed=3, times=4)
    (observation, info), _ = first.reset(seed=3), second.reset(seed=4)
    answer, other = agent.for_episode(first), agent.for_episode(second)
    taken = []
    for _ in range(4):
        taken.append(answer(observation, info))
        other(observation, info)
    assert taken == alone
