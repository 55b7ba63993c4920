"""Signatures that show all arguments, where constructors hand the rest on to their base classes as ``**kwargs``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_LIBRARY = "vfgym"
"""The package whose classes show all arguments: those of users and of `verifiers_compat` are as their authors wrote them."""


class FullSignature:
    """The ``__signature__`` of a class: its constructor's own arguments, then by name those that its base classes take."""

    def __get__(self, instance: object | None, owner: type) -> inspect.Signature:
        if instance is not None or owner.__module__.partition(".")[0] != _LIBRARY:
            raise AttributeError("__signature__")
        return full_signature(owner)


def full_signature(cls: type) -> inspect.Signature:
    """Return the signature of a class's constructor with the arguments of base classes in place of ``**kwargs``.

    What the class refuses (``_refused_arguments``) is not among them.
    """
    refused = getattr(cls, "_refused_arguments", {})
    shown: dict[str, inspect.Parameter] = {}
    constructors = [base for base in cls.__mro__ if "__init__" in vars(base) and base is not object]
    for base in constructors:
        own = [*inspect.signature(vars(base)["__init__"]).parameters.values()][1:]
        for parameter in own:
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) and parameter.name not in refused:
                kind = parameter.kind if base is constructors[0] else parameter.KEYWORD_ONLY
                shown.setdefault(parameter.name, parameter.replace(kind=kind))
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in own):
            break
    return inspect.Signature([*shown.values()])


def shows_arguments_of(cls: type, rest: str | None = None) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator for a function that hands its ``**kwargs`` on to a class: its signature shows them by name.

    Args:
        cls: The class.
        rest: What the function calls the arguments that it takes besides and hands on elsewhere; None where there are none.
    """

    def decorate(function: FunctionT) -> FunctionT:
        own = inspect.signature(function)
        first = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        names = {each.name for each in first}
        handed_on = [
            each.replace(kind=each.KEYWORD_ONLY)
            for each in full_signature(cls).parameters.values()
            if each.name not in names and each.default is not each.empty
        ]
        last = [] if rest is None else [inspect.Parameter(rest, inspect.Parameter.VAR_KEYWORD, annotation="Any")]
        function.__signature__ = own.replace(parameters=[*first, *handed_on, *last])  # type: ignore[attr-defined]
        return function

    return decorate
