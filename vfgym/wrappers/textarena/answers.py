"""How answers to TextArena's games are read: a move in brackets, tags or another mark; in games of sentences the whole answer.

The rule is that of all games (`vfgym.codecs.reading`), and ``[x]`` is a mark too, which has to agree with the others. What the game gets is
the move in brackets. A game decides itself whether a move is legal.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from vfgym.codecs.problems import ActionNotFound
from vfgym.codecs.reading import Where, read_answer

GAMES_OF_SENTENCES = frozenset(
    {
        *("CharacterConclave", "Debate", "DontSayIt", "GuessWho", "IteratedPrisonersDilemma", "IteratedStagHunt", "IteratedUltimatumGame"),
        *("MarketEntryGame", "NewRecruit", "PublicGoodsGame", "ScenarioPlanning", "ScorableGames", "SecretMafia", "SettlersOfCatan"),
        *("SimpleBlindAuction", "SimpleNegotiation", "Taboo", "Tak", "ThreePlayerIPD", "TruthAndDeception", "TwentyQuestions", "TwoDollar"),
        *("UsedCar", "UsedCarNegotiation"),
    }
)
"""Games whose moves are sentences, stand in them, or (Tak's) have brackets inside: they get the whole answer (textarena 0.7.4)."""

_EMPHASIS = "*_`\"'"
_MOST_EMPHASIS = 100
"""Signs of emphasis, at most, that are taken off a move at either end."""


class _MoveReader:
    """Takes any text of one line for a move: only the game knows its moves."""

    own_keys: Collection[str] = ()
    has_brackets: bool = True
    longest: int = 0

    def read_exactly(self, text: str) -> None:
        """Return nothing: a move may be written in several ways."""

    def match(self, text: str, where: Where) -> str | None:
        """Return the move in a mark, or in an answer of one line."""
        move = _without_emphasis(text).strip()
        if where is Where.WHOLE_ANSWER and not move.endswith(".."):
            move = move.removesuffix(".")
        return None if where is Where.LAST_LINE or not move or "\n" in move or "[" in move or "]" in move else move

    def to_json(self, move: str) -> Any:
        """Return a move as it is compared."""
        return " ".join(move.casefold().split())


def _without_emphasis(text: str) -> str:
    """Return a text without the longest run of signs that it both begins and ends with."""
    if text[:1] not in _EMPHASIS:
        return text
    most = min(len(text) - len(text.lstrip(_EMPHASIS)), len(text) // 2, _MOST_EMPHASIS)
    length = next((length for length in range(most, 0, -1) if text.endswith(text[:length])), 0)
    return text[length : len(text) - length]


_reader = _MoveReader()


def read_move(answer: str, *, is_cut_off: bool = False) -> str:
    """Return the move that an answer names, in brackets.

    >>> read_move("It is free, so [4]."), read_move("<action>4</action>"), read_move("4")
    ('[4]', '[4]', '[4]')

    Args:
        answer: What a player wrote.
        is_cut_off: Whether the limit of its length cut it off.

    Raises:
        vfgym.codecs.ActionNotFound: If it names no move, or several. The message says why.
    """
    try:
        return f"[{read_answer(answer, _reader, is_cut_off=is_cut_off)}]"
    except ActionNotFound as error:
        raise ActionNotFound(f"{error.sentence()}. Write your move in brackets, as the rules say.") from None
