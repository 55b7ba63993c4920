"""What came of improving a prompt."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Candidate:
    """A system prompt that was played on all validation examples."""

    prompt: str
    scores: tuple[float, ...]
    """Score on each validation example, in their order."""
    parents: tuple[int, ...]
    """Places of the candidates from which it was made; none for the first."""
    calls: int
    """Rollouts that had been played when it had its scores."""

    @property
    def score(self) -> float:
        """Mean of the scores."""
        return sum(self.scores) / len(self.scores)


@dataclass
class OptimizedPrompt:
    """Candidates and their scores, in the order in which they were found. The first is the prompt that the run began with."""

    candidates: list[Candidate] = field(default_factory=list)
    calls: int = 0
    """Rollouts that were played."""
    failed_calls: int = 0
    """Those among them that failed."""
    is_finished: bool = False
    """Whether the run came to its end."""

    @property
    def start(self) -> Candidate:
        """The prompt that the run began with."""
        return self.candidates[0]

    @property
    def best(self) -> Candidate:
        """The candidate with the highest score; the first of those that share it."""
        return max(self.candidates, key=lambda candidate: candidate.score)

    @property
    def prompt(self) -> str:
        """The best system prompt."""
        return self.best.prompt
