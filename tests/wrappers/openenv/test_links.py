"""Links: what goes wrong on the way to a server is the error of one episode, whose session is ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

import vfgym
from tests.openenv_servers import StandIn, serving
from tests.wrappers.openenv.playing import over_both
from vfgym.errors import InfraError
from vfgym.wrappers.openenv import links
from vfgym.wrappers.openenv.links import HttpLink, StatusError, WebSocketLink
from vfgym.wrappers.openenv.protocol import ActionRefused, ServerError, ServerFull, ServerReply

WORDS = {
    "gone": "closed the connection|broke off",
    "garbage": "not a JSON object",
    "nonsense": "without an observation",
    "error": "it broke",
    "slow": "did not answer .* in time",
}


@over_both
@pytest.mark.parametrize("fault", WORDS)
def test_a_server_that_fails_as_an_episode_begins_or_in_a_step(fault: str, websockets: bool) -> None:
    """`reset` raises, or the episode ends with the error; its session ends, too, and the next one is played."""
    with serving(StandIn(websockets=websockets, faults={"reset": fault})) as server:
        env = vfgym.from_openenv(server.url, request_timeout=0.2 if fault == "slow" else 20)
        with pytest.raises(InfraError, match=WORDS[fault]):
            env.reset(seed=0)
        server.wait_until_all_ended()
        server.faults = {}
        env.reset(seed=0)
        env.step("1")
        server.faults = {"step": fault}
        outcome = env.step("1")
        assert (outcome.reward, outcome.terminated, outcome.truncated) == (0.0, True, False)
        assert env.state is not None
        with pytest.raises(InfraError, match=WORDS[fault]) as caught:
            raise env.state["error"]
        assert server.url in str(caught.value)
        assert not isinstance(caught.value, ServerFull)
        server.wait_until_all_ended()
        server.faults = {}
        env.reset(seed=0)
        assert env.step("1").reward == 0.1
        env.close()
    with pytest.raises(InfraError, match=r"cannot be reached: Connect call failed \('127\.0\.0\.1', \d+\)$"):
        env.reset(seed=0)


async def open_link(server: StandIn, websockets: bool, timeout: float = 20.0) -> Any:
    return await WebSocketLink.open(server.url, timeout) if websockets else HttpLink(server.url, timeout)


def problem_of(error: BaseException) -> tuple[type, str]:
    return type(error), error.problem if isinstance(error, ServerError) else str(error)


FAILURES: dict[Any, tuple[tuple[type, str], tuple[type, str]]] = {
    "gone": (
        (ServerError, "broke off while it was asked for /step: ServerDisconnectedError: Server disconnected"),
        (ServerError, "closed the connection while it was asked for step"),
    ),
    "garbage": (
        (ServerError, "answered with something that is not a JSON object: '<html>no JSON</html>'"),
        (ServerError, "answered with something that is not a JSON object: 'no JSON'"),
    ),
    "nonsense": ((ServerError, "answered without an observation (a JSON object): {}"),) * 2,
    "error": ((StatusError, "answered /step with the HTTP status 500: 'it broke'"), (ServerError, "failed in step: it broke")),
    "slow": ((ServerError, "did not answer /step in time"), (ServerError, "did not answer step in time")),
    "refused": (
        (ActionRefused, '"no"'),
        (ServerError, 'answered step with something that is not an observation: {"type": "observation", "data": "refused"}'),
    ),
}


@over_both
@pytest.mark.parametrize("fault", FAILURES)
async def test_what_goes_wrong_is_said_and_the_link_is_closed(fault: str, websockets: bool) -> None:
    with serving(StandIn(faults={"step": fault})) as server:
        link = await open_link(server, websockets, 0.2 if fault == "slow" else 20)
        reply = await link.ask("reset", {"seed": 3, "x": 1})
        assert reply == ServerReply({"total": 3, "options": {"x": 1}}, 0.0, False, {})
        with pytest.raises((ServerError, ActionRefused)) as caught:
            await link.ask("step", {"add": 1})
        assert problem_of(caught.value) == FAILURES[fault][websockets]
        assert getattr(caught.value, "status", None) == (500 if fault == "error" and not websockets else None)
        for _ in range(2):
            await link.close()
            assert link._http.closed
            assert not websockets or (link._socket.closed, link._reader.done()) == (True, True)


@over_both
async def test_a_link_plays_an_episode_and_says_what_is_refused(websockets: bool) -> None:
    with serving(StandIn()) as server:
        link = await open_link(server, websockets)
        await link.ask("reset", {"seed": 1})
        with pytest.raises(ActionRefused, match=r"^add: Input should be a valid integer$"):
            await link.ask("step", {"add": "x"})
        assert await link.ask("step", {"add": 2}) == ServerReply({"total": 3}, 0.2, False, {"steps": 1})
        assert (server.resets, server.actions) == ([{"seed": 1}], [{"add": "x"}, {"add": 2}])
        await link.close()
        server.wait_until_all_ended()


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        *[(status, None) for status in ("refused", "garbage")],
        ("error", "broke off while it was asked for /ws: WSServerHandshakeError: 500, message='Invalid response status', url='URL/ws'"),
        ("gone", "broke off while it was asked for /ws: ServerDisconnectedError: Server disconnected"),
        ("slow", "did not answer /ws in time"),
    ],
)
async def test_a_server_without_websockets_is_told_from_one_that_fails(fault: str, problem: str | None) -> None:
    with serving(StandIn(faults={"ws": fault})) as server:
        if problem is None:
            assert await WebSocketLink.open(server.url, 20) is None
            return
        with pytest.raises(ServerError) as caught:
            await WebSocketLink.open(server.url, 0.2 if fault == "slow" else 20)
        assert problem_of(caught.value) == (ServerError, problem.replace("URL", server.url))


async def test_a_server_that_is_full_says_so() -> None:
    with serving(StandIn(most=0)) as server:
        link = await open_link(server, websockets=True)
        with pytest.raises(ServerFull) as caught:
            await link.ask("reset", {})
        assert caught.value.problem == "plays no further episode at the moment: 0 sessions are open"
        await link.close()


@pytest.mark.parametrize(("most", "is_taken"), [(2**20, True), (2**20 + 1, False)])
async def test_answers_are_taken_up_to_a_length(most: int, is_taken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MAX_BYTES", 2**20)
    answer = {"observation": {"text": "x" * (most - len(json.dumps({"observation": {"text": ""}})))}}
    with serving(StandIn(faults={"reset": answer})) as server:
        link = await open_link(server, websockets=False)
        if is_taken:
            assert (await link.ask("reset", {})).observation == answer["observation"]
        else:
            with pytest.raises(ServerError) as caught:
                await link.ask("reset", {})
            assert caught.value.problem == "answered with more than 1 MB"
        await link.close()
