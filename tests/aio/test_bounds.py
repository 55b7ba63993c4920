"""How many descriptors there are for connections of others, and how they are shared out."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from typing import Any

import pytest

from vfgym.aio import bounds
from vfgym.aio.bounds import TooMuch, all_but_a_reserve, fair_share, most_connections, raise_descriptor_limit

INFINITY = resource.RLIM_INFINITY


@pytest.fixture(autouse=True)
def unknown() -> Iterator[None]:
    raise_descriptor_limit.cache_clear()
    yield
    raise_descriptor_limit.cache_clear()


@pytest.mark.parametrize("refusal", [ValueError, OSError])
@pytest.mark.parametrize(
    ("soft", "hard", "is_allowed", "limit", "asked"),
    [
        *[(1024, 4096, True, 4096, [(4096, 4096)]), (1024, 4096, False, 1024, [(4096, 4096)]), (4096, 4096, True, 4096, [])],
        (1024, 1 << 30, True, 1 << 20, [(1 << 20, 1 << 30)]),
        (1024, INFINITY, True, 1 << 20, [(1 << 20, INFINITY)]),
        (INFINITY, INFINITY, True, 1 << 20, []),
        (1 << 22, 1 << 30, True, 1 << 22, []),
    ],
)
def test_the_soft_limit_is_raised_once(
    soft: int, hard: int, is_allowed: bool, limit: int, asked: list[Any], refusal: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    def raised(_: int, limits: tuple[int, int]) -> None:
        calls.append(limits)
        if not is_allowed:
            raise refusal

    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", raised)
    assert ([raise_descriptor_limit() for _ in range(2)], calls) == ([limit] * 2, asked)


@pytest.mark.parametrize(
    ("limit", "of_a_servers_own", "of_others"), [(100, 50, 64), (1024, 768, 256), (400, 200, 100), (1 << 20, (1 << 20) - 256, 1 << 18)]
)
def test_what_others_may_take(limit: int, of_a_servers_own: int, of_others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "raise_descriptor_limit", lambda: limit)
    assert (all_but_a_reserve(), most_connections()) == (of_a_servers_own, of_others)


@pytest.mark.parametrize(("holders", "share"), [(0, 128), (1, 128), (10, 100), (126, 8), (10**6, 8)])
def test_a_fair_share(holders: int, share: int) -> None:
    assert fair_share(1000, holders, least=8, most=128) == share


def test_what_is_too_much_says_its_status() -> None:
    error = TooMuch(413, "too large")
    assert (error.status, str(error)) == (413, "too large")
