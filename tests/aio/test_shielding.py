"""What must come to its end whoever is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from vfgym.aio.shielding import await_shielded


async def test_results_and_errors_come_through() -> None:
    async def failing() -> None:
        raise KeyError("x")

    assert await await_shielded(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(KeyError):
        await await_shielded(failing())


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancellation_waits_for_the_end(fails: bool) -> None:
    may_end, began, ended = asyncio.Event(), asyncio.Event(), []

    async def slow() -> None:
        began.set()
        await may_end.wait()
        ended.append(True)
        if fails:
            raise KeyError("x")

    task = asyncio.ensure_future(await_shielded(slow()))
    await began.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
