"""How what a player of a TextArena game is told becomes one text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from vfgym.wrappers.textarena.package import Kinds

GameMessage: TypeAlias = tuple[int, str, Any]
"""One observation of TextArena: who speaks (-1 is the game), the text, and its ``ObservationType``."""

GAME = -1
"""Who speaks where the game does."""


MIXED_UP = frozenset({"Countdown", "Cryptarithm", "Slitherlink", "Tak"})
"""Games whose messages have to be put `put_in_order` (textarena 0.7.4)."""


@dataclass(slots=True)
class PlayerLog:
    """What one player of the running game has been told."""

    raw_messages: list[list[GameMessage]] = field(default_factory=list)
    """What it was told, and not in TextArena's own form: the lists in which it came."""
    training_messages: list[GameMessage] = field(default_factory=list)
    """What it was told in TextArena's own form only."""
    board: str = ""
    """The board as it knows it, where that is kept."""
    rules: str = ""
    """The first text that it was shown."""
    latest: str = ""
    """The last one after the first."""
    knows_the_end: bool = False
    was_refused: bool = False
    """Whether the game did not take its last move."""


def put_in_order(messages: Sequence[GameMessage]) -> list[GameMessage]:
    """Return what a game told that mixes things up, with everything in its place.

    Countdown, Cryptarithm and Slitherlink give ``(kind, speaker, text)`` for moves; a comma too many makes a tuple of texts of Tak.
    """
    return [_repair(*item) for item in messages]


def _repair(speaker: Any, text: Any, kind: Any) -> GameMessage:
    if isinstance(text, int):
        return text, kind, speaker
    return speaker, text if isinstance(text, str) else "".join(text), kind


def render_messages(messages: Sequence[GameMessage], player: int, roles: Mapping[int, str], kinds: Kinds) -> str:
    """Return all that a player was told but what it said itself, which stands in its conversation already.

    What others say is preceded by their names. Of several boards only the last is kept, with those that came right before it and say
    something else: some games tell a board in parts, some tell it again after an invalid move of somebody else.
    """
    board = kinds.board
    last_board, is_before_it = None, False
    texts: list[str] = []
    for speaker, text, kind in reversed(messages):
        if kind is board:
            if is_before_it or text == last_board:
                continue
            last_board = text
        else:
            is_before_it = last_board is not None
            if speaker == GAME:
                if kind is kinds.action and len(roles) == 2:
                    continue  # a game for one (with the game, which has a role too) does not always say whose moves it repeats
            elif speaker == player:
                continue
            else:
                text = f"[{roles.get(speaker) or f'Player {speaker}'}] {text}"
        if stripped := text.strip("\n"):
            texts.append(stripped)
    texts.reverse()
    return "\n\n".join(texts)


def render_training_view(messages: Sequence[GameMessage], log: PlayerLog, shows: str, kinds: Kinds) -> str:
    """Return what TextArena's training wrappers show: no moves and no complaints about moves.

    Args:
        messages: What the player was told.
        log: The player, who knows the board; the last one of `messages` is the new one.
        shows: ``"messages"``, boards among them, ``"messages and board"``, the latter as it is now, or ``"board"`` alone after the rules.
        kinds: The kinds of observations.
    """
    shows_board, shows_messages = shows != "messages", shows != "board"
    texts: list[str] = []
    for _, text, kind in messages:
        if shows_board and kind is kinds.board:
            log.board = text
        elif kind is kinds.prompt or (shows_messages and kind is not kinds.action and kind is not kinds.admin):
            texts.append(text)
    if shows_board:
        texts.append(log.board)
    return join_texts(texts)


def join_texts(texts: Sequence[str]) -> str:
    """Return texts as one, with an empty line between two."""
    return "\n\n".join([stripped for text in texts if (stripped := text.strip("\n"))])
