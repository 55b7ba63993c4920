"""Loops that copy or search a whole text each time, found by their form: they take quadratic time, all of it in C.

Found are, inside of a loop or a comprehension:

- a name that becomes a part of itself (``text = text[1:]``, ``text = text.removeprefix(word)``), unless it is a `memoryview`, whose slices
  copy nothing, or the loop goes a few times at most (``for _ in range(10)``, ``for sign in ("*", "_")``);
- a search of a text that the loop does not change, from its beginning (``text.find(word)``; not ``text.find(word, start)``);
- ``pop(0)`` and ``insert(0, ...)``, which move all that follows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_WITH_A_START = frozenset({"find", "rfind", "index", "rindex", "count"})
_CUTS = frozenset({"removeprefix", "removesuffix"})
_SEARCHES = _WITH_A_START | {"partition", "rpartition", "split", "rsplit", "splitlines", "replace"}


def wasteful_loops() -> Iterator[str]:
    """Give all such places of the packages."""
    for package in ("vfgym", "verifiers_compat"):
        for path in sorted((_ROOT / package).rglob("*.py")):
            for found in wasteful_in(path.read_text(encoding="utf-8")):
                yield f"{path.relative_to(_ROOT)}: {found}"


def wasteful_in(code: str) -> list[str]:
    """Return such places of some code, each once."""
    tree = ast.parse(code)
    found = []
    others, views = _imported(tree) | {"self", "cls"}, _views(tree)
    for loop in ast.walk(tree):
        repeated = _repeated(loop)
        known = _bound(loop) | others if repeated else others
        for node in (each for part in repeated for each in ast.walk(part) if isinstance(each, ast.Assign | ast.Call)):
            cuts = _cuts_itself(node, views) and not _goes_a_few_times(loop)
            if cuts or _moves_all(node) or _searches_again(node, known):
                found.append(ast.unparse(node))
    return list(dict.fromkeys(found))


def _moves_all(call: ast.AST) -> bool:
    if not isinstance(call, ast.Call):
        return False
    is_first = bool(call.args) and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0 and call.args[0].value is not False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return is_first and ((name == "pop" and len(call.args) == 1) or (name == "insert" and len(call.args) == 2))


def _cuts_itself(node: ast.AST, views: set[str]) -> bool:
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        return False
    name, value = node.targets[0].id, node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CUTS:
        whole = value.func.value
    elif isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
        whole = value.value
    else:
        return False
    return isinstance(whole, ast.Name) and whole.id == name and name not in views


def _goes_a_few_times(loop: ast.AST) -> bool:
    """Tell whether it goes over values that stand there, or a `range` of numbers that do, or of constants."""
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    if isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) == "range":
        return all(isinstance(each, ast.Constant) or (isinstance(each, ast.Name) and each.id.isupper()) for each in loop.iter.args)
    return isinstance(loop.iter, ast.Tuple | ast.List) and not any(isinstance(each, ast.Starred) for each in loop.iter.elts)


def _searches_again(node: ast.AST, others: set[str]) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)):
        return False
    name = node.func.attr
    begins_anew = name in _SEARCHES and (name not in _WITH_A_START or len(node.args) < 2)
    return begins_anew and node.func.value.id not in others


def _repeated(loop: ast.AST) -> list[ast.AST]:
    """Return what a loop does again and again; nothing of what is no loop."""
    if isinstance(loop, ast.While):
        return [loop.test, *loop.body]
    if isinstance(loop, _LOOPS):
        return list(loop.body)
    if isinstance(loop, _COMPREHENSIONS):
        values: list[ast.AST] = [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]
        return [*values, *(condition for each in loop.generators for condition in each.ifs)]
    return []


def _bound(loop: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _views(tree: ast.AST) -> set[str]:
    """Return the names that are given to a `memoryview`."""
    made = (node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call))
    return {ast.unparse(node.targets[0]) for node in made if ast.unparse(node.value.func) == "memoryview"}  # type: ignore[attr-defined]


def _imported(tree: ast.AST) -> set[str]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {(each.asname or each.name).partition(".")[0] for node in imports for each in node.names}
