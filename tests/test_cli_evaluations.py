"""``vfgym eval`` and ``vfgym score`` as somebody uses them who compares agents: tables, tags, errors of agents, arguments of rubrics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import vfgym
from vfgym.cli.app import app
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.results import dataframe, load_results

LAKE, POLE = "gymnasium/FrozenLake-v1", "gymnasium/CartPole-v1"

AGENTS = """
def right(observation, info):
    return "right"


def broken(observation, info):
    raise ValueError("first line\\nsecond line " + "x" * 300)
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "agents_of_a_test.py").write_text(AGENTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout


def runs(directory: Path, *, agent: str = "") -> list[Path]:
    return sorted(directory.glob(f"outputs/evals/*{agent or '-'}*/*"))


def test_environments_of_a_file_are_one_table_with_turns_tokens_and_cost(directory: Path) -> None:
    (directory / "prices.toml").write_text("[echo]\ninput = 1000000\noutput = 1000000\n")
    (directory / "many.toml").write_text(
        f'agents = ["random"]\nmodels = ["echo"]\nnum_examples = 2\nenv_args = {{max_turns = 2}}\n'
        f'[[eval]]\nenv_id = "{LAKE}"\n[[eval]]\nenv_id = "{POLE}"\n'
    )
    with ModelServer() as server:
        shown = run("eval", "many.toml", "--base-url", server.openai_url, "--api-key-var", "NONE", "--prices", "prices.toml")
    head, *rows = [line.split("  ") for line in shown.splitlines()[:5]]
    assert [cell.strip() for cell in head if cell.strip()][-4:] == ["turns", "tokens", "cost", "failed"]
    assert [row[0] for row in rows] == [LAKE, LAKE, POLE, POLE]
    for path in runs(directory, agent="model=echo"):
        metadata = load_results(path)["metadata"]
        assert metadata["usage"] is not None
        tokens = metadata["usage"]["input_tokens"] + metadata["usage"]["output_tokens"]
        assert f"{tokens:,.0f}" in shown
        assert f"{metadata['cost']:.4g}" in shown


def test_agents_alone_have_no_empty_columns() -> None:
    head = run("eval", LAKE, "--agent", "random", "-n", "2").splitlines()[0]
    assert "tokens" not in head
    assert "cost" not in head


def test_tags_are_in_the_metadata_and_stay_when_a_run_is_resumed(directory: Path) -> None:
    run("eval", LAKE, "--agent", "random", "-n", "2", "--tag", "night", "--tag", "v2")
    (path,) = runs(directory)
    assert load_results(path)["metadata"]["tags"] == ["night", "v2"]
    run("eval", LAKE, str(path), "--agent", "random", "-n", "3", "--tag", "v3", "--resume")
    assert load_results(path)["metadata"]["tags"] == ["night", "v2", "v3"]
    assert set(dataframe(path)["tags"]) == {"night,v2,v3"}
    run("eval", LAKE, "--agent", "random", "-n", "1", "-o", "plain")
    (plain,) = directory.glob("plain/evals/*/*")
    assert "tags" not in load_results(plain)["metadata"]


def test_tags_of_a_file_are_its_runs(directory: Path) -> None:
    (directory / "one.toml").write_text(f'env_id = "{LAKE}"\nagents = ["random"]\nnum_examples = 1\ntag = "from-file"\n')
    run("eval", "one.toml")
    (path,) = runs(directory)
    assert load_results(path)["metadata"]["tags"] == ["from-file"]


def test_reducers_are_columns_and_json() -> None:
    arguments = ["eval", POLE, "--agent", "random", "-n", "3", "-r", "2", "--reduce", "median,max", "--reduce", "at_least_1"]
    head = run(*arguments).splitlines()[0]
    assert [f"{name} (95 %)" in head for name in ("median", "max", "at_least_1")] == [True] * 3
    (told,) = json.loads(run(*arguments, "--json"))["runs"]
    assert told["reduced"].keys() == {"median", "max", "at_least_1"}
    assert told["reduced"]["max"]["value"] >= told["reduced"]["median"]["value"]
    assert told["reduced"]["max"]["num_tasks"] == 3
    with pytest.raises(ConfigurationError, match="a reducer is one of"):
        run("eval", POLE, "--agent", "random", "--reduce", "least")


def test_the_librarys_own_agents_play_beside_isolated_ones(directory: Path) -> None:
    run("eval", LAKE, "--agent", "random", "--agent", "agents_of_a_test:right", "-n", "2", "--isolate")
    for name, said in (("agent=random", None), ("agents_of_a_test-right", "right")):
        (path,) = runs(directory, agent=name)
        for row in load_results(path)["outputs"]:
            assert not row["failed"]
            assert said is None or row["completion"][0]["content"] == said


@pytest.mark.parametrize("isolate", [[], ["--isolate"]], ids=["here", "isolated"])
def test_errors_of_agents_are_a_line_in_tables_and_whole_in_rows(isolate: list[str], directory: Path) -> None:
    shown = run("eval", LAKE, "--agent", "agents_of_a_test:broken", "-n", "2", *isolate)
    (told,) = [line for line in shown.splitlines() if "the first error is" in line]
    assert "first line" in told
    assert told.endswith("... (the rows have all of it)")
    assert "Traceback" not in shown
    (path,) = runs(directory)
    for row in load_results(path)["outputs"]:
        kept = "".join(row["error"].values())
        assert "second line " + "x" * 300 in kept
        assert 'agents_of_a_test.py", line 7, in broken' in kept


RUBRICS = """
import vfgym


class Length(vfgym.Rubric):
    def __init__(self, least=1):
        super().__init__(self.is_long)
        self.least = least

    def is_long(self, completion):
        return float(len(completion[-1]["content"]) >= self.least)


def make(least):
    return Length(least)


def reward(completion):
    return 1.0
"""


def test_a_rubric_is_made_with_arguments(directory: Path) -> None:
    (directory / "rubrics_of_a_test.py").write_text(RUBRICS)
    vfgym.evaluate(
        vfgym.SingleTurnEnv(dataset=[{"question": "?"}, {"question": "??"}], rubric=vfgym.Rubric(lambda: 0.0)),
        lambda observation, info: observation[-1].content + "!",
        results_path=directory / "run",
        progress=False,
    )

    def score(name: str, arguments: Any) -> dict[str, Any]:
        told = run("score", "run", "--rubric", f"rubrics_of_a_test:{name}", "--rubric-args", json.dumps(arguments), "--json")
        return json.loads(told)  # type: ignore[no-any-return]

    for name in ("Length", "make"):
        told = score(name, {"least": 3})
        assert told["avg_reward"] == 0.5
        metadata: Any = load_results(Path(told["path"]))["metadata"]
        assert metadata["scored_by"] == {"rubric": f"rubrics_of_a_test:{name}", "rubric_args": {"least": 3}}
    assert score("Length", {})["avg_reward"] == 1.0
    for name, arguments, message in (
        ("make", {"most": 3}, "make.least. does not take --rubric-args"),
        ("reward", {"completion": 3}, "it returned float, no vfgym.Rubric"),
        ("reward", {"least": 3}, "does not take --rubric-args"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            score(name, arguments)
    with pytest.raises(ConfigurationError, match="--rubric-args must be a JSON object"):
        score("make", [3])
