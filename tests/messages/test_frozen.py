"""Dicts and lists that cannot be changed, and still are dicts and lists."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from vfgym.errors import InvalidMessage
from vfgym.messages.frozen import Field, FrozenDict, FrozenList, freeze

DATA = {"a": [1, {"b": (2, None)}], "c": ""}
PLAIN = {"a": [1, {"b": [2, None]}], "c": ""}

CHANGES: list[Callable[[Any], Any]] = [
    *[lambda made: made.__setitem__("a", 1), lambda made: made.__delitem__("a"), lambda made: made.__ior__({"a": 1})],
    *[lambda made: made.pop("a"), lambda made: made.popitem(), lambda made: made.clear(), lambda made: made.update(a=1)],
    lambda made: made.setdefault("z", 1),
    lambda made: setattr(made, "z", 1),
]
LIST_CHANGES: list[Callable[[Any], Any]] = [
    *[lambda made, name=name: getattr(made, name)(1) for name in ("append", "remove", "pop", "__delitem__", "__imul__")],
    *[lambda made, name=name: getattr(made, name)([1]) for name in ("extend", "__iadd__")],
    *[lambda made, name=name: getattr(made, name)() for name in ("clear", "sort", "reverse")],
    lambda made: made.insert(0, 1),
    lambda made: made.__setitem__(0, 1),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_dict_cannot_be_changed(change: Any) -> None:
    made = freeze(DATA)
    with pytest.raises(TypeError, match="immutable"):
        change(made)
    assert made == PLAIN


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_a_list_cannot_be_changed(change: Any) -> None:
    made = freeze(DATA)["a"]
    with pytest.raises(TypeError, match="immutable"):
        change(made)
    assert made == PLAIN["a"]


def test_everything_inside_is_frozen_and_still_a_dict_or_a_list() -> None:
    ordered = OrderedDict({**DATA, "a": [*DATA["a"]]})
    made = freeze(ordered)
    ordered["a"].append(2)
    ordered["d"] = 3
    assert (type(made), type(made["a"]), type(made["a"][1]), type(made["a"][1]["b"])) == (FrozenDict, FrozenList, FrozenDict, FrozenList)
    assert (made, json.loads(json.dumps(made)), freeze(MappingProxyType({"a": 1}))) == (PLAIN, PLAIN, {"a": 1})
    assert [freeze(value) for value in (0, "", None, 1.5)] == [0, "", None, 1.5]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_frozen_again(protocol: int) -> None:
    made = freeze(DATA)
    again = pickle.loads(pickle.dumps(made, protocol))
    assert (again, type(again), type(again["a"])) == (made, FrozenDict, FrozenList)


def test_what_is_frozen_is_shared() -> None:
    made = freeze(DATA)
    for same in (freeze(made), copy.copy(made), copy.deepcopy(made), freeze({"x": made})["x"]):
        assert same is made
    assert copy.copy(made["a"]) is copy.deepcopy(made["a"]) is freeze(made["a"]) is made["a"]


def test_what_is_nested_too_deeply_is_refused() -> None:
    nested: Any = []
    for _ in range(10**5):
        nested = [nested]
    with pytest.raises(InvalidMessage, match="too deeply"):
        freeze(nested)


def test_a_field_is_none_where_it_is_absent() -> None:
    class Named(FrozenDict):
        __slots__ = ()
        name = Field()

    assert (Named._of({"name": 0}).name, Named._of({}).name) == (0, None)
    assert isinstance(Named.name, Field)
    named = Named._of({"name": [1]})
    assert freeze([named])[0] is named
