"""`OpeningMoves`: samples of the action space of a game for several players."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from vfgym.messages import AssistantMessage
from vfgym.wrappers.games.session import close_or_log
from vfgym.wrappers.games.turn_based import TurnBasedGame

if TYPE_CHECKING:
    from vfgym.wrappers.games.multiplayer import MultiplayerEnv


class OpeningMoves:
    """Draws moves that may begin a game, from a table of its own that never gets further.

    Samples of an action space know of no episode; so this is what can be said in the game.
    """

    def __init__(self, env: MultiplayerEnv) -> None:
        self._env = env
        self._table: TurnBasedGame | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_env": self._env, "_table": None}  # it is made again where it is needed

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one move."""
        if self._table is None:
            self._table = self._env.open_game()
            self._table.reset(0, None)
        player = self._table.turn
        if player is None:
            return AssistantMessage("")
        return cast(AssistantMessage, self._env.message_of(self._table.sample_move(player, rng)))

    def close(self) -> None:
        """Release the table. A second call does nothing."""
        if self._table is not None:
            close_or_log(self._table)
            self._table = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpeningMoves) and (type(self._env), self._env.env_id) == (type(other._env), other._env.env_id)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"OpeningMoves({self._env.env_id or type(self._env).__name__})"
