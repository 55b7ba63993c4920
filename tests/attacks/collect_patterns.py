"""The regular expressions of the packages: those that modules keep, those that stand in calls of `re`, and how each is used."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("vfgym", "verifiers_compat")
_ROOT = Path(__file__).parents[2]
_ANCHORED = frozenset({"match", "fullmatch"})
_METHODS = _ANCHORED | {"search", "sub", "subn", "findall", "finditer", "split"}


class Use(NamedTuple):
    """One pattern of a module."""

    place: str
    """The module, and the name or the text of the pattern."""
    pattern: re.Pattern[str]
    is_searched: bool
    is_full: bool


def patterns() -> Iterator[Use]:
    """Give all patterns of the packages that are known without running their functions."""
    for name, tree in _modules():
        kept = _kept_patterns(name)
        used = defaultdict(set)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in _METHODS:
                for part in ast.walk(node.value):
                    if isinstance(part, ast.Name) and part.id in kept:
                        used[part.id].add(node.attr)
            if isinstance(node, ast.Call) and _is_of_re(node.func) and node.args and isinstance(node.args[0], ast.Constant):
                method = node.func.attr  # type: ignore[attr-defined]
                if method != "compile":
                    flags = [each.value for each in [*node.args, *node.keywords] if isinstance(each, ast.keyword) and each.arg == "flags"]
                    assert not flags, f"{name}: the flags of {ast.unparse(node)} are not looked at"
                    pattern = re.compile(node.args[0].value, re.IGNORECASE if "re.IGNORECASE" in ast.unparse(node) else 0)
                    yield Use(f"{name}: {pattern.pattern}", pattern, method not in _ANCHORED, method == "fullmatch")
        for attribute, several in kept.items():
            methods = used[attribute]
            for pattern in several:
                # One that other modules import, or that is used in another way, may be searched for.
                yield Use(f"{name}.{attribute}", pattern, not methods or not methods <= _ANCHORED, methods == {"fullmatch"})


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            source = path.read_text()
            if "import re\n" in source:
                parts = path.relative_to(_ROOT).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), ast.parse(source)


def _kept_patterns(module: str) -> dict[str, list[re.Pattern[str]]]:
    names = vars(importlib.import_module(module))
    found = {name: list(_inside(value)) for name, value in names.items()}
    return {name: several for name, several in found.items() if several}


def _inside(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _inside(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _inside(each)


def _is_of_re(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"
