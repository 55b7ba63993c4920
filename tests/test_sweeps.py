"""``vfgym eval`` with many runs: files of evaluations, variations, what is chosen of them, and one table of all."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import vfgym.cli
from vfgym.cli.sweeps import parse_variations
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.results import compare, load_results

GAME = "gymnasium/FrozenLake-v1"
DATASET = "reasoning-gym/leg_counting-v0"

FILE = f"""
num_examples = 4
agents = ["random"]

[[eval]]
env_id = "{DATASET}"
agents = ["random", "oracle"]
num_examples = 3

[[ablation]]
id = "{GAME}"
args = {{ max_turns = 5 }}

[ablation.sweep]
rollouts_per_example = [2]

[ablation.sweep.args]
history = [1, 3]
"""
TITLES = [f"{DATASET}: random", f"{DATASET}: oracle", f"{GAME}: random (history=1)", f"{GAME}: random (history=3)"]


class Done(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str

    @property
    def value(self) -> Any:
        """The one JSON value on standard output."""
        return json.loads(self.stdout)


Run = Callable[..., Done]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evals.toml").write_text(FILE)
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process, which is quicker."""

    def run_command(*arguments: str, exit_code: int = 0, columns: int | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["vfgym", "eval", *arguments])
        monkeypatch.setenv("COLUMNS", "" if columns is None else str(columns))
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            vfgym.cli.main()
        done = Done(int(caught.value.code or 0), *capsys.readouterr())
        assert done.exit_code == exit_code, done.stderr
        return done

    return run_command


def rows_on_disk(directory: Path) -> list[Path]:
    return sorted((directory / "outputs").glob("evals/*/*/results.jsonl"))


# Files


def test_a_file_is_played_as_its_dry_run_says(run: Run, directory: Path) -> None:
    planned = run("evals.toml", "--dry-run", "--json").value
    assert not (directory / "outputs").exists()
    played = run("evals.toml", "--json").value
    assert [each["title"] for each in planned["runs"]] == [each["title"] for each in played["runs"]] == TITLES
    assert [each["rollouts"] for each in planned["runs"]] == [each["rollouts"] for each in played["runs"]] == [3, 3, 8, 8]
    assert planned["rollouts"] == 22
    assert [each["env_args"] for each in played["runs"][2:]] == [{"max_turns": 5, "history": 1}, {"max_turns": 5, "history": 3}]
    for each in played["runs"]:
        results = load_results(each["path"])
        assert len(results["outputs"]) == each["rollouts"]
        assert results["metadata"]["avg_reward"] == each["avg_reward"]


def test_each_run_is_compared_with_the_first_of_its_environment(run: Run) -> None:
    played = run("evals.toml", "--json").value
    pairs = played["pairs"]
    assert [(pair["a"], pair["b"]) for pair in pairs] == [(0, 1), (2, 3)]
    for pair in pairs:
        (expected,) = compare(*(played["runs"][pair[which]]["path"] for which in "ab"))["pairs"]
        for name in ("difference", "interval", "examples", "rollouts", "better", "worse", "equal"):
            assert pair[name] == expected[name]
        if expected["p_value"] is not None:
            assert expected["p_value"] <= pair["p_value"] <= 2 * expected["p_value"], "corrected for there being two"
    assert pairs[0]["verdict"].startswith("not distinguishable with 3 tasks; about ")
    assert pairs[0]["verdict"].endswith("if oracle really differs from random by 1")


def test_one_table_has_all_runs(run: Run) -> None:
    done = run("evals.toml", "--no-save")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["environment", "history", "agent", "reward", "(95", "%)", "difference", "(95", "%)", "turns", "failed"]
    assert [line.split()[:3] for line in lines[1:5]] == [
        [DATASET, "-", "random"],
        [DATASET, "-", "oracle"],
        [GAME, "1", "random"],
        [GAME, "3", "random"],
    ]
    assert lines[2].split()[-3:] == ["+1.000)", "1.0", "0/3"]
    assert all(len(line) <= 45 for line in run("evals.toml", "--no-save", columns=45).stdout.splitlines())


def test_options_win_over_the_file(run: Run) -> None:
    planned = run("evals.toml", "--dry-run", "--json", "-n", "2", "-a", "oracle", "--example-ids", "", "-r", "1").value
    assert [(each["env_id"], each["model"], each["rollouts"]) for each in planned["runs"]] == [
        (DATASET, "oracle", 2),
        (GAME, "oracle", 2),
        (GAME, "oracle", 2),
    ]


def test_an_option_takes_the_place_of_what_says_the_same(run: Run, directory: Path) -> None:
    (directory / "evals.toml").write_text(f'env_id = "{DATASET}"\nagent = "oracle"\nexample_ids = [1001, 1002]')
    assert run("evals.toml", "--dry-run", "--json").value["rollouts"] == 2
    assert run("evals.toml", "--dry-run", "--json", "-n", "5").value["rollouts"] == 5


def test_models_of_a_file_are_asked(run: Run, directory: Path) -> None:
    with ModelServer({"left": lambda request: "left", "up": lambda request: "up"}) as server:
        (directory / "evals.toml").write_text(
            f'env_id = "{GAME}"\nmodels = "left, up"\nagents = ["random"]\nbase_url = "{server.openai_url}"\nnum_examples = 2\n'
            "[env_args]\nmax_turns = 3\n"
        )
        assert run("evals.toml", "--dry-run", "--json").value["rollouts"] == 6
        assert server.num_requests == 0
        played = run("evals.toml", "--json").value
    assert [(each["model"], each["is_model"]) for each in played["runs"]] == [("random", False), ("left", True), ("up", True)]
    assert all(each["usage"]["output_tokens"] > 0 for each in played["runs"][1:])


# Variations and selections


def test_all_combinations_of_what_is_varied_are_played(run: Run) -> None:
    arguments = ("-a", "random", "-n", "2", "--vary", "history=1,null", "--vary", "as_tool=true,false")
    played = run(GAME, *arguments, "--json").value
    assert [each["title"] for each in played["runs"]] == [
        f"random (history={history}, as_tool={as_tool})" for history in ("1", "null") for as_tool in ("true", "false")
    ]
    assert [bool(load_results(each["path"])["outputs"][0]["tool_defs"]) for each in played["runs"]] == [True, False, True, False]
    assert [(pair["a"], pair["b"]) for pair in played["pairs"]] == [(0, 1), (0, 2), (0, 3)]


def test_runs_are_chosen_by_parts_of_their_titles_or_patterns(run: Run) -> None:
    def chosen(*patterns: str) -> list[str]:
        options = [word for pattern in patterns for word in ("--select", pattern)]
        return [each["title"] for each in run("evals.toml", "--dry-run", "--json", *options).value["runs"]]

    assert chosen("LEG_counting") == TITLES[:2]
    assert chosen("oracle", "history=3") == [TITLES[1], TITLES[3]]
    assert chosen("*lake*=1*") == [TITLES[2]]


def test_tasks_that_a_variation_changes_are_said_not_to_be_compared(run: Run) -> None:
    done = run(DATASET, "-a", "oracle", "-n", "2", "--vary", "system_prompt=One,Two", "--json").value
    (pair,) = done["pairs"]
    assert pair["difference"] is None
    assert pair["unpaired"] == [2, 2]
    assert "share no task" in pair["verdict"]


def test_values_are_read_as_json_or_text() -> None:
    given = ["history=1,null", "observe=text, image", 'as_text="1","a,b"', "sizes=[1,2],[3]", "mixed=1,two"]
    assert parse_variations(given) == {
        "history": [1, None],
        "observe": ["text", "image"],
        "as_text": ["1", "a,b"],
        "sizes": [[1, 2], [3]],
        "mixed": [1, "two"],
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["history"], "such as history=1,4; got 'history'"),
        (["=1"], "such as history=1,4"),
        (["history="], "such as history=1,4"),
        (["history=1,,2"], "cannot read the value ''"),
        (["history=[1,x"], r"cannot read the value '\[1'"),
        (["history=1,1"], "history has 1 twice"),
        (["history=1", "history=2"], "history is given twice"),
        (["as_tool=True,False"], "true, not True"),
    ],
)
def test_variations_that_cannot_be_read_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_variations(texts)


# Wrong input


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("", [], "has no evaluations"),
        ('env_id = "x"\nnum_exmples = 3', [], "no field 'num_exmples'. Did you mean `num_examples`"),
        ('env_id = "x"\nseed = "3"', [], "seed must be an integer from 0, got '3'"),
        ('env_id = "x"\nsplit = "test"', [], "split: "),
        ('env_id = "gymnasium/FrozenLak-v1"\nagents = ["random"]', [], "Did you mean"),
        ('[[eval]]\nagents = ["random"]', [], "eval 1 needs an env_id"),
        (FILE.replace("history", "histry"), [], "has an argument 'histry'. Did you mean `history`"),
        (FILE.replace("oracle", "orcale"), [], "no agent 'orcale'"),
        (FILE.replace("num_examples = 4", "num_examples = 0"), [], "num_examples must be a positive integer"),
        (FILE.replace("[2]", "[0]"), [], "rollouts_per_example must be a positive integer"),
        (FILE.replace("agents", "models"), [], "say where random is"),
        (FILE, ["--vary", "history=1,2"], "'history' is both fixed and varied"),
        (FILE, ["--vary", "split=1"], "has no argument 'split'"),
        (FILE, ["--select", "nothing"], "fits none of the 4 runs"),
        (FILE, ["some/where", "--resume"], "holds the run of one agent"),
        (FILE + f'[[eval]]\nid = "{GAME}"\nargs = {{ max_turns = 5, history = 1 }}\nrollouts_per_example = 2\n', [], "is asked for twice"),
        (None, [], "cannot be read"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_played(
    run: Run, directory: Path, text: str | None, arguments: list[str], message: str
) -> None:
    file = directory / "evals.toml"
    file.unlink() if text is None else file.write_text(text)
    done = run("evals.toml", *arguments, "--json", exit_code=2)
    (line,) = done.stderr.splitlines()
    assert message in line
    assert done.stdout == ""
    assert not (directory / "outputs").exists()


# Resuming


def test_a_command_that_was_stopped_goes_on_where_it_was(run: Run, directory: Path) -> None:
    played = run("evals.toml", "--json").value
    files = {each["title"]: Path(each["path"], "results.jsonl") for each in played["runs"]}
    whole = {title: file.read_bytes() for title, file in files.items()}
    stopped = files[TITLES[2]]
    stopped.write_bytes(b"".join(whole[TITLES[2]].splitlines(keepends=True)[:5]))
    files[TITLES[3]].unlink()
    resumed = run("evals.toml", "--json", "--resume").value
    assert [each["path"] for each in resumed["runs"]] == [each["path"] for each in played["runs"]]
    assert len(rows_on_disk(directory)) == 4
    assert [files[title].read_bytes() for title in TITLES[:2]] == [whole[title] for title in TITLES[:2]]
    assert [each["avg_reward"] for each in resumed["runs"]] == [each["avg_reward"] for each in played["runs"]]
