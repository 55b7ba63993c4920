"""`to_gym`: Gym → chat → Gym is the game itself, by text and by tool call, bit for bit.

Each run takes 40 steps of each environment; ``pytest -m exhaustive`` takes 200, with other seeds too.
"""

from __future__ import annotations

import copy
import importlib.util
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st

import vfgym
from tests.codecs.spaces import spaces
from tests.wrappers.gymnasium.toys import Toy
from vfgym.errors import ConfigurationError, InvalidAction
from vfgym.wrappers.to_gym import NativeGame

GROUPS = {"toy_text": None, "classic_control": None, "box2d": "Box2D", "mujoco": "mujoco"}
"""Groups of Gymnasium's environments, and the module that each needs."""


def environments() -> list[str]:
    """Return the newest version of every environment of Gymnasium whose requirements are installed."""
    found = {}
    for spec in gym.registry.values():
        entry_point = spec.entry_point if isinstance(spec.entry_point, str) else ""
        group = next((name for name in GROUPS if entry_point.startswith(f"gymnasium.envs.{name}.")), None)
        if group is None or spec.namespace is not None:
            continue
        if spec.name not in found or (found[spec.name][0].version or 0) < (spec.version or 0):
            found[spec.name] = (spec, group)
    return [spec.id for spec, group in found.values() if GROUPS[group] is None or importlib.util.find_spec(GROUPS[group])]


def ways() -> list[Any]:
    """Return each environment with seeds and ways to play it. The quick run takes one seed, and text and calls in turn."""
    cases = [(env_id, by, seed) for by in ("text", "tool") for env_id in environments() for seed in (11, 0, 1, 2)]
    quick = {(env_id, ("text", "tool")[number % 2], 11) for number, env_id in enumerate(environments())}
    return [pytest.param(*case, marks=() if case in quick else pytest.mark.exhaustive) for case in cases]


def same(one: Any, other: Any) -> bool:
    """Say whether two values are the same bits of the same types; unlike ``==``, NaN is NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return type(one) is type(other) and one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and (one == other or (one != one and other != other))


def play_both(native: gym.Env[Any, Any], back: gym.Env[Any, Any], *, seed: int, steps: int) -> None:
    assert back.action_space == native.action_space
    assert back.observation_space == native.observation_space
    native.action_space.seed(seed)
    # Both games run side by side, so observations are compared as they come: some games hand out an array that they go on changing.
    assert same(back.reset(seed=seed), native.reset(seed=seed))
    for _ in range(steps):
        action = native.action_space.sample()
        mine, expected = back.step(action), native.step(copy.deepcopy(action))
        assert same(mine[0], expected[0])
        assert same(mine[1], float(expected[1]))
        assert mine[2:4] == (bool(expected[2]), bool(expected[3]))
        assert same(mine[4], expected[4])
        if mine[2] or mine[3]:
            assert same(back.reset(), native.reset())


@pytest.mark.parametrize(("env_id", "by", "seed"), ways())
def test_every_environment_of_gymnasium_comes_back(env_id: str, by: Any, seed: int) -> None:
    options: dict[str, Any] = {"obs_to_text": lambda observation: ""} if env_id.startswith("CarRacing") else {}  # images take long
    back = vfgym.to_gym(vfgym.to_chat(env_id, as_tool=by == "tool", **options), by=by)
    native = gym.make(env_id, disable_env_checker=True)
    play_both(native, back, seed=seed, steps=200 if seed != 11 else 5 if options else 40)
    back.close()
    native.close()


class Generated(gym.Env[Any, Any]):
    """An environment with given spaces, which answers every action with samples that follow from the actions."""

    def __init__(self, action_space: gym.Space[Any], observation_space: gym.Space[Any]) -> None:
        self.action_space = copy.deepcopy(action_space)
        self.observation_space = copy.deepcopy(observation_space)
        self.actions: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        return self.observation_space.sample(), {"seed": seed}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert action in self.action_space
        self.actions.append(action)
        return self.observation_space.sample(), float(self.np_random.random()), False, len(self.actions) % 7 == 0, {"given": action}


@given(spaces(depth=3), spaces(depth=2), st.integers(0, 2**31 - 1), st.booleans())
@settings(max_examples=30)
def test_generated_spaces_of_every_kind_come_back(
    action_space: gym.Space[Any], observation_space: gym.Space[Any], seed: int, by_tool: bool
) -> None:
    chat = vfgym.to_chat(
        lambda: Generated(action_space, observation_space), as_tool=by_tool, obs_to_text=repr, rules="Do it.", blocking=False
    )
    back = vfgym.to_gym(chat, by="tool" if by_tool else "text")
    native = Generated(action_space, observation_space)
    native.action_space.seed(seed)
    assert data_equivalence(back.reset(seed=seed), native.reset(seed=seed))
    for _ in range(8):
        action = native.action_space.sample()
        mine, expected = back.step(action), native.step(action)
        assert data_equivalence(mine[0], expected[0])
        assert data_equivalence(mine[4], expected[4])
        assert mine[1:4] == expected[1:4]
        if mine[3]:
            back.reset()
            native.reset()


def test_it_is_an_environment_of_its_own() -> None:
    check_env(vfgym.to_gym(vfgym.to_chat("Blackjack-v1")), skip_render_check=True)
    check_env(vfgym.to_gym("gymnasium/FrozenLake-v1"), skip_render_check=True)


def test_wrappers_limits_and_options_of_the_chat_environment_have_their_effect() -> None:
    chat = gym.wrappers.TransformReward(gym.wrappers.TimeLimit(vfgym.to_chat("CartPole-v1"), 3), lambda reward: 10 * reward)
    for env, flags, reward in ((chat, [False, False, True], 10.0), (vfgym.to_chat("CartPole-v1", max_turns=2), [False, True], 1.0)):
        back = vfgym.to_gym(env)
        back.reset(seed=0)
        assert [back.step(0)[1:4] for _ in flags] == [(reward, False, truncated) for truncated in flags]
    options = {"low": 0.1, "high": 0.1}
    assert same(back.reset(seed=1, options=options), gym.make("CartPole-v1").reset(seed=1, options=options))


def test_a_copy_goes_on_alone() -> None:
    env = vfgym.to_gym(vfgym.to_chat("CartPole-v1"))
    env.reset(seed=0)
    env.step(1)
    for other in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        assert same(copy.deepcopy(env).step(0), other.step(0))


def test_it_draws_what_the_game_draws() -> None:
    env, native = vfgym.to_gym(vfgym.to_chat("FrozenLake-v1")), gym.make("FrozenLake-v1", render_mode="ansi")
    env.reset(seed=0)
    native.reset(seed=0)
    assert env.render() == native.render()


def test_an_error_of_the_game_is_raised() -> None:
    class Broken(Toy):
        def step(self, action: Any) -> Any:
            raise vfgym.errors.ToolError("broken")

    env = vfgym.to_gym(vfgym.to_chat(Broken, blocking=False))
    env.reset(seed=0)
    with pytest.raises(vfgym.errors.ToolError, match="broken"):
        env.step(0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: vfgym.to_gym(vfgym.SingleTurnEnv([{"question": "?"}])), "another chat environment"),
        (lambda: vfgym.to_gym(gym.make("CartPole-v1")), "not a chat environment"),
        (lambda: vfgym.to_gym(vfgym.to_chat("CartPole-v1"), by="tool"), "as_tool=True"),
        (lambda: NativeGame(vfgym.to_chat("CartPole-v1"), by="telepathy"), "'text' or 'tool'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_turned_back_is_said(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_each_call_of_a_conversation_has_an_id_of_its_own() -> None:
    env = vfgym.to_gym(vfgym.to_chat("FrozenLake-v1", as_tool=True), by="tool")
    for _ in range(2):
        env.reset(seed=0)
        for action in (2, 0, 3):
            env.step(action)
        messages = env.chat.unwrapped.state["completion"] or env.chat.unwrapped.episode.conversation()
        assert [call.id for message in messages for call in message.get("tool_calls") or ()] == ["call_1", "call_2", "call_3"]


class Keeping(Toy):
    """Keeps the seeds and options of its resets, and whether it was closed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        vars(self).setdefault("resets", []).append((seed, options))
        return super().reset(seed=seed)

    def close(self) -> None:
        self.is_closed = True


def test_seeds_and_options_reach_the_game_as_they_are_and_closing_too() -> None:
    chat = vfgym.to_chat(Keeping)
    env = vfgym.to_gym(chat)
    given = [(0, None), (None, {}), (3, {"level": 0})]
    for seed, options in given:
        env.reset(seed=seed, options=options)
        assert env._seat is chat
        game = chat.state.session.game
        assert game.resets[-1] == (seed, options)
    assert env.np_random.random() == gym.utils.seeding.np_random(3)[0].random()
    env.close()
    assert game.is_closed


def test_spaces_are_its_own_and_the_rest_is_the_games() -> None:
    chat = vfgym.to_chat("FrozenLake-v1")
    one, other = vfgym.to_gym(chat), vfgym.to_gym(chat)
    for env, seed in ((one, 1), (other, 2)):
        env.action_space.seed(seed)
        env.observation_space.seed(seed)
    native = gym.make("FrozenLake-v1")
    for name in ("action_space", "observation_space"):
        for env, seed in ((one, 1), (other, 2)):
            getattr(native, name).seed(seed)
            assert [getattr(env, name).sample() for _ in range(9)] == [getattr(native, name).sample() for _ in range(9)]
    assert (one.metadata, one.render_mode) == (native.metadata, "ansi")
    assert (vfgym.to_gym(vfgym.to_chat(Toy)).metadata, vfgym.to_gym(vfgym.to_chat(Toy)).render_mode) == (Toy.metadata, None)


def test_ids_and_specs_are_made_and_nothing_is_played_before_a_reset() -> None:
    for source in ("gymnasium/FrozenLake-v1", gym.spec("gymnasium/FrozenLake-v1")):
        env = vfgym.to_gym(source)
        assert (env.by, env.action_space) == ("text", gym.spaces.Discrete(4))
        assert "PassiveEnvChecker" not in str(env.chat)
        with pytest.raises(gym.error.ResetNeeded):
            env.step(0)
        with pytest.raises(vfgym.errors.Error, match="the chat environment has begun no episode"):
            env.render()
    assert vfgym.to_gym(vfgym.to_chat("FrozenLake-v1", as_tool=True), "tool").by == "tool"


@pytest.mark.parametrize("by", ["text", "tool"])
def test_an_action_outside_the_space_leaves_the_game_as_it_was(by: Any) -> None:
    chat = vfgym.to_chat("Pendulum-v1", as_tool=True)
    env = vfgym.to_gym(chat, by=by)
    observation, _ = env.reset(seed=0)
    for action in ([5.0], [np.nan], [0.0, 0.0], "left", None):
        with pytest.raises(InvalidAction):
            env.step(action)
    assert chat.state["trajectory"] == []
    assert same(chat.state["observation"], observation)
