"""What a run is asked for is checked before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROWS, four
from tests.verifiers_compat.models import Model
from vfgym.errors import ConfigurationError


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (lambda env: env.evaluate_sync("gpt-4", "m"), "Client"),
        (lambda env: env.evaluate_sync(Model(), "m", rollouts_per_example=0), "rollouts_per_example"),
        (lambda env: env.evaluate_sync(Model(), "m", max_concurrent=2.5), "integer"),
        (lambda env: env.evaluate_sync(Model(), "m", state_columns="trajectory"), "list of names"),
        (lambda env: env.evaluate_sync(Model(), "m", hf_hub_dataset_name="x"), "push_to_hf_hub"),
        (lambda env: env.evaluate_sync(Model(), "m", redo_errors=True), "results_path"),
        (lambda env: env.generate_sync([], Model(), "m"), "no inputs to play"),
        (lambda env: env.generate_sync("rows", Model(), "m"), "rows"),
        (lambda env: env.generate_sync([3], Model(), "m"), "must be rows"),
        (lambda env: env.generate_sync(ROWS, Model(), 3), "name of a model"),
        (lambda env: env.generate_sync(ROWS, Model(), "m", max_retries=-1), "max_retries"),
        (lambda env: env.generate_sync(ROWS, Model(), "m", on_start=3), "callback"),
        (lambda env: vf.SingleTurnEnv(), "needs tasks"),
        (lambda env: vf.ToolEnv(tools=[]), "needs tasks"),
    ],
)
def test_the_documented_answer_to_bad_input(attempt: Callable[[vf.Environment], Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        attempt(four())
