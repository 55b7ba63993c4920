"""`Endpoint`: the address at which the programs of one episode ask its model."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from vfgym.calls import maybe_await, rollout_failure
from vfgym.clients.config import CLIENT_TYPES
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.interception.budget import MemoryBudget
from vfgym.interception.named_messages import NamedMessages
from vfgym.interception.server import Server, running_server

if TYPE_CHECKING:
    from vfgym.interception.wire import Request
    from vfgym.messages import Response

_CLIENT_TYPES = {
    "chat_completions": "openai_chat_completions",
    "completions": "openai_completions",
    "responses": "openai_responses",
    "messages": "anthropic_messages",
}
_APIS = {**{api: api for api in _CLIENT_TYPES}, **{kind: api for api, kind in _CLIENT_TYPES.items()}, "chat": "chat_completions"}
"""What each name of an API stands for: its own, that of the client that speaks it, or a short one."""
_ELSEWHERE = set(CLIENT_TYPES) - _APIS.keys()

_ADDRESSES: Mapping[str, tuple[str, str]] = {
    "OPENAI_BASE_URL": ("chat_completions", "base_url"),
    "OPENAI_API_KEY": ("chat_completions", "api_key"),
    "OPENAI_MODEL": ("chat_completions", "model"),
    "ANTHROPIC_BASE_URL": ("messages", "base_url"),
    "ANTHROPIC_API_KEY": ("messages", "api_key"),
}
"""The environment variables by which a program finds its model: the API of each, and what of its configuration (`Endpoint.config`)."""
_TIMEOUTS = ("OPENAI_TIMEOUT", "OPENAI_REQUEST_TIMEOUT", "HTTPX_TIMEOUT")
"""Those by which programs know how many seconds they may wait for an answer."""
PROGRAM_VARIABLES = frozenset({*_ADDRESSES, *_TIMEOUTS})
"""The environment variables that an endpoint gives a program."""


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


class Endpoint:
    """The address of one episode's model. Its secret path keeps other programs from asking there."""

    def __init__(
        self, server: Server, answer: Callable[[Request], Awaitable[Response]], call_tool: Callable[[str, Any], Awaitable[Any]] | None
    ) -> None:
        """Have what is asked here answered by `answer`, and tools called by `call_tool`, on the loop that runs now."""
        self.key = secrets.token_urlsafe(24)
        self.budget = MemoryBudget()
        """What the requests of its programs take of memory."""
        self.named_messages = NamedMessages()
        self._ask = answer
        self._call_tool = call_tool
        self._loop = asyncio.get_running_loop()
        self._server = server
        self._sdk_clients: list[Any] = []
        self._asking: set[asyncio.Task[Any]] = set()
        """What is asked of the model now."""
        server.endpoints[self.key] = self

    @property
    def socket_path(self) -> str:
        """The unix socket on which the same address is served, for a sandbox into which nothing but that is forwarded."""
        return self._server.socket_path

    def config(self, api: str, model: str, port: int | None = None) -> dict[str, str]:
        """Return how the endpoint is reached by programs that speak `api`.

        Args:
            api: The API (see `check_api`).
            model: Name of the model.
            port: The port of loopback at which a sandbox finds the socket; None for programs of this machine.
        """
        api = check_api(api)
        root = f"http://127.0.0.1:{self._server.port if port is None else port}/{self.key}"
        config = {"model": model, "api_key": self.key, "api_client_type": _CLIENT_TYPES[api]}
        # The SDK of Anthropic adds /v1 itself.
        return {**config, "base_url": root} if api == "messages" else {**config, "base_url": f"{root}/v1", "api_base": f"{root}/v1"}

    def variables(self, model: str, port: int | None = None) -> dict[str, str]:
        """Return the environment variables by which a program finds the model (see `config`), and waits for it as long as it takes."""
        addresses = {name: self.config(api, model, port)[field] for name, (api, field) in _ADDRESSES.items()}
        return {**addresses, **dict.fromkeys(_TIMEOUTS, "3600")}

    def sdk_client(self, api: str, *, sync: bool) -> Any:
        """Return a client of an SDK, which is closed with the endpoint."""
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
        if self._server.endpoints.pop(self.key, None) is not None:
            self._server.let_go(self.key)
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait({*self._asking})
        clients, self._sdk_clients = self._sdk_clients, []
        for client in clients:
            await maybe_await(client.close)

    async def answer(self, request: Request) -> Response:
        """Have a request answered on the loop of the episode; cancelling us cancels that."""
        response: Response = await self._on_own_loop(lambda: self._ask(request))
        return response

    async def call_tool(self, name: str, arguments: Any) -> Any:
        """Have a tool of the episode called on its loop; cancelling us cancels that.

        Raises:
            LookupError: If its programs cannot call tools here.
        """
        call = self._call_tool
        if call is None:
            raise LookupError("the tools of this rollout are not called over HTTP")
        return await self._on_own_loop(lambda: call(name, arguments))

    async def _on_own_loop(self, work: Callable[[], Awaitable[Any]]) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._watched(work), self._loop))

    async def _watched(self, work: Callable[[], Awaitable[Any]]) -> Any:
        if self.key not in self._server.endpoints:
            raise asyncio.CancelledError("the rollout has ended meanwhile")
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._asking.add(task)
        try:
            return await work()
        except (Exception, SystemExit) as error:  # out of this task, a SystemExit would go through the loop
            failure = rollout_failure(error)
            raise failure from failure.__cause__
        finally:
            self._asking.discard(task)


async def open_endpoint(
    answer: Callable[[Request], Awaitable[Response]], call_tool: Callable[[str, Any], Awaitable[Any]] | None = None
) -> Endpoint:
    """Return an address for the model of an episode, to be closed with it. The server of the process is started with the first one.

    Args:
        answer: Answers one request. It is called on the loop that runs now, and several calls may wait at once.
        call_tool: Calls a tool of the episode by its name, with arguments, and returns JSON data: what is posted to ``/tools/NAME``.
    """
    return Endpoint(await running_server(), answer, call_tool)
