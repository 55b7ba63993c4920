"""Tools: Python callables that a model may call, and what it reads back.

`Tool` is what a model is told about a tool, `ToolFunction` joins it to the callable that carries the call out,
`result_content` turns what the callable returned into the content of a tool message, and `sample_arguments` invents
arguments that fit a tool, for agents that act at random.
"""

from __future__ import annotations

from vfgym.tools.definition import Tool, as_tool
from vfgym.tools.function import ToolFunction
from vfgym.tools.results import result_content
from vfgym.tools.sampling import sample_arguments

__all__ = ["Tool", "ToolFunction", "as_tool", "result_content", "sample_arguments"]
