"""What a policy is asked and what it answers, whatever the API that the client speaks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vfgym.errors import Error, InvalidMessage
from vfgym.messages import AssistantMessage, Message, ToolCall, Usage, as_message, as_tool_call, content_text
from vfgym.tools import Tool

ApiName: TypeAlias = Literal["chat", "completions", "responses", "messages", "tokens"]
"""Which API a request came by: OpenAI's chat completions, completions and responses, Anthropic's messages, or the token route."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One answer that a client asks for."""

    api: ApiName
    number: int
    """Number of the HTTP request, from 1, in the order of arrival."""
    model: str
    messages: list[Message]
    """The conversation; a prompt of plain text is one `TextMessage`."""
    tools: list[Tool]
    tool_choice: str
    """``"auto"``, ``"none"``, ``"required"``, or the name of the tool that must be called."""
    sampling_args: Mapping[str, Any]
    """Everything else that the body says, as it was sent."""
    headers: Mapping[str, str]
    """The HTTP headers, whatever the case of their names."""
    choice: int = 0
    """Which of the answers to this request (``n``, or several prompts) is asked for, from 0."""
    prompt_ids: Sequence[int] | None = None
    """The prompt as token ids, where it was sent as such."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer with everything that an API can say of it. What is left out follows from the rest."""

    text: str | None = None
    tool_calls: Sequence[ToolCall] = ()
    reasoning: str | None = None
    finish_reason: str | None = None
    """``"stop"``, ``"length"``, ``"tool_calls"``, ``"content_filter"``; each API has its own words for them."""
    usage: Usage | None = None
    """Tokens to report; counted where it is None."""
    token_ids: Sequence[int] | None = None
    """Ids of the answer's tokens; those of the toy tokenizer where it is None."""
    logprobs: Sequence[float] | None = None
    """Log-probabilities (nats), one for each token; made up where it is None."""
    thinking_blocks: Sequence[Mapping[str, Any]] | None = None
    """Anthropic's blocks, as they are sent; one with a signature for the reasoning where it is None."""


Answer: TypeAlias = str | Mapping[str, Any] | AssistantMessage | Reply
"""What a policy returns: text, an assistant message (or a dict with its fields), or a `Reply`."""

Policy: TypeAlias = Callable[[ModelRequest], Answer | Awaitable[Answer]]
"""A model of the server: a function from a request to its answer, plain or async."""


class RequestRefused(Error):
    """A request gets an error instead of an answer. A policy may raise it too."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Say what the client is told.

        Args:
            status: HTTP status.
            message: What is wrong, for a person to read.
            code: OpenAI's error code.
            param: Name of the field that is wrong.
            kind: The error's type; the provider's usual one for the status where it is None.
            headers: Further HTTP headers.
        """
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.kind = kind
        self.headers = dict(headers or {})


def as_reply(answer: Any) -> Reply:
    """Return what a policy answered as a `Reply`.

    Raises:
        InvalidMessage: If it is not an answer.
    """
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str):
        return Reply(answer)
    if isinstance(answer, Mapping):
        message = as_message({"role": "assistant", **answer})
        if isinstance(message, AssistantMessage):
            return _reply_of(message)
    raise InvalidMessage(f"a policy must return text, an assistant message or a Reply, got {type(answer).__name__}: {answer!r:.120}")


def _reply_of(message: AssistantMessage) -> Reply:
    content = message.content
    if isinstance(content, list) and any(part["type"] != "text" for part in content):
        raise InvalidMessage(f"a model of this server answers with text, not with {[part['type'] for part in content]}")
    return Reply(
        None if content is None else content_text(content),
        [as_tool_call(call) for call in message.tool_calls or ()],
        message.reasoning_content,
        thinking_blocks=message.thinking_blocks,
    )
