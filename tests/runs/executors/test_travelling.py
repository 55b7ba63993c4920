"""What can be played elsewhere, and how it is told there; what cannot is refused by its name before anything starts."""

from __future__ import annotations

import concurrent.futures
import json
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

import vfgym
from tests.runs.executors.players import Counting, answer, counting
from vfgym import ClientConfig, ModelAgent, RunSpec
from vfgym.bounded_json import dump_json
from vfgym.errors import ConfigurationError
from vfgym.runs.executors.travelling import check_can_travel, module_of_id, register, registered_here, spec_as_data
from vfgym.testing import ScriptedClient

NAME = "tests.runs.executors.players:counting"
KEY = "sk-0123456789abcdef"


class Never(concurrent.futures.Executor):
    """Starts nothing."""

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Fail."""
        raise AssertionError("something was started")


def refused(env: Any, agent: Any, **kwargs: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        vfgym.evaluate(env, agent, executor=Never(), progress=False, **kwargs)
    return str(caught.value)


def of_the_script(observation: Any, info: Any) -> str:
    return ""


of_the_script.__module__ = "__main__"


@pytest.mark.parametrize(
    ("env", "agent", "message"),
    [
        (Counting(), answer, "env must be an id, 'module:function', or a function of a module that makes one, got an object of Counting"),
        (lambda: Counting(), answer, r"env must be .*, got .*<lambda>"),
        (counting, lambda observation, info: "", r"agent must be a name .*, got .*<lambda>"),
        (counting, of_the_script, "agent must be a name .*, got of_the_script of __main__, which is the script itself"),
        (counting, ModelAgent(ScriptedClient(["a"]), "m"), "agent must ask a model by a ClientConfig, got a ModelAgent with a client of"),
        (counting, "human", "agent must not be a human, who sits at this one"),
        (NAME, "human", "agent must not be a human"),
    ],
)
def test_what_has_no_name_elsewhere_is_refused(env: Any, agent: Any, message: str) -> None:
    import re

    text = refused(env, agent)
    assert text.startswith("workers play in other processes, so ")
    assert re.search(message, text), text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"num_tasks": object()}, "'num_tasks' is, or has in it, an object of object"),
        ({"num_tasks": [1, {2: 3}]}, "'num_tasks' has the key 2, which is not text"),
        ({"a": 1, "b": {"c": {1}}}, "'b' is, or has in it, an object of set"),
    ],
)
def test_arguments_without_a_form_in_json_are_refused(value: dict[str, Any], reason: str) -> None:
    spec = RunSpec(env_id=NAME, agent="random", env_args=value)
    assert refused(spec, "random").endswith(f"env_args must have a form in JSON, and {reason}")


def test_a_spec_of_the_registry_goes_by_its_id_and_another_one_is_refused() -> None:
    spec = gym.spec("gymnasium/FrozenLake-v1")
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        there = vfgym.evaluate(spec, "random", num_examples=2, executor=threads, progress=False)
    assert there["metadata"]["spec"]["env_id"] == "gymnasium/FrozenLake-v1"
    import dataclasses

    assert "got an object of EnvSpec" in refused(dataclasses.replace(spec, max_episode_steps=3), "random")


def test_workers_are_told_all_that_the_spec_says_but_for_what_is_the_coordinators() -> None:
    spec = RunSpec.of(
        {
            "env_id": NAME,
            "env_args": {"a": (1, 2)},
            "agent": "random",
            "limits": {"tokens": 3},
            "prices": {"m": {"input": 1.0, "output": 2.0}},
        }
        | {"cache": True, "executor": "process", "workers": 3, "seed": 5, "shard": "0/2"},
        "test",
    )
    data, has_secrets = spec_as_data(spec)
    assert not has_secrets
    again = RunSpec.from_json(json.loads(dump_json(data)))
    expected = {**spec.to_json(), "env_args": {"a": [1, 2]}, "cache": None, "executor": "local", "workers": None}
    assert again.to_json() == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"api_key": KEY},
        {"extra_headers": {"X-Key": KEY}},
        {"api_base_url": f"http://127.0.0.1:1/v1?key={KEY}"},
        {"endpoint_configs": [ClientConfig(api_base_url="http://127.0.0.1:1/v1", api_key=KEY)]},
    ],
)
def test_secrets_are_told_as_they_are_and_it_is_known_that_there_are_some(fields: dict[str, Any]) -> None:
    config = ClientConfig(**{"api_base_url": "http://127.0.0.1:1/v1", **fields})
    data, has_secrets = spec_as_data(RunSpec(env_id=NAME, model="m", client=config))
    assert has_secrets
    assert KEY in dump_json(data)
    again = RunSpec.from_json(json.loads(dump_json(data))).client
    assert again == config
    endpoint, before = again.endpoints()[0], config.endpoints()[0]  # type: ignore[union-attr]
    assert (endpoint.resolve_api_key(), endpoint.extra_headers, str(endpoint.api_base_url)) == (
        before.resolve_api_key(),
        before.extra_headers,
        str(before.api_base_url),
    )


def test_a_key_that_a_variable_holds_is_no_secret_of_the_spec() -> None:
    config = ClientConfig(api_base_url="http://127.0.0.1:1/v1", api_key_var="SOME_KEY", timeout=7.0)
    data, has_secrets = spec_as_data(RunSpec(env_id=NAME, model="m", client=config, sampling_args={"temperature": 0.0}))
    assert not has_secrets
    assert RunSpec.from_json(json.loads(dump_json(data))).client == config


def test_secrets_in_arguments_are_known_too() -> None:
    _, has_secrets = spec_as_data(RunSpec(env_id=NAME, agent="random", env_args={"api_key": KEY}))
    assert has_secrets


class Here(gym.Env[Any, Any]):
    """One of this module."""


@pytest.fixture
def ids(monkeypatch: pytest.MonkeyPatch) -> dict[str, EnvSpec]:
    """Ids that this process registers: by a class, by text, with a secret; and two that have no form elsewhere."""
    monkeypatch.setattr(gym.envs.registration, "registry", registry := dict(gym.registry))
    monkeypatch.setattr(gym, "registry", registry)
    for spec in (
        EnvSpec("t/Class-v0", entry_point=Here, vector_entry_point=Here, kwargs={"size": 3}, max_episode_steps=7),
        EnvSpec("t/Name-v0", entry_point="a.b:c"),
        EnvSpec("t/Secret-v0", entry_point="a.b:c", kwargs={"api_key": KEY}),
        EnvSpec("t/Script-v0", entry_point=of_the_script),
        EnvSpec("t/Text-v0", entry_point="__main__:make"),
        EnvSpec("t/Lambda-v0", entry_point=lambda: Here()),
        EnvSpec("t/Object-v0", entry_point=Here, kwargs={"part": object()}),
    ):
        registry[spec.id] = spec
    return registry


def test_ids_of_this_process_travel(ids: dict[str, EnvSpec]) -> None:
    registered = registered_here()
    specs = {spec.id: (spec, has_secrets) for text, has_secrets in registered if (spec := EnvSpec.from_json(text)).namespace == "t"}
    assert {env_id: has_secrets for env_id, (_, has_secrets) in specs.items()} == {
        "t/Class-v0": False,
        "t/Name-v0": False,
        "t/Secret-v0": True,
    }
    spec = specs["t/Class-v0"][0]
    assert (spec.entry_point, spec.vector_entry_point, spec.kwargs, spec.max_episode_steps) == (f"{__name__}:Here", None, {"size": 3}, 7)
    assert not {"gymnasium/FrozenLake-v1", "CartPole-v1", "textarena/Chess-v0"} & {EnvSpec.from_json(text).id for text, _ in registered}

    del ids["t/Class-v0"]
    kept = ids["t/Name-v0"]
    register([text for text, _ in registered])
    assert ids["t/Class-v0"] == spec
    assert ids["t/Name-v0"] is kept


def test_which_module_makes_the_environment_of_an_id(ids: dict[str, EnvSpec]) -> None:
    found = {
        "t/Class-v0": __name__,
        "t/Lambda-v0": __name__,
        "t/Script-v0": None,
        "t/Name-v0": "a.b",
        "of-players/Counting-v0": NAME.partition(":")[0],
    }
    found |= {NAME: NAME.partition(":")[0], "some.module:ids/X-v0": "some.module"}
    assert {env_id: module_of_id(env_id) for env_id in found} == found
    for known in ("gymnasium/FrozenLake-v1", "CartPole-v1", "nowhere/X-v0", "vfgym:textarena/Chess-v0"):
        assert module_of_id(known) is None


@pytest.mark.usefixtures("ids")
def test_an_id_whose_entry_point_is_of_the_script_is_refused_and_one_of_a_module_is_registered_by_it() -> None:
    for env_id in ("t/Script-v0", "t/Text-v0"):
        assert f"{env_id!r} must be registered with an entry point that they can import, got" in refused(env_id, "random")
        assert module_of_id(env_id) is None
    spec = RunSpec(env_id="t/Lambda-v0", agent="random")
    assert check_can_travel(spec, spec.env_id, spec.agent) is spec


@pytest.mark.usefixtures("ids")
def test_secrets_of_the_run_are_those_of_its_own_id() -> None:
    assert spec_as_data(RunSpec(env_id="t/Secret-v0", agent="random"))[1]
    assert not spec_as_data(RunSpec(env_id="t/Name-v0", agent="random"))[1]
