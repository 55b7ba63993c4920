"""`MCPEnv`: what tools of a server say is what the model reads."""

from __future__ import annotations

import sys
from typing import Any

from tests.verifiers_compat.models import calling, rolled_out, texts
from tests.verifiers_compat.published.packages import FOLDER

SHELF = {"name": "shelf", "command": sys.executable, "args": [str(FOLDER / "shelf_mcp" / "shelf_server.py")]}


async def test_what_a_tool_reports_as_an_error_is_read_as_it_reports_it(vf: Any) -> None:
    """What goes wrong otherwise is told by `error_formatter`; and either ends the rollout where `stop_errors` says so."""
    env = vf.MCPEnv(mcp_servers=[SHELF], dataset=[{"question": "?"}], error_formatter=lambda error: f"[{error}]")
    calls = calling(("pages", {"title": "Emma"}), ("pages", {"title": "Ulysses"}), ("borrow", {}), ("search", {"prefix": "D"}))
    state = await rolled_out(env, calls, "done")
    pages, reported, unknown, found = texts(state["completion"])
    assert (pages, reported, found) == ("474", "there is no Ulysses", "found:\nDracula")
    assert unknown.startswith("[unknown tool 'borrow'")
    env.stop_errors = [vf.ToolCallError]
    state = await rolled_out(env, calling(("pages", {"title": "Ulysses"})), "done")
    assert isinstance(state["error"], vf.ToolCallError)
    env.close()
