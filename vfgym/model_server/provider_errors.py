"""Errors in the words and shapes of the providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vfgym.errors import ConfigurationError
from vfgym.model_server.exchange import RequestRefused

ProviderName: TypeAlias = Literal["openai", "anthropic"]

_ANTHROPIC_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_OPENAI_KINDS = {403: "permission_error", 429: "requests"}


def error_body(provider: ProviderName, refused: RequestRefused, number: int) -> dict[str, Any]:
    """Return the body of an error answer."""
    if provider == "anthropic":
        kind = refused.kind or _ANTHROPIC_KINDS.get(refused.status, "api_error" if refused.status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": f"req_{number}"}
    kind = refused.kind or _OPENAI_KINDS.get(refused.status, "server_error" if refused.status >= 500 else "invalid_request_error")
    return {"error": {"message": refused.message, "type": kind, "param": refused.param, "code": refused.code}}


@dataclass(frozen=True)
class Overlong:
    """How the server says that a prompt is too long."""

    status: int = 400
    message: str = (
        "This model's maximum context length is {max_model_len} tokens. However, your messages resulted in {prompt_tokens} tokens."
        " Please reduce the length of the messages."
    )
    """The text; ``{prompt_tokens}`` and ``{max_model_len}`` in it stand for the numbers."""
    code: str | None = "context_length_exceeded"
    """OpenAI's error code."""
    kind: str | None = None
    """The error's type; the provider's usual one for the status where it is None."""

    def __post_init__(self) -> None:
        if not 400 <= self.status <= 599:
            raise ConfigurationError(f"an error has a status from 400 to 599, got {self.status}")
        try:
            self.message.format(prompt_tokens=1, max_model_len=1)
        except (KeyError, IndexError, ValueError) as error:
            raise ConfigurationError(f"the message may name {{prompt_tokens}} and {{max_model_len}} only, got {self.message!r}") from error

    def refusal(self, prompt_tokens: int, max_model_len: int) -> RequestRefused:
        """Return the error for a prompt."""
        message = self.message.format(prompt_tokens=prompt_tokens, max_model_len=max_model_len)
        return RequestRefused(self.status, message, code=self.code, kind=self.kind, param="messages")


OVERLONG: Mapping[ProviderName, Overlong] = {
    "openai": Overlong(),
    "anthropic": Overlong(400, "prompt is too long: {prompt_tokens} tokens > {max_model_len} maximum", None),
}
"""How each provider says it."""


def unknown_key_error(provider: ProviderName, key: str | None) -> RequestRefused:
    """Return the error for a key that nobody knows, or for no key."""
    if provider == "anthropic":
        return RequestRefused(401, "invalid x-api-key" if key else "x-api-key header is required")
    if key:
        return RequestRefused(401, f"Incorrect API key provided: {_mask(key)}.", code="invalid_api_key")
    return RequestRefused(401, "You didn't provide an API key. Send it in an Authorization header: Bearer YOUR_KEY.")


def _mask(key: str) -> str:
    return key if len(key) < 12 else f"{key[:7]}{'*' * 8}{key[-4:]}"


def forbidden_key_error(provider: ProviderName) -> RequestRefused:
    """Return the error for a key that may not ask."""
    if provider == "anthropic":
        return RequestRefused(403, "Your API key does not have permission to use the specified resource.")
    return RequestRefused(403, "You are not allowed to sample from this model.", code="permission_denied")
