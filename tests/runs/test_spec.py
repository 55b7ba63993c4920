"""A run as data: each setting by every way to say it, specs that are kept, and runs that are played again by them."""

from __future__ import annotations

import copy
import inspect
import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from pydantic import ValidationError
from typer.main import get_command

from vfgym import RunSettings, RunSpec, aevaluate, evaluate
from vfgym.agents import ModelAgent, RandomAgent
from vfgym.agents import isolated as isolation
from vfgym.agents.isolated import IsolatedAgent
from vfgym.cli.app import app
from vfgym.cli.evaluations import EvalFields, read_evaluations
from vfgym.clients import ClientConfig
from vfgym.clients.cache import ResponseCache
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.limits import RolloutLimits
from vfgym.model_server import ModelServer
from vfgym.runs.spec import RunArguments, name_of_env

GAME = "gymnasium/FrozenLake-v1"
PRICES = {"m": {"input": 1.0, "output": 2.0}}


def own_agent(observation: Any, info: Any) -> str:
    """Answer."""
    return "left"


def values(folder: Path) -> dict[str, tuple[Any, Any, Any]]:
    """Return for each setting a value that is not its default: as an argument, in a file, and in metadata."""
    cache = str(folder / "cache.sqlite")
    return {
        "num_examples": (2, 2, 2),
        "rollouts_per_example": (3, 3, 3),
        "max_concurrent": (5, 5, 5),
        "seed": (7, 7, 7),
        "split": ("train", "train", "train"),
        "example_ids": (iter([1, 0]), [1, 0], [1, 0]),
        "both_seats": (True, True, True),
        "independent_scoring": (False, False, False),
        "max_retries": (4, 4, 4),
        "pass_threshold": (0.0, 0.0, 0.0),
        "shard": ((0, 2), "0/2", [0, 2]),
        "state_columns": (iter(["prompt", "input"]), ["prompt", "input"], ["prompt", "input"]),
        "tags": (("a", "b"), ["a", "b"], ["a", "b"]),
        "limits": ({"tokens": 5}, {"tokens": 5}, {"tokens": 5}),
        "limits_each": (RolloutLimits(turns=3), {"turns": 3}, {"turns": 3}),
        "prices": (PRICES, PRICES, PRICES),
        "cache": (cache, cache, cache),
        "executor": ("process", "process", "process"),
        "workers": (1, 1, 1),
        "strict": (True, True, True),
    }


FIELDS = sorted(RunSettings.model_fields)


@pytest.fixture(params=FIELDS)
def setting(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Any, Any, Any]:
    """Each setting: its name, and its value by every way to say it."""
    return (request.param, *values(tmp_path)[request.param])


def test_an_argument_becomes_what_metadata_say(setting: tuple[str, Any, Any, Any]) -> None:
    name, argument, _, kept = setting
    spec = RunSpec.of({"env_id": GAME, "agent": "random", name: argument}, "test")
    assert spec.to_json()[name] == kept
    default = RunSpec(env_id=GAME, agent="random").to_json()
    assert default[name] != kept
    assert {key for key, value in spec.to_json().items() if value != default[key]} == {name}


def test_what_metadata_say_is_the_setting_again(setting: tuple[str, Any, Any, Any]) -> None:
    name, argument, _, _ = setting
    spec = RunSpec.of({"env_id": GAME, "agent": "random", name: argument}, "test")
    assert RunSpec.from_json(json.loads(json.dumps(spec.to_json()))).to_json() == spec.to_json()


def test_a_file_says_it_by_the_same_name(setting: tuple[str, Any, Any, Any]) -> None:
    name, _, written, kept = setting
    (spec,) = EvalFields.parse({"env_id": GAME, "agents": ["random"], name: written}, "test").specs()
    assert spec.to_json()[name] == kept


@pytest.mark.parametrize("name", FIELDS)
def test_evaluate_has_it_as_an_argument_with_its_default(name: str) -> None:
    for function in (evaluate, aevaluate):
        parameter = inspect.signature(function).parameters[name]
        assert parameter.default == RunSettings.model_fields[name].default
        assert parameter.kind is parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", FIELDS)
def test_the_command_has_it_as_an_option(name: str) -> None:
    flag = {"state_columns": "--state-column", "tags": "--tag", "limits": "--limit", "limits_each": "--limit-each"}.get(name)
    flag = flag or f"--{name.replace('_', '-')}"
    options = {each: parameter for parameter in get_command(app).commands["eval"].params for each in parameter.opts}  # type: ignore[attr-defined]
    assert flag in options


def test_type_checkers_know_the_same_arguments() -> None:
    assert list(RunArguments.__annotations__) == list(RunSettings.model_fields)


async def test_evaluate_plays_by_each_setting(setting: tuple[str, Any, Any, Any], tmp_path: Path) -> None:
    """With the number of tasks, so that it ends soon: what is passed on stands in the run's own metadata, as it was said."""
    name, argument, _, kept = setting
    game = "textarena/TicTacToe-v0" if name == "both_seats" else GAME
    few: dict[str, Any] = {"num_examples": 2} if name == "shard" else {} if name in ("num_examples", "example_ids") else {"num_examples": 1}
    few |= {"executor": "process"} if name == "workers" else {}
    outputs = await aevaluate(game, "random", progress=False, **{**few, name: argument})  # type: ignore[arg-type]
    assert outputs["metadata"]["spec"][name] == kept


def test_an_unknown_argument_is_a_type_error_with_what_was_meant() -> None:
    with pytest.raises(UnknownArgument, match=r"evaluate\(\) has no argument 'num_exmaples'. Did you mean `num_examples`") as caught:
        evaluate(GAME, "random", num_exmaples=3)  # type: ignore[call-arg]
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_examples", 0, "num_examples must be a positive integer, or -1 for no limit, got 0"),
        ("num_examples", True, "num_examples must be a positive integer, or -1 for no limit, got True"),
        ("rollouts_per_example", -1, "rollouts_per_example must be a positive integer, got -1"),
        ("max_concurrent", 1.5, "max_concurrent must be a positive integer, or -1 for no limit, got 1.5"),
        ("seed", -1, "seed must be an integer from 0, got -1"),
        ("max_retries", None, "max_retries must be an integer from 0, got None"),
        ("split", "test", "split must be 'train' or 'eval', got 'test'"),
        ("example_ids", "1,2", "example_ids must be a list of ids"),
        ("example_ids", [1, "2"], "each of example_ids must be an integer, got '2'"),
        ("both_seats", "yes", "both_seats must be True or False, got 'yes'"),
        ("independent_scoring", 0, "independent_scoring must be True or False, got 0"),
        ("strict", 1, "strict must be True or False, got 1"),
        ("pass_threshold", "0.5", "pass_threshold must be a number, got '0.5'"),
        ("shard", "3/3", "there is no shard 3 of 3: they are numbered from 0 to 2"),
        ("shard", (-1, 3), "there is no shard -1 of 3"),
        ("shard", "0/0", "there is no shard 0 of 0"),
        ("shard", 3, "shard must be the number of a part and how many there are, such as 0/3"),
        ("num_examples", -2, "num_examples must be a positive integer, or -1 for no limit, got -2"),
        ("max_concurrent", 0, "max_concurrent must be a positive integer, or -1 for no limit, got 0"),
        ("rollouts_per_example", 0, "rollouts_per_example must be a positive integer, got 0"),
        ("workers", 0, "workers must be a positive integer, got 0"),
        ("strict", None, "strict must be True or False, got None"),
        ("pass_threshold", True, "pass_threshold must be a number, got True"),
        ("example_ids", 3, "example_ids must be a list of ids, such as"),
        ("state_columns", 3, r"state_columns must be a list of names, such as \['trajectory'\], got 3"),
        ("shard", "third", "shard must be the number of a part and how many there are, such as 0/3"),
        ("state_columns", "prompt", "state_columns must be a list of names"),
        ("tags", [""], r"tags must be a list of names, such as \['baseline'\], got \[''\]"),
        ("limits", {"tokens": 0}, "the limit tokens must be a positive integer, got 0"),
        ("limits_each", {"cost": 1}, "there is no limit 'cost'"),
        ("prices", 3, "prices must be a TOML file, or a dict like one, got int"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_its_name(name: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evaluate(GAME, "random", **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "checked"),
    [
        ("num_examples", np.int64(1), 1),
        ("num_examples", -1, -1),
        ("seed", np.uint8(0), 0),
        ("max_retries", 0, 0),
        ("example_ids", (), []),
        ("example_ids", [np.int64(3), -2], [3, -2]),
        ("pass_threshold", np.float32(0.0), 0.0),
        ("pass_threshold", None, None),
        ("shard", "2/3", (2, 3)),
        ("shard", [0, 1], (0, 1)),
        ("shard", None, None),
        ("tags", (), []),
        ("independent_scoring", None, None),
        ("cache", None, None),
        ("cache", False, None),
        ("prices", None, None),
        ("workers", None, None),
    ],
)
def test_a_value_is_checked_to_what_it_means(name: str, value: Any, checked: Any) -> None:
    found = getattr(RunSettings.of({name: value}, "test"), name)
    assert (found, type(found)) == (checked, type(checked))


def test_the_users_cache_is_kept_as_a_flag_and_another_by_its_file(tmp_path: Path) -> None:
    for given, kept in ((True, True), (tmp_path / "c", str(tmp_path / "c")), (ResponseCache(tmp_path / "d"), str(tmp_path / "d"))):
        assert RunSpec.of({"env_id": GAME, "cache": given}, "test").to_json()["cache"] == kept


def test_a_secret_that_does_not_fit_is_not_told() -> None:
    with pytest.raises(ConfigurationError, match=r"^agent must be a valid string, got \{'api_key': '\*\*\*'\}$"):
        RunSpec.of({"env_id": GAME, "agent": {"api_key": "sk-very-secret-1234567890"}}, "test")


# Who plays


@pytest.mark.parametrize(
    ("agent", "given", "isolated"),
    [
        (f"{__name__}:own_agent", {}, None),
        (f"{__name__}:own_agent", {"isolate": True}, False),
        (f"{__name__}:own_agent", {"sandboxed": True}, True),
        ("random", {"isolate": True, "sandboxed": True}, None),
    ],
)
def test_an_agent_of_ones_own_is_isolated_where_that_is_asked(
    agent: str, given: dict[str, bool], isolated: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "IsolatedAgent", lambda name, sandbox: ("isolated", name, sandbox))
    made = RunSpec(env_id=GAME, agent=agent, **given).make_agent()  # type: ignore[arg-type]
    if isolated is None:
        assert made is own_agent or isinstance(made, RandomAgent)
    else:
        assert made == ("isolated", agent, isolated)


def test_who_plays_is_called_by_the_model_or_the_agent() -> None:
    for agent, model, name in (("a", None, "a"), ("a", "m", "m"), (None, None, "")):
        assert RunSpec(env_id=GAME, agent=agent, model=model).name == name


def test_an_environment_is_named_where_its_name_makes_it_again() -> None:
    registered = gym.spec(GAME)
    changed = copy.deepcopy(registered)
    changed.kwargs["map_name"] = "8x8"
    named = [(GAME, GAME), (registered, GAME), (changed, None), (own_agent, f"{__name__}:own_agent"), (lambda: None, None), (3, None)]
    assert [name_of_env(env) for env, _ in named] == [name for _, name in named]


def test_names_and_functions_that_can_be_imported_are_kept() -> None:
    for agent, name in (("random", "random"), (own_agent, f"{__name__}:own_agent")):
        spec = RunSpec.from_json(evaluate(GAME, agent, num_examples=1, progress=False)["metadata"]["spec"])
        assert (spec.agent, spec.model, spec.client) == (name, None, None)


@pytest.mark.parametrize("agent", [lambda observation, info: "left", RandomAgent()], ids=["closure", "object"])
def test_what_has_no_name_is_played_and_not_kept(agent: Any, tmp_path: Path) -> None:
    evaluate(GAME, agent, num_examples=1, progress=False, results_path=tmp_path / "run")
    with pytest.raises(ConfigurationError, match="its environment or agent was given as an object"):
        RunSpec.load(tmp_path / "run")


def test_an_environment_that_is_made_already_is_not_kept() -> None:
    with gym.make(GAME) as env:
        assert "spec" not in evaluate(env, "random", num_examples=1, progress=False)["metadata"]


def test_a_model_is_kept_with_where_it_is_and_without_its_key() -> None:
    with ModelServer({"m": lambda request: "[left]"}) as server:
        config = ClientConfig(
            api_base_url=f"{server.url}/v1", api_key="sk-very-secret-1234567890", extra_headers={"X-Team": "secret-team-123"}
        )
        agent = ModelAgent(config, "m", {"temperature": 0.0})
        url = f"{server.url}/v1"
        metadata = evaluate(GAME, agent, num_examples=1, progress=False, limits_each={"turns": 1})["metadata"]
    assert "secret" not in json.dumps(metadata["spec"])
    spec = RunSpec.from_json(metadata["spec"])
    assert spec.model == "m"
    assert spec.sampling_args == {"temperature": 0.0}
    assert spec.client is not None
    assert spec.client.api_base_url == url
    with pytest.raises(ConfigurationError, match="is without the header X-Team, the api_key"):
        spec.make_agent()


def test_a_model_whose_key_is_in_the_environment_plays_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY_OF_TEST", "sk-of-the-environment")
    with ModelServer({"m": lambda request: "[left]"}) as server:
        agent = ModelAgent(ClientConfig(api_base_url=f"{server.url}/v1", api_key_var="KEY_OF_TEST"), "m")
        first = evaluate(GAME, agent, num_examples=2, progress=False, limits_each={"turns": 1})
        again = evaluate(RunSpec.from_json(first["metadata"]["spec"]), progress=False)
    assert [row["completion"] for row in again["outputs"]] == [row["completion"] for row in first["outputs"]]
    assert again["metadata"]["spec"] == first["metadata"]["spec"]


def test_secrets_among_arguments_have_to_be_given_again() -> None:
    for name in ("env_args", "sampling_args"):
        spec = RunSpec.of({"env_id": GAME, "agent": "random", name: {"api_key": "sk-very-secret-1234567890"}}, "test")
        kept = RunSpec.from_json(spec.to_json())
        assert "very-secret" not in json.dumps(spec.to_json())
        with pytest.raises(ConfigurationError, match=f"the {name} of this run had a secret in them, which is not kept"):
            kept.make_agent()


@pytest.mark.parametrize(("options", "kept"), [({}, {"isolate": True, "sandboxed": False}), ({"answer_seconds": 1.0}, None)])
def test_an_isolated_agent_is_kept_unless_it_was_told_more_than_its_name(options: dict[str, Any], kept: dict[str, Any] | None) -> None:
    name = f"{__file__}:own_agent"
    agent = IsolatedAgent(name, **options)
    try:
        assert agent.as_spec() == (None if kept is None else {"agent": name, **kept})
    finally:
        agent.close()


# Runs that are played again


def test_a_spec_is_played_as_its_arguments_would_be(tmp_path: Path) -> None:
    said: dict[str, Any] = {"num_examples": 2, "rollouts_per_example": 2, "seed": 5, "limits_each": {"turns": 4}, "tags": ["x"]}
    first = evaluate(GAME, "random", env_args={"map_name": "8x8"}, progress=False, results_path=tmp_path / "run", **said)
    again = evaluate(RunSpec.load(tmp_path / "run"), progress=False, results_path=tmp_path / "again")
    assert [row["completion"] for row in again["outputs"]] == [row["completion"] for row in first["outputs"]]
    untimed = {"date", "time", "time_ms", "path_to_save", "timing", "avg_metrics"}
    assert {name: value for name, value in again["metadata"].items() if name not in untimed} == {
        name: value for name, value in first["metadata"].items() if name not in untimed
    }


@pytest.mark.parametrize("ends", ["at once", "in play", "well"])
def test_who_was_made_for_a_spec_is_closed_however_it_ends(ends: str, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    class Held:
        def for_episode(self, env: Any) -> Any:
            if ends == "in play":
                raise OSError("broken off")
            return lambda observation, info: "left"

        def as_spec(self) -> None:
            return None

        def close(self) -> None:
            closed.append(self)

    monkeypatch.setattr(RunSpec, "make_agent", lambda spec: Held())
    spec = RunSpec(env_id="no-such-id" if ends == "at once" else GAME, agent="held", num_examples=1, limits_each={"turns": 1})
    if ends == "well":
        evaluate(spec, progress=False)
    else:
        with pytest.raises((ConfigurationError, OSError)):
            evaluate(spec, progress=False)
    assert len(closed) == 1


def test_a_spec_says_everything_itself_who_plays_too() -> None:
    spec = RunSpec(env_id=GAME, agent="random", num_examples=1)
    for name, value in {"seed": 0, "env_args": {}, "model": "m", "env_id": "x"}.items():
        with pytest.raises(ConfigurationError, match=f"the spec says {name} itself"):
            evaluate(spec, progress=False, **{name: value})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="has neither an agent nor a client"):
        evaluate(RunSpec(env_id=GAME))
    with pytest.raises(ConfigurationError, match="say who plays"):
        evaluate(GAME)
    with pytest.raises(ValidationError, match="frozen"):
        RunSpec(env_id=GAME).seed = 3  # type: ignore[misc]


def test_files_that_hold_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no run in"):
        RunSpec.load(tmp_path)
    (tmp_path / "metadata.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="cannot be played again"):
        RunSpec.load(tmp_path)
    (tmp_path / "metadata.json").write_text('{"spec": {"env_id": "x", "colour": 3}}')
    with pytest.raises(ConfigurationError, match="a run's spec has no argument 'colour'"):
        RunSpec.load(tmp_path)


def specs_of(target: Path, **options: Any) -> list[RunSpec]:
    """Return what ``vfgym eval TARGET`` with some options would play."""
    return [spec for fields in read_evaluations(str(target), options, options) for spec in fields.specs()]


@pytest.mark.parametrize("said", [{"num_examples": 2}, {"example_ids": [1, 0]}], ids=str)
def test_the_command_plays_a_run_again(said: dict[str, Any], tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings: dict[str, Any] = {"seed": 3, "limits_each": {"turns": 2}, "tags": ["x"], "state_columns": ["prompt"], **said}
    evaluate(GAME, "random", env_args={"map_name": "8x8"}, progress=False, results_path=run, **settings)
    assert specs_of(run) == [RunSpec.load(run)]
    (other,) = specs_of(run, seed=0, agents=["oracle"])
    assert other == RunSpec.load(run).model_copy(update={"seed": 0, "agent": "oracle"})


def test_the_command_asks_the_model_of_a_run_again_or_another_provider(tmp_path: Path) -> None:
    with ModelServer({"m": lambda request: "[left]"}) as server:
        agent = ModelAgent(ClientConfig(api_base_url=f"{server.url}/v1", timeout=77.0), "m", {"temperature": 0.5})
        evaluate(GAME, agent, num_examples=1, progress=False, limits_each={"turns": 1}, results_path=tmp_path / "run")
    (spec,) = specs_of(tmp_path / "run")
    assert spec == RunSpec.load(tmp_path / "run")
    assert spec.client is not None
    assert spec.client.timeout == 77.0
    (other,) = specs_of(tmp_path / "run", provider="openai")
    assert other.client == ClientConfig(provider="openai")


# Parts of a run


@pytest.mark.parametrize(
    ("variables", "part"),
    [
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "4", "SLURM_ARRAY_TASK_MIN": "1"}, (2, 4)),
        ({"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_COUNT": "4"}, (0, 4)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, (1, 2)),
        ({"JOB_COMPLETION_INDEX": "0", "JOB_COMPLETIONS": "5"}, (0, 5)),
        # The tasks of an array job have numbers of their own.
        ({"SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, (1, 3)),
    ],
)
def test_a_scheduler_says_which_part_is_played(variables: dict[str, str], part: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert RunSettings.of({"shard": "auto"}, "test").shard == part


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "none of these pairs is set"),
        ({"JOB_COMPLETION_INDEX": "0"}, "none of these pairs is set"),
        ({"SLURM_PROCID": "one", "SLURM_NTASKS": "2"}, "must be numbers, got 'one' and '2'"),
        ({"SLURM_PROCID": "2", "SLURM_NTASKS": "2"}, "there is no shard 2 of 2"),
    ],
)
def test_a_scheduler_that_does_not_say_it_is_an_error(variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=message):
        RunSettings.of({"shard": "auto"}, "test")
