"""Where the settings of an evaluation come from: the registry of endpoints, config files, ablations, and which of them wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.cli.evals.fields import EvalFields
from verifiers_compat.cli.evals.settings import check_installed, resolve_config
from verifiers_compat.utils.eval_utils import (
    filter_inputs,
    get_log_level,
    invalid_ablation_sweep_fields,
    load_endpoints,
    load_toml_config,
    normalize_env_id_alias,
    resolve_endpoints_file,
)
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


# The registry


def test_registry_gives_the_variants_of_each_endpoint(registry: Path) -> None:
    endpoints = load_endpoints(registry)
    assert endpoints == {
        "one": [
            {
                "model": "org/one",
                "url": "http://a/v1",
                "key": "A_KEY",
                "api_client_type": "openai_responses",
                "extra_headers": {"X-Place": "a"},
            }
        ],
        "two": [{"model": "org/two", "url": f"http://{x}/v1", "key": f"{x.upper()}_KEY"} for x in "bc"],
    }


def test_registry_may_be_the_older_python_file(workspace: Path) -> None:
    file = workspace / "endpoints.py"
    file.write_text('ENDPOINTS = {"x": {"model": "m", "url": "http://x", "key": "K"}, "y": [{"model": "n", "url": "u", "key": "K"}] * 2}')
    endpoints = load_endpoints(workspace / "endpoints.toml")  # the default name, where only the other is there
    assert endpoints["x"] == [{"model": "m", "url": "http://x", "key": "K"}]
    assert len(endpoints["y"]) == 2
    assert resolve_endpoints_file(workspace) == file
    assert resolve_endpoints_file(workspace / "no.toml") is None


def test_a_registry_that_cannot_be_used_is_empty_with_a_warning(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load_endpoints(workspace / "endpoints.toml") == {}
    assert "there is no endpoint registry" in caplog.text
    (workspace / "endpoints.toml").write_text("[[endpoint")
    assert load_endpoints(workspace / "endpoints.toml") == {}
    assert "cannot be read" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[endpoint]]\nmodel = "m"', "needs an endpoint_id"),
        ('[[endpoint]]\nendpoint_id = "x"\nmodel = "m"\nurl = "u"', "key is missing"),
        ('[[endpoint]]\nendpoint_id = "x"\nmodle = "m"', "no field 'modle'.*Did you mean `model`"),
        ('[[endpoint]]\nendpoint_id = "x"\nurl = "u"\napi_base_url = "v"', "url and api_base_url"),
        ('[[endpoint]]\nendpoint_id = "x"\nheaders = "h"', "headers: must be a table"),
        (
            '[[endpoint]]\nendpoint_id = "x"\nmodel = "m"\nurl = "u"\nkey = "k"\ntype = "openai_chat"',
            "type: .*Did you mean `openai_chat_completions`",
        ),
        (
            '[[endpoint]]\nendpoint_id = "x"\nmodel = "m"\nurl = "u"\nkey = "k"\n'
            '[[endpoint]]\nendpoint_id = "x"\nmodel = "n"\nurl = "u"\nkey = "k"',
            "must serve one model; got m, n",
        ),
        ("endpoint = 3", "must be a table"),
    ],
)
def test_a_wrong_registry_stops_an_evaluation(workspace: Path, text: str, message: str) -> None:
    (workspace / "endpoints.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=message):
        config_of(endpoints_path="endpoints.toml")


# The model


def test_without_a_word_everything_has_its_default() -> None:
    config = config_of()
    client = config.client_config
    assert (config.model, client.api_base_url, client.api_key_var) == ("openai/gpt-4.1-mini", PROVIDERS["prime"].url, "PRIME_API_KEY")
    assert client.client_type == "openai_chat_completions"
    assert client.extra_headers_from_state == {"X-Session-ID": "example_id"}
    assert (config.num_examples, config.rollouts_per_example, config.max_concurrent, config.max_retries) == (5, 3, 32, 0)
    assert (config.sampling_args, config.env_dir_path, config.save_results) == ({}, "./environments", False)


def test_a_name_of_the_registry_gives_model_and_place(registry: Path) -> None:
    config = config_of(model="one", headers=["X-Mine: 1"])
    client = config.client_config
    assert (config.model, client.api_base_url, client.api_key_var, client.client_type) == (
        *("org/one", "http://a/v1"),
        *("A_KEY", "openai_responses"),
    )
    assert client.extra_headers == {"X-Place": "a", "X-Mine": "1"}


def test_provider_wins_over_the_registry_and_explicit_values_over_both(registry: Path) -> None:
    client = config_of(model="one", provider="anthropic", api_key_var="MY_KEY").client_config
    assert (client.api_base_url, client.api_key_var, client.client_type) == (PROVIDERS["anthropic"].url, "MY_KEY", "anthropic_messages")
    client = config_of(model="one", provider="openai", api_base_url="http://z", api_client_type="openai_completions").client_config
    assert (client.api_base_url, client.api_key_var, client.client_type) == ("http://z", "OPENAI_API_KEY", "openai_completions")


def test_variants_of_an_endpoint_take_turns_unless_one_place_is_given(registry: Path) -> None:
    client = config_of(endpoint_id="two").client_config
    assert [each.api_base_url for each in client.endpoints()] == ["http://b/v1", "http://c/v1"]
    assert all(each.extra_headers_from_state == {"X-Session-ID": "example_id"} for each in client.endpoints())
    client = config_of(model="two", provider="vllm").client_config
    assert (client.endpoint_configs, client.api_base_url) == ([], PROVIDERS["vllm"].url)


def test_a_model_that_the_registry_does_not_know_is_taken_literally(registry: Path) -> None:
    config = config_of(model="org/other", provider="openrouter")
    assert (config.model, config.client_config.api_key_var) == ("org/other", "OPENROUTER_API_KEY")
    with pytest.raises(ConfigurationError, match="there is no endpoint 'three'"):
        config_of(endpoint_id="three")
    with pytest.raises(ConfigurationError, match="leave model out"):
        config_of(endpoint_id="one", model="one")
    with pytest.raises(ConfigurationError, match=r"no provider 'openapi'.*Did you mean `openai`"):
        config_of(provider="openapi")


# Other fields


def test_sampling_args_win_over_the_options_that_stand_for_them() -> None:
    config = config_of(max_tokens=7, temperature=0.5, sampling_args={"temperature": 0, "seed": 1})
    assert config.sampling_args == {"max_tokens": 7, "temperature": 0, "seed": 1}


def test_timeout_wins_over_what_is_set_on_the_environment() -> None:
    assert config_of(extra_env_kwargs={"timeout_seconds": 9, "x": 1}, timeout=3).extra_env_kwargs == {"timeout_seconds": 3.0, "x": 1}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"modle": "m"}, "no field 'modle'.*Did you mean `model`"),
        ({"num_examples": 0}, "num_examples: .*positive, or -1"),
        ({"num_examples": "5"}, "num_examples: .*got '5'"),
        ({"rollouts_per_example": -1}, "rollouts_per_example"),
        ({"headers": ["X"]}, "a header is written 'Name: value'"),
        ({"timeout": 0}, "timeout"),
        ({"id": "x", "env_id": "y"}, "id and env_id"),
        ({"max_concurrent": 1, "max_concurrent_generation": 2}, "max_concurrent and max_concurrent_generation"),
        ({"hf_hub_dataset_name": "x"}, "save_to_hf_hub"),
    ],
)
def test_wrong_fields_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        resolve_config(EvalFields.parse({**({} if "id" in fields else {"env_id": "yes-no"}), **fields}, "test"))


def test_defaults_of_an_environment_stand_in_its_pyproject(workspace: Path) -> None:
    file = workspace / "modules" / "pyproject.toml"
    file.write_text('[project]\nname = "yes-no"\n[tool.verifiers.eval]\nnum_examples = 8\nrollouts_per_example = 2\nmodel = "m"')
    config = config_of()
    assert (config.num_examples, config.rollouts_per_example, config.model) == (8, 2, "openai/gpt-4.1-mini")
    assert config_of(rollouts_per_example=4).rollouts_per_example == 4
    file.write_text('[project]\nname = "another"\n[tool.verifiers.eval]\nnum_examples = 8')
    assert config_of().num_examples == 5
    file.write_text('[project]\nname = "yes_no"\n[tool.verifiers.eval]\nnum_examples = "8"')
    with pytest.raises(ConfigurationError, match=r"\[tool\.verifiers\.eval\]: num_examples: .*got '8'"):
        config_of()


def test_defaults_of_a_package_may_lie_above_it(workspace: Path) -> None:
    package = workspace / "modules" / "packed"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (workspace / "modules" / "pyproject.toml").write_text('[project]\nname = "packed"\n[tool.verifiers.eval]\nnum_examples = -1')
    assert config_of(env_id="owner/packed@latest").num_examples == -1


def test_an_environment_has_to_be_installed(workspace: Path) -> None:
    check_installed("yes-no")
    check_installed("owner/yes-no@latest")
    check_installed("gymnasium/CartPole-v1")
    with pytest.raises(ConfigurationError, match="but not as version 2"):
        check_installed("owner/yes-no@2")
    with pytest.raises(ConfigurationError, match=r"no module 'no_such'\. Make it with: vf-init no-such"):
        check_installed("no-such")
    (workspace / "envs" / "no_such").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="Install it with: vf-install no-such -p envs"):
        check_installed("no-such", "envs")
    with pytest.raises(ConfigurationError, match=r"Did you mean .*reasoning-gym/leg_counting-v0"):
        check_installed("reasoning-gym/leg_countin-v0")


# Config files


def evals_of(workspace: Path, text: str, **options: Any) -> list[dict[str, Any]]:
    file = workspace / "run" / "config.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return load_toml_config(file, **options)


def test_a_table_wins_over_what_stands_above_all_tables(workspace: Path) -> None:
    evals = evals_of(
        workspace,
        'model = "m"\nnum_examples = 2\nendpoints_path = "../e.toml"\n'
        '[[eval]]\nid = "a"\nenv_args = { x = 1 }\n'
        '[[eval]]\nenv_id = "b"\nnum_examples = 3\nendpoint_id = "e"\n',
    )
    path = str(workspace / "run" / "../e.toml")
    assert evals == [
        {"env_id": "a", "env_args": {"x": 1}, "model": "m", "num_examples": 2, "endpoints_path": path},
        {"env_id": "b", "endpoint_id": "e", "num_examples": 3, "endpoints_path": path},
    ]


def test_an_ablation_is_one_evaluation_for_each_combination(workspace: Path) -> None:
    evals = evals_of(
        workspace,
        'num_examples = 1\n[[ablation]]\nenv_id = "a"\nargs = { z = 0 }\n'
        '[ablation.sweep]\ntemperature = [0.0, 1.0]\n[ablation.sweep.args]\nx = [1, 2]\ny = ["only"]\n[[eval]]\nenv_id = "b"\n',
    )
    assert evals[0] == {"env_id": "b", "num_examples": 1}
    assert evals[1:] == [
        {"env_id": "a", "num_examples": 1, "temperature": temperature, "env_args": {"z": 0, "x": x, "y": "only"}}
        for temperature in (0.0, 1.0)
        for x in (1, 2)
    ]


def test_an_ablation_may_sweep_environments_and_models(workspace: Path) -> None:
    evals = evals_of(workspace, '[[ablation]]\nn = 1\n[ablation.sweep]\nenv_id = ["a", "b"]\nmodel = ["m"]', extra_valid_fields=["n"])
    assert evals == [{"n": 1, "env_id": name, "model": "m"} for name in "ab"]


def test_sections_of_the_environments_configuration_are_its_argument_config(workspace: Path) -> None:
    """The values of the first file are those that verifiers 0.1.14 gives."""
    evals = evals_of(
        workspace,
        '[taskset]\nn = 2\nlevel = "hard"\n[harness]\nstyle = "z"\n'
        '[[eval]]\nenv_id = "a"\n[eval.taskset]\nn = 5\n[eval.args]\nsplit = "x"\n'
        '[[ablation]]\nenv_id = "b"\n[ablation.sweep.args]\nq = [1, 2]\n',
    )
    harness = {"style": "z"}
    assert [each["env_args"] for each in evals] == [
        {"split": "x", "config": {"taskset": {"n": 5}, "harness": harness}},
        {"q": 1, "config": {"taskset": {"n": 2, "level": "hard"}, "harness": harness}},
        {"q": 2, "config": {"taskset": {"n": 2, "level": "hard"}, "harness": harness}},
    ]
    assert not any(name in each for each in evals for name in ("taskset", "harness", "env"))


def test_a_table_env_says_what_is_about_the_environment(workspace: Path) -> None:
    sections = '[env.taskset]\nn = 2\n[env.harness]\nstyle = "z"\n[env.args]\nsplit = "x"\n'
    args = {"split": "x", "config": {"taskset": {"n": 2}, "harness": {"style": "z"}}}
    assert evals_of(workspace, f'model = "m"\n[env]\nid = "a"\n{sections}') == [{"env_id": "a", "model": "m", "env_args": args}]
    assert evals_of(workspace, f'env_id = "a"\n{sections}') == [{"env_id": "a", "env_args": args}]
    evals = evals_of(workspace, f'{sections}[[eval]]\nid = "a"\n[[eval]]\n[eval.env]\nid = "b"\n[eval.env.taskset]\nn = 3\n')
    assert [(each["env_id"], each["env_args"]["config"]["taskset"]) for each in evals] == [("a", {"n": 2}), ("b", {"n": 3})]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[eval", "cannot be read"),
        ("[env.taskset]\nn = 1", r"no evaluations: add a table \[\[eval\]\] with an env_id"),
        ("env = 3", r"env must be a table \[env\], got 3"),
        ('[[env]]\nid = "a"', r"env must be a table \[env\]"),
        ('[env]\nid = "a"\n[env.tasket]\nn = 1', r"\[env\] has no 'tasket'; it has id, args, taskset, harness\. Did you mean `taskset`"),
        ('env_id = "b"\n[env]\nid = "a"', "says the same twice, as env_id and env.id"),
        ('[env]\nid = "b"\n[[eval]]\nenv_id = "a"', "belongs into"),
        ('[[eval]]\nenv_id = "a"\ntaskset = 3', "eval 1: taskset: must be a table, got 3"),
        (
            '[[eval]]\nenv_id = "a"\n[eval.args.config.taskset]\nn = 1\n[eval.taskset]\nn = 2',
            r"config\.toml: a: args\.config and taskset say the same twice",
        ),
        ("", "no evaluations"),
        ("eval = 3", r"must be tables \[\[eval\]\]"),
        ('[[evals]]\nenv_id = "a"', "no table or field 'evals'.*Did you mean `eval`"),
        ("[[eval]]\nnum_examples = 1", "eval 1 needs an env_id"),
        ('env_id = "a"\n[[eval]]\nenv_id = "a"', "belongs into"),
        ('[[eval]]\nenv_id = "a"\nid = "a"', "id and env_id"),
        ('[[eval]]\nenv_id = "a"\nnum_exampels = 3', "eval 1: there is no field 'num_exampels'. Did you mean `num_examples`"),
        ('[[eval]]\nenv_id = "a"\nnum_examples = "3"', "eval 1: num_examples: .*got '3'"),
        ('[[eval]]\nenv_id = "a"\nmodel = "m"\nendpoint_id = "e"', "leave model out"),
        ('[[ablation]]\nenv_id = "a"', "needs a table"),
        ('[[ablation]]\nenv_id = "a"\n[ablation.sweep]\ntemperature = 1.0', "temperature must be a list"),
        ('[[ablation]]\nenv_id = "a"\n[ablation.sweep]\ntemperature = []', "temperature must be a list"),
        ('[[ablation]]\nenv_id = "a"\n[ablation.sweep]\ntemprature = [1.0]', "no field 'temprature'. Did you mean `temperature`"),
        ('[[ablation]]\nenv_id = "a"\n[ablation.sweep.args]\nx = 1', "x must be a list"),
        ('[[ablation]]\nenv_id = "a"\nenv_args = { x = 1 }\n[ablation.sweep.args]\nx = [1]', "'x' is both fixed and in sweep.args"),
        ('[[ablation]]\nenv_id = "a"\nmodel = "m"\n[ablation.sweep]\nmodel = ["m"]', "'model' is both fixed and in sweep"),
        ('[[ablation]]\nenv_id = "a"\nid = "a"\n[ablation.sweep]\nmodel = ["m"]', "id and env_id"),
    ],
)
def test_wrong_config_files_are_refused(workspace: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evals_of(workspace, text)


def test_tables_and_inputs_are_sorted_out() -> None:
    assert normalize_env_id_alias({"id": "a", "model": "m"}, "eval") == {"env_id": "a", "model": "m"}
    assert invalid_ablation_sweep_fields({"args": {}, "x": [], "model": []}, ["model"]) == ["x"]
    inputs = [{"example_id": i, "n": n} for n in range(2) for i in range(3)]
    outputs = [{"example_id": 0}, {"example_id": 1}, {"example_id": 1}]
    assert filter_inputs(inputs, outputs, 2) == [{"example_id": 0, "n": 0}, {"example_id": 2, "n": 0}, {"example_id": 2, "n": 1}]


def test_log_level_is_that_of_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VF_LOG_LEVEL", raising=False)
    assert (get_log_level(False), get_log_level(True)) == ("INFO", "DEBUG")
    monkeypatch.setenv("VF_LOG_LEVEL", "ERROR")
    assert (get_log_level(False), get_log_level(True)) == ("ERROR", "DEBUG")
