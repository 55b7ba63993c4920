"""Only JSON passes that every provider's JSON can say again."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym.interception.strict_json import MOST_LEVELS, check_arguments, read_json


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [0, 1.5, null, true, ""]}', {"a": [0, 1.5, None, True, ""]}),
        (b"\xef\xbb\xbf1", 1),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        ('"é"'.encode(), "é"),
        (b"1e308", 1e308),
        (b"[" * MOST_LEVELS + b"]" * MOST_LEVELS, None),
    ],
)
def test_what_is_json_for_everybody(data: bytes, value: Any) -> None:
    read = read_json(data)
    assert value is None or read == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e309",
        b"-1e999",
        b'"\\ud83d"',
        b'{"\\uD83D": 1}',
        b'"\xff"',
        b"[" * (MOST_LEVELS + 1) + b"]" * (MOST_LEVELS + 1),
    ],
)
def test_what_is_not(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (also what Python itself says)
        read_json(data)


@pytest.mark.parametrize("text", ["{}", '{"a": 0}', "", '{"a": ', "no json"])
def test_arguments_pass_that_are_json_for_all_or_for_nobody(text: str) -> None:
    check_arguments(text)


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud83d"}', "[" * 200 + "]" * 200])
def test_arguments_that_only_python_reads(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        check_arguments(text)
