"""Servers that are started for a project: its manifest, a pool of processes that all end, and what is said where one does not start."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.wrappers.openenv.playing import show_total, started_by, write_project
from vfgym.aio.background import on_background_loop, wait
from vfgym.errors import ConfigurationError, InfraError
from vfgym.wrappers.openenv import OpenEnvEnv
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.starting import ServerProcess, StartedServers, start_process


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
        monkeypatch.setattr(ServerProcess, "is_alive", True)
        os.killpg(started._process.pid, signal.SIGKILL)
        assert env.reset(seed=4)[0][0].content == "4"
        assert started not in [*source._idle, *source._leased]
    finally:
        env.close()


def test_a_server_that_does_not_start_says_what_it_wrote(tmp_path: Path) -> None:
    source = started_by(write_project(tmp_path, start_command="echo no such module; echo $PORT; exit 3"))
    with pytest.raises(ConfigurationError, match=r"(?s)ended as soon as it was started\. It was started by: echo.*no such module\n\d+"):
        OpenEnvEnv(source, show_total)


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
