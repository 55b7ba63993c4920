"""What a policy answers, as a reply, and what a client is told instead of one."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.errors import InvalidMessage
from vfgym.messages import AssistantMessage, ToolCall, UserMessage
from vfgym.model_server.exchange import Reply, RequestRefused, as_reply

CALL = ToolCall("c1", "add", "{}")
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("", Reply("")),
        ("hi", Reply("hi")),
        ({"content": "hi"}, Reply("hi", [])),
        ({"content": None, "tool_calls": [CALL]}, Reply(None, [CALL])),
        (AssistantMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), Reply("a b", [])),
        (
            AssistantMessage("hi", reasoning_content="hm", thinking_blocks=[{"type": "thinking"}]),
            Reply("hi", [], "hm", thinking_blocks=[{"type": "thinking"}]),
        ),
    ],
)
def test_every_kind_of_answer(answer: Any, reply: Reply) -> None:
    assert as_reply(answer) == reply


def test_a_reply_is_taken_as_it_is() -> None:
    reply = Reply("hi")
    assert as_reply(reply) is reply


@pytest.mark.parametrize(
    "wrong", [None, 7, ["hi"], UserMessage("hi"), {"role": "user", "content": "hi"}, AssistantMessage([IMAGE]), {"content": 7}]
)
def test_anything_else_is_no_answer(wrong: Any) -> None:
    with pytest.raises(InvalidMessage):
        as_reply(wrong)


def test_a_refusal_says_everything_or_only_its_status() -> None:
    bare = RequestRefused(418, "no")
    assert (str(bare), bare.status, bare.message, bare.code, bare.param, bare.kind, bare.headers) == ("no", 418, "no", None, None, None, {})
    headers = {"A": "1"}
    whole = RequestRefused(400, "no", code="c", param="p", kind="k", headers=headers)
    headers.clear()
    assert (whole.code, whole.param, whole.kind, whole.headers) == ("c", "p", "k", {"A": "1"})
