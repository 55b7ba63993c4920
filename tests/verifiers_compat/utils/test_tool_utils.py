"""A function as a tool, and what a tool may return as content."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.utils.tool_utils import convert_func_to_tool_def, is_valid_tool_content_parts

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def test_a_function_as_a_tool() -> None:
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    tool = convert_func_to_tool_def(add)
    assert (tool.name, tool.description, tool.parameters["required"]) == ("add", "Add two numbers.", ["a"])


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ([{"type": "text", "text": "x"}, IMAGE], True),
        ([], False),
        ([{"type": "text"}], False),
        ([{"type": "record", "record": 1}], False),
        ("x", False),
        ({"type": "text", "text": "x"}, False),
    ],
)
def test_what_a_tool_may_return_as_content(value: Any, is_valid: bool) -> None:
    assert is_valid_tool_content_parts(value) is is_valid
