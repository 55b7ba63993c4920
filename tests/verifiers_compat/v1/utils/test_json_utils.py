"""The arguments of a tool call, as data."""

from __future__ import annotations

import pytest

from verifiers_compat.v1.utils.json_utils import json_args


def test_the_arguments_of_a_tool_call() -> None:
    assert (json_args(' {"a": 1} '), json_args(""), json_args(None)) == ({"a": 1}, {}, {})
    for wrong in ("[1]", "null", "x", '{"a": 1} x'):
        with pytest.raises(ValueError):  # noqa: PT011 - a JSON error, or ours
            json_args(wrong)
