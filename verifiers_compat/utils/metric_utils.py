"""Running statistics of a run: outputs are added as they come, and the values can be read at any time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from vfgym.results.statistics import pass_all, pass_at

ValueT = TypeVar("ValueT")


class Metric(ABC, Generic[ValueT]):
    """A value over the outputs of a run."""

    name: str

    @abstractmethod
    def add_output(self, output: Mapping[str, Any]) -> None:
        """Add one output."""

    def add_outputs(self, outputs: Iterable[Mapping[str, Any]]) -> None:
        """Add several outputs."""
        for output in outputs:
            self.add_output(output)

    @abstractmethod
    def compute(self) -> ValueT:
        """Return the value over the outputs added so far."""

    @abstractmethod
    def reset(self) -> None:
        """Forget all outputs."""


class MeanMetric(Metric[float]):
    """The mean of one number over the outputs that have it; 0.0 before there is one."""

    def __init__(self, name: str = "") -> None:
        """Start empty.

        Args:
            name: Key of the number in an output: at its top level, or in its ``metrics``. Subclasses have one of their own.
        """
        self.name = name or self.name
        self.reset()

    def value_of(self, output: Mapping[str, Any]) -> float | None:
        """Return the number in one output, or None."""
        value = output.get(self.name)
        return (output.get("metrics") or {}).get(self.name) if value is None else value

    def add_output(self, output: Mapping[str, Any]) -> None:
        """Add one output."""
        value = self.value_of(output)
        if value is not None:
            self._sum += float(value)
            self.count += 1

    def compute(self) -> float:
        """Return the mean."""
        return self._sum / self.count if self.count else 0.0

    def reset(self) -> None:
        """Forget all outputs."""
        self._sum = 0.0
        self.count = 0
        """How many outputs had the number."""


class RewardMetric(MeanMetric):
    """The mean reward; an output that has no such item counts as 0.0."""

    name = "reward"

    def value_of(self, output: Mapping[str, Any]) -> float | None:
        """Return the reward of one output."""
        return output.get(self.name, 0.0)  # type: ignore[no-any-return]


class ErrorRateMetric(MeanMetric):
    """The share of rollouts with an error."""

    name = "error_rate"

    def value_of(self, output: Mapping[str, Any]) -> float:
        """Return 1.0 for an error, else 0.0."""
        return float(output.get("error") is not None)


class _UsageMetric(MeanMetric):
    def value_of(self, output: Mapping[str, Any]) -> float | None:
        return (output.get("token_usage") or {}).get(self.name)


class InputTokensMetric(_UsageMetric):
    """The mean input tokens of the rollouts that report them; shared context counts each time."""

    name = "input_tokens"


class OutputTokensMetric(_UsageMetric):
    """The mean output tokens of the rollouts that report them."""

    name = "output_tokens"


class FinalInputTokensMetric(_UsageMetric):
    """The mean tokens of the last turn's context that the model did not write."""

    name = "final_input_tokens"


class FinalOutputTokensMetric(_UsageMetric):
    """The mean tokens of the last turn's context that the model wrote."""

    name = "final_output_tokens"


class EnvMetrics(Metric[dict[str, float]]):
    """The mean of each metric over the outputs that have it."""

    name = "metrics"

    def __init__(self) -> None:
        """Start empty."""
        self.reset()

    def add_output(self, output: Mapping[str, Any]) -> None:
        """Add one output."""
        for name, value in (output.get("metrics") or {}).items():
            total, count = self._sums.get(name, (0.0, 0))
            self._sums[name] = total + float(value), count + 1

    def compute(self) -> dict[str, float]:
        """Return the means by name."""
        return {name: total / count for name, (total, count) in self._sums.items()}

    def reset(self) -> None:
        """Forget all outputs."""
        self._sums: dict[str, tuple[float, int]] = {}


class PassAtKMetric(Metric[tuple[dict[str, float], dict[str, float]]]):
    """pass@k and pass^k for k = 1, 2, 4, ... over the examples whose rollouts are complete; empty with one rollout an example."""

    name = "pass_at_k"

    def __init__(self, rollouts_per_example: int, threshold: float = 0.5) -> None:
        """Start empty.

        Args:
            rollouts_per_example: How many rollouts a complete example has.
            threshold: Reward from which a rollout passes.
        """
        self.rollouts_per_example = rollouts_per_example
        self.threshold = threshold
        self.reset()

    def add_output(self, output: Mapping[str, Any]) -> None:
        """Add one output."""
        self._passed[output["example_id"]].append((output.get("reward") or 0.0) >= self.threshold)

    def compute(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return pass@k and pass^k, both by the text of k."""
        n = self.rollouts_per_example
        passed = [sum(each) for each in self._passed.values() if len(each) == n]
        if n < 2 or not passed:
            return {}, {}
        ks = [2**exponent for exponent in range(n.bit_length())]
        at = {str(k): sum(pass_at(k, count, n) for count in passed) / len(passed) for k in ks}
        return at, {str(k): sum(pass_all(k, count, n) for count in passed) / len(passed) for k in ks}

    def reset(self) -> None:
        """Forget all outputs."""
        self._passed: defaultdict[int, list[bool]] = defaultdict(list)
