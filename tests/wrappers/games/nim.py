"""A small game for any number of players: each takes 1 to 3 sticks, and whoever takes the last one wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import vfgym
from vfgym.codecs import ActionNotFound
from vfgym.messages import AssistantMessage, Message, content_text
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turn_based import Played, Player, TurnBasedGame


class Nim(TurnBasedGame):
    """A table for Nim. The seed (or the table's own stream) draws how many sticks there are."""

    def __init__(self, num_players: int = 2, sticks: int | None = None) -> None:
        self.num_players = num_players
        self.fixed_sticks = sticks
        self.sticks = 0
        self.rng = np.random.default_rng()
        self.told: dict[Player, list[str]] = {}
        self.closed = 0

    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.players = tuple(range(self.num_players))
        drawn = int(self.rng.integers(8, 14))
        self.sticks = (options or {}).get("sticks", self.fixed_sticks or drawn)
        self.turn, self.was_truncated = 0, False
        self.told = {player: [f"You are player {player}. There are {self.sticks} sticks."] for player in self.players}

    def observe(self, player: Player) -> str:
        told, self.told[player] = self.told[player], []
        return "\n".join(told)

    def move(self, message: Message) -> Played:
        player = self.turn
        assert player is not None
        text = content_text(message["content"])
        taken = int(text) if text in ("1", "2", "3") else 0
        if not 0 < taken <= self.sticks:
            self.told[player].append(f"{text!r} is not a move.")
            return Played({}, is_valid=False)
        self.sticks -= taken
        for other in self.players:
            if other != player:
                self.told[other].append(f"Player {player} takes {taken}, {self.sticks} are left.")
        if self.sticks:
            self.turn = self.players[(self.players.index(player) + 1) % len(self.players)]
            return Played({})
        self.turn = None
        for other in self.players:
            self.told[other].append(f"Player {player} wins.")
        return Played({other: 1.0 if other == player else -1.0 for other in self.players})

    def sample_move(self, player: Player, rng: np.random.Generator) -> Message:
        return AssistantMessage(str(rng.integers(1, min(3, self.sticks) + 1)))

    def legal_moves(self, player: Player) -> list[str]:
        return [str(taken) for taken in range(1, min(3, self.sticks) + 1)]

    def close(self) -> None:
        self.closed += 1


class NimEnv(MultiplayerEnv):
    """Nim as a chat environment."""

    def __init__(self, num_players: int = 2, sticks: int | None = None, **kwargs: Any) -> None:
        self.num_players, self.sticks = num_players, sticks
        kwargs.setdefault("blocking", False)
        super().__init__(**kwargs)

    def open_table(self) -> Nim:
        return Nim(self.num_players, self.sticks)


def takes_one(observation: list[Any], info: dict[str, Any]) -> str:
    return "1"


def play(env: vfgym.ChatEnv, answers: list[Any], seed: int | None = 0, **options: Any) -> list[Any]:
    outcomes: list[Any] = [env.reset(seed=seed, options=options or None)]
    for answer in answers:
        outcomes.append(env.step(answer))
        if outcomes[-1].terminated or outcomes[-1].truncated:
            break
    return outcomes


class InBrackets(NimEnv):
    """Nim whose players put their moves into brackets."""

    def move_of(self, message: Message) -> Message:
        text = content_text(message["content"])
        if "[" not in text:
            raise ActionNotFound("Put your move into brackets.")
        return AssistantMessage(text[text.index("[") + 1 : text.index("]")])

    def message_of(self, move: Message) -> Message:
        return AssistantMessage(f"[{move['content']}]")
