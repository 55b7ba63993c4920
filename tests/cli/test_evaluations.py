"""What an evaluation is told: by options, by a file, by both; what holds where nothing is said; where its models are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.cases import SAID
from vfgym.cli.evaluations import NUM_EXAMPLES, EvalFields, Models, read_evaluations
from vfgym.clients.config import NO_KEY
from vfgym.errors import ConfigurationError
from vfgym.runs.spec import RunSpec


def values_of(fields: EvalFields) -> dict[str, Any]:
    return {name: getattr(fields, name) for name in EvalFields.model_fields}


def field_of(name: str, value: Any) -> Any:
    """Return a value as a field has it."""
    return getattr(EvalFields(env_id="x", **{name: value}), name)


DEFAULTS = values_of(EvalFields(env_id="default"))


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {as_toml(item)}" for name, item in value.items()) + "}"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def test_every_field_takes_part() -> None:
    assert SAID.keys() | {"env_id", "client", "prices", "cache"} == EvalFields.model_fields.keys()


@pytest.mark.parametrize("name", SAID)
def test_an_option_that_is_given_wins_over_the_file_and_else_the_file_over_the_default(name: str, directory: Path) -> None:
    other, empty = SAID[name]
    for in_file, given in ((other, empty), (empty, other)):
        (directory / "e.toml").write_text(f'env_id = "x"\n{name} = {as_toml(in_file)}')
        options = {**DEFAULTS, name: given}
        assert getattr(read_evaluations("e.toml", options, [name])[0], name) == field_of(name, given)
        assert getattr(read_evaluations("e.toml", DEFAULTS, [])[0], name) == field_of(name, in_file)
        (by_options,) = read_evaluations("x", options, [name])
        assert values_of(by_options) == {**DEFAULTS, "env_id": "x", name: field_of(name, given)}


def spec_of(**fields: Any) -> RunSpec:
    (spec,) = EvalFields(**{"env_id": "x", "agents": ["random"], **fields}).specs()
    return spec


@pytest.mark.parametrize("name", sorted((SAID.keys() & RunSpec.model_fields.keys()) - {"sampling_args"}))
def test_a_run_is_as_the_fields_say_and_else_as_by_default(name: str) -> None:
    default = {each: value for each, value in spec_of() if each != name}
    for value in SAID[name]:
        spec = spec_of(**{name: value})
        assert getattr(spec, name) == (field_of(name, value) or None if name == "example_ids" else field_of(name, value))
        assert {each: found for each, found in spec if each not in (name, "num_examples")} == {
            each: found for each, found in default.items() if each != "num_examples"
        }
        assert name in ("num_examples", "example_ids") or spec.num_examples == NUM_EXAMPLES


def test_each_who_plays_has_a_run_and_no_tasks_are_not_the_default() -> None:
    with pytest.raises(ConfigurationError, match="num_examples must be a positive integer, or -1 for no limit, got 0"):
        spec_of(num_examples=0)
    fields = EvalFields(env_id="x", agents=["a", "b"], models=["m", "n"], base_url="http://x/v1", sampling_args={"n": 0}, isolate=True)
    specs = fields.specs()
    assert [(spec.agent, spec.model, spec.sampling_args, spec.isolate, spec.client is None) for spec in specs] == [
        ("a", None, {}, True, True),
        ("b", None, {}, True, True),
        (None, "m", {"n": 0}, False, False),
        (None, "n", {"n": 0}, False, False),
    ]
    assert EvalFields(env_id="x").specs() == []
    assert Models().config() is None


@pytest.mark.parametrize(
    ("fields", "number"), [({}, NUM_EXAMPLES), ({"num_examples": 1}, 1), ({"example_ids": [0]}, -1), ({"num_examples": -1}, -1)]
)
def test_how_many_tasks_are_played(fields: dict[str, Any], number: int) -> None:
    assert spec_of(**fields).num_examples == number


@pytest.mark.parametrize("name", sorted(SAID.keys() & vars(Models()).keys()))
def test_models_are_the_fields(name: str) -> None:
    changed = EvalFields(env_id="x", **{name: SAID[name][0]}).asked_models()
    assert changed == Models(**{"names": [], name: SAID[name][0]})


def test_an_option_takes_the_place_of_what_says_the_same(directory: Path) -> None:
    (directory / "e.toml").write_text('env_id = "x"\nexample_ids = [1, 2]')
    options = {**DEFAULTS, "num_examples": 5}
    (found,) = read_evaluations("e.toml", options, ["num_examples"])
    assert (found.num_examples, found.example_ids or []) == (5, [])
    (found,) = read_evaluations("e.toml", options, [])
    assert (found.num_examples, found.example_ids) == (None, [1, 2])


def test_what_does_not_fit_is_named_with_the_command_or_the_file(directory: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^vfgym eval: seed"):
        read_evaluations("x", {"seed": "x"}, ["seed"])
    (directory / "e.toml").write_text('env_id = "x"')
    with pytest.raises(ConfigurationError, match=r"^e\.toml: seed"):
        read_evaluations("e.toml", {"seed": "x"}, ["seed"])


# Where models are


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (Models(names=["m"]), r"say where m is: --provider \(prime, openai, anthropic,"),
        *[
            (Models(**{name: SAID[name][0]}), "are about a --model: name one")
            for name in ("provider", "base_url", "api_key_var", "client_type", "sampling_args")
        ],
        (Models(provider=""), "are about a --model: name one"),
        (Models(names=["m"], provider="opnai"), "there is no provider 'opnai'; known: prime, openai,"),
        (Models(names=["m"], provider="openai", client_type="openai_response"), "Did you mean `openai_responses`"),
        (Models(names=["m"], base_url="localhost:8000"), "expected the URL of an API, like http://localhost:8000/v1, got 'localhost:8000'"),
    ],
)
def test_models_that_cannot_be_asked_are_refused(models: Models, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        models.config()


@pytest.mark.parametrize(
    ("place", "variable"),
    [
        ({"base_url": "http://x/v1"}, "OPENAI_API_KEY"),
        ({"base_url": "http://x/v1", "api_key_var": "MINE"}, "MINE"),
        ({"provider": "anthropic"}, "ANTHROPIC_API_KEY"),
        ({"provider": "anthropic", "base_url": "http://x", "api_key_var": "MINE"}, "MINE"),
    ],
)
def test_the_key_is_that_of_the_named_variable_or_of_the_provider(
    place: dict[str, str], variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Models(names=["m"], **place).config()
    assert config is not None
    assert config.resolve_api_key() == NO_KEY
    monkeypatch.setenv(variable, "the-right-key")
    assert config.resolve_api_key() == "the-right-key"
    assert place.get("base_url", config.api_base_url) == config.api_base_url
