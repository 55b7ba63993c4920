"""Servers that are started for a project: its manifest, a pool of processes that all end, and what is said where one does not start."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import signal
from pathlib import Path
from typing import Any, cast

import pytest

from tests.wrappers.openenv.playing import show_total, started_by, write_project
from vfgym.aio.background import on_background_loop, wait
from vfgym.errors import ConfigurationError, InfraError
from vfgym.wrappers.openenv import OpenEnvEnv
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.servers import OpenEnvServer
from vfgym.wrappers.openenv.starting import ServerProcess, StartedServers, start_process, wait_until_reached


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def leased(source: StartedServers) -> list[asyncio.subprocess.Process]:
    return [started._process for started in source._leased if isinstance(started, ServerProcess)]


def test_as_many_servers_run_as_episodes_are_played_at_once(tmp_path: Path) -> None:
    """They are kept for the episodes that follow, one that died is replaced, and all end with the environment."""
    source = started_by(write_project(tmp_path))
    env = OpenEnvEnv(source, show_total)
    other = env.fork()
    env.reset(seed=1)
    other.reset(seed=2)
    assert (env.step("1").observation[-1].content, other.step("1").observation[-1].content) == ("2", "3")
    processes = leased(source)
    assert len(processes) == 2
    env.reset(seed=3)
    assert leased(source) == processes[::-1]
    os.killpg(processes[0].pid, signal.SIGKILL)
    assert "ServerError" in env.step("1").info["error"]
    assert env.reset(seed=4)[0][0].content == "4"
    ids = [process.pid for process in leased(source)]
    env.close()
    other.close()
    assert not any(is_running(number) for number in ids)


def test_a_server_that_died_and_is_not_known_to_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the event loop a moment to hear of it."""
    source = started_by(write_project(tmp_path))
    env = OpenEnvEnv(source, show_total)
    try:
        [started] = source._idle
        assert isinstance(started, ServerProcess)
        assert started.server.timeout == 50
        monkeypatch.setattr(ServerProcess, "is_alive", True)
        os.killpg(started._process.pid, signal.SIGKILL)
        assert env.reset(seed=4)[0][0].content == "4"
        assert started not in [*source._idle, *source._leased]
    finally:
        env.close()


def test_a_server_that_does_not_start_says_what_it_wrote(tmp_path: Path) -> None:
    """The number of its port is replaced, no part of another number is, and the command runs in the project's folder."""
    command = "head -c 3000 /dev/zero; echo no such module; echo $PORT 8000 18000 80001; pwd >&2; exit 3"
    source = started_by(write_project(tmp_path, start_command=command))
    with pytest.raises(ConfigurationError) as caught:
        OpenEnvEnv(source, show_total)
    said, _, wrote = str(caught.value).partition("\nIt wrote last:\n")
    assert said.endswith(f"ended as soon as it was started. It was started by: {command}")
    assert len(wrote) == 2000
    assert re.fullmatch(rf"\0+no such module\n(\d+) \1 18000 80001\n{re.escape(str(tmp_path))}", wrote)


def test_a_server_that_is_not_reached_in_time_is_ended(tmp_path: Path) -> None:
    async def start() -> None:
        await start_process("sleep 600 & echo waiting; wait", tmp_path, 8000, start_timeout=0.3, request_timeout=60)

    with pytest.raises(ServerError, match=r"(?s)could not be reached 0.3 s after it was started.*waiting"):
        wait(on_background_loop(start))


def test_a_start_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    """The test fails where a process is left."""

    async def start_and_cancel() -> None:
        starting = asyncio.ensure_future(start_process("sleep 600", tmp_path, 8000, start_timeout=60, request_timeout=60))
        done, _ = await asyncio.wait((starting,), timeout=0.3)
        assert not done
        starting.cancel()
        await asyncio.wait((starting,))

    wait(on_background_loop(start_and_cancel))


def test_servers_that_are_being_started_end_with_their_environment(tmp_path: Path) -> None:
    """Whoever waits for one is told so. The test fails where a process is left."""
    source = started_by(write_project(tmp_path, start_command="sleep 600"))

    async def start_and_close() -> None:
        leasing = asyncio.ensure_future(source.lease())
        done, _ = await asyncio.wait((leasing,), timeout=0.3)
        assert not done
        await source.close()
        with pytest.raises(InfraError, match="was closed while"):
            await leasing

    wait(on_background_loop(start_and_close))


def test_no_server_is_left_where_an_environment_cannot_be_defined(tmp_path: Path) -> None:
    source = started_by(write_project(tmp_path))
    with pytest.raises(ConfigurationError, match="max_invalid_moves"):
        OpenEnvEnv(source, show_total, max_invalid_moves=0)
    assert source._idle == []


class Fake:
    """A server that was started, as a pool sees it: it answers as it is told, and counts how often it was stopped."""

    def __init__(self, answer: BaseException | None = None, *, is_alive: bool = True) -> None:
        self.server = cast(OpenEnvServer, self)
        self.answer, self.is_alive, self.stops = answer, is_alive, 0

    async def read_action_schema(self) -> dict[str, Any]:
        if self.answer is not None:
            raise self.answer
        return {}

    async def stop(self) -> None:
        self.stops += 1


def starts(*outcomes: Fake | BaseException) -> StartedServers:
    """Return a source that starts these servers, one after the other."""
    left = list(outcomes)

    async def start() -> Fake:
        outcome = left.pop(0)
        if isinstance(outcome, Fake):
            return outcome
        raise outcome

    return StartedServers(start)


async def test_a_pool_starts_a_server_where_none_that_answers_is_idle() -> None:
    dead, silent, lasting, new = Fake(), Fake(), Fake(), Fake()
    source = starts(dead, silent, lasting, new)
    assert [await source.lease() for _ in range(3)] == [dead, silent, lasting]
    await source.give_back(Fake().server)
    for each in (lasting, silent, dead):
        await source.give_back(each.server)
        await source.give_back(each.server)
    dead.is_alive, silent.answer = False, ServerError("http://a", "is gone")
    assert [await source.lease() for _ in range(2)] == [lasting, new]
    assert [each.stops for each in (dead, silent, lasting, new)] == [1, 1, 0, 0]
    await source.give_back(new.server)
    await source.close()
    await source.close()
    assert [each.stops for each in (dead, silent, lasting, new)] == [1, 1, 1, 1]


@pytest.mark.parametrize("error", [asyncio.CancelledError(), RuntimeError("odd")], ids=repr)
async def test_a_server_that_was_asked_in_vain_whether_it_answers_stays_in_its_pool(error: BaseException) -> None:
    started = Fake()
    source = starts(started)
    await source.give_back(await source.lease())
    started.answer = error
    with pytest.raises(type(error)):
        await source.lease()
    started.answer = None
    assert await source.lease() is started.server
    await source.close()


async def test_a_pool_whose_start_failed_starts_the_next_server() -> None:
    started = Fake()
    source = starts(ServerError("http://a", "is gone"), started)
    with pytest.raises(ServerError, match="is gone"):
        await source.lease()
    assert await source.lease() is started.server
    await source.close()
    assert started.stops == 1


@pytest.mark.parametrize("ends", ["cancelled", "closed"])
async def test_a_server_that_starts_although_nobody_wants_it_any_more_is_stopped(ends: str) -> None:
    started, begun = Fake(), asyncio.Event()

    async def start() -> Fake:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return started
        raise AssertionError

    source = StartedServers(start)
    leasing = asyncio.ensure_future(source.lease())
    await begun.wait()
    if ends == "closed":
        await source.close()
        with pytest.raises(InfraError, match="was closed while"):
            await leasing
    else:
        leasing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leasing
    assert started.stops == 1
    await source.close()
    assert started.stops == 1


def start_nothing() -> Any:
    raise NotImplementedError


def test_a_copy_of_a_pool_starts_servers_of_its_own() -> None:
    source = StartedServers(start_nothing)
    source._idle.append(Fake())
    copied = pickle.loads(pickle.dumps(source))
    assert (copied._start, copied._idle) == (start_nothing, [])


def test_a_pool_that_nobody_closed_ends_with_the_process() -> None:
    started = Fake()
    source = starts(started)
    assert wait(on_background_loop(source.lease)) is started.server
    source.run_teardown()
    assert started.stops == 1


@pytest.mark.parametrize(
    ("started", "problem"),
    [
        (Fake(), ""),
        (Fake(is_alive=False), "ended as soon as it was started"),
        (Fake(ServerError("http://a", "is gone")), "could not be reached 0.12 s after it was started"),
    ],
)
async def test_what_keeps_a_server_from_answering_is_told(started: Fake, problem: str) -> None:
    assert await wait_until_reached(started, 0.12) == problem
