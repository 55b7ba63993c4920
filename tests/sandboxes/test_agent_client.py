"""The host's side of the pipe to an agent: whose answer is whose, and what is said once the agent has ended."""

from __future__ import annotations

import asyncio
import json
import marshal
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from vfgym.errors import SandboxError
from vfgym.sandboxes import agent_client
from vfgym.sandboxes.agent_client import AgentClient


class Agent:
    """The other side of a pipe, and the pipe itself."""

    def __init__(self) -> None:
        self.reading, self._said = os.pipe()
        self._asked, self.writing = os.pipe()
        self.closed = 0
        for descriptor in (self.reading, self.writing):
            os.set_blocking(descriptor, False)
        self.client = AgentClient(self, {"root": "/"}, {})

    def decode(self, data: bytes) -> bytes:
        return data

    def explain_end(self) -> tuple[str, Any]:
        return "it was tired", "policy"

    def close(self) -> None:
        self.closed += 1
        for descriptor in (self.reading, self.writing):
            os.close(descriptor)

    async def read(self) -> Any:
        """Return what is asked next."""
        return json.loads(await asyncio.to_thread(self.read_frame))

    def read_frame(self) -> bytes:
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            wanted = 4 if len(data) < 4 else 4 + int.from_bytes(data[:4], "big")
            data += os.read(self._asked, wanted - len(data))
        return data[4:]

    def say(self, *messages: Any) -> None:
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode()
            os.write(self._said, len(data).to_bytes(4, "big") + data)

    def say_bytes(self, data: bytes) -> None:
        os.write(self._said, data)

    def leave(self) -> None:
        os.close(self._said)
        self._said = -1

    def let_go(self) -> None:
        for descriptor in (self._said, self._asked):
            if descriptor >= 0:
                os.close(descriptor)


@pytest.fixture
async def agent() -> AsyncIterator[Agent]:
    agent = Agent()
    await asyncio.to_thread(agent.read_frame)  # the program that it is sent
    yield agent
    agent.client.end("the test is over")
    with pytest.raises(SandboxError):
        await agent.client.ask("nothing", within=1.0)
    while not agent.closed:
        await asyncio.sleep(0)
    assert agent.closed == 1
    agent.let_go()


async def asked(agent: Agent, do: str, **fields: Any) -> tuple[Any, asyncio.Task[Any]]:
    """Ask for something, and return what the agent was sent, with what waits for the answer."""
    waiting = asyncio.create_task(agent.client.ask(do, within=None, **fields))
    return await agent.read(), waiting


async def test_each_answer_goes_to_who_asked_in_whichever_order_and_pieces_they_come(agent: Agent) -> None:
    first, waits_first = await asked(agent, "read", path="a")
    second, waits_second = await asked(agent, "read", path="b")
    assert [first, second] == [{"id": 1, "do": "read", "path": "a"}, {"id": 2, "do": "read", "path": "b"}]
    agent.say({"id": 7, "result": {"of": "nobody"}}, {"id": 2, "result": {"of": "b"}})
    assert await waits_second == {"of": "b"}
    data = json.dumps({"id": 1, "result": {}}).encode()
    for piece in (b"\0\0", b"\0", bytes([len(data)]), data[:5], data[5:]):
        agent.say_bytes(piece)
        await asyncio.sleep(0)
    assert await waits_first == {}


async def test_what_an_operation_raises_is_the_error_of_its_number(agent: Agent) -> None:
    for number, kind in ((2, FileNotFoundError), (13, PermissionError), (5, OSError)):
        sent, waiting = await asked(agent, "read")
        agent.say({"id": sent["id"], "error": [number, "no", "a"]})
        with pytest.raises(kind) as caught:
            await waiting
        assert (caught.value.errno, caught.value.strerror, caught.value.filename) == (number, "no", "a")


async def test_who_is_cancelled_has_that_told_and_the_others_go_on(agent: Agent) -> None:
    sent, waiting = await asked(agent, "exec")
    other, waits_other = await asked(agent, "exec")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await agent.read() == {"cancelled": sent["id"]}
    agent.say({"id": sent["id"], "result": {}}, {"id": other["id"], "result": {"a": 0}})
    assert await waits_other == {"a": 0}


async def test_an_agent_that_does_not_answer_in_time_is_ended_for_all(agent: Agent) -> None:
    _, waiting = await asked(agent, "exec")
    with pytest.raises(SandboxError, match=r"^the sandbox did not answer within 0\.01 s$"):
        await agent.client.ask("read", within=0.01)
    with pytest.raises(SandboxError, match=r"^the sandbox did not answer within 0\.01 s$"):
        await waiting
    assert agent.client.end_cause is None
    agent.client.end("another reason")
    assert agent.client.end_reason == "the sandbox did not answer within 0.01 s", "the first reason stays"


NONSENSE = [b"{", b"7", b"\xff", {"id": 1}, *({"id": 1, **more} for more in ({"result": 7}, {"error": [1]}, {"error": ["x", "", ""]}))]
READY = {"ready": {"pid": 1}}


@pytest.mark.parametrize(
    ("said", "reason", "cause"),
    [
        ([{"ended": "too much"}], "the sandbox has ended: too much", "policy"),
        ([READY, {"ended": "too much"}], "the sandbox has ended: too much", "policy"),
        ([None], "the sandbox has ended: it was tired", None),
        ([READY, None], "the sandbox has ended: it was tired", "policy"),
        ([b"{"], "the sandbox sent what can't be read: ", None),
        *(([READY, nonsense], "the sandbox sent what can't be read: ", "policy") for nonsense in NONSENSE),
        ([READY, (64 << 20) + 1], "the sandbox sent what can't be read: ValueError('a message of 67108865 bytes')", "policy"),
    ],
    ids=str,
)
async def test_what_ends_an_agent_is_told_to_all_who_wait_and_who_ask_later(agent: Agent, said: list[Any], reason: str, cause: Any) -> None:
    """Before it was ready nothing of others ran in it, so it is nobody's doing that is known."""
    _, waiting = await asked(agent, "exec")
    for each in said:
        if each is None:
            agent.leave()
        elif isinstance(each, int):
            agent.say_bytes(each.to_bytes(4, "big"))
        else:
            agent.say(each)
        if each == READY:
            assert await agent.client.ready(60.0) == {"pid": 1}
    for asking in (waiting, agent.client.ask("read", within=None)):
        with pytest.raises(SandboxError) as caught:
            await asking
        assert str(caught.value).startswith(reason)
        assert caught.value.failure_cause == (cause or SandboxError.failure_cause)
    assert agent.client.end_cause == cause


async def test_an_agent_that_can_not_be_set_up_says_why_and_one_that_says_nothing_is_given_up() -> None:
    for message, error, seconds in (
        ({"failed": "no room"}, "^the sandbox could not be set up: no room$", 60.0),
        (None, r"^the agent in the sandbox did not start within 0\.01 s$", 0.01),
    ):
        agent = Agent()
        program = marshal.loads(await asyncio.to_thread(agent.read_frame))
        assert (program["settings"]["root"], program["settings"]["ports"]) == ("/", [])
        assert [name.rpartition(".")[2] for name, *_ in program["modules"]] == list(agent_client._MODULES)
        if message is not None:
            agent.say(message)
        with pytest.raises(SandboxError, match=error):
            await agent.client.ready(seconds)
        agent.client.end("over")
        while not agent.closed:
            await asyncio.sleep(0)
        agent.let_go()


async def test_what_is_too_much_for_one_request_is_refused_and_the_next_is_not(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_client, "_MOST_FRAME", 1 << 20)
    with pytest.raises(SandboxError, match=r"^1 MB are too much for one request to a sandbox, which may have 1$"):
        await agent.client.ask("write", within=None, data="a" * (1 << 20))
    sent, waiting = await asked(agent, "write", data="a" * ((1 << 20) - 100))  # more than a pipe takes at once
    agent.say({"id": sent["id"], "result": {}})
    assert (len(sent["data"]), await waiting) == ((1 << 20) - 100, {})
