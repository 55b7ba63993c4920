"""Which environment something is of: its id, its class, and the arguments that it was made with."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np


class Identity(NamedTuple):
    """What two environments have in common that play the same episodes."""

    env_id: str
    """The registered id; empty where there is none."""
    cls: str
    arguments: str
    """A digest of the constructor's arguments, without those that are about drawing."""

    def difference(self, other: Identity) -> str:
        """Return what tells the other one from this, in words; empty where nothing does."""
        if self.env_id != other.env_id and self.env_id and other.env_id:
            return f"it is of {other.env_id}, and this is {self.env_id}"
        if self.cls != other.cls:
            return f"it is of a {other.cls}, and this is a {self.cls}"
        return "" if self.arguments == other.arguments else f"it is of a {other.cls} that was made with other arguments"


class Identified(Protocol):
    """Something with an `Identity`."""

    identity: Identity


_MOST = 16
"""How many items of a long list are compared, beside their number: a data set may have millions."""

_DEEPEST = 8


def digest_arguments(cls: type, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return a digest of the arguments of a class's constructor: the same for equal ones, in any process.

    Data are compared by value (long lists by their length and their ends), functions and classes by name, other objects by class.
    """
    try:
        bound = _signature(cls).bind(None, *args, **kwargs)
    except TypeError:  # the constructor will say so
        return ""
    bound.apply_defaults()
    given = {name: value for name, value in bound.arguments.items() if value is not None}
    return hashlib.blake2b(repr(_describe(given, 0)).encode(errors="surrogatepass"), digest_size=8).hexdigest()


@functools.lru_cache(256)
def _signature(cls: type) -> inspect.Signature:
    return inspect.signature(cls.__init__)  # type: ignore[misc]


def _describe(value: Any, depth: int) -> Any:
    """Return plain data that are equal for equal values."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if depth > _DEEPEST:
        return type(value).__qualname__
    deeper: Callable[[Any], Any] = lambda item: _describe(item, depth + 1)  # noqa: E731 -- a function with its depth
    if isinstance(value, Mapping):
        items = [(deeper(key), deeper(item)) for key, item in value.items() if key != "render_mode"]
        return ["mapping", *_ends(items)]
    if isinstance(value, list | tuple):
        return ["list", *map(deeper, _ends(value))]
    if isinstance(value, set | frozenset):
        return ["set", *sorted(map(repr, map(deeper, value)))]
    if isinstance(value, np.ndarray | np.generic):
        return [str(value.dtype), value.shape, [*map(repr, _ends(value.ravel()))]]
    if isinstance(value, functools.partial):
        return ["partial", deeper(value.func), deeper(value.args), deeper(value.keywords)]
    identity = getattr(value, "identity", None)
    if isinstance(identity, Identity):
        return [*identity]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
        return [type(value).__qualname__, deeper(fields)]
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(named, '__module__', 'builtins')}.{named.__qualname__}"


def _ends(items: Any) -> list[Any]:
    """Return how many items there are, and the first and last of them."""
    count = len(items)
    return [count, *items] if count <= 2 * _MOST else [count, *items[:_MOST], *items[-_MOST:]]
