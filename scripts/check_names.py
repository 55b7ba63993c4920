"""Check names: no retired word of the glossary in those of modules, classes, functions and options, and no class name twice in a package.

usage: python scripts/check_names.py

Exits with 1, and a line for each name, where there is one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("vfgym", "verifiers_compat", "verifiers_compat/v1")
"""Namespaces: a class name stands once in each. (Documented names of verifiers stand in several.)"""


def read_retired_words(glossary: str) -> dict[str, str]:
    """Return the retired words, each with what to use instead: the table that ends the glossary."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", glossary.partition("## Retired words")[2], re.MULTILINE)
    return {word: instead for words, instead in rows for word in words.split(", ") if word != "not"}


def split_name(name: str) -> str:
    """Return a name with its words in lower case, each between underscores: ``_left_out_log_`` of ``LeftOutLog``."""
    return f"_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])|-+', '_', name).lower().strip('_')}_"


def find_names(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the kind and the name of each class, function and option of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, "class", node.name
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, "function", node.name
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                yield argument.lineno, "argument", argument.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"--[a-z][a-z-]*", node.value):
            yield node.lineno, "option", node.value


def find_modules(package: str) -> list[Path]:
    """Return the modules of a package, without those of a package inside it that is listed too."""
    inner = [ROOT / other for other in PACKAGES if other.startswith(f"{package}/")]
    return [path for path in sorted((ROOT / package).rglob("*.py")) if not any(path.is_relative_to(folder) for folder in inner)]


def find_problems() -> Iterator[str]:
    """Yield a line for each name that breaks a rule."""
    retired = read_retired_words((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    for package in PACKAGES:
        places: dict[str, list[str]] = defaultdict(list)
        for path in find_modules(package):
            shown_path = path.relative_to(ROOT)
            names = [(1, "module", path.stem), *find_names(ast.parse(path.read_text(encoding="utf-8")))]
            for line, kind, name in names:
                if kind == "class":
                    places[name].append(f"{shown_path}:{line}")
                for word, instead in retired.items():
                    if f"_{word}_" in split_name(name):
                        yield f"{shown_path}:{line}: {kind} {name}: {word} is retired, use {instead} (docs/glossary.md)"
        for name, where in places.items():
            if len(where) > 1 and not name.startswith("_"):
                yield f"{', '.join(where)}: {len(where)} classes of {package} are called {name}: give each a name of its own"


def main() -> int:
    """Print the problems; return the exit code."""
    problems = list(find_problems())
    print("\n".join(problems) or "names: good")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
