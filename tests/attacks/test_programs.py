"""What programs attempt against the model, the account and the run of their rollout, and what must come of it.

Each test is written from a sentence of ``docs/agent_programs.md`` and says what is attempted. The heavy ones run with ``-m exhaustive``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import vfgym
from tests.agent_programs import ProgramEnv, needs_sandbox
from tests.attacks.attack import KEY
from tests.attacks.endpoints import PLAIN, Answers, post, raw
from vfgym.agents import ModelAgent
from vfgym.interception import Endpoint
from vfgym.messages import AssistantMessage
from vfgym.model_server import ModelRequest, ModelServer

SMUGGLED: dict[str, Any] = {
    "model": "dear",
    "models": ["dear"],
    "extra_body": {"model": "dear", "service_tier": "priority"},
    "extra_headers": {"Authorization": "Bearer sk-of-somebody-else", "X-Team": "theirs"},
    "extra_query": {"key": "sk-of-somebody-else"},
    "timeout": 0.001,
    "provider": {"order": ["dear"]},
    "route": "fallback",
    "service_tier": "priority",
    "api_key": "sk-of-somebody-else",
    "base_url": "http://127.0.0.1:1/",
    "best_of": 20,
    "user": "somebody",
    "headers": {"Authorization": "Bearer sk-of-somebody-else"},
}
"""What a program may write in its request to be served by another model, for another account, or at another price."""


@pytest.fixture
def provider() -> Iterator[ModelServer]:
    """A provider that has a cheap and a dear model, and knows one key."""

    def says_yes(request: ModelRequest) -> str:
        return "yes"

    with ModelServer({"cheap": says_yes, "dear": says_yes}, api_keys=[KEY]) as running:
        yield running


def agent_of(provider: ModelServer, model: str = "cheap", **sampling_args: Any) -> ModelAgent:
    return ModelAgent(vfgym.ClientConfig(api_base_url=provider.openai_url, api_key=KEY, max_retries=0), model, sampling_args)


def programs(text: str, count: int = 1) -> ProgramEnv:
    rows = [{"question": f"Say yes, {number}.", "answer": "yes"} for number in range(count)]
    return ProgramEnv(text, dataset=rows, timeout_seconds=120)


# A program asks as its rollout does


@needs_sandbox
def test_another_model_or_account_in_the_body_of_a_request_does_not_reach_the_provider(provider: ModelServer) -> None:
    """Fell: ``extra_body`` named another model, priced as the cheap one, and ``extra_headers`` somebody else's account."""
    env = programs(f"chat([user(read_task())], **{SMUGGLED!r})")
    [row] = vfgym.evaluate(env, agent_of(provider), prices={"cheap": {"input": 1, "output": 1}}, progress=False)["outputs"]
    assert row["error"] is None
    [asked] = provider.requests
    assert asked.body == {"model": "cheap", "messages": [{"role": "user", "content": "Say yes, 0."}]}
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert "X-Team" not in asked.headers
    assert "sk-of-somebody-else" not in asked.path


@needs_sandbox
def test_headers_of_a_request_do_not_reach_the_provider(provider: ModelServer) -> None:
    env = programs(
        """
body = json.dumps({"model": "dear", "messages": [user("go")]}).encode()
headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-of-somebody-else", "X-Team": "theirs", "Openai-Project": "p"}
urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers), timeout=60).read()
"""
    )
    vfgym.evaluate(env, agent_of(provider), progress=False)
    [asked] = provider.requests
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert not {"X-Team", "Openai-Project"} & asked.headers.keys()


@needs_sandbox
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_on_tokens_is_not_passed_under_another_name(provider: ModelServer, name: str) -> None:
    """The rollout allows five tokens; a program asks for a million under each name that there is."""
    env = programs("chat([user('go')], max_tokens=10**6, max_completion_tokens=10**6)\nresponses([user('go')])")
    vfgym.evaluate(env, agent_of(provider, **{name: 5}), progress=False)
    for asked in provider.requests:
        assert [asked.body[name] for name in ("max_tokens", "max_completion_tokens") if name in asked.body] == [5]


@needs_sandbox
def test_a_refusal_that_a_program_provokes_ends_its_rollout_and_not_the_run(provider: ModelServer) -> None:
    """Fell: what the provider answers with 404 to one program's request ended the run of all."""
    env = programs("chat([user(read_task())])", 2)
    rows = vfgym.evaluate(env, agent_of(provider, "no-such-model"), max_concurrent=1, progress=False)["outputs"]
    assert [row["error"]["error"] for row in rows] == ["ModelError", "ModelError"]
    assert all("does not know the model" in repr(row["error"]) for row in rows)


@pytest.mark.parametrize("path", PLAIN)
@pytest.mark.parametrize("stream", [False, True])
async def test_only_what_is_named_passes_in_each_format_and_the_program_is_told(
    answers: Answers, endpoint: Endpoint, path: str, stream: bool
) -> None:
    status, headers, _ = await post(endpoint, path, {**PLAIN[path], **SMUGGLED, "stream": stream, "temperature": 0.5, "zzz": 1})
    assert status == 200
    [request] = answers.asked
    allowed = {"temperature", "max_tokens"} if path == "messages" else {"temperature"}
    assert request.sampling_args.keys() == allowed
    aside = set(headers["X-Vfgym-Set-Aside"].split(", "))
    assert {"extra_body", "extra_headers", "models", "zzz"} <= aside
    assert not {"model", "temperature", "messages", "prompt", "input"} & aside


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("chat/completions", "n", 20),
        ("completions", "n", 20),
        ("responses", "n", 20),
        ("chat/completions", "temperature", {"extra_headers": {"Authorization": "x"}}),
        ("chat/completions", "max_tokens", "1e9"),
        ("chat/completions", "max_tokens", True),
        ("chat/completions", "stop", [{"type": "x"}]),
        ("chat/completions", "tool_choice", {"type": "web_search"}),
        ("chat/completions", "thinking", {"type": "enabled", "model": "dear"}),
        ("chat/completions", "functions", [{"name": "x"}]),
        ("chat/completions", "tools", [{"type": "web_search_preview"}]),
        ("responses", "tools", [{"type": "web_search_preview"}]),
        ("responses", "previous_response_id", "resp_of_somebody_else"),
        ("responses", "input", [{"type": "item_reference", "id": "rs_of_somebody_else"}]),
        ("messages", "tools", [{"type": "web_search_20250305", "name": "web_search"}]),
        ("messages", "max_tokens", {"a": 1}),
    ],
)
async def test_what_a_rollout_does_not_offer_is_refused(answers: Answers, endpoint: Endpoint, path: str, field: str, value: Any) -> None:
    """Server tools that cost money, several answers for one turn, others' stored responses, and values in the place of others."""
    status, _, said = await post(endpoint, path, {**PLAIN[path], field: value})
    assert (status, answers.asked) == (400, []), said


async def test_a_forged_output_of_the_provider_is_not_sent_back_to_it(answers: Answers, endpoint: Endpoint) -> None:
    """An assistant message may keep what the provider said, to be sent back as it came: a program writes items of its own there."""
    forged = {"api": "openai_responses", "items": [{"type": "item_reference", "id": "rs_of_somebody_else"}]}
    messages = [{"role": "assistant", "content": "yes", "native_output": forged}, {"role": "user", "content": "go"}]
    status, headers, _ = await post(endpoint, "chat/completions", {"messages": messages})
    assert status == 200
    assert "native_output" not in answers.asked[0].messages[0]
    assert headers["X-Vfgym-Set-Aside"] == "native_output"


# Paths and tokens


@pytest.mark.parametrize(
    "path",
    [
        *("/", "//", "/{other}/v1/chat/completions", "/{key}", "/../{key}/v1/chat/completions", "/{key}%2fv1/chat/completions"),
        "/{key}x/v1/chat",
    ],
)
async def test_a_path_without_the_secret_finds_nobody(answers: Answers, endpoint: Endpoint, path: str) -> None:
    path = path.format(key=endpoint.key, other="A" * len(endpoint.key))
    status, _ = await raw(endpoint, f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{{}}".encode())
    assert status in (404, 400)
    assert answers.asked == []


@pytest.mark.parametrize(
    "data",
    [
        b"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\n{}",
        b"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n{}",
        b"POST /{key}/v1/messages HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"POST /{key}/v1/messages HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"\x00\x01\x02\r\n\r\n",
    ],
)
async def test_a_request_that_reads_in_two_ways_or_whose_head_is_too_large_is_refused(
    answers: Answers, endpoint: Endpoint, data: bytes
) -> None:
    status, _ = await raw(endpoint, data.replace(b"{key}", endpoint.key.encode()))
    assert (status, answers.asked) == (400, [])


async def test_a_compressed_body_is_not_unpacked(answers: Answers, endpoint: Endpoint) -> None:
    import gzip

    body = gzip.compress(b" " * 10**7 + json.dumps(PLAIN["messages"]).encode())
    status, _, _ = await post(endpoint, "messages", body, {"Content-Encoding": "gzip"})
    assert (status, answers.asked) == (415, [])


async def test_nesting_that_ends_a_parser_is_one_refused_request(answers: Answers, endpoint: Endpoint) -> None:
    body = b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    status, _, said = await post(endpoint, "chat/completions", body)
    assert (status, answers.asked) == (400, []), said
    assert (await post(endpoint, "chat/completions", PLAIN["chat/completions"]))[0] == 200


# What a program's messages hold


AT_THE_PROVIDER: dict[str, tuple[str, dict[str, Any]]] = {
    "a file": ("chat/completions", {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]}),
    "a file of responses": ("responses", {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]}),
    "an image": ("responses", {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}]}),
    "an upload": ("chat/completions", {"messages": [{"role": "user", "content": [{"type": "container_upload", "file_id": "file-1"}]}]}),
    "a document": (
        "messages",
        {"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}]}], "max_tokens": 9},
    ),
    "a file of its server": (
        "chat/completions",
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]},
    ),
    "a block of thinking": (
        "chat/completions",
        {"messages": [{"role": "assistant", "content": "a", "thinking_blocks": [{"type": "document", "source": {"file_id": "f"}}]}]},
    ),
    "a prompt": ("responses", {"input": "go", "prompt": {"id": "pmpt_1"}}),
}


@pytest.mark.parametrize("what", AT_THE_PROVIDER)
async def test_what_a_provider_keeps_for_its_account_is_not_a_program_s_to_read(answers: Answers, endpoint: Endpoint, what: str) -> None:
    """Fell: files that somebody uploaded for the account were read by their ids."""
    path, body = AT_THE_PROVIDER[what]
    status, _, said = await post(endpoint, path, body)
    assert (status, answers.asked) == (400, []), said


async def test_only_what_is_named_passes_of_a_message(answers: Answers, endpoint: Endpoint) -> None:
    """Fell: fields of messages and of their parts passed, whatever they were."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA==", "detail": "low", "file_id": "f"}, "cache_control": {}}
    user = {"role": "user", "content": [image, {"type": "text", "text": "go"}], "name": "bob", "extra_body": {"model": "dear"}}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    earlier = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}, "annotations": None, "tool_calls": [call]}
    status, headers, _ = await post(endpoint, "chat/completions", {"messages": [user, earlier]})
    assert status == 200
    assert headers["X-Vfgym-Set-Aside"] == "audio, cache_control, extra_body, file_id"
    assert answers.asked[0].messages == [
        {"role": "user", "name": "bob", "content": [{**image_without(image), "type": "image_url"}, {"type": "text", "text": "go"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]


def image_without(image: dict[str, Any]) -> dict[str, Any]:
    return {"image_url": {name: image["image_url"][name] for name in ("url", "detail")}}


async def test_what_an_answer_had_goes_back_as_it_came_and_only_so(endpoint: Endpoint, answers: Answers) -> None:
    """What a provider needs to see again (signatures of reasoning, say) comes with its answer."""
    answers.message = AssistantMessage("yes", reasoning_details=[{"signature": "s"}])
    assert (await post(endpoint, "chat/completions", PLAIN["chat/completions"]))[0] == 200
    for details, passes in (([{"signature": "s"}], True), ([{"signature": "forged"}], False)):
        messages = [{"role": "assistant", "content": "yes", "reasoning_details": details}, {"role": "user", "content": "go"}]
        assert (await post(endpoint, "chat/completions", {"messages": messages}))[0] == 200
        assert ("reasoning_details" in answers.asked[-1].messages[0]) == passes


NO_JSON = {
    "a number that is none": b'"temperature": NaN',
    "a number without end": b'"temperature": 1e999',
    "half a character": b'"stop": "\\ud800"',
    "nesting": b'"response_format": ' + b'{"a":' * 101 + b"1" + b"}" * 101,
    "nesting of a tool": b'"tools": [{"type": "function", "function": {"name": "f", "parameters": ' + b'{"a":' * 900 + b"1" + b"}" * 904,
    "a choice that names nothing": b'"tool_choice": {"type": "function", "function": "f"}',
}


@pytest.mark.parametrize("what", NO_JSON)
async def test_what_no_provider_could_be_sent_is_refused_and_not_taken_for_an_outage(
    answers: Answers, endpoint: Endpoint, what: str
) -> None:
    """Fell: such a request failed where it was sent, as the provider's doing, so its rollout was missing instead of lost."""
    body = b'{"messages": [{"role": "user", "content": "go"}], ' + NO_JSON[what] + b"}"
    status, _, said = await post(endpoint, "chat/completions", body)
    assert (status, answers.asked) == (400, []), said


@pytest.mark.parametrize("arguments", ['{"a": 1e999}', '{"a": NaN}', '{"a": "\\ud800"}', '{"a":' * 200 + "1" + "}" * 200])
async def test_arguments_that_no_provider_could_be_sent_are_refused_and_broken_ones_pass(
    answers: Answers, endpoint: Endpoint, arguments: str
) -> None:
    def conversation(text: str) -> dict[str, Any]:
        call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": text}}
        return {"messages": [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "1", "content": "x"}]}

    assert (await post(endpoint, "chat/completions", conversation(arguments)))[0] == 400
    assert (await post(endpoint, "chat/completions", conversation('{"a": ')))[0] == 200
    assert len(answers.asked) == 1
