"""A toy tokenizer and chat template: small, but with the properties that token-level clients rely on.

A token is a byte of UTF-8, or one of a few special tokens. So ``detokenize(tokenize(text)) == text`` for any text. A rendered
conversation is a prefix of each longer one, and the prompt followed by the ids of an answer is the rendering of the
conversation with that answer. Text never makes a special token. A rendering can be read back (`parse_prompt`).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Message, ToolCall, as_message

SPECIAL_TOKENS = (
    "<|system|>",
    "<|developer|>",
    "<|user|>",
    "<|assistant|>",
    "<|tool|>",
    "<|text|>",
    "<|end|>",
    "<|think|>",
    "<|/think|>",
    "<|call|>",
    "<|arguments|>",
    "<|part|>",
    "<|/part|>",
    "<|tools|>",
)
"""The special tokens; their ids follow the 256 bytes."""

FIRST_SPECIAL = 256
VOCABULARY_SIZE = FIRST_SPECIAL + len(SPECIAL_TOKENS)
IDS = {name.strip("<|>"): FIRST_SPECIAL + index for index, name in enumerate(SPECIAL_TOKENS)}
"""Ids of the special tokens by their bare names."""

ROLES = {IDS[role]: role for role in ("system", "developer", "user", "assistant", "tool", "text")}
END = IDS["end"]

_THINK, _THINK_END = IDS["think"], IDS["/think"]
_CALL, _ARGUMENTS = IDS["call"], IDS["arguments"]
_PART, _PART_END = IDS["part"], IDS["/part"]

Pieces: TypeAlias = "Iterable[str | int]"
"""A rendering before it is tokenized: texts, and ids of special tokens."""


def tokenize(text: str) -> list[int]:
    """Return the token ids of a text.

    >>> tokenize("é!")
    [195, 169, 33]
    """
    return list(_encode(text))


def detokenize(ids: Sequence[int]) -> str:
    """Return the text of token ids; special tokens become their names, and bytes that are not UTF-8 become U+FFFD.

    >>> detokenize([104, 105, END])
    'hi<|end|>'

    Raises:
        ConfigurationError: If an id is not in the vocabulary.
    """
    texts, start = [], 0
    for position, token in enumerate(ids):
        check_id(token)
        if token >= FIRST_SPECIAL:
            texts += [_decode(ids[start:position]), SPECIAL_TOKENS[token - FIRST_SPECIAL]]
            start = position + 1
    return "".join([*texts, _decode(ids[start:])])


def check_id(token: Any) -> None:
    """Refuse what is not a token id.

    Raises:
        ConfigurationError: If it is none.
    """
    if not isinstance(token, int) or isinstance(token, bool) or not 0 <= token < VOCABULARY_SIZE:
        raise ConfigurationError(f"a token id is an integer from 0 to {VOCABULARY_SIZE - 1}, got {token!r}")


def count(pieces: Pieces) -> int:
    """Return how many tokens a rendering has."""
    total = 0
    for piece in pieces:
        if piece.__class__ is int:
            total += 1
        else:
            total += len(piece) if piece.isascii() else len(_encode(piece))  # type: ignore[union-attr, arg-type]
    return total


def token_ids(pieces: Pieces) -> list[int]:
    """Return the token ids of a rendering."""
    ids: list[int] = []
    for piece in pieces:
        if isinstance(piece, int):
            ids.append(piece)
        else:
            ids.extend(_encode(piece))
    return ids


def prompt_pieces(messages: Iterable[Message], tools_text: str = "", *, add_generation_prompt: bool = True) -> Iterator[str | int]:
    """Render a conversation.

    Args:
        messages: The conversation.
        tools_text: The tools that are offered, as text; empty for none.
        add_generation_prompt: Whether the rendering ends with the beginning of an assistant message.
    """
    if tools_text:
        yield from (IDS["tools"], tools_text, END)
    for message in messages:
        yield IDS[message["role"]]
        if isinstance(message, AssistantMessage):
            calls = message.tool_calls or ()
            yield from answer_pieces(message.reasoning_content, message.content, calls)
        else:
            yield from _content_pieces(message["content"])
        yield END
    if add_generation_prompt:
        yield IDS["assistant"]


def answer_pieces(reasoning: str | None, content: Any, calls: Iterable[ToolCall]) -> Iterator[str | int]:
    """Render what stands in an assistant message, without the token that ends it."""
    if reasoning:
        yield from (_THINK, reasoning, _THINK_END)
    yield from _content_pieces(content)
    for call in calls:
        yield from (_CALL, call.name, _ARGUMENTS, call.arguments)


def _content_pieces(content: Any) -> Iterator[str | int]:
    if isinstance(content, str):
        yield content
        return
    for part in content or ():
        if part["type"] == "text":
            yield part["text"]
        else:
            yield from (_PART, json.dumps(part, sort_keys=True), _PART_END)


def shorten(ids: list[int], limit: int) -> list[int]:
    """Return at most `limit` tokens, and none that is a part of a character only."""
    while 0 < limit < len(ids) and 0x80 <= ids[limit] < 0xC0:
        limit -= 1
    return ids[:limit]


def parse_answer(ids: Sequence[int]) -> tuple[str | None, str, list[tuple[str, str]]]:
    """Read the ids of an answer back, which may end anywhere: its reasoning, its text, and names and arguments of its calls.

    A call whose name is not complete is left out.
    """
    reasoning: str | None = None
    texts: list[str] = []
    calls: list[tuple[str, str]] = []
    name = ""
    for marker, text in _segments(ids):
        if marker == _THINK:
            reasoning = text
        elif marker == _CALL:
            name = text
        elif marker == _ARGUMENTS:
            calls.append((name, text))
        elif marker in (None, _THINK_END):
            texts.append(text)
    return reasoning, "".join(texts), calls


def parse_prompt(ids: Sequence[int]) -> tuple[list[Message], str]:
    """Read a rendered conversation back, and the text of the tools in it.

    Ids that begin with no role are one message of plain text. The identifiers of tool calls are not rendered: they come back as
    ``call_0``, ``call_1``, and so on, each answered by the next tool message.

    Raises:
        ConfigurationError: If an id is not in the vocabulary, or the special tokens make no conversation.
        ValueError: If what stands between the tokens of a part is not JSON, or not a part of a message.
    """
    for token in ids:
        check_id(token)
    if ids and ids[0] < FIRST_SPECIAL:
        return [as_message({"role": "text", "content": detokenize(ids)})], ""
    messages: list[Message] = []
    tools_text = ""
    call_numbers, answer_numbers = itertools.count(), itertools.count()
    for opening, body, is_ended in _turns(ids):
        role = ROLES.get(opening)
        is_generation_prompt = role == "assistant" and not (is_ended or body)
        if opening == IDS["tools"]:
            tools_text = _decode(body)
        elif role is not None and is_ended:
            messages.append(_parse_message(role, body, call_numbers, answer_numbers))
        elif not is_generation_prompt:
            raise ConfigurationError(f"the token ids make no conversation: {detokenize([opening, *body[:40]])!r} begins no message")
    return messages, tools_text


def _parse_message(role: str, body: Sequence[int], call_numbers: Iterator[int], answer_numbers: Iterator[int]) -> Message:
    if role == "tool":
        return as_message({"role": role, "content": _content(body), "tool_call_id": f"call_{next(answer_numbers)}"})
    if role != "assistant":
        return as_message({"role": role, "content": _content(body)})
    reasoning, text, parsed = parse_answer(body)
    calls = [ToolCall(f"call_{number}", *call) for call, number in zip(parsed, call_numbers, strict=False)]
    return AssistantMessage(text or None, reasoning_content=reasoning, tool_calls=calls or None)


def _turns(ids: Sequence[int]) -> Iterator[tuple[int, Sequence[int], bool]]:
    """Split a rendering into its messages: the first token, the others without the end, and whether the end was there."""
    start = 0
    for position, token in enumerate(ids):
        if position > start and (token in ROLES or token == IDS["tools"]):
            before = detokenize(ids[max(start, position - 40) : position + 1])
            raise ConfigurationError(f"the token ids make no conversation: <|end|> is missing at token {position}, after {before!r}")
        if token == END:
            if position == start:
                raise ConfigurationError(f"the token ids make no conversation: token {position} ends a message that has not begun")
            yield ids[start], ids[start + 1 : position], True
            start = position + 1
    if start < len(ids):
        yield ids[start], ids[start + 1 :], False


def _segments(ids: Sequence[int]) -> Iterator[tuple[int | None, str]]:
    """Split ids at the special tokens: each with the text that follows it."""
    marker: int | None = None
    start = 0
    for position, token in enumerate(ids):
        if token >= FIRST_SPECIAL:
            if marker is not None or position > start:
                yield marker, _decode(ids[start:position])
            marker, start = token, position + 1
    if marker is not None or start < len(ids):
        yield marker, _decode(ids[start:])


def _content(ids: Sequence[int]) -> Any:
    segments = [(marker, text) for marker, text in _segments(ids) if text or marker == _PART]
    if all(marker != _PART for marker, _ in segments):
        return "".join(text for _, text in segments)
    return [parse_json(text) if marker == _PART else {"type": "text", "text": text} for marker, text in segments]


def _encode(text: str) -> bytes:
    # JSON can name half of a surrogate pair, which UTF-8 has no bytes for.
    return text.encode("utf-8", "surrogatepass")


def _decode(ids: Sequence[int]) -> str:
    data = bytes(ids)
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
