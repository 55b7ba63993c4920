"""Which test file is a module's own: tests mirror the packages, so the tests of ``vfgym/a/b.py`` are in ``tests/a/test_b.py``.

    python scripts/own_tests.py

lists the modules that define something and have no test file of their name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("vfgym", "verifiers_compat")


def modules(root: Path = ROOT) -> Iterator[Path]:
    """Give the modules of both packages, as paths below the root. What is copied into programs (`inside/` of data) is among them."""
    for package in PACKAGES:
        yield from (path.relative_to(root) for path in sorted((root / package).rglob("*.py")))


def own_test_file(module: Path) -> Path:
    """Return where the tests of a module belong, as a path below the root.

    Those of a package itself (its ``__init__``) are named like the package, and lie in its folder.

    >>> for name in ("vfgym/state.py", "vfgym/cli/__init__.py", "vfgym/__main__.py", "verifiers_compat/utils/data_utils.py"):
    ...     print(own_test_file(Path(name)))
    tests/test_state.py
    tests/cli/test_cli.py
    tests/test_main.py
    tests/verifiers_compat/utils/test_data_utils.py
    """
    package, *folders = module.parent.parts
    name = module.parent.name if module.name == "__init__.py" else module.stem.strip("_")
    return Path("tests", *([package] if package != PACKAGES[0] else []), *folders, f"test_{name}.py")


def defines_something(module: Path, root: Path = ROOT) -> bool:
    """Say whether a module has a function or a class of its own."""
    tree = ast.parse((root / module).read_bytes())
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) for node in ast.walk(tree))


def modules_without_tests(root: Path = ROOT) -> list[Path]:
    """Return the modules that define something and have no test file of their name."""
    return [module for module in modules(root) if not (root / own_test_file(module)).is_file() and defines_something(module, root)]


if __name__ == "__main__":
    print(*modules_without_tests(), sep="\n")
