"""How long a client waits before it asks again: two minutes at most, and never past the rollout's deadline."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from typing import Any

import pytest

from tests.clients.canned_server import CUT, Canned, canned_server
from tests.clients.every_client import GIVEN, KINDS, client_of
from vfgym.aio.deadlines import Before
from vfgym.clients.http.retries import describe_refusal_to_wait, pause_before_retry, repeats, should_retry, too_long_a_pause
from vfgym.clients.pacing import Pace
from vfgym.context import given
from vfgym.errors import ModelError
from vfgym.messages import UserMessage

HELLO = [UserMessage("hello")]
DAYS_49 = 49 * 24 * 3600
A_WHILE = 30.0
"""Seconds after which somebody who waits has shown it; nobody who gives up at once takes so long."""


async def error_of(kind: str, answer: Any, deadline: float | None = None) -> tuple[str, int]:
    """Ask a server that gives one answer; return the text of the `ModelError`, and how often it was asked for a completion."""
    async with canned_server() as server:
        server.answers = [answer]
        client = client_of(kind, server.root)
        asked: Any = client.get_response(HELLO, "m", {"max_tokens": 5})
        if deadline is not None:
            asked = Before(time.monotonic() + deadline, asked)
        try:
            with pytest.raises(ModelError) as caught:
                async with asyncio.timeout(A_WHILE):
                    await asked
        finally:
            await client.close()
    return str(caught.value), sum(not path.endswith("/models") for path in server.paths)


@pytest.mark.parametrize("kind", [*KINDS, *GIVEN])
@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": str(DAYS_49)}, {"retry-after-ms": str(DAYS_49 * 1000), "x-should-retry": "true"}],
    ids=["seconds", "milliseconds, insisting"],
)
async def test_a_pause_that_is_too_long_is_given_up_at_once(kind: str, headers: dict[str, str]) -> None:
    said, count = await error_of(kind, Canned({"error": {"message": "come back in spring"}}, 429, headers))
    assert "come back in spring" in said
    assert "asked to wait 4233600 s" in said
    assert "120 s" in said
    assert count == 1


@pytest.mark.parametrize("kind", [*KINDS, "AsyncAnthropic"])
async def test_a_pause_that_would_end_after_the_deadline(kind: str) -> None:
    """Known by whatever bounds the rollout (`vfgym.aio.deadlines.Before`), so nobody waits for what cannot come in time."""
    said, count = await error_of(kind, Canned({}, 429, {"Retry-After": "100"}), deadline=60.0)
    assert "asked to wait 100 s" in said
    assert "deadline" in said
    assert count == 1


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "renderer"])
async def test_nothing_is_sent_again_when_the_deadline_is_near(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.clients.http.retries._FIRST_PAUSE", 100.0)
    monkeypatch.setattr("vfgym.clients.http.retries._LONGEST_PAUSE", 100.0)
    said, count = await error_of(kind, CUT, deadline=60.0)
    assert "APIConnectionError" in said
    assert count == 1


@pytest.mark.parametrize("kind", ["openai_chat_completions", "openai_responses", "anthropic_messages"])
async def test_redirects_without_an_end_are_followed_once(kind: str) -> None:
    """They are an answer, not a broken connection: the next one would be the same."""
    said, count = await error_of(kind, Canned({}, 307, {"Location": "/round/and/round"}))
    assert "APIConnectionError: Connection error" in said
    assert count < 30


def test_when_a_request_is_repeated() -> None:
    assert [status for status in (200, 400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 529) if should_retry(status, {})] == [
        *(408, 409, 429, 500, 502, 529),
    ]
    assert not should_retry(429, {"retry-after": "121"})
    for too_long in ("1e999", formatdate(time.time() + DAYS_49, usegmt=True)):
        assert not should_retry(429, {"retry-after": too_long})
    assert should_retry(429, {"retry-after": "120"})

    for status, said, again in ((400, "true", True), (500, "false", False), (400, "maybe", False), (500, "TRUE", True)):
        assert should_retry(status, {"x-should-retry": said}) is again
    assert not should_retry(500, {"x-should-retry": "true", "retry-after": "121"})


@pytest.mark.parametrize(
    ("retries", "max_retries", "status", "again"),
    [(0, 0, 429, False), (0, 1, 429, True), (1, 1, 429, False), (0, 1, None, True), (1, 1, None, False), (0, 1, 400, False)],
)
async def test_as_often_as_may_be(retries: int, max_retries: int, status: int | None, again: bool) -> None:
    assert await repeats(retries, max_retries, status, {"retry-after-ms": "0.01"}) is again


@pytest.mark.parametrize(("status", "refusals"), [(429, 1), (529, 1), (503, 0), (408, 0), (None, 0)])
async def test_others_are_held_back_where_the_provider_has_too_many_requests(status: int | None, refusals: int) -> None:
    pace = Pace()
    await pace.enter()
    with given(pace=pace):
        assert await repeats(0, 1, status, {"retry-after-ms": "1"})
    assert (pace.num_refusals, pace._running) == (refusals, 1)


@pytest.mark.parametrize(("deadline", "left"), [(-5.0, "0"), (50.0, "50")])
async def test_whoever_waits_knows_how_long_there_is(deadline: float, left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.clients.http.retries.time.monotonic", lambda: 1000.0)
    with given(deadline=1000.0 + deadline):
        assert too_long_a_pause({"retry-after": "100"}) == f"it asked to wait 100 s, and the rollout's deadline is in {left} s"
        assert too_long_a_pause({}) is None
        assert not await repeats(0, 1, 429, {"retry-after": "100"})
    assert too_long_a_pause({"retry-after": "100"}) is None
    assert describe_refusal_to_wait(ValueError()) is None


def test_how_long_a_pause_is() -> None:
    for retries, longest in ((0, 0.5), (1, 1.0), (3, 4.0), (4, 8.0), (2000, 8.0)):
        assert 0.75 * longest <= pause_before_retry(retries) <= longest
    assert pause_before_retry(9, {"retry-after-ms": "20", "retry-after": "7"}) == 0.02
    for headers, seconds in (({"retry-after": "7"}, 7), ({"retry-after": "120"}, 120), ({"retry-after-ms": "soon", "retry-after": "7"}, 7)):
        assert pause_before_retry(9, headers) == seconds
    assert 50 < pause_before_retry(0, {"retry-after": formatdate(time.time() + 60, usegmt=True)}) <= 60
    for odd in ("soon", "-3", "nan", "0", formatdate(0)):
        assert 0.375 <= pause_before_retry(0, {"retry-after": odd}) <= 0.5
