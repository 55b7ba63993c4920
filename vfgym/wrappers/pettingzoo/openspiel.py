"""Games of OpenSpiel, as shimmy makes PettingZoo's of them: positions and moves as OpenSpiel writes them.

Nothing here imports `pyspiel` or `shimmy`: a game is asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vfgym.codecs import ActionNotFound, Codec
from vfgym.codecs.reading import Where

OPENSPIEL = "OpenSpielCompatibilityV0"
"""What shimmy's environments of OpenSpiel call themselves."""

_DECORATION = " \t\r\n.!?\"'`*"
"""What may stand around a move."""


def read_position(game: Any, agent: str) -> str:
    """Return what a player sees of a position, in OpenSpiel's words."""
    state, player = game.game_state, game.agent_name_id_mapping[agent]
    if game.game_type.provides_observation_string:
        return str(state.observation_string(player))
    if game.game_type.provides_information_state_string:
        return str(state.information_state_string(player))
    return str(game.observe(agent))


def is_openspiel(game: Any) -> bool:
    """Say whether an unwrapped environment is a game of OpenSpiel."""
    return any(
        (cls.__module__, cls.__qualname__) == ("shimmy.openspiel_compatibility", "OpenSpielCompatibilityV0") for cls in type(game).__mro__
    )


def read_openspiel_rules(game: Any) -> str:
    """Return what is known of a game's rewards; OpenSpiel tells no rules."""
    return f"Rewards: from {game._env.min_utility():g} to {game._env.max_utility():g} in all."


class OpenSpielMoves(Codec):
    """The actions of a game of OpenSpiel as ``action_to_string`` writes them, which depends on the position and the player."""

    def __init__(self, game: Any) -> None:
        """Read and write moves of the position in which `game`, an unwrapped ``OpenSpielCompatibilityV0``, stands at the time."""
        self.space = game.action_space(game.possible_agents[0])
        self.names = None
        self.schema = {"type": "string", "description": self.listing()}
        self._game = game
        state = game._env.new_initial_state()
        while state.is_chance_node():
            state.apply_action(state.legal_actions()[0])
        player = 0 if state.is_simultaneous_node() else state.current_player()
        self._first = int(state.legal_actions(player)[0])
        self._example = str(state.action_to_string(player, self._first))

    def to_json(self, action: Any) -> str:
        """Return a move of the position as OpenSpiel writes it."""
        state = self._game.game_state
        return str(state.action_to_string(self._player(), int(action)))

    def encode(self, action: Any) -> str:
        """Return a move of the position as OpenSpiel writes it."""
        return self.to_json(action)

    def read(self, data: Any) -> np.int64:
        """Return the action of a legal move.

        Raises:
            ActionNotFound: If it is none.
        """
        action: np.int64 | None = self._parse(data) if isinstance(data, str) else None
        if action is None:
            raise ActionNotFound(f"must be a legal move, got {data!r}")
        return action

    def read_exactly(self, text: str) -> None:
        """Return nothing: `lookup` reads what a legal move is called."""

    def lookup(self, text: str, where: Where) -> Any:
        """Return the action of the legal move that a text is; None if it is something else."""
        return self._parse(text)

    def mentioned_in(self, remark: str) -> list[Any]:
        """Return the legal moves that the words of a remark are."""
        return [action for word in remark.split() if (action := self._parse(word.strip(",;:"))) is not None]

    def listing(self) -> str:
        """Say what a move looks like."""
        return "a legal move, as it is listed below the position"

    def representative(self) -> np.int64:
        """Return an action that is legal at the beginning of a game."""
        return np.int64(self._first)

    def example(self) -> str:
        """Return a move that is legal at the beginning of a game."""
        return self._example

    def legal_texts(self, mask: Any) -> list[str] | None:
        """Return the moves that a mask allows."""
        return None if mask is None else [self.encode(action) for action in np.flatnonzero(mask)]

    def _player(self) -> int:
        player: int = self._game.agent_name_id_mapping[self._game.agent_selection]
        return player

    def _parse(self, text: str) -> Any:
        """Return the legal move that a text stands for, whatever its case; None if it is none, or several."""
        wanted, state, player = text.strip(_DECORATION).casefold(), self._game.game_state, self._player()
        exact = [action for action in state.legal_actions(player) if state.action_to_string(player, action).casefold() == wanted]
        return np.int64(exact[0]) if len(exact) == 1 else None
