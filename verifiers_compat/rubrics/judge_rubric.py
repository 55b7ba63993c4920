"""The documented module of `JudgeRubric`."""

from vfgym.rubrics.judge_rubric import DEFAULT_JUDGE_PROMPT, JudgeRubric

__all__ = ["DEFAULT_JUDGE_PROMPT", "JudgeRubric"]
