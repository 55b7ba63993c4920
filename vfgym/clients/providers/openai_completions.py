"""`OpenAICompletionsClient`: the legacy completions API, which continues a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from vfgym.clients.client import SamplingArgs
from vfgym.clients.config import ClientConfig
from vfgym.clients.formats.openai_chat import (
    REQUEST_OPTIONS,
    as_fields,
    checked_choice,
    is_streamed,
    request_headers,
    response_of,
    tokens_of,
)
from vfgym.clients.http.chat_sdk import unknown_to_body
from vfgym.clients.provider import ProviderClient
from vfgym.errors import EmptyModelResponseError
from vfgym.messages import Message, Response, ResponseTokens
from vfgym.messages.chat import convert_all
from vfgym.tools import Tool

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class OpenAICompletionsClient(ProviderClient["AsyncOpenAI", str, Any, Any]):
    """Asks over the legacy completions API: the messages' texts, joined by blank lines, are continued.

    Roles, reasoning and tool calls are not part of such a prompt. Tools, images and audio cannot be sent.
    """

    def setup_client(self, config: ClientConfig) -> AsyncOpenAI:
        """Make the SDK's client of a configuration."""
        from vfgym.clients.http.sdk import openai_client

        return openai_client(config, self.connections)

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
        kwargs.pop("state", None)
        arguments = {name: value for name, value in sampling_args.items() if value is not None} | kwargs
        options = {name: arguments.pop(name) for name in REQUEST_OPTIONS if name in arguments}
        if "extra_headers" in options:
            options["extra_headers"] = request_headers(sampling_args, kwargs)
        arguments, options = unknown_to_body(type(self.client.completions), arguments, options)
        return await self.client.completions.create(**{"model": model, "prompt": prompt, **arguments, **options})

    async def raise_from_native_response(self, response: Any) -> None:
        """Raise an error for a response that is not one answer with text."""
        choice = checked_choice(as_fields(response), self._where())
        if not choice.get("text"):
            raise EmptyModelResponseError(f"{self._where()} gave an answer without text (finish_reason {choice.get('finish_reason')!r})")

    async def from_native_response(self, response: Any) -> Response:
        """Return the response as the library's own."""
        fields = as_fields(response)
        choice = fields["choices"][0]
        return response_of(fields, choice, {"role": "assistant", "content": choice["text"]}, _tokens(choice), "")


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
