"""The MCP server that is copied into sandboxes: its tools are called over HTTP."""

from __future__ import annotations

import http.server
import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.v1.inside import call_tools

TOOLS = [{"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}]


class Answers(http.server.BaseHTTPRequestHandler):
    """Adds two numbers, and fails in three ways."""

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = self.path.rpartition("/")[2]
        answers: dict[str, Any] = {"fail": {"error": "no"}, "text": {"result": "ä"}, "zero": {"result": 0}}
        body = json.dumps(answers.get(name) or {"result": given}).encode()
        self.send_response(400 if name == "refuse" else 200)
        self.end_headers()
        self.wfile.write("refused ü".encode() if name == "refuse" else body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Where tools are called."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/tools"
        server.shutdown()
        thread.join()


def test_a_tool_is_called_and_what_goes_wrong_is_raised(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by a proxy that the program may have been told of."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert call_tools.call_tool(url, "add", {"a": [1, None]}) == {"a": [1, None]}
    assert call_tools.call_tool(url, "zero", {}) == 0
    for name, text in (("fail", "^no$"), ("refuse", "^refused ü$")):
        with pytest.raises(RuntimeError, match=text):
            call_tools.call_tool(url, name, {})


def test_it_speaks_mcp(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One answer for each request, none for notifications and answers."""
    asked = [
        {"id": 0, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "initialize"},
        {"id": 2, "method": "tools/list"},
        {"id": "x", "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}},
        {"id": 3, "method": "tools/call", "params": {"name": "text"}},
        {"id": 4, "method": "tools/call", "params": {"name": "fail", "arguments": None}},
        {"id": 5, "method": "ping"},
        {"id": 6, "result": {}},
        {"id": 7, "method": "resources/list"},
    ]
    (tmp_path / "tools.json").write_text(json.dumps({"url": url, "tools": TOOLS}))
    monkeypatch.setattr("sys.argv", ["call_tools.py", str(tmp_path / "tools.json")])
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked)))
    call_tools.main()
    answers = {answer.pop("id"): answer for answer in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(answers) == [0, 1, 2, "x", 3, 4, 5, 7]
    assert {answer.pop("jsonrpc") for answer in answers.values()} == {"2.0"}
    assert [answers[number]["result"]["protocolVersion"] for number in (0, 1)] == ["2024-11-05", "2025-06-18"]
    assert answers[2]["result"] == {"tools": TOOLS}
    assert [answers[number]["result"] for number in ("x", 3, 4)] == [
        {"content": [{"type": "text", "text": '{"a": 1}'}], "isError": False},
        {"content": [{"type": "text", "text": "ä"}], "isError": False},
        {"content": [{"type": "text", "text": "no"}], "isError": True},
    ]
    assert answers[5] == {"result": {}}
    assert answers[7] == {"error": {"code": -32601, "message": "there is no method resources/list"}}
