"""`HybridMathRubric`: what math-verify does not find right, a judge may."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.verifiers_compat.models import evaluated

pytest.importorskip("math_verify")
ROW = {"question": "1 + 1?", "answer": "2"}


class Judge:
    """An SDK's client that gives one verdict, and keeps what it was asked."""

    def __init__(self, verdict: str | Exception) -> None:
        self.verdict = verdict
        self.asked: list[dict[str, Any]] = []
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.create))

    async def create(self, **request: Any) -> Any:
        self.asked.append(request)
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=self.verdict))], usage=None)


async def scored(vf: Any, answer: str, judge: Judge, **arguments: Any) -> Any:
    from verifiers.rubrics.experimental.hybrid_math_rubric import HybridMathRubric

    rubric = HybridMathRubric(judge_client=judge, **arguments)
    columns = ["math_verify_score", "judge_score", "judge_result"]
    [output] = await evaluated(vf.SingleTurnEnv(dataset=[ROW], rubric=rubric), answer, state_columns=columns)
    return output


def scores_of(output: Any) -> list[float]:
    return [output["metrics"][name] for name in ("math_verify_score", "judge_score", "correct_answer")]


async def test_a_judge_is_asked_only_where_that_is_wished_for_and_answers_differ(vf: Any) -> None:
    judge = Judge(r"\boxed{B}")
    output = await scored(vf, "2", judge, use_judge_fallback=True)
    assert (output["reward"], scores_of(output)) == (1.0, [1.0, 1.0, 1.0])
    assert judge.asked == []
    judge = Judge(r"\boxed{A}")
    output = await scored(vf, "two", judge)
    assert (output["reward"], judge.asked) == (0.0, [])
    output = await scored(vf, "two", Judge(RuntimeError("no")), use_judge_fallback=True)
    assert output["reward"] == 0.0
    assert "judge_score" in output["metrics_errors"]


@pytest.mark.parametrize(
    ("verdict", "reward", "result"),
    [
        (r"They agree. \boxed{A}", 1.0, "A"),
        ("A", 1.0, "A"),
        (r"\boxed{B} - no, \boxed{A}", 1.0, "A"),
        (r"\boxed{B} - INCORRECT", 0.0, "B"),
        (r"\boxed{C}", 0.0, "C"),
        ("yes", 0.0, "yes"),
    ],
)
async def test_the_judge_has_the_last_word_on_what_is_not_equal(vf: Any, verdict: str, reward: float, result: str) -> None:
    judge = Judge(verdict)
    output = await scored(vf, "two", judge, use_judge_fallback=True)
    assert (output["reward"], output["judge_result"], output["judge_score"]) == (reward, result, reward)
    assert scores_of(output) == [0.0, reward, reward]
    assert output["math_verify_score"] == 0.0
    [request] = judge.asked
    assert request["model"] == "gpt-5-nano"
    for part in ("1 + 1?", "Reference answer:\n2", "answer:\ntwo", r"\boxed{A}"):
        assert part in request["messages"][0]["content"]


async def test_a_judge_of_ones_own(vf: Any) -> None:
    """Its parser, prompt, model and parameters are those that are given."""
    judge = Judge(r"\boxed{A}")
    arguments = {"judge_prompt": "{question}|{answer}|{response}", "judge_model": "m", "judge_sampling_args": {"temperature": 0}}
    await scored(vf, r"It is \boxed{two}.", judge, parser=vf.Parser(vf.extract_boxed_answer), use_judge_fallback=True, **arguments)
    assert judge.asked == [{"model": "m", "messages": [{"role": "user", "content": "1 + 1?|2|two"}], "temperature": 0}]


def test_what_works_on_hosted_sandboxes_says_why(vf: Any) -> None:
    with pytest.raises(ImportError, match="hosted sandbox"):
        from verifiers.rubrics.experimental.hybrid_math_rubric import RemoteHybridMathRubric  # noqa: F401
