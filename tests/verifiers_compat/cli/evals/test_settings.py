"""Where the settings of an evaluation come from, and which of them wins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from verifiers_compat.cli.evals.fields import EvalFields
from verifiers_compat.cli.evals.settings import MissingEnvironment, check_installed, resolve_config
from vfgym.clients.config import PROVIDERS
from vfgym.errors import ConfigurationError

REGISTRY = """
[[endpoint]]
endpoint_id = "one"
model = "org/one"
url = "http://a/v1"
key = "A_KEY"
type = "openai_responses"
headers = { X-Place = "a" }

[[endpoint]]
endpoint_id = "two"
model = "org/two"
api_base_url = "http://b/v1"
api_key_var = "B_KEY"

[[endpoint]]
endpoint_id = "two"
model = "org/two"
url = "http://c/v1"
key = "C_KEY"
"""


def config_of(**fields: Any) -> Any:
    return resolve_config(EvalFields.parse({"env_id": "yes-no", **fields}, "test"))


@pytest.fixture
def registry(workspace: Path) -> Path:
    file = workspace / "configs" / "endpoints.toml"
    file.parent.mkdir()
    file.write_text(REGISTRY)
    return file


def test_what_is_not_said_has_its_default_and_what_is_said_twice_is_settled() -> None:
    config = config_of()
    client = config.client_config
    assert (config.model, client.api_base_url, client.api_key_var) == ("openai/gpt-4.1-mini", PROVIDERS["prime"].url, "PRIME_API_KEY")
    assert client.client_type == "openai_chat_completions"
    assert client.extra_headers_from_state == {"X-Session-ID": "example_id"}
    assert (config.num_examples, config.rollouts_per_example, config.max_concurrent, config.max_retries) == (5, 3, 32, 0)
    assert (config.sampling_args, config.env_dir_path, config.save_results) == ({}, "./environments", False)
    config = config_of(max_tokens=7, temperature=0.5, sampling_args={"temperature": 0, "seed": 1})
    assert config.sampling_args == {"max_tokens": 7, "temperature": 0, "seed": 1}
    assert config_of(max_tokens=5, temperature=0).sampling_args == {"max_tokens": 5, "temperature": 0}
    assert config_of(model="").model == "openai/gpt-4.1-mini"
    said: dict[str, Any] = {"num_examples": -1, "rollouts_per_example": 1, "max_concurrent": 2, "env_args": {"a": 0}, "max_retries": 4}
    assert config_of(**said).model_dump(include={*said}) == said
    assert config_of(headers_from_state=["X-A: task"]).client_config.extra_headers_from_state == {"X-A": "task"}
    assert config_of(extra_env_kwargs={"timeout_seconds": 9, "x": 1}, timeout=3).extra_env_kwargs == {"timeout_seconds": 3.0, "x": 1}
    assert [config_of(**fields).save_results for fields in ({}, {"save_results": True}, {"save_to_hf_hub": True})] == [False, True, True]


def test_a_name_of_the_registry_gives_model_and_place_unless_more_is_said(registry: Path) -> None:
    config = config_of(model="one", headers=["X-Mine: 1"])
    client = config.client_config
    assert (config.model, client.api_base_url, client.api_key_var, client.client_type) == (
        *("org/one", "http://a/v1"),
        *("A_KEY", "openai_responses"),
    )
    assert client.extra_headers == {"X-Place": "a", "X-Mine": "1"}
    client = config_of(model="one", provider="anthropic", api_key_var="MY_KEY").client_config
    assert (client.api_base_url, client.api_key_var, client.client_type) == (PROVIDERS["anthropic"].url, "MY_KEY", "anthropic_messages")
    client = config_of(model="one", provider="openai", api_base_url="http://z", api_client_type="openai_completions").client_config
    assert (client.api_base_url, client.api_key_var, client.client_type) == ("http://z", "OPENAI_API_KEY", "openai_completions")
    client = config_of(endpoint_id="two").client_config
    assert [each.api_base_url for each in client.endpoints()] == ["http://b/v1", "http://c/v1"]
    assert all(each.extra_headers_from_state == {"X-Session-ID": "example_id"} for each in client.endpoints())
    client = config_of(model="two", provider="vllm").client_config
    assert (client.endpoint_configs, client.api_base_url) == ([], PROVIDERS["vllm"].url)
    config = config_of(model="org/other", provider="openrouter")
    assert (config.model, config.client_config.api_key_var) == ("org/other", "OPENROUTER_API_KEY")
    with pytest.raises(ConfigurationError, match="there is no endpoint 'three'"):
        config_of(endpoint_id="three")
    with pytest.raises(ConfigurationError, match="leave model out"):
        config_of(endpoint_id="one", model="one")
    with pytest.raises(ConfigurationError, match=r"no provider 'openapi'.*Did you mean `openai`"):
        config_of(provider="openapi")


def test_defaults_of_an_environment_stand_in_its_pyproject(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = workspace / "modules" / "pyproject.toml"
    file.write_text('[project]\nname = "yes-no"\n[tool.verifiers.eval]\nnum_examples = 8\nrollouts_per_example = 2\nmodel = "m"')
    config = config_of()
    assert (config.num_examples, config.rollouts_per_example, config.model) == (8, 2, "openai/gpt-4.1-mini")
    assert config_of(rollouts_per_example=4).rollouts_per_example == 4
    file.write_text('[project]\nname = "another"\n[tool.verifiers.eval]\nnum_examples = 8')
    assert config_of().num_examples == 5
    file.write_text("[project")
    assert config_of().num_examples == 5
    assert f"{file} cannot be read, so its defaults for evaluations are not used" in caplog.text
    file.write_text('[project]\nname = "Yes.No"\n[tool.verifiers.eval]\nrollouts_per_example = 1')
    assert (config_of().num_examples, config_of().rollouts_per_example) == (5, 1)
    file.write_text('[project]\nname = "yes_no"\n[tool.verifiers.eval]\nnum_examples = "8"')
    with pytest.raises(ConfigurationError, match=r"\[tool\.verifiers\.eval\]: num_examples: .*got '8'"):
        config_of()


def test_defaults_of_a_package_may_lie_above_it(workspace: Path) -> None:
    package = workspace / "modules" / "packed"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (workspace / "modules" / "pyproject.toml").write_text('[project]\nname = "packed"\n[tool.verifiers.eval]\nnum_examples = -1')
    assert config_of(env_id="owner/packed@latest").num_examples == -1
    (package / "pyproject.toml").write_text("[tool.verifiers.eval]\nnum_examples = 4")
    assert config_of(env_id="packed").num_examples == 4, "what lies in it comes first"


def test_an_environment_has_to_be_installed(workspace: Path) -> None:
    check_installed("yes-no")
    check_installed("owner/yes-no@latest")
    check_installed("gymnasium/CartPole-v1")
    check_installed(f"owner/gymnasium@{gymnasium.__version__}")
    for name, installed in (("gymnasium", gymnasium.__version__), ("yes-no", "without a version")):
        with pytest.raises(MissingEnvironment, match=rf"'{name}' is installed \({installed}\), but not as version 0: install that first"):
            check_installed(f"{name}@0")
    with pytest.raises(ConfigurationError, match="but not as version 2"):
        check_installed("owner/yes-no@2")
    with pytest.raises(ConfigurationError, match=r"no module 'no_such'\. Make it with: vf-init no-such"):
        check_installed("no-such")
    (workspace / "envs" / "no_such").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="Install it with: vf-install no-such -p envs"):
        check_installed("no-such", "envs")
    with pytest.raises(ConfigurationError, match=r"Did you mean .*reasoning-gym/leg_counting-v0"):
        check_installed("reasoning-gym/leg_countin-v0")


def test_what_makes_no_evaluation_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="ask for the upload too"):
        config_of(hf_hub_dataset_name="x")
    with pytest.raises(ConfigurationError, match="needs the id of an environment"):
        config_of(env_id="")
    with pytest.raises(ConfigurationError, match=r"no endpoint registry none\.toml"):
        config_of(endpoints_path="none.toml")


def test_a_run_to_resume_is_named_or_found(workspace: Path) -> None:
    """The newest that is unfinished and has the same settings; else one that has fewer examples than are asked for."""
    with pytest.raises(ConfigurationError, match=r"there is no run to resume in outputs/evals/yes-no--m: .* 3 rollouts .* 5 examples"):
        config_of(model="m", resume=True)
    with pytest.raises(ConfigurationError, match="nowhere holds no results"):
        config_of(model="m", resume="nowhere")
    runs = workspace / "outputs" / "evals" / "yes-no--m"
    same = {"env_id": "yes-no", "model": "m", "rollouts_per_example": 3, "env_args": {}, "sampling_args": {}, "num_examples": 5}
    others: dict[str, Any] = {"hotter": {"sampling_args": {"temperature": 1}}, "args": {"env_args": {"a": 0}}}
    others |= {"often": {"rollouts_per_example": 4}, "limited": {"limits_each": {"max_turns": 1}}, "model": {"model": "n"}}
    for name, changed in {"fewer": {"num_examples": 4}, "same": {}, **others}.items():
        (runs / name).mkdir(parents=True)
        (runs / name / "metadata.json").write_text(json.dumps({**same, "limits_each": {}, **changed}))
        (runs / name / "results.jsonl").write_text("")
    assert config_of(model="m", resume=True).resume_path == Path("outputs/evals/yes-no--m/same")
    for name in ("same", *others):
        shutil.rmtree(runs / name)
    config = config_of(model="m", resume=True)
    assert (config.resume_path, config.save_results) == (Path("outputs/evals/yes-no--m/fewer"), True)
    assert config_of(resume=str(runs / "fewer")).resume_path == runs / "fewer"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("local", None)),
        ({"num_workers": "auto"}, ("local", None)),
        ({"num_workers": "3"}, ("process", 3)),
        ({"num_workers": 1}, ("process", 1)),
        ({"num_workers": 3, "disable_env_server": True}, ("local", None)),
        ({"num_workers": 3, "disable_env_server": False}, ("process", 3)),
        ({"executor": "ray", "workers": 2}, ("ray", 2)),
        ({"workers": 2, "num_workers": "auto"}, ("local", 2)),
    ],
)
def test_workers_are_asked_for_by_either_name(given: dict[str, Any], expected: tuple[str, int | None]) -> None:
    config = resolve_config(EvalFields.parse({"env_id": "e", "model": "m", **given}, "test"))
    assert (config.executor, config.workers) == expected


@pytest.mark.parametrize("other", [{"workers": 2}, {"executor": "local"}])
def test_workers_are_asked_for_by_one_name(other: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="num_workers says where rollouts play, and so do executor and workers"):
        resolve_config(EvalFields.parse({"env_id": "e", "model": "m", "num_workers": 2, **other}, "test"))


@pytest.mark.parametrize("given", [0, -1, "two", True, 1.5])
def test_num_workers_is_a_positive_number_or_auto(given: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"num_workers: .*must be a positive number, or auto"):
        EvalFields.parse({"env_id": "e", "num_workers": given}, "test")


@pytest.mark.parametrize(("given", "count"), [({}, 5), ({"num_examples": 3}, 3), ({"example_ids": "4,6"}, -1)])
def test_tasks_that_are_named_need_no_number(given: dict[str, Any], count: int) -> None:
    config = resolve_config(EvalFields.parse({"env_id": "e", "model": "m", **given}, "test"))
    assert config.num_examples == count
    assert config.example_ids == ([4, 6] if "example_ids" in given else None)
