"""Servers that cannot be reached, go away, are slow, full, or answer nonsense: a clear error at construction, or of one episode."""

from __future__ import annotations

import asyncio
import pickle
import socket
from typing import Any

import pytest

import vfgym
from tests.openenv_servers import StandIn, serving
from vfgym.aio.background import on_background_loop, wait
from vfgym.errors import ConfigurationError, InfraError
from vfgym.wrappers.openenv.protocol import ServerError
from vfgym.wrappers.openenv.servers import OpenEnvServer
from vfgym.wrappers.openenv.session import OpenEnvSession

WORDS = {
    "gone": "closed the connection|broke off",
    "garbage": "not a JSON object",
    "nonsense": "without an observation",
    "error": "it broke",
    "slow": "did not answer .* in time",
}
"""What can go wrong with a request, and what is said of it."""


@pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
@pytest.mark.parametrize("fault", WORDS)
def test_a_server_that_fails_in_a_step_is_the_error_of_its_episode(fault: str, websockets: bool) -> None:
    """The episode ends, its session too, and the next one is played."""
    with serving(StandIn(websockets=websockets)) as server:
        env = vfgym.from_openenv(server.url, request_timeout=0.3 if fault == "slow" else 20)
        env.reset(seed=0)
        env.step("1")
        server.faults["step"] = fault
        outcome = env.step("1")
        assert (outcome.reward, outcome.terminated, outcome.truncated) == (0.0, True, False)
        assert env.state is not None
        error = env.state["error"]
        assert isinstance(error, InfraError)
        assert server.url in str(error)
        with pytest.raises(InfraError, match=WORDS[fault]):
            raise error
        server.wait_until_all_ended()
        del server.faults["step"]
        env.reset(seed=0)
        assert env.step("1").reward == 0.1
        env.close()


@pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
@pytest.mark.parametrize("fault", WORDS)
def test_a_server_that_fails_as_an_episode_begins(fault: str, websockets: bool) -> None:
    """`reset` raises, a run notes it as the error of the rollout, and no session is left."""
    with serving(StandIn(websockets=websockets, faults={"reset": fault})) as server:
        env = vfgym.from_openenv(server.url, request_timeout=0.3 if fault == "slow" else 20)
        with pytest.raises(InfraError, match=WORDS[fault]):
            env.reset(seed=0)
        results = vfgym.evaluate(env, lambda observation, info: "1", num_examples=1, progress=False)
        assert results["outputs"][0]["error"]["error"] == "ServerError" or "Status" in results["outputs"][0]["error"]["error"]
        server.wait_until_all_ended()


@pytest.mark.parametrize("reward", ["much", float("nan"), [1.0], pytest.param(10**400, id="of 401 digits")])
def test_a_reward_must_be_a_number(reward: Any) -> None:
    with serving(StandIn(faults={"step": {"observation": {}, "reward": reward}})) as server:
        env = vfgym.from_openenv(server.url)
        env.reset(seed=0)
        assert "not a finite number" in env.step("1").info["error"]


def test_done_must_be_true_or_false() -> None:
    """A text that says "false" is neither."""
    with serving(StandIn(faults={"step": {"observation": {}, "done": "false"}})) as server:
        env = vfgym.from_openenv(server.url)
        env.reset(seed=0)
        assert "done='false', which is neither true nor false" in env.step("1").info["error"]


# At construction


def test_an_address_where_nothing_answers_is_an_error_at_construction() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(ConfigurationError, match=r"cannot be reached: .* Is the URL right, and does an OpenEnv server run there\?"):
        vfgym.from_openenv(url)


@pytest.mark.parametrize("fault", WORDS)
def test_something_that_speaks_another_protocol_is_an_error_at_construction(fault: str) -> None:
    words = {**WORDS, "nonsense": "no schema of actions"}
    with serving(StandIn(faults={"schema": fault})) as server, pytest.raises(ConfigurationError, match=words[fault]):
        vfgym.from_openenv(server.url, request_timeout=0.3 if fault == "slow" else 20)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"url": "localhost:8000"}, "url must be where the server is"),
        ({"url": "ws://localhost/ws"}, "url must be where the server is"),
        ({"url": 8000}, "url must be where the server is"),
        ({"url": "http://[::1"}, "url must be where the server is"),
        ({"url": "http://localhost:port"}, "url must be where the server is"),
        ({"url": "http://localhost:8000?version=2"}, "without a query"),
        ({"contract": "tools"}, "contract must be 'gym' or 'mcp'"),
        ({"request_timeout": 0}, "request_timeout must be a positive number"),
        ({"request_timeout": float("nan")}, "request_timeout must be a positive number"),
        ({"request_timeout": float("inf")}, "request_timeout must be a positive number"),
        ({"prompt_renderer": "text"}, "prompt_renderer must be a function"),
        ({"dataset": []}, "takes no 'dataset'"),
        ({"max_turn": 3}, "Did you mean `max_turns`"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], words: str) -> None:
    with serving(StandIn()) as server, pytest.raises(ConfigurationError, match=words):
        vfgym.from_openenv(**{"url": server.url, **arguments})


def test_an_address_that_does_not_fit_is_told_without_its_password() -> None:
    for url in ("htp://ann:swordfish@localhost:8000", "http://localhost:8000?key=swordfish"):
        with pytest.raises(ConfigurationError) as caught:
            vfgym.from_openenv(url)
        assert "***" in str(caught.value)
        assert "swordfish" not in str(caught.value)


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


@pytest.mark.parametrize("schema", [{"properties": "add"}, {"properties": {"add": 3}}, {"required": 3}, {"required": [["add"]]}])
def test_a_schema_of_another_form_is_an_error_at_construction(schema: Any) -> None:
    with (
        serving(StandIn(faults={"schema": {"action": schema}})) as server,
        pytest.raises(ConfigurationError, match="no schema of actions"),
    ):
        vfgym.from_openenv(server.url)


def test_a_server_that_refuses_to_show_its_schema_is_an_error_at_construction() -> None:
    """As one that takes the route's name for an argument, and answers that it does not fit (HTTP status 422)."""
    with (
        serving(StandIn(faults={"schema": "refused"})) as server,
        pytest.raises(ConfigurationError, match=r"answered /schema with the HTTP status 422.*Is the URL right"),
    ):
        vfgym.from_openenv(server.url)


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


def test_a_server_without_tools_is_not_played_by_tools() -> None:
    """Where a server has no schema it is played by any JSON object, or as the caller says."""
    with serving(StandIn()) as server:
        server.faults["step"] = {"observation": {"total": 3}}
        with pytest.raises(ConfigurationError, match="asked for its tools and answered without them"):
            vfgym.from_openenv(server.url, contract="mcp")
        server.wait_until_all_ended()


# Places


@pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
def test_episodes_wait_for_a_server_that_is_full(websockets: bool) -> None:
    """Over HTTP there is one environment behind the server, so it is full with one episode."""
    with serving(StandIn(websockets=websockets, most=1)) as server:
        env = vfgym.from_openenv(server.url)
        results = vfgym.evaluate(env, lambda observation, info: "1", num_examples=8, max_concurrent=8, progress=False)
        assert [row["reward"] for row in results["outputs"]] == pytest.approx([0.3] * 8)
        assert server.most_at_once == int(websockets)
        assert [action["add"] for action in server.actions] == [1] * 24


@pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
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


# Interruptions


def test_the_deadline_of_an_episode_ends_its_session() -> None:
    with serving(StandIn(faults={"step": "slow"})) as server:
        env = vfgym.from_openenv(server.url, timeout_seconds=0.3)
        env.reset(seed=0)
        outcome = env.step("1")
        assert (outcome.truncated, outcome.info["stop_condition"]) == (True, "timeout_reached")
        server.wait_until_all_ended()


@pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
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


@pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
def test_a_session_that_is_closed_in_a_step_lets_nobody_wait_for_its_answer(websockets: bool) -> None:
    with serving(StandIn(websockets=websockets, faults={"step": "slow"})) as server:

        async def close_early() -> None:
            session = OpenEnvSession(Counted(OpenEnvServer(server.url, 600.0)))
            await session.begin("reset", {"seed": 1})
            step = asyncio.ensure_future(session.step({"add": 1}))
            await asyncio.sleep(0.05)
            assert not step.done()
            await session.close()
            async with asyncio.timeout(20):
                with pytest.raises(InfraError, match="was closed"):
                    await step

        wait(on_background_loop(close_early))
        server.wait_until_all_ended()


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
