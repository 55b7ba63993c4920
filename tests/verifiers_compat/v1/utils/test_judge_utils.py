"""What reward functions that ask a judge need. Most values are those that verifiers 0.1.14 gives."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.types import AssistantMessage
from verifiers_compat.v1.utils.judge_utils import clamp_float, completion_text, parse_judge_json, truncate_command_record, truncate_text

SAID = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("hi", "hi"),
        (None, ""),
        ([], ""),
        (3, "3"),
        ([SAID, {"role": "user", "content": "u"}, {"role": "assistant", "content": "b"}], "b"),
        ([SAID, {"role": "tool", "content": "t"}], "a"),
        ([{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}], ""),
        # Where verifiers gives the text of a Python object, the text of the message:
        (SAID, "a"),
        ((SAID,), "a"),
        ([AssistantMessage(content="m")], "m"),
        ([{"role": "assistant", "content": [{"type": "text", "text": "p"}, {"type": "image_url"}, {"type": "text", "text": "q"}]}], "p q"),
        ([{"role": "user", "content": "u"}], ""),
    ],
)
def test_the_text_of_a_completion(completion: Any, text: str) -> None:
    assert completion_text(completion) == text


@pytest.mark.parametrize(
    "text",
    ['{"a": {"b": "}"}}', 'Sure: {"a": {"b": "}"}} is it', '```json\n{"a": {"b": "}"}}\n```', 'so ```\n{"a": {"b": "}"}}\n``` there'],
)
def test_the_verdict_of_a_judge_is_found_in_what_it_wrote(text: str) -> None:
    assert parse_judge_json(text) == {"a": {"b": "}"}}


@pytest.mark.parametrize("text", ["no", "", "[1, 2]", '"x"', '{"a": 1} {"b": 2}', "{a: 1}", '{"score": 1,}'])
def test_a_judge_without_a_verdict_scores_nothing(text: str) -> None:
    assert parse_judge_json(text) == {"score": 0.0, "reason": "judge did not return JSON", "raw": text}


@pytest.mark.parametrize(
    ("value", "number"),
    [(0.5, 0.5), (-1, 0.0), (2, 1.0), ("0.7", 0.7), ("x", 0.0), (None, 0.0), (True, 0.0), ([1], 0.0), (float("inf"), 1.0)],
)
def test_numbers_are_kept_between_0_and_1(value: Any, number: float) -> None:
    assert clamp_float(value) == number


def test_a_score_that_is_not_a_number_is_the_lowest() -> None:
    """In verifiers it is the highest."""
    assert clamp_float(float("nan")) == 0.0


def test_long_texts_are_cut_and_marked() -> None:
    assert truncate_text("abcdef", 4) == "abcd\n...<truncated>"
    assert (truncate_text("abc", 3), len(truncate_text("x" * 6001))) == ("abc", 6015)
    record = truncate_command_record({"stdout": "o" * 7000, "stderr": None, "command": "c" * 3000, "returncode": 1})
    assert {key: len(value) for key, value in record.items() if key != "returncode"} == {"stdout": 6015, "stderr": 0, "command": 2015}
    assert truncate_command_record({"stdout": [], "returncode": 0}) == {"command": "", "stdout": "", "stderr": "", "returncode": 0}
    assert truncate_command_record("text") == "text"
