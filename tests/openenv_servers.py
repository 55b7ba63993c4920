"""A small server that speaks OpenEnv's wire protocol, and fails when it is told to. As a program it serves at the port it is given.

Its environment counts: an action adds a number, whose tenth is the reward, and the third one ends the episode. As tools, ``add`` does the
same, and ``give_up`` ends the episode.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from aiohttp import WSMsgType, web

GYM_ACTION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"add": {"type": "integer"}, "metadata": {"type": "object"}},
    "required": ["add"],
}
MCP_ACTION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"type": {"const": "call_tool"}, "tool_name": {"type": "string"}, "arguments": {"type": "object"}, "metadata": {}},
    "required": ["tool_name"],
}
TOOLS = [
    {
        "name": "add",
        "description": "Add a number.",
        "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    },
    {"name": "give_up", "description": "", "input_schema": {"type": "object", "properties": {}}},
]


class Refused(Exception):
    """An action does not fit the schema."""


class Counting:
    """One episode's environment."""

    def __init__(self) -> None:
        self.total = self.steps = 0

    def reset(self, seed: int = 0, **options: Any) -> dict[str, Any]:
        self.total, self.steps = seed, 0
        return {"observation": {"total": seed, "options": options}, "reward": None, "done": False}

    def step(self, action: Mapping[str, Any]) -> dict[str, Any]:
        if action.get("type") == "list_tools":
            return {"observation": {"tools": TOOLS}, "reward": None, "done": False}
        if "tool_name" in action:
            return self.call(action["tool_name"], action.get("arguments", {}))
        if not isinstance(action.get("add"), int):
            raise Refused([{"type": "int_type", "loc": ["add"], "msg": "Input should be a valid integer", "input": action.get("add")}])
        return self.add(action["add"], {"total": self.total + action["add"]})

    def add(self, number: int, observation: dict[str, Any]) -> dict[str, Any]:
        self.total, self.steps = self.total + number, self.steps + 1
        return {"observation": observation, "reward": number / 10, "done": self.steps == 3, "metadata": {"steps": self.steps}}

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        called = {"tool_name": name, "result": None, "error": None}
        if name == "give_up":
            return {"observation": {**called, "result": {"content": []}}, "reward": -1, "done": True}
        if name != "add" or not isinstance(arguments.get("number"), int):
            problem = {"error_type": "invalid_args", "message": f"{name} cannot be called so"}
            return {"observation": {**called, "error": problem}, "reward": 0, "done": False}
        text = {"type": "text", "text": f"The total is {self.total + arguments['number']}."}
        return self.add(arguments["number"], {**called, "result": {"content": [text], "is_error": False}})


class StandIn:
    """A server on loopback.

    Args of the constructor: the contract; whether it has ``/ws``; the most sessions at once; and by the name of a request (``schema``,
    ``ws``, ``reset``, ``step``) what goes wrong with it: ``gone``, ``garbage``, ``refused``, ``nonsense``, ``error``, ``slow``, or a whole
    answer.
    """

    def __init__(self, contract: str = "gym", *, websockets: bool = True, most: int = 100, faults: Mapping[str, Any] | None = None) -> None:
        self.schema: Any = {"action": GYM_ACTION if contract == "gym" else MCP_ACTION}
        self.websockets, self.most, self.faults = websockets, most, dict(faults or {})
        self.url = ""
        self.resets: list[dict[str, Any]] = []
        self.actions: list[dict[str, Any]] = []
        self.opened = self.open_now = self.most_at_once = 0
        self.asked: list[str] = []
        """The requests that came, by name, whatever became of them."""
        self.pings = False
        """Whether it pings once it has answered a reset."""
        self.was_answered = threading.Event()
        """Whether its ping was."""
        self.all_ended = threading.Condition()
        self._shared = Counting()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/schema", self.give_schema)
        app.router.add_post("/reset", self.post)
        app.router.add_post("/step", self.post)
        if self.websockets:
            app.router.add_get("/ws", self.session)
        return app

    async def give_schema(self, request: web.Request) -> web.StreamResponse:
        return await self.failing(request, "schema") or web.json_response(self.schema)

    async def post(self, request: web.Request) -> web.StreamResponse:
        name = request.path[1:]
        failed = await self.failing(request, name)
        if failed is not None:
            return failed
        data = await request.json()
        try:
            return web.json_response(self.answer(self._shared, name, data if name == "reset" else data["action"]))
        except Refused as refusal:
            return web.json_response({"detail": refusal.args[0]}, status=422)

    async def failing(self, request: web.Request, name: str) -> web.StreamResponse | None:
        self.asked.append(name)
        fault = self.faults.get(name)
        if fault == "gone":
            assert request.transport is not None
            request.transport.abort()
        if fault == "slow":
            await asyncio.Event().wait()
        if fault == "error":
            return web.Response(status=500, text="it broke")
        if fault == "refused":
            return web.json_response({"detail": "no"}, status=422)
        if fault == "garbage":
            return web.Response(text="<html>no JSON</html>")
        return None if fault is None else web.json_response({} if fault == "nonsense" else fault)

    def answer(self, environment: Counting, name: str, data: dict[str, Any]) -> dict[str, Any]:
        (self.resets if name == "reset" else self.actions).append(data)
        return environment.reset(**data) if name == "reset" else environment.step(data)

    async def session(self, request: web.Request) -> web.StreamResponse:
        failed = await self.failing(request, "ws")
        if failed is not None:
            return failed
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        if self.open_now >= self.most:
            await socket.send_json({"type": "error", "data": {"code": "CAPACITY_REACHED", "message": f"{self.most} sessions are open"}})
            await socket.close()
            return socket
        self.opened, self.open_now = self.opened + 1, self.open_now + 1
        self.most_at_once = max(self.most_at_once, self.open_now)
        try:
            await self.talk(socket, Counting())
        finally:
            with self.all_ended:
                self.open_now -= 1
                self.all_ended.notify_all()
        await socket.close()
        return socket

    async def talk(self, socket: web.WebSocketResponse, environment: Counting) -> None:
        while (message := await socket.receive()).type is WSMsgType.TEXT:
            said = json.loads(message.data)
            name, data = said["type"], said.get("data")
            if name == "close":
                return
            self.asked.append(name)
            fault = self.faults.get(name)
            if fault == "gone":
                return
            if fault == "slow":
                await socket.receive()  # the client leaves
                return
            if fault == "garbage":
                await socket.send_str("no JSON")
            elif fault == "error":
                await socket.send_json({"type": "error", "data": {"code": "EXECUTION_ERROR", "message": "it broke"}})
            elif fault is not None:
                await socket.send_json({"type": "observation", "data": {} if fault == "nonsense" else fault})
            else:
                await self.reply(socket, environment, name, data)

    async def reply(self, socket: web.WebSocketResponse, environment: Counting, name: str, data: dict[str, Any]) -> None:
        try:
            answer = {"type": "observation", "data": self.answer(environment, name, data)}
        except Refused as refusal:
            answer = {"type": "error", "data": {"code": "VALIDATION_ERROR", "message": "Invalid message", "errors": refusal.args[0]}}
        await socket.send_json(answer)
        if self.pings and name == "reset":
            await socket.ping()
            assert (await socket.receive()).type is WSMsgType.PONG
            self.was_answered.set()

    def wait_until_all_ended(self) -> None:
        """Wait until no session is open."""
        with self.all_ended:
            assert self.all_ended.wait_for(lambda: self.open_now == 0, timeout=20)


@contextlib.contextmanager
def serving(stand_in: StandIn) -> Iterator[StandIn]:
    """Serve on loopback, on a thread of its own."""
    ready, end = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        runner = web.AppRunner(stand_in.app(), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        stand_in.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await end.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    ready.wait()
    try:
        yield stand_in
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()
        loop.close()


if __name__ == "__main__":
    web.run_app(StandIn(*sys.argv[2:]).app(), host="127.0.0.1", port=int(sys.argv[1]), print=None)
