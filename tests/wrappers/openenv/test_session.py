"""Sessions: opened once, and closed once, however their episode ends."""

from __future__ import annotations

import asyncio
import gc
import pickle

import pytest

import vfgym
from tests.openenv_servers import StandIn, serving
from tests.wrappers.openenv.playing import over_both
from vfgym.aio.background import on_background_loop, wait
from vfgym.errors import EpisodeNotPicklable, InfraError
from vfgym.wrappers.openenv.links import Link
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.servers import OpenEnvServer
from vfgym.wrappers.openenv.session import OpenEnvSession


@over_both
def test_a_session_that_is_closed_while_it_begins_is_ended(websockets: bool) -> None:
    with serving(StandIn(websockets=websockets)) as server:

        async def close_early() -> None:
            source = Counted(OpenEnvServer(server.url, 20.0))
            session = OpenEnvSession(source)
            beginning = asyncio.ensure_future(session.begin("reset", {"seed": 1}))
            while not source.leased:
                await asyncio.sleep(0)
            await session.close()
            with pytest.raises(InfraError, match="was closed"):
                await beginning
            assert source.leased == 0
            with pytest.raises(InfraError, match="was closed"):
                await session.step({"add": 1})

        wait(on_background_loop(close_early))
        assert len(server.resets) == 1
        server.wait_until_all_ended()


@over_both
def test_a_session_that_is_closed_in_a_step_lets_nobody_wait_for_its_answer(websockets: bool) -> None:
    with serving(StandIn(websockets=websockets, faults={"step": "slow"})) as server:

        async def close_early() -> None:
            session = OpenEnvSession(Counted(OpenEnvServer(server.url, 600.0)))
            assert (await session.begin("reset", {"seed": 1})).observation["total"] == 1
            step = asyncio.ensure_future(session.step({"add": 1}))
            while "step" not in server.asked:
                await asyncio.sleep(0)
            await session.close()
            async with asyncio.timeout(20):
                with pytest.raises(InfraError, match="was closed"):
                    await step

        wait(on_background_loop(close_early))
        server.wait_until_all_ended()


def test_a_session_that_is_cancelled_while_it_begins_gives_its_server_back() -> None:
    with serving(StandIn(faults={"reset": "slow"})) as server:

        async def begin_and_cancel() -> None:
            source = Counted(OpenEnvServer(server.url, 600.0))
            beginning = asyncio.ensure_future(OpenEnvSession(source).begin("reset", {"seed": 1}))
            while "reset" not in server.asked:
                await asyncio.sleep(0)
            beginning.cancel()
            with pytest.raises(asyncio.CancelledError):
                await beginning
            assert source.leased == 0

        wait(on_background_loop(begin_and_cancel))
        server.wait_until_all_ended()


def test_a_session_that_does_not_begin_gives_its_server_back_and_one_that_is_closed_twice_only_once() -> None:
    with serving(StandIn(faults={"reset": "error"})) as server:

        async def begin_twice() -> None:
            source = Counted(OpenEnvServer(server.url, 20.0))
            with pytest.raises(ServerError, match="failed in reset: it broke"):
                await OpenEnvSession(source).begin("reset", {"seed": 1})
            assert source.leased == 0
            server.faults.clear()
            session = OpenEnvSession(source)
            await session.begin("reset", {"seed": 1})
            with pytest.raises(EpisodeNotPicklable, match="in a session that cannot be copied"):
                pickle.dumps(session)
            server.faults["step"] = "error"
            with pytest.raises(ServerError, match="failed in step: it broke"):
                await session.step({"add": 1})
            assert source.leased == 1
            await session.close()
            await session.close()
            assert source.leased == 0

        wait(on_background_loop(begin_twice))


def test_a_session_that_nobody_has_any_more_is_ended() -> None:
    with serving(StandIn()) as server:
        source = Counted(OpenEnvServer(server.url, 20.0))
        session = OpenEnvSession(source)
        wait(session.begin("reset", {"seed": 1}))
        assert (server.open_now, source.leased) == (1, 1)
        del session
        gc.collect()
        server.wait_until_all_ended()


def test_a_server_is_given_back_although_its_session_ends_with_an_error() -> None:
    class Breaking(OpenEnvServer):
        async def end(self, link: Link) -> None:
            await super().end(link)
            raise OSError("broken pipe")

    with serving(StandIn()) as server:
        source = Counted(Breaking(server.url, 20.0))
        session = OpenEnvSession(source)
        wait(session.begin("reset", {"seed": 1}))
        with pytest.raises(OSError, match="broken pipe"):
            wait(session.close())
        assert source.leased == 0


class Counted:
    """A source of one server, which counts its leases."""

    def __init__(self, server: OpenEnvServer) -> None:
        self.server, self.leased = server, 0

    async def lease(self) -> OpenEnvServer:
        self.leased += 1
        return self.server

    async def give_back(self, server: OpenEnvServer) -> None:
        self.leased -= 1

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("request_name", ["reset", "step"])
async def test_a_cancelled_episode_ends_its_session(request_name: str) -> None:
    with serving(StandIn(faults={request_name: "slow"})) as server:
        env = vfgym.from_openenv(server.url)
        run = asyncio.ensure_future(vfgym.aevaluate(env, lambda observation, info: "1", num_examples=3, progress=False))
        while server.open_now < 3:
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        await asyncio.to_thread(server.wait_until_all_ended)
