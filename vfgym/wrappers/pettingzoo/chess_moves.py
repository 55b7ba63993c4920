"""`ChessMoves`: the actions of PettingZoo's chess as moves in algebraic notation, which depends on the position."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from vfgym.codecs import ActionNotFound, Codec
from vfgym.codecs.choices import is_chosen
from vfgym.codecs.numbers import is_negated, with_plain_signs
from vfgym.codecs.problems import STATE_IT, several

_MENTION = re.compile(r"(?<![\w-])[a-hKQRBNO0][\w=-]*\w(?!\w)")
"""What may be a move inside a sentence."""

_DECORATION = " \t\r\n.!?+#\"'`*"
"""What may stand around a move. A check or mate need not be said."""


class ChessMoves(Codec):
    """The 4672 actions of ``chess_v6``, of which a position allows a few dozen.

    PettingZoo numbers a move by the square it begins on and one of 73 directions, as whoever moves sees the board. Here a move is
    written as chess players write it (``Nf3``), and read so or by its squares (``g1f3``).
    """

    def __init__(self, game: Any) -> None:
        """Read and write moves of the position in which `game`, an unwrapped ``chess_v6``, stands at the time."""
        from pettingzoo.classic.chess import chess_utils

        self.space = game.action_space(game.possible_agents[0])
        self.names = None
        self.schema = {"type": "string", "description": self.listing()}
        self._game = game
        self._utils = chess_utils

    def to_json(self, action: Any) -> str:
        """Return a move of the position in algebraic notation."""
        san: str = self._game.board.san(self._move(action))
        return san

    def encode(self, action: Any) -> str:
        """Return a move of the position in algebraic notation."""
        return self.to_json(action)

    def read(self, data: Any) -> np.int64:
        """Return the action of a legal move.

        Raises:
            ActionNotFound: If it is none.
        """
        moves = self._moves_in([data]) if isinstance(data, str) else set()
        if not moves:
            raise ActionNotFound(f"must be a legal move, got {data!r}")
        return self._action(moves.pop())

    def alone(self, text: str) -> Any:
        """Return the action of the legal move that a text is; None if it is something else."""
        moves = self._moves_in([text])
        return self._action(moves.pop()) if moves else None

    def prose(self, text: str, is_marked: bool) -> Any:
        """Return the action of the only legal move that a text mentions; None if it mentions none.

        Raises:
            ActionNotFound: If it mentions several, or the one in a refusal, a question or a condition.
        """
        text = with_plain_signs(text)
        mentions = [mention for mention in _MENTION.finditer(text) if self._moves_in([mention[0]])]
        moves = self._moves_in([mention[0] for mention in mentions])
        if len(moves) > 1:
            raise several(len(moves))
        if not moves:
            return None
        if any(is_negated(text, mention.start()) for mention in mentions):
            raise ActionNotFound(f"It is unclear whether {mentions[0][0]!r} is meant")
        if not is_chosen(text, [mention.span() for mention in mentions], is_specific=True):
            raise ActionNotFound(f"It is unclear whether {mentions[0][0]!r} is your choice: {STATE_IT}")
        return self._action(moves.pop())

    def listing(self) -> str:
        """Say what a move looks like."""
        return "a legal move in algebraic notation, like e4, Nf3, O-O or e8=Q"

    def representative(self) -> np.int64:
        """Return the action of Nf3 as White's first move."""
        import chess

        return self._number_of(chess.Move.from_uci("g1f3"))

    def example(self) -> str:
        """Return a move that is legal in many positions."""
        return "Nf3"

    def legal_texts(self, mask: Any) -> list[str] | None:
        """Return the moves that a mask allows."""
        return None if mask is None else [self.encode(action) for action in np.flatnonzero(mask)]

    def _move(self, action: Any) -> Any:
        board = self._game.board
        return self._utils.action_to_move(board, int(action), 0 if board.turn else 1)

    def _action(self, move: Any) -> np.int64:
        return self._number_of(move if self._game.board.turn else self._utils.mirror_move(move))

    def _number_of(self, move_of_white: Any) -> np.int64:
        uci = move_of_white.uci()
        if uci not in self._utils.moves_to_actions:  # PettingZoo numbers moves as it meets them
            self._utils.make_move_mapping(uci)
        return np.int64(self._utils.moves_to_actions[uci])

    def _moves_in(self, texts: list[str]) -> set[Any]:
        """Return the legal moves that these texts stand for."""
        moves = set()
        for text in texts:
            try:
                move = self._game.board.parse_san(text.strip(_DECORATION))  # reads g1f3 too
            except ValueError:
                continue
            if move:  # "--" stands for a move that moves nothing
                moves.add(move)
        return moves
