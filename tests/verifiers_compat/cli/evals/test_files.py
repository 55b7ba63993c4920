"""Config files of ``vf-eval``: tables, ablations, and the sections of an environment's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.utils.eval_utils import invalid_ablation_sweep_fields, load_toml_config, normalize_env_id_alias
from vfgym.errors import ConfigurationError


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
    [fields] = evals_of(workspace, '[[eval]]\nenv_id = "a"\n[eval.args.config.harness]\nn = 1\n[eval.taskset]\nn = 2\n')
    assert fields["env_args"] == {"config": {"harness": {"n": 1}, "taskset": {"n": 2}}}


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
        ('[[eval]]\nenv_id = "a"\nid = "a"', "id and env_id"),
        ('[[eval]]\nenv_id = "a"\nnum_exampels = 3', "eval 1: there is no field 'num_exampels'. Did you mean `num_examples`"),
        ('[[eval]]\nenv_id = "a"\nnum_examples = "3"', "eval 1: num_examples: .*got '3'"),
        ('[[eval]]\nenv_id = "a"\nmodel = "m"\nendpoint_id = "e"', "leave model out"),
        ('[[ablation]]\nenv_id = "a"\n[ablation.sweep]\ntemperature = 1.0', "temperature must be a list"),
        ('[[ablation]]\nenv_id = "a"\n[ablation.sweep]\ntemprature = [1.0]', "no field 'temprature'. Did you mean `temperature`"),
        ('[[ablation]]\nenv_id = "a"\nid = "a"\n[ablation.sweep]\nmodel = ["m"]', "id and env_id"),
    ],
)
def test_wrong_config_files_are_refused(workspace: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        evals_of(workspace, text)


def test_tables_are_sorted_out() -> None:
    assert normalize_env_id_alias({"id": "a", "model": "m"}, "eval") == {"env_id": "a", "model": "m"}
    assert invalid_ablation_sweep_fields({"args": {}, "x": [], "model": []}, ["model"]) == ["x"]
