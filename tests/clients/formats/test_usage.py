"""What servers tell of tokens: what cannot be a number of tokens is not usage."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest

from vfgym import Usage
from vfgym.clients.formats.usage import MOST_TOKENS, are_counts, read_usage, warn_of_unusable

NO_COUNTS = [-1, -39_600, MOST_TOKENS + 1, 2**63, 10**400, True, False, math.nan, math.inf, "7", 7.0, [7], {}]
"""What is no number of tokens."""


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {"prompt_tokens": 1, "completion_tokens": 9, "total_tokens": 11, "completion_tokens_details": {"reasoning_tokens": 4}},
            Usage(1, 4, 9, 11),
        ),
        ({"input_tokens": 1, "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}}, Usage(1, 1, 2, 3)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "input_tokens": 5, "output_tokens": 5}, Usage(0, 0, 0, 0)),
        ({"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 0}, Usage(5, 0, 6, 0)),
        ({"prompt_tokens": MOST_TOKENS, "completion_tokens": 1, "total_tokens": None}, Usage(MOST_TOKENS, 0, 1, MOST_TOKENS + 1)),
        ({"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {"reasoning_tokens": None}}, Usage(1, 0, 2, 3)),
        ({"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": None}, Usage(1, 0, 2, 3)),
        ({"prompt_tokens": 1}, None),
        ({"completion_tokens": 1}, None),
        ({}, None),
        (None, None),
        ([1, 2], None),
    ],
)
def test_both_spellings_are_read(usage: Any, expected: Usage | None) -> None:
    told: list[Any] = []
    assert read_usage(usage, lambda *what: told.append(what)) == expected
    assert told == []


FIELDS = ("prompt_tokens", "input_tokens", "completion_tokens", "output_tokens", "total_tokens", "reasoning_tokens")


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", NO_COUNTS, ids=lambda value: f"{value!r:.20}")
def test_what_is_no_number_of_tokens_is_not_usage_and_told(field: str, value: Any) -> None:
    told: list[Any] = []
    usage: dict[str, Any] = {"prompt_tokens": 1, "completion_tokens": 2, "completion_tokens_details": {}}
    (usage["completion_tokens_details"] if field == "reasoning_tokens" else usage)[field] = value
    assert read_usage(usage, lambda *what: told.append(what)) is None
    assert [name for name, _ in told] == [field]
    assert told[0][1] is value


def test_the_first_that_is_none_is_told() -> None:
    told: list[Any] = []
    assert are_counts({"a": 0, "b": None, "c": MOST_TOKENS}, lambda *what: told.append(what))
    assert not are_counts({"a": 0, "b": -1, "c": -2}, lambda *what: told.append(what))
    assert told == [("b", -1)]


@pytest.mark.parametrize(("model", "named"), [("m", "of m,"), ("", "of its model,")])
def test_a_warning_names_server_model_field_and_value(model: str, named: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        warn_of_unusable("the provider", model, "total_tokens", -5)
    assert caplog.text.count("the provider tells total_tokens = -5 of an answer") == 1
    assert named in caplog.text
