"""`ModelServer`: models that are functions, behind the HTTP APIs of the providers."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from vfgym.aio.bounded_http import BoundedServer, read_body
from vfgym.aio.bounds import TooMuch
from vfgym.errors import ConfigurationError
from vfgym.model_server import wire
from vfgym.model_server.answering import Behaviour
from vfgym.model_server.exchange import Policy, RequestRefused
from vfgym.model_server.faults import FaultFunction, Faults
from vfgym.model_server.policies import echo
from vfgym.model_server.provider_errors import Overlong

_LARGEST_BODY = 256 * 2**20
"""Bytes of a request."""
_GRACE = 0.02
"""Seconds that requests in flight have when the server closes."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that the server got."""

    number: int
    method: str
    path: str
    headers: Mapping[str, str]
    """Whatever the case of their names."""
    body: Any
    """The parsed JSON; text where it was not JSON, and None where there was none."""


class ModelServer:
    """An OpenAI- and Anthropic-compatible server whose models are functions (policies).

    ``async with server`` serves on the running event loop, ``with server`` on a thread with a loop of its own. A server that was closed
    can be started again; what it recorded stays.

    >>> import json, urllib.request
    >>> with ModelServer() as server:
    ...     body = {"model": "echo", "messages": [{"role": "user", "content": "hello"}]}
    ...     request = urllib.request.Request(server.openai_url + "/chat/completions", json.dumps(body).encode())
    ...     with urllib.request.urlopen(request) as answer:
    ...         print(json.load(answer)["choices"][0]["message"]["content"])
    hello
    """

    def __init__(
        self,
        models: Mapping[str, Policy] | None = None,
        *,
        faults: Faults | FaultFunction | None = None,
        latency: float = 0.0,
        max_model_len: int | None = None,
        overlong: Overlong | None = None,
        api_keys: Collection[str] | None = None,
        forbidden_keys: Collection[str] = (),
        keep_requests: int = 1000,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Describe a server; it does not listen yet.

        Args:
            models: Policies by the names of the models; `echo` alone where it is None.
            faults: What goes wrong: by chance, or as a function says. A request may ask for a fault with the header ``X-Fault``.
            latency: Seconds before each answer.
            max_model_len: Most tokens of a prompt with its answer; a longer prompt is refused, a longer answer cut. None for no limit.
            overlong: How a prompt that is too long is refused; in each provider's own way where it is None.
            api_keys: Keys that are accepted; any key, or none, where it is None.
            forbidden_keys: Keys that are refused with status 403.
            keep_requests: How many of the newest requests are kept in `requests`.
            host: Address to listen on.
            port: Port to listen on; 0 for any free one.

        Raises:
            ConfigurationError: If an argument is not as described.
        """
        if not isinstance(keep_requests, int) or keep_requests < 0:
            raise ConfigurationError(f"keep_requests must be a number of requests from 0, got {keep_requests!r}")
        if models is not None and not isinstance(models, Mapping):
            raise ConfigurationError(f"models must be policies by name, such as {{'echo': echo}}, got {type(models).__name__}")
        self.behaviour = Behaviour(
            {"echo": echo} if models is None else dict(models),
            faults,
            latency,
            max_model_len,
            overlong,
            api_keys,
            forbidden_keys,
        )
        """How the server answers; it may be changed while the server runs."""
        self.host = host
        self.port = port
        self.num_requests = 0
        """How many requests the server got."""
        self._recorded: deque[RecordedRequest] = deque(maxlen=keep_requests)
        self._runner: web.ServerRunner | None = None
        self._thread: _ServerThread | None = None
        self._address: tuple[str, int] | None = None

    # Life

    async def start(self) -> None:
        """Listen on the running event loop.

        Raises:
            ConfigurationError: If the server runs already.
            OSError: If the address cannot be listened on.
        """
        if self.is_running:
            raise ConfigurationError(f"the server runs already, at {self.url}")
        # A client that goes away ends the work for it, as in servers of real models.
        runner = web.ServerRunner(BoundedServer(self._handle, for_anyone=True), shutdown_timeout=_GRACE)
        await runner.setup()
        try:
            await web.TCPSite(runner, self.host, self.port, backlog=4096).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self._address = runner.addresses[0][:2]

    async def aclose(self) -> None:
        """Stop a server that was started on the running loop, with whatever is in flight. Closing twice does nothing."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        self._address = None
        await asyncio.sleep(
            0
        )  # who was just accepted gets a connection, which is closed: Python 3.11 forgets it where the server closes first
        await runner.cleanup()

    def start_thread(self) -> None:
        """Listen on a thread of its own.

        Raises:
            ConfigurationError: If the server runs already.
            OSError: If the address cannot be listened on.
        """
        if self.is_running:
            raise ConfigurationError(f"the server runs already, at {self.url}")
        self._thread = _ServerThread(self)
        try:
            self._thread.serve()
        except BaseException:
            self._thread = None
            raise

    def close(self) -> None:
        """Stop a server that runs on a thread of its own, with whatever is in flight. Closing twice does nothing.

        Raises:
            ConfigurationError: If the server runs on an event loop instead.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()
        elif self._runner is not None:
            raise ConfigurationError("the server was started on an event loop: close it there, with `await server.aclose()`")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        self.start_thread()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        """Whether the server listens."""
        return self._address is not None

    @property
    def url(self) -> str:
        """Where the server listens; also the base URL for Anthropic's SDK.

        Raises:
            ConfigurationError: If it does not run.
        """
        if self._address is None:
            raise ConfigurationError("the server does not run: use it as `with server:` or `async with server:`")
        host, port = self._address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's SDK."""
        return f"{self.url}/v1"

    @property
    def models(self) -> dict[str, Policy]:
        """The policies by the names of the models; they may be changed."""
        return self.behaviour.models

    @property
    def faults_given(self) -> Counter[str]:
        """How often each kind of fault happened, by the keys of `FAULTS`."""
        return self.behaviour.faults_given

    @property
    def requests(self) -> list[RecordedRequest]:
        """The newest requests, in the order of arrival."""
        return list(self._recorded)

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        self.num_requests += 1
        number = self.num_requests
        body: Any = None
        problem: RequestRefused | None = None
        if self.behaviour.knows_key(http):  # what others send is not read
            try:
                body, wrong = wire.parse_body(await read_body(http, _LARGEST_BODY))
                problem = None if wrong is None else RequestRefused(400, wrong)
            except TooMuch as error:
                problem = RequestRefused(error.status, str(error))
        self._recorded.append(RecordedRequest(number, http.method, http.path, http.headers, body))
        return await self.behaviour.answer(http, body, problem, number)


class _ServerThread(threading.Thread):
    """A thread with an event loop that a server runs on."""

    def __init__(self, server: ModelServer) -> None:
        super().__init__(name="vfgym-model-server", daemon=True)
        self._server = server
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        """The loop, once the server listens on it."""
        self._closing = asyncio.Event()

    def serve(self) -> None:
        self.start()
        failure = self._loop.exception()
        if failure is not None:
            self.join()
            raise failure

    def stop(self) -> None:
        self._loop.result().call_soon_threadsafe(self._closing.set)
        self.join()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        try:
            await self._server.start()
        except BaseException as error:
            self._loop.set_exception(error)
            return
        self._loop.set_result(asyncio.get_running_loop())
        try:
            await self._closing.wait()
        finally:
            await self._server.aclose()
