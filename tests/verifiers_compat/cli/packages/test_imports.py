"""What a module imports, read from its text: what, from where, and whether it can do without."""

from __future__ import annotations

import ast

import pytest

from verifiers_compat.cli.packages.imports import Import, Source, find_imports


def imports_of(text: str, file: str = "pack/deep/mod.py") -> list[Import]:
    """Return what a module imports."""
    module = file.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    return list(find_imports(Source(module, file, ast.parse(text))))


@pytest.mark.parametrize(
    ("text", "path", "bound", "target"),
    [
        ("import a", "a", "a", "a"),
        ("import a.b", "a.b", "a", "a"),
        ("import a.b as c", "a.b", "c", "a.b"),
        ("from a.b import c", "a.b.c", "c", "a.b.c"),
        ("from a import b as c", "a.b", "c", "a.b"),
        ("from a import *", "a", "*", "a"),
        ("from . import c", "pack.deep.c", "c", "pack.deep.c"),
        ("from .c import d", "pack.deep.c.d", "d", "pack.deep.c.d"),
        ("from .. import c", "pack.c", "c", "pack.c"),
        ("from ..c import d", "pack.c.d", "d", "pack.c.d"),
    ],
)
def test_what_is_imported_and_what_its_name_stands_for(text: str, path: str, bound: str, target: str) -> None:
    [found] = imports_of(text)
    assert (found.path, found.bound, found.target) == (path, bound, target)


def test_every_import_is_found_with_its_line_and_relative_ones_begin_at_the_package() -> None:
    text = "import a, b\n\ndef f():\n    from c import (\n        d,\n        e,\n    )\n\nclass A:\n    import g\n"
    assert [(each.path, each.line) for each in imports_of(text)] == [("a", 1), ("b", 1), ("c.d", 4), ("c.e", 4), ("g", 10)]
    assert [each.path for each in imports_of("from . import a\nfrom .. import b", "pack/deep/__init__.py")] == ["pack.deep.a", "pack.b"]


@pytest.mark.parametrize(
    ("text", "is_optional"),
    [
        ("import a", False),
        *((f"try:\n    import a\nexcept {error}:\n    pass", True) for error in ("ImportError", "ModuleNotFoundError", "AttributeError")),
        *((f"try:\n    import a\nexcept {error}:\n    pass", True) for error in ("Exception", "BaseException", "(KeyError, ImportError)")),
        ("try:\n    import a\nexcept:\n    pass", True),
        ("try:\n    import a\nexcept KeyError:\n    pass", False),
        ("try:\n    import a\nexcept ImportError:\n    raise", False),
        ("try:\n    import a\nexcept ImportError:\n    print()\n    raise SystemExit", False),
        ("try:\n    def f():\n        import a\nexcept ImportError:\n    pass", True),
        ("try:\n    import a\nfinally:\n    pass", False),
        ("if TYPE_CHECKING:\n    import a", True),
        ("if typing.TYPE_CHECKING:\n    import a", True),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import a", False),
        ("if __name__ == '__main__':\n    import a", True),
        ("if True:\n    import a", False),
    ],
)
def test_what_a_module_goes_on_without(text: str, is_optional: bool) -> None:
    [found] = imports_of(text)
    assert found.is_optional is is_optional
