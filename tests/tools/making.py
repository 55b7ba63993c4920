"""Types and tools that tests of tools make."""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel
from typing_extensions import TypedDict  # pydantic takes that of typing from Python 3.12 on

from vfgym.tools import ToolFunction


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Address(BaseModel):
    street: str
    number: int | None = None


class Options(TypedDict):
    verbose: bool


class Connection:
    """A type that JSON knows nothing of."""


def parameters_of(func: Callable[..., Any], **kwargs: Any) -> dict[str, Any]:
    return ToolFunction(func, **kwargs).definition.parameters
