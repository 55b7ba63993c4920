"""A session with a tool server: what its tools give, what is repeated when the connection is lost, and how it ends."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from vfgym.errors import ConfigurationError, InfraError, ToolCallError
from vfgym.tools.definition import Tool
from vfgym.tools.mcp import NO_RESULT, MCPServerConfig, MCPSession, ReportedError, _client, _Connection, result_content

pytest.importorskip("mcp", reason="the extra mcp is not installed")

SERVER = """
import asyncio, os
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ImageContent, ListToolsResult, TextContent, Tool, ToolAnnotations

SCHEMA = {"type": "object", "properties": {"file": {"type": "string"}}}
HINTS = {"look": {"read_only_hint": True}, "put": {"idempotent_hint": True}, "count": {"read_only_hint": False}}
PAGES = {None: (["pid", "where", "fail", "forever", "count", "burn"], "2"), "2": (["look", "put"], None)}

async def list_tools(context, params):
    names, following = PAGES[params and params.cursor]
    tools = [Tool(name=name, description=name.upper() if name in HINTS else None, input_schema=SCHEMA,
                  annotations=ToolAnnotations(**HINTS[name]) if name in HINTS else None) for name in names]
    return ListToolsResult(tools=tools, next_cursor=following)

async def call_tool(context, params):
    if params.name == "forever":
        await asyncio.Event().wait()
    if params.name in HINTS:
        with open(params.arguments["file"], "a") as file:
            file.write("x")
        if params.name != "look" or os.path.getsize(params.arguments["file"]) == 1:
            os._exit(3)
    if params.name == "burn":
        return CallToolResult(content=[ImageContent(data="AA==", mime_type="image/png")], is_error=True)
    texts = {"pid": [str(os.getpid())], "look": ["seen"], "fail": ["no such", "page"],
             "where": [os.getcwd(), os.environ.get("GREETING", "")]}[params.name]
    return CallToolResult(content=[TextContent(text=text) for text in texts], is_error=params.name == "fail")

async def main():
    server = Server("test", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> MCPServerConfig:
    folder = tmp_path_factory.mktemp("mcp")
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    return MCPServerConfig(name="test", command=sys.executable, args=("server.py",), env={"GREETING": "hi"}, cwd=str(folder))


@pytest.fixture(scope="module")
def session(server: MCPServerConfig) -> Iterator[MCPSession]:
    """A session for the tests that leave its server as it was."""
    session = MCPSession(server)
    asyncio.run(session.list_tools())
    yield session
    asyncio.run(session.close())


@pytest.fixture
def own(server: MCPServerConfig) -> Iterator[MCPSession]:
    session = MCPSession(server)
    yield session
    asyncio.run(session.close())


def call(session: MCPSession, name: str, **arguments: Any) -> Any:
    return asyncio.run(session.call(name, arguments))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_tools_of_every_page_are_listed(session: MCPSession) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"file": {"type": "string"}}}
    told = {"pid": "", "where": "", "fail": "", "forever": "", "count": "COUNT", "burn": "", "look": "LOOK", "put": "PUT"}
    assert asyncio.run(session.list_tools()) == [Tool(name=name, description=text, parameters=schema) for name, text in told.items()]


def test_a_call_gives_the_text_or_says_that_the_tool_failed(session: MCPSession) -> None:
    folder, greeting = call(session, "where").split("\n")
    assert (Path(folder).samefile(str(session.server.cwd)), greeting) == (True, "hi")
    with pytest.raises(ReportedError, match=r"^no such\npage$"):
        call(session, "fail")
    with pytest.raises(ReportedError, match=r'^\[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}\]$'):
        call(session, "burn")
    with pytest.raises(ToolCallError, match=r"^pid: the arguments cannot be sent to the tool: "):
        call(session, "pid", value="\ud800")
    with pytest.raises(ToolCallError, match=r"^nothing: "):
        call(session, "nothing")
    assert call(session, "pid") == call(session, "pid")


def test_a_call_whose_server_dies_is_repeated_only_where_its_annotations_allow(own: MCPSession, tmp_path: Path) -> None:
    asyncio.run(own.list_tools())
    before = int(call(own, "pid"))
    for tool, says in {"count": "was lost while count was called", "put": "broke off the connection, also after connecting again"}.items():
        with pytest.raises(InfraError, match=f"server test {says}"):
            call(own, tool, file=str(tmp_path / tool))
    assert call(own, "look", file=str(tmp_path / "look")) == "seen"
    assert [(tmp_path / tool).read_text() for tool in ("count", "put", "look")] == ["x", "xx", "xx"]
    assert int(call(own, "pid")) != before
    assert not is_alive(before)


def test_a_cancelled_call_leaves_the_session_as_it_was(session: MCPSession) -> None:
    async def give_up() -> None:
        task = asyncio.create_task(session.call("forever", {}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = call(session, "pid")
    asyncio.run(give_up())
    assert call(session, "pid") == before


async def test_connecting_can_be_cancelled_and_leaves_nothing() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()
        ended.set()

    before = asyncio.all_tasks()
    async with await asyncio.start_server(hold, "127.0.0.1") as silent:
        port = silent.sockets[0].getsockname()[1]
        connecting = asyncio.create_task(_Connection.connect(MCPServerConfig(url=f"http://127.0.0.1:{port}/mcp")))
        await asked.wait()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await ended.wait()
    assert asyncio.all_tasks() == before


def test_a_closed_session_has_ended_its_server_and_starts_none(own: MCPSession) -> None:
    pid = int(call(own, "pid"))
    for _ in range(2):
        asyncio.run(own.close())
    assert not is_alive(pid)
    with pytest.raises(InfraError, match=r"^the session with the tool server test is closed$"):
        call(own, "pid")


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ({"command": "/no/such/program"}, "could not be reached: .*No such file"),
        ({"command": sys.executable, "args": ["-c", ""]}, "could not be reached: "),
        ({"url": "http://127.0.0.1:9/mcp", "headers": {"x": "y"}}, "could not be reached: "),
        (
            {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"], "connect_timeout_seconds": 0.25},
            r"did not answer within 0\.25 seconds$",
        ),
    ],
)
def test_a_server_that_cannot_be_reached_is_named(server: dict[str, Any], says: str) -> None:
    session = MCPSession(MCPServerConfig(name="lost one", **server))
    with pytest.raises(InfraError, match=f"^the tool server lost one {says}"):
        call(session, "pid")
    asyncio.run(session.close())


# Results


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({"content": []}, NO_RESULT),
        ({"content": [], "structured_content": {}}, "{}"),
        ({"content": [], "structured_content": {"a": [1]}}, '{"a":[1]}'),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": ""}], "structured_content": {"a": 1}}, "a\n"),
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AA==", "mime_type": "image/png"}]},
            [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}],
        ),
        (
            {"content": [{"type": "audio", "data": "AA==", "mime_type": "audio/wav"}]},
            [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}],
        ),
        ({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]}, "inside"),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}}]},
            '{"type":"resource","resource":{"uri":"file:///a","blob":"AA=="}}',
        ),
    ],
)
def test_a_result_is_the_content_of_a_message(result: dict[str, Any], content: Any) -> None:
    from mcp_types import CallToolResult

    assert result_content(CallToolResult.model_validate(result, by_name=True)) == content


# Configurations


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ({"name": "x"}, "command or by a url"),
        ({"command": "x", "url": "http://x"}, r"\(a server|command or by a url.*got the fields command, url$"),
        ({"url": "http://x", "args": ["a"], "env": {}, "cwd": "/"}, "args, cwd, env does not go with url"),
        ({"command": "x", "headers": {}}, "headers does not go with command"),
        (
            {"command": "x", "comand": "y"},
            r"^not a tool server \(comand: Extra inputs are not permitted\); got the fields command, comand$",
        ),
        ({"command": 3, "cwd": 4}, r"\(command: .*; cwd: "),
        *[({"command": "x", name: 0}, rf"\({name}: ") for name in ("timeout_seconds", "connect_timeout_seconds")],
        ("x", "dict with a command.*got str"),
    ],
)
def test_a_server_that_is_described_wrongly_is_refused(server: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        MCPServerConfig.of(server)


def test_a_configuration_is_read_from_a_mapping_and_kept_as_it_is() -> None:
    config = MCPServerConfig.of({"url": "http://x/mcp", "command": None, "args": None})
    assert MCPServerConfig.of(config) is config
    assert [config.label, MCPServerConfig(command="serve").label, MCPServerConfig(name="n", command="serve").label] == [
        "http://x/mcp",
        "serve",
        "n",
    ]
    assert (config.name, config.timeout_seconds, config.connect_timeout_seconds, config.tool_prefix) == ("", 60, 60, "")


class Server(BaseModel):
    """A server as a configuration of somebody else's has it."""

    url: str
    headers: dict[str, str] = {}
    args: tuple[str, ...] = ()
    tool_prefix: str | None = None


@pytest.mark.parametrize(
    "fields", [{"url": "http://x"}, {"url": "http://x", "headers": {"a": "b"}}, {"url": "http://x", "tool_prefix": None}]
)
def test_of_another_model_what_was_set_is_taken(fields: dict[str, Any]) -> None:
    assert MCPServerConfig.of(Server(**fields)) == MCPServerConfig(url="http://x", headers=fields.get("headers", {}))


@pytest.mark.parametrize(
    "server", [{"command": "x"}, {"url": "http://127.0.0.1:9/mcp"}, {"url": "http://127.0.0.1:9/mcp", "headers": {"a": "b"}}]
)
def test_a_call_may_take_as_long_as_the_configuration_says(server: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    clients: list[Any] = []
    monkeypatch.setattr("mcp.client.streamable_http.streamable_http_client", lambda url, *, http_client: clients.append(http_client))

    async def connect() -> Any:
        async with AsyncExitStack() as stack:
            return await _client(MCPServerConfig(timeout_seconds=7.5, connect_timeout_seconds=3, **server), stack)

    assert asyncio.run(connect()).read_timeout_seconds == 7.5
    assert [client.timeout.read for client in clients] == [7.5] * ("url" in server)
    assert all(server.get("headers", {}).items() <= client.headers.items() for client in clients)


def test_the_repr_of_a_configuration_and_its_label_hold_no_secret() -> None:
    web = MCPServerConfig(url="https://ann:swordfish@example.org/mcp?key=opensesame", headers={"Authorization": "Bearer opensesame"})
    program = MCPServerConfig(command="serve", args=("--fast",), env={"SOME_KEY": "opensesame"})
    for config in (web, program):
        assert not {"swordfish", "opensesame"} & set(re.findall(r"\w+", f"{config!r} {config} {config.label}"))
    assert "example.org/mcp" in repr(web)
    assert "--fast" in repr(program)
    assert (web.headers["Authorization"], program.env["SOME_KEY"]) == ("Bearer opensesame", "opensesame")
