"""The one server of the process: it reads what programs ask, has the endpoint of their secret path answer, and writes the answers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from vfgym.aio.background import on_background_loop, wait
from vfgym.aio.bounds import TooMuch
from vfgym.clients import is_permanent_refusal
from vfgym.errors import Error, OverlongPromptError
from vfgym.interception import anthropic_messages, openai_chat, openai_responses
from vfgym.interception.budget import LARGEST_BODY, MemoryBudget
from vfgym.interception.named_messages import NamedMessages
from vfgym.interception.socket_files import make_socket_path, remove_socket
from vfgym.interception.strict_json import read_json
from vfgym.lifecycle import register_teardown
from vfgym.output.redaction import redact

if TYPE_CHECKING:
    from aiohttp import web

    from vfgym.aio.bounded_http import BoundedServer
    from vfgym.interception.wire import Request, Wire
    from vfgym.messages import Response

logger = logging.getLogger(__name__)

_WIRES = {
    "chat/completions": openai_chat.CHAT,
    "completions": openai_chat.TEXT,
    "responses": openai_responses.RESPONSES,
    "messages": anthropic_messages.MESSAGES,
}
_REFUSALS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
"""What a provider refuses for good (the key, the model), by the HTTP status that it says so with."""
_SENDS_WITHIN = 10.0
"""Seconds after which a program that waits for a stream is sent something, so that it and what is between do not give up."""
_CANCELLED = "the rollout was cancelled"
_LINGERS = 5.0
"""Seconds after the end of a rollout in which its programs may read what they are answered, before their connections are cut."""
_KEYS = frozenset({"authorization", "x-api-key"})
"""Headers with the key of an endpoint."""
_SET_ASIDE = "X-Vfgym-Set-Aside"
"""The header of an answer that names the fields of its request which were not passed on."""
_MOST_NAMED, _LONGEST_NAME, _MOST_LOGGED = 20, 50, 100
_TOO_MUCH = {413: "request_too_large", 429: "rate_limit_error"}


class Answering(Protocol):
    """What the server asks of an endpoint."""

    budget: MemoryBudget
    named_messages: NamedMessages

    async def answer(self, request: Request) -> Response:
        """Have a request answered; cancelling us cancels that."""
        ...

    async def call_tool(self, name: str, arguments: Any) -> Any:
        """Have a tool called, and return JSON data; cancelling us cancels that."""
        ...


class Server:
    """Serves all endpoints of the process, on the background loop: at a port of loopback, and on a unix socket."""

    def __init__(self) -> None:
        """Make a server that does not serve yet."""
        self.endpoints: dict[str, Answering] = {}
        """Who answers, by the first part of the path."""
        self.port = 0
        self.socket_path = ""
        self._runner: web.ServerRunner | None = None
        self._connections: BoundedServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._named: set[str] = set()
        """Fields that were set aside, as far as the log has them."""

    async def start(self) -> None:
        """Begin to serve, until the process ends."""
        from aiohttp import web

        from vfgym.aio.bounded_http import BoundedServer

        self._loop = asyncio.get_running_loop()
        self._connections = BoundedServer(self._serve)
        self._runner = web.ServerRunner(self._connections)
        await self._runner.setup()
        self.socket_path = make_socket_path()
        await web.UnixSite(self._runner, self.socket_path).start()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[1][1]
        register_teardown(self)

    def run_teardown(self) -> None:
        """Stop serving."""
        global _server
        if _server is self:
            _server = None
        runner, self._runner = self._runner, None
        if runner is not None:
            wait(runner.cleanup())
            remove_socket(self.socket_path)

    def let_go(self, key: str) -> None:
        """Cut the connections of an endpoint that was closed, once what it was asked is answered. Any thread may call."""
        loop, connections = self._loop, self._connections
        if loop is not None and connections is not None and loop.is_running():
            loop.call_soon_threadsafe(loop.call_later, _LINGERS, connections.let_go, key)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        key, _, path = request.path.removeprefix("/").partition("/")
        endpoint = self.endpoints.get(key)
        if endpoint is None:  # what a stranger sends is not read
            return _closing(_problem(404, "not_found_error", "there is no such rollout, or it is over"))
        if request.method != "POST":
            return _closing(_problem(405, "invalid_request_error", "the endpoint of a rollout is asked by POST"))
        if self._connections is None or not self._connections.welcome(request, key, len(self.endpoints)):
            return _closing(_problem(429, "rate_limit_error", "the program has too many connections open"))
        try:
            return await self._answer(request, endpoint, path.removeprefix("v1/"))
        except TooMuch as error:
            return _closing(_problem(error.status, _TOO_MUCH.get(error.status, "invalid_request_error"), str(error)))

    async def _answer(self, request: web.BaseRequest, endpoint: Answering, path: str) -> web.StreamResponse:
        """Answer a request of a program of this endpoint; what it takes of memory is counted until then."""
        from aiohttp import web
        from multidict import CIMultiDict

        from vfgym.aio.bounded_http import read_body

        wire = _WIRES.get(path)
        if wire is None and not path.startswith("tools/"):
            return _problem(404, "not_found_error", f"the endpoint of a rollout serves {', '.join(_WIRES)}; got {path[:100]!r}")
        with endpoint.budget.request(len(self.endpoints)) as waiting:
            body = await read_body(request, LARGEST_BODY, waiting.take)
            waiting.read(body)
            if wire is None:
                return web.json_response(await _call_tool(endpoint, path.removeprefix("tools/"), body))
            try:
                parsed = wire.parse(read_json(body))
                messages, unnamed = endpoint.named_messages.named(parsed.messages)
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                said = f"it has no {error}" if isinstance(error, KeyError) else error
                return _problem(400, "invalid_request_error", f"the request could not be read: {said}")
            del body
            headers = CIMultiDict((name, value) for name, value in request.headers.items() if name.lower() not in _KEYS)
            parsed = dataclasses.replace(parsed, messages=endpoint.budget.keep(messages), headers=headers)
            noted = self._note_set_aside((*parsed.set_aside, *unnamed))
            if parsed.stream:
                return await _stream(request, endpoint, wire, parsed, noted)
            answer = await _ask(endpoint, parsed)
            response = answer if isinstance(answer, web.Response) else web.json_response(wire.answer(answer))
            response.headers.update(noted)
            return response

    def _note_set_aside(self, names: tuple[str, ...]) -> dict[str, str]:
        """Return the headers that tell a program which fields were not passed on; the log has each name once."""
        own = [name[:_LONGEST_NAME].encode("ascii", "replace").decode() for name in names[:_MOST_NAMED]]
        own = ["".join(character if character.isprintable() else "?" for character in name) for name in own]
        new = [name for name in own if name not in self._named]
        if new and len(self._named) < _MOST_LOGGED:
            self._named.update(new)
            logger.warning("a program's request has %s, which only its rollout may say: it is not passed on", ", ".join(map(repr, new)))
        return {_SET_ASIDE: ", ".join(own)} if own else {}


async def _ask(endpoint: Answering, request: Request) -> Response | web.Response:
    """Return what an endpoint answers, or what the program is told instead."""
    try:
        response = await endpoint.answer(request)
        endpoint.named_messages.note(response.message)
        return response
    except OverlongPromptError as error:
        return _problem(400, "invalid_request_error", f"prompt is too long: {error}", code="context_length_exceeded")
    except Error as error:
        return _problem(424, "model_error", str(error))
    except asyncio.CancelledError:
        if _program_went_away():
            raise
        return _problem(410, "rollout_cancelled", _CANCELLED)
    except Exception as error:
        if is_permanent_refusal(error):
            status: int = error.status_code  # type: ignore[attr-defined] # it is an SDK's
            return _problem(status, _REFUSALS[status], str(error))
        logger.exception("a model call of a rollout failed")
        return _problem(500, "internal_error", f"{type(error).__name__}: {error}")


async def _call_tool(endpoint: Answering, name: str, arguments: bytes) -> dict[str, Any]:
    """Return the ``result`` of a tool, or the ``error`` that it raised, as text."""
    try:
        return {"result": await endpoint.call_tool(name, read_json(arguments))}
    except asyncio.CancelledError:
        if _program_went_away():
            raise
        return {"error": _CANCELLED}
    except Exception as error:
        return {"error": redact(str(error))}


def _program_went_away() -> bool:
    """Say whether it is the running request that was cancelled, and not what it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _stream(
    request: web.BaseRequest, endpoint: Answering, wire: Wire, asked: Request, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Have a request answered, and write the answer as the events of its format.

    A problem that comes soon has a status of its own. While the answer takes longer, comments keep the connection alive; what goes wrong
    after the first of them is an event.
    """
    from aiohttp import web

    asking = asyncio.ensure_future(_ask(endpoint, asked))
    try:
        await asyncio.wait([asking], timeout=_SENDS_WITHIN)
        if asking.done() and isinstance(problem := asking.result(), web.Response):
            return problem
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", **headers})
        try:
            await stream.prepare(request)
            while not asking.done():
                await stream.write(b": still waiting for the model\n\n")
                await asyncio.wait([asking], timeout=_SENDS_WITHIN)
            answer = asking.result()
            events = [f"event: error\ndata: {answer.text}\n\n"] if isinstance(answer, web.Response) else wire.events(answer, asked)
            for event in events:
                await stream.write(event.encode())
            await stream.write_eof()
        except ConnectionError:  # the program went away: it needs no answer
            pass
        return stream
    finally:
        asking.cancel()


def _problem(status: int, kind: str, message: str, code: str | None = None) -> web.Response:
    """Return an error in a form that both SDKs read, without secrets: who reads it may be a program that nobody trusts."""
    from aiohttp import web

    body = {"type": "error", "error": {"type": kind, "message": redact(message), "code": code, "param": None}}
    may_retry = {"x-should-retry": "true" if status == 429 else "false"}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers=may_retry)


def _closing(response: web.Response) -> web.Response:
    """Return a response after which its connection is closed."""
    response.force_close()
    return response


_server: Server | None = None
_starting = asyncio.Lock()


def _forget_server() -> None:
    # A forked child inherits the object, but neither the loop nor the socket that it answers on.
    global _server, _starting
    _server, _starting = None, asyncio.Lock()


os.register_at_fork(after_in_child=_forget_server)


async def running_server() -> Server:
    """Return the server of this process, started on first use."""
    return await on_background_loop(_start_server)


async def _start_server() -> Server:
    global _server
    async with _starting:
        if _server is None:
            server = Server()
            await server.start()
            _server = server
        return _server
