"""What is counted of the REPL, the sub-calls and the root tools of an episode, and the metrics made of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from vfgym.aio.steps import Steps
from vfgym.envs.recursion.sub_calls import SubAnswer
from vfgym.messages import Response
from vfgym.rubrics import Rubric
from vfgym.rubrics.scoring import Score
from vfgym.state import State

BATCH = "llm_batch"


@dataclass
class RecursionCounts:
    """What happened in an episode: ``state["recursion_counts"]``."""

    batch_sizes: list[int] = field(default_factory=list)
    """How many prompts each call of `llm_batch` had."""
    sub_turns: int = 0
    sub_tool_calls: int = 0
    sub_prompt_tokens: int = 0
    sub_completion_tokens: int = 0
    sub_limits_reached: int = 0
    repl_seconds: list[float] = field(default_factory=list)
    """How long each code ran, the calls that it made included."""
    root_tool_calls: Counter[str] = field(default_factory=Counter)
    root_tool_seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add_sub_answer(self, said: SubAnswer) -> None:
        """Count a sub-call."""
        self.sub_turns += said.turns
        self.sub_tool_calls += said.tool_calls
        self.sub_limits_reached += said.reached_limit

    def add_sub_response(self, response: Response) -> None:
        """Count the tokens of an answer in a sub-call."""
        if response.usage is not None:
            self.sub_prompt_tokens += response.usage.prompt_tokens
            self.sub_completion_tokens += response.usage.completion_tokens

    def add_root_call(self, name: str, seconds: float) -> None:
        """Count a call of a root tool."""
        self.root_tool_calls[name] += 1
        self.root_tool_seconds[name] += seconds


class RLMMonitorRubric(Rubric):
    """Measures the root model (``root_llm_*``), sub-calls (``sub_llm_*``), the REPL (``repl_*``) and what was called from inside it."""

    def __init__(self, root_tool_names: Sequence[str] = ()) -> None:
        """Measure these root tools."""
        super().__init__()
        self.root_tool_names = list(root_tool_names)

    @property
    def metric_names(self) -> list[str]:
        """The names, in order."""
        return list(self._measure(RecursionCounts(), State(trajectory=[])))

    @property
    def timing_names(self) -> list[str]:
        """The names of those in seconds."""
        return [name for name in self.metric_names if name.endswith("_time_seconds")]

    def scoring_steps(self, state: State) -> Steps[Score]:
        """Measure one episode."""
        return Score(0.0, self._measure(state.get("recursion_counts") or RecursionCounts(), state))
        yield  # makes this a generator, as the rubrics around it expect

    def _measure(self, counts: RecursionCounts, state: State) -> dict[str, float]:
        roots = [step["response"] for step in state["trajectory"] if not step["extras"].get("is_sub_llm_call")]
        usages = [response.usage for response in roots if response is not None and response.usage is not None]
        sizes, calls, seconds = counts.batch_sizes, counts.root_tool_calls, counts.root_tool_seconds
        other_calls, other_seconds = calls.total() - calls[BATCH], sum(seconds.values()) - seconds[BATCH]
        metrics: dict[str, float] = {
            "sub_llm_call_count": sum(sizes),
            "sub_llm_total_turns": counts.sub_turns,
            "sub_llm_prompt_tokens": counts.sub_prompt_tokens,
            "sub_llm_completion_tokens": counts.sub_completion_tokens,
            "sub_llm_total_tool_calls": counts.sub_tool_calls,
            "sub_llm_batch_count": len(sizes),
            "sub_llm_max_batch_size": max(sizes, default=0),
            "sub_llm_mean_batch_size": _mean(sum(sizes), len(sizes)),
            "sub_llm_max_turns_reached_frac": _mean(counts.sub_limits_reached, sum(sizes)),
            "root_llm_turns": len(roots),
            "root_llm_prompt_tokens": sum(usage.prompt_tokens for usage in usages),
            "root_llm_completion_tokens": sum(usage.completion_tokens for usage in usages),
            "repl_total_time_seconds": sum(counts.repl_seconds),
            "repl_call_count": len(counts.repl_seconds),
            "repl_mean_time_seconds": _mean(sum(counts.repl_seconds), len(counts.repl_seconds)),
            "root_tool_call_count": calls.total(),
            "llm_batch_mean_time_seconds": _mean(seconds[BATCH], calls[BATCH]),
            "root_tool_non_llm_mean_time_seconds": _mean(other_seconds, other_calls),
        }
        for name in self.root_tool_names:
            metrics |= {f"{name}_root_calls": calls[name], f"{name}_root_time_seconds": seconds[name]}
        return {name: float(value) for name, value in metrics.items()}


def _mean(total: float, count: int) -> float:
    return total / count if count else 0.0
