"""What others may take of this process: how many descriptors there are for their connections, and how these are shared out.

Most systems start a process with 1,024, which a run with many rollouts needs, and a few programs that hold connections open would use up.
"""

from __future__ import annotations

import functools
import sys

_OF_CONNECTIONS = 4
"""One of so many descriptors may be a connection that others opened; the rest are in reserve for files, pipes and our own connections."""
_MOST = 1 << 20
"""Descriptors that are asked for, at most: macOS refuses "unlimited"."""
_UNKNOWN = 1024


class TooMuch(Exception):
    """A request that is refused for its size or its slowness, with the HTTP status that says so."""

    def __init__(self, status: int, message: str) -> None:
        """Say what is too much."""
        super().__init__(message)
        self.status = status


@functools.cache
def raise_descriptor_limit() -> int:
    """Raise the soft limit of descriptors to the hard one, once, and return it."""
    if sys.platform == "win32":
        return _UNKNOWN
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):  # the system allows less than it says
            return soft
        return wanted
    return wanted if soft == resource.RLIM_INFINITY else soft


_RESERVE = 256


def all_but_a_reserve() -> int:
    """Return how many connections a server may have that is all that its process is for."""
    limit = raise_descriptor_limit()
    return max(limit // 2, limit - _RESERVE)


def most_connections() -> int:
    """Return how many connections others may have open to servers of this process."""
    return max(64, raise_descriptor_limit() // _OF_CONNECTIONS)


def fair_share(total: int, holders: int, *, least: int, most: int) -> int:
    """Return how much of something one of several holders may have, so that no few of them take it all.

    >>> fair_share(1000, 2, least=8, most=128), fair_share(1000, 20, least=8, most=128), fair_share(1000, 500, least=8, most=128)
    (128, 50, 8)
    """
    return max(least, min(most, total // max(1, holders)))
