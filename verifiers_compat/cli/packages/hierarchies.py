"""What the classes of a package ask of their bases, held against the classes that are here.

Each class is made anew, with methods that take what its own take and do nothing, on the bases that it will have here. So Python says which
method is meant where, and the bases refuse what they refuse of any class (hooks that they could not call, say). Nothing of the package
runs.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from verifiers_compat import decorators
from verifiers_compat.alias import REAL
from verifiers_compat.cli.packages.classes import Decorator, Method, OwnClass, Use, written_to
from verifiers_compat.cli.packages.offers import find_refused, offered_or_none
from vfgym.errors import ConfigurationError

_NO_BASES = frozenset({"typing.Generic", "typing.Protocol", "typing_extensions.Protocol", "builtins.object"})
_LIBRARIES = (REAL, "vfgym")
_NO_METHOD = "the class has no such method here"


@dataclass(frozen=True)
class Finding:
    """Something that a class expects and that is not so here."""

    name: str
    reason: str
    use: Use


class Hierarchies:
    """The classes of a package on the bases that they have here."""

    def __init__(self, classes: Iterable[OwnClass], written: Iterable[str]) -> None:
        """Make the classes.

        Args:
            classes: Those of the package.
            written: Names of attributes that the package writes to any object.
        """
        self._own = {each.path: each for each in classes}
        self._written = frozenset(written)
        self._made: dict[str, type | None] = {}
        self._own_of: dict[type, OwnClass] = {}
        self._named: dict[type, str] = {}
        """The paths by which the package names bases that are not its own."""
        self._unknown: set[str] = set()
        """Classes of which not all bases are known."""
        self._refused: dict[str, Finding] = {}
        for path in self._own:
            self._make(path)

    def named_bases(self, path: str) -> dict[str, type]:
        """Return the classes of verifiers that a class of the package refines, by the paths by which they are named."""
        made = self._made.get(path)
        bases = [] if made is None else [base for own in self._own_in(made) for base in own.bases]
        found = {base: offered_or_none(base) for base in bases if base is not None}
        return {base: cls for base, cls in found.items() if isinstance(cls, type)}

    def constructor_of(self, path: str) -> tuple[str, Any] | None:
        """Return the path and the class whose constructor a class of the package has, where it is one of verifiers."""
        made = self._made.get(path)
        if made is None or path in self._unknown or not all(each.is_plain for each in self._own_in(made)):
            return None
        owner = _owner_of(made.__mro__, "__init__")
        return None if owner is None or owner in self._own_of else (self._path_of(owner), owner)

    def find(self) -> Iterator[Finding]:
        """Yield what the classes expect that is not so here."""
        yield from self._refused.values()
        refined = {base for each in self._own.values() for base in each.bases}
        for path in self._own:
            made = self._made[path]
            if path in refined or path in self._unknown or made is None or not self.named_bases(path):
                continue  # what a base lacks, the classes that refine it may have
            for own in self._own_in(made):
                yield from self._find_inherited(own, made)
                if all(each.is_plain for each in self._own_in(made)):
                    yield from self._find_asked(own, made)

    def find_in_objects(self, asked: Iterable[tuple[str, Use]]) -> Iterator[Finding]:
        """Yield what is called of objects and is not there, or does not take what it is given.

        Args:
            asked: Paths of the objects' classes, each with the method that is called.
        """
        for path, use in asked:
            made = self._made.get(path) if path in self._own else offered_or_none(path)
            if not isinstance(made, type) or path in self._unknown or not all(each.is_plain for each in self._own_in(made)):
                continue
            known = self._written.union(_written_by_library(made), *(each.attributes for each in self._own_in(made)))
            owner = _owner_of(made.__mro__, use.path)
            if owner is not None and owner not in self._own_of:
                yield from self._refusals(owner, use, path)
            elif owner is None and use.path not in known and not hasattr(made, use.path):
                yield Finding(f"{path}.{use.path}", _NO_METHOD, use)

    def _own_in(self, made: type) -> list[OwnClass]:
        return [self._own_of[each] for each in made.__mro__ if each in self._own_of]

    def _find_inherited(self, own: OwnClass, made: type) -> Iterator[Finding]:
        """Yield what ``super()`` is asked for and does not have, or does not take."""
        place = next(number for number, each in enumerate(made.__mro__) if self._own_of.get(each) is own)
        for use in own.inherited:
            owner = _owner_of(made.__mro__[place + 1 :], use.path)
            if owner is None:
                yield from self._missing(made, use)
            elif owner not in self._own_of:
                yield from self._refusals(owner, use)

    def _find_asked(self, own: OwnClass, made: type) -> Iterator[Finding]:
        """Yield what is called of ``self`` and is not there, or does not take what it is given."""
        known = self._written.union(*(each.attributes for each in self._own_in(made)))
        for use in own.asked:
            owner = _owner_of(made.__mro__, use.path)
            if owner is not None and owner not in self._own_of:
                yield from self._refusals(owner, use)
            elif owner is None and use.path not in known and use.path not in _written_by_library(made):
                yield from self._missing(made, use)

    def _missing(self, made: type, use: Use) -> Iterator[Finding]:
        yield Finding(f"{next(iter(self.named_bases(self._own_of[made].path)))}.{use.path}", _NO_METHOD, use)

    def _refusals(self, owner: type, use: Use, path: str | None = None) -> Iterator[Finding]:
        """Yield the keyword arguments that a method of verifiers does not take."""
        is_constructor = use.path == "__init__"
        name = path or self._path_of(owner)
        name = name if is_constructor else f"{name}.{use.path}"
        for keyword in find_refused(owner if is_constructor else vars(owner)[use.path], use.keywords):
            yield Finding(f"{name}({keyword}=...)", f"it takes no argument {keyword!r} here", use)

    def _path_of(self, owner: type) -> str:
        """Return the path of a class that the package names, which is the owner or refines it; the owner's name where none does."""
        return next((path for base, path in self._named.items() if issubclass(base, owner)), owner.__name__)

    def _make(self, path: str) -> type | None:
        """Make a class of the package, after its bases; return it, or None where that cannot be done."""
        if path in self._made:
            return self._made[path]
        self._made[path] = None  # of what refines itself
        own = self._own[path]
        bases = [base for each in own.bases if each not in _NO_BASES and (base := self._resolve(path, each)) is not None]
        made: type | None
        try:
            made = _class_of(own, bases)
        except ConfigurationError as error:
            self._refused[path] = Finding(own.use.path, str(error), _place_of(own, str(error)))
            made = self._base_for_others(own, bases)
            self._unknown.add(path)
        except TypeError:  # Python itself refuses it: the bases do not go together, or one of them cannot be refined
            made = None
            self._unknown.add(path)
        if made is not None:
            self._own_of[made] = own
        self._made[path] = made
        return made

    def _base_for_others(self, own: OwnClass, bases: list[type]) -> type | None:
        """Return a class that was refused without its methods, so that those that refine it are not blamed for them."""
        try:
            return _class_of(own, bases, has_methods=False)
        except ConfigurationError:  # what is refused comes from a base
            return None

    def _resolve(self, path: str, base: str | None) -> type | None:
        """Return the class that a base is, and note where it is not known."""
        found: Any = None
        if base in self._own:
            found = self._make(base)
            if base in self._unknown:
                self._unknown.add(path)
        elif base is not None and base.startswith("verifiers."):
            found = offered_or_none(base)
            if isinstance(found, type):
                self._named.setdefault(found, base)
        elif base is not None and base.partition(".")[0] in sys.stdlib_module_names | {"builtins"}:
            module, _, name = base.rpartition(".")
            found = getattr(importlib.import_module(module), name, None)
        if not isinstance(found, type):
            self._unknown.add(path)
            return None
        return found


def _class_of(own: OwnClass, bases: list[type], *, has_methods: bool = True) -> type:
    def fill(namespace: dict[str, Any]) -> None:
        namespace["__module__"] = own.path.rpartition(".")[0]
        for method in own.methods if has_methods else ():
            name = method.use.path
            hides = name.startswith("_") and any(hasattr(base, name) for base in bases)  # a private one, which is reported
            if name == "__init__" or not (hides or name.startswith("__")):
                namespace[name] = _stub_of(method)

    return types.new_class(own.path.rpartition(".")[2], tuple(bases), {}, fill)


def _stub_of(method: Method) -> Any:
    """Return something that can be called as a method can, and does nothing."""

    def stub(*args: Any, **kwargs: Any) -> None:
        return None

    stub.__name__ = stub.__qualname__ = method.use.path
    stub.__signature__ = method.signature  # type: ignore[attr-defined]
    made: Any = stub
    for decorator in reversed(method.decorators):
        made = _decorated(made, decorator)
    return made


def _decorated(made: Any, decorator: Decorator) -> Any:
    """Return what a decorator makes of a method: those of Python and of verifiers are known, others may make anything of it."""
    path = decorator.path or ""
    if path in ("builtins.staticmethod", "builtins.classmethod", "builtins.property", "functools.cached_property"):
        return {"staticmethod": staticmethod, "classmethod": classmethod}.get(path.partition(".")[2], property)(made)
    mark: Any = offered_or_none(path)
    if any(mark is each for each in vars(decorators).values()) and callable(mark):
        return mark(made) if decorator.arguments is None else mark(**decorator.arguments)(made)
    return made if path in ("abc.abstractmethod", "typing.override") else _Anything()


class _Anything:
    """Stands for what nobody knows; it can be called with anything."""

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        return None


def _place_of(own: OwnClass, text: str) -> Use:
    """Return the place of the method that an error is about; the class's where it names none."""
    return next((method.use for method in own.methods if f"{method.use.path}(" in text or f".{method.use.path} " in text), own.use)


def _owner_of(mro: Iterable[type], name: str) -> type | None:
    return next((each for each in mro if name in vars(each) and each is not object), None)


@functools.cache
def _written_by_library(made: type) -> frozenset[str]:
    """Return the names that the classes of this library write to ``self``, or declare."""
    found: set[str] = set()
    for each in made.__mro__:
        if each.__module__.partition(".")[0] in _LIBRARIES:
            found.update(_written_in(each), vars(each).get("__annotations__", ()))
    return frozenset(found)


@functools.cache
def _written_in(cls: type) -> frozenset[str]:
    tree = _tree_of(cls.__module__)
    definitions = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == cls.__name__]
    return frozenset(name for node in definitions for name in written_to(node, "self"))


@functools.cache
def _tree_of(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(sys.modules[module]))
