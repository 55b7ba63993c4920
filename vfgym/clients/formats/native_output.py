"""What an answer looked like at its provider, kept on the assistant message where the API wants it back unchanged.

The field is ``native_output``, ``{"api": ..., "items": [...]}``: plain data, so it is saved and pickled like the rest of the
message. It is sent back only to the API that it came from, and only while the message still says the same: a message that was
edited is converted from what it says now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from vfgym.messages import Message

Items: TypeAlias = "Sequence[Mapping[str, Any]]"

FIELD = "native_output"
_SAID = ("content", "tool_calls", "reasoning_content", "thinking_blocks")


def wire_form(value: Any) -> Any:
    """Return an SDK's response object as the dict that came over the wire; anything else as it is.

    Fields that the provider left out or set to null are left out: not every API takes its own nulls back.
    """
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True, warnings=False) if callable(dump) else value


def native_output(api: str, items: Items) -> dict[str, Any]:
    """Return the value of the field."""
    return {"api": api, "items": list(items)}


def replayable(message: Message, api: str, read: Callable[[Items], Mapping[str, Any]]) -> Items | None:
    """Return the items that a message keeps for an API, or None where there are none or the message says something else now.

    Args:
        message: An assistant message.
        api: The API that is asked.
        read: Makes a message's fields of items, as when the answer was read.
    """
    kept = message.get(FIELD)
    items = kept.get("items") if isinstance(kept, Mapping) and kept.get("api") == api else None
    if not isinstance(items, list):
        return None
    fields = read(items)
    return items if all((fields.get(name) or None) == (message.get(name) or None) for name in _SAID) else None
