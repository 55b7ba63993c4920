"""reasoning-gym, imported without what some of its modules should not do, least of all in somebody else's process.

What is said of it here is so in reasoning-gym 0.1.25.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import random
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from vfgym.foreign import mute_warnings

RANDOM_NUMBERS = threading.RLock()
"""Held while the process-wide random generators are borrowed."""

_EVALUATING = ("algorithmic.binary_matrix", "algorithmic.spiral_matrix", "algorithmic.string_insertion", "games.n_queens")
"""Modules whose scorers ``eval`` the answer; literals are all that they can use."""

_PRINTING = ("code.codeio", "code.contrib.bfit.Compiler.Optimizer", "cognition.rectangle_count", "games.tower_of_hanoi")
"""Modules that print as they make items, or score them."""

_LARGEST_TERM = 1000
"""Number sequences with larger terms are thrown away where they are made."""


@contextlib.contextmanager
def borrow_random_numbers(seed: int) -> Iterator[None]:
    """Seed the global generators of Python and NumPy for a while, and then put them back as they were.

    list_functions draws from Python's, pool_matrix seeds NumPy's, the programs of codeio draw from both, and the import draws as well.
    """
    python, numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@functools.cache
def reasoning_gym() -> Any:
    """Return the package, imported on the first call."""
    with RANDOM_NUMBERS, borrow_random_numbers(0), mute_warnings():
        package = importlib.import_module("reasoning_gym")
        # A module looks up a name among its globals before the builtins.
        for name in _EVALUATING:
            vars(importlib.import_module(f"reasoning_gym.{name}"))["eval"] = ast.literal_eval
        for name in _PRINTING:
            vars(importlib.import_module(f"reasoning_gym.{name}"))["print"] = _say_nothing
        vars(importlib.import_module("reasoning_gym.code.codeio"))["exec"] = _execute_in_silence
        rule = importlib.import_module("reasoning_gym.cognition.number_sequences").PatternRule
        rule.apply = _with_small_terms(rule.apply)
        importlib.import_module("reasoning_gym.cognition.rubiks_cube").RubiksCubeDataset.expand_moves = _expand_moves
    return package


def _say_nothing(*values: object, **options: object) -> None:
    """Stand in for ``print``."""


def _execute_in_silence(code: str, global_names: dict[str, Any], local_names: dict[str, Any]) -> None:
    """Stand in for ``exec``: some of codeio's programs print."""
    global_names["print"] = _say_nothing
    exec(code, global_names, local_names)


def _with_small_terms(apply: Callable[..., int]) -> Callable[..., int]:
    """Stop a number sequence at its first term that is too large, as the generator would once it had all of them.

    Terms that are squared again and again would fill the memory: 16 of them, with three squares each, have 10**14 digits.
    """

    @functools.wraps(apply)
    def apply_rule(rule: Any, sequence: list[int], position: int) -> int:
        term = apply(rule, sequence, position)
        if abs(term) > _LARGEST_TERM:
            raise OverflowError  # which the generator takes for a sequence that is of no use
        return term

    return apply_rule


def _expand_moves(dataset: Any, moves: str) -> str:
    """Write out moves of a cube: ``R2`` as ``R R``.

    The original leaves out moves that name a layer (``2R``, ``3Fw'``), without which cubes of more than three layers cannot be solved.
    """
    matches = (re.fullmatch(r"(\d*+[^\d]*+)(\d*+)", move) for move in moves.split())
    return " ".join(" ".join([match[1]] * int(match[2] or 1)) for match in matches if match)
