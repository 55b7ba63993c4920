"""Spaces whose actions are arrays of numbers: Box, MultiBinary and MultiDiscrete."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from vfgym.codecs.base import Codec, Schema
from vfgym.codecs.data import elements_of, number_text, quote_data, sequence_of
from vfgym.codecs.numbers import Number, read_quantity
from vfgym.codecs.problems import ActionNotFound
from vfgym.codecs.reading import Where
from vfgym.codecs.registry import register_codec
from vfgym.errors import ConfigurationError, InvalidAction

Array = NDArray[Any]

_MOST_DESCRIBED = 16
"""Elements with bounds of their own that a listing names one by one."""

_MOST_IN_SCHEMA = 64
"""Elements with bounds of their own that a schema bounds one by one."""

_LONGEST_NUMBER = 40
"""Characters of a number, at most, with the brackets, signs and spaces around it."""

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_INTEGER_TEXT = re.compile(r"[+-]?\d{1,40}\Z")


class ArrayCodec(Codec):
    """Arrays of one dtype with a lower and an upper bound for each element, as nested lists of numbers."""

    def __init__(self, space: Any, names: Sequence[str] | None, low: Array, high: Array, *, below: Array, above: Array) -> None:
        """Describe the arrays.

        Args:
            space: A space with a shape and a dtype.
            names: A label for each element of a vector, or ``None``.
            low: The lower bounds.
            high: The upper bounds.
            below: Where the lower bounds are told: a bound that is the dtype's own is checked but goes without saying.
            above: Where the upper bounds are told.

        Raises:
            ConfigurationError: If the labels are not one for each element of a vector, or not different.
        """
        self.space = space
        self.names = None if names is None else _labels(space, names)
        self.own_keys = frozenset(self.names or ())
        self._dtype: np.dtype[Any] = space.dtype
        self._shape: tuple[int, ...] = space.shape
        self._size = math.prod(self._shape)
        self.has_fractions = self._dtype.kind == "f"
        self._kind = "i" if self._dtype.kind == "u" else self._dtype.kind
        # The largest finite number of the dtype: what lies between it and an infinite bound would overflow.
        self._largest = float(np.finfo(self._dtype).max) if self._kind == "f" else math.inf
        is_uniform = self._size > 0 and all(bool(np.all(each == each.flat[0])) for each in (low, high, below, above))
        kept: Any = (each.ravel()[:1] if is_uniform else each.ravel() for each in (low, high, below, above))
        lows, highs, belows, aboves = (each.tolist() for each in kept)
        self._is_uniform = is_uniform
        self._lows, self._highs = lows, highs
        # Bounds as they are told, with the shortest digits, and what a value may be without a check at the dtype.
        printed = [
            (low if is_told else None, high if is_also else None)
            for low, high, is_told, is_also in zip(self._short(lows), self._short(highs), belows, aboves, strict=True)
        ]
        self._printed_bounds: list[tuple[Number | None, Number | None]] = printed
        repeated = self._size if is_uniform else 1
        self._safe_lows = [max(each, -self._largest) if self._kind == "f" else each for each in lows] * repeated
        self._safe_highs = [min(each, self._largest) if self._kind == "f" else each for each in highs] * repeated
        self._is_vector = len(self._shape) == 1
        self.longest = self._size * (_LONGEST_NUMBER + max((len(name) for name in self.names or ()), default=0))
        self.schema = self._schema_of()

    def to_json(self, action: Any) -> Any:
        """Return an array as nested lists of numbers."""
        try:
            array = np.asarray(action, dtype=self._dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidAction(f"expected an array for {self.space}, got {action!r}") from error
        if array.shape != self._shape:
            raise InvalidAction(f"expected an array of shape {self._shape} for {self.space}, got shape {array.shape}")
        if self._kind != "f":
            return array.tolist()
        numbers = self._short(array.ravel().tolist())
        if not np.isfinite(array).all():
            numbers = [number if math.isfinite(number) else str(number) for number in numbers]
        return _nested(numbers, self._shape)

    def read(self, data: Any) -> Array:
        """Return the array of nested lists of numbers; a list of one number may be the number alone."""
        is_flat = self._is_vector and type(data) is list and len(data) == self._size
        # float32 and float16 overflow with a warning, which the bounds have made impossible by now.
        array = np.array(self._numbers(data if is_flat else self._flattened(data, 0)), self._dtype)
        return array if self._is_vector else array.reshape(self._shape)

    def lookup(self, text: str, where: Where) -> Any:
        """Return the array that a text is; where an action is one number, that number with a unit or without."""
        number = read_quantity(text) if self._size == 1 else None
        return super().lookup(text, where) if number is None else self.read(_nested([number], self._shape))

    def listing(self) -> str:
        """Return what the list holds, in words.

        >>> box_codec(gym.spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 1.0]), dtype=np.float64)).listing()
        'a list of 2 numbers: the first from -1 to 1, the second from 0 to 1'
        """
        kind = {"f": "number", "i": "whole number", "b": "truth value"}[self._kind]
        if not self._shape:
            return f"a {kind}" if self._kind == "b" else f"a {kind}{_bounds_text(*self._printed_bounds[0])}"
        several = f"{self._size} {kind}{'' if self._size == 1 else 's'}"
        form = f"a list of {several}" if len(self._shape) == 1 else f"a {' x '.join(map(str, self._shape))} array (nested lists) of {kind}s"
        if self._size == 0 or self._kind == "b":
            return form
        if self.names is not None and self._size <= _MOST_DESCRIBED:
            printed = self._printed_bounds * self._size if self._is_uniform else self._printed_bounds
            parts = [f"{name}{_bounds_text(*bounds)}" for name, bounds in zip(self.names, printed, strict=True)]
            return f"{form}: {', '.join(parts)}"
        if self._is_uniform:
            bounds = _bounds_text(*self._printed_bounds[0])
            return f"{form}{bounds}" if self._size == 1 or not bounds else f"{form}, each{bounds}"
        if len(self._shape) == 1 and self._size <= _MOST_DESCRIBED:
            named = [f"the {_ordinal(index)}{_bounds_text(*bounds) or ' any'}" for index, bounds in enumerate(self._printed_bounds)]
            return f"{form}: {', '.join(named)}"
        bounds = _bounds_text(*self._hull())
        return f"{form}, each within bounds of its own{',' if bounds else ''}{bounds}"

    def representative(self) -> Array:
        """Return an array of numbers between the bounds, three quarters of the way up."""
        pairs = zip(self._lows, self._highs, self._printed_bounds, strict=True)
        numbers = [_between(low, high, printed, self._kind) for low, high, printed in pairs]
        array = np.array(numbers * self._size if self._is_uniform else numbers, self._dtype)
        return array.reshape(self._shape)

    def _short(self, numbers: list[Any]) -> list[Any]:
        """Return floats with the fewest digits that tell them apart at the dtype; other numbers as they are."""
        if self._kind != "f" or self._dtype.itemsize == 8:
            return numbers
        return [_shortest(self._dtype.type(number)) for number in numbers]

    def _numbers(self, elements: Sequence[Any]) -> list[Number]:
        """Return elements as numbers that lie in their bounds."""
        convert = self._float if self._kind == "f" else self._integer
        wanted = float if self._kind == "f" else int
        numbers: list[Number] = []
        try:
            for element, low, high in zip(elements, self._safe_lows, self._safe_highs, strict=True):
                number = element if type(element) is wanted else convert(element)
                if not low <= number <= high:
                    number = self._at_the_edge(number, len(numbers))
                numbers.append(number)
        except ActionNotFound as error:
            index = len(numbers)
            raise ActionNotFound(f"{error}, got {quote_data(elements[index])}", *self._places(index)) from None
        return numbers

    def _flattened(self, data: Any, depth: int) -> Sequence[Any]:
        """Return the elements of nested lists, whose lengths are right."""
        if depth == len(self._shape):
            return [data]
        if isinstance(data, Mapping) and self.names is not None:
            data = self._in_order(data)
        elif self._size == 1 and sequence_of(data) is None:  # the number alone
            data = [data]
        items = elements_of(data, self._shape[depth])
        if depth == len(self._shape) - 1:
            return items
        flat: list[Any] = []
        for index, item in enumerate(items, 1):
            try:
                flat += self._flattened(item, depth + 1)
            except ActionNotFound as error:
                error.places.append(f"element {index}")
                raise
        return flat

    def _in_order(self, labelled: Mapping[str, Any]) -> list[Any]:
        """Return the elements of an object with the labels as keys."""
        by_fold = {str(key).strip().casefold(): value for key, value in labelled.items()}
        folds = [name.casefold() for name in self.names]
        if len(labelled) != len(folds) or by_fold.keys() != set(folds):
            raise ActionNotFound(f"must have the keys {', '.join(f'`{name}`' for name in self.names)}, got {quote_data(labelled)}")
        return [by_fold[fold] for fold in folds]

    def _float(self, element: Any) -> float:
        """Return one element as a float."""
        if isinstance(element, bool | np.bool_) or not isinstance(element, str | int | float | np.integer | np.floating):
            raise ActionNotFound("must be a number")
        try:
            return float(element)
        except ValueError:
            raise ActionNotFound("must be a number") from None
        except OverflowError:
            raise ActionNotFound(f"must be a number that {self._dtype} can hold") from None

    def _integer(self, element: Any) -> int:
        """Return one element as an integer."""
        if isinstance(element, bool | np.bool_):
            if self._kind == "b" or isinstance(self.space, gym.spaces.MultiBinary):
                return int(element)
        elif isinstance(element, int | np.integer) or (isinstance(element, float | np.floating) and float(element).is_integer()):
            return int(element)
        elif isinstance(element, str):
            text = element.strip().casefold()
            if self._kind == "b" and text in ("true", "false"):
                return int(text == "true")
            if _INTEGER_TEXT.match(text):
                return int(text)
        raise ActionNotFound("must be true or false" if self._kind == "b" else "must be a whole number")

    def _at_the_edge(self, number: Number, index: int) -> Number:
        """Return a number that is within its bounds at the dtype only: 0.1 is below what float32 makes of a lower bound 0.1."""
        place = 0 if self._is_uniform else index
        if self._kind == "f":
            with np.errstate(over="ignore"):
                rounded = float(self._dtype.type(number))
            if self._lows[place] <= rounded <= self._highs[place] and math.isinf(rounded) == math.isinf(number):
                return rounded
        bounds = _bounds_text(*self._printed_bounds[place])
        raise ActionNotFound(f"must be{bounds}" if bounds else f"must be a number that {self._dtype} can hold")

    def _places(self, index: int) -> list[str]:
        """Return where an element stands, from the inside to the outside."""
        return [f"element {int(place) + 1}" for place in reversed(np.unravel_index(index, self._shape))] if self._shape else []

    def _hull(self) -> tuple[Number | None, Number | None]:
        """Return bounds for all elements together."""
        lows, highs = [low for low, _ in self._printed_bounds], [high for _, high in self._printed_bounds]
        return (
            None if None in lows else min((low for low in lows if low is not None), default=None),
            None if None in highs else max((high for high in highs if high is not None), default=None),
        )

    def _schema_of(self) -> Schema:
        """Return the schema: nested arrays, whose items are described once where they are alike."""
        has_minus = self._kind == "f" and -math.inf in self._lows
        has_plus = self._kind == "f" and math.inf in self._highs

        def element(low: Number | None, high: Number | None) -> Schema:
            if self._kind == "b":
                return {"type": "boolean"} if low != high else {"const": bool(low)}
            number: Schema = {"type": "number" if self._kind == "f" else "integer"}
            if low is not None:
                number["minimum"] = low
            if high is not None:
                number["maximum"] = high
            strings = ["-inf"] * (has_minus and low is None) + ["inf"] * (has_plus and high is None)
            return {"anyOf": [number, {"enum": strings}]} if strings else number

        def rows(shape: tuple[int, ...], items: list[Schema]) -> Schema:
            if not shape:
                return items[0]
            count = shape[0]
            array: Schema = {"type": "array", "minItems": count, "maxItems": count}
            if len(items) > 1:
                size = len(items) // count
                return array | {"prefixItems": [rows(shape[1:], items[i * size : (i + 1) * size]) for i in range(count)]}
            return array | {"items": rows(shape[1:], items)} if items else array

        if self._is_uniform or self._size <= _MOST_IN_SCHEMA:
            schema = rows(self._shape, [element(low, high) for low, high in self._printed_bounds] or [{}])
        else:
            schema = rows(self._shape, [element(*self._hull())])
        if self._shape and self._size:
            schema["description"] = self.listing()
        return schema


def box_codec(space: gym.spaces.Box[Any], names: Sequence[str] | None = None) -> ArrayCodec:
    """Return the codec of a `Box`; the names, if any, label the elements of a vector."""
    if space.dtype.kind == "f" and space.dtype.itemsize > 8:
        raise ConfigurationError(f"expected a Box of at most 64-bit numbers, which is what JSON readers know, got {space}")
    return ArrayCodec(space, names, space.low, space.high, below=space.bounded_below, above=space.bounded_above)


def multi_binary_codec(space: gym.spaces.MultiBinary, names: Sequence[str] | None = None) -> ArrayCodec:
    """Return the codec of a `MultiBinary`; the names, if any, label the elements of a vector."""
    low = np.zeros(space.shape, np.int8)
    return ArrayCodec(space, names, low, low + 1, below=low == 0, above=low == 0)


def multi_discrete_codec(space: gym.spaces.MultiDiscrete[Any]) -> ArrayCodec:
    """Return the codec of a `MultiDiscrete` whose values have no names."""
    everywhere = np.ones(space.shape, bool)
    return ArrayCodec(space, None, space.start, space.start + (space.nvec - 1), below=everywhere, above=everywhere)


def _labels(space: Any, names: Sequence[str]) -> list[str]:
    count = space.shape[0] if len(space.shape) == 1 else None
    fits = isinstance(names, Sequence) and not isinstance(names, str) and all(isinstance(name, str) and name.strip() for name in names)
    if not fits or len({name.strip().casefold() for name in names}) != len(names) or len(names) != count:
        expected = "no labels" if count is None else f"{count} different labels"
        raise ConfigurationError(f"expected {expected} for the elements of {space}, got {names!r}")
    return [name.strip() for name in names]


def _shortest(number: np.floating[Any]) -> float:
    """Return the float with the fewest digits that is this number at its dtype."""
    short = float(str(number))
    # Reading rounds twice, to 64 bits and to the dtype, so that fewest digits might read as a neighbour.
    return short if type(number)(short) == number else float(number)


def _nested(numbers: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return flat numbers as nested lists of a shape."""
    return np.array(numbers, dtype=object).reshape(shape).tolist()


def _ordinal(index: int) -> str:
    return _ORDINALS[index] if index < len(_ORDINALS) else f"{index + 1}th"


def _bounds_text(low: Number | None, high: Number | None) -> str:
    """Return bounds as the end of a phrase, with a space before it; nothing where there are none."""
    if low is None:
        return "" if high is None else f" at most {_bound_text(high)}"
    return f" at least {_bound_text(low)}" if high is None else f" from {_bound_text(low)} to {_bound_text(high)}"


def _bound_text(bound: Number) -> str:
    return number_text(bound) if isinstance(bound, float) else str(bound)


def _between(low: Number, high: Number, printed: tuple[Number | None, Number | None], kind: str) -> Number:
    """Return an ordinary number that is in the bounds of an element."""
    if kind == "b":
        return int(high)
    if printed == (None, None):
        return 0.5 if kind == "f" else 1
    if printed[1] is None:
        return min(low + 1, high)
    if printed[0] is None:
        return max(high - 1, low)
    if kind == "i":
        return int(low + high + 1) // 2
    number = low * 0.25 + high * 0.75
    rounded = float(f"{number:.3g}")
    return rounded if low <= rounded <= high else number


register_codec(gym.spaces.Box, box_codec)
register_codec(gym.spaces.MultiBinary, multi_binary_codec)
