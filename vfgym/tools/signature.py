"""Reading a callable: its parameters, their types, and what its docstring says about them."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from pydantic.fields import FieldInfo

from vfgym.calls import function_name
from vfgym.errors import ConfigurationError, did_you_mean

EMPTY = inspect.Parameter.empty
"""Stands for a default, or a type of keyword arguments, that does not exist."""


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """One parameter that the model fills in."""

    name: str
    annotation: Any
    """Its type, resolved. `Any` if it has none."""
    default: Any
    """`EMPTY` if the model must give it."""
    description: str


@dataclass(frozen=True, slots=True)
class ToolSignature:
    """What a callable takes from the model, and how it is called."""

    description: str
    """The docstring without its sections."""
    parameters: tuple[ToolParameter, ...]
    """Those that the model fills in, in order."""
    extra: Any
    """Type of the values of `**kwargs`, `EMPTY` if the callable has none."""
    reserved: frozenset[str]
    """Names of the parameters that the model does not fill in."""
    positional: tuple[tuple[str, Any], ...]
    """Names and defaults of the positional-only parameters, hidden ones included."""


def tool_name(func: Callable[..., Any]) -> str:
    """Return the name of a function, or of the class of a callable object, as the name of a tool.

    Raises:
        ConfigurationError: The callable has no name, as a lambda.
    """
    name = function_name(func)
    if not name.isidentifier():
        raise ConfigurationError(f"a tool needs a name, and {func!r} has none: pass name=")
    return name


def read_signature(func: Callable[..., Any], tool: str, hidden: Collection[str]) -> ToolSignature:
    """Read what `func` takes from the model.

    What a `functools.partial` fixes by name is settled, and no parameter any more.

    Args:
        func: A plain or async function, bound method, `functools.partial` or callable object.
        tool: Name of the tool, for the messages.
        hidden: Names of the parameters that the model does not fill in. Their types are not looked at.

    Raises:
        ConfigurationError: The signature cannot be read, takes `*args`, lacks a hidden parameter, or has an
            annotation that cannot be resolved.
    """
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"tool `{tool}`: the signature of {func!r} cannot be read; wrap it in a function") from error
    for name in hidden:
        if name not in signature.parameters:
            raise ConfigurationError(f"tool `{tool}` has no parameter `{name}` to hide.{did_you_mean(name, signature.parameters)}")
    reserved = frozenset({*hidden, *(func.keywords if isinstance(func, functools.partial) else ())})
    written = _without_partial(func)
    call = written if inspect.isroutine(written) else type(written).__call__
    description, described = _read_docstring(call.__doc__ or written.__doc__)
    function = inspect.unwrap(call)
    parameters = []
    extra: Any = EMPTY
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ConfigurationError(f"tool `{tool}`: models pass arguments by name, so `*{name}` cannot be filled; take a list")
        if name in reserved:
            continue
        annotation = _resolve(parameter.annotation, function, tool, name)
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = annotation
            continue
        if isinstance(parameter.default, FieldInfo):
            raise ConfigurationError(f"tool `{tool}`: write `{name}: Annotated[..., Field(...)]`; as a default, Field() has no meaning")
        text = _read_annotation(annotation) or described.get(name, "")
        parameters.append(ToolParameter(name, annotation, parameter.default, text))
    positional = tuple((name, p.default) for name, p in signature.parameters.items() if p.kind is p.POSITIONAL_ONLY)
    return ToolSignature(description, tuple(parameters), extra, reserved, positional)


def _without_partial(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the callable that a `functools.partial` fixes arguments of."""
    while isinstance(func, functools.partial):
        func = func.func
    return func


def _resolve(annotation: Any, function: Callable[..., Any], tool: str, name: str) -> Any:
    """Return the type that `annotation`, which may be or hold text, means where `function` was written."""
    if annotation is EMPTY:
        return Any
    # One parameter at a time: types of hidden parameters and of the result often exist for the type checker only.
    holder = SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(holder, getattr(function, "__globals__", {}), _closure(function), include_extras=True)[name]
    except Exception as error:  # an annotation is code, and may raise anything
        raise ConfigurationError(
            f"tool `{tool}`: the type {annotation!r} of parameter `{name}` cannot be resolved ({error}). "
            "Import or define it at module level, or hide the parameter."
        ) from error


def _closure(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables of the enclosing function that `function` uses: types defined there are among them."""
    variables = {}
    code = getattr(function, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), getattr(function, "__closure__", None) or (), strict=True):
        with contextlib.suppress(ValueError):  # the variable has no value yet
            variables[name] = cell.cell_contents
    return variables


def _read_annotation(annotation: Any) -> str:
    """Return the text in `Annotated[T, "text"]`."""
    return next((extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, str)), "")


def _read_docstring(docstring: str | None) -> tuple[str, dict[str, str]]:
    """Return the text before the first section, and what the docstring says about each parameter."""
    if not docstring:
        return "", {}
    from docstring_parser import Docstring, DocstringStyle, ParseError, parse

    # The parser dedents what follows the first line once more: an empty first line keeps the indentation.
    text = f"\n{inspect.cleandoc(docstring)}"
    readings: list[Docstring] = []
    for style in (DocstringStyle.GOOGLE, DocstringStyle.REST, DocstringStyle.NUMPYDOC):
        # A line such as ": :" is an IndexError to the Sphinx parser of docstring_parser 0.18. NumPy's takes any text.
        with contextlib.suppress(ParseError, IndexError):
            readings.append(parse(text, style))
    reading = max(readings, key=lambda reading: len(reading.meta))
    described = {parameter.arg_name: (parameter.description or "").strip() for parameter in reading.params}
    return (reading.description or "").strip(), described
