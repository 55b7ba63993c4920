"""The classes of a package, read from their syntax trees: their bases, what they define, and what they ask of themselves."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from verifiers_compat.cli.packages.imports import walk

PathOf = Callable[[ast.AST], "str | None"]
"""Says which dotted path an expression stands for, or None."""


@dataclass(frozen=True)
class Use:
    """A place where something is used."""

    path: str
    """Dotted path of the name, as the module's imports make it."""
    file: str
    line: int
    is_optional: bool = False
    keywords: tuple[str, ...] = ()
    """Keyword arguments that it is called with here."""

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Decorator:
    """What stands over a method or a class."""

    path: str | None
    """Its dotted path, or None where it has none."""
    arguments: dict[str, Any] | None
    """The keyword arguments that it is called with, as far as they are literals; None where it is not called."""


@dataclass(frozen=True)
class Method:
    """A method of a class of the package."""

    use: Use
    """Where it is; the path is its name."""
    signature: inspect.Signature
    """Its parameters; what they are by default is not known, but whether they have a default."""
    decorators: tuple[Decorator, ...]


@dataclass(frozen=True)
class OwnClass:
    """A class of the package."""

    path: str
    bases: tuple[str | None, ...]
    """Dotted paths of its bases; None for one that has none."""
    is_plain: bool
    """Whether it is what its text says: without decorators, a metaclass and attributes that are made up as they are asked for."""
    methods: tuple[Method, ...]
    attributes: frozenset[str]
    """Names that it gives itself: assigned in its body, or to ``self``."""
    inherited: tuple[Use, ...]
    """What it asks ``super()`` for: the path is the attribute's name."""
    asked: tuple[Use, ...]
    """What it calls of itself, ``self.name(...)``: the path is the name."""
    use: Use
    """Where it is."""


def read_class(node: ast.ClassDef, module: str, file: str, path_of: PathOf) -> OwnClass:
    """Return a class of a module.

    Args:
        node: Its definition.
        module: Name of the module.
        file: The module's path in the package.
        path_of: Says which dotted path an expression of the module stands for.
    """
    functions = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = {each.name for each in functions}
    return OwnClass(
        path=f"{module}.{node.name}",
        bases=tuple(_base_of(base.value if isinstance(base, ast.Subscript) else base, path_of) for base in node.bases),
        is_plain=not node.decorator_list and not node.keywords and not names & {"__getattr__", "__getattribute__"},
        methods=tuple(
            Method(Use(each.name, file, each.lineno), signature_of(each.args), tuple(_decorators_of(each, path_of))) for each in functions
        ),
        attributes=frozenset(_written_by(node, functions)),
        inherited=tuple(_find_inherited(node, file)),
        asked=tuple(use for each in functions for use in _find_asked(each, file)),
        use=Use(node.name, file, node.lineno),
    )


def _base_of(node: ast.AST, path_of: PathOf) -> str | None:
    path = path_of(node)
    if path is None and isinstance(node, ast.Name) and hasattr(builtins, node.id):
        return f"builtins.{node.id}"
    return path


def signature_of(arguments: ast.arguments) -> inspect.Signature:
    """Return the signature that the arguments of a function make. A default is None, whatever it is."""
    kinds = inspect.Parameter
    positional = [*arguments.posonlyargs, *arguments.args]
    without = len(positional) - len(arguments.defaults)
    parameters = [
        kinds(
            each.arg,
            kinds.POSITIONAL_ONLY if number < len(arguments.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD,
            default=kinds.empty if number < without else None,
        )
        for number, each in enumerate(positional)
    ]
    if arguments.vararg is not None:
        parameters.append(kinds(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(kinds(each.arg, kinds.KEYWORD_ONLY, default=kinds.empty if default is None else None))
    if arguments.kwarg is not None:
        parameters.append(kinds(arguments.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _decorators_of(node: ast.FunctionDef | ast.AsyncFunctionDef, path_of: PathOf) -> Iterator[Decorator]:
    for each in node.decorator_list:
        called = isinstance(each, ast.Call)
        func = each.func if isinstance(each, ast.Call) else each
        yield Decorator(_base_of(func, path_of), _literals_of(each) if called else None)


def _literals_of(call: ast.AST) -> dict[str, Any]:
    keywords = call.keywords if isinstance(call, ast.Call) else []
    return {each.arg: each.value.value for each in keywords if each.arg is not None and isinstance(each.value, ast.Constant)}


def _written_by(node: ast.ClassDef, functions: list[ast.FunctionDef | ast.AsyncFunctionDef]) -> Iterator[str]:
    """Yield the names that a class has without being methods."""
    for each in node.body:
        if isinstance(each, ast.Assign):
            names = (part for target in each.targets for part in ast.walk(target) if isinstance(part, ast.Name))
            yield from (name.id for name in names if isinstance(name.ctx, ast.Store))
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id
        elif isinstance(each, ast.ClassDef):
            yield each.name
    for function in functions:
        yield from written_to(function, _first_argument(function))


def written_to(node: ast.AST, name: str | None) -> Iterator[str]:
    """Yield the attributes that are written to an object of this name."""
    for each in ast.walk(node):
        if (
            isinstance(each, ast.Attribute)
            and isinstance(each.ctx, ast.Store)
            and isinstance(each.value, ast.Name)
            and each.value.id == name
        ):
            yield each.attr


def _first_argument(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    arguments = [*function.args.posonlyargs, *function.args.args]
    return arguments[0].arg if arguments else None


def _find_asked(function: ast.FunctionDef | ast.AsyncFunctionDef, file: str) -> Iterator[Use]:
    name = _first_argument(function)
    is_static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in function.decorator_list)
    for node, is_optional in [] if is_static else walk(function):
        func = node.func if isinstance(node, ast.Call) else None
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == name and isinstance(node, ast.Call):
            yield Use(func.attr, file, node.lineno, is_optional, tuple(keywords_of(node)))


def _find_inherited(owner: ast.ClassDef, file: str) -> Iterator[Use]:
    calls = {id(node.func): node for node in ast.walk(owner) if isinstance(node, ast.Call)}
    for node, is_optional in walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) and _is_super(node.value):
            call = calls.get(id(node))
            yield Use(node.attr, file, node.lineno, is_optional, tuple(keywords_of(call)) if call else ())


def keywords_of(call: ast.Call) -> list[str]:
    """Return the names of a call's keyword arguments."""
    return [each.arg for each in call.keywords if each.arg is not None]


def _is_super(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "super"
