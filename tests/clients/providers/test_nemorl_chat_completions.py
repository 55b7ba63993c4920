"""Chat completions as NeMo RL serves them, with the token data on the messages."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.canned_server import CannedServer, completion
from vfgym.clients import ClientConfig, resolve_client
from vfgym.messages import AssistantMessage, Message, ResponseTokens, UserMessage


def client_of(url: str, **fields: Any) -> Any:
    return resolve_client(ClientConfig(client_type="nemorl_chat_completions", api_base_url=url, api_key="k", max_retries=0, **fields))


async def ask(client: Any, prompt: list[Message], steps: list[Any], **kwargs: Any) -> Any:
    return await client.get_response(prompt, "m", kwargs.pop("sampling_args", None), state={"trajectory": steps}, **kwargs)


ASKED = UserMessage("1 + 2?")
ANSWERED = AssistantMessage("Oslo.")


def step_of(**changes: Any) -> dict[str, Any]:
    tokens = {"prompt_ids": [1, 2], "completion_ids": [3], "is_truncated": False, "completion_logprobs": [-1.0]}
    return {"prompt": [ASKED], "completion": [ANSWERED], "tokens": tokens, "is_truncated": False, **changes}


async def test_nemo_rl(server: CannedServer) -> None:
    message = {"content": "Oslo.", "prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}
    server.answers = [completion(message)]
    client = client_of(server.url)
    response = await ask(client, [ASKED], [])
    assert response.tokens == ResponseTokens([1, 2], [0, 0], [3], [1], [-0.5])
    assert response.message.content == "Oslo."
    await ask(client, [ASKED, ANSWERED, UserMessage("a")], [step_of()])
    assert server.bodies[-1]["messages"] == [
        {"role": "user", "content": "1 + 2?"},
        {"role": "assistant", "content": "Oslo.", "prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-1.0]},
        {"role": "user", "content": "a"},
    ]
    await ask(client, [ASKED, AssistantMessage("Rewritten."), UserMessage("a")], [step_of()])
    assert server.bodies[-1]["messages"][1] == {"role": "assistant", "content": "Rewritten."}
    await client.close()


@pytest.mark.parametrize(
    "step",
    [
        step_of(tokens=None),
        step_of(prompt=[ASKED, ANSWERED, ASKED, ANSWERED]),
        step_of(completion=[]),
        step_of(completion=[ANSWERED, ANSWERED]),
        step_of(completion=[AssistantMessage("Rewritten.")]),
    ],
)
async def test_a_turn_that_does_not_stand_in_the_prompt_brings_no_tokens(step: Any, server: CannedServer) -> None:
    client = client_of(server.url)
    await ask(client, [ASKED, ANSWERED, UserMessage("a")], [step])
    assert server.bodies[-1]["messages"][1] == {"role": "assistant", "content": "Oslo."}
    await client.close()


async def test_every_turn_brings_its_own_tokens(server: CannedServer) -> None:
    client = client_of(server.url)
    conversation: list[Message] = [ASKED, ANSWERED, UserMessage("a"), ANSWERED, UserMessage("b")]
    second = step_of(prompt=conversation[:3], tokens={**step_of()["tokens"], "completion_ids": [7]})
    await ask(client, conversation, [step_of(), second])
    sent = [message.get("generation_token_ids") for message in server.bodies[-1]["messages"]]
    assert sent == [None, [3], None, [7], None]
    assert "prompt_token_ids" not in conversation[1]
    await client.close()


@pytest.mark.parametrize("message", [{"content": "Oslo."}, {"content": "Oslo.", "generation_token_ids": None}])
async def test_an_answer_without_token_data(message: Any, server: CannedServer) -> None:
    server.answers = [completion(message)]
    client = client_of(server.url)
    assert (await ask(client, [ASKED], [])).tokens is None
    await client.close()
