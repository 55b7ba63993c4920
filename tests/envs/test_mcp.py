"""MCPEnv against real servers: results, errors, recovery, concurrency and teardown, over pipes and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from vfgym.aio.background import background_loop
from vfgym.envs.mcp import MCPEnv
from vfgym.errors import ConfigurationError, InfraError, ToolCallError
from vfgym.messages import AssistantMessage, ToolCall
from vfgym.testing import ScriptedClient
from vfgym.tools.mcp import MCPServerConfig

pytest.importorskip("mcp", reason="the extra mcp is not installed")

ROWS = [{"question": "use the tools"}]
SERVER = """
import asyncio, os, sys
from typing import Any
from mcp.server.mcpserver import MCPServer
from mcp_types import AudioContent, ImageContent, TextContent, ToolAnnotations

server = MCPServer("test", log_level="CRITICAL")
together = 0
all_here = asyncio.Event()

@server.tool()
def add(a: int, b: int = 1) -> int:
    "Add two numbers."
    return a + b

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def whoami() -> str:
    return f"{os.getpid()}"

@server.tool()
def env(name: str) -> str:
    return os.environ.get(name, "")

@server.tool()
def here() -> str:
    return os.getcwd()

@server.tool()
def repeat(value: Any) -> str:
    return repr(value)

@server.tool()
def fail(reason: str) -> str:
    raise ValueError(reason)

@server.tool()
def lines() -> list[TextContent]:
    return [TextContent(text="äö"), TextContent(text="✓")]

@server.tool()
def nothing() -> list[TextContent]:
    return []

@server.tool()
def picture() -> list[TextContent | ImageContent | AudioContent]:
    return [TextContent(text="look"), ImageContent(data="AA==", mime_type="image/png"), AudioContent(data="AA==", mime_type="audio/wav")]

@server.tool()
async def meet(people: int) -> str:
    "Answer when so many wait here."
    global together
    together += 1
    if together >= people:
        all_here.set()
    await all_here.wait()
    return "met"

@server.tool()
async def forever() -> str:
    await asyncio.Event().wait()

def note(file: str) -> None:
    with open(file, "a") as notes:
        notes.write("called\\n")

@server.tool()
async def note_and_wait(file: str, until: str) -> str:
    "Write a line to a file, and answer when another file is there."
    note(file)
    while not os.path.exists(until):
        await asyncio.sleep(0.01)
    return "noted"

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look_and_die(file: str) -> str:
    note(file)
    os._exit(3)

if len(sys.argv) > 1:
    import uvicorn

    uvicorn.run(server.streamable_http_app(), fd=int(sys.argv[1]), log_level="critical")
else:
    server.run()
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


@pytest.fixture
def server(script: Path) -> dict[str, Any]:
    return {"name": "test", "command": sys.executable, "args": [str(script)], "env": {"GREETING": "hi"}}


@pytest.fixture(scope="module")
def shared(script: Path) -> Iterator[MCPEnv]:
    """An environment for the tests that leave the server as it was."""
    env = MCPEnv([{"name": "test", "command": sys.executable, "args": [str(script)], "env": {"GREETING": "hi"}}], dataset=ROWS)
    yield env
    env.close()


def local() -> str:
    """Say where we are."""
    return "here"


@pytest.fixture(scope="module")
def configured(script: Path) -> Iterator[MCPEnv]:
    """An environment with a function beside its server, which has a directory, and whose errors end the episode."""
    server = {"name": "test", "command": sys.executable, "args": [str(script)], "cwd": str(script.parent)}
    env = MCPEnv([server], dataset=ROWS, tools=[local], stop_errors=[ToolCallError])
    yield env
    env.close()


class HTTPServer:
    """A server of its own process on a port of its own, which stays the same when it is started anew."""

    def __init__(self, script: Path) -> None:
        self.script = script
        self.port = 0
        self.start()
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        # It inherits a socket that listens already: who connects before it is ready waits for it, and is refused once it is gone.
        with socket.create_server(("127.0.0.1", self.port)) as listening:
            self.port = listening.getsockname()[1]
            descriptor = listening.fileno()
            command = [sys.executable, str(self.script), str(descriptor)]
            self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL, pass_fds=[descriptor])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def http(script: Path) -> Iterator[HTTPServer]:
    server = HTTPServer(script)
    yield server
    server.kill()


def calling(name: str, arguments: dict[str, Any] | None = None, number: int = 1) -> AssistantMessage:
    return AssistantMessage(None, tool_calls=[ToolCall(f"c{i}", name, json.dumps(arguments or {})) for i in range(number)])


def answer(env: MCPEnv, name: str, /, **arguments: Any) -> Any:
    """Reset a seat of its own, make one call, and return what the model reads."""
    seat = env.fork()
    seat.reset(seed=0)
    message = seat.step(calling(name, arguments)).observation[-1]
    assert message["role"] == "tool"
    seat.close()
    return message["content"]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_tools_of_the_server_are_told_with_their_schemas(shared: MCPEnv) -> None:
    _, info = shared.fork().reset(seed=0)
    tools = {tool["function"]["name"]: tool["function"] for tool in info["tools"]}
    assert (tools["add"]["description"], tools["add"]["parameters"]["properties"]["a"]["type"]) == ("Add two numbers.", "integer")
    assert (tools["add"]["parameters"]["required"], tools["nothing"]["parameters"]["type"]) == (["a"], "object")


def test_what_a_tool_gives_is_what_the_model_reads(shared: MCPEnv) -> None:
    assert (answer(shared, "add", a=2), answer(shared, "env", name="GREETING")) == ("3", "hi")
    assert answer(shared, "lines") == "äö\n✓"
    assert "no result" in answer(shared, "nothing")
    assert answer(shared, "picture") == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
    ]


def test_a_server_is_started_in_the_directory_that_it_is_given(script: Path, configured: MCPEnv) -> None:
    assert Path(answer(configured, "here")).samefile(script.parent)


def test_errors_are_told_to_the_model(shared: MCPEnv) -> None:
    told = [answer(shared, "fail", reason="no such page"), answer(shared, "ad", a=1), answer(shared, "add"), answer(shared, "add", a="x")]
    assert all(text.startswith("Error: ") for text in told)
    for text, words in zip(told, ["fail", "unknown tool", "missing", "integer"], strict=True):
        assert words in text


def test_calls_are_counted_for_each_tool(shared: MCPEnv) -> None:
    seat = shared.fork()
    seat.reset(seed=0)
    seat.step(calling("add", {"a": 1}, number=2))
    metrics = seat.step("done").info["metrics"]
    assert (metrics["total_tool_calls"], metrics["add_calls"], metrics["fail_calls"]) == (2.0, 2.0, 0.0)


def test_calls_overlap_within_a_message_and_between_episodes(shared: MCPEnv) -> None:
    env = shared
    client = ScriptedClient([calling("meet", {"people": 50}, number=5), "done"])

    async def play() -> list[Any]:
        rows = [env.tasks.input(0) for _ in range(10)]
        return await asyncio.gather(*(env.rollout(row, client, "model") for row in rows))

    states = asyncio.run(play())
    assert [message["content"] for state in states for message in state["completion"] if message["role"] == "tool"] == ["met"] * 50


def test_an_error_of_a_tool_can_end_the_episode(configured: MCPEnv) -> None:
    seat = configured.fork()
    seat.reset(seed=0)
    outcome = seat.step(calling("fail", {"reason": "x"}))
    assert (outcome.terminated, outcome.info["stop_condition"]) == (True, "has_error")


def test_a_dead_server_is_started_again_for_any_call(server: dict[str, Any]) -> None:
    """At once where it is known to be dead; a call that was sent before that became known may have been made."""
    env = MCPEnv([server], dataset=ROWS)
    first = int(answer(env, "whoami"))
    os.kill(first, 9)
    second = int(answer(env, "whoami"))
    assert second != first
    assert not is_alive(first)
    os.kill(second, 9)
    while is_alive(second):
        time.sleep(0.01)
    told = answer(env, "add", a=1)
    assert told == "2" or "not called again" in told
    assert answer(env, "add", a=1) == "2"
    env.close()


@pytest.fixture
def remote(over: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """How a server is reached: over its pipes, or over HTTP."""
    if over == "pipes":
        return dict(request.getfixturevalue("server"))
    return {"name": "web", "url": request.getfixturevalue("http").url}


UNSENDABLE = {
    r'{"value": "\ud800"}': "cannot be sent",  # half of a surrogate pair
    r'{"value": {"\udfff": 1}}': "cannot be sent",
    r'{"value": [{"x": ["\ud83d"]}]}': "cannot be sent",
    '{"value": ' + "[" * 400 + "]" * 400 + "}": "nested more than 200 levels deep",
}
"""Arguments, and what is said of them."""


@pytest.mark.parametrize("over", ["pipes", "http"])
def test_arguments_that_cannot_be_sent_are_that_calls_own_trouble(remote: dict[str, Any], tmp_path: Path) -> None:
    """They are valid JSON. Another rollout's call is under way on the same connection; it goes on, and was made once."""
    env = MCPEnv([remote], dataset=ROWS)
    notes, until = tmp_path / "notes", tmp_path / "until"
    noting = ScriptedClient([calling("note_and_wait", {"file": str(notes), "until": str(until)}), "done"])

    async def play() -> list[Any]:
        rows = [env.tasks.input(0) for _ in range(1 + len(UNSENDABLE))]
        slow = asyncio.create_task(env.rollout(rows.pop(), noting, "m"))
        while not notes.exists():
            await asyncio.sleep(0.01)
        others = []
        for arguments in UNSENDABLE:
            message = AssistantMessage(None, tool_calls=[ToolCall("c0", "repeat", arguments), ToolCall("c1", "add", '{"a": 1}')])
            others.append(await env.rollout(rows.pop(), ScriptedClient([message, "done"]), "m"))
        until.touch()
        return [await slow, *others]

    async def in_time() -> list[Any]:
        return await asyncio.wait_for(play(), 60)

    slow, *others = asyncio.run(in_time())
    env.close()
    assert [message["content"] for message in slow["completion"] if message["role"] == "tool"] == ["noted"]
    assert notes.read_text() == "called\n"
    for state, why in zip(others, UNSENDABLE.values(), strict=True):
        refused, added = [message["content"] for message in state["completion"] if message["role"] == "tool"]
        assert refused.startswith("Error: ")
        assert why in refused
        assert added == "2"
        assert state["error"] is None


def test_a_call_over_http_is_not_answered_by_a_server_that_died_of_it(http: HTTPServer, tmp_path: Path) -> None:
    """Nobody starts a server on the web again; the model is told."""
    env = MCPEnv([{"name": "web", "url": http.url}], dataset=ROWS)
    assert answer(env, "look_and_die", file=str(tmp_path / "notes")).startswith("Error: ")
    assert (tmp_path / "notes").read_text() == "called\n"
    env.close()


def test_a_call_that_takes_too_long_is_given_up_and_the_session_goes_on(server: dict[str, Any]) -> None:
    env = MCPEnv([{**server, "timeout_seconds": 0.2}], dataset=ROWS)
    before = answer(env, "whoami")
    assert "timed out" in answer(env, "forever").lower()
    assert answer(env, "whoami") == before
    env.close()


def test_a_cancelled_rollout_leaves_the_session_usable(shared: MCPEnv) -> None:
    async def play() -> None:
        client = ScriptedClient([calling("forever")])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await shared.rollout(shared.tasks.input(0), client, "model")

    asyncio.run(play())
    assert answer(shared, "add", a=1) == "2"


def test_a_server_over_http(http: HTTPServer) -> None:
    env = MCPEnv([{"name": "web", "url": http.url, "headers": {"X-Test": "1"}}], dataset=ROWS)
    first = answer(env, "whoami")
    assert answer(env, "fail", reason="no such page").startswith("Error: ")
    http.kill()
    assert "could not be reached" in answer(env, "whoami")
    http.start()
    assert answer(env, "whoami") not in ("", first)
    env.close()


def test_servers_with_tools_of_the_same_name_need_a_prefix(server: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="tool_prefix"):
        MCPEnv([server, {**server, "name": "other"}], dataset=ROWS)
    env = MCPEnv([server, {**server, "name": "other", "tool_prefix": "other_"}], dataset=ROWS)
    assert answer(env, "whoami") != answer(env, "other_whoami")
    env.close()


@pytest.mark.parametrize(
    ("servers", "says"), [([{"name": "x"}], "command or by a url"), (["x"], "dict"), ({"command": "x"}, None), ("x", None)]
)
def test_a_server_that_is_described_wrongly_is_refused(servers: Any, says: str | None) -> None:
    with pytest.raises(ConfigurationError, match=says):
        MCPEnv(servers)


def test_a_server_that_cannot_be_reached_is_named() -> None:
    with pytest.raises(InfraError, match="lost one"):
        MCPEnv([MCPServerConfig(name="lost one", command="/no/such/program")])


def test_after_close_nothing_is_left_and_nothing_started_again(server: dict[str, Any]) -> None:
    async def tasks() -> int:
        return len(asyncio.all_tasks())

    def count() -> int:
        return asyncio.run_coroutine_threadsafe(tasks(), background_loop()).result()

    before = count()
    with ThreadPoolExecutor(1) as pool:  # on any thread
        env = pool.submit(MCPEnv, [server], dataset=ROWS).result()
    pid = int(answer(env, "whoami"))
    assert count() > before
    env.close()
    env.close()
    assert not is_alive(pid)
    assert count() == before
    assert "closed" in answer(env, "whoami")


def test_the_end_of_the_process_ends_the_servers(server: dict[str, Any], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, sys\n"
        "from vfgym.envs.mcp import MCPEnv\n"
        "env = MCPEnv([json.loads(sys.argv[1])], dataset=[{'question': '?'}])\n"
        "env.reset(seed=0)\n"
        "call = {'id': 'c', 'function': {'name': 'whoami', 'arguments': '{}'}}\n"
        "print(env.step({'role': 'assistant', 'content': None, 'tool_calls': [call]}).observation[-1].content)\n",
        encoding="utf-8",
    )
    run = subprocess.run([sys.executable, "-X", "dev", str(program), json.dumps(server)], capture_output=True, text=True, timeout=60)
    # On a busy machine asyncio's debug mode says what took long.
    problems = [line for line in run.stderr.splitlines() if not line.startswith("Executing ")]
    assert (run.returncode, problems) == (0, [])
    assert not is_alive(int(run.stdout))
