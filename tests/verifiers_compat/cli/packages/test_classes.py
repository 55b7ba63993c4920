"""The classes of a package, read from their text."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import pytest

from verifiers_compat.cli.packages.classes import OwnClass, read_class, signature_of

PATHS = {"Base": "verifiers.ToolEnv", "stop": "verifiers.stop"}


def read(text: str) -> OwnClass:
    """Return the class in a text."""
    node = ast.parse(text).body[-1]
    assert isinstance(node, ast.ClassDef)
    return read_class(node, "pack.mod", "pack/mod.py", lambda part: PATHS.get(part.id) if isinstance(part, ast.Name) else None)


def f(a: int, b: int = 1, /, c: int = 2, *args: int, d: int, e: int = 3, **kwargs: int) -> None: ...
def g(self: Any, a: int, b: int) -> None: ...
def h(*, a: int, b: int = 0) -> None: ...
def i() -> None: ...


@pytest.mark.parametrize("function", [f, g, h, i])
def test_a_signature_is_that_of_the_function(function: Any) -> None:
    """But for its defaults, which are None."""
    node = ast.parse(inspect.getsource(function)).body[0]
    assert isinstance(node, ast.FunctionDef)
    read, real = (list(each.parameters.values()) for each in (signature_of(node.args), inspect.signature(function)))
    assert [(each.name, each.kind, each.default is each.empty) for each in read] == [
        (each.name, each.kind, each.default is each.empty) for each in real
    ]
    assert {each.default for each in read} <= {None, inspect.Parameter.empty}


def test_all_that_a_class_is_made_of() -> None:
    own = read(
        "class Mine(Base, Generic[T], object, unknown()):\n"
        "    level: int = 1\n    a = b = 2\n    class Inner: ...\n"
        "    @stop(priority=3, name=name)\n    @other.thing\n    async def done(this, state):\n"
        "        this.seen = state\n        self.not_own = 1\n        await this.helper(key=1)\n"
        "    @staticmethod\n    def plain(self): self.ignored()\n"
        "    def go(self):\n        super().go(x=1, **more)\n        super().attribute\n"
    )
    assert (own.path, own.use.place) == ("pack.mod.Mine", "pack/mod.py:1")
    assert own.bases == ("verifiers.ToolEnv", None, "builtins.object", None)
    assert own.is_plain
    assert own.attributes == {"level", "a", "b", "Inner", "seen"}
    assert [(method.use.path, method.use.line, list(method.signature.parameters)) for method in own.methods] == [
        ("done", 7, ["this", "state"]),
        ("plain", 12, ["self"]),
        ("go", 13, ["self"]),
    ]
    assert [(each.path, each.arguments) for each in own.methods[0].decorators] == [("verifiers.stop", {"priority": 3}), (None, None)]
    assert [each.path for each in own.methods[1].decorators] == ["builtins.staticmethod"]
    assert [(use.path, use.line, use.keywords) for use in own.inherited] == [("go", 14, ("x",)), ("attribute", 15, ())]
    assert [(use.path, use.line, use.keywords) for use in own.asked] == [("helper", 10, ("key",))]


@pytest.mark.parametrize(
    "text",
    [
        "@dataclass\nclass A: ...",
        "class A(metaclass=M): ...",
        "class A:\n    def __getattr__(self, name): ...",
        "class A:\n    def __getattribute__(self, name): ...",
    ],
)
def test_classes_that_are_more_than_their_text_says(text: str) -> None:
    assert not read(text).is_plain


@pytest.mark.parametrize(
    ("body", "attributes"),
    [
        ("a, (b, *c) = 1, (2, 3)", {"a", "b", "c"}),
        ("a[b], c.d = 1, 2", set()),
        ("a = other = 1; b: int", {"a", "other", "b"}),
        ("def f(self): self.a, self.b = 1, 2; self.c += 1; self.d: int = 1; self.e.f = 1", {"a", "b", "c", "d"}),
        ("def f(self):\n        for self.a in x:\n            with y as self.b: ...", {"a", "b"}),
        ("def f(self, /, other): other.a = 1; self.b = other.c", {"b"}),
        ("def f(): self.a = 1", set()),
        ("async def f(*args): self.a = 1", set()),
        ("...", set()),
    ],
)
def test_what_a_class_gives_itself(body: str, attributes: set[str]) -> None:
    assert read(f"class A:\n    {body}\n").attributes == attributes


def test_what_a_class_can_do_without_is_optional_and_its_calls_have_their_places() -> None:
    own = read(
        "class A(Base):\n    def f(self):\n        try:\n            self.gone(a=1, **b)\n            super().lost()\n"
        "        except AttributeError: ...\n        self.needed(); super().f; self.inner.asked(); other.asked()\n"
        "    @classmethod\n    def g(cls): cls.made()\n    def h(): self.nothing()\n"
    )
    assert [(use.path, use.place, use.is_optional, use.keywords) for use in own.asked] == [
        *[("gone", "pack/mod.py:4", True, ("a",)), ("needed", "pack/mod.py:7", False, ()), ("made", "pack/mod.py:9", False, ())]
    ]
    assert [(use.path, use.place, use.is_optional) for use in own.inherited] == [
        ("lost", "pack/mod.py:5", True),
        ("f", "pack/mod.py:7", False),
    ]
