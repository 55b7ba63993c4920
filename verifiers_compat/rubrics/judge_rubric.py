"""`JudgeRubric` with the documented order of its arguments."""

from __future__ import annotations

from typing import Any

from verifiers_compat.rubrics.rubric import Rubric
from vfgym.clients import SamplingArgs
from vfgym.parsers import Parser
from vfgym.rubrics import judge_rubric
from vfgym.rubrics.judge_rubric import DEFAULT_JUDGE_PROMPT


class JudgeRubric(Rubric, judge_rubric.JudgeRubric):
    """`vfgym.JudgeRubric` with the documented order of its arguments."""

    def __init__(
        self,
        parser: Parser | None = None,
        parallelize_scoring: bool = True,
        judge_client: Any = None,
        judge_model: str = "gpt-4.1-nano",
        judge_sampling_args: SamplingArgs | None = None,
        judge_prompt: str = DEFAULT_JUDGE_PROMPT,
        **kwargs: Any,
    ) -> None:
        """Make a rubric (see `vfgym.JudgeRubric`).

        Args:
            parser: Reads the response that is judged out of a completion.
            parallelize_scoring: Changes nothing, as documented: the rollouts of a group are always judged at once, and the
                functions of one rollout in order.
            judge_client: Who judges.
            judge_model: Name of the judge's model.
            judge_sampling_args: Generation parameters of the judge.
            judge_prompt: Template with the fields ``{question}``, ``{answer}`` and ``{response}``. It may be any text, for reward
                functions that fill it themselves: only `judge` looks into it.
            **kwargs: ``funcs`` and ``weights``.
        """
        super().__init__(
            parser=parser,
            judge_client=judge_client,
            judge_model=judge_model,
            judge_sampling_args=judge_sampling_args,
            judge_prompt=judge_prompt,
            **kwargs,
        )

    def _take_template(self, template: Any) -> None:
        self.judge_prompt = judge_rubric._check_text(template)


__all__ = ["DEFAULT_JUDGE_PROMPT", "JudgeRubric"]
