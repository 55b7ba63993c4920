"""What every sandbox has, whatever its backend: an id, refusals of what the backend can't do, and an end."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from typing import Any

import pytest

from vfgym.errors import SandboxError
from vfgym.sandboxes import SandboxSpec
from vfgym.sandboxes.base import Sandbox, close_quietly
from vfgym.sandboxes.spec import TreeSnapshot


class Plain(Sandbox):
    """Can do no more than a backend must; its end may wait or fail."""

    backend = "plain"
    is_alive = True

    def __init__(self, may_close: asyncio.Event | None = None, error: BaseException | None = None) -> None:
        super().__init__(SandboxSpec())
        self.may_close, self.error = may_close, error
        self.num_closed = 0

    async def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    exec = python = read_file = write_file = upload = download = _refuse

    async def close(self) -> None:
        if self.may_close is not None:
            await self.may_close.wait()
        self.num_closed += 1
        if self.error is not None:
            raise self.error


def test_each_has_an_id_of_its_own() -> None:
    one, other = Plain(), Plain()
    assert one.id != other.id
    assert one.id.startswith("vfgym-")
    assert len(one.id) == len("vfgym-") + 16


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_running_one_can_be_neither_pickled_nor_copied(take: Any) -> None:
    sandbox = Plain()
    with pytest.raises(TypeError) as caught:
        take(sandbox)
    assert str(caught.value) == (
        f"a running sandbox ({sandbox.id}) can be neither pickled nor copied; snapshot() and restore() are for its files"
    )


@pytest.mark.parametrize(
    ("method", "args", "says"),
    [
        ("snapshot", (), "sandboxes of the backend plain can't be snapshotted"),
        ("restore", (TreeSnapshot(()),), "sandboxes of the backend plain can't be restored"),
        ("copy_to", (None, "a"), "files can't be copied out of sandboxes of the backend plain into others"),
        ("end_interpreter", (), "sandboxes of the backend plain can't end the interpreter of their cells"),
    ],
)
async def test_what_a_backend_need_not_do_is_refused_by_its_name(method: str, args: Any, says: str) -> None:
    with pytest.raises(SandboxError) as caught:
        await getattr(Plain(), method)(*args)
    assert str(caught.value) == says


@pytest.mark.parametrize("error", [None, KeyError("x"), asyncio.CancelledError(), KeyboardInterrupt()])
async def test_a_block_ends_it_and_lets_errors_out(error: BaseException | None) -> None:
    sandbox = Plain()
    try:
        async with sandbox as given:
            assert given is sandbox
            assert sandbox.num_closed == 0
            if error is not None:
                raise error
    except BaseException as caught:
        assert caught is error
    else:
        assert error is None
    assert sandbox.num_closed == 1


async def test_what_goes_wrong_while_one_is_closed_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    sandbox = Plain(error=OSError("no such container"))
    with caplog.at_level(logging.ERROR, "vfgym"):
        await close_quietly(sandbox)
    [record] = caplog.records
    assert record.getMessage() == f"{sandbox.id} could not be closed"
    assert record.exc_info is not None
    assert record.exc_info[1] is sandbox.error


async def test_one_is_closed_to_the_end_also_while_whoever_waits_is_cancelled() -> None:
    sandbox = Plain(may_close=asyncio.Event())
    closing = asyncio.ensure_future(close_quietly(sandbox))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert sandbox.num_closed == 0
    assert sandbox.may_close is not None
    sandbox.may_close.set()
    async with asyncio.timeout(30):
        while not sandbox.num_closed:
            await asyncio.sleep(0)
