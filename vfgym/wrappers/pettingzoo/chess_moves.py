"""`ChessMoves`: the actions of PettingZoo's chess as moves in algebraic notation, which depends on the position."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from vfgym.codecs import ActionNotFound, Codec
from vfgym.codecs.reading import Where

_MAYBE_MOVE = re.compile(r"[a-h1-8kqrbnxo0=-]{2,8}")
_DECORATION = " \t\r\n.!+#\"'`*"
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
        move = self._parse(data) if isinstance(data, str) else None
        if move is None:
            raise ActionNotFound(f"must be a legal move, got {data!r}")
        return self._action(move)

    def read_exactly(self, text: str) -> None:
        """Return nothing: a move is written in several ways, which `lookup` reads."""

    def lookup(self, text: str, where: Where) -> Any:
        """Return the action of the legal move that a text is; None if it is something else."""
        move = self._parse(text)
        return None if move is None else self._action(move)

    def mentioned_in(self, remark: str) -> list[Any]:
        """Return the legal moves that the words of a remark are."""
        return [self._action(move) for word in remark.split() if (move := self._parse(word.strip(",;:"))) is not None]

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

    def _parse(self, text: str) -> Any:
        """Return the legal move that a text stands for (g1f3 is one too), its case aside where that tells no moves apart; else None."""
        board, written = self._game.board, text.strip(_DECORATION)
        try:
            return board.parse_san(written) or None  # "--" stands for a move that moves nothing
        except ValueError:
            folded = written.replace(" ", "").casefold()
            if not _MAYBE_MOVE.fullmatch(folded):
                return None
            moves = [move for move in board.legal_moves if board.san(move).rstrip("+#").casefold() == folded]
            return moves[0] if len(moves) == 1 else None
