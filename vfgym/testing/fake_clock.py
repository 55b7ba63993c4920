"""`FakeClock`: time that passes when a test says so."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any

from vfgym.aio import background

_CLOCKS = ("monotonic", "time", "perf_counter")


class FakeClock:
    """While it is entered, the clocks of `time` stand still, and `advance` is all that moves them.

    The library reads its deadlines from these clocks, and event loops their timers, so an episode is timed out without waiting. Real waits
    last as long as ever: a `time.sleep`, a process, a server. What reads the clock by a name of its own (``from time import monotonic``)
    goes on reading the real one.

    >>> import vfgym
    >>> env = vfgym.SingleTurnEnv(dataset=[{"question": "6 * 7?"}], timeout_seconds=60)
    >>> with FakeClock() as clock:
    ...     _ = env.reset(seed=0)
    ...     clock.advance(61)
    ...     outcome = env.step("42, but late")
    >>> outcome.truncated, outcome.info["stop_condition"]
    (True, 'timeout_reached')

    A hook or a tool that takes long is one that advances the clock and waits: it is cancelled where a deadline has passed.
    """

    def __init__(self) -> None:
        """Make a clock that does not run yet."""
        self.elapsed = 0.0
        """Seconds by which it was advanced."""
        self._real: dict[str, Any] = {}

    def __enter__(self) -> FakeClock:
        """Stop the clocks.

        Raises:
            RuntimeError: If they are stopped already by this one.
        """
        if self._real:
            raise RuntimeError("this FakeClock is entered already: make another one")
        self.elapsed = 0.0
        for name in _CLOCKS:
            self._real[name] = getattr(time, name)
            setattr(time, name, self._standing(self._real[name]()))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Let the clocks run again."""
        for name, real in self._real.items():
            setattr(time, name, real)
        self._real = {}
        self._wake_loops()

    def _standing(self, began: float) -> Any:
        return lambda: began + self.elapsed

    def advance(self, seconds: float) -> None:
        """Let time pass, from any thread. Timers of event loops that are due by then go off.

        Args:
            seconds: How many, 0 or more.

        Raises:
            ValueError: If it is less than 0, or not a number.
        """
        if not seconds >= 0:
            raise ValueError(f"time passes by 0 seconds or more, not by {seconds}")
        self.elapsed += seconds
        self._wake_loops()

    def _wake_loops(self) -> None:
        """Let the loops that wait for a timer look at the clock."""
        loops = {background.running_loop()}
        if background._background is not None:
            loops.add(background._background.loop)
        for loop in loops - {None}:
            if isinstance(loop, asyncio.AbstractEventLoop) and not loop.is_closed():
                loop.call_soon_threadsafe(_look)


def _look() -> None:
    """Nothing: the loop looks at its timers after it."""
