"""The modules of a package: the environment's own one, and those of the package that it imports, one after the other."""

from __future__ import annotations

import ast
import warnings
from collections import deque
from collections.abc import Iterator
from importlib.resources.abc import Traversable

from verifiers_compat.cli.packages.imports import Source, find_imports
from vfgym.errors import ConfigurationError

LOADER = "load_environment"


def read_sources(root: Traversable, distribution: str) -> list[Source]:
    """Return the modules that are imported with an environment, its own one first.

    The environment's module is called as its distribution is, with ``_`` for ``-``; where there is none, each module at the top of the
    package that has a name ``load_environment``. Tests, scripts and whatever else no one of these imports is not read.

    Args:
        root: The project's directory, or the inside of a wheel.
        distribution: Name of its distribution.

    Returns:
        The modules; an empty list where no environment is found.

    Raises:
        ConfigurationError: If one of them is not Python.
    """
    roots = [root, root / "src"]
    own = distribution.replace("-", "_").replace(".", "_").lower()
    first = _read(roots, own)
    waiting = deque([first] if first is not None else [each for each in _read_top(roots) if defines(each, LOADER)])
    found: dict[str, Source] = {}
    while waiting:
        source = waiting.popleft()
        if source.module in found:
            continue
        found[source.module] = source
        names = dict.fromkeys(part for each in find_imports(source) for part in _prefixes(each.path))
        waiting += [read for name in names if name not in found and (read := _read(roots, name)) is not None]
    return list(found.values())


def defines(source: Source, name: str) -> bool:
    """Say whether a module has a name at its top: defined, assigned or imported (``from x import *`` may bring any)."""
    for node in source.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Assign) and any(isinstance(each, ast.Name) and each.id == name for each in node.targets):
            return True
    return any(each.bound in (name, "*") for each in find_imports(source))


def _prefixes(path: str) -> list[str]:
    """Return the modules that importing a dotted path imports: ``a``, ``a.b``, ``a.b.c``."""
    parts = path.split(".")
    return [".".join(parts[: i + 1]) for i in range(len(parts))]


def _read(roots: list[Traversable], module: str) -> Source | None:
    """Return a module of the package, or None where it is not of it."""
    path = module.replace(".", "/")
    for root in roots:
        for file in (f"{path}/__init__.py", f"{path}.py"):
            found = root.joinpath(*file.split("/"))
            if module and found.is_file():
                return Source(module, file, _parse(found, file))
    return None


def _read_top(roots: list[Traversable]) -> Iterator[Source]:
    for root in filter(lambda each: each.is_dir(), roots):
        for entry in sorted(root.iterdir(), key=lambda each: each.name):
            source = _read([root], entry.name.removesuffix(".py")) if entry.name.removesuffix(".py").isidentifier() else None
            if source is not None:
                yield source


def _parse(file: Traversable, name: str) -> ast.Module:
    try:
        with warnings.catch_warnings(action="ignore"):  # of its text, which are for its author
            return ast.parse(file.read_bytes(), name)
    except (SyntaxError, ValueError) as error:
        raise ConfigurationError(f"{name} is not Python that can be read here: {error}") from error
