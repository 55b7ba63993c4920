"""`OpenAICompletionsClient`: the legacy completions API, which continues a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from vfgym.clients.client import SamplingArgs
from vfgym.clients.formats.openai_chat import (
    REQUEST_OPTIONS,
    as_fields,
    is_streamed,
    request_headers,
    require_choice,
    response_of,
    tokens_of,
)
from vfgym.clients.formats.sampling import create_arguments
from vfgym.clients.provider import OpenAISDKClient
from vfgym.errors import EmptyModelResponseError
from vfgym.messages import Message, Response, ResponseTokens
from vfgym.messages.chat import convert_all
from vfgym.tools import Tool


class OpenAICompletionsClient(OpenAISDKClient[str, Any, Any]):
    """Asks over the legacy completions API: the messages' texts, joined by blank lines, are continued.

    Roles, reasoning and tool calls are not part of such a prompt. Tools, images and audio cannot be sent.
    """

    async def to_native_prompt(self, messages: Sequence[Message]) -> tuple[str, dict[str, Any]]:
        """Return the conversation as one text.

        Raises:
            ValueError: If a message has a part that is not text.
        """
        texts = convert_all(messages, _message_text)
        return "\n\n".join(text for text in texts if text), {}

    async def to_native_tool(self, tool: Tool) -> NoReturn:
        """Refuse a tool.

        Raises:
            ValueError: Always.
        """
        raise ValueError(f"the legacy completions API knows no tools, got {tool.name!r}: take client_type='openai_chat_completions'")

    async def get_native_response(
        self, prompt: str, model: str, sampling_args: SamplingArgs, tools: list[Any] | None = None, **kwargs: Any
    ) -> Any:
        """Call the API.

        Raises:
            ValueError: If the answer is asked for as a stream.
        """
        if is_streamed(sampling_args):
            raise ValueError("the legacy completions client does not stream: leave out stream")
        given = {**sampling_args, **kwargs, "state": None, "extra_headers": request_headers(sampling_args, kwargs) or None}
        parameters = {name: value for name, value in given.items() if value is not None}
        options = {name: parameters.pop(name) for name in REQUEST_OPTIONS if name in parameters}
        create = self.client.completions.create
        return await create(**{"model": model, "prompt": prompt, **create_arguments(create, parameters, options)})

    async def raise_from_native_response(self, response: Any) -> None:
        """Raise an error for a response that is not one answer with text."""
        choice = require_choice(as_fields(response), self._where())
        if not choice.get("text"):
            raise EmptyModelResponseError(f"{self._where()} gave an answer without text (finish_reason {choice.get('finish_reason')!r})")

    async def from_native_response(self, response: Any) -> Response:
        """Return the response as the library's own."""
        fields = as_fields(response)
        choice = fields["choices"][0]
        message, tell = {"role": "assistant", "content": choice["text"]}, self._tell_unusable(fields.get("model"))
        return response_of(fields, choice, message, _tokens(choice), tell, "")


def _tokens(choice: Mapping[str, Any]) -> ResponseTokens | None:
    prompt_ids, completion_ids = choice.get("prompt_token_ids"), choice.get("token_ids")
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
    if prompt_ids is None or completion_ids is None or logprobs is None:
        return None
    return tokens_of(prompt_ids, completion_ids, logprobs, choice)


def _message_text(message: Message) -> str:
    content = message["content"]
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part["type"] != "text":
            raise ValueError(f"the legacy completions API takes text only, got a part of type {part['type']!r}")
    return " ".join(part["text"] for part in content)
