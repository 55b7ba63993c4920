"""What each key of a row may hold: whatever reads rows relies on it, so it is checked where they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from vfgym.endings import Ending

_BEYOND_FLOATS = 2**1023
_SHOWN = 60
"""Characters that an error shows of a value."""


def check_kinds(row: Mapping[str, Any]) -> None:
    """Check the keys that a row has. None stands for a value that is not known.

    Raises:
        ValueError: If one holds something of another kind; the text is one line.
    """
    for key, (is_one, expected) in _KINDS.items():
        value = row.get(key)
        if value is not None and not is_one(value):
            raise ValueError(f"its {key} must be {expected}, got {_short(value)}")
    for key in ("prompt", "completion"):
        _check_messages(f"its {key}", row.get(key), may_be_text=True)
    for number, step in enumerate(row.get("trajectory") or ()):
        _check_step(f"step {number} of its trajectory", step)


def _check_step(what: str, step: Mapping[str, Any]) -> None:
    shown = step.get("prompt")
    _check_messages(f"{what}: the prompt", shown.get("new") if isinstance(shown, dict) else shown, may_be_text=False)
    _check_messages(f"{what}: the completion", step.get("completion"), may_be_text=False)
    for key in ("extras", "response", "tokens"):
        if step.get(key) is not None and not isinstance(step[key], dict):
            raise ValueError(f"{what}: {key} must be an object, got {_short(step[key])}")


def _check_messages(what: str, messages: Any, *, may_be_text: bool) -> None:
    if messages is None or (may_be_text and isinstance(messages, str)):
        return
    if not isinstance(messages, list):
        raise ValueError(f"{what} must be a list of messages, got {_short(messages)}")
    for message in messages:
        if not isinstance(message, dict):
            raise ValueError(f"{what} must be a list of messages, each an object; got {_short(message)}")
        calls = message.get("tool_calls")
        if not (calls is None or (isinstance(calls, list) and all(isinstance(call, dict | str) for call in calls))):
            raise ValueError(f"{what} has a message whose tool_calls are not a list of calls: {_short(calls)}")


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_integer(value: Any) -> bool:
    return type(value) is int


def is_number(value: Any) -> bool:
    """Say whether a value is a number that can be reckoned with: an integer beyond all floats is not."""
    return type(value) is float or (type(value) is int and abs(value) < _BEYOND_FLOATS)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _is_trajectory(value: Any) -> bool:
    return _is_list_of_objects(value) and all("prompt" in step and "completion" in step for step in value)


def _are_tools(value: Any) -> bool:
    return _is_list_of_objects(value) and all(_is_text(tool.get("name") or (tool.get("function") or {}).get("name")) for tool in value)


def _are_numbers(value: Any) -> bool:
    return _is_object(value) and all(map(is_number, value.values()))


def _are_texts(value: Any) -> bool:
    return _is_object(value) and all(map(_is_text, value.values()))


def _is_error(value: Any) -> bool:
    return _is_text(value) or (_is_object(value) and _is_text(value.get("error")))


def _is_spending(value: Any) -> bool:
    if not (_is_object(value) and value.keys() >= {"requests", "input_tokens", "output_tokens", "cost"}):
        return False
    cost = value["cost"]
    return all(is_number(value[name]) for name in ("requests", "input_tokens", "output_tokens")) and (cost is None or is_number(cost))


def _is_ending(value: Any) -> bool:
    return value in {str(each) for each in Ending} if _is_text(value) else False


_KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("metrics", "timing", "info"), (_is_object, "an object")),
    **dict.fromkeys(("token_usage", "human"), (_are_numbers, "an object of numbers")),
    **dict.fromkeys(("metrics_errors", "cleanup_errors"), (_are_texts, "an object of texts")),
    **dict.fromkeys(("stop_condition", "fingerprint", "env_id", "error_chain", "long_error_chain", "task"), (_is_text, "text")),
    **dict.fromkeys(("rollout", "seed"), (_is_integer, "an integer")),
    "ending": (_is_ending, f"one of {', '.join(Ending)}"),
    "error": (_is_error, "text, or an object with the text `error`"),
    "spent": (_is_spending, "an object with the numbers requests, input_tokens, output_tokens and cost"),
    "tool_defs": (_are_tools, "a list of tools, each with a name"),
    "trajectory": (_is_trajectory, "a list of steps, each with prompt and completion"),
}
"""What says of a value whether it may stand there, and what that is called."""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
