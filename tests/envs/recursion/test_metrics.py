"""What is counted of the REPL, the sub-calls and the root tools of an episode, and the metrics made of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from vfgym import Usage
from vfgym.aio.steps import run_sync
from vfgym.envs.recursion.metrics import BATCH, RecursionCounts, RLMMonitorRubric
from vfgym.state import State


def measured(counts: RecursionCounts | None, *steps: Any) -> dict[str, float]:
    state = State(trajectory=list(steps), **({} if counts is None else {"recursion_counts": counts}))
    return dict(run_sync(RLMMonitorRubric(["look"]).scoring_steps(state)).metrics)


def step(usage: Usage | None, is_sub: bool = False) -> Any:
    return {"response": SimpleNamespace(usage=usage), "extras": {"is_sub_llm_call": True} if is_sub else {}}


def test_nothing_that_happened_is_zeros_under_the_same_names() -> None:
    metrics = measured(None)
    assert (set(metrics.values()), list(metrics)) == ({0.0}, RLMMonitorRubric(["look"]).metric_names)
    assert all(name.endswith("_time_seconds") for name in RLMMonitorRubric(["look"]).timing_names)
    assert len(RLMMonitorRubric().metric_names) == len(metrics) - 2


def test_every_count_has_its_metric() -> None:
    counts = RecursionCounts(batch_sizes=[1, 3], repl_seconds=[1.0, 2.0])
    for turns, calls, reached in ((2, 5, True), (1, 0, False)):
        counts.add_sub_answer(SimpleNamespace(turns=turns, tool_calls=calls, reached_limit=reached))  # type: ignore[arg-type]
    counts.add_sub_response(SimpleNamespace(usage=Usage(7, 0, 11, 18)))  # type: ignore[arg-type]
    counts.add_sub_response(SimpleNamespace(usage=None))  # type: ignore[arg-type]
    for name, seconds in ((BATCH, 4.0), (BATCH, 2.0), ("look", 1.0), ("other", 2.0)):
        counts.add_root_call(name, seconds)
    steps = [step(Usage(10, 0, 20, 30)), step(Usage(100, 0, 200, 300), is_sub=True), step(None), {"response": None, "extras": {}}]
    assert measured(counts, *steps) == {
        **{"sub_llm_call_count": 4, "sub_llm_total_turns": 3, "sub_llm_prompt_tokens": 7, "sub_llm_completion_tokens": 11},
        **{"sub_llm_total_tool_calls": 5, "sub_llm_batch_count": 2, "sub_llm_max_batch_size": 3, "sub_llm_mean_batch_size": 2},
        **{"sub_llm_max_turns_reached_frac": 0.25, "root_llm_turns": 3, "root_llm_prompt_tokens": 10, "root_llm_completion_tokens": 20},
        **{"repl_total_time_seconds": 3, "repl_call_count": 2, "repl_mean_time_seconds": 1.5, "root_tool_call_count": 4},
        **{"llm_batch_mean_time_seconds": 3, "root_tool_non_llm_mean_time_seconds": 1.5, "look_root_calls": 1, "look_root_time_seconds": 1},
    }
