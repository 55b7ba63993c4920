"""What is said about an evaluation, before defaults are filled in."""

from __future__ import annotations

from typing import Any

import pytest
from typer.models import OptionInfo

from verifiers_compat.cli.evals.fields import EvalFields, FileFields
from verifiers_compat.types import EvalConfig
from vfgym.errors import ConfigurationError
from vfgym.runs import RunSettings


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"modle": "m"}, "no field 'modle'.*Did you mean `model`"),
        ({"taskset": {}}, "no field 'taskset'"),
        ({"num_examples": 0}, "num_examples: .*positive, or -1"),
        ({"num_examples": -2}, "num_examples: "),
        ({"num_examples": "5"}, "num_examples: .*got '5'"),
        ({"rollouts_per_example": -1}, "rollouts_per_example"),
        ({"rollouts_per_example": 0}, "rollouts_per_example"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_concurrent": -2}, "max_concurrent"),
        ({"max_retries": -1}, "max_retries"),
        ({"headers": ["X"]}, "a header is written 'Name: value'"),
        ({"headers": ["X:"]}, "a header is written 'Name: value'"),
        ({"headers": [": x"]}, "a header is written 'Name: value'"),
        ({"limits": "tokens=0"}, "limits: .*positive integer"),
        ({"limits_each": {"cost": 1}}, "limits_each: .*there is no limit 'cost'"),
        ({"timeout": 0}, "timeout"),
        ({"id": "x", "env_id": "y"}, "id and env_id"),
        ({"max_concurrent": 1, "max_concurrent_generation": 2}, "max_concurrent and max_concurrent_generation"),
    ],
)
def test_wrong_fields_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^test: .*{message}|^test says .*{message}"):
        EvalFields.parse(fields, "test")


def test_headers_are_not_shown_in_errors() -> None:
    with pytest.raises(ConfigurationError) as refused:
        EvalFields.parse({"headers": ["secret"]}, "test")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"headers": ["X: 1", " Y :a: b "]}, "headers", {"X": "1", "Y": "a: b"}),
        ({"header": "X: 1"}, "headers", {"X": "1"}),
        ({"extra_headers": {"X": "1"}}, "headers", {"X": "1"}),
        ({"extra_headers_from_state": {"X": "k"}}, "headers_from_state", {"X": "k"}),
        ({"header_from_state": ["X: k"]}, "headers_from_state", {"X": "k"}),
        ({"limit": ["tokens=5,time=1.5", "requests=2"]}, "limits", {"tokens": 5, "time": 1.5, "requests": 2}),
        ({"limits": {"tokens": 5}}, "limits", {"tokens": 5}),
        ({"limit_each": "turns=3"}, "limits_each", {"turns": 3}),
        ({"state_columns": "a, b,,"}, "state_columns", ["a", "b"]),
        ({"state_columns": ["a"]}, "state_columns", ["a"]),
        ({"args": {"a": 1}}, "env_args", {"a": 1}),
        ({"resume_path": "there"}, "resume", "there"),
        ({"num_examples": -1}, "num_examples", -1),
        ({"max_concurrent_generation": -1}, "max_concurrent", -1),
        ({"max_retries": 0}, "max_retries", 0),
        ({"temperature": 0}, "temperature", 0.0),
    ],
)
def test_fields_in_each_of_their_forms(given: dict[str, Any], name: str, value: Any) -> None:
    fields = EvalFields.parse(given, "test")
    assert getattr(fields, name) == value
    assert {field for field, each in fields if each is not None} == {name}


def test_files_have_sections_that_options_have_not() -> None:
    assert FileFields.parse({"taskset": {"n": 1}}, "test").taskset == {"n": 1}
    assert FileFields.of_environment.keys() == {"id", "args", "taskset", "harness"}
    assert set(FileFields.of_environment.values()) <= FileFields.model_fields.keys()


OTHERS = {"both_seats"}
"""Settings that only `vfgym.evaluate` has: inputs of the rollout API are played from one seat."""


@pytest.mark.parametrize("name", sorted(RunSettings.model_fields))
def test_a_setting_of_runs_has_the_same_name_here(name: str) -> None:
    assert (name in EvalFields.model_fields) == (name in EvalConfig.model_fields) == (name not in OTHERS)
    if name not in OTHERS:
        assert [each for each in EvalFields.model_fields[name].metadata if isinstance(each, OptionInfo)], "an option, too"
