"""What a provider's error means: something that is refused for good (the key, the model), an overlong prompt, or something else.

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
_NO_TIME = frozenset({408, 409, 425, 429})
_NAMED_IN_A_PROMPT = re.compile(r"\b(file|image|item|previous[ _]response|container)\b", re.IGNORECASE)
_ABOUT_A_MODEL = re.compile(r"\bmodel\b|model_not_found", re.IGNORECASE)
_ABOUT_A_PROMPT = re.compile(r"moderat|flagged|content[ _](policy|filter)|safety", re.IGNORECASE)


def is_authentication_error(error: BaseException) -> bool:
    """Say whether an SDK's error tells that the provider refused the API key (401) or what it may do (403).

    A gateway may answer 403 for what one prompt says, too: that says nothing about the key.
    """
    return _sdk_status(error) in _REFUSED and not _ABOUT_A_PROMPT.search(f"{error} {getattr(error, 'body', None)}")


def _sdk_status(error: BaseException) -> int | None:
    """Return the HTTP status that an SDK's own error tells of; None for any other error."""
    return getattr(error, "status_code", None) if type(error).__module__.partition(".")[0] in _SDKS else None


def is_unknown_model(error: BaseException, *, has_answered: bool) -> bool:
    """Say whether an SDK's error (404) tells that there is no such model, or no such route: that the URL is wrong.

    Args:
        error: The error.
        has_answered: Whether the model has answered here before. Then only words about the model tell that it is gone.
    """
    if _sdk_status(error) != 404:
        return False
    body = getattr(error, "body", None)
    if _ABOUT_A_MODEL.search(f"{error} {body}"):
        return True
    return not has_answered and not (isinstance(body, Mapping) and _NAMED_IN_A_PROMPT.search(f"{error} {body}"))


def is_outage(error: BaseException) -> bool:
    """Say whether an error that a request ended with is the provider's or the network's doing: nothing came back, or not what was promised.

    What a provider refuses (a status from 400 up to 499) may be due to what was asked, so it is none; but for the statuses that say that it
    has no time now. What can't be written as a request (half a character, a number without end, data that are nested too deeply) never
    came there.
    """
    if isinstance(error, UnicodeEncodeError | RecursionError) or type(error) is ValueError:
        return False
    status = getattr(error, "status_code", None)
    return not isinstance(status, int) or not 400 <= status < 500 or status in _NO_TIME


def is_permanent_refusal(error: BaseException) -> bool:
    """Say whether an exception that ended a rollout will end all others too: an SDK's own 401, 403 or 404.

    A client raises these as they are only where they are about the key or the model (see `ProviderClient.get_response`); what is about
    one prompt is a `ModelError`.
    """
    return is_authentication_error(error) or _sdk_status(error) == 404


ASKED_BY_PROGRAM = "asked_by_program"
"""The item of a state that says whether a program wrote the prompts of its episode."""


def ends_only_rollout(error: BaseException) -> bool:
    """Say whether a refusal (403, 404) ends its rollout alone where a program wrote what was asked: it may have provoked it.

    It has no part in the key, so a key that is refused (401) is refused to all.
    """
    return _sdk_status(error) in (403, 404)


def describe_key(config: EndpointClientConfig | None) -> str:
    """Say which key was used, without showing it."""
    if config is None:
        return "that of the SDK client that was given"
    if config.api_key is not None:
        return "the api_key that was given"
    if config.resolve_api_key() == NO_KEY:
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
    # OpenAI, Azure, Groq; Anthropic; GitHub; llama.cpp
    OverlongRule("", code="context_length_exceeded"),
    OverlongRule("", code="prompt_too_long"),
    OverlongRule("", statuses=frozenset({413}), code="request_too_large"),
    OverlongRule("", code="tokens_limit_reached"),
    OverlongRule("", code="exceed_context_size_error"),
    # OpenAI, vLLM, SGLang, OpenRouter, Mistral, Fireworks, DeepSeek, Ollama, LM Studio, MiniMax
    OverlongRule(r"context length|context_length|context window"),
    OverlongRule(r"longer than the (model's|maximum)|maximum (model|prompt) length|max_model_len"),
    OverlongRule(r"reduce the length of the (input |prompt|messages)"),
    OverlongRule(r"messages\[\d{1,9}\]\.content\S{0,200} string too long"),
    # llama.cpp
    OverlongRule(r"(available )?context size( has been)? exceeded|exceeds? the available context size"),
    # Prime, Moonshot
    OverlongRule(r"exceeds? the configured limit|exceeded model"),
    # Anthropic, Bedrock
    OverlongRule(r"prompt_too_long|prompt is too long|input is too long|too many total text bytes"),
    OverlongRule(r"exceeds? (the )?context limit|exceeds? the maximum (number of )?(input )?tokens"),
    OverlongRule(r"(number of )?input tokens exceed|too many input tokens"),
    # Gemini
    OverlongRule(r"input token count"),
    # Together, text-generation-inference
    OverlongRule(r"`?inputs`? (tokens \+ `?max_new_tokens`? must be|must have less than \d+ tokens)"),
    # TensorRT-LLM, GLM, Cohere, Qwen, GitHub
    OverlongRule(r"(prompt|input)( length)?( \(\d+\))? exceeds? (the )?max(imum)? (input )?length"),
    OverlongRule(r"tokens in the prompt cannot exceed|range of input length should be"),
    OverlongRule(r"request body too large for .{1,60} model"),
]
"""How servers say it. Add to it what another gateway says: ``OVERLONG_RULES.append(OverlongRule("too much text"))``."""

_OTHER_LIMITS = re.compile(
    r"\b(image|audio|video|pdf|file|attachment)s?\b[^.]{0,60}\bexceed"
    r"|max_(completion_|output_)?tokens\W{1,3}(must be|should be|has to be|cannot be)"
    r"|supports at most \d+ (completion|output) tokens",
    re.IGNORECASE,
)
"""What says that something else is too large: the answer that was asked for, or a file."""

_ANSWER_TOO_LARGE = re.compile(
    r"max_(?:completion_|output_)?tokens\W.{0,40}too large: (\d{1,18})\b.{0,40}maximum context length is (\d{1,18})\b", re.IGNORECASE
)
"""vLLM's words where prompt and answer do not fit together; with an answer that alone does not fit, the prompt is not to blame."""


def is_overlong_prompt(error: BaseException) -> bool:
    """Say whether an error of an SDK tells that the prompt does not fit into the model's context (see `OVERLONG_RULES`)."""
    status = getattr(error, "status_code", None)
    return isinstance(status, int) and says_overlong(status, str(error), getattr(error, "body", None))


def says_overlong(status: int, text: str, body: Any) -> bool:
    """Say whether a provider tells that the prompt does not fit into the model's context (see `OVERLONG_RULES`).

    Args:
        status: HTTP status.
        text: What is said.
        body: The error's JSON.
    """
    codes = _codes(body)
    if any(rule.code in codes and status in rule.statuses for rule in OVERLONG_RULES if rule.code is not None):
        return True
    try:
        text = f"{text} {body}"
    except RecursionError:  # a body that is nested too deeply to be shown
        pass
    too_large = _ANSWER_TOO_LARGE.search(text)
    if _OTHER_LIMITS.search(text) or (too_large and int(too_large[1]) > int(too_large[2])):
        return False
    patterns = [rule.pattern for rule in OVERLONG_RULES if rule.code is None and status in rule.statuses]
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _codes(body: Any) -> set[Any]:
    """Return what stands as code or type in an error's body, or in the ``error`` inside it."""
    if not isinstance(body, Mapping):
        return set()
    inner = body.get("error")
    fields = [body, inner] if isinstance(inner, Mapping) else [body]
    return {each.get(name) for each in fields for name in ("code", "type") if isinstance(each.get(name), str)}
