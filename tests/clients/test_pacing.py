"""How many requests are under way at once: fewer after a refusal, for all of a run, and more again after answers."""

from __future__ import annotations

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest

from vfgym import ClientConfig, UserMessage
from vfgym.clients import pacing, resolve_client
from vfgym.clients.pacing import Pace
from vfgym.context import given
from vfgym.errors import LimitReached
from vfgym.limits import limit
from vfgym.model_server import ModelRequest, ModelServer
from vfgym.testing import ScriptedClient


class Refusal(Exception):
    status_code = 429


async def enter(pace: Pace, count: int) -> None:
    for _ in range(count):
        await pace.enter()


async def test_a_refusal_halves_what_is_allowed_once_for_all_that_were_under_way() -> None:
    pace = Pace(16)
    await enter(pace, 16)
    for _ in range(16):
        pace.note_failure(Refusal())
    assert (pace.allowed, pace.num_refusals) == (8, 16)


async def test_what_follows_from_a_refusal_is_found_among_the_causes() -> None:
    pace = Pace(4)
    await enter(pace, 4)
    error = ValueError()
    error.__cause__ = Refusal()
    pace.note_failure(error)
    assert pace.allowed == 2
    pace.note_failure(ValueError())
    assert pace.num_refusals == 1


@pytest.mark.parametrize(("status", "allowed"), [(429, 2), (529, 2), (503, math.inf), (400, math.inf), (None, math.inf)])
def test_only_what_says_that_there_are_too_many_is_a_refusal(status: int | None, allowed: float) -> None:
    pace = Pace()
    pace._running = 4
    error = Refusal()
    error.status_code = status  # type: ignore[assignment]
    pace.note_failure(error)
    assert (pace.allowed, pace.num_refusals) == (allowed, int(allowed == 2))


def test_a_later_refusal_halves_it_again_but_none_while_the_provider_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(pacing, "time", SimpleNamespace(monotonic=lambda: clock.now))
    pace = Pace(32)
    pace._running = 40
    for clock.now, seconds, allowed, held in (
        *((100.0, 0.0, 16, 100.0), (100.9, 0.0, 16, 100.9), (101.0, 5.0, 8, 106.0)),
        *((105.9, 0.0, 8, 106.0), (106.0, 0.0, 4, 106.0)),
    ):
        pace._note_refusal(seconds)
        assert (pace.allowed, pace._held_until) == (allowed, held), "a later refusal that asks for no time does not shorten the wait"
    pace._running = 3
    clock.now = 200.0
    pace._note_refusal(0.0)
    assert pace.allowed == 1.5, "half of those that were under way"


async def test_an_answer_lets_one_that_waits_begin() -> None:
    pace = Pace(8)
    await enter(pace, 3)
    pace.note_failure(Refusal())
    for _ in range(2):
        pace.leave()
    assert (pace.allowed, pace._running) == (1.5, 1)
    await enter(pace, 1)
    waiting = asyncio.ensure_future(pace.enter())
    await asyncio.sleep(0)
    assert not waiting.done()
    pace.note_answer()
    async with asyncio.timeout(5):
        await waiting
    assert pace._running == 3


async def test_a_pause_leaves_its_place_to_others_and_takes_one_again() -> None:
    pace = Pace(4)
    await enter(pace, 4)
    pausing = asyncio.ensure_future(pace.pause(0.001))
    await asyncio.sleep(0)
    assert (pace._running, pace.allowed, pace.num_refusals) == (3, 2, 1)
    while not pace._waiting:
        await asyncio.sleep(0.001)
    assert not pausing.done()
    for _ in range(2):
        pace.leave()
    async with asyncio.timeout(5):
        await pausing
    assert pace._running == 2


async def test_answers_raise_it_again_until_there_is_no_limit() -> None:
    pace = Pace(8)
    await enter(pace, 8)
    pace.note_failure(Refusal())
    before = pace.allowed
    for _ in range(5):
        pace.note_answer()
    assert before + 0.9 < pace.allowed <= before + 1.25, "about one more for as many answers as are allowed"
    for _ in range(200):
        pace.note_answer()
    assert pace.allowed == math.inf


async def test_answers_to_earlier_requests_do_not_end_the_time_for_which_the_provider_is_left_alone() -> None:
    pace = Pace(2)
    await enter(pace, 2)
    pausing = asyncio.create_task(pace.pause(60))
    await asyncio.sleep(0)
    pace.note_answer()
    pace.leave()
    entering = asyncio.create_task(pace.enter())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not entering.done()
    for task in (pausing, entering):
        task.cancel()
    await asyncio.wait({pausing, entering})


async def test_one_is_always_allowed() -> None:
    pace = Pace(2)
    await pace.enter()
    pace.note_failure(Refusal())
    assert pace.allowed == 1


async def test_who_waits_goes_on_in_order_and_a_cancelled_one_is_passed_over() -> None:
    pace = Pace(4)
    await pace.enter()
    pace.note_failure(Refusal())
    assert pace.allowed == 1
    order: list[int] = []

    async def work(number: int) -> None:
        await pace.enter()
        order.append(number)
        pace.leave()

    tasks = [asyncio.ensure_future(work(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    pace.leave()
    await asyncio.gather(*tasks[1:])
    assert order == [1, 2, 3]


async def test_who_is_cancelled_while_the_provider_is_waited_for_passes_its_turn_on() -> None:
    pace = Pace(2)
    await pace.enter()
    pace.note_failure(Refusal())
    first, second = (asyncio.ensure_future(pace.enter()) for _ in range(2))
    await asyncio.sleep(0)
    pace._note_refusal(0.05)
    pace.leave()
    for _ in range(3):
        await asyncio.sleep(0)  # the first one has its turn, and waits for the provider
    first.cancel()
    async with asyncio.timeout(5):
        await second


async def test_a_cancelled_pause_leaves_as_many_under_way_as_before() -> None:
    pace = Pace(4)
    await enter(pace, 2)
    pausing = asyncio.ensure_future(pace.pause(60))
    await asyncio.sleep(0)
    assert pace._running == 1
    pausing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pausing
    assert pace._running == 2


async def test_a_provider_that_bears_few_requests_gets_few_and_answers_all() -> None:
    """The server refuses what is more than it bears; the run finds out how much that is."""
    running = most = 0
    bears = 4

    async def answer(request: ModelRequest) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(0.002)
            return "yes"
        finally:
            running -= 1

    def fault(request: Any) -> str | None:
        return "rate_limited" if running >= bears else None

    pace = Pace(32)
    async with ModelServer({"m": answer}, faults=fault) as server:
        client = resolve_client(ClientConfig(api_base_url=server.openai_url, api_key_var="NONE", max_retries=50))
        with given(pace=pace):
            answers = await asyncio.gather(*(client.get_response([UserMessage("?")], "m") for _ in range(100)))
        await client.close()
    assert len(answers) == 100
    assert most <= bears
    assert pace.num_refusals > 0
    assert pace._running == 0


async def test_who_waits_for_a_busy_provider_is_given_up_when_its_time_is_over() -> None:
    pace = Pace(1)
    await enter(pace, 1)
    pace.note_failure(Refusal())
    with given(pace=pace), limit(time=0.05), pytest.raises(LimitReached, match="time"):
        await ScriptedClient(["yes"]).get_response([UserMessage("?")], "m", state={"trajectory": []})
    pace.leave()
    with given(pace=pace):
        assert (await ScriptedClient(["yes"]).get_response([UserMessage("?")], "m", state={"trajectory": []})).message.content == "yes"
    assert pace._running == 0
