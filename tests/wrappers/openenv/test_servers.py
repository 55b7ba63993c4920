"""Servers: who waits for a place, who gives up, and what a copy of an address is without."""

from __future__ import annotations

import asyncio
import math
import pickle
from typing import Any

import pytest

import vfgym
from tests.openenv_servers import StandIn, serving
from tests.wrappers.openenv.playing import over_both
from vfgym.aio.background import on_background_loop, wait
from vfgym.errors import ConfigurationError, InfraError
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.servers import GivenServer, OpenEnvServer, check_seconds, check_url


def test_a_password_in_an_address_is_not_pickled() -> None:
    """As no secret is; whoever plays a copy is told what is missing."""
    with serving(StandIn()) as server:
        env = vfgym.from_openenv(server.url.replace("http://", "http://ann:swordfish@"))
        pickled = pickle.dumps(env)
        assert env.reset(seed=1)
        env.close()
        assert b"swordfish" not in pickled
        with pytest.raises(ConfigurationError, match=r"http://\*\*\*@127.* is without its user and password"):
            pickle.loads(pickled).reset(seed=0)


def test_episodes_do_not_change_to_http_where_earlier_ones_were_websocket_sessions() -> None:
    """A proxy that loses its server for a moment has no ``/ws`` either."""
    with serving(StandIn()) as server:
        env = vfgym.from_openenv(server.url)
        env.reset(seed=0)
        server.faults["ws"] = "refused"
        with pytest.raises(InfraError, match="has no /ws now"):
            env.reset(seed=0)
        del server.faults["ws"]
        env.reset(seed=0)
        env.close()
        assert server.opened == 2


@over_both
def test_episodes_wait_for_a_server_that_is_full(websockets: bool) -> None:
    """Over HTTP there is one environment behind the server, so it is full with one episode."""
    with serving(StandIn(websockets=websockets, most=1)) as server:
        env = vfgym.from_openenv(server.url)
        results = vfgym.evaluate(env, lambda observation, info: "1", num_examples=4, max_concurrent=4, progress=False)
        assert [row["reward"] for row in results["outputs"]] == pytest.approx([0.3] * 4)
        assert server.most_at_once == int(websockets)
        assert [action["add"] for action in server.actions] == [1] * 12


@over_both
def test_nobody_waits_for_a_place_whose_episode_does_not_go_on(websockets: bool) -> None:
    """Two episodes that one thread plays in turn would wait for each other."""
    with serving(StandIn(websockets=websockets, most=1)) as server:
        env = vfgym.from_openenv(server.url, request_timeout=0.3)
        other = env.fork()
        env.reset(seed=0)
        with pytest.raises(ServerError, match=r"no further episode at the moment|one episode at a time"):
            other.reset(seed=0)
        assert env.step("1").reward == 0.1
        env.close()
        assert other.reset(seed=0)
        other.close()


def test_who_waits_does_not_give_up_while_another_episode_goes_on() -> None:
    with serving(StandIn(websockets=False)) as stand_in:

        async def play() -> None:
            server = OpenEnvServer(stand_in.url, 20.0)
            first, _ = await server.begin("reset", {"seed": 1})
            server._moved_at, server.timeout = math.inf, 0.1
            second = asyncio.ensure_future(server.begin("reset", {"seed": 2}))
            done, _ = await asyncio.wait((second,), timeout=0.4)
            assert not done
            server.timeout = 20.0
            await server.end(first)
            link, reply = await second
            assert reply.observation["total"] == 2
            await server.end(link)

        wait(on_background_loop(play))


def test_an_address_is_taken_without_a_slash_at_its_end_and_what_is_none_is_refused() -> None:
    for url in ("http://localhost:8000", "https://host/path", "http://[::1]:80"):
        assert check_url(url) == check_url(f"{url}/") == url
    assert check_url("HTTP://host//") == "HTTP://host"
    for wrong in (None, 8000, "", "localhost:8000", "ws://localhost/ws", "http://", "http://[::1", "http://host:port", "http://host:0"):
        with pytest.raises(ConfigurationError, match="url must be where the server is"):
            check_url(wrong)
    for wrong in ("http://host/?a=1", "http://host#a"):
        with pytest.raises(ConfigurationError, match="without a query; got 'http://host"):
            check_url(wrong)
    for wrong in ("ftp://ann:swordfish@host", "http://ann:swordfish@host?a=1"):
        with pytest.raises(ConfigurationError) as caught:
            check_url(wrong)
        assert "swordfish" not in str(caught.value)
        assert "@host" in str(caught.value)


@pytest.mark.parametrize("seconds", [0, -1, True, None, "5", float("nan"), float("inf")])
def test_what_is_not_a_number_of_seconds_is_refused(seconds: Any) -> None:
    with pytest.raises(ConfigurationError, match="patience must be a positive number of seconds"):
        check_seconds("patience", seconds)
    assert check_seconds("patience", 0.001) == 0.001
    assert (check_seconds("patience", 5), type(check_seconds("patience", 5))) == (5.0, float)


def test_without_a_schema_any_object_is_an_action() -> None:
    with serving(StandIn()) as server:
        assert wait(on_background_loop(OpenEnvServer(f"{server.url}/elsewhere", 20.0).read_action_schema)) == {}
        for fault in ("error", "refused"):
            server.faults["schema"] = fault
            with pytest.raises(ServerError, match="with the HTTP status"):
                wait(on_background_loop(OpenEnvServer(server.url, 20.0).read_action_schema))


@pytest.mark.parametrize(
    ("answer", "is_schema"),
    [
        ({"action": {}}, True),
        ({"action": {"properties": {"a": {}, "b": True}, "required": ["a"]}}, True),
        ({"action": {"properties": None, "required": []}}, True),
        ({}, False),
        ({"action": []}, False),
        ({"action": {"properties": ["a"]}}, False),
        ({"action": {"properties": {"a": {}, "b": 3}}}, False),
        ({"action": {"required": "a"}}, False),
        ({"action": {"required": ["a", 3]}}, False),
    ],
    ids=str,
)
def test_a_schema_of_actions_has_the_form_of_one(answer: Any, is_schema: bool) -> None:
    stand_in = StandIn()
    stand_in.schema = answer
    with serving(stand_in):
        read = OpenEnvServer(stand_in.url, 20.0).read_action_schema
        if is_schema:
            assert wait(on_background_loop(read)) == answer["action"]
        else:
            with pytest.raises(ServerError, match=r"has no schema of actions in its /schema$"):
                wait(on_background_loop(read))


def test_a_given_server_is_played_by_everybody_and_copied_with_its_timeout() -> None:
    server = OpenEnvServer("http://host", 3.5)
    source = GivenServer(server)

    async def lease_twice() -> list[OpenEnvServer]:
        leased = [await source.lease(), await source.lease()]
        await source.give_back(leased[0])
        await source.close()
        return [*leased, await source.lease()]

    assert wait(on_background_loop(lease_twice)) == [server] * 3
    copied = pickle.loads(pickle.dumps(server))
    assert (copied.url, copied.timeout) == ("http://host", 3.5)


@over_both
@pytest.mark.parametrize("fault", ["error", "slow"])
def test_a_place_is_free_again_after_an_episode_that_did_not_begin(websockets: bool, fault: str) -> None:
    """The server answered with an error, or whoever waited for it was cancelled."""
    with serving(StandIn(websockets=websockets, most=1, faults={"reset": fault})) as stand_in:

        async def begin() -> None:
            server = OpenEnvServer(stand_in.url, 20.0)
            beginning = asyncio.ensure_future(server.begin("reset", {"seed": 1}))
            if fault == "slow":
                while "reset" not in stand_in.asked:
                    await asyncio.sleep(0)
                beginning.cancel()
            with pytest.raises(asyncio.CancelledError if fault == "slow" else ServerError):
                await beginning
            await asyncio.to_thread(stand_in.wait_until_all_ended)
            stand_in.faults.clear()
            link, reply = await asyncio.wait_for(server.begin("reset", {"seed": 2}), 20)
            assert reply.observation["total"] == 2
            await server.end(link)

        wait(on_background_loop(begin))
