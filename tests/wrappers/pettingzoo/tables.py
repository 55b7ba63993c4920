"""Tables at which PettingZoo's games are played, and environments of other kinds, for tests of all that plays them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import vfgym
from vfgym.messages import AssistantMessage
from vfgym.wrappers.games.turn_based import Played, TurnBasedGame
from vfgym.wrappers.pettingzoo import PettingZooEnv, PettingZooGame

pettingzoo = pytest.importorskip("pettingzoo")
from pettingzoo import AECEnv, ParallelEnv  # noqa: E402
from pettingzoo.env_registry.exceptions import FailedToImport  # noqa: E402
from pettingzoo.utils import AgentSelector  # noqa: E402

CLASSIC = [
    *("chess_v6", "connect_four_v3", "go_v5", "hanabi_v5", "leduc_holdem_v4", "rps_v2", "texas_holdem_no_limit_v6", "texas_holdem_v4"),
    "tictactoe_v3",
]
SMALLER: dict[str, dict[str, Any]] = {"go_v5": {"board_size": 5}}
"""Arguments that keep a random game short."""


def factory(name: str, **arguments: Any) -> Callable[[], Any]:
    family = "" if "/" in name else "classic/"
    make_env = functools.partial(pettingzoo.make, "aec", f"{family}{name}", **{**SMALLER.get(name, {}), **arguments})
    try:
        make_env()
    except FailedToImport as missing:
        pytest.skip(str(missing))
    return make_env


def natively(make_env: Callable[[], Any], seed: int, most: int = 100) -> Iterator[tuple[Any, Any]]:
    """Play random legal moves in the environment itself. Yields it before each step, with what comes next: a move, or None."""
    env = make_env()
    env.reset(seed=seed)
    for agent in env.possible_agents:
        env.action_space(agent).seed(seed)
    for _, agent in zip(range(most), env.agent_iter(), strict=False):
        observation, _, terminated, truncated, info = env.last()
        action = None
        if not (terminated or truncated):
            mask = observation["action_mask"] if isinstance(observation, dict) else info.get("action_mask")
            action = env.action_space(agent).sample(mask)
        yield env, action
        env.step(action)


def said(table: PettingZooGame, action: Any) -> AssistantMessage:
    assert table.turn is not None
    return AssistantMessage(f"I have thought about it.\n<action>{table.codecs[table.turn].encode(action)}</action>")


def same(one: Any, other: Any) -> bool:
    return bool(data_equivalence(one, other, exact=True))


def check_same_game(make_env: Callable[[], Any], seed: int, most: int = 100) -> None:
    table = PettingZooGame(make_env)
    table.reset(seed, None)
    played: Played | None = None
    for env, action in natively(make_env, seed, most):
        agent = env.agent_selection
        if played is not None:
            assert played == Played(env.rewards, is_valid=True)
            played = None
        if action is None:  # who has left was let go already at the table
            assert (table.terminations[agent], table.truncations[agent]) == (env.terminations[agent], env.truncations[agent])
            continue
        assert table.turn == agent
        assert same(table.env.observe(agent), env.observe(agent))
        assert table.observe(agent)
        played = table.move(said(table, action))
        assert played.is_valid
    assert (table.turn is None) == (not env.agents)
    table.close()


def play(table: TurnBasedGame, *moves: str) -> Played:
    played = Played({})
    for move in moves:
        played = table.move(AssistantMessage(move))
    return played


def opened(name: str, seed: int | None = 0, /, **options: Any) -> PettingZooGame:
    table = PettingZooGame(factory(name), **options)
    table.reset(seed, None)
    return table


class Elimination(AECEnv):
    """Three agents name numbers in turn. Whoever names the highest number of its vector leaves; the last one wins. No masks."""

    metadata = {"name": "elimination_v0", "render_modes": []}

    def __init__(self, size: int = 2, longest: int = 12) -> None:
        super().__init__()
        self.possible_agents = ["red_0", "green_0", "blue_0"]
        self.longest = longest
        self.render_mode = None
        self._actions = {agent: gym.spaces.MultiDiscrete([3, 3]) for agent in self.possible_agents}
        self._observations = {agent: gym.spaces.Box(0, 9, (size,), np.float32) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return self._observations[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self.options = options
        self.agents = [*self.possible_agents]
        self._selector = AgentSelector(self.agents)
        self.agent_selection = self._selector.reset()
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {"mood": "good"} for agent in self.agents}
        self.steps = 0

    def observe(self, agent: str) -> Any:
        assert agent in self.agents, "who has left sees nothing"
        return np.full(self._observations[agent].shape, self.steps % 10, np.float32)

    def step(self, action: Any) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        assert self._actions[agent].contains(action)
        self.steps += 1
        self._cumulative_rewards[agent] = 0.0
        self._clear_rewards()
        self.rewards[agent] = 0.25
        following = self._selector.next()
        if np.max(action) == 2:
            self.terminations[agent] = True
            self._selector = AgentSelector([other for other in self.agents if not self.terminations[other]])
            if len(self._selector.agent_order) == 1:
                (winner,) = self._selector.agent_order
                self.rewards[winner] += 10.0
                self.terminations[winner] = True
            following = self._selector.next()
        if self.steps >= self.longest:
            self.truncations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()
        self.agent_selection = following
        self._deads_step_first()


def cut_off(text: str) -> vfgym.Response:
    return vfgym.Response("r", 0, "m", None, vfgym.ResponseMessage(text, finish_reason="length"))


def connect_four(**options: Any) -> PettingZooEnv:
    factory("connect_four_v3")
    return PettingZooEnv("classic/connect_four_v3", **options)


class Guessing(ParallelEnv):
    """Both name a number at once, twice; who names the higher one in a round wins it."""

    metadata = {"name": "guessing_v0", "render_modes": []}
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = ["low_0", "high_0"]
        self._actions = {agent: gym.spaces.Discrete(5) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> gym.Space[Any]:
        return gym.spaces.Discrete(3)

    def action_space(self, agent: str) -> gym.Space[Any]:
        return self._actions[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.agents, self.rounds = [*self.possible_agents], 0
        return dict.fromkeys(self.agents, 0), {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, Any]) -> Any:
        low, high = (int(actions[agent]) for agent in self.agents)
        self.rounds += 1
        told, is_over = dict.fromkeys(self.agents, self.rounds), dict.fromkeys(self.agents, self.rounds == 2)
        rewards, infos = {"low_0": float(low > high), "high_0": float(high > low)}, {agent: {} for agent in self.agents}
        self.agents = self.agents if self.rounds < 2 else []
        return told, rewards, is_over, dict.fromkeys(is_over, False), infos
