"""What the worker processes do: the scorer is given formulas only, and each answer has its own time and memory."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

import vfgym
from tests.workers.processes import descendants, peak_mb
from tests.wrappers.reasoning_gym.making import SYMBOLIC, original_score, right_answer, score, small
from vfgym.wrappers.reasoning_gym import scoring
from vfgym.wrappers.reasoning_gym.symbolic import score as score_in_worker

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")

HOPELESS = "(x+1)**99*(x+2)**99*(x+3)**99"


@pytest.fixture
def _little_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody wait 8 s for a formula that has no end."""
    monkeypatch.setitem(scoring._LIMITS, "cpu_seconds", 1.0)


def test_a_worker_gives_a_scorer_formulas_and_nothing_else() -> None:
    seen: list[str | None] = []

    class Noting:
        def score_answer(self, answer: str | None, entry: Any) -> float:
            seen.append(answer)
            return 0.25

    for answer in ("6*4", "exit()", "x.y"):
        assert score_in_worker(Noting(), "countdown", answer, {}) == 0.25
    assert seen == ["6*4", None, None]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("countdown", "1<<2**33"),
        ("intermediate_integration", HOPELESS),
        *(pytest.param(name, answer, marks=pytest.mark.exhaustive) for name in SYMBOLIC for answer in ("1<<2**33", "9**9**9", HOPELESS)),
        pytest.param("simple_integration", "1/(x+1)**99999999", marks=pytest.mark.exhaustive),
        pytest.param("countdown", "1e999999999", marks=pytest.mark.exhaustive),
        pytest.param("polynomial_multiplication", "sqrt(" * 60 + "x" + ")" * 60, marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.usefixtures("_little_time")
def test_formulas_that_would_take_all_time_or_memory(name: str, answer: str) -> None:
    """They are worth what no answer is, the processes stay small, and right answers are right afterwards."""
    env = small(name)
    right = env.answer_in(right_answer(env, 0))
    assert score(env.items, right) == 1.0  # the workers run
    own = peak_mb(os.getpid())  # of all tests so far
    assert score(env.items, answer) == original_score(env.items, None) <= 0.1
    if sys.platform == "linux":
        assert peak_mb(os.getpid()) - own < 100
        assert all(peak_mb(pid) < 900 for pid in descendants(os.getpid()))
    assert score(env.items, right) == 1.0


@pytest.mark.usefixtures("_little_time")
def test_a_hopeless_formula_holds_up_no_other() -> None:
    """Other rollouts of an evaluation are finished meanwhile."""
    env = small("intermediate_integration")
    finished: list[int] = []

    async def agent(observation: Any, info: dict[str, Any]) -> str:
        return HOPELESS if info["example_id"] == 5 else right_answer(env, info["example_id"])

    results = vfgym.evaluate(env, agent, progress=False, on_progress=lambda row, progress: finished.append(row["example_id"]))
    assert [row["reward"] for row in results["outputs"]] == [0.0, 1.0, 1.0]
    assert finished[-1] == 5
