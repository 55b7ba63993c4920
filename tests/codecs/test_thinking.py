"""Thinking is dropped in every format, and has to end before the answer does."""

from __future__ import annotations

import pytest

from vfgym.codecs.thinking import MARKUP, drop_thinking

NAMES = ["think", "thinking", "reasoning", "thought", "thoughts", "reflection", "analysis", "scratchpad", "seed:think"]


@pytest.mark.parametrize("name", NAMES)
def test_every_tag_of_thinking_is_dropped_whatever_its_case(name: str) -> None:
    assert drop_thinking(f"a<{name}>b</{name.upper()}>c") == ("ac", True)
    assert drop_thinking(f"a</{name}>c<{name}>d") == ("c", False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *(("", ("", True)), ("5 < 6", ("5 < 6", True)), ("<thinker>a</thinker>", ("<thinker>a</thinker>", True))),
        *(("a<think>b</think>c<think>d</think>e", ("ace", True)), ("a<think>b<think>c</think>d", ("ad", True))),
        *(("a</think>b</think>c", ("c", True)), ("a<think>b</think>c</think>d", ("d", True))),
        *(("a\u25c1think\u25b7b\u25c1/think\u25b7c", ("ac", True)), ("[THINK]b[/THINK]c", ("c", True))),
        ("<|channel|>analysis<|message|>b<|end|><|start|>assistant<|channel|>final<|message|>c", ("c", True)),
        *(("<|channel|>analysis<|message|>b", ("", False)), ("<|channel|>final<|message|>c", ("c", True))),
    ],
)
def test_what_is_said_beside_thinking_is_kept(text: str, said: tuple[str, bool]) -> None:
    assert drop_thinking(text) == said


@pytest.mark.parametrize(
    "text",
    [
        *(f"<{name}" for name in NAMES),
        "<|x",
        "</action",
        "< answer",
        "[THINK]",
        "[/move]",
        "\u25c1",
        "<invoke",
        "<a:parameter",
        "<arg_",
        "[ARGS]",
    ],
)
def test_markup_is_known_where_it_begins(text: str) -> None:
    assert MARKUP.search(f"say {text}")
    assert not MARKUP.search("5 < 6 [1] <b>")
