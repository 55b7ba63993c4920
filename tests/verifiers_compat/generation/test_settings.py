"""What a run is asked for is checked before anything is played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROWS, four
from tests.verifiers_compat.models import Model
from verifiers_compat.generation import GenerateSettings
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


@pytest.mark.parametrize("name", ["max_concurrent", "max_concurrent_scoring", "max_retries"])
@pytest.mark.parametrize("value", [True, 1.5, "2", None])
def test_numbers_are_integers(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must be an integer, got {value!r}"):
        GenerateSettings(model="m", sampling_args={}, **{name: value})


async def never_awaited(*args: Any) -> None: ...


@pytest.mark.parametrize("name", ["on_start", "on_progress", "on_log"])
@pytest.mark.parametrize(("callback", "words"), [(3, "must be a function, got int"), (never_awaited, "never_awaited is async")])
def test_each_callback_is_a_plain_function(name: str, callback: Any, words: str) -> None:
    given = (print, callback) if name == "on_progress" else callback
    with pytest.raises(ConfigurationError, match=words):
        GenerateSettings(model="m", sampling_args={}, **{name: given})


def test_zero_retries_and_no_limit_are_fine() -> None:
    settings = GenerateSettings(model="", sampling_args={}, max_retries=0, max_concurrent=0, max_concurrent_scoring=-1)
    assert (settings.max_retries, settings.max_concurrent, settings.on_progress) == (0, 0, ())
