"""`GameEnv`: a game (anything with moves, rewards and an end of its own) as a chat environment.

The model's move is made as its turn is recorded, before the stop conditions, so that the last move of a limited game counts;
what the game answers is shown afterwards.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from vfgym.aio.steps import Steps, eager
from vfgym.messages import Message
from vfgym.output.pictures import Picture
from vfgym.state import State
from vfgym.wrappers.games.pictures import draw_game, draws_itself
from vfgym.wrappers.games.session import GameSession, GameSessionEnv
from vfgym.wrappers.games.turns import GameState, Turn


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
        return self._begin_alone_at_first(self._begin_steps(state))

    def _begin_steps(self, state: State) -> Steps[State]:
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

    def draw_picture(self, game: Any) -> Picture | None:
        """Return the game's picture of itself, in the render mode ``"rgb_array"``; None where it has none."""
        return draw_game(game) if draws_itself(game) else None

    async def _move_on_thread(self, session: GameSession, message: Message, state: State) -> None:
        self._take(await session.run(self.make_move, session.game, message, state), state)
