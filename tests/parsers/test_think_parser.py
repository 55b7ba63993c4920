"""Reasoning before the answer: always there (`ThinkParser`), or perhaps (`MaybeThinkParser`)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.parsers import MaybeThinkParser, ThinkParser, extract_boxed_answer


@pytest.mark.parametrize(
    ("text", "always", "maybe"),
    [
        *[("<think>why</think> 42 ", "42", "42"), ("why</think>42", "42", "42"), ("<think>a</think>b</think>c", "c", "c")],
        *[("<think>why</think>", "", ""), (" 42 ", "", "42"), ("<think>cut off", "", "<think>cut off"), ("", "", "")],
    ],
)
def test_the_answer_follows_the_last_closing_tag(text: str, always: str, maybe: str) -> None:
    """Without a closing tag `ThinkParser` finds nothing and `MaybeThinkParser` keeps the text."""
    assert (ThinkParser().parse(text), MaybeThinkParser().parse(text)) == (always, maybe)
    messages = [{"role": "assistant", "content": text}]
    assert (ThinkParser().parse_answer(messages), MaybeThinkParser().parse_answer(messages)) == (always, maybe)


@pytest.mark.parametrize("parser", [ThinkParser(extract_boxed_answer), MaybeThinkParser(extract_fn=extract_boxed_answer)])
def test_extract_fn_is_applied_after_the_reasoning(parser: ThinkParser | MaybeThinkParser) -> None:
    """A box in the reasoning is not an answer."""
    assert parser.parse(r"<think>\boxed{1}</think> \boxed{2}") == "2"
    assert parser.parse_answer(r"<think>\boxed{1}</think> two") == "two"


def test_no_assistant_message_gives_no_answer() -> None:
    """A completion without the model is not an empty answer; content of None is."""
    for parser in (ThinkParser(), MaybeThinkParser()):
        assert parser.parse_answer([{"role": "user", "content": "</think>42"}]) is None
        assert parser.parse_answer([{"role": "assistant", "content": None}]) == ""


@pytest.mark.parametrize(
    ("text", "score"),
    [
        *[("<think>why</think>42", 1.0), (" \n<think>why</think>\n42", 1.0), ("<think></think> ", 1.0), ("<think>why</think>", 0.0)],
        *[("So <think>why</think>42", 0.0), ("<think>a</think>b<think>c</think>d", 0.0), ("<think><think>a</think>b", 0.0)],
        *[("<think>a</think>b</think>c", 0.0), ("<think>cut off", 0.0), ("why</think>42", 0.0), ("42", 0.0), ("", 0.0), (None, 0.0)],
    ],
)
def test_format_reward_of_one_message(text: Any, score: float) -> None:
    """One pair of tags, at the start, with something after it, even whitespace."""
    assert ThinkParser().get_format_reward_func()([{"role": "assistant", "content": text}], state={}) == score


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ([{"role": "assistant", "content": "<think>a</think>b"}, {"role": "assistant", "content": "b"}], 0.5),
        ([{"role": "user", "content": "<think>a</think>b"}], 0.0),
        ([], 0.0),
        ("<think>a</think>b", 1.0),
    ],
)
def test_format_reward_is_the_mean_over_assistant_messages(completion: Any, score: float) -> None:
    """Only assistant messages count; without one the reward is 0.0."""
    assert ThinkParser().get_format_reward_func()(completion) == score


@pytest.mark.parametrize("text", ["", "42", "<think>cut off", "<think>a</think>b"])
def test_thinking_is_optional_in_the_format_of_maybe_think_parser(text: str) -> None:
    """The format reward of `MaybeThinkParser` is always 1.0."""
    assert MaybeThinkParser().get_format_reward_func()(text) == 1.0


@pytest.mark.parametrize(("parser_class", "warnings"), [(ThinkParser, 1), (MaybeThinkParser, 0)])
def test_only_think_parser_warns(parser_class: type[Any], warnings: int, caplog: pytest.LogCaptureFixture) -> None:
    """`ThinkParser` logs a warning: many APIs take the reasoning out of the text."""
    with caplog.at_level(logging.WARNING):
        parser_class()
    assert len(caplog.records) == warnings


@given(reasoning=st.text(), answer=st.text().filter(lambda text: "</think>" not in text))
def test_both_agree_on_text_with_reasoning(reasoning: str, answer: str) -> None:
    """Whatever the reasoning holds, the answer is what follows it, stripped."""
    text = f"<think>{reasoning}</think>{answer}"
    assert ThinkParser().parse(text) == MaybeThinkParser().parse(text) == answer.strip()
