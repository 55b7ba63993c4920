"""How long a client waits before it asks again: two minutes at most, and never past the rollout's deadline."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from email.utils import formatdate
from typing import Any

import openai
import pytest

import vfgym
from tests.clients.canned_server import CUT, Canned, CannedServer, canned_server
from tests.clients.every_client import GIVEN, KINDS, answers_by_route, client_of
from tests.clients.providers.test_openai_chat_completions_token import turn
from vfgym.aio.deadlines import Before
from vfgym.clients import resolve_client
from vfgym.errors import LimitReached, ModelError
from vfgym.limits import RolloutLimits, RolloutMeter, measured_by
from vfgym.messages import UserMessage
from vfgym.model_server import ModelServer

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


@pytest.mark.parametrize("kind", ["openai_chat_completions", "openai_responses", "anthropic_messages", "AsyncAnthropic"])
async def test_a_date_that_is_too_far(kind: str) -> None:
    said, count = await error_of(kind, Canned({}, 503, {"Retry-After": formatdate(time.time() + DAYS_49, usegmt=True)}))
    assert "asked to wait 4233" in said
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


async def test_after_the_rollout_its_deadline_is_forgotten() -> None:
    from vfgym.aio.deadlines import rollout_deadline

    async def seen() -> float | None:
        return rollout_deadline.get()

    async def inner(deadline: float) -> Any:
        return await Before(deadline, seen())

    now = time.monotonic()
    assert await Before(now + 60, seen()) == now + 60
    assert await Before(now + 60, inner(now + 90)) == now + 60
    assert await Before(now + 60, inner(now + 30)) == now + 30
    assert rollout_deadline.get() is None


# Retries count


async def busy(server: CannedServer, client: Any, *refusals: Any) -> None:
    """Let every request be refused so before it is answered, and count from now on.

    The client has asked already: the renderers' asks for the list of models once, under a lock of the first event loop (renderers 0.1.12).
    """
    server.routes = answers_by_route()
    await client.get_response(HELLO, "m", {"max_tokens": 5})
    server.num_requests = 0
    turn = [*refusals, None]
    count = itertools.count()
    good = answers_by_route()

    def refuse_first(route: str) -> Any:
        def answer_to(body: Any) -> Any:
            return turn[next(count) % len(turn)] or good[route]

        return answer_to

    server.routes = {route: refuse_first(route) for route in good}


AT_ONCE = {"retry-after-ms": "1"}
TWICE = {
    "429": [Canned({}, 429, AT_ONCE)] * 2,
    "500": [Canned({}, 500, AT_ONCE)] * 2,
    "429 and 503": [Canned({}, 429, AT_ONCE), Canned({}, 503, AT_ONCE)],
}


@pytest.mark.parametrize("kind", [*KINDS, *GIVEN])
@pytest.mark.parametrize("refusals", TWICE.values(), ids=TWICE)
@pytest.mark.parametrize("num_at_once", [1, 8])
async def test_whatever_is_sent_counts_and_no_more_is_sent_than_is_allowed(
    kind: str, refusals: list[Any], num_at_once: int, server: CannedServer
) -> None:
    client = client_of(kind, server.root)
    await busy(server, client, *refusals)

    async def keep_asking() -> None:
        while True:
            await client.get_response(HELLO, "m", {"max_tokens": 5})

    with vfgym.limit(requests=10) as meter:
        outcomes = await asyncio.gather(*(keep_asking() for _ in range(num_at_once)), return_exceptions=True)
    assert [type(each) for each in outcomes] == [LimitReached] * num_at_once
    assert {(each.limit, each.allowed) for each in outcomes if isinstance(each, LimitReached)} == {("requests", 10)}
    assert server.num_requests == meter.spent.requests == 10
    await client.get_response(HELLO, "m", {"max_tokens": 5})  # outside, nothing is refused
    await client.close()


@pytest.mark.parametrize("kind", [*KINDS, *GIVEN])
async def test_a_request_that_fails_for_good_counts_as_often_as_it_was_sent(kind: str, server: CannedServer) -> None:
    client = client_of(kind, server.root, max_retries=2)
    await busy(server, client, *[Canned({}, 500, AT_ONCE)] * 3)
    with vfgym.limit() as outer, vfgym.limit() as meter:
        with pytest.raises(ModelError):
            await client.get_response(HELLO, "m", {"max_tokens": 5})
        assert (server.num_requests, meter.spent.errors) == (meter.spent.requests, 1)
        await client.get_response(HELLO, "m", {"max_tokens": 5})
    assert server.num_requests == meter.spent.requests == outer.spent.requests == 4
    await client.close()


@pytest.mark.parametrize("kind", ["openai_chat_completions", "openai_responses", "AsyncOpenAI", "AsyncAnthropic"])
async def test_where_a_request_is_redirected_to_counts(kind: str, server: CannedServer) -> None:
    client = client_of(kind, server.root)
    good = answers_by_route()
    server.routes = {route: Canned({}, 307, {"Location": f"/moved{route}"}) for route in good} | {
        f"/moved{route}": good[route] for route in good
    }
    with vfgym.limit(requests=5) as meter:
        for _ in range(2):
            await client.get_response(HELLO, "m", {"max_tokens": 5})
        with pytest.raises(LimitReached):
            await client.get_response(HELLO, "m", {"max_tokens": 5})
    assert server.num_requests == meter.spent.requests == 5
    await client.close()


async def test_questions_to_a_tokenizer_count(server: CannedServer) -> None:
    with ModelServer() as served:
        client = client_of("openai_chat_completions_token", served.url)
        with vfgym.limit(requests=20) as meter:
            first = await client.get_response(HELLO, "echo")
            steps = [turn(HELLO, first)]
            conversation = [*HELLO, *steps[0]["completion"], UserMessage("more")]
            before = meter.spent.requests
            for _ in range(9):
                with contextlib.suppress(LimitReached):
                    await client.get_response(conversation, "echo", state={"trajectory": steps})
        await client.close()
        assert before == 1
        assert meter.reached is not None
        assert served.num_requests == meter.spent.requests == 20


async def test_a_client_of_an_sdk_keeps_its_own_hooks_and_is_counted_once(server: CannedServer) -> None:
    seen: list[str] = []

    async def look(request: Any) -> None:
        seen.append(request.url.path)

    sdk = openai.AsyncOpenAI(api_key="k", base_url=server.url)
    sdk._client.event_hooks = {"request": [look]}
    clients = [resolve_client(sdk) for _ in range(3)]
    with vfgym.limit() as meter:
        for client in clients:
            await client.get_response(HELLO, "m")
    assert (meter.spent.requests, seen) == (3, ["/v1/chat/completions"] * 3)
    await sdk.close()


@pytest.mark.parametrize("status", [200, 429])
async def test_a_turn_of_a_rollout_counts_once_however_often_it_was_sent(status: int, server: CannedServer) -> None:
    meter = RolloutMeter(RolloutLimits(turns=2))
    meter.requests_are_turns = True
    client = client_of("openai_chat_completions", server.root)
    await busy(server, client, *[Canned({}, 429, AT_ONCE)] * (2 if status == 429 else 0))
    with measured_by(meter):
        for _ in range(2):
            await client.get_response(HELLO, "m")
        with pytest.raises(LimitReached, match="turns is used up: 2 of 2"):
            await client.get_response(HELLO, "m")
    assert meter.spent.requests == server.num_requests == (6 if status == 429 else 2)
    await client.close()
