"""The interception endpoint: the model of a running rollout as an HTTP server on this machine.

One server serves the process. Each rollout has a secret path on it, under which it takes requests in the formats of chat
completions, completions, responses and Anthropic messages, has them answered by the rollout's own client, and so records every turn.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from typing import TYPE_CHECKING, Any, cast

from verifiers_compat.v1 import wire_anthropic, wire_openai, wire_responses
from vfgym.aio.background import on_background_loop, wait
from vfgym.calls import maybe_await, rollout_failure
from vfgym.clients import is_permanent_refusal
from vfgym.clients.config import CLIENT_TYPES
from vfgym.errors import ConfigurationError, Error, OverlongPromptError, did_you_mean
from vfgym.lifecycle import register_teardown

if TYPE_CHECKING:
    from aiohttp import web

    from verifiers_compat.v1.runtime import Runtime
    from verifiers_compat.v1.wire_openai import Request
    from vfgym.messages import Response

logger = logging.getLogger(__name__)

_CLIENT_TYPES = {
    "chat_completions": "openai_chat_completions",
    "completions": "openai_completions",
    "responses": "openai_responses",
    "messages": "anthropic_messages",
}
_APIS = {**{api: api for api in _CLIENT_TYPES}, **{kind: api for api, kind in _CLIENT_TYPES.items()}, "chat": "chat_completions"}
"""What each name of an API stands for: its own, that of the client that speaks it, or a short one."""
_ELSEWHERE = set(CLIENT_TYPES) - _APIS.keys()
_WIRES = {
    "chat/completions": wire_openai.CHAT,
    "completions": wire_openai.TEXT,
    "responses": wire_responses.RESPONSES,
    "messages": wire_anthropic.MESSAGES,
}
_REFUSALS = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
"""What a provider refuses for good (the key, the model), by the HTTP status that it says so with."""
_LARGEST_BODY = 256 * 2**20


def check_api(api: str) -> str:
    """Return the API that a name stands for.

    Raises:
        ConfigurationError: If the endpoint does not speak it.
    """
    if api in _ELSEWHERE:
        raise ConfigurationError(f"the endpoint of a rollout does not speak {api!r}: use one of {', '.join(_CLIENT_TYPES)}")
    if api not in _APIS:
        raise ConfigurationError(f"there is no API {api!r}; the endpoint of a rollout speaks {', '.join(_APIS)}.{did_you_mean(api, _APIS)}")
    return _APIS[api]


class InterceptionEndpoint:
    """The address of one rollout's model."""

    def __init__(self, server: _Server, running: Runtime) -> None:
        """Serve the model of `running`, on the loop that runs now."""
        self.key = secrets.token_urlsafe(24)
        self.running = running
        self.loop = asyncio.get_running_loop()
        self._server = server
        self._sdk_clients: list[Any] = []
        self._asking: set[asyncio.Task[Any]] = set()
        """What is asked of the model now."""
        server.endpoints[self.key] = self

    def config(self, api: str, model: str) -> dict[str, str]:
        """Return how the endpoint is reached by programs that speak `api`."""
        api = check_api(api)
        root = f"http://127.0.0.1:{self._server.port}/{self.key}"
        config = {"model": model, "api_key": self.key, "api_client_type": _CLIENT_TYPES[api]}
        # The SDK of Anthropic adds /v1 itself.
        return {**config, "base_url": root} if api == "messages" else {**config, "base_url": f"{root}/v1", "api_base": f"{root}/v1"}

    def sdk_client(self, api: str, *, sync: bool) -> Any:
        """Return a client of an SDK, which is closed with the rollout."""
        config = self.config(api, "")
        if config["api_client_type"] == "anthropic_messages":
            import anthropic

            kind: Any = anthropic.Anthropic if sync else anthropic.AsyncAnthropic
        else:
            import openai

            kind = openai.OpenAI if sync else openai.AsyncOpenAI
        client = kind(base_url=config["base_url"], api_key=config["api_key"], max_retries=0, timeout=24 * 3600.0)
        self._sdk_clients.append(client)
        return client

    async def close(self) -> None:
        """Serve no more requests. Those that still wait for the model are cancelled, so that no program waits for ever."""
        self._server.endpoints.pop(self.key, None)
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait({*self._asking})
        clients, self._sdk_clients = self._sdk_clients, []
        for client in clients:
            await maybe_await(client.close)

    async def answer(self, request: Request) -> Response:
        """Have a request answered on the rollout's own loop; cancelling us cancels that."""
        future = asyncio.run_coroutine_threadsafe(self._answer_request(request), self.loop)
        return await asyncio.wrap_future(future)

    async def _answer_request(self, request: Request) -> Response:
        if self.key not in self._server.endpoints:
            raise asyncio.CancelledError("the rollout has ended meanwhile")
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._asking.add(task)
        try:
            response = await self.running.ask(request.messages, request.tools, request.sampling_args)
        except (Exception, SystemExit) as error:  # out of this task, a SystemExit would go through the loop
            self.running.failure = failure = rollout_failure(error)
            raise failure from failure.__cause__
        finally:
            self._asking.discard(task)
        self.running.failure = None
        return response


class _Server:
    """The one server of the process, on the background loop."""

    def __init__(self) -> None:
        self.endpoints: dict[str, InterceptionEndpoint] = {}
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_post("/{key}/{path:.*}", self._serve)
        # A program that goes away takes its request with it.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        register_teardown(self)

    def run_teardown(self) -> None:
        """Stop serving."""
        global _server
        if _server is self:
            _server = None
        runner, self._runner = self._runner, None
        if runner is not None:
            wait(runner.cleanup())

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        endpoint = self.endpoints.get(request.match_info["key"])
        if endpoint is None:
            return _problem(404, "not_found_error", "there is no such rollout, or it is over")
        path = request.match_info["path"].removeprefix("v1/")
        wire = _WIRES.get(path)
        if wire is None:
            return _problem(404, "not_found_error", f"the endpoint of a rollout serves {', '.join(_WIRES)}; got {path!r}")
        try:
            body = await request.json()
            parsed = wire.parse(body)
        except (ValueError, TypeError, LookupError) as error:
            return _problem(400, "invalid_request_error", f"the request could not be read: {error}")
        try:
            response = await endpoint.answer(parsed)
        except OverlongPromptError as error:
            return _problem(400, "invalid_request_error", f"prompt is too long: {error}", code="context_length_exceeded")
        except Error as error:
            return _problem(424, "model_error", str(error))
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
            return _problem(410, "rollout_cancelled", "the rollout was cancelled")
        except Exception as error:
            if is_permanent_refusal(error):
                status: int = error.status_code  # type: ignore[attr-defined] # it is an SDK's
                return _problem(status, _REFUSALS[status], str(error))
            logger.exception("a model call of a rollout failed")
            return _problem(500, "internal_error", f"{type(error).__name__}: {error}")
        if not parsed.stream:
            return web.json_response(wire.answer(response))
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await stream.prepare(request)
        await stream.write("".join(wire.events(response)).encode())
        await stream.write_eof()
        return stream


def _problem(status: int, kind: str, message: str, code: str | None = None) -> web.Response:
    """Return an error in a form that both SDKs read."""
    from aiohttp import web

    body = {"type": "error", "error": {"type": kind, "message": message, "code": code, "param": None}}
    return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers={"x-should-retry": "false"})


_server: _Server | None = None
_starting = asyncio.Lock()


async def open_endpoint(running: Runtime) -> InterceptionEndpoint:
    """Return an address for the model of a rollout; the server is started with the first one."""
    return InterceptionEndpoint(await on_background_loop(_start_server), running)


async def _start_server() -> _Server:
    global _server
    async with _starting:
        if _server is None:
            server = _Server()
            await server.start()
            _server = server
        return _server
