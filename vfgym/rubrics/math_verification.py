"""What `MathRubric` has done in worker processes. It is imported there alone: it loads math-verify, and warms it up."""

from __future__ import annotations

import logging

from math_verify import parse, verify


def is_right(answer: str, response: str) -> bool:
    """Say whether math-verify finds a response equal to the answer. What it fails on is not."""
    try:
        # Its own time-outs are signal handlers, which cannot interrupt a long operation on integers.
        gold, candidate = (parse(f"\\boxed{{{text}}}", parsing_timeout=None) for text in (answer, response))
        return bool(verify(gold, candidate, timeout_seconds=None))
    except Exception:
        return False


for package in ("math_verify", "latex2sympy2_extended"):
    logging.getLogger(package).setLevel(logging.CRITICAL)  # they log what they cannot parse
is_right(r"\frac{1}{2}", "0.5")  # fills the parsers' caches, which the workers then have
