"""Whatever is sent counts, and is refused where a limit is used up, whoever sends it: retries, redirects, questions to a tokenizer."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from pathlib import Path
from typing import Any

import openai
import pytest

import vfgym
from tests.clients.canned_server import Canned, CannedServer
from tests.clients.every_client import GIVEN, KINDS, answers_by_route, client_of
from tests.clients.providers.test_openai_chat_completions_token import turn
from tests.models import InOrder, Mute, answer
from vfgym import Client, Response
from vfgym.clients import resolve_client
from vfgym.clients.asking import count_sending, count_sendings_of
from vfgym.clients.cache import RequestKeys, ResponseCache, opened
from vfgym.clients.pacing import Pace
from vfgym.context import given
from vfgym.errors import LimitReached, ModelError
from vfgym.limits import RolloutLimits, RolloutMeter
from vfgym.messages import UserMessage
from vfgym.model_server import ModelServer

HELLO = [UserMessage("hello")]


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


@pytest.mark.parametrize(
    ("kind", "refusals", "num_at_once"),
    [
        *[(kind, TWICE["429 and 503"], 8) for kind in (*KINDS, *GIVEN)],
        *[("openai_chat_completions", refusals, 1) for refusals in TWICE.values()],
    ],
)
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
    with given(meters=(meter,)):
        for _ in range(2):
            await client.get_response(HELLO, "m")
        with pytest.raises(LimitReached, match="turns is used up: 2 of 2"):
            await client.get_response(HELLO, "m")
    assert meter.spent.requests == server.num_requests == (6 if status == 429 else 2)
    await client.close()


# Whose request it is, and how it ends


class Own(Client):
    """Asks for a model of its own where none is given; raises what it is told."""

    def __init__(self, model: str | None = None, raises: BaseException | None = None) -> None:
        self.model, self.raises = model, raises

    async def get_response(self, prompt: Any, model: Any = "usual", *args: Any, **kwargs: Any) -> Response:
        if self.raises is not None:
            raise self.raises
        return answer("a", completion_tokens=2)


class Unnamed(Own):
    async def get_response(self, prompt: Any, model: Any = None, *args: Any, **kwargs: Any) -> Response:
        return answer("a", completion_tokens=2)


@pytest.mark.parametrize(
    ("client", "asked", "named"),
    [
        (Own("own"), ("given",), "given"),
        (Own("own"), (), "usual"),
        (Unnamed("own"), (), "own"),
        (Unnamed("own"), ("",), "own"),
        (Unnamed(), (), "(of Unnamed, unnamed)"),
    ],
)
async def test_a_request_is_counted_by_the_model_that_is_asked(client: Client, asked: Any, named: str) -> None:
    with vfgym.limit(prices={named: {"input": 1e6, "output": 1e6}}) as meter:
        await client.get_response(HELLO, *asked)
        await client.get_response(HELLO, **dict(zip(["model"], asked, strict=False)))
    assert (meter.spent.requests, meter.spent.input_tokens, meter.spent.output_tokens) == (2, 2, 4)
    assert meter.spent.cost == 6.0


@pytest.mark.parametrize(
    ("raised", "errors", "abandoned"),
    [(ModelError("x"), 1, 0), (ValueError("x"), 1, 0), (LimitReached("requests", 1, 1), 0, 0), (asyncio.CancelledError(), 0, 1)],
)
async def test_what_a_client_raises_is_raised_and_its_place_is_free_again(raised: BaseException, errors: int, abandoned: int) -> None:
    with vfgym.limit(requests=3) as meter:
        with pytest.raises(type(raised)) as caught:
            await Own(raises=raised).get_response(HELLO, "m")
        assert caught.value is raised
        assert (meter.spent.errors, meter.spent.abandoned) == (errors, abandoned)
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            for _ in range(2):
                group.create_task(Own().get_response(HELLO, "m"))


async def test_a_request_is_given_up_when_the_time_of_a_meter_is_over() -> None:
    client = Mute()
    with vfgym.limit(time=0.01) as meter, vfgym.limit(time=60), pytest.raises(LimitReached, match="time"):
        await client.get_response(HELLO, "m")
    assert client.cancelled == 1
    assert meter.reached is not None


@pytest.mark.parametrize("times", [(0.01, 60), (60, 0.01), (60, 0.01, 50)])
async def test_the_first_of_several_deadlines_is_the_one_that_is_named(times: tuple[float, ...]) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(vfgym.limit(requests=5))
        meters = [stack.enter_context(vfgym.limit(time=each)) for each in times]
        with pytest.raises(LimitReached) as caught:
            await Mute().get_response(HELLO, "m")
        assert (caught.value.limit, caught.value.allowed) == ("time", 0.01)
        assert caught.value.used >= 0.01
        assert [meter.reached for meter in meters] == [caught.value if each == 0.01 else None for each in times]
        assert [(meter.spent.requests, meter.spent.abandoned) for meter in meters] == [(1, 1)] * len(times)


async def test_a_meter_that_is_over_gives_nothing_up() -> None:
    meter = vfgym.limits.Meter(vfgym.limits.SpendingLimits(time=1e-9))
    meter.is_over = True
    with given(meters=(meter,)):
        assert (await Own().get_response(HELLO, "m")).message.content == "a"
    assert (meter.reached, meter.spent.requests) == (None, 1)


class AsksTwice(Client):
    """Asks another client twice for each request, and fails afterwards if it is told so."""

    def __init__(self, inner: Client, raises: BaseException | None = None) -> None:
        self.inner, self.raises = inner, raises

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        await self.inner.get_response(*args, **kwargs)
        response = await self.inner.get_response(*args, **kwargs)
        if self.raises is not None:
            raise self.raises
        return response


@pytest.mark.parametrize("raised", [None, ModelError("x"), asyncio.CancelledError()])
async def test_a_client_that_asks_another_is_counted_by_what_it_asks(raised: BaseException | None) -> None:
    client = AsksTwice(AsksTwice(Own()), raised)
    with vfgym.limit(requests=5) as meter:
        with contextlib.nullcontext() if raised is None else pytest.raises(type(raised)):
            await client.get_response(HELLO, "m")
        assert (meter.spent.requests, meter.spent.output_tokens, meter.spent.errors, meter.spent.abandoned) == (4, 8, 0, 0)
        with pytest.raises(LimitReached, match="5 of 5"):
            await client.get_response(HELLO, "m")
    assert meter.spent.requests == 5


async def test_the_failure_of_an_inner_client_counts_once() -> None:
    with vfgym.limit() as meter, pytest.raises(ModelError):
        await AsksTwice(Own(raises=ModelError("x"))).get_response(HELLO, "m")
    assert (meter.spent.requests, meter.spent.errors) == (1, 1)


async def test_what_one_meter_refuses_holds_no_place_in_another() -> None:
    with vfgym.limit(requests=1) as outer:
        with vfgym.limit(requests=1) as inner:
            await Own().get_response(HELLO, "m")
        assert inner.spent.requests == 1
        with vfgym.limit(requests=3) as other, pytest.raises(LimitReached) as caught:
            await Own().get_response(HELLO, "m")
    assert (caught.value.limit, caught.value.allowed) == ("requests", 1)
    assert (outer.reached, other.reached) == (caught.value, None)
    assert (outer._under_way, inner._under_way, other._under_way) == (0, 0, 0)


async def test_a_timeout_of_the_client_itself_is_not_the_meters() -> None:
    with vfgym.limit(time=60) as meter, pytest.raises(TimeoutError):
        await Own(raises=TimeoutError()).get_response(HELLO, "m")
    assert meter.reached is None


async def test_what_is_in_force_ends_with_its_block(tmp_path: Path) -> None:
    client = InOrder("a", "b")
    with opened(ResponseCache(tmp_path / "cache")) as cache:
        for _ in range(2):
            with given(keys=RequestKeys(cache, 3)):
                assert (await client.get_response(HELLO, "m")).message.content == "a"
            with contextlib.suppress(KeyError), given(keys=RequestKeys(cache, 0)):
                raise KeyError
        assert len(client.asked) == 1
        assert (await client.get_response(HELLO, "m")).message.content == "b"


async def test_a_request_at_a_pace_leaves_it_after_success_and_error() -> None:
    pace = Pace()
    with given(pace=pace):
        await Own().get_response(HELLO, "m")
        for raised in (ModelError("x"), asyncio.CancelledError()):
            with pytest.raises(type(raised)):
                await Own(raises=raised).get_response(HELLO, "m")
    assert pace._running == 0


async def test_a_pace_hears_of_answers_and_of_what_is_refused() -> None:
    refused = ModelError("x")
    refused.__cause__ = Busy()
    pace = Pace(4)
    pace._running = 3  # others
    with given(pace=pace):
        for raised in (asyncio.CancelledError(), ModelError("x"), refused):
            with pytest.raises(type(raised)):
                await Own(raises=raised).get_response(HELLO, "m")
            assert pace.allowed == (2 if raised is refused else float("inf"))
        pace._running = 0
        await Own().get_response(HELLO, "m")
    assert (pace.allowed, pace.num_refusals) == (2.5, 1)


class Busy(Exception):
    status_code = 529


async def test_a_cached_answer_is_of_the_same_question_to_the_same_client_and_costs_nothing(tmp_path: Path) -> None:
    tool = vfgym.Tool(name="look", description="", parameters={"type": "object", "properties": {}})
    plain, other = InOrder(*"abcdefgh"), AsksTwice(InOrder(*"xyz"))
    with opened(ResponseCache(tmp_path / "cache")) as cache, vfgym.limit() as meter:

        async def ask(client: Client, *args: Any, **kwargs: Any) -> Any:
            with given(keys=RequestKeys(cache, 3)):
                return (await client.get_response(*args, **kwargs)).message.content

        questions: list[tuple[Client, tuple[Any, ...], dict[str, Any]]] = [
            (plain, (HELLO, "m"), {}),
            (plain, (HELLO, "n"), {}),
            (plain, (HELLO, "m", {"temperature": 0}), {}),
            (plain, (HELLO, "m", {"temperature": 1}), {}),
            (plain, (HELLO, "m", None, [tool]), {}),
            (plain, ([UserMessage("bye")], "m"), {}),
            (other, (HELLO, "m"), {}),
        ]
        first = [await ask(client, *args, **kwargs) for client, args, kwargs in questions]
        assert first == ["a", "b", "c", "d", "e", "f", "y"]
        assert meter.spent.requests == 8
        again = [await ask(client, *args, **kwargs) for client, args, kwargs in questions]
        assert await ask(plain, HELLO, model="m", sampling_args={"temperature": 0}) == "c"
        assert again == first
        assert (meter.spent.requests, len(plain.asked)) == (8, 6)


def test_hooks_are_added_once_and_only_where_there_are_some() -> None:
    sdk = openai.AsyncOpenAI(api_key="k")
    for _ in range(2):
        count_sendings_of(sdk)
    assert sdk._client.event_hooks["request"] == [count_sending]

    async def look(response: Any) -> None: ...

    sdk = openai.AsyncOpenAI(api_key="k")
    sdk._client.event_hooks = {"response": [look]}
    count_sendings_of(sdk)
    assert sdk._client.event_hooks == {"request": [count_sending], "response": [look]}
    for other in (None, object(), openai.OpenAI(api_key="k")):
        count_sendings_of(other)
