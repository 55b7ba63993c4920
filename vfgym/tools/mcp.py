"""Tool servers that speak the Model Context Protocol: how one is reached, and a session with it.

A session lives on the process's background event loop, in one task that enters and leaves the SDK's client: the SDK allows
no other task to do that. Whoever calls a tool, from any loop or thread, has the call carried out there.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vfgym.aio.background import on_background_loop
from vfgym.errors import ConfigurationError, InfraError, MissingExtra, ToolCallError
from vfgym.output.redaction import redact_url
from vfgym.tools.definition import Tool
from vfgym.tools.results import compact_json

if TYPE_CHECKING:
    import mcp
    from mcp_types import CallToolResult

logger = logging.getLogger(__name__)

T = TypeVar("T")

_FORGOTTEN = "Session terminated"
"""What the SDK says where a server over HTTP refuses a request because it knows no such session (any more)."""

NO_RESULT = "The tool returned no result."
"""What the model reads where a tool returned nothing at all."""


class MCPServerConfig(BaseModel):
    """How a tool server is reached: a command that is started and spoken to over its pipes, or the URL of one that runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    """What the server is called in errors; its command or URL by default."""
    command: str | None = None
    """Program to start."""
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default={}, repr=False)
    """Environment variables of the program, besides the few that the SDK passes on (``PATH``, ``HOME``, ...). They may be secrets, so
    ``repr`` leaves them out."""
    cwd: str | None = None
    """Directory to start the program in."""
    url: str | None = None
    """Endpoint of a server that speaks streamable HTTP. Errors and ``repr`` leave out user, password and query."""
    headers: dict[str, str] = Field(default={}, repr=False)
    """HTTP headers of every request to `url`. They may be secrets, so ``repr`` leaves them out."""
    description: str = ""
    """What the server is there for, for whoever reads the configuration."""
    tool_prefix: str = ""
    """Put before the names of the server's tools, so that those of several servers can be told apart."""
    timeout_seconds: float = Field(default=60.0, gt=0)
    """Seconds that one call may take."""
    connect_timeout_seconds: float = Field(default=60.0, gt=0)
    """Seconds that starting and greeting the server may take."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("a server is reached by a command or by a url: give one of them")
        misplaced = {"args", "env", "cwd"} if self.url else {"headers"}
        if misplaced & self.model_fields_set:
            raise ValueError(f"{', '.join(sorted(misplaced & self.model_fields_set))} does not go with {'url' if self.url else 'command'}")
        return self

    @property
    def label(self) -> str:
        """The server's name; its URL or command where it has none."""
        return self.name or (redact_url(self.url) if self.url else str(self.command))

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, redact_url(value) if name == "url" and value else value) for name, value in super().__repr_args__()]

    @classmethod
    def of(cls, value: object) -> MCPServerConfig:
        """Return `value`, a configuration or a mapping with its fields, as a configuration.

        Raises:
            ConfigurationError: If it is neither, or a field does not fit.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, BaseModel):
            value = value.model_dump(exclude_unset=True)
        if not isinstance(value, Mapping):
            raise ConfigurationError(
                "a tool server is described by a dict with a command ({'name', 'command', 'args', 'env'}) or a url ({'url'}),"
                f" or by an MCPServerConfig; got {type(value).__name__}"
            )
        try:
            return cls.model_validate({key: field for key, field in value.items() if field is not None})
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}".lstrip(": ") for problem in error.errors())
            raise ConfigurationError(f"not a tool server ({problems}); got the fields {', '.join(map(str, value))}") from None


class ReportedError(ToolCallError):
    """A tool says itself that it failed, in its own words."""


class MCPSession:
    """A session with one server, which any number of episodes share.

    It connects when it is first used, and once more when the connection was lost. A call that may have been carried out by then is
    made once more only if the tool is annotated as read-only or idempotent.
    """

    def __init__(self, server: MCPServerConfig) -> None:
        """Describe a session; nothing is started yet.

        Raises:
            MissingExtra: If the MCP SDK is not installed.
        """
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise MissingExtra("mcp", "a tool server") from None
        self.server = server
        self._connection: _Connection | None = None
        self._lock = asyncio.Lock()
        self._is_closed = False
        self._repeatable: set[str] = set()
        """Tools that may be called twice, as the server says."""

    async def list_tools(self) -> list[Tool]:
        """Return the tools of the server, under the names that they have there.

        Raises:
            InfraError: If the server cannot be reached.
        """
        return await on_background_loop(self._list_tools)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str | list[dict[str, Any]]:
        """Call a tool of the server and return what it gave, as the content of a tool message.

        A call that takes too long is given up.

        Raises:
            ToolCallError: If the tool failed (the text is what the server said), or the arguments cannot be sent.
            InfraError: If the server cannot be reached (any more).
        """
        return await on_background_loop(self._call, name, dict(arguments))

    async def close(self) -> None:
        """End the session, and the server if it was started for it. A second call does nothing."""
        await on_background_loop(self._close)

    async def _list_tools(self) -> list[Tool]:
        tools: list[Tool] = []
        cursor = None
        while True:
            page = await self._request(lambda client, cursor=cursor: client.list_tools(cursor=cursor))  # type: ignore[misc]
            self._repeatable |= {tool.name for tool in page.tools if _is_repeatable(tool)}
            tools += [Tool(name=tool.name, description=tool.description or "", parameters=tool.input_schema) for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                return tools

    async def _call(self, name: str, arguments: dict[str, Any]) -> str | list[dict[str, Any]]:
        from mcp import MCPError

        _check_sendable(name, arguments)
        unrepeatable = None if name in self._repeatable else name
        try:
            result = await self._request(lambda client: client.call_tool(name, arguments), unrepeatable)
        except MCPError as error:
            raise ToolCallError(f"{name}: {error}") from error
        content = result_content(result)
        if result.is_error:
            raise ReportedError(content if isinstance(content, str) else compact_json(content))
        return content

    async def _request(self, request: Callable[[mcp.Client], Awaitable[T]], unrepeatable: str | None = None) -> T:
        """Make a request; once more, on a new connection, where the first finds the connection lost.

        Args:
            request: Makes it.
            unrepeatable: The tool that it calls, where that may be carried out only once.
        """
        connection = await self._connected()
        try:
            return await connection.ask(request)
        except ConnectionLost as loss:
            if unrepeatable is not None and loss.may_be_done:
                raise InfraError(
                    f"the connection to the tool server {self.server.label} was lost while {unrepeatable} was called. Nobody knows whether"
                    f" the call was carried out, so {unrepeatable} is not called again: its annotations do not say that it is read-only or"
                    " idempotent"
                ) from None
            logger.warning("the connection to the tool server %s was lost: connecting again", self.server.label)
        connection = await self._connected()
        try:
            return await connection.ask(request)
        except ConnectionLost:
            raise InfraError(f"the tool server {self.server.label} broke off the connection, also after connecting again") from None

    async def _connected(self) -> _Connection:
        async with self._lock:
            if self._is_closed:
                raise InfraError(f"the session with the tool server {self.server.label} is closed")
            if self._connection is not None and self._connection.is_lost:
                await self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = await _Connection.connect(self.server)
            return self._connection

    async def _close(self) -> None:
        self._is_closed = True
        async with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.close()


def _is_repeatable(tool: Any) -> bool:
    hints = tool.annotations
    return hints is not None and bool(hints.idempotent_hint or hints.read_only_hint)


def _check_sendable(name: str, arguments: dict[str, Any]) -> None:
    """Refuse arguments that have no JSON in UTF-8: the SDK (mcp 2) finds out when it writes, and gives up the connection.

    Raises:
        ToolCallError: If there are any.
    """
    from mcp_types import JSONRPCRequest

    request = JSONRPCRequest(jsonrpc="2.0", id=0, method="tools/call", params={"name": name, "arguments": arguments})
    try:
        request.model_dump_json(by_alias=True, exclude_unset=True)
    except (ValueError, RecursionError) as error:
        raise ToolCallError(f"{name}: the arguments cannot be sent to the tool: {error}") from error


class ConnectionLost(Exception):
    """The server is gone, or has forgotten the session."""

    def __init__(self, *, may_be_done: bool) -> None:
        """Tell of a loss.

        Args:
            may_be_done: Whether the server may have carried out the request.
        """
        super().__init__()
        self.may_be_done = may_be_done


class _Connection:
    """One connection to a server, held open by a task of its own."""

    def __init__(self, server: MCPServerConfig) -> None:
        self._server = server
        self._leave = asyncio.Event()
        self._client: asyncio.Future[mcp.Client] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.ensure_future(self._own())
        self.is_lost = False

    @classmethod
    async def connect(cls, server: MCPServerConfig) -> _Connection:
        """Return a connection on which the server has answered."""
        connection = cls(server)
        try:
            async with asyncio.timeout(server.connect_timeout_seconds):
                await asyncio.shield(connection._client)
        except TimeoutError:
            await connection._abandon()
            raise InfraError(f"the tool server {server.label} did not answer within {server.connect_timeout_seconds:g} seconds") from None
        except asyncio.CancelledError:
            await connection._abandon()
            raise
        except Exception as error:
            await connection._abandon()
            raise InfraError(f"the tool server {server.label} could not be reached: {_reason(error)}") from error
        return connection

    async def ask(self, request: Callable[[mcp.Client], Awaitable[T]]) -> T:
        """Make a request.

        Raises:
            ConnectionLost: If the connection was lost before the answer came.
        """
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        if self._owner.done():
            self.is_lost = True
            raise ConnectionLost(may_be_done=False)
        asking = asyncio.ensure_future(request(self._client.result()))
        try:
            await asyncio.sleep(0)
            was_sent = not asking.done()  # what is refused at its first step was not written to anybody
            # The SDK's HTTP transport ends its owner when the server cannot be reached, and leaves the request waiting.
            await asyncio.wait((asking, self._owner), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            self.is_lost = True
            raise ConnectionLost(may_be_done=True)
        except Exception as error:
            is_forgotten = isinstance(error, MCPError) and error.message == _FORGOTTEN
            is_closed = isinstance(error, MCPError) and error.code == CONNECTION_CLOSED
            self.is_lost = self.is_lost or self._owner.done() or is_forgotten or is_closed
            if self.is_lost and not isinstance(error, ConnectionLost):
                raise ConnectionLost(may_be_done=was_sent and not is_forgotten) from error
            raise
        finally:
            if not asking.done():
                asking.cancel()
                await asyncio.wait((asking,))

    async def close(self) -> None:
        """Leave, and wait until the server that was started has ended."""
        self._leave.set()
        await asyncio.wait((self._owner,))

    async def _abandon(self) -> None:
        self._owner.cancel()
        await self.close()

    async def _own(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(await _client(self._server, stack))
                self._client.set_result(client)
                await self._leave.wait()
        except BaseException as error:
            if not self._client.done():
                self._client.set_exception(error if isinstance(error, Exception) else InfraError("it was cancelled"))
                self._client.exception()  # nobody may be waiting any more
            elif not self._leave.is_set():
                logger.debug("the connection to the tool server %s broke", self._server.label, exc_info=error)


async def _client(server: MCPServerConfig, stack: AsyncExitStack) -> mcp.Client:
    """Return the SDK's client for a server. It is not entered yet; what it needs besides is left with `stack`."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if server.url is not None:
        import httpx2

        http_client = await stack.enter_async_context(httpx2.AsyncClient(headers=server.headers, timeout=server.timeout_seconds))
        return Client(streamable_http_client(server.url, http_client=http_client), read_timeout_seconds=server.timeout_seconds)
    parameters = StdioServerParameters(
        command=str(server.command),
        args=list(server.args),
        env=server.env or None,
        cwd=server.cwd,
        encoding_error_handler="replace",  # one tool's result that is not UTF-8 would end the connection of all
    )
    # The SDK's default is the sys.stderr of its import, which in notebooks and under test runners is often no real file.
    log: Any = sys.__stderr__ if _has_descriptor(sys.__stderr__) else subprocess.DEVNULL
    return Client(stdio_client(parameters, errlog=log), read_timeout_seconds=server.timeout_seconds)


def _has_descriptor(file: Any) -> bool:
    try:
        return file is not None and file.fileno() >= 0
    except (OSError, ValueError):
        return False


def _reason(error: BaseException) -> str:
    """Return the text of an error; of a group, those of the errors in it."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(_reason(inner) for inner in error.exceptions))
    return f"{type(error).__name__}: {error}"


def result_content(result: CallToolResult) -> str | list[dict[str, Any]]:
    """Return what a tool gave as the content of a tool message: text, or parts where there are images or sounds."""
    if not result.content:
        return NO_RESULT if result.structured_content is None else compact_json(result.structured_content)
    parts = [_part(item) for item in result.content]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(item: Any) -> dict[str, Any]:
    if item.type == "text":
        return {"type": "text", "text": item.text}
    if item.type == "image":
        return {"type": "image_url", "image_url": {"url": f"data:{item.mime_type};base64,{item.data}"}}
    if item.type == "audio":
        return {"type": "input_audio", "input_audio": {"data": item.data, "format": item.mime_type.partition("/")[2]}}
    if item.type == "resource" and hasattr(item.resource, "text"):
        return {"type": "text", "text": item.resource.text}
    return {"type": "text", "text": item.model_dump_json(by_alias=True, exclude_none=True)}
