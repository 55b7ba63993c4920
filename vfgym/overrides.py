"""Methods that authors override and the library calls: each override must take what it is called with, or its class is refused."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from vfgym.errors import ConfigurationError

logger = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])

_HOOK = "__vfgym_hook__"


def hook(func: F) -> F:
    """Mark a method of the library's own that authors override.

    The library calls it with the parameters that this method has, by position. An override may call them otherwise, have more that it
    does not need, and be plain or async.
    """
    setattr(func, _HOOK, True)
    return func


_inline: dict[str, list[Callable[..., Any]]] = {}
"""The library's own versions of the hooks that it does inline, by the names of the hooks."""
_NOTHING: frozenset[str] = frozenset()


def inline_hook(func: F) -> F:
    """Mark a hook (see `hook`) whose own version the library does inline: the method is called only where an author replaced it."""
    _inline.setdefault(func.__name__, []).append(func)
    return hook(func)


def find_replaced(cls: type) -> frozenset[str]:
    """Return the names of the inline hooks that a class has otherwise than the library does them."""
    return frozenset(
        name for name, own in _inline.items() if hasattr(cls, name) and not any(getattr(cls, name) is method for method in own)
    )


def find_put_on(obj: object) -> frozenset[str]:
    """Return the names of the inline hooks that were put on an object itself."""
    own = vars(obj)
    return _NOTHING if _inline.keys().isdisjoint(own) else frozenset(own.keys() & _inline.keys())  # asked for every episode


def check_hooks(cls: type) -> None:
    """Check that the hooks of a class can be called as the library calls them.

    Raises:
        ConfigurationError: If one cannot. The text says how it is called.
    """
    originals = {name: method for base in cls.__mro__ for name, method in vars(base).items() if getattr(method, _HOOK, False)}
    for name, original in originals.items():
        own = inspect.getattr_static(cls, name)
        if own is not original and not getattr(own, _HOOK, False):
            _check_hook(cls, name, own, original)


def _check_hook(cls: type, name: str, own: Any, original: Callable[..., Any]) -> None:
    parameters = [each.name for each in inspect.signature(original).parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
    wanted = f"{name}({', '.join(parameters)})"
    method = own.__func__ if isinstance(own, staticmethod | classmethod) else own
    if inspect.isdatadescriptor(method) or not (callable(method) or hasattr(method, "__get__")):
        raise ConfigurationError(f"{cls.__name__}.{name} must be a method, got {type(method).__name__}: write def {wanted}")
    if not inspect.isroutine(method):  # an object that is called without `self`
        return
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # of functions in C, and of objects that say themselves what they are as methods
        return
    try:
        signature.bind(*parameters[isinstance(own, staticmethod) :])
    except TypeError as error:
        raise ConfigurationError(f"{cls.__name__} must have {wanted}, got {name}{signature}: {error}") from None


def warn_of_hidden(cls: type) -> None:
    """Warn of private methods of the library that a class of somebody else's hides by accident: the library would call that one instead."""
    if _is_of_library(cls):
        return
    for name, method in vars(cls).items():
        is_private = name.startswith("_") and not name.endswith("__") and callable(getattr(method, "__func__", method))
        base = next((base for base in cls.__mro__[1:] if name in vars(base)), None) if is_private else None
        if base is not None and _is_of_library(base):
            logger.warning(
                "%s.%s hides a private method of %s, which the library calls: give it another name", cls.__name__, name, base.__name__
            )


def _is_of_library(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in ("vfgym", "verifiers_compat")


def is_replaced(obj: object, name: str, own: object) -> bool:
    """Say whether what an object has under a name is not the library's own: a subclass overrides it, or it was put on the object itself.

    Args:
        obj: An environment or a rubric.
        name: Name of the hook.
        own: The library's own, as its class has it.
    """
    return name in vars(obj) or getattr(type(obj), name) is not own


def kind_of(value: object) -> str:
    """Return what an argument is, for an error: its type, or that it is a class where an object of it is meant."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def items_of(value: Any, name: str, kind: str) -> list[Any]:
    """Return what an argument lists; nothing for None.

    Raises:
        ConfigurationError: If it is one thing instead of a list of such things.
    """
    if value is None:
        return []
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__") or isinstance(value, type):
        known_as = getattr(value, "__name__", None)
        hint = f": write {name}=[{known_as}]" if known_as else ""
        raise ConfigurationError(f"{name} must be a list of {kind}, got {type(value).__name__}{hint}")
    return list(value)
