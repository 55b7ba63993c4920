"""What a provider's error means: a refused key, an overlong prompt, or something else.

Providers say "the prompt is too long" in their own ways, and new ones come with every server release. So the rules are a
table (`OVERLONG_RULES`) that can be added to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from vfgym.clients.config import NO_KEY, EndpointClientConfig

_SDKS = frozenset({"openai", "anthropic"})
_REFUSED = frozenset({401, 403})


def is_authentication_error(error: BaseException) -> bool:
    """Say whether an SDK's error tells that the provider refused the API key (401) or what it may do (403)."""
    return type(error).__module__.partition(".")[0] in _SDKS and getattr(error, "status_code", None) in _REFUSED


def named_key(config: EndpointClientConfig | None) -> str:
    """Say which key was used, without showing it."""
    if config is None:
        return "that of the SDK client that was given"
    if config.api_key is not None:
        return "the api_key that was given"
    if config.resolved_api_key() == NO_KEY:
        return f"the environment variable {config.api_key_var} is not set"
    return f"that of the environment variable {config.api_key_var}"


class OverlongRule(NamedTuple):
    """One way in which a server says that a prompt does not fit into the model's context."""

    pattern: str
    """Regular expression that is searched in the error's text and body, whatever the case; empty for any text."""
    statuses: frozenset[int] = frozenset({400, 413, 422, 500})
    """HTTP statuses that it comes with."""
    code: str | None = None
    """The body's error code, where that alone tells; the pattern is then not asked."""


OVERLONG_RULES: list[OverlongRule] = [
    OverlongRule("", code="context_length_exceeded"),
    OverlongRule("", code="prompt_too_long"),
    OverlongRule("", statuses=frozenset({413}), code="request_too_large"),
    OverlongRule(r"maximum context length"),
    OverlongRule(r"context length|context_length|context window"),
    OverlongRule(r"longer than the (model's|maximum)|maximum model length|max_model_len"),
    OverlongRule(r"exceeds? the configured limit|exceeded model"),
    OverlongRule(r"prompt_too_long|prompt is too long|input is too long|too many total text bytes"),
    OverlongRule(r"exceeds? (the )?context limit|exceeds? the maximum (number of )?(input )?tokens|input token count"),
]
"""How servers say it. Add to it what another gateway says: ``OVERLONG_RULES.append(OverlongRule("too much text"))``."""


def is_overlong_prompt(error: BaseException) -> bool:
    """Say whether an error of an SDK tells that the prompt does not fit into the model's context (see `OVERLONG_RULES`)."""
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):
        return False
    body = getattr(error, "body", None)
    codes = _codes(body)
    text = f"{error} {body}"
    for rule in OVERLONG_RULES:
        if status not in rule.statuses:
            continue
        if rule.code in codes if rule.code is not None else re.search(rule.pattern, text, re.IGNORECASE):
            return True
    return False


def _codes(body: Any) -> set[Any]:
    """Return what stands as code or type in an error's body, or in the ``error`` inside it."""
    if not isinstance(body, Mapping):
        return set()
    inner = body.get("error")
    fields = [body, inner] if isinstance(inner, Mapping) else [body]
    return {each.get(name) for each in fields for name in ("code", "type") if isinstance(each.get(name), str)}
