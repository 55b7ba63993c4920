"""Which texts are formulas, that may be evaluated as Python."""

from __future__ import annotations

import ast

_FUNCTIONS = frozenset(
    {"sqrt", "exp", "log", "ln", "Abs", "sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh"}
)
_NODES = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.operator, ast.unaryop, ast.expr_context)


def is_formula(text: str) -> bool:
    """Say whether a text is a formula of numbers, symbols, operators and common functions, in Python's notation.

    Nothing else is run as code: a formula may take long, but has no effects.

    >>> is_formula("x**2/2 - cos(3*x) + C"), is_formula("(8 - 2)*(3 + 1)"), is_formula("9**9**9")
    (True, True, True)
    >>> is_formula("exit()"), is_formula("().__class__"), is_formula("x[0]")
    (False, False, False)
    """
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # all four can be had from unsuitable text
        return False
    return all(_is_formula_node(node) for node in ast.walk(tree))


def _is_formula_node(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(name), keywords=[]):
            return name in _FUNCTIONS
        case ast.Constant(value):
            return type(value) in (int, float)
        case _:
            return isinstance(node, _NODES)
