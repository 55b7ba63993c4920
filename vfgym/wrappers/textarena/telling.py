"""How what a player of a TextArena game is told becomes one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from vfgym.wrappers.textarena.package import Kinds

Told: TypeAlias = tuple[int, str, Any]
"""One observation of TextArena: who speaks (-1 is the game), the text, and its ``ObservationType``."""

GAME = -1
"""Who speaks where the game does."""


def in_order(told: Sequence[Told]) -> Sequence[Told]:
    """Return what was told with everything in its place (textarena 0.7.4).

    Countdown, Cryptarithm and Slitherlink give ``(kind, speaker, text)`` for moves; a comma too many makes a tuple of texts of Tak.
    """
    for _, text, _ in told:
        if text.__class__ is not str:
            return [_repaired(*item) for item in told]
    return told


def _repaired(speaker: Any, text: Any, kind: Any) -> Told:
    if isinstance(text, int):
        return text, kind, speaker
    return speaker, text if isinstance(text, str) else "".join(text), kind


def everything(told: Sequence[Told], player: int, roles: Mapping[int, str], kinds: Kinds) -> str:
    """Return all that a player was told but what it said itself, which stands in its conversation already.

    What others say is preceded by their names. Of several boards only the last is kept, with those that came right before it and say
    something else: some games tell a board in parts, some tell it again after an invalid move of somebody else.
    """
    _, action, _, board = kinds
    is_alone = len(roles) == 2  # with the game, which has a role too
    texts: list[str] = []
    first_board, after_board, was_board = 0, 0, False
    for speaker, text, kind in told:
        if kind is board:
            if not was_board:
                del texts[first_board:after_board]
                first_board = len(texts)
            if not was_board or text != texts[-1]:
                texts.append(text)
            after_board = len(texts)
        elif speaker == GAME:
            if kind is not action or not is_alone:  # a game for one does not always say whose moves it repeats
                texts.append(text)
        elif speaker != player:
            texts.append(f"[{roles.get(speaker) or f'Player {speaker}'}] {text}")
        was_board = kind is board
    return joined(texts)


def in_training(told: Sequence[Told], board: str, shows: str, kinds: Kinds) -> str:
    """Return what TextArena's training wrappers show: no moves and no complaints about moves.

    Args:
        told: What the player was told.
        board: The board as the player knows it now.
        shows: ``"messages"``, boards among them, ``"messages and board"``, the latter as it is now, or ``"board"`` alone after the rules.
        kinds: The kinds of observations.
    """
    if shows == "board":
        return joined([*(text for _, text, kind in told if kind is kinds.prompt), board])
    if shows == "messages":
        return joined([text for _, text, kind in told if kind is not kinds.action and kind is not kinds.admin])
    return joined([*(text for _, text, kind in told if kind not in (kinds.action, kinds.admin, kinds.board)), board])


def joined(texts: Sequence[str]) -> str:
    """Return texts as one, with an empty line between two."""
    return "\n\n".join([stripped for text in texts if (stripped := text.strip("\n"))])
