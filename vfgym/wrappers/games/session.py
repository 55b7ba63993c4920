"""`GameSessionEnv`: what chat environments around games of this process share, whether one plays or several.

A game belongs to the player, not to the episode: it is opened once and then reset, so that an unseeded reset continues its own random
numbers. A `GameSession` keeps it, with the thread that a blocking game lives on.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import os
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, cast

from vfgym.aio.background import in_event_loop, wait
from vfgym.aio.deadlines import Before, DeadlinePassed
from vfgym.aio.steps import Steps, eager
from vfgym.aio.threads import Worker
from vfgym.context import in_force, keep_given
from vfgym.output.pictures import Picture
from vfgym.state import State
from vfgym.wrappers.games.turns import GameTurnsEnv

logger = logging.getLogger(__name__)

_PATIENCE = 5.0
"""Seconds for which a game that is to be closed is waited for, where it is stuck in a move."""


class GameSession:
    """One player's game, and the thread that a blocking game lives on."""

    __slots__ = ("game", "has_game", "worker")

    def __init__(self) -> None:
        self.has_game = False
        self.game: Any = None
        self.worker: Worker | None = None

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        return None, {"game": self.game, "has_game": self.has_game, "worker": None}  # a copy gets a thread of its own

    async def run(self, func: Callable[..., Any], *args: Any) -> Any:
        """Call the game on its own thread."""
        if self.worker is None:
            self.worker = Worker()
        return await self.worker.run(func, *args)

    @property
    def is_stuck(self) -> bool:
        """Whether the game still makes a move that nobody waits for any longer (at its episode's deadline, say)."""
        return self.worker is not None and self.worker.is_busy

    def abandon(self, close: Callable[[Any], Any]) -> None:
        """Leave the game to its thread, which closes it if the move ever ends. The session has no game then."""
        game, worker = self.game, self.worker
        self.game, self.has_game, self.worker = None, False, None
        if worker is not None:
            worker.send(close, game)
            worker.close()


_first_begin: concurrent.futures.Future[None] | None = None
"""Done when the game that begins alone now has begun; None where none does (see `GameSessionEnv._begin_alone_at_first`)."""


def _forget_first_begin() -> None:
    # A forked child inherits what it waits for, but not the thread that would end it.
    global _first_begin
    _first_begin = None


os.register_at_fork(after_in_child=_forget_first_begin)


async def _wait_until_begun(first: concurrent.futures.Future[None]) -> None:
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # whoever waited has gone, and the loop was closed
            loop.call_soon_threadsafe(begun.set)

    first.add_done_callback(tell)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await begun.wait()


class GameSessionEnv(GameTurnsEnv):
    """What chat environments around games of this process share: each player's game is opened once, and closed when it leaves."""

    def __init__(self, *, blocking: bool = True, **kwargs: Any) -> None:
        """Define an environment.

        Args:
            blocking: Whether a move may take long. In async runs a blocking game lives on a thread of its own, always the
                same; any other is called in place.
            **kwargs: Passed to `GameTurnsEnv` (``max_invalid_moves``, ``history``, ...).
        """
        super().__init__(**kwargs)
        self.blocking = blocking

    # What a game is

    @abstractmethod
    def open_game(self) -> Any:
        """Make a game."""

    def close_game(self, game: Any) -> None:
        """Release a game: one that has a `close` is closed."""
        close = getattr(game, "close", None)
        if close is not None:
            close()

    def _close_or_log(self, game: Any) -> None:
        close_or_log(game, self.close_game)

    # How it is played

    _imported_in: int | None = None
    """The process in which a game has begun on a thread, so that all is imported there that it needs."""

    def _begin_alone_at_first(self, begin: Steps[State]) -> Steps[State]:
        """Begin a game; on threads alone, if it is the first of this environment.

        Many games import what they draw with as they first need it. When two threads do so at once, one may find half a module: of 10
        processes that reset 4 games of CarRacing, 3 found a `pygame.surfarray` without functions (pygame 2.6, Gymnasium 1.4).
        """
        global _first_begin
        process = os.getpid()
        if self._imported_in == process or not self.blocking or not in_event_loop():
            return (yield from begin)
        if _first_begin is not None and in_force().beginning is _first_begin:  # which ends only after this one
            return (yield from begin)
        while _first_begin is not None and self._imported_in != process:
            first = _first_begin
            yield _wait_until_begun(first)
            if not first.done():  # it takes long to begin, so that it has imported what it needs, or is stuck
                break
        if self._imported_in == process or _first_begin is not None:
            return (yield from begin)
        _first_begin = first = concurrent.futures.Future()
        keep_given(beginning=first)
        try:
            return (yield from begin)
        finally:
            self._imported_in, _first_begin = process, None
            first.set_result(None)

    def _session_of(self, state: State) -> Steps[GameSession]:
        """Return the player's session with its game, which is opened where there is none yet, or the last one got stuck."""
        session: GameSession = state.session or GameSession()
        if session.is_stuck:
            session.abandon(self._close_or_log)
        if not session.has_game:
            try:
                session.game = yield from self._call(session, self.open_game)
            except BaseException:
                if session.worker is not None:
                    session.worker.close()
                    session.worker = None
                raise
            session.has_game = True
            state.session = session
        return session

    def _call(self, session: GameSession, func: Callable[..., Any], *args: Any) -> Steps[Any]:
        """Call a game in place, or on its own thread."""
        if not self._belongs_on_thread(session):
            return func(*args)
        return (yield session.run(func, *args))

    def _belongs_on_thread(self, session: GameSession) -> bool:
        """Say whether a game is called on its thread: once it is there, always; else where blocking would hold up a loop."""
        return session.worker is not None or (self.blocking and in_event_loop())

    # What it looks like

    _cannot_draw = False
    """Whether a game of this environment failed to draw itself."""

    def draw_picture(self, game: Any) -> Picture | None:
        """Return a game's picture of itself; None where it has none. An author's own game may have one here."""
        return None

    def render_picture(self, state: State) -> Picture | None:
        """Return the game's own picture; None where it draws none, or cannot do so here (without a display, say), which is logged."""
        session: GameSession | None = state.session
        if self._cannot_draw or session is None or not session.has_game or session.is_stuck:
            return None
        try:
            if session.worker is None:
                return self.draw_picture(session.game)
            return cast(Picture | None, wait(session.run(self.draw_picture, session.game)))
        except Exception as error:
            self._cannot_draw = True
            logger.warning("%s shows its conversation instead of the game, which cannot be drawn: %r", type(self).__name__, error)
            return None

    # How it is released

    @eager
    def close_session(self, session: GameSession) -> Steps[None]:
        """Close the player's game, on its own thread, and let the thread end. One that is stuck in a move is not waited for long."""
        try:
            if session.is_stuck:
                yield from self._close_stuck(session)
            elif session.game is not None:
                yield from self._call(session, self._close_or_log, session.game)
        finally:
            if session.worker is not None:
                session.worker.close()

    def _close_stuck(self, session: GameSession) -> Steps[None]:
        try:
            yield Before(time.monotonic() + _PATIENCE, session.run(self._close_or_log, session.game))
        except DeadlinePassed:
            logger.warning("a game of %s is stuck in a move: it is left to its thread, and not closed", type(self).__name__)
            session.abandon(self._close_or_log)


def close_or_log(game: Any, close: Callable[[Any], Any] = lambda game: game.close()) -> None:
    """Close a game. What that raises is logged and stops nothing: what was played is known already."""
    try:
        close(game)
    except Exception as error:
        logger.warning("a game of %s could not be closed: %r", type(game).__name__, error)
