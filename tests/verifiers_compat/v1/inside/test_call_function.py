"""The program that calls a function in a sandbox: what the function is given, and what is written of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from verifiers_compat.v1.inside import call_tools
from verifiers_compat.v1.inside.call_function import ProgramState, main

CALL: dict[str, Any] = {
    "task": {"question": "?"},
    "state": {"runtime": {"max_turns": 0}, "a": 1},
    "arguments": {"word": "w", "unused": 2},
    "model": "m",
    "endpoints": {"chat_completions": {"base_url": "u", "api_key": "k", "api_client_type": "openai_chat_completions"}},
    "tools": ["add"],
    "tools_url": "http://127.0.0.1:1/tools",
}
FUNCTIONS = """
class Inner:
    def plain(task, state, word):
        state["b"] = [task["question"], word, state.get_model(), state.get_max_turns(7)]
        return {"word": word}

async def later(state, **more):
    state.stop("solved")
    return sorted(more)

def same(state):
    state.stop()
    return state
"""


@pytest.mark.parametrize(
    ("function", "state", "stopped", "result"),
    [
        ("Inner.plain", {"b": ["?", "w", "m", 0]}, None, {"word": "w"}),
        ("later", {"done": True}, "solved", ["task", "unused", "word"]),
        ("same", {"done": True}, "state_done", None),
    ],
)
def test_a_function_gets_what_it_asks_for(
    function: str, state: dict[str, Any], stopped: str | None, result: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain or async; what it changed of the state, what it returned, and whether it stopped the rollout is written."""
    (tmp_path / "functions_inside.py").write_text(FUNCTIONS)
    (tmp_path / "call.json").write_text(json.dumps({**CALL, "function": f"functions_inside:{function}"}))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", ["call_function.py", str(tmp_path / "call.json")])
    main()
    del sys.modules["functions_inside"]
    written = json.loads((tmp_path / "result.json").read_text())
    assert written == {"state": {**CALL["state"], **state}, "stopped": stopped, "result": result}


def test_a_state_knows_its_model_and_its_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "call_tools", call_tools)  # the file beside it, where it runs
    state = ProgramState(CALL)
    assert state.get_endpoint_config() == CALL["endpoints"]["chat_completions"]
    with pytest.raises(ValueError, match="does not speak 'messages'; it speaks chat_completions"):
        state.get_endpoint_config("messages")
    assert list(state.get_tools()) == ["add"]
    without = ProgramState({**CALL, "state": {"runtime": {}}})
    assert (state.get_max_turns(7), without.get_max_turns(7)) == (0, 7)


@pytest.mark.parametrize(
    ("api", "kinds"),
    [("chat_completions", (openai.AsyncOpenAI, openai.OpenAI)), ("messages", (anthropic.AsyncAnthropic, anthropic.Anthropic))],
)
def test_a_client_of_the_sdk_asks_the_endpoint_and_waits_as_long_as_its_rollout(api: str, kinds: tuple[type, type]) -> None:
    of_anthropic = {"base_url": "http://127.0.0.1:1/a", "api_key": "k", "api_client_type": "anthropic_messages"}
    of_openai = {**of_anthropic, "api_client_type": "openai_chat_completions"}
    state = ProgramState({**CALL, "endpoints": {"chat_completions": of_openai, "messages": of_anthropic}})
    for kind, given in zip(kinds, ({}, {"sync": True}), strict=True):
        client = state.get_client(api, **given)
        assert type(client) is kind
        assert (str(client.base_url), client.api_key, client.max_retries) == ("http://127.0.0.1:1/a/", "k", 0)
        assert client.timeout == 24 * 60 * 60
    assert type(state.get_client()) is openai.AsyncOpenAI
