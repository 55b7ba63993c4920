"""What ``vfgym eval`` prints of its runs: tables, how each compares with the first one, remarks, plots and JSON."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.cases import DATASET, GAME, SHORT, cells, played, played_as_json, run_directories, table
from tests.commands import run_vfgym
from vfgym.cli.conventions import Exit
from vfgym.cli.eval_report import FinishedRun, check_plot, print_rewards, print_runs
from vfgym.endings import UNREADABLE
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.results import ErrorInfo, compare, load_results

POLE = "gymnasium/CartPole-v1"


@pytest.fixture
def sweep(directory: Path) -> str:
    """A file with two runs of each of two environments."""
    (directory / "evals.toml").write_text(
        f'[[eval]]\nid = "{DATASET}"\nagents = ["random", "oracle"]\nnum_examples = 3\n'
        f'[[ablation]]\nid = "{GAME}"\nagents = ["random"]\nnum_examples = 8\n[ablation.sweep.args]\nhistory = [1, 3]\n'
        "[ablation.sweep]\nrollouts_per_example = [1]"
    )
    return "evals.toml"


def test_one_table_has_all_runs(sweep: str) -> None:
    lines = played(sweep, "--no-save").splitlines()
    assert cells(lines[0]) == ["environment", "history", "agent", "reward (95 %)", "difference (95 %)", "turns", "failed"]
    assert [cells(line)[:3] for line in lines[1:5]] == [
        [DATASET, "-", "random"],
        [DATASET, "-", "oracle"],
        [GAME, "1", "random"],
        [GAME, "3", "random"],
    ]
    assert lines[2].split()[-3:] == ["+1.000)", "1.0", "0/3"]
    assert all(len(line) <= 45 for line in played(sweep, "--no-save", COLUMNS="45").splitlines())


def test_each_run_is_compared_with_the_first_of_its_environment(sweep: str) -> None:
    told = played_as_json(sweep)
    pairs = told["pairs"]
    assert [(pair["a"], pair["b"]) for pair in pairs] == [(0, 1), (2, 3)]
    for pair in pairs:
        (expected,) = compare(*(told["runs"][pair[which]]["path"] for which in "ab"))["pairs"]
        for name in ("difference", "interval", "examples", "rollouts", "better", "worse", "equal"):
            assert pair[name] == expected[name]
        if expected["p_value"] is not None:
            assert expected["p_value"] <= pair["p_value"] <= 2 * expected["p_value"], "corrected for there being two"
    assert pairs[0]["verdict"].startswith("not distinguishable with 3 tasks; about ")
    assert pairs[0]["verdict"].endswith("if oracle really differs from random by 1")


def test_turns_tokens_and_cost_are_columns_where_they_are_known(directory: Path) -> None:
    (directory / "prices.toml").write_text("[echo]\ninput = 1000000\noutput = 2000000\n")
    (directory / "many.toml").write_text(
        f'agents = ["random"]\nmodels = ["echo"]\nnum_examples = 2\nenv_args = {{max_turns = 2}}\n'
        f'[[eval]]\nenv_id = "{GAME}"\n[[eval]]\nenv_id = "{POLE}"\n'
    )
    with ModelServer() as server:
        shown = played("many.toml", "--base-url", server.openai_url, "--api-key-var", "NONE", "--prices", "prices.toml")
    assert cells(shown.splitlines()[0])[-4:] == ["turns", "tokens", "cost", "failed"]
    assert [cells(line)[:2] for line in shown.splitlines()[1:5]] == [
        [env_id, name] for env_id in (GAME, POLE) for name in ("random", "echo")
    ]
    paths = [*directory.glob("outputs/evals/*--echo/*")]
    assert len(paths) == 2
    for path in paths:
        metadata = load_results(path)["metadata"]
        assert metadata["usage"] is not None
        tokens = metadata["usage"]["input_tokens"], metadata["usage"]["output_tokens"]
        assert f"{sum(tokens):,.0f}" in shown
        assert metadata["cost"] == pytest.approx(2 * (tokens[0] + 2 * tokens[1]))
        assert f"{metadata['cost']:.4g}" in shown
        assert f"it cost {metadata['cost']:.4g}" in shown
    head = played(GAME, "--agent", "random", "-n", "2", "--no-save").splitlines()[0]
    assert not {"tokens", "cost"} & {*cells(head)}


def test_reducers_are_columns_and_json() -> None:
    arguments = [POLE, "--agent", "random", "-n", "3", "-r", "2", "--reduce", "median,max", "--reduce", "at_least_1"]
    assert {f"{name} (95 %)" for name in ("median", "max", "at_least_1")} <= {*cells(played(*arguments).splitlines()[0])}
    (told,) = played_as_json(*arguments)["runs"]
    assert told["reduced"].keys() == {"median", "max", "at_least_1"}
    assert told["reduced"]["max"]["value"] >= told["reduced"]["median"]["value"]
    assert told["reduced"]["max"]["num_tasks"] == 3


def test_runs_without_a_mean_are_last() -> None:
    """They have none where a rollout failed, and nobody says what that counts with."""
    arguments = (SHORT, "-a", "mine:fails", "-a", "oracle", "--no-save")
    shown = played(*arguments, exit_code=Exit.NOT_GOOD)
    found = table(shown)
    assert list(found) == ["oracle", "mine:fails"]
    assert [[*row.values()][1:3] for row in found.values()] == [["1.000 (0.398 to 1.000)", "1.000"], ["-", "-"]]
    assert [row["failed"] for row in found.values()] == ["0/4", "4/4"]
    assert "no mean, since nothing says what a rollout counts with that failed or was cut" in shown
    declared = played(*arguments, "--env-args", '{"failure_reward": 0}')
    assert [*table(declared)["mine:fails"].values()][1:3] == ["0.000 (0.000 to 0.602)", "-"]
    assert "mine:fails: what failed or was cut counts with 0" in declared


@pytest.mark.parametrize(("reward", "failed", "error"), [("even", 2, "TypeError("), ("careless", 4, "ValueError('no')")])
def test_reward_functions_that_fail_are_named_and_are_no_reward_of_zero(reward: str, failed: int, error: str, directory: Path) -> None:
    shown = played(SHORT, "-a", "oracle", "--env-args", json.dumps({"reward": reward}), exit_code=Exit.NOT_GOOD)
    row = table(shown)["oracle"]
    assert (row["reward (95 %)"], row["failed"]) == ("-", f"{failed}/4")
    assert f"oracle: reward function `{reward}` failed in {failed} of 4 rollouts: {error}" in shown
    assert f"a hook, a tool or a reward function of the environment failed in {failed} of 4 rollouts: mend it first" in shown
    (path,) = run_directories(directory)
    assert load_results(path)["metadata"]["metrics_errors"] == {reward: failed}


# Plots


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("nowhere/rewards.png", "nowhere is not a directory that can be written"),
        ("rewards.xyz", "give it one of the suffixes"),
        ("rewards", "give it one of the suffixes"),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_played(directory: Path, file: str, message: str) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ConfigurationError, match=message):
        check_plot(Path(file))
    done = run_vfgym("eval", GAME, "--agent", "mine:waits", "--plot", file, exit_code=2)
    assert message in done.stderr
    assert not (directory / "outputs").exists()


def test_a_plot_is_without_runs_that_have_no_mean(directory: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = (SHORT, "-a", "mine:fails", "--no-save", "--plot", "rewards.png")
    for agents in ((), ("-a", "oracle")):
        shown = played(*arguments, *agents, exit_code=1)
        assert "the plot is without mine:fails: there is no mean to draw" in shown
        assert (directory / "rewards.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_drawn_is_told_after_the_results(directory: Path) -> None:
    pytest.importorskip("matplotlib")
    (directory / "taken.png").mkdir()
    done = run_vfgym("eval", GAME, "--agent", "random", "-n", "2", "--no-save", "--plot", "taken.png", exit_code=2)
    assert table(done.stdout)["random"]["failed"] == "0/2"
    assert done.stderr.splitlines()[-1].startswith("error: the plot taken.png cannot be drawn")


# Figures of results that are given, without playing

METADATA: dict[str, Any] = {
    **{"env_id": "e", "model": "m", "num_examples": 4, "rollouts_per_example": 1, "mean_of": "counted_reward", "avg_reward": 0.5},
    **{"interval": [0.25, 0.75], "avg_metrics": {}, "metrics_errors": {}, "pass_at_k": {}, "pass_all_k": {}, "usage": None, "cost": None},
    **{"num_failed": 0, "num_cut": 0, "num_missing": 0, "endings": {}, "time": 1.5, "stopped_by": None, "path_to_save": None},
    **{"avg_reward_missing_failed": None, "avg_reward_finished": None, "reward_range": None},
}
ROW: dict[str, Any] = {"error": None, "stop_condition": None, "ending": "terminated", "failed": False, "reward": 0.5, "counted_reward": 0.5}


def run_of(*rows: dict[str, Any], label: str = "a", **metadata: Any) -> FinishedRun:
    """Return a run of four rollouts, of which the first ones have these fields."""
    each = [{**ROW, **row, "example_id": number, "rollout": 0} for number, row in enumerate([*rows, *[{}] * (4 - len(rows))])]
    spec = SimpleNamespace(env_id="e")
    plan: Any = SimpleNamespace(title=f"the {label}", label=label, played="e", spec=spec, varied={})
    results: Any = {"outputs": each, "metadata": {**METADATA, **metadata}}
    return FinishedRun(plan, results)


def remarks_of(capsys: pytest.CaptureFixture[str], run: FinishedRun) -> list[str]:
    print_runs([run], as_json=False)
    return [line.removeprefix("the a: ") for line in capsys.readouterr().out.splitlines() if line.startswith("the a: ")]


CUT = {"ending": "cut", "counted_reward": 0.0}
MISSING = "1 of 4 rollouts are missing, since the infrastructure failed: the mean is of the others"
GONE = {"ending": "infrastructure_failed", "failed": True, "counted_reward": None}
NO_MEAN = "since nothing says what a rollout counts with that failed or was cut: give the environment failure_reward=..."


@pytest.mark.parametrize(
    ("rows", "metadata", "remarks"),
    [
        ([], {}, []),
        ([{}, {"error": "second"}, {"error": "third"}], {}, ["the first error is second"]),
        ([{"error": ErrorInfo(error="E", error_chain_repr="E('x') -> F()")}], {}, ["the first error is E('x') (the rows have all of it)"]),
        (
            [{"stop_condition": UNREADABLE}, {}, {"stop_condition": UNREADABLE}],
            {},
            ["the answers of 2 of 4 rollouts could not be read"],
        ),
        (
            [{"metrics_errors": None}, {"metrics_errors": {"g": "G()"}}, {"metrics_errors": {"f": "F()", "g": "later"}}],
            {"metrics_errors": {"f": 1, "g": 2}},
            ["reward function `f` failed in 1 of 4 rollouts: F()", "reward function `g` failed in 2 of 4 rollouts: G()"],
        ),
        (
            [],
            {"endings": {"environment_failed": 3}},
            ["a hook, a tool or a reward function of the environment failed in 3 of 4 rollouts: mend it first"],
        ),
        ([CUT], {}, ["what failed or was cut counts with 0"]),
        ([CUT, {**CUT, "counted_reward": -1.0}, CUT], {}, ["what failed or was cut counts with -1, 0"]),
        ([{**CUT, "counted_reward": float(n)} for n in (10, 9, -1, 2)], {}, ["what failed or was cut counts with -1, 2, 9, 10"]),
        ([CUT, {**CUT, "counted_reward": None}], {"avg_reward": None}, [f"no mean, {NO_MEAN}"]),
        (
            [{**CUT, "counted_reward": None}],
            {"avg_reward": None, "avg_reward_finished": 0.0},
            [f"no mean (that of the others is 0.000), {NO_MEAN}"],
        ),
        ([CUT, {**CUT, "counted_reward": -2.0}], {"avg_reward": None}, ["what failed or was cut counts with at most 0"]),
        (
            [GONE],
            {"num_missing": 1},
            [MISSING],
        ),
        (
            [GONE],
            {"num_missing": 1, "avg_reward_missing_failed": 0.0},
            [f"{MISSING}; with them as failures it would be 0.000"],
        ),
        ([], {"cost": 0.0}, ["it cost 0"]),
        ([], {"cost": 1.23456, "abandoned_requests": 0}, ["it cost 1.235"]),
        (
            [],
            {"cost": 2, "abandoned_requests": 3},
            ["it cost 2 at least, since nobody tells what the 3 request(s) cost that were given up under way"],
        ),
        (
            [],
            {"stopped_by": {"limit": "cost", "used": 1.25, "allowed": 1}, "rollouts_per_example": 3},
            ["stopped after 4 of 12 rollouts: the limit on cost is used up (1.25 of 1)"],
        ),
        ([], {"path_to_save": Path("here")}, ["results in here"]),
    ],
)
def test_what_there_is_to_say_of_a_run(rows: Any, metadata: Any, remarks: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert remarks_of(capsys, run_of(*rows, **metadata)) == remarks


def test_five_different_numbers_are_told_by_their_ends(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(*[{**CUT, "counted_reward": float(number)} for number in (10, 9, -1, 2, 3)])
    assert remarks_of(capsys, run) == ["what failed or was cut counts with -1 to 10"]


def test_the_table_has_the_columns_that_say_something_of_any_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    first = run_of(label="none", avg_reward=None, interval=None, avg_metrics={"f": 0.0}, num_failed=1)
    second = run_of(
        label="all",
        **{"avg_metrics": {"g": 0.25}, "metrics_errors": {"h": 1}, "usage": {"input_tokens": 1000.0, "output_tokens": 234.0}, "cost": 0.0},
        **{"num_cut": 2, "num_missing": 3, "time": 12.345},
    )
    third = run_of(label="part", num_examples=6)
    print_rewards({run.plan.label: run.results for run in (first, second, third)})
    lines = [cells(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["agent", "reward (95 %)", "f", "g", "h", "tokens", "cost", "failed", "cut", "missing", "seconds"],
        ["all", "0.500 (0.250 to 0.750)", "-", "0.250", "-", "1,234", "0", "0/4", "2/4", "3/4", "12.35"],
        ["part", "4 of 6", "-", "-", "-", "-", "-", "0/4", "0/4", "0/4", "1.50"],
        ["none", "-", "0.000", "-", "-", "-", "-", "1/4", "0/4", "0/4", "1.50"],
    ]
    passes = {"pass_at_k": {"1": 0.5, "2": 0.75}, "pass_all_k": {"1": 0.5, "2": 0.25}}
    print_rewards({"a": run_of(num_examples=6, mean_of="reward", **passes).results})
    assert [cells(line) for line in capsys.readouterr().out.splitlines()] == [
        ["agent", "reward (95 %)", "pass@1", "pass@2", "pass^1", "pass^2", "failed", "seconds"],
        ["a", "0.500 (0.250 to 0.750)", "0.500", "0.750", "0.500", "0.250", "0/4", "1.50"],
    ]


def test_no_run_is_nothing_to_print(capsys: pytest.CaptureFixture[str]) -> None:
    print_runs([], as_json=False)
    assert capsys.readouterr().out == ""
    print_runs([], as_json=True)
    assert json.loads(capsys.readouterr().out) == {"runs": [], "pairs": []}


def test_as_json_a_run_has_its_title_its_path_and_its_metadata(capsys: pytest.CaptureFixture[str]) -> None:
    for path in (None, Path("here")):
        print_runs([run_of(path_to_save=path, avg_reward=float("nan"))], as_json=True)
        (told,) = json.loads(capsys.readouterr().out)["runs"]
        assert {name: told[name] for name in ("title", "path", "rollouts", "avg_reward", "model")} == {
            **{"title": "the a", "path": path and str(path), "rollouts": 4, "avg_reward": "nan", "model": "m"}
        }
        assert {"path_to_save", "reduced"}.isdisjoint(told)
