"""Scores that can be trusted: reasoning-gym's own scorers, without what is wrong with some of them.

The defects are those of reasoning-gym 0.1.25. An answer is text of a model, so a scorer must never run it as code: where one does, only
answers that are plain formulas or literals reach it. And what a formula is worth may take all time and memory to find out
(``1 << 2**33``), so the scorers that use sympy are called in worker processes, with limits.
"""

from __future__ import annotations

import functools
import logging
import math
import operator
import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from vfgym.errors import WorkerTimeout
from vfgym.workers import Limits, Workers

logger = logging.getLogger(__name__)

Entry: TypeAlias = "dict[str, Any]"
"""An item of a dataset as reasoning-gym made it: ``question``, ``answer`` and ``metadata``."""


class Scorer(Protocol):
    """What is asked of a dataset here."""

    def score_answer(self, answer: str | None, entry: Entry) -> float:
        """Return how good an answer is, from 0.0 to 1.0."""


_MINUS = "\u2212"
"""The minus sign of typography, which many models write."""

_LIMITS: Limits = {"cpu_seconds": 8.0, "wall_seconds": 14.0, "memory_mb": 700}
"""What a symbolic scorer may use. Imports take 300 MB of the memory, and a right answer 0.1 s; the hardest ones take 2 s."""

_FIRST_NUMBER = re.compile(r"-?(?<![\w.,])\d++(?:,\d{3})*+(?:\.\d++)?(?:/\d++)?(?!\w)")

_workers = Workers("vfgym.wrappers.reasoning_gym.symbolic")


def score(dataset: Scorer, name: str, answer: str | None, entry: Entry) -> float:
    """Return the score of an answer, from 0.0 to 1.0.

    Args:
        dataset: What made the entry.
        name: Name of its dataset; in a composite, of the part that the entry is from.
        answer: The text, without its tags; None for none.
        entry: The item, as it was made: JSON would turn the tuples that arc_agi and rearc compare with into lists.
    """
    dataset = _part(dataset, name)
    answer = _admissible(name, answer, entry)
    if answer is None or not is_symbolic(dataset):
        return score_here(dataset, name, answer, entry)
    try:
        return float(_workers.call_sync("score", dataset, name, answer, entry, **_LIMITS))
    except (WorkerTimeout, MemoryError) as error:
        return _unreadable(dataset, name, answer, entry, error)


def score_later(dataset: Scorer, name: str, answer: str | None, entry: Entry) -> float | Awaitable[float]:
    """Return what `score` does; to be awaited, where a worker finds it out."""
    dataset = _part(dataset, name)
    answer = _admissible(name, answer, entry)
    if answer is None or not is_symbolic(dataset):
        return score_here(dataset, name, answer, entry)
    return _score_by_worker(dataset, name, answer, entry)


async def _score_by_worker(dataset: Scorer, name: str, answer: str, entry: Entry) -> float:
    try:
        return float(await _workers.call("score", dataset, name, answer, entry, **_LIMITS))
    except (WorkerTimeout, MemoryError) as error:
        return _unreadable(dataset, name, answer, entry, error)


def _unreadable(dataset: Scorer, name: str, answer: str, entry: Entry, error: Exception) -> float:
    logger.debug("the scorer of %s could not evaluate the answer %.200r: %s", name, answer, error)
    return score_here(dataset, name, None, entry)


def score_here(dataset: Scorer, name: str, answer: str | None, entry: Entry) -> float:
    """Return what the scorer of an entry's dataset gives, or what stands in for it; 0.0 where it fails."""
    replacement = _REPLACEMENTS.get(name)
    if replacement is not None:
        return 0.0 if answer is None else replacement(answer, entry)
    try:
        value = float(dataset.score_answer(answer, entry))
    except Exception as error:  # prime_factorization and boxnet raise on text they cannot read
        logger.debug("the scorer of %s failed on the answer %.200r, which scores 0.0: %r", name, answer, error)
        return 0.0
    return value if math.isfinite(value) else 0.0


def is_symbolic(dataset: Scorer) -> bool:
    """Say whether a dataset's scorer uses sympy, which evaluates what it parses."""
    return _uses_sympy(getattr(dataset.score_answer, "__func__", None))


@functools.cache
def _uses_sympy(scorer: Any) -> bool:
    names = getattr(getattr(scorer, "__code__", None), "co_names", ())
    used = (scorer.__globals__.get(name) for name in names)
    packages = (getattr(each, "__module__", None) or getattr(each, "__name__", "") for each in used)
    return any(str(package).partition(".")[0] == "sympy" for package in packages)


def _part(dataset: Any, name: str) -> Scorer:
    """Return the dataset that an entry is from; of a composite, one of its parts."""
    parts = getattr(dataset, "datasets", None)
    return parts[name] if isinstance(parts, dict) and name in parts else dataset  # type: ignore[no-any-return]


def _admissible(name: str, answer: str | None, entry: Entry) -> str | None:
    """Return an answer that may reach its scorer, with a hyphen for a minus sign, as scorers know it; None, scored as no answer, else."""
    is_admissible = _CONDITIONS.get(name)
    if answer is None or (is_admissible is not None and not is_admissible(answer, entry)):
        return None
    return answer if _MINUS not in answer or _MINUS in str(entry["answer"]) else answer.replace(_MINUS, "-")


def _game_of_life_halting(answer: str, entry: Entry) -> float:
    """Compare words: the original compares ``bool(answer)``, so any text is right."""
    return float(answer.lower() == entry["answer"].lower())


def _coin_flip(answer: str, entry: Entry) -> float:
    """Compare numbers, relative to their size too.

    The original takes "0" for any probability, since all that "0" says is a prefix of it, and computes 10**n for "1e<n>".
    """
    expected, given = float(entry["answer"]), _number(answer)
    return float(math.isclose(given, expected, rel_tol=1e-3) and abs(given - expected) <= 1e-4)


def _gsm_symbolic(answer: str, entry: Entry) -> float:
    """Compare the first number with the right one; another number is worth 0.01, as with the original.

    The original never sees the minus sign of an answer that begins with it, though some right answers are below 0, and takes the 1 of "1/2"
    and of "1,000" for the number.
    """
    found = _FIRST_NUMBER.search(answer)
    if found is None:
        return 0.0
    return 1.0 if _number(found[0]) == float(entry["answer"]) else 0.01


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
    return sorted(re.findall(r"\d+", answer)) == sorted(map(str, entry["metadata"]["numbers"]))


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
    "gsm_symbolic": _gsm_symbolic,
    "spell_backward": _spell_backward,
}
"""Checks that stand in for scorers."""

_CONDITIONS: dict[str, Callable[[str, Entry], bool]] = {
    "complex_arithmetic": _is_a_number,
    "pool_matrix": _has_numbers,
    "puzzle24": _uses_the_numbers,
    "rubiks_cube": _has_short_moves,
    "rush_hour": _has_short_moves,
}
"""What an answer must be to reach the scorer; another one is scored as if there were none."""
