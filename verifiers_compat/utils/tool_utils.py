"""Tools: from a function to its definition, and what a tool may return as message content."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verifiers_compat.envs.tool_env import with_title
from vfgym.tools import Tool, ToolFunction, result_content

__all__ = ["convert_func_to_tool_def", "is_valid_tool_content_parts"]


def convert_func_to_tool_def(func: Callable[..., Any]) -> Tool:
    """Return the definition of a function as a tool, by its signature and docstring (see `vfgym.tools.ToolFunction`).

    Raises:
        vfgym.errors.ConfigurationError: If it cannot be a tool. The text says why.
    """
    return with_title(ToolFunction(func).definition)


def is_valid_tool_content_parts(value: Any) -> bool:
    """Say whether a tool's result is a list of content parts (text, image_url, input_audio), which a tool message holds as it is."""
    return isinstance(value, list) and isinstance(result_content(value), list)
