"""Dicts and lists that cannot be changed, and still are dicts and lists to JSON, pickle and the SDKs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Self

from vfgym.errors import InvalidMessage


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} is immutable: use .replace(...) on the message to make a changed copy")


_refused: Any = _refuse  # a method of any signature, so that a writable subclass can have its own


class FrozenList(list[Any]):
    """A list that cannot be changed (still a ``list``, so JSON and SDKs see one)."""

    __slots__ = ()
    append = extend = insert = remove = pop = clear = sort = reverse = _refused
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refused

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self),)


class FrozenDict(dict[str, Any]):
    """A dict that cannot be changed. Equality is that of the data."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refused
    pop = popitem = clear = update = setdefault = _refused

    def __setattr__(self, name: str, value: object) -> None:
        _refuse(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The default way of pickling a dict subclass calls __setitem__.
        return _rebuild, (type(self), dict(self))

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Self:
        """Make one of data that is frozen and validated already."""
        made = cls.__new__(cls)
        dict.update(made, data)
        return made

    @staticmethod
    def _held(value: Any) -> Any:
        """Return a value as it is held in a dict of this class."""
        return freeze(value)


def _rebuild(cls: type[FrozenDict], data: dict[str, Any]) -> FrozenDict:
    return cls._of(data)


def freeze(value: Any) -> Any:
    """Return `value` with every dict and list inside it frozen; what is frozen already is shared, not copied.

    Raises:
        InvalidMessage: If it is nested more deeply than can be gone through.
    """
    kind = type(value)
    if kind is str or value is None or isinstance(value, FrozenDict | FrozenList):
        return value
    try:
        if isinstance(value, Mapping):
            return FrozenDict._of({key: freeze(item) for key, item in value.items()})
        if isinstance(value, list | tuple):
            return FrozenList([freeze(item) for item in value])
    except RecursionError:
        raise InvalidMessage("a message has data in it that are nested too deeply") from None
    return value


class Field:
    """A known field of a frozen dict as an attribute: ``None`` where it is absent."""

    __slots__ = ("name",)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else dict.get(instance, self.name)
