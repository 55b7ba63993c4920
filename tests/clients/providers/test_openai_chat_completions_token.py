"""Clients that bring token ids: later turns asked with the ids of earlier ones, and NeMo RL's place for them."""

from __future__ import annotations

import logging
from typing import Any

import openai
import pytest

from tests.clients.canned_server import Canned, CannedServer, completion
from vfgym.clients import ClientConfig, ClientType, resolve_client
from vfgym.clients.providers.openai_chat_completions_token import _can_be_bridged
from vfgym.errors import OverlongPromptError
from vfgym.messages import AssistantMessage, Message, ResponseTokens, ToolCall, ToolMessage, UserMessage
from vfgym.model_server import ModelServer, detokenize, scripted
from vfgym.model_server.tokenizer import prompt_pieces, token_ids
from vfgym.tools import Tool

ADD = Tool(name="add", description="Add.", parameters={"type": "object"})
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def client_of(url: str, client_type: ClientType = "openai_chat_completions_token", **fields: Any) -> Any:
    return resolve_client(ClientConfig(client_type=client_type, api_base_url=url, api_key="k", max_retries=0, **fields))


def turn(prompt: list[Message], response: Any, is_truncated: bool = False) -> dict[str, Any]:
    """Return a step of a trajectory as the machine records it."""
    tokens: ResponseTokens | None = response.tokens
    answer = AssistantMessage(**{key: value for key, value in response.message.items() if key in ("content", "tool_calls")})
    recorded = None
    if tokens is not None:
        recorded = {"prompt_ids": tokens.prompt_ids, "completion_ids": tokens.completion_ids, "is_truncated": False}
        recorded["completion_logprobs"] = tokens.completion_logprobs
    return {"prompt": prompt, "completion": [answer], "tokens": recorded, "is_truncated": is_truncated}


async def ask(client: Any, prompt: list[Message], steps: list[Any], **kwargs: Any) -> Any:
    return await client.get_response(prompt, "m", kwargs.pop("sampling_args", None), state={"trajectory": steps}, **kwargs)


CALLS = AssistantMessage(None, tool_calls=[ToolCall("c1", "add", "{}"), ToolCall("c2", "add", "{}")])


@pytest.mark.parametrize("is_given", [False, True])
async def test_a_conversation_goes_on_from_its_tokens(is_given: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with ModelServer({"m": scripted([CALLS, "Three 👋.", "Bye."])}) as server:
        sdk = openai.AsyncOpenAI(api_key="k", base_url=server.openai_url)
        client: Any = resolve_client(sdk, "openai_chat_completions_token") if is_given else client_of(server.openai_url)
        conversation: list[Message] = [UserMessage("1 + 2?")]
        steps: list[Any] = []
        tails: list[list[Message]] = [
            [ToolMessage("3", tool_call_id="c1"), ToolMessage("4", tool_call_id="c2")],
            [UserMessage("Grüße")],
            [],
        ]
        for tail in tails:
            response = await ask(client, list(conversation), steps, tools=[ADD])
            steps.append(turn(list(conversation), response))
            conversation += [*steps[-1]["completion"], *tail]
        asked = [request for request in server.requests if "tokenize" not in request.path]
        assert [request.path for request in asked] == ["/v1/chat/completions", *["/v1/chat/completions/tokens"] * 2]
        for step, before, tail in zip(steps[1:], steps, tails, strict=False):
            ids = step["tokens"]["prompt_ids"]
            start = [*before["tokens"]["prompt_ids"], *before["tokens"]["completion_ids"]]
            assert ids[: len(start)] == start
            rendered = detokenize(ids[len(start) :])
            assert all(message.content in rendered for message in tail)
        # The toy template renders a longer conversation as the shorter one and more, so the bridge can be checked to the token.
        whole = token_ids(prompt_pieces(conversation[:-1]))
        assert steps[-1]["tokens"]["prompt_ids"][-len(whole) :] == whole
        assert steps[-1]["tokens"]["completion_logprobs"]
        last = [*steps[-1]["prompt"], *steps[-1]["completion"], UserMessage("And then?")]
        start = [*steps[-1]["tokens"]["prompt_ids"], *steps[-1]["tokens"]["completion_ids"]]
        ids = await client.prompt_ids(last, "m", [ADD], state={"trajectory": steps})
        assert (ids[: len(start)], "And then?" in detokenize(ids[len(start) :])) == (start, True)
        assert await client.prompt_ids(last, "m", [ADD], state={"trajectory": []}) is None
        assert [request.body["logprobs"] and request.body["return_token_ids"] for request in asked] == [True] * 3
        assert not caplog.records
        await client.close()


@pytest.fixture
def server(server: CannedServer) -> CannedServer:
    server.answers = [completion(prompt_token_ids=[1, 2], token_ids=[3], logprobs={"content": [{"logprob": -1.0}]})]
    return server


ASKED = UserMessage("1 + 2?")
ANSWERED = AssistantMessage("Oslo.")


def step_of(**changes: Any) -> dict[str, Any]:
    tokens = {"prompt_ids": [1, 2], "completion_ids": [3], "is_truncated": False, "completion_logprobs": [-1.0]}
    return {"prompt": [ASKED], "completion": [ANSWERED], "tokens": tokens, "is_truncated": False, **changes}


@pytest.mark.parametrize(
    ("prompt", "steps"),
    [
        ([ASKED], []),
        ([ASKED, ANSWERED, UserMessage([IMAGE])], [step_of()]),
        ([ASKED, ANSWERED, UserMessage("a"), UserMessage("b")], [step_of()]),
        ([ASKED, AssistantMessage("Rewritten."), UserMessage("a")], [step_of()]),
        ([ASKED, ANSWERED], [step_of()]),
        ([ASKED, ANSWERED, UserMessage("a")], [step_of(is_truncated=True)]),
        ([ASKED, ANSWERED, UserMessage("a")], [step_of(tokens=None)]),
        ([ASKED, ANSWERED, UserMessage("a")], [step_of(tokens={**step_of()["tokens"], "is_truncated": True})]),
    ],
)
async def test_messages_are_sent_where_tokens_cannot_be(
    server: CannedServer, caplog: pytest.LogCaptureFixture, prompt: list[Message], steps: list[Any]
) -> None:
    client = client_of(server.url)
    response = await ask(client, prompt, steps)
    assert server.paths == ["/v1/chat/completions"]
    assert len(server.bodies[0]["messages"]) == len(prompt)
    assert response.tokens == ResponseTokens([1, 2], [0, 0], [3], [1], [-1.0])
    assert not caplog.records
    await client.close()


async def test_a_server_without_the_routes_is_warned_of_once(server: CannedServer, caplog: pytest.LogCaptureFixture) -> None:
    server.routes = {"/tokenize": Canned({"detail": "Not Found"}, 404)}
    client = client_of(server.url)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            response = await ask(client, [ASKED, ANSWERED, UserMessage("a")], [step_of()])
            assert response.message.content == "Oslo."
    assert len([record for record in caplog.records if "as messages" in record.message]) == 1
    await client.close()


def template(body: Any) -> Any:
    """Render ``<9 text... 8 7>``: 8 ends an answer, 7 is a line break that models do not write."""
    ids: list[int] = []
    for message in body["messages"]:
        ids += [9, *(message["content"] or "").encode(), 8, 7]
    return {"tokens": [*ids, 9] if body["add_generation_prompt"] else ids}


GOES_ON: list[Message] = [ASKED, ANSWERED, UserMessage("a")]
TOKENS, MESSAGES = "/v1/chat/completions/tokens", "/v1/chat/completions"


@pytest.mark.parametrize("route", ["/tokenize", TOKENS])
async def test_a_key_that_is_refused_is_raised_and_nothing_else_is_asked(server: CannedServer, route: str) -> None:
    server.routes = {"/tokenize": template, route: Canned({"error": {"message": "wrong key"}}, 401)}
    client = client_of(server.url)
    with pytest.raises(openai.AuthenticationError):
        await ask(client, GOES_ON, [step_of()])
    assert MESSAGES not in server.paths
    await client.close()


async def test_tokens_that_are_too_many_are_an_overlong_prompt(server: CannedServer, caplog: pytest.LogCaptureFixture) -> None:
    server.routes = {"/tokenize": template, TOKENS: Canned({"error": {"message": "no", "code": "context_length_exceeded"}}, 400)}
    client = client_of(server.url)
    with pytest.raises(OverlongPromptError):
        await ask(client, GOES_ON, [step_of()])
    assert (server.paths[-1], MESSAGES in server.paths, caplog.records) == (TOKENS, False, [])
    await client.close()


def rendered_anew(body: Any) -> Any:
    return {"tokens": [len(body["messages"])]}


@pytest.mark.parametrize(
    ("routes", "says"),
    [
        ({"/tokenize": template, TOKENS: Canned({}, 500)}, "InternalServerError: Error code: 500"),
        ({"/tokenize": rendered_anew}, "ValueError: the chat template renders an answer in another way once messages follow it"),
        ({"/tokenize": {"tokens": "12"}}, "ValueError: /tokenize should answer with a list of tokens, got {'tokens': '12'}"),
        ({"/tokenize": [1]}, "ValueError: /tokenize should answer with a list of tokens, got [1]"),
    ],
)
async def test_whatever_else_fails_messages_are_sent_and_it_is_said_why(
    server: CannedServer, routes: dict[str, Any], says: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.routes = routes
    client = client_of(server.url)
    with caplog.at_level(logging.WARNING, "vfgym"):
        for _ in range(2):
            assert (await ask(client, GOES_ON, [step_of()])).message.content == "Oslo."
            assert server.paths[-1] == MESSAGES
    assert [record.getMessage() for record in caplog.records] == [f"prompts are sent as messages, not as tokens: {says}"]
    await client.close()


async def test_what_is_asked_of_the_tokenizer_and_with_the_tokens(server: CannedServer) -> None:
    server.routes = {"/tokenize": template}
    client = client_of(f"{server.url}/")
    prompt: list[Message] = [ASKED, CALLS, ToolMessage("3", tool_call_id="c1"), ToolMessage("4", tool_call_id="c2"), UserMessage("a")]
    arguments = {"temperature": 0, "logprobs": False, "extra_body": {"min_p": 0.1}, "extra_headers": {"X-A": "1"}}
    for model in ("m", "m", "other"):
        await client.get_response(prompt, model, dict(arguments), [ADD], state={"trajectory": [step_of(completion=[CALLS])]})
    tokenized = [body for body, path in zip(server.bodies, server.paths, strict=True) if path == "/tokenize"]
    assert len(tokenized) == 4 + 2 + 4, "how a template closes an answer is asked for once a model"
    calls = [{"id": name, "type": "function", "function": {"name": "call", "arguments": "{}"}} for name in ("c1", "c2")]
    answer = {"role": "assistant", "content": "0", "tool_calls": calls}
    tail = [{"role": "tool", "content": text, "tool_call_id": name} for text, name in (("3", "c1"), ("4", "c2"))]
    tail.append({"role": "user", "content": "a"})
    tools = [{"type": "function", "function": {"name": "add", "description": "Add.", "parameters": {"type": "object"}}}]
    for messages, goes_on in (([answer], False), ([answer, *tail], True)):
        body = {"model": "m", "messages": messages, "add_generation_prompt": goes_on, "tools": tools}
        assert tokenized.count(body) == 2
    for text in "01":
        body = {"model": "other", "messages": [{"role": "assistant", "content": text}], "add_generation_prompt": False}
        assert tokenized.count(body) == 1
    sent = server.bodies[server.paths.index(TOKENS)]
    assert {name: sent[name] for name in ("model", "temperature", "logprobs", "min_p", "return_token_ids", "tools")} == {
        **{"model": "m", "temperature": 0, "logprobs": True, "min_p": 0.1, "return_token_ids": True, "tools": tools}
    }
    assert server.headers[server.paths.index(TOKENS)]["X-A"] == "1"
    await client.close()


@pytest.mark.parametrize(
    ("roles", "can_be"),
    [
        *(([], False), (["user"], True), (["tool"], True), (["tool", "tool"], True), (["tool", "tool", "user"], True)),
        *((["user", "user"], False), (["user", "tool"], False), (["assistant"], False), (["system"], False), (["tool", "system"], False)),
    ],
)
def test_results_and_one_user_message_can_follow_a_turn(roles: list[str], can_be: bool) -> None:
    assert _can_be_bridged([{"role": role} for role in roles]) is can_be


@pytest.mark.parametrize(("written", "closing"), [([65, 8], [7]), ([65, 8, 7], []), ([65], [8, 7])])
async def test_what_a_model_does_not_write_is_filled_in(server: CannedServer, written: list[int], closing: list[int]) -> None:
    server.routes = {"/tokenize": template}
    client = client_of(server.url)
    step = step_of(tokens={**step_of()["tokens"], "completion_ids": written})
    await ask(client, [ASKED, ANSWERED, UserMessage("a")], [step])
    assert server.bodies[-1]["tokens"] == [1, 2, *written, *closing, 9, ord("a"), 8, 7, 9]
    assert server.paths[-1] == "/v1/chat/completions/tokens"
    await client.close()
