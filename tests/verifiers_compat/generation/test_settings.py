"""What a run is asked for is checked before anything is played."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from tests.runs.test_spec import values
from tests.verifiers_compat.environments import ROWS, four
from tests.verifiers_compat.models import Model
from verifiers_compat.generation import GenerateSettings
from verifiers_compat.generation.settings import OF_THE_INPUTS
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.results.merging import merge
from vfgym.runs import RunSettings


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
    with pytest.raises(ConfigurationError, match=f"{name} must be an integer.*, got {value!r}"):
        GenerateSettings.of({"model": "m", name: value}, "generate")


async def never_awaited(*args: Any) -> None: ...


@pytest.mark.parametrize("name", ["on_start", "on_progress", "on_log"])
@pytest.mark.parametrize(("callback", "words"), [(3, "must be a function, got int"), (never_awaited, "never_awaited is async")])
def test_each_callback_is_a_plain_function(name: str, callback: Any, words: str) -> None:
    given = (print, callback) if name == "on_progress" else callback
    with pytest.raises(ConfigurationError, match=words):
        GenerateSettings.of({"model": "m", name: given}, "generate")


def test_zero_retries_and_no_limit_are_fine() -> None:
    settings = GenerateSettings(model="", max_retries=0, max_concurrent=0, max_concurrent_scoring=-1)
    assert (settings.max_retries, settings.max_concurrent, settings.on_progress) == (0, 0, ())


# The settings of any run


@pytest.mark.parametrize("name", sorted(RunSettings.model_fields))
def test_each_setting_of_a_run_is_one_of_generate_or_said_by_its_inputs(name: str, tmp_path: Path) -> None:
    argument, _, kept = values(tmp_path)[name]
    if name in OF_THE_INPUTS:
        with pytest.raises(UnknownArgument, match=f"generate has no argument '{name}': its inputs say what is played"):
            four().generate_sync(ROWS, Model(), "m", **{name: argument})
        assert name == "both_seats" or name in inspect.signature(vf.Environment.evaluate).parameters
    elif name in ("executor", "workers"):
        with pytest.raises(ConfigurationError, match=r"loaded by its id|says how many processes play"):
            four().generate_sync(ROWS, Model(), "m", **{name: argument})
    else:
        settings = GenerateSettings.of({"model": "m", name: argument}, "generate").model_dump(mode="json")
        assert settings[name] == kept or name == "independent_scoring"
        assert GenerateSettings(model="m").model_dump(mode="json")[name] != settings[name] or name == "independent_scoring"


def test_the_defaults_that_differ_are_the_documented_ones() -> None:
    settings, others = GenerateSettings(model="m"), RunSettings()
    differing = {name: getattr(settings, name) for name in RunSettings.model_fields if getattr(settings, name) != getattr(others, name)}
    assert differing == {"max_concurrent": -1, "seed": None, "independent_scoring": False}


def test_metadata_say_by_which_settings_it_was_generated() -> None:
    said: dict[str, Any] = {"tags": ["a"], "pass_threshold": 0.0, "seed": 3, "limits_each": {"turns": 2}, "max_concurrent": 2}
    metadata = four().evaluate_sync(Model(), "m", state_columns=["input"], **said)["metadata"]
    assert {name: metadata[name] for name in said} == said  # type: ignore[literal-required]
    assert metadata["state_columns"] == ["input"]


@pytest.mark.parametrize("independent", [False, True])
def test_shards_are_the_parts_of_a_run(independent: bool, tmp_path: Path) -> None:
    rows = [{**row, "example_id": number} for number, row in enumerate(ROWS)] * 2
    for part in range(2):
        four().generate_sync(
            rows, Model(), "m", shard=(part, 2), independent_scoring=independent, seed=1, results_path=tmp_path / str(part)
        )
    merged = merge([tmp_path / "0", tmp_path / "1"])
    assert (merged.missing, merged.missing_shards) == (0, [])
    whole = four().generate_sync(rows, Model(), "m", independent_scoring=independent, seed=1)
    assert [(row["example_id"], row["rollout"], row["reward"]) for row in merged.results["outputs"]] == [
        (row["example_id"], row["rollout"], row["reward"]) for row in whole["outputs"]
    ]


def test_groups_of_different_sizes_are_not_divided() -> None:
    with pytest.raises(ConfigurationError, match="whose examples have one number of rollouts"):
        four().generate_sync([{**ROWS[0], "example_id": number} for number in (0, 1, 0)], Model(), "m", shard=(0, 2))


def test_an_unknown_argument_is_named_with_what_was_meant() -> None:
    with pytest.raises(UnknownArgument, match=r"generate has no argument 'max_concurent'. Did you mean `max_concurrent`"):
        four().generate_sync(ROWS, Model(), "m", max_concurent=3)
