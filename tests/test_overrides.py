"""Methods that authors override: each must take what it is called with, and what hides a private one is told."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from vfgym.errors import ConfigurationError
from vfgym.overrides import check_hooks, find_put_on, find_replaced, hook, inline_hook, is_replaced, items_of, kind_of, warn_of_hidden


class Base:
    @hook
    def respond(self, messages: Any, state: Any, *, extra: Any = None) -> None: ...

    @inline_hook
    def set_up(self, state: Any) -> None: ...

    def plain(self) -> None: ...


def of(**methods: Any) -> type:
    return type("Mine", (Base,), methods)


class Calls:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    "own",
    [
        *[lambda self, messages, state: None, lambda self, a, b, c=1, **others: None, lambda self, *args: None],
        staticmethod(lambda messages, state: None),
        classmethod(lambda cls, messages, state: None),
        *[functools.partialmethod(Base.respond, extra=1), Calls(), print],
    ],
)
def test_overrides_that_can_be_called(own: Any) -> None:
    check_hooks(of(respond=own))
    check_hooks(of(plain=None))


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (lambda self, messages: None, r"must have respond\(self, messages, state\), got respond\(self, messages\)"),
        (lambda self, messages, state, more: None, "missing"),
        (lambda self, messages, *, state: None, "respond"),
        (staticmethod(lambda self, messages, state: None), "respond"),
        (staticmethod(lambda messages: None), "respond"),
        (classmethod(lambda cls, messages: None), "respond"),
        (None, "must be a method, got NoneType"),
        (property(lambda self: None), "must be a method, got property"),
        ("text", "must be a method, got str"),
    ],
)
def test_overrides_that_cannot(own: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        check_hooks(of(respond=own))
    with pytest.raises(ConfigurationError, match=says):
        check_hooks(type("Later", (of(respond=own),), {}))


def test_which_hooks_are_replaced() -> None:
    assert find_replaced(Base) == frozenset()
    assert find_replaced(of(respond=lambda self, messages, state: None)) == frozenset()
    mine = of(set_up=lambda self, state: None)
    assert find_replaced(mine) == {"set_up"}
    obj, other = Base(), Base()
    assert find_put_on(obj) == frozenset()
    obj.set_up = obj.plain = lambda *args: None  # type: ignore[method-assign]
    assert (find_put_on(obj), find_put_on(other)) == ({"set_up"}, frozenset())
    assert [is_replaced(each, "set_up", Base.set_up) for each in (obj, other, mine())] == [True, False, True]


def test_what_hides_a_private_method_of_the_library_is_told(caplog: pytest.LogCaptureFixture) -> None:
    library = type("Library", (), {"__module__": "vfgym.some", "_private": lambda self: None, "__eq__": None, "_data": 7, "open": print})
    warn_of_hidden(type("Mine", (library,), {"_private": staticmethod(lambda: None), "__eq__": print, "open": print, "_own": print}))
    assert [record.getMessage().partition(", which")[0] for record in caplog.records] == ["Mine._private hides a private method of Library"]
    caplog.clear()
    warn_of_hidden(type("Its", (library,), {"__module__": "verifiers_compat.x", "_private": print}))
    warn_of_hidden(type("Other", (type("Theirs", (), {"__module__": "x", "_private": print}),), {"_private": print}))
    assert caplog.records == []


@pytest.mark.parametrize(("value", "kind"), [(7, "int"), (None, "NoneType"), (int, "the class int"), (Base(), "Base")])
def test_what_an_argument_is(value: Any, kind: str) -> None:
    assert kind_of(value) == kind


def test_what_an_argument_lists() -> None:
    assert (items_of(None, "tools", "functions"), items_of((), "tools", "functions"), items_of(iter("ab"), "x", "y")) == (
        [],
        [],
        ["a", "b"],
    )
    for wrong, says in (
        *[("ab", "got str$"), (b"ab", "got bytes$"), (0, "got int$")],
        ({}, "got dict"),
        (7, "got int"),
        (print, r"write tools=\[print\]"),
        (Base, r"write tools=\[Base\]"),
    ):
        with pytest.raises(ConfigurationError, match=f"tools must be a list of functions, .*{says}"):
            items_of(wrong, "tools", "functions")
