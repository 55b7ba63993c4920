r"""`MathRubric`: whether a boxed answer is mathematically equal to the right one, as math-verify sees it."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Awaitable, Sequence
from typing import Any

from vfgym.calls import Ready
from vfgym.errors import ConfigurationError, MissingExtra, WorkerDied, WorkerTimeout
from vfgym.parsers import MaybeThinkParser, Parser, extract_boxed_answer
from vfgym.rubrics.rubric import Rubric
from vfgym.rubrics.scoring import RewardFunc
from vfgym.workers import Workers

MAX_VERIFY_CHARS = 50_000
TIMEOUT_SECONDS = 5.0

_MEMORY_MB = 1024
"""Memory that a worker may map, a third of it for imports. What needs more counts as wrong, as all does that math-verify fails on."""

_workers = Workers("vfgym.rubrics.math_verification")


class VerificationTimeout(WorkerTimeout):
    """math-verify came to no verdict in the time it was given."""


class MathRubric(Rubric):
    r"""Rewards a response that is mathematically equal to the answer: ``correct_answer``, 1.0 or 0.0.

    The response is what the last ``\boxed{...}`` holds. ``\frac{1}{2}`` equals ``0.5``, ``{1,2}`` equals ``{2,1}``. Answers in the
    dataset are bare expressions, without ``\boxed``.

    Verification runs in worker processes that all rubrics of the process share, one for each core (see `vfgym.workers`). They start with
    the first response that is not the answer letter for letter. An expression that takes too long costs its worker and holds up no other;
    its score is 0.0, and so that it is not mistaken for a wrong answer, ``state["metrics_errors"]["correct_answer"]`` says
    ``VerificationTimeout``. Results and tables count these.
    """

    def __init__(
        self,
        funcs: Sequence[RewardFunc] | RewardFunc | None = None,
        weights: Sequence[float] | None = None,
        parser: Parser | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        max_verify_chars: int = MAX_VERIFY_CHARS,
    ) -> None:
        r"""Make a rubric of `funcs`, and of ``correct_answer`` with weight 1.0 after them.

        Args:
            funcs: Further reward functions.
            weights: Their weights (1.0 without).
            parser: Reads the response out of a completion. By default what the last ``\boxed{...}`` after the reasoning
                holds, and nothing where there is no box.
            timeout_seconds: CPU time in seconds that one verification may take, so that a busy machine does not make
                right answers wrong.
            max_verify_chars: A longer response scores 0.0 and is not verified.

        Raises:
            MissingExtra: If math-verify is not installed.
            ConfigurationError: If an argument is out of range.
        """
        if not _is_installed():
            raise MissingExtra("math", "MathRubric")
        _check_limits(max_verify_chars, timeout_seconds)
        parser = MaybeThinkParser(functools.partial(extract_boxed_answer, strict=True)) if parser is None else parser
        super().__init__(funcs, weights, parser)
        self.timeout_seconds = timeout_seconds
        self.max_verify_chars = max_verify_chars
        self.add_reward_func(self.correct_answer, range=(0.0, 1.0))

    def correct_answer(self, parser: Parser, completion: Any, answer: Any) -> Awaitable[float]:
        """Give 1.0 for a response that is equal to the answer, else 0.0. Can be awaited.

        Args:
            parser: Reads the response out of the completion.
            completion: What the model wrote.
            answer: The right answer, a bare expression.

        Raises:
            VerificationTimeout: If the verification takes too long (when awaited).
            InfraError: If the worker processes cannot work (when awaited).
        """
        return _score_response(parser.parse_answer(completion), answer, self.max_verify_chars, self.timeout_seconds)


async def verify_response(
    response: str, answer: str, max_verify_chars: int = MAX_VERIFY_CHARS, timeout_seconds: float = TIMEOUT_SECONDS
) -> float:
    r"""Give 1.0 for a response that is mathematically equal to the answer, else 0.0: what `MathRubric` does, for a bare expression.

    Args:
        response: The response, without ``\boxed``.
        answer: The right answer, without ``\boxed``.
        max_verify_chars: A longer response scores 0.0 and is not verified.
        timeout_seconds: CPU time in seconds that it may take.

    Raises:
        MissingExtra: If math-verify is not installed.
        ConfigurationError: If a limit is out of range.
        VerificationTimeout: If it takes longer.
        InfraError: If the worker processes cannot work.
    """
    if not _is_installed():
        raise MissingExtra("math", "verify_response")
    _check_limits(max_verify_chars, timeout_seconds)
    return await _score_response(response, answer, max_verify_chars, timeout_seconds)


@functools.cache
def _is_installed() -> bool:
    return importlib.util.find_spec("math_verify") is not None


def _check_limits(max_verify_chars: int, timeout_seconds: float) -> None:
    if not isinstance(timeout_seconds, int | float) or not 0 < timeout_seconds < float("inf"):
        raise ConfigurationError(f"timeout_seconds must be a positive number of seconds, got {timeout_seconds!r}")
    if not isinstance(max_verify_chars, int) or max_verify_chars < 0:
        raise ConfigurationError(f"max_verify_chars must be a number of characters, got {max_verify_chars!r}")


def _score_response(response: Any, answer: Any, max_chars: int, seconds: float) -> Awaitable[float]:
    """Score a response; without the workers, and at once, where that can be told from the texts."""
    response, answer = ("" if value is None else str(value) for value in (response, answer))
    if not response.strip() or not answer.strip() or len(response) > max_chars:
        return Ready(0.0)
    if response == answer:
        return Ready(1.0)
    return _verify(answer, response, seconds)


async def _verify(answer: str, response: str, seconds: float) -> float:
    def verdict() -> Awaitable[bool]:
        return _workers.call("is_right", answer, response, cpu_seconds=seconds, memory_mb=_MEMORY_MB)

    try:
        try:
            return float(await verdict())
        except WorkerDied:  # killed by somebody: by the system, say, where memory is short
            return float(await verdict())
    except WorkerTimeout:
        expressions = f"{_short(response)} for {_short(answer)}"
        raise VerificationTimeout(f"math-verify came to no verdict within {seconds:g} s of CPU time on {expressions}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:60] + "...")
