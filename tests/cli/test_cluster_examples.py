"""The examples for clusters: what each of their processes does is a part of the run, and goes on where it was."""

from __future__ import annotations

import shlex
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

import vfgym
from vfgym.cli import main
from vfgym.results import load_results

EXAMPLES = Path(__file__).parents[2] / "examples/cluster"
JOB = yaml.safe_load((EXAMPLES / "job.yaml").read_text())
POD = JOB["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def command_of(script: str) -> str:
    """Return the command of a script that evaluates."""
    return script[script.index("vfgym eval") :].replace("\\\n", " ")


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        (
            command_of((EXAMPLES / "eval.sbatch").read_text()),
            {"SLURM_ARRAY_TASK_ID": "{number}", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_COUNT": "2"},
        ),
        (command_of(CONTAINER["args"][0]), {"JOB_COMPLETION_INDEX": "{number}", "JOB_COMPLETIONS": "2"}),
    ],
)
def test_parts_are_the_run(command: str, variables: dict[str, str], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smaller = {"1000": "6", "--executor process --workers 4": "", "/results/parts": "parts"}
    for number in ("0", "1", "1"):  # the last again, as after it was preempted
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(number=number))
        text = Template(command).substitute({name: value.format(number=number) for name, value in variables.items()})
        for said, meant in smaller.items():
            text = text.replace(said, meant)
        assert run(text) == 0
    assert run("vfgym merge parts/0/evals/*/* parts/1/evals/*/* -o whole") == 0
    whole: Any = load_results(directory / "whole")
    expected: Any = vfgym.evaluate("gymnasium/FrozenLake-v1", "random", num_examples=6, progress=False)
    assert [row["completion"] for row in whole["outputs"]] == [row["completion"] for row in expected["outputs"]]


def run(text: str) -> int | str | None:
    """Run a command in this process, as a shell would read it; return its exit code."""
    program, *words = [word for given in shlex.split(text) for word in ([*map(str, Path().glob(given))] if "*" in given else [given])]
    assert program == "vfgym"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", [program, *words])
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code or 0


def test_the_job_says_to_its_pods_how_many_they_are() -> None:
    spec, variables = JOB["spec"], {each["name"]: each.get("value") for each in CONTAINER["env"]}
    assert (JOB["kind"], spec["completionMode"], variables["JOB_COMPLETIONS"]) == ("Job", "Indexed", str(spec["completions"]))
    assert [mount["mountPath"] for mount in CONTAINER["volumeMounts"]] == ["/results"]
    assert [mount["name"] for mount in CONTAINER["volumeMounts"]] == [volume["name"] for volume in POD["volumes"]]
    assert CONTAINER["resources"]["requests"]["cpu"] == "4"


def test_the_array_begins_at_0_and_asks_for_the_cores_it_uses() -> None:
    options = dict(line.removeprefix("#SBATCH --").partition("=")[::2] for line in (EXAMPLES / "eval.sbatch").read_text().splitlines())
    assert (options["array"].partition("-")[0], options["cpus-per-task"]) == ("0", "4")
