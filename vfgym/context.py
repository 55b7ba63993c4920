"""What is in force while a rollout is played: the one context variable of rollouts, and the `RolloutContext` that is in it.

Whoever begins something (a run, a rollout, a request) puts what is new in force by ``with given(...)``, and `in_force` returns all of it to
what is called or awaited inside (clients, judges, tools), in tasks and on the threads of `vfgym.aio.threads` too. What one part of the
library can hand to another is an argument and not here. So the limits of an episode are the episode's own, and what plays another
environment inside has none of them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from vfgym.aio.background import close_unawaited
from vfgym.calls import Ready, ReadyList

if TYPE_CHECKING:
    from vfgym.limits import Meter, RolloutMeter
    from vfgym.state import State


@dataclass(frozen=True, slots=True)
class AuthoredRollout:
    """A rollout that an author's own method plays: its environment, and no copy of that, has the rollout's limits."""

    env: object
    limit: RolloutMeter | None = None
    """What it may spend; None where that is not limited."""
    made: list[State] = field(default_factory=list)
    """The states that it has made: one that raises takes its state with it."""


class RolloutContext(NamedTuple):
    """What is in force. A copy in another process has what is plain: the seconds that are left, and the keys of answers."""

    deadline: float | None = None
    """When what is awaited is cancelled, as a time of `time.monotonic`: clients begin no pause that could not end in time."""
    meters: tuple[Meter, ...] = ()
    """What counts requests, the outermost first."""
    keys: Any = None
    """Under which keys answers are kept (`vfgym.clients.cache.RequestKeys`); None without a cache."""
    pace: Any = None
    """How many requests may be under way at once (`vfgym.clients.pacing.Pace`); None outside of a run."""
    request: Any = None
    """The request that is under way (see `vfgym.clients.asking`)."""
    authored: AuthoredRollout | None = None
    """The author's own rollout that is played."""
    scored: Sequence[State] = ()
    """The episodes that are scored, so that what their functions ask of a judge is counted as theirs."""
    sub_call: Any = None
    """Asks the model of the sub-call that is answered (see `verifiers_compat.RLMEnv`)."""
    beginning: Any = None
    """The game that begins alone (see `vfgym.wrappers.games.session`): an opponent that looks ahead begins others as a part of that."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _context_with, (None if self.deadline is None else self.deadline - time.monotonic(), self.keys)


def _context_with(seconds_left: float | None, keys: Any) -> RolloutContext:
    return RolloutContext(None if seconds_left is None else time.monotonic() + seconds_left, keys=keys)


_context: ContextVar[RolloutContext] = ContextVar("rollout_context", default=RolloutContext())  # noqa: B039 (it is immutable)
_PLACES = {name: place for place, name in enumerate(RolloutContext._fields)}

in_force = _context.get
"""Returns what is in force here."""


class given:  # noqa: N801 (a context manager, which reads as a function)
    """Puts something in force inside a ``with``: the fields of `RolloutContext` that are given; the others stay.

    Steps (`vfgym.aio.steps`) never yield inside one, since they may go on in another task: see `within`.
    """

    __slots__ = ("_changes", "_token")

    def __init__(self, **changes: Any) -> None:
        """Take what changes."""
        self._changes = changes

    def __enter__(self) -> None:
        fields: list[Any] = [*_context.get()]
        for name, value in self._changes.items():  # in half the time of `_replace`, since each request gives something
            fields[_PLACES[name]] = value
        self._token = _context.set(RolloutContext._make(fields))

    def __exit__(self, *exc: object) -> None:
        try:
            _context.reset(self._token)
        except ValueError:  # a coroutine is closed from outside, where it was not in force
            pass


def keep_given(**changes: Any) -> None:
    """Put something in force for what the running task still does, steps too."""
    _context.set(_context.get()._replace(**changes))


def within(awaitable: Awaitable[Any], **changes: Any) -> Awaitable[Any]:
    """Return an awaitable that is awaited with something in force (see `given`)."""
    return awaitable if isinstance(awaitable, Ready | ReadyList) else _Within(awaitable, changes)


class _Within:
    __slots__ = ("_awaitable", "_changes")

    def __init__(self, awaitable: Awaitable[Any], changes: dict[str, Any]) -> None:
        self._awaitable, self._changes = awaitable, changes

    def __await__(self) -> Generator[Any, Any, Any]:
        with given(**self._changes):
            return (yield from self._awaitable.__await__())

    def close(self) -> None:
        """Give it up."""
        close_unawaited(self._awaitable)


def authored_limit(env: object) -> RolloutMeter | None:
    """Return the limits of the author's own rollout of an environment that is played here; None where there are none."""
    authored = in_force().authored
    return authored.limit if authored is not None and authored.env is env else None
