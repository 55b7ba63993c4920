"""``/tokenize`` and ``/detokenize``, as servers of open models have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vfgym.errors import ConfigurationError
from vfgym.model_server.exchange import RequestRefused
from vfgym.model_server.openai_chat import read_chat_tools, token_text
from vfgym.model_server.parsed_request import parse_messages
from vfgym.model_server.tokenizer import detokenize, prompt_pieces, token_ids, tokenize


def answer_tokenize(body: Mapping[str, Any], max_model_len: int | None) -> dict[str, Any]:
    """Return the answer of ``/tokenize`` to a text (``prompt``) or a conversation (``messages``).

    Raises:
        RequestRefused: If there is neither, or both.
    """
    if ("prompt" in body) == ("messages" in body):
        raise RequestRefused(400, "give either 'prompt' (text) or 'messages'")
    if body.get("continue_final_message"):
        raise RequestRefused(400, "'continue_final_message' is not supported by this server", param="continue_final_message")
    if "prompt" in body:
        if not isinstance(body["prompt"], str):
            raise RequestRefused(400, f"prompt must be text, got {body['prompt']!r:.120}", param="prompt")
        ids = tokenize(body["prompt"])
    else:
        add_generation_prompt = body.get("add_generation_prompt", True) is not False
        messages = parse_messages(body["messages"])
        ids = token_ids(prompt_pieces(messages, read_chat_tools(body).text, add_generation_prompt=add_generation_prompt))
    answer: dict[str, Any] = {"tokens": ids, "count": len(ids), "max_model_len": max_model_len}
    if body.get("return_token_strs"):
        answer["token_strs"] = [token_text(token) for token in ids]
    return answer


def answer_detokenize(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer of ``/detokenize`` to ``tokens``.

    Raises:
        RequestRefused: If they are not token ids.
    """
    ids = body.get("tokens")
    if not isinstance(ids, list):
        raise RequestRefused(400, f"tokens must be a list of token ids, got {ids!r:.120}", param="tokens")
    try:
        return {"prompt": detokenize(ids)}
    except ConfigurationError as error:
        raise RequestRefused(400, str(error), param="tokens") from None
