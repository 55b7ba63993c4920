"""`TurnBasedGame`: what a game for several players must offer to become a chat environment, or several seats at one.

`play_in_turn` makes moves of players, who may put them into a form, and hands only moves to the game.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from vfgym.codecs import ActionNotFound
from vfgym.errors import ConfigurationError
from vfgym.messages import Content, Message
from vfgym.messages.frozen import FrozenDict
from vfgym.output.pictures import Picture

Player: TypeAlias = Any
"""Who plays, as the game itself calls its players: 0, 1, ... or ``"player_1"``, ..."""


class Played(NamedTuple):
    """What came of one move."""

    rewards: Mapping[Player, float]
    """What the move earned each player; a player who earned nothing may be left out."""
    is_valid: bool = True
    """Whether the game took the move. Where it did not, the same player is asked again, or has lost: see ``turn``."""


class TurnBasedGame(ABC):
    """One table at which a game is played, again and again: `reset` begins the next game.

    All methods are plain; what they draw at random comes from the table's own random numbers, never from the process's. In async runs a
    blocking table (``MultiplayerEnv(blocking=True)``) is called on one thread of its own, never at two places at once; only an agent of
    one's own that samples its action space calls `sample_move` where it runs. The attributes are read anywhere between calls.
    """

    players: tuple[Player, ...] = ()
    """Everybody who plays the running game, in order of their seats."""
    turn: Player | None = None
    """Whose move it is; None when the game is over."""
    native_observations: Mapping[Player, Any] = FrozenDict()
    """What the game itself gives its players as their observations, as they were observed last; nobody in it where it gives none.

    It is copied wherever it is handed out.
    """
    was_truncated: bool = False
    """Whether the game that is over was ended by a limit of its own rather than decided (see `end_flags`)."""

    @abstractmethod
    def reset(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Begin a game, and set `turn`. The same seed gives the same game; None continues the table's own random numbers."""

    @abstractmethod
    def observe(self, player: Player) -> Content:
        """Return what a player was told since it was last asked for; at first the rules. Empty if nothing.

        Its own moves are not repeated to it. It may be asked for a player whose turn it is not, also when the game is over.
        """

    @abstractmethod
    def move(self, message: Message) -> Played:
        """Make the move of the player whose turn it is. A message that is not a move is the game's own matter (see `Played`)."""

    def move_cut_off(self, message: Message) -> Played:
        """Make the move of a message that the limit of its length cut off. By default as of any other: what it says counts.

        A game that searches sentences for a move overrides this: what was cut off may have gone on to say something else.
        """
        return self.move(message)

    def why_not(self, message: Message, *, is_cut_off: bool = False) -> str:
        """Return why a message of the player whose turn it is does not get to the game, for the player to read; empty if it does.

        Whoever plays is asked again then, and the game does not know of it. A table overrides this that knows the legal moves of a game
        which allows few invalid ones; `move` takes every message all the same. By default all get to the game.
        """
        return ""

    @abstractmethod
    def sample_move(self, player: Player, rng: np.random.Generator) -> Message:
        """Return a random move for a player whose turn it is: a legal one where the game lets them be found."""

    def rules(self, player: Player) -> Content | None:
        """Return what a player is told at first and stays true, or None if that is all of it. Asked before its first `observe`.

        A limited history shows it in place of the first thing that the player was told. A game that can be asked later too lets a person
        see the rules again.
        """
        return None

    def describe_moves(self, player: Player) -> str:
        """Return what a player may play in the words of the rules ("the number of an empty cell"); empty where only they say it."""
        return ""

    def legal_moves(self, player: Player) -> list[str] | None:
        """Return the texts of all moves that a player whose turn it is may make, or None where they are not known."""
        return None

    def end_flags(self, player: Player) -> tuple[bool, bool]:
        """Return whether the game is over for a player by its rules (terminated), and whether by a limit (truncated).

        While the game goes on, both are False but for players who are out of it already. By default it ends alike for all.
        """
        is_over = self.turn is None
        return is_over and not self.was_truncated, is_over and self.was_truncated

    def info(self, player: Player) -> dict[str, Any]:
        """Return what else is told to a player: plain data of its own, nothing shared."""
        return {}

    def render_picture(self) -> Picture | None:
        """Return what the table looks like, for films and windows; None where what the players are told is all there is to see."""
        return None

    def resample_hidden(self, player: Player, rng: np.random.Generator) -> None:
        """Draw anew what is hidden from a player (others' hands, the order of a deck), alike with all that it was told.

        Raises:
            ConfigurationError: If the game cannot.
        """
        raise ConfigurationError(f"{type(self).__name__} cannot deal anew what is hidden from {player!r}")

    def close(self) -> None:  # noqa: B027 -- most tables hold nothing
        """Release what the table holds."""


NO_MOVE = Played(FrozenDict(), is_valid=False)
"""What comes of a message that is not a valid move and earns nobody anything."""


def play_in_turn(
    game: TurnBasedGame, message: Message, move_of: Callable[[Message], Message] | None = None, *, is_cut_off: bool = False
) -> tuple[Played, str]:
    """Make the move that stands in a message, for the player whose turn it is.

    Args:
        game: The table. A message without a move, or with one that is not legal now as far as the table knows, does not get to it.
        message: The message.
        move_of: Returns the move in a message that has a form, or raises `vfgym.codecs.ActionNotFound` with what the player is told.
        is_cut_off: Whether the message was cut off by the limit of its length. A form says itself whether a move in it is whole.

    Returns:
        What came of it, and what the player is told of a message that did not get to the game; else empty.
    """
    if move_of is not None:
        try:
            message, is_cut_off = move_of(message), False
        except ActionNotFound as error:
            return NO_MOVE, str(error)
    why = game.why_not(message, is_cut_off=is_cut_off)
    if why:
        return NO_MOVE, why
    return game.move_cut_off(message) if is_cut_off else game.move(message), ""


# Mistakes of a table's author, looked for where something failed. What is raised in the middle of a game is not an `Error`, which would end
# the episode as if it were part of it.


def check_begun(game: TurnBasedGame) -> None:
    """Raise if `reset` did not say whose turn it is."""
    if game.turn is None and type(game).turn is None and "turn" not in vars(game):
        raise ConfigurationError(
            f"reset of {type(game).__name__} must set `turn`: to whose move it is, or to None if the game is over already"
        )
    check_turn(game)


def check_turn(game: TurnBasedGame) -> None:
    """Raise if it is the turn of somebody who does not play."""
    if game.turn is not None and game.turn not in game.players:
        players = ", ".join(map(repr, game.players))
        raise ValueError(f"`turn` of {type(game).__name__} is {game.turn!r}, who does not play; the players are {players}")


def no_outcome(game: TurnBasedGame, played: Any) -> TypeError:
    """Return the error for a `move` that returned something else than what came of it."""
    return TypeError(f"`move` of {type(game).__name__} must be a plain method that returns a vfgym.Played, got {type(played).__name__}")
