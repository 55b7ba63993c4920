"""What a module imports, read from its syntax tree: what, where, and whether it can do without."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"})
"""What a module catches that can do without an import or a name."""


@dataclass(frozen=True)
class Source:
    """A module of a package."""

    module: str
    """Its dotted name."""
    file: str
    """Its path in the package, with ``/``."""
    tree: ast.Module

    @property
    def parent(self) -> str:
        """Name of the package that its relative imports begin at."""
        return self.module if self.file.endswith("__init__.py") else self.module.rpartition(".")[0]


@dataclass(frozen=True)
class Import:
    """One name that an import statement binds."""

    module: str
    """The module that is imported."""
    name: str | None
    """What is taken from it: a name, ``"*"``, or None for the module itself."""
    bound: str
    """The name that it has in the module."""
    line: int
    is_optional: bool

    @property
    def path(self) -> str:
        """Dotted path of what is imported."""
        return self.module if self.name in (None, "*") else f"{self.module}.{self.name}"

    @property
    def target(self) -> str:
        """Dotted path that the bound name stands for: `import a.b` binds `a`."""
        return self.bound if self.name is None and self.module.startswith(f"{self.bound}.") else self.path


def find_imports(source: Source) -> Iterator[Import]:
    """Yield what a module imports, in functions too, in the order of its lines."""
    for node, is_optional in walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, None, alias.asname or alias.name.partition(".")[0], node.lineno, is_optional)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute_name(node, source.parent)
            for alias in node.names:
                yield Import(module, alias.name, alias.asname or alias.name, node.lineno, is_optional)


def _absolute_name(node: ast.ImportFrom, parent: str) -> str:
    if not node.level:
        return node.module or ""
    parts = parent.split(".")
    return ".".join(filter(None, [*parts[: len(parts) - node.level + 1], node.module]))


def walk(node: ast.AST, is_optional: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node below a node, in the order of the text, each with whether the module can do without it.

    That is so inside ``try`` where a missing import is caught and not raised again, and where only type checkers, or those who run
    the file as a program, come by.
    """
    for field, value in ast.iter_fields(node):
        optional = is_optional or (isinstance(node, ast.Try) and _goes_on(node)) or (field == "body" and _is_skipped(node))
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child, optional
                yield from walk(child, optional)


def _goes_on(node: ast.Try) -> bool:
    """Say whether a ``try`` statement goes on without an import."""
    return any(_catches_imports(each.type) and not isinstance(each.body[-1], ast.Raise) for each in node.handlers)


def _catches_imports(kinds: ast.expr | None) -> bool:
    named = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return any(each is None or (isinstance(each, ast.Name) and each.id in _CAUGHT) for each in named)


def _is_skipped(node: ast.AST) -> bool:
    """Say whether the body of an ``if`` statement is skipped where a module is imported."""
    if not isinstance(node, ast.If):
        return False
    names = {part.id if isinstance(part, ast.Name) else getattr(part, "attr", "") for part in ast.walk(node.test)}
    return "TYPE_CHECKING" in names or "__name__" in names
