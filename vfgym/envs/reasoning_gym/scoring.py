"""Scores that can be trusted: reasoning-gym's own scorers, without what is wrong with some of them.

The defects are those of reasoning-gym 0.1.25. An answer is text of a model, so a scorer must never run it as code: where
one does, only answers that are plain formulas or literals reach it.
"""

from __future__ import annotations

import ast
import logging
import math
import operator
import re
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

logger = logging.getLogger(__name__)

Entry: TypeAlias = "dict[str, Any]"
"""An item of a dataset as reasoning-gym made it: ``question``, ``answer`` and ``metadata``."""


class Scorer(Protocol):
    """What is asked of a dataset here."""

    def score_answer(self, answer: str | None, entry: Entry) -> float:
        """Return how good an answer is, from 0.0 to 1.0."""


def score(dataset: Scorer, name: str, answer: str | None, entry: Entry) -> float:
    """Return the score of an answer, from 0.0 to 1.0.

    Args:
        dataset: What made the entry.
        name: Name of its dataset; in a composite, of the part that the entry is from.
        answer: The text, without its tags; None for none.
        entry: The item, as it was made: JSON would turn the tuples that arc_agi and rearc compare with into lists.
    """
    replacement = _REPLACEMENTS.get(name)
    if replacement is not None:
        return 0.0 if answer is None else replacement(answer, entry)
    is_admissible = _CONDITIONS.get(name)
    if answer is not None and is_admissible is not None and not is_admissible(answer, entry):
        answer = None
    try:
        value = float(dataset.score_answer(answer, entry))
    except Exception as error:  # prime_factorization and boxnet raise on text they cannot read
        logger.debug("the scorer of %s failed on the answer %.200r, which scores 0.0: %r", name, answer, error)
        return 0.0
    return value if math.isfinite(value) else 0.0


def _game_of_life_halting(answer: str, entry: Entry) -> float:
    """Compare words: the original compares ``bool(answer)``, so any text is right."""
    return float(answer.lower() == entry["answer"].lower())


def _coin_flip(answer: str, entry: Entry) -> float:
    """Compare numbers, relative to their size too.

    The original takes "0" for any probability, since all that "0" says is a prefix of it, and computes 10**n for "1e<n>".
    """
    expected, given = float(entry["answer"]), _number(answer)
    return float(math.isclose(given, expected, rel_tol=1e-3) and abs(given - expected) <= 1e-4)


def _spell_backward(answer: str, entry: Entry) -> float:
    """Count the letters that stand in their places; 0.8 if all do, and more comes after them.

    The original adds up fractions and compares the sum with 1.0, so that some answers of this kind are worth 1.0000000000000002.
    """
    expected, given = entry["answer"].lower(), answer.lower()
    if given == expected:
        return 1.0
    in_place = sum(map(operator.eq, expected, given)) / len(expected)
    return 0.8 if in_place == 1.0 else in_place


def _number(text: str) -> float:
    """Return a decimal number or a fraction; not-a-number for anything else."""
    numerator, slash, denominator = text.replace(",", "").partition("/")
    try:
        return float(numerator) / (float(denominator) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        return math.nan


def _uses_the_numbers(answer: str, entry: Entry) -> bool:
    """Say whether a formula uses each given number once: puzzle24 takes any four numbers that make 24."""
    return sorted(re.findall(r"\d+", answer)) == sorted(map(str, entry["metadata"]["numbers"])) and is_formula(answer)


def _is_not_negative(answer: str, entry: Entry) -> bool:
    """Say whether the first number has no minus sign: gsm_symbolic, whose answers are all positive, does not see it."""
    return re.match(r"\D*-\d", answer) is None


def _is_a_number(answer: str, entry: Entry) -> bool:
    """Say whether a complex number is one: complex_arithmetic takes ``nan`` for right, whose distance from anything is no more than 0."""
    return "nan" not in answer.lower()


def _has_numbers(answer: str, entry: Entry) -> bool:
    """Say whether there is anything besides comments: pool_matrix warns of an answer that holds none, and scores it 0.0."""
    return any(line.partition("#")[0].strip() for line in answer.splitlines())


def _has_short_moves(answer: str, entry: Entry) -> bool:
    """Say whether every number has one digit: rush_hour and rubiks_cube write out ``F+999999999`` as so many moves."""
    return re.search(r"\d\d", answer) is None


_REPLACEMENTS: dict[str, Callable[[str, Entry], float]] = {
    "coin_flip": _coin_flip,
    "game_of_life_halting": _game_of_life_halting,
    "spell_backward": _spell_backward,
}
"""Checks that stand in for scorers."""

_CONDITIONS: dict[str, Callable[[str, Entry], bool]] = {
    "complex_arithmetic": _is_a_number,
    "countdown": lambda answer, entry: is_formula(answer),
    "gsm_symbolic": _is_not_negative,
    "intermediate_integration": lambda answer, entry: is_formula(answer),
    "polynomial_multiplication": lambda answer, entry: is_formula(answer),
    "pool_matrix": _has_numbers,
    "puzzle24": _uses_the_numbers,
    "rubiks_cube": _has_short_moves,
    "rush_hour": _has_short_moves,
    "simple_integration": lambda answer, entry: is_formula(answer),
}
"""What an answer must be to reach the scorer; another one is scored as if there were none.

``sympy.parse_expr``, which those of formulas call, evaluates the answer as Python.
"""

_FUNCTIONS = frozenset(
    {"sqrt", "exp", "log", "ln", "Abs", "sin", "cos", "tan", "sec", "csc", "cot", "asin", "acos", "atan", "sinh", "cosh", "tanh"}
)
_FORMULA_NODES = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.Call, ast.operator, ast.unaryop, ast.expr_context)
_LARGEST_EXPONENT = 100
_LARGE_NUMBER = re.compile(r"[\d.]e[+-]?[\d_]{3}", re.IGNORECASE)


def is_formula(text: str) -> bool:
    """Say whether a text is a formula of numbers, symbols, operators and common functions, in Python's notation.

    Numbers that would fill the memory are none: exponents are at most 100 (99 in ``1e99``), and numbers are not raised twice.

    >>> is_formula("x**2/2 - cos(3*x) + C"), is_formula("(8 - 2)*(3 + 1)")
    (True, True)
    >>> is_formula("exit()"), is_formula("().__class__"), is_formula("9**9**9"), is_formula("1e999999999")
    (False, False, False, False)
    """
    if _LARGE_NUMBER.search(text):
        return False
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
        case ast.BinOp(base, ast.Pow(), exponent):
            return _is_small_exponent(exponent) and (not _has(base, ast.Pow) or _has(base, ast.Name))
        case _:
            return isinstance(node, _FORMULA_NODES) and not isinstance(node, ast.Call)


def _is_small_exponent(exponent: ast.AST) -> bool:
    numbers = [node.value for node in ast.walk(exponent) if isinstance(node, ast.Constant) and isinstance(node.value, int | float)]
    return not _has(exponent, ast.Pow) and math.prod(max(1, number) for number in numbers) <= _LARGEST_EXPONENT


def _has(tree: ast.AST, kind: type[ast.AST]) -> bool:
    return any(isinstance(node, kind) for node in ast.walk(tree))
