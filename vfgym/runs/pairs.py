"""Games for two, each played once from either seat: whoever has the better seat, it falls out of the sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.runs.inputs import Example
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turn_based import Player


class SeatPairs(NamedTuple):
    """Which rollouts belong together: the numbers 2k and 2k + 1 of an example are one game, from the first seat and from the second."""

    players: tuple[Player, Player]
    """Who plays at the two seats."""
    pairs_per_example: int

    def player_of(self, number: int) -> Player:
        """Return whom the policy plays in a rollout."""
        return self.players[number % 2]

    def of(self, example: Example, number: int) -> dict[str, Any]:
        """Return what the row of a rollout says of its pair: ``player``, and ``pair``, a number that no other pair of the run has."""
        return {"player": self.player_of(number), "pair": example.place * self.pairs_per_example + number // 2}

    def seed_of(self, seeds: Callable[[Example, int], int]) -> Callable[[Example, int], int]:
        """Return what gives both rollouts of a pair the seed that one rollout would have."""
        return lambda example, number: seeds(example, number // 2)


def find_pairs(definition: ChatEnv, pairs_per_example: int) -> SeatPairs:
    """Return how an environment's games are played from both seats.

    Raises:
        ConfigurationError: If they are not games for two, or the policy plays both seats anyway.
    """
    name = type(definition).__name__
    if not isinstance(definition, MultiplayerEnv):
        raise ConfigurationError(f"both_seats plays games for two players from either seat, and {name} is not a game for several")
    if definition.is_self_play:
        raise ConfigurationError("both_seats plays each game from either seat, and in self-play the policy has both: name opponents")
    players = definition.find_players()
    if len(players) != 2:
        raise ConfigurationError(f"both_seats plays games for two players, and this one has {len(players)}: {', '.join(map(str, players))}")
    for player in players:
        definition.check_players(players, player)
    return SeatPairs((players[0], players[1]), pairs_per_example)
