"""`ChatVectorEnv` gives what Gymnasium's `SyncVectorEnv` gives, for registered ids and for stock wrappers around it.

Each run takes a few ids; ``pytest -m exhaustive`` takes 40 at random.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import vfgym
from tests.environments import AsyncRandomTalk, Brightening, Echo, RandomTalk
from tests.sampling import SEED
from vfgym.data import textarena_environments
from vfgym.errors import ConfigurationError
from vfgym.registration import list_registered_ids
from vfgym.vector import ChatVectorEnv
from vfgym.wrappers.textarena.catalogue import why_not

SOME = ["gymnasium/FrozenLake-v1", "reasoning-gym/leg_counting-v0", "textarena/TicTacToe-v0", "pettingzoo/tictactoe-v3"]


def random_ids() -> list[str]:
    """Return 40 ids that can be made here, of all libraries."""
    missing = {f"textarena/{game.replace('/', '-')}" for game in textarena_environments() if why_not(game) is not None}
    ids = [env_id for env_id in list_registered_ids() if env_id not in missing]
    return random.Random(SEED).sample(ids, 40)


def assert_alike(ours: VectorEnv[Any, Any], sync: VectorEnv[Any, Any], steps: int = 10) -> None:
    """Play both with the same random actions."""
    try:
        for envs in (ours, sync):
            envs.action_space.seed(5)
        assert data_equivalence(ours.reset(seed=3), sync.reset(seed=3))
        for _ in range(steps):
            actions = sync.action_space.sample()
            stepped, expected = ours.step(actions), sync.step(actions)
            for part, expected_part in zip(stepped, expected, strict=True):
                assert data_equivalence(part, expected_part)
            assert stepped[0] in ours.observation_space
            over = expected[2] | expected[3]
            if sync.metadata["autoreset_mode"] is AutoresetMode.DISABLED and over.any():
                masked = [envs.reset(seed=[1, None, 2], options={"reset_mask": over}) for envs in (ours, sync)]
                assert data_equivalence(*masked)
        assert ours.np_random_seed == sync.np_random_seed
    finally:
        ours.close()
        sync.close()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("env_id", [*SOME, *(pytest.param(env_id, marks=pytest.mark.exhaustive) for env_id in random_ids())])
def test_every_id_plays_as_in_gymnasiums_own_vector(env_id: str, mode: AutoresetMode) -> None:
    """Observations, rewards, flags and infos are the same, with their types, and so are the samples of the action space."""
    ours = gym.make_vec(env_id, num_envs=3, autoreset_mode=mode)
    assert isinstance(ours, ChatVectorEnv)
    sync = SyncVectorEnv([lambda: gym.make(env_id)] * 3, autoreset_mode=mode)
    ours.action_space.seed(1)
    sync.action_space.seed(1)
    assert ours.action_space.sample() == sync.action_space.sample()
    assert_alike(ours, sync)


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("kind", [RandomTalk, AsyncRandomTalk])
def test_forks_factories_and_wrapped_environments_play_so_too(kind: type[RandomTalk], mode: AutoresetMode) -> None:
    """A limit as a wrapper, plain hooks and hooks that wait."""

    def limited() -> gym.Env[Any, Any]:
        return gym.wrappers.TimeLimit(kind(max_turns=5), 3)

    for env in (limited(), limited, [limited] * 3):
        assert_alike(ChatVectorEnv(env, 3, autoreset_mode=mode), SyncVectorEnv([limited] * 3, autoreset_mode=mode))
    assert_alike(
        ChatVectorEnv(kind(max_turns=2), 3, autoreset_mode=mode), SyncVectorEnv([lambda: kind(max_turns=2)] * 3, autoreset_mode=mode)
    )


def test_observations_that_are_arrays_are_batched_as_arrays() -> None:
    """A wrapper makes numbers of the conversations."""

    def counted() -> gym.Env[Any, Any]:
        space = gym.spaces.Box(0, 100, (1,), np.float32)
        return gym.wrappers.TransformObservation(RandomTalk(), lambda messages: np.array([len(messages)], np.float32), space)

    assert_alike(ChatVectorEnv(counted, 3), SyncVectorEnv([counted] * 3, autoreset_mode="SameStep"))


def test_a_blocking_game_plays_so_on_its_thread() -> None:
    """The library does not know this game, so it has a thread of its own in a run; its observations are images."""
    env = vfgym.to_chat(Brightening)
    assert env.blocking
    assert_alike(ChatVectorEnv(env, 3), SyncVectorEnv([env.fork] * 3, autoreset_mode="SameStep"), steps=4)


def test_make_vec_passes_arguments_on_and_its_spec_survives_json() -> None:
    """Those of the environment and those of the vector."""
    envs = gym.make_vec("gymnasium/FrozenLake-v1", num_envs=4, is_slippery=False, autoreset_mode="Disabled", max_episode_steps=2)
    observations, _ = envs.reset(seed=0)
    envs.step(["down"] * 4)
    *_, truncations, _ = envs.step(["down"] * 4)
    assert truncations.all()
    spec = envs.spec
    envs.close()
    assert spec is not None
    again = gym.make_vec(EnvSpec.from_json(spec.to_json()))
    assert (again.num_envs, again.metadata["autoreset_mode"]) == (4, AutoresetMode.DISABLED)
    assert again.reset(seed=0)[0] == observations
    again.close()
    sync = gym.make_vec("gymnasium/FrozenLake-v1", num_envs=2, vectorization_mode="sync")
    assert isinstance(sync, SyncVectorEnv)
    sync.close()


class Unrecorded(gym.Wrapper[Any, Any, Any, Any]):
    """Does not record its arguments, so nobody can make it again."""

    def __init__(self, env: gym.Env[Any, Any], other: int) -> None:
        super().__init__(env)


THE_SAME = Echo()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ChatVectorEnv(Echo(), 0), "num_envs must be a positive integer"),
        (lambda: ChatVectorEnv(Echo(), 2.0), "num_envs must be a positive integer"),
        (lambda: ChatVectorEnv(Echo(), 4, group_size=0), "group_size must be a positive integer"),
        (lambda: ChatVectorEnv(Echo(), 4, group_size=2, autoreset_mode="NextStep"), "needs autoreset_mode=AutoresetMode.SAME_STEP"),
        (lambda: ChatVectorEnv([Echo, Echo], 3), "num_envs=3, and there are 2 functions"),
        (lambda: ChatVectorEnv([lambda: THE_SAME] * 2), "returned the same one twice"),
        (lambda: ChatVectorEnv([lambda: 3]), "returned int, no gymnasium.Env"),  # type: ignore[list-item, return-value]
        (lambda: ChatVectorEnv("gymnasium/CartPol-v1", 2), "CartPole"),
        (lambda: ChatVectorEnv(gym.make("CartPole-v1"), 2), "not a chat environment"),
        (lambda: ChatVectorEnv(Unrecorded(Echo(), 1), 2), "Unrecorded does not record its arguments"),
        (lambda: ChatVectorEnv(7, 2), "an id, a spec, an environment, or a function"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_of_the_constructor(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        make()


class Closed(gym.Wrapper[Any, Any, Any, Any]):
    """Notes that it was closed."""

    def __init__(self, env: gym.Env[Any, Any], closed: list[int], number: int) -> None:
        super().__init__(env)
        self.closed, self.number = closed, number

    def close(self) -> None:
        self.closed.append(self.number)
        super().close()


@pytest.mark.parametrize("differs", ["observation_space", "action_space"])
def test_environments_of_two_kinds_are_refused_and_those_that_were_made_are_closed(differs: str) -> None:
    closed: list[int] = []

    def make(number: int) -> gym.Env[Any, Any]:
        env = Closed(Echo(), closed, number)
        setattr(env, differs, gym.spaces.MultiBinary(2 + (number == 2)))
        return env

    says = rf"must be of one kind: {differs} 2 is MultiBinary\(3\), the first MultiBinary\(2\)"
    with pytest.raises(ConfigurationError, match=says):
        ChatVectorEnv([lambda number=number: make(number) for number in range(3)])  # type: ignore[misc]
    assert sorted(closed) == [0, 1, 2]


def test_a_rubric_with_advantages_of_its_own_scores_environments_that_play_alone() -> None:
    class Prefers(vfgym.Rubric):
        provides_advantages = True

    envs = ChatVectorEnv(Echo(rubric=Prefers(lambda completion: 2.0), max_turns=1), 2)
    envs.reset(seed=0)
    assert envs.step(["a", "b"])[1].tolist() == [2.0, 2.0]
    envs.close()


class Learned(Echo):
    """Has learned a number."""

    learned = 0

    def state_dict(self) -> dict[str, Any]:
        return {"learned": self.learned}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learned = state["learned"]


def test_what_each_environment_has_learned_goes_on() -> None:
    """Functions make one definition for each environment."""
    first, second = (ChatVectorEnv([Learned] * 3) for _ in range(2))
    first.reset(seed=0)
    first.set_attr("learned", [1, 0, 3])
    second.load_state_dict(first.state_dict())
    assert second.get_attr("learned") == (1, 0, 3)
    for envs in (first, second):
        envs.close()


def test_nothing_but_closing_can_be_done_once_it_is_closed() -> None:
    envs = ChatVectorEnv(Echo(), 2)
    envs.reset(seed=0)
    state = envs.state_dict()
    envs.close()
    calls: list[Callable[[], Any]] = [
        *[envs.reset, lambda: envs.step(["a", "b"]), lambda: envs.send(["a"], [0]), envs.recv],
        *[envs.state_dict, lambda: envs.load_state_dict(state)],
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="the vector environment is closed: make another one"):
            call()
    envs.close()


def test_one_environment_of_a_kind_that_cannot_be_made_again_can_be_played() -> None:
    envs = ChatVectorEnv(Unrecorded(Echo(), 1))
    envs.reset(seed=0)
    assert envs.step(["a"])[0][0][-1].content == "you said a"
    envs.close()
