"""What can go wrong between a client and a model, on request and reproducibly."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.model_server.exchange import ModelRequest

FAULTS = {
    "rate_limited": "status 429, with Retry-After",
    "server_error": "status 500",
    "cut_before_headers": "the connection is closed without an answer",
    "cut_in_body": "the connection is closed in the middle of the answer",
    "hung": "there is no answer until the client goes away",
    "empty_reply": "an answer with nothing in it",
    "malformed_json": "an answer that is not JSON",
    "overlong": "the error for a prompt that is too long",
}
"""The kinds of faults, and what the client sees."""

FAULT_HEADER = "X-Fault"
"""A request header that asks for a fault."""

CUT = "cut_connection"
"""Stands for one of the two kinds of cut, by the number of the request."""

_DRAWN = ("rate_limited", "server_error", CUT, "hung", "empty_reply", "malformed_json", "overlong")


@dataclass(frozen=True)
class Faults:
    """Faults by chance: what happens to a request follows from `seed` and its number.

    >>> faults = Faults(seed=5, rate_limited=0.2, server_error=0.1)
    >>> [faults.drawn(number) for number in range(1, 6)]
    [None, 'rate_limited', None, None, 'server_error']
    """

    seed: int = 0
    rate_limited: float = 0.0
    """Share of the requests, as each of the following."""
    server_error: float = 0.0
    cut_connection: float = 0.0
    """The connection is closed, before or after the headers."""
    hung: float = 0.0
    empty_reply: float = 0.0
    malformed_json: float = 0.0
    overlong: float = 0.0
    retry_after: float | None = 0.01
    """Seconds that a rate-limited client is told to wait; None tells it nothing."""

    def __post_init__(self) -> None:
        for name in _DRAWN:
            share = getattr(self, name)
            if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share <= 1:
                raise ConfigurationError(f"{name} must be a share of the requests, from 0 to 1, got {share!r}")
        total = sum(getattr(self, name) for name in _DRAWN)
        if total > 1 + 1e-9:
            raise ConfigurationError(f"a request has one fault at most, so the shares must add up to 1 or less, got {total:g}")
        if self.retry_after is not None and not self.retry_after >= 0:
            raise ConfigurationError(f"retry_after must be seconds from 0, or None, got {self.retry_after!r}")

    def drawn(self, number: int) -> str | None:
        """Return the fault of request `number`, or None."""
        digest = hashlib.blake2b(f"{self.seed}/{number}".encode(), digest_size=8).digest()
        drawn = int.from_bytes(digest) / 2**64
        for name in _DRAWN:
            share = getattr(self, name)
            if drawn < share:
                return exact_kind(name, number)
            drawn -= share
        return None

    def __call__(self, request: ModelRequest) -> str | None:
        """Return the fault of a request, or None."""
        return self.drawn(request.number)


FaultFunction: TypeAlias = Callable[[ModelRequest], str | None]
"""Decides what goes wrong with a request: a key of `FAULTS` (or ``"cut_connection"``), or None."""


def exact_kind(name: str, number: int) -> str:
    """Return a key of `FAULTS` for a fault that was asked for by name.

    Raises:
        ConfigurationError: If there is no such fault.
    """
    if name == CUT:
        return "cut_in_body" if number % 2 else "cut_before_headers"
    if name not in FAULTS:
        known = [*FAULTS, CUT]
        raise ConfigurationError(f"there is no fault {name!r}; known: {', '.join(known)}.{did_you_mean(name, known)}")
    return name
