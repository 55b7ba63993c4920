"""Where keys might be found: in errors, frames, results, caches and logs. They are nowhere.

The sentences are those of ``docs/models.md``. The heavy ones run with ``-m exhaustive``.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
from aiohttp import web

import vfgym
from tests.attacks.attack import KEY, quick_or_exhaustive
from tests.secrecy.hostile_server import FAILURES, hostile_server
from vfgym.agents import ModelAgent
from vfgym.clients import resolve_client
from vfgym.model_server import ModelServer
from vfgym.output import redaction

STATE_KEY = "X-Session-Key"


@pytest.mark.parametrize("count", [20, pytest.param(1100, marks=pytest.mark.exhaustive)])
async def test_the_key_is_hidden_however_many_secrets_have_passed_by(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fell: after 1,000 failing requests, each with a header from its state, the API key stood in errors."""
    monkeypatch.setattr(redaction, "_MOST_PASSING", count - 10)
    faults = iter(range(10**6))
    with ModelServer({"cheap": lambda request: f"{next(faults)}"}, api_keys=["another"]) as running:
        config = vfgym.ClientConfig(
            api_base_url=running.openai_url, api_key=KEY, max_retries=0, extra_headers_from_state={STATE_KEY: "session"}
        )
        client = resolve_client(config)
        try:
            for number in range(count):
                with pytest.raises(openai.AuthenticationError) as caught:
                    await client.get_response([vfgym.UserMessage("go")], "cheap", state={"session": f"session-{number:08}-0123456789"})
                assert KEY not in str(caught.value)
        finally:
            await client.close()
    assert redaction.redact(f"the key is {KEY}") == "the key is ***"
    assert redaction.redact(f"session-{count - 1:08}-0123456789") == "***"
    assert len(redaction._passing) == count - 10


async def repeat_the_key(request: web.Request) -> web.Response:
    """Answer as a provider that repeats the key it was sent, wherever an answer has text."""
    key = request.headers.get("x-api-key") or request.headers["Authorization"].removeprefix("Bearer ")
    said, thought, arguments = f"says {key}", f"thinks {key}", json.dumps({"a": key})
    answer: dict[str, Any] = {"id": key, "model": key, "created": 1, "created_at": 1, "status": "completed"}
    if request.path.endswith("messages"):
        thinking = {"type": "thinking", "thinking": thought, "signature": "s"}
        use = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": key}}
        answer |= {"type": "message", "role": "assistant", "content": [thinking, {"type": "text", "text": said}, use]}
        answer |= {"usage": {"input_tokens": 1, "output_tokens": 1}, "stop_reason": "tool_use", "stop_sequence": None}
    elif request.path.endswith("responses"):
        part = {"type": "output_text", "text": said, "annotations": []}
        message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
        call = {"type": "function_call", "id": "c", "call_id": "c", "name": "f", "arguments": arguments, "status": "completed"}
        reasoning = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": thought}]}
        answer |= {"object": "response", "output": [reasoning, message, call]}
    else:
        call = {"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": arguments}}
        message = {"role": "assistant", "content": said, "reasoning_content": thought, "tool_calls": [call]}
        is_streamed = bool((await request.json()).get("stream"))
        answer["choices"] = [{"index": 0, "delta" if is_streamed else "message": message, "finish_reason": "tool_calls"}]
        if is_streamed:
            events = f"data: {json.dumps({**answer, 'object': 'chat.completion.chunk'})}\n\ndata: [DONE]\n\n"
            return web.Response(text=events, content_type="text/event-stream")
        answer["object"] = "chat.completion"
    return web.json_response(answer)


@pytest.fixture
async def echo() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/{path:.*}", repeat_the_key)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.mark.parametrize(
    "client_type",
    quick_or_exhaustive(["openai_chat_completions", "openai_responses", "anthropic_messages", "streamed"], "openai_chat_completions"),
)
async def test_a_key_that_an_answer_repeats_is_in_no_result_and_no_cache(echo: str, tmp_path: Path, client_type: Any) -> None:
    """Fell: a key that the provider (a gateway, or a model that was told it) repeats stood in results and in the cache."""
    is_streamed = client_type == "streamed"
    own_type: Any = "openai_chat_completions" if is_streamed else client_type
    config = vfgym.ClientConfig(api_base_url=echo, api_key=KEY, client_type=own_type)
    env = vfgym.SingleTurnEnv([{"question": "?"}], rubric=vfgym.Rubric(lambda completion: 1.0))
    results = await vfgym.aevaluate(
        env,
        ModelAgent(config, "m", {"stream": True} if is_streamed else {}),
        cache=tmp_path / "cache.sqlite",
        results_path=tmp_path / "results",
        state_columns=["trajectory", "completion"],
        progress=False,
    )
    [row] = results["outputs"]
    assert row["error"] is None
    assert "says ***" in json.dumps(row["completion"], default=str)
    assert KEY not in repr(results)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.name.startswith("cache") for path in files)
    assert any("results" in path.parts for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("failure", quick_or_exhaustive(sorted({*FAILURES} - {"silent"}), "unknown_key_error", "long_header"))
@pytest.mark.parametrize("client_type", ["openai_chat_completions", "openai_responses", "anthropic_messages"])
async def test_no_frame_of_an_error_holds_a_key(failure: str, client_type: Any) -> None:
    """Fell: what shows the local variables of a traceback (pytest, rich, error reporters) showed the key in frames of the library."""
    with hostile_server(failure) as port:
        config = vfgym.ClientConfig(
            api_base_url=f"http://127.0.0.1:{port}",
            api_key=KEY,
            client_type=client_type,
            max_retries=0,
            extra_headers={"X-Other-Key": KEY[::-1]},
            extra_headers_from_state={STATE_KEY: "session"},
        )
        client = resolve_client(config)
        state, session = {"session": KEY.swapcase()}, KEY.swapcase()
        try:
            with pytest.raises(Exception) as caught:  # noqa: PT011 # each failure has its own
                await client.get_response([vfgym.UserMessage("go")], "m", {"max_tokens": 5}, state=state)
        finally:
            await client.close()
    shown = [line for link in links_of(caught.value) for line in frames_with_locals(link)]
    assert any("provider.py" in line for line in shown)
    for secret in (KEY, KEY[::-1]):
        assert [line for line in shown if secret in line] == []
    assert [line for line in shown if session in line and "'session'" not in line] == []  # a state shows what is in it


def links_of(error: BaseException | None) -> list[BaseException]:
    links: list[BaseException] = []
    while error is not None and error not in links:
        links.append(error)
        error = error.__cause__ or error.__context__
    return links


def frames_with_locals(error: BaseException) -> list[str]:
    """Return the places and the local variables of an error's frames, but for those of tests."""
    lines = []
    for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack:
        if os.sep + "tests" + os.sep not in frame.filename:
            lines += [frame.filename, *(f"{name} = {value}" for name, value in (frame.locals or {}).items())]
    return lines


def test_an_error_about_a_configuration_holds_no_key_in_its_frames() -> None:
    for fields in ({"no_such_field": 1}, {"timeout": -1}, {"api_base_url": "nowhere"}):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 # each has its own text
            vfgym.ClientConfig(api_key=KEY, extra_headers={"Authorization": f"Bearer {KEY}"}, **fields)
        assert [line for link in links_of(caught.value) for line in frames_with_locals(link) if KEY in line] == []


def test_no_dump_of_a_configuration_holds_a_secret() -> None:
    """Fell: headers, passwords and queries stood in the JSON of a configuration, though not in its text."""
    url = "http://user:passw0rd-long@127.0.0.1:1/v1?token=query-secret-12345"
    config = vfgym.ClientConfig(api_base_url=url, api_key=KEY, extra_headers={"X-Team-Key": "team-secret-123456789"})
    dumps = config.model_dump_json() + str(config.model_dump()) + str(vars(config)) + repr(config)
    assert not [secret for secret in ("passw0rd-long", "query-secret", "team-secret", KEY) if secret in dumps]
    assert config.extra_headers["X-Team-Key"] == "team-secret-123456789"
