"""Tokens as servers tell them: limits and costs are counted by them, so what cannot be a number of tokens is not usage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from vfgym.messages import Usage
from vfgym.output.redaction import excerpt

logger = logging.getLogger(__name__)

MOST_TOKENS = 10**9
"""Tokens that one call may have: a hundred times the longest context that there is."""

TellUnusable: TypeAlias = Callable[[str, Any], None]
"""Is told which field of a server's usage is no number of tokens, and its value."""


def warn_of_unusable(where: str, model: str, field: str, value: Any) -> None:
    """Warn that a server tells something that is no number of tokens.

    Args:
        where: The server, in words.
        model: Name of the model.
        field: What is told.
        value: What it is said to be.
    """
    logger.warning(
        "%s tells %s = %s of an answer of %s, and tokens are integers from 0 to %s: such answers count as if it told none",
        where,
        field,
        excerpt(value, 60),
        model or "its model",
        f"{MOST_TOKENS:,}",
    )


def are_counts(counts: Mapping[str, Any], tell: TellUnusable) -> bool:
    """Say whether all that a server tells are numbers of tokens.

    Args:
        counts: The numbers by their fields; None for one that is not told.
        tell: Is told of the first that is not one.
    """
    for field, value in counts.items():
        if value is not None and not (value.__class__ is int and 0 <= value <= MOST_TOKENS):
            tell(field, value)
            return False
    return True


def read_usage(usage: Any, tell: TellUnusable) -> Usage | None:
    """Return token counts in the spelling of the chat API or the responses API.

    Args:
        usage: What the server tells.
        tell: Is told what cannot be: then there is no usage.

    Returns:
        None where they are not told, or cannot be.
    """
    if not isinstance(usage, Mapping):
        return None
    details = next((each for name in _DETAILS if isinstance(each := usage.get(name), Mapping)), {})
    counts = {name: usage.get(name) for name in _PROMPT + _COMPLETION}
    if not are_counts({**counts, "reasoning_tokens": details.get("reasoning_tokens"), "total_tokens": usage.get("total_tokens")}, tell):
        return None
    prompt, completion = _first(counts, _PROMPT), _first(counts, _COMPLETION)
    if prompt is None or completion is None:
        return None
    total = usage.get("total_tokens")
    return Usage(prompt, details.get("reasoning_tokens") or 0, completion, prompt + completion if total is None else total)


_PROMPT = ("prompt_tokens", "input_tokens")
_COMPLETION = ("completion_tokens", "output_tokens")
_DETAILS = ("completion_tokens_details", "output_tokens_details")


def _first(counts: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((counts[name] for name in names if counts[name] is not None), None)
