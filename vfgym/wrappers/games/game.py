"""`GameEnv`: a game (anything with moves, rewards and an end of its own) as a chat environment.

The model's move is made as its turn is recorded, before the stop conditions, so that the last move of a limited game counts;
what the game answers is shown afterwards.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from vfgym.aio.background import wait
from vfgym.aio.steps import Steps, eager
from vfgym.messages import Message
from vfgym.output.pictures import Picture
from vfgym.state import State
from vfgym.wrappers.games.pictures import draw_game, draws_itself
from vfgym.wrappers.games.session import GameSession, GameSessionEnv, GameState, Turn

logger = logging.getLogger(__name__)


class GameEnv(GameSessionEnv):
    """A chat environment around a game. Subclass it and write `open_game`, `begin_game` and `make_move`, as plain methods."""

    _game_state_type: ClassVar[type[GameState]] = GameState

    @abstractmethod
    def begin_game(self, game: Any, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[Message]:
        """Reset the game with exactly this seed (None continues its own random numbers) and return the prompt.

        One that writes the part of the prompt that stays true into ``state["rules"]`` (text or content parts) lets a limited
        `history` leave out the first observation with the first moves.
        """

    @abstractmethod
    def make_move(self, game: Any, message: Message, state: State) -> Turn:
        """Make the move that a message names, and return what the game answers."""

    @eager
    def setup_state(self, state: State) -> Steps[State]:
        """Open the player's game where there is none yet, and begin it."""
        session = yield from self._session_of(state)
        state.begin_game(self._game_state_type())
        task = state["input"]
        prompt = yield from self._call(session, self.begin_game, session.game, state, task.get("seed"), task.get("game_options"))
        self._begin(state, prompt)
        return state

    def apply_action(self, message: Message, state: State) -> Any:
        """Make the model's move."""
        session = state.session
        if (self.blocking or session.worker is not None) and self._belongs_on_thread(session):
            return self._move_on_thread(session, message, state)
        self._take(self.make_move(session.game, message, state), state)
        return None

    _cannot_draw = False
    """Whether a game of this environment failed to draw itself."""

    def render_picture(self, state: State) -> Picture | None:
        """Return the game's own picture; None where it draws none, or cannot do so here (without a display, say), which is logged."""
        session: GameSession | None = state.session
        if self._cannot_draw or session is None or session.is_stuck or not draws_itself(session.game):
            return None
        try:
            return draw_game(session.game) if session.worker is None else wait(session.run(draw_game, session.game))
        except Exception as error:
            self._cannot_draw = True
            logger.warning("%s shows its conversation instead of the game, which cannot be drawn: %r", type(self).__name__, error)
            return None

    async def _move_on_thread(self, session: GameSession, message: Message, state: State) -> None:
        self._take(await session.run(self.make_move, session.game, message, state), state)
