"""Going back in games: of every library, with every generator that there is."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import vfgym
from tests.registered import playable_ids
from vfgym import Message
from vfgym.agents.base import seat_of
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import EpisodeNotPicklable
from vfgym.runs.replicas import make_env

FAMILIES = ("gymnasium/FrozenLake-v1", "textarena/LiarsDice-v0", "textarena/TicTacToe-v0-train", "pettingzoo/hanabi-v5")
MOST_TURNS = 8


def answer(seat: EpisodeSeat) -> Any:
    """Return an answer that follows from the turn alone: a random move, or text."""
    rng = np.random.default_rng(len(seat.state["trajectory"]))
    definition: Any = seat.episode.definition
    return definition.random_action(seat.state, rng) or definition.action_sampler().sample(rng)


def play(seat: EpisodeSeat) -> list[Any]:
    outcomes = []
    while not seat.episode.is_over and len(outcomes) < MOST_TURNS:
        outcomes.append(seat.step(answer(seat)))
    return outcomes


def begun(env_id: str) -> EpisodeSeat:
    seat = seat_of(make_env(env_id, {}))
    seat.reset(seed=1)
    return seat


def check_going_back(env_id: str) -> None:
    """Branches without a seed, snapshots and pickles of them go on alike, also at another environment of the id."""
    env = begun(env_id)
    other = make_env(env_id, {}).unwrapped
    snapshot, branch, seeded = env.snapshot(), env.branch(), env.branch(seed=5)
    forked, unpickled = seeded.branch(), env.fork()
    unpickled.restore(pickle.loads(pickle.dumps(seeded.snapshot())))
    observation, info = env.episode.outcome()[0], env.episode.info()
    if not env.episode.is_over:
        expected, again = play(env), play(forked)
        assert data_equivalence(play(branch), expected)
        for restored, kept in ((env, snapshot), (other, snapshot), (other, pickle.loads(pickle.dumps(snapshot)))):
            assert data_equivalence(restored.restore(kept), (observation, info))
            assert data_equivalence(play(restored), expected)
        env.restore(snapshot)
        for other_way in (env.branch(seed=5), seeded, unpickled):
            assert data_equivalence(play(other_way), again)
    for each in (env, other, unpickled):
        each.close()


@pytest.mark.parametrize("env_id", [*FAMILIES, *(pytest.param(env_id, marks=pytest.mark.exhaustive) for env_id in playable_ids())])
def test_every_id_goes_back_or_says_that_it_cannot(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = begun(env_id)
        if env.definition.can_go_back:
            check_going_back(env_id)
            return
        with pytest.raises(EpisodeNotPicklable, match="copied"):
            env.snapshot()


@pytest.mark.parametrize(
    ("env_id", "moves"),
    [
        ("gymnasium/FrozenLake-v1", ["down"] * 4),
        ("textarena/PigDice-v0", ["[roll]"] * 4),
        ("pettingzoo/hanabi-v5", None),
        ("textarena/2048-v0", ["[up]", "[left]", "[right]"]),
        ("textarena/TicTacToe-v0", None),  # random opponents
        ("pettingzoo/tictactoe-v3", None),
    ],
)
def test_the_dice_of_a_table_fall_otherwise_in_seeded_branches(env_id: str, moves: list[str] | None) -> None:
    env = begun(env_id)

    def future(seed: int | None) -> str:
        branch = env.branch(seed)
        outcomes = play(branch) if moves is None else [branch.step(move) for move in moves if not branch.episode.is_over]
        return str([outcome.observation for outcome in outcomes])

    futures = [future(seed) for seed in (None, None, 1, 1, 3)]
    assert futures[0] == futures[1]
    assert futures[2] == futures[3]
    assert len(set(futures)) == 3


class Moody:
    """Remembers, in a closure, how often it was asked, and draws numbers of its own."""

    def for_episode(self, env: gym.Env[Any, Any]) -> Any:
        rng, asked = env.unwrapped.np_random.spawn(1)[0], 0

        def move(observation: list[Message], info: dict[str, Any]) -> str:
            nonlocal asked
            asked += 1
            legal: list[str] = info["legal_actions"]
            return legal[(int(rng.integers(100)) + asked) % len(legal)]

        return move


@pytest.mark.parametrize("opponents", [Moody(), {"player_2": Moody()}, "self"])
def test_an_opponent_goes_on_with_what_it_remembers(opponents: Any) -> None:
    env = vfgym.PettingZooEnv("classic/tictactoe_v3", opponents=opponents)
    env.reset(seed=1)
    env.step(answer(env))
    branches, snapshot = [env.branch(), env.branch().branch()], env.snapshot()
    expected = play(env)
    assert all(data_equivalence(play(branch), expected) for branch in branches)
    other = env.fork()
    other.restore(snapshot)
    assert data_equivalence(play(other), expected)
    if opponents == "self":
        return
    assert branches[0].state.game_state.opponents["player_2"]._agent is env.state.game_state.opponents["player_2"]._agent
