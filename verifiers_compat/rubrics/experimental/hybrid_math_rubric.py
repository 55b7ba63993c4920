"""`HybridMathRubric`: math-verify first, and a judge for what it does not find right."""

from __future__ import annotations

from typing import Any

from verifiers_compat.loading import create_getattr
from verifiers_compat.rubrics.judge_rubric import JudgeRubric
from verifiers_compat.rubrics.math_rubric import MathRubric
from vfgym.clients import SamplingArgs
from vfgym.parsers import Parser, extract_boxed_answer
from vfgym.rubrics.math_rubric import TIMEOUT_SECONDS
from vfgym.state import State

DEFAULT_JUDGE_PROMPT = r"""You grade answers to questions. You are given a question, the reference answer, and the answer of a candidate.

The question is sound and the reference answer is right: do not solve the question anew. Look only at what the candidate says in the
end, not at how it got there. Its form does not matter: expressions that are mathematically equal are equal, and so are numbers that agree
when they are rounded as the question asks. Where several things are asked for, all of them have to be right. Of a question with choices,
the choice counts.

Say in a few words how the two compare, and then give your verdict in a box:
\boxed{{A}} if the candidate's answer is right,
\boxed{{B}} if it is wrong,
\boxed{{C}} if there is no answer: it was cut off, goes round in circles, or refuses.

Question:
{question}

Reference answer:
{answer}

Candidate's answer:
{response}"""
"""The template of a `HybridMathRubric` that is given none."""

_RIGHT = "A"
"""What the judge's box holds where the answer is right."""


class HybridMathRubric(JudgeRubric):
    r"""Rewards an answer that math-verify finds equal to the right one, or, where it does not, that a judge finds right.

    ``correct_answer`` is the reward (weight 1.0). ``math_verify_score`` and ``judge_score`` are measured beside it, and stand in the state,
    where the judge was asked with its verdict, ``judge_result``. The judge answers in a box: ``\boxed{A}`` is right.
    """

    def __init__(
        self,
        parser: Parser | None = None,
        use_judge_fallback: bool = False,
        judge_client: Any = None,
        judge_model: str = "gpt-5-nano",
        judge_prompt: str = DEFAULT_JUDGE_PROMPT,
        judge_sampling_args: SamplingArgs | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        max_workers: int = 50,
        **kwargs: Any,
    ) -> None:
        """Make a rubric.

        Args:
            parser: Reads the answer out of a completion; by default its whole text.
            use_judge_fallback: Whether a judge is asked about what math-verify does not find right.
            judge_client: Who judges (see `JudgeRubric`).
            judge_model: Name of the judge's model.
            judge_prompt: Template with the fields ``{question}``, ``{answer}`` and ``{response}``.
            judge_sampling_args: Generation parameters of the judge.
            timeout_seconds: CPU time in seconds that one verification may take.
            max_workers: Taken and without effect (see `MathRubric`).
            **kwargs: Passed to `JudgeRubric`.
        """
        super().__init__(
            parser=parser,
            judge_client=judge_client,
            judge_model=judge_model,
            judge_prompt=judge_prompt,
            judge_sampling_args=judge_sampling_args,
            **kwargs,
        )
        self.use_judge_fallback = use_judge_fallback
        self.math_rubric = MathRubric(parser=self.parser, max_workers=max_workers, timeout_seconds=timeout_seconds)
        self.add_reward_func(self.math_verify_score, weight=0)
        self.add_reward_func(self.judge_score, weight=0)
        self.add_reward_func(self.correct_answer, weight=1)

    async def math_verify_score(self, completion: Any, answer: str, state: State, **kwargs: Any) -> float:
        """Give 1.0 for an answer that math-verify finds equal to the right one."""
        state["math_verify_score"] = await self.math_rubric.correct_answer(self.parser, completion, answer)
        return float(state["math_verify_score"])

    async def judge_score(self, prompt: Any, completion: Any, answer: str, state: State, **kwargs: Any) -> float:
        """Give what math-verify gave, or 1.0 where a judge finds the answer right after all."""
        verified = float(dict.get(state, "math_verify_score") or 0.0)
        if verified == 1.0 or not self.use_judge_fallback:
            return verified
        verdict = await self.judge(prompt, completion, answer, state)
        state["judge_result"] = extract_boxed_answer(verdict)
        state["judge_score"] = float(state["judge_result"] == _RIGHT)
        return float(state["judge_score"])

    async def correct_answer(self, state: State, **kwargs: Any) -> float:
        """Give 1.0 for an answer that one of the two found right."""
        return float(dict.get(state, "math_verify_score") == 1.0 or dict.get(state, "judge_score") == 1.0)


__getattr__ = create_getattr(__name__)
