"""Conversations as people read them in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vfgym.errors import InvalidMessage
from vfgym.messages import Message, as_message
from vfgym.wrappers.images import frame_of


def readable(messages: Sequence[Message]) -> list[Message]:
    """Return messages with text alone: an image is told by its size, "[image 96x96]"."""
    return [
        as_message({**message, "content": "\n\n".join(map(_text, message["content"]))}) if isinstance(message["content"], list) else message
        for message in messages
    ]


def _text(part: dict[str, Any]) -> str:
    if "text" in part:
        return str(part["text"])
    try:
        height, width = frame_of(part).shape[:2]
    except InvalidMessage:  # an image elsewhere, of another kind, or no image
        return f"[{part['type'].removesuffix('_url')}]"
    return f"[image {width}x{height}]"
