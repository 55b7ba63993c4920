"""`deep_copy` makes what `copy.deepcopy` makes, and shares what its memo says."""

from __future__ import annotations

import collections
import copy
import copyreg
import random
import sys
import threading
import weakref
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import pytest

from vfgym import UserMessage
from vfgym.copying import deep_copy, new_memo


class Colour(Enum):
    red = 1


@dataclass
class Plain:
    items: list[Any] = field(default_factory=list)

    def count(self) -> int:
        return len(self.items)


class Slotted:
    __slots__ = ("empty", "items")

    def __init__(self) -> None:
        self.items = [1, [2]]


class Own:
    def __init__(self) -> None:
        self.copies = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Own:
        made = Own()
        made.copies = self.copies + 1
        return made


class Restored:
    def __init__(self, value: int) -> None:
        self.value, self.lock = value, threading.Lock()

    def __getstate__(self) -> int:
        return self.value

    def __setstate__(self, value: int) -> None:
        self.__init__(value)  # type: ignore[misc]


class Heap(list[int]):
    pass


def everything() -> dict[str, Any]:
    shared = [1, "a"]
    return {
        "atoms": (None, True, 1, 2.5, 1j, "text", b"bytes", ..., int, len, Colour.red),
        "twice": [shared, shared, (shared, 1)],
        "containers": {1: {2, 3}, "q": collections.deque([shared]), "o": collections.OrderedDict(a=shared), "f": frozenset({4})},
        "array": np.arange(4).reshape(2, 2),
        "heap": Heap([3, 1]),
        "message": UserMessage("hi"),
        "plain": Plain([shared]),
    }


def test_it_makes_what_deepcopy_makes() -> None:
    value = everything()
    made = deep_copy(value, new_memo())
    assert str(made) == str(copy.deepcopy(value)) == str(value)
    assert type(made["heap"]) is Heap
    assert made["twice"][0] is made["twice"][1] is made["twice"][2][0] is made["containers"]["q"][0] is made["plain"].items[0]
    assert made["twice"][0] is not value["twice"][0]
    assert made["array"] is not value["array"]
    assert made["message"] is value["message"]
    assert made["atoms"] is value["atoms"]


def test_objects_that_say_how_they_are_copied_are_asked() -> None:
    own, restored, slotted = deep_copy((Own(), Restored(3), Slotted()), new_memo())
    assert (own.copies, restored.value, slotted.items) == (1, 3, [1, [2]])
    assert not hasattr(slotted, "empty")


class Reduced:
    """Says itself, by ``__reduce_ex__``, what it is made of."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.protocols: list[int] = []

    def __reduce_ex__(self, protocol: int) -> Any:
        self.protocols.append(protocol)
        return Reduced, self.arguments, {"protocols": [*self.protocols]}


class SlottedBesideAttributes(Slotted):
    """Has slots and attributes, and a state that ``copy.deepcopy`` gives as a pair."""

    def __reduce__(self) -> Any:
        return copy_of_slots, (), ({"attribute": [1]}, {"items": [2]})


def copy_of_slots() -> SlottedBesideAttributes:
    return SlottedBesideAttributes.__new__(SlottedBesideAttributes)


class Falsy:
    def __init__(self) -> None:
        self.restored: list[Any] = []

    def __reduce__(self) -> Any:
        return Falsy, (), 0

    def __setstate__(self, state: int) -> None:
        self.restored.append(state)


class Meta(type):
    """A type of types."""


class Singleton:
    def __reduce__(self) -> str:
        return "SINGLETON"


SINGLETON = Singleton()


def test_what_an_object_is_made_of_is_copied() -> None:
    inner = [1]
    reduced = Reduced(inner)
    slotted, falsy = SlottedBesideAttributes(), Falsy()
    made, again, both, restored = deep_copy((reduced, reduced, slotted, falsy), new_memo())
    expected = copy.deepcopy(Reduced(inner))
    assert made is again
    assert made.arguments == ([1],)
    assert made.arguments[0] is not inner
    assert made.protocols == expected.protocols == [4]
    assert (both.items, both.attribute) == ([2], [1])
    assert restored.restored == copy.deepcopy(falsy).restored == [0]


def test_classes_and_what_has_a_name_are_their_own_copies() -> None:
    made = Meta("made", (), {})
    code = everything.__code__
    for value in (made, Meta, Plain, SINGLETON, len, range(3), property(len), everything, code, weakref.ref(made), NotImplemented):
        assert deep_copy([value], new_memo())[0] is value


def test_slots_of_a_copy_are_apart_from_those_of_the_original() -> None:
    original = Slotted()
    made = deep_copy(original, new_memo())
    assert made.items is not original.items
    made.items[1].append(3)
    assert original.items == [1, [2]]


def test_what_is_made_on_the_way_is_kept_alive_while_a_copy_is_made() -> None:
    """Else its id may be that of the next one, which would be taken for it."""

    class Made:
        def __reduce__(self) -> Any:
            return list, ([object()],)

    memo = new_memo()
    values = [Made() for _ in range(50)]
    made = deep_copy(values, memo)
    assert len({id(each[0]) for each in made}) == 50
    assert sum(isinstance(each, tuple) and each[0] is list for each in memo[id(memo)]) == 50


def test_keys_are_copied_like_what_they_stand_for() -> None:
    for kind in (dict, collections.OrderedDict):
        key = Own()
        ((made, item),) = deep_copy(kind({key: [key]}), new_memo()).items()
        assert (made.copies, item) == (1, [made])


def test_how_a_class_is_copied_can_be_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Registered:
        pass

    monkeypatch.setitem(copyreg.dispatch_table, Registered, lambda value: (Plain, (value.items,)))
    value = Registered()
    value.items = [1]  # type: ignore[attr-defined]
    made: Any = deep_copy(value, new_memo())
    assert made == copy.deepcopy(value) == Plain([1])
    assert made.items is not value.items  # type: ignore[attr-defined]


def test_what_pygame_draws_with_is_shared() -> None:
    """Only that: the name of another package may begin alike."""

    def refuse(self: Any, protocol: int) -> Any:
        raise TypeError("cannot be pickled")

    window, other = (type("Window", (), {"__module__": name, "__reduce_ex__": refuse})() for name in ("pygame.display", "pygamer"))
    assert deep_copy({"window": window}, new_memo())["window"] is window
    with pytest.raises(TypeError, match="cannot be pickled"):
        deep_copy([other], new_memo())


def test_a_method_is_that_of_the_copy() -> None:
    plain = Plain([1])
    made, count = deep_copy((plain, plain.count), new_memo())
    made.items.append(2)
    assert (count(), plain.count()) == (2, 1)


def test_what_holds_itself_is_copied_once() -> None:
    ring: list[Any] = []
    pair = (ring, 1)
    ring.append(pair)
    made = deep_copy(pair, new_memo())
    assert made[0][0] is made
    assert made[0] is not ring
    table: dict[str, Any] = {}
    plain = Plain([table])
    slotted = Slotted()
    slotted.items = [plain, slotted]
    table.update(table=table, plain=plain, slotted=slotted)
    copied = deep_copy(table, new_memo())
    assert copied["table"] is copied["plain"].items[0] is copied is not table
    assert copied["slotted"].items == [copied["plain"], copied["slotted"]]
    assert copied["slotted"] is not slotted


def test_what_is_shared_is_left_as_it_is() -> None:
    shared, items = Plain([1]), [2]
    made = deep_copy({"a": shared, "b": [shared.count], "c": Plain(items)}, new_memo(each for each in (shared, items)))
    assert made["a"] is shared
    assert made["b"][0].__self__ is shared
    assert made["c"].items is items


@pytest.mark.parametrize("value", [threading.Lock(), (number for number in ()), sys.stderr, memoryview(b"")], ids=type)
def test_what_cannot_be_copied_is_refused_as_deepcopy_refuses_it(value: Any) -> None:
    with pytest.raises(TypeError) as expected:
        copy.deepcopy(value)
    for _ in range(2):
        with pytest.raises(TypeError, match=str(expected.value)):
            deep_copy([value], new_memo())


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_generators_go_on_alike_and_apart(bits: Any) -> None:
    """Their next numbers and what they spawn are the same; one that two things hold stays one."""
    original = np.random.Generator(bits(7))
    original.random(3)
    original.spawn(2)
    made, again, legacy, python = deep_copy((original, [original], np.random.RandomState(3), random.Random(3)), new_memo())
    assert again[0] is made
    assert made.bit_generator is not original.bit_generator
    assert [*made.random(3), made.spawn(1)[0].random()] == [*original.random(3), original.spawn(1)[0].random()]
    assert (legacy.random_sample(), python.random()) == (np.random.RandomState(3).random_sample(), random.Random(3).random())


def test_generators_of_one_seed_sequence_keep_sharing_it() -> None:
    """So what one of them spawns is not spawned by the other again."""
    sequence = np.random.SeedSequence(7)
    first, second = deep_copy([np.random.Generator(np.random.PCG64(sequence)) for _ in range(2)], new_memo())
    assert first.bit_generator.seed_seq is second.bit_generator.seed_seq is not sequence
    first.spawn(1)
    assert (second.bit_generator.seed_seq.n_children_spawned, sequence.n_children_spawned) == (1, 0)


def test_pythons_random_numbers_go_on_where_they_were() -> None:
    """Also in the middle of a pair of normal numbers."""
    original = random.Random(3)
    original.gauss()
    made, again = deep_copy([original, original], new_memo())
    assert made is again
    assert made is not original
    assert [made.gauss(), made.random()] == [original.gauss(), original.random()]


def test_types_of_numbers_are_their_own_copies_unless_their_fields_can_be_renamed() -> None:
    fields = np.dtype([("x", np.float32), ("y", np.int8)])
    number, structured = deep_copy([np.dtype(np.int64), fields], new_memo())
    assert number is np.dtype(np.int64)
    assert structured == fields
    structured.names = ("a", "b")
    assert fields.names == ("x", "y")
