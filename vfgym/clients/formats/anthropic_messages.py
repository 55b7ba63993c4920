"""Conversations and tools as Anthropic's Messages API takes them.

The API knows two speakers. System messages become the parameter ``system``, tool results are said by the user, and what one
speaker says in a row is one turn. Blocks without visible text are left out, since the API refuses them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, NoReturn, TypeAlias
from urllib.parse import unquote_to_bytes

from vfgym.bounded_json import parse_json
from vfgym.clients.formats.native_output import replayable
from vfgym.errors import InvalidMessage
from vfgym.messages import Message, ToolCall
from vfgym.messages.chat import convert_all
from vfgym.tools import Tool

API = "anthropic_messages"

Block: TypeAlias = "Mapping[str, Any]"
"""One block of a turn's content."""

UNREADABLE_ARGUMENTS = "_raw"
"""Where the arguments of a call stand that are not a JSON object, as text: ``input`` has to be an object."""

_UNFIT_FOR_ID = re.compile(r"[^a-zA-Z0-9_-]")


class AnthropicTurn(NamedTuple):
    """What one message says, and who says it (``system``, ``user`` or ``assistant``)."""

    role: str
    blocks: Sequence[Block]
    native: Mapping[str, Any]
    """The turn as a message of the API, where it stands alone."""


def native_prompt(messages: Iterable[Message]) -> tuple[list[Mapping[str, Any]], dict[str, Any]]:
    """Return the turns of a conversation, and ``system`` where it has system messages.

    Only messages that were not converted before are converted.

    Raises:
        InvalidMessage: If a message has something in it that the API does not take.
    """
    turns = convert_all(messages, _turn)
    native: list[Mapping[str, Any]] = []
    for role, run in groupby((turn for turn in turns if turn.blocks and turn.role != "system"), key=_role):
        first, *others = run
        blocks = [block for turn in (first, *others) for block in turn.blocks]
        native.append({"role": role, "content": blocks} if others else first.native)
    system = _system([block for turn in turns if turn.role == "system" for block in turn.blocks])
    return native, {"system": system} if system else {}


def native_tool(tool: Tool) -> dict[str, Any]:
    """Return a tool as the API takes it. Its schema always says that the arguments are an object."""
    native: dict[str, Any] = {"name": tool.name, "description": tool.description, "input_schema": {"type": "object", **tool.parameters}}
    if tool.strict is not None:
        native["strict"] = tool.strict
    return native


def read_blocks(blocks: Sequence[Block]) -> dict[str, Any]:
    """Return what the blocks of an answer say as the fields of an assistant message.

    ``content`` is the text in one piece (empty where there is none), ``reasoning_content`` the readable thinking, and
    ``thinking_blocks`` all thinking as it came, with signatures and what was redacted.
    """
    fields: dict[str, Any] = {"content": "".join(block["text"] for block in blocks if block["type"] == "text")}
    thinking = [block for block in blocks if block["type"] in ("thinking", "redacted_thinking")]
    if thinking:
        fields["thinking_blocks"] = thinking
        fields["reasoning_content"] = "".join(block.get("thinking", "") for block in thinking) or None
    calls = [
        ToolCall(block["id"], block["name"], json.dumps(block.get("input") or {}, ensure_ascii=False))
        for block in blocks
        if block["type"] == "tool_use"
    ]
    if calls:
        fields["tool_calls"] = calls
    return fields


def _role(turn: AnthropicTurn) -> str:
    return turn.role


def _system(blocks: list[Block]) -> str | list[Block]:
    # A block may carry more than text, such as a mark for the prompt cache.
    return blocks if any(len(block) > 2 for block in blocks) else "\n\n".join(block["text"] for block in blocks)


def _turn(message: Message) -> AnthropicTurn:
    role = message["role"]
    if role == "assistant":
        return _make_turn("assistant", replayable(message, API, read_blocks) or _assistant_blocks(message))
    if role == "tool":
        return _make_turn("user", [_tool_result(message)])
    if role in ("system", "developer"):
        blocks = _content_blocks(message)
        for block in blocks:
            if block["type"] != "text":
                raise InvalidMessage(f"a system prompt of Anthropic's API is text, got a part of type {block['type']!r}")
        return _make_turn("system", blocks)
    return _make_turn("user", _content_blocks(message))


def _make_turn(role: str, blocks: Sequence[Block]) -> AnthropicTurn:
    lone_text = len(blocks) == 1 and blocks[0].keys() == {"type", "text"}
    return AnthropicTurn(role, blocks, {"role": role, "content": blocks[0]["text"] if lone_text else blocks})


def _assistant_blocks(message: Message) -> list[Block]:
    """Return thinking, then text, then tool calls: the API wants a turn that has thinking to begin with it."""
    blocks = [block for block in message.get("thinking_blocks") or () if block.get("type") == "redacted_thinking" or block.get("signature")]
    blocks.extend(_content_blocks(message))
    for call in message.get("tool_calls") or ():
        blocks.append({"type": "tool_use", "id": _identifier(call["id"]), "name": call.name, "input": _input(call.arguments)})
    return blocks


def _tool_result(message: Message) -> Block:
    content = message["content"]
    block = {
        "type": "tool_result",
        "tool_use_id": _identifier(message["tool_call_id"]),
        "content": content if isinstance(content, str) else _content_blocks(message),
    }
    if isinstance(message.get("is_error"), bool):
        block["is_error"] = message["is_error"]
    return block


def _identifier(call_id: str) -> str:
    """Return the id of a tool call in the letters that the API takes; other providers use more (``functions.add:0``)."""
    return _UNFIT_FOR_ID.sub("_", call_id)


def _input(arguments: str) -> Any:
    try:
        read = parse_json(arguments or "{}", parse_constant=_refuse_constant)
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {UNREADABLE_ARGUMENTS: arguments}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _content_blocks(message: Message) -> list[Block]:
    content = message["content"]
    if content is None or isinstance(content, str):
        return [{"type": "text", "text": content}] if content and not content.isspace() else []
    blocks = [_block(part, message["role"]) for part in content]
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]


def _block(part: Mapping[str, Any], role: str) -> Block:
    if part["type"] == "image_url":
        return {"type": "image", "source": _image_source(part["image_url"].get("url"))}
    if part["type"] == "input_audio":
        raise InvalidMessage(f"Anthropic's Messages API takes no audio, and a {role} message has a part of type 'input_audio'")
    return part


def _image_source(url: Any) -> dict[str, str]:
    if isinstance(url, str) and url.startswith(("https://", "http://")):
        return {"type": "url", "url": url}
    if not isinstance(url, str) or not url.startswith("data:image/") or "," not in url:
        raise InvalidMessage(f"the URL of an image must begin with https:// or be a data URL (data:image/png;base64,...), got {url!r:.100}")
    described, _, data = url.removeprefix("data:").partition(",")
    media_type, *options = described.split(";")
    if "base64" not in options:
        data = base64.b64encode(unquote_to_bytes(data)).decode("ascii")
    return {"type": "base64", "media_type": media_type, "data": data}
