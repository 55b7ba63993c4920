"""`EnvironmentAdapter`: an environment as GEPA asks for it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verifiers_compat.gepa.examples import Example
from verifiers_compat.gepa.feedback import reflective_record
from verifiers_compat.gepa.prompts import PromptCheck, with_prompt
from verifiers_compat.gepa.result import OptimizedPrompt
from verifiers_compat.gepa.run_directory import RunDirectory
from verifiers_compat.gepa.settings import GepaSettings
from verifiers_compat.utils.logging_utils import log_level
from vfgym.endings import ending_of
from vfgym.errors import Error
from vfgym.results.counting import is_failed

if TYPE_CHECKING:
    from gepa.core.adapter import EvaluationBatch

logger = logging.getLogger("verifiers_compat.gepa")

COMPONENT = "system_prompt"
"""What GEPA calls the text of a candidate."""


class NothingAnswered(Error):
    """No rollout of an evaluation got as far as an answer of the model."""


@dataclass
class EnvironmentAdapter:
    """Plays examples of an environment with a candidate's system prompt, and says what came of them."""

    env: Any
    client: Any
    settings: GepaSettings
    directory: RunDirectory | None
    result: OptimizedPrompt
    """Gets the number of rollouts that failed."""
    propose_new_texts: None = field(default=None, init=False)
    """GEPA asks the reflecting model itself."""
    _prompt_check: PromptCheck = field(default_factory=PromptCheck, init=False)

    def evaluate(
        self, batch: list[Example], candidate: dict[str, str], capture_traces: bool = False
    ) -> EvaluationBatch[Mapping[str, Any], Mapping[str, Any]]:
        """Play examples with a candidate, one rollout each.

        Raises:
            ConfigurationError: If the environment does not take the system prompt.
            NothingAnswered: If the model answered in no rollout.
        """
        from gepa.core.adapter import EvaluationBatch

        prompt = candidate[COMPONENT]
        rows = self._play(batch, prompt)
        for row, example in zip(rows, batch, strict=True):
            self._prompt_check.check(example, prompt, row)
        self.result.failed_calls += sum(map(is_failed, rows))
        scores = [self._score(row, example) for row, example in zip(rows, batch, strict=True)]
        return EvaluationBatch(outputs=rows, scores=scores, trajectories=rows)

    def make_reflective_dataset(
        self, candidate: dict[str, str], eval_batch: EvaluationBatch[Any, Any], components_to_update: list[str]
    ) -> dict[str, list[dict[str, str]]]:
        """Return what the reflecting model is shown of the rollouts of a candidate."""
        played = zip(eval_batch.outputs, eval_batch.scores, strict=True)
        records = [reflective_record(row, score, self.settings.state_columns) for row, score in played]
        return dict.fromkeys(components_to_update, records)

    def _play(self, batch: list[Example], prompt: str) -> list[Mapping[str, Any]]:
        """Return the rows of a candidate's rollouts, in the order of the examples."""
        definition, settings = self.env.definition, self.settings
        path = None if self.directory is None else self.directory.next_evaluation(prompt, batch)
        self.env.set_system_prompt(prompt or None)
        tasks = [with_prompt(example.task_of(definition), prompt) for example in batch]
        with log_level(logging.WARNING, "vfgym.results.resume"):  # which has a line for each evaluation of a run that goes on
            outputs = self.env.generate_sync(
                tasks,
                self.client,
                settings.model,
                settings.sampling_args,
                settings.max_concurrent,
                results_path=path,
                save_results=path is not None,
                state_columns=list(settings.state_columns),
                on_progress=lambda *progress: None,  # in the place of a progress bar for each
                on_log=logger.debug,
                seed=settings.seed,
            )["outputs"]
        if not any(row["completion"] for row in outputs):
            if self.directory is not None and path is not None:
                self.directory.forget(path)
            reason = next((row["error"]["error_chain_repr"] for row in outputs if row["error"] is not None), "every answer was empty")
            raise NothingAnswered(f"the model answered in none of {len(outputs)} rollouts: {reason}")
        of_example: dict[Any, list[Mapping[str, Any]]] = {}
        for row in reversed(outputs):  # rollouts of one example are in the order of its tasks
            of_example.setdefault(row["example_id"], []).append(row)
        return [of_example[task["example_id"]].pop() for task in tasks]

    def _score(self, row: Mapping[str, Any], example: Example) -> float:
        """Return what a rollout counts with: its reward; if it failed or was cut, at most what the environment declares for that, or 0.

        One that the infrastructure failed counts as a failure too: the optimizer needs a number.
        """
        reward = float(row["reward"])
        reward = reward if math.isfinite(reward) else 0.0
        if ending_of(row).counts_with_return:
            return reward
        definition = self.env.definition
        return min(reward, definition.routed(example.task_of(definition))[0].failure_reward or 0.0)
