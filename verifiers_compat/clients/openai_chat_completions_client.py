"""The documented module of `OpenAIChatCompletionsClient`, and the small functions that clients derived from it use."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from verifiers_compat.utils.usage_utils import get_usage_field
from vfgym.clients import is_overlong_prompt
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.errors import OverlongPromptError
from vfgym.messages import content_text

__all__ = [
    "OpenAIChatCompletionsClient",
    "content_to_text",
    "get_usage_field",
    "handle_openai_overlong_prompt",
    "parse_reasoning_content",
]

P = ParamSpec("P")
T = TypeVar("T")

_REASONING_FIELDS = ("reasoning", "reasoning_content", "reasoning_details")


def handle_openai_overlong_prompt(func: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Make an async function raise `OverlongPromptError` where the provider says that the prompt is too long."""

    @functools.wraps(func)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await func(*args, **kwargs)
        except Exception as error:
            if is_overlong_prompt(error):
                raise OverlongPromptError(f"the prompt is longer than the model's context: {error}") from error
            raise

    return call


def content_to_text(content: Any) -> str:
    """Return the text of a message's content: parts of type text joined by one space, other parts left out."""
    return content_text(content)


def parse_reasoning_content(message: Any) -> str | None:
    """Return the reasoning of a provider's message, from whichever of its fields has it as text; None where none does."""
    values = (get_usage_field(message, name) for name in _REASONING_FIELDS)
    return next((value for value in values if isinstance(value, str)), None)
