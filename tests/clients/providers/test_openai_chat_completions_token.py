"""Clients that bring token ids: later turns asked with the ids of earlier ones, and NeMo RL's place for them."""

from __future__ import annotations

import logging
from typing import Any

import openai
import pytest

from tests.clients.canned_server import Canned, CannedServer, completion
from vfgym.clients import ClientConfig, ClientType, resolve_client
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


@pytest.mark.parametrize(("written", "closing"), [([65, 8], [7]), ([65, 8, 7], []), ([65], [8, 7])])
async def test_what_a_model_does_not_write_is_filled_in(server: CannedServer, written: list[int], closing: list[int]) -> None:
    server.routes = {"/tokenize": template}
    client = client_of(server.url)
    step = step_of(tokens={**step_of()["tokens"], "completion_ids": written})
    await ask(client, [ASKED, ANSWERED, UserMessage("a")], [step])
    assert server.bodies[-1]["tokens"] == [1, 2, *written, *closing, 9, ord("a"), 8, 7, 9]
    assert server.paths[-1] == "/v1/chat/completions/tokens"
    await client.close()
