"""`vfgym.context`: what is in force, where, and for how long."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from vfgym.aio.threads import on_thread
from vfgym.calls import Ready
from vfgym.clients.cache import RequestKeys, ResponseCache
from vfgym.context import AuthoredRollout, RolloutContext, authored_limit, given, in_force, keep_given, within
from vfgym.limits import Meter, RolloutLimits, RolloutMeter, SpendingLimits


def test_what_is_given_holds_in_its_block_and_the_rest_stays() -> None:
    before = in_force()
    with given(deadline=1.0, pace="a"):
        with contextlib.suppress(KeyError), given(pace="b"):
            assert in_force() == before._replace(deadline=1.0, pace="b")
            raise KeyError
        assert in_force() == before._replace(deadline=1.0, pace="a")
    assert in_force() is before
    with pytest.raises(KeyError, match="limits"), given(limits=1):
        pass


@pytest.mark.parametrize("name", RolloutContext._fields)
def test_each_field_is_given_by_itself(name: str) -> None:
    value = object()
    before = in_force()
    with given(**{name: value}):
        assert in_force()._asdict() == {**before._asdict(), name: value}
        keep_given(**{name: None})
        assert in_force()._asdict() == {**before._asdict(), name: None}
    assert in_force() is before
    assert before == (None, (), None, None, None, None, (), None, None)


async def test_what_is_kept_holds_for_the_rest_of_a_task_alone() -> None:
    async def play() -> Any:
        keep_given(pace="a")
        await asyncio.sleep(0)
        return in_force().pace, in_force().request

    with given(request="b"):
        assert await asyncio.create_task(play()) == ("a", "b")
        assert in_force().pace is None


async def test_what_is_awaited_within_something_may_fail_or_be_given_up() -> None:
    async def fail() -> None:
        assert in_force().pace == "a"
        raise KeyError

    with pytest.raises(KeyError):
        await within(fail(), pace="a")
    assert in_force().pace is None
    coroutine = fail()
    within(coroutine, pace="a").close()  # type: ignore[attr-defined]
    assert inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED


async def test_it_reaches_tasks_and_threads_and_leaves_others_alone() -> None:
    async def seen() -> Any:
        await asyncio.sleep(0)
        return in_force().pace, await on_thread(lambda: in_force().pace)

    with given(pace="a"):
        inside = asyncio.ensure_future(seen())
        awaited = asyncio.ensure_future(within(seen(), pace="b"))
    assert await asyncio.gather(inside, awaited, seen()) == [("a", "a"), ("b", "b"), (None, None)]
    assert isinstance(within(Ready(1), pace="b"), Ready)  # it was run already


async def test_a_coroutine_that_is_closed_from_outside_changes_nothing_there() -> None:
    async def waits() -> None:
        with given(pace="inside"):
            await asyncio.sleep(60)

    waiting = waits()
    task = asyncio.ensure_future(asyncio.sleep(0))
    task.get_loop().call_soon(waiting.send, None)
    await task
    await asyncio.sleep(0)
    with given(pace="outside"):
        waiting.close()
        assert in_force().pace == "outside"


def test_a_copy_in_another_process_has_the_seconds_that_are_left_and_the_keys(tmp_path: Path) -> None:
    with given(deadline=time.monotonic() + 60, keys=RequestKeys(ResponseCache(tmp_path), 3), meters=(Meter(SpendingLimits()),)):
        context = in_force()
    with pytest.MonkeyPatch.context() as patch:
        data = pickle.dumps(context)
        patch.setattr(time, "monotonic", lambda: 1000.0)
        copied = pickle.loads(data)
    assert 1050 < copied.deadline <= 1060
    question = {"answered_by": "s", "asked_model": "m", "prompt": [{"role": "user", "content": "?"}]}
    assert copied.keys.next_key(**question) == RequestKeys(ResponseCache(tmp_path), 3).next_key(**question)
    assert copied == copied._replace(meters=(), pace=None)
    assert pickle.loads(pickle.dumps(context._replace(deadline=None))).deadline is None


def test_an_authors_own_rollout_gives_its_limits_to_its_environment_alone() -> None:
    played, others, limit = object(), object(), RolloutMeter(RolloutLimits(turns=1))
    assert authored_limit(played) is None
    with given(authored=AuthoredRollout(played, limit)):
        assert (authored_limit(played), authored_limit(others)) == (limit, None)
