"""``vfgym eval`` with limits, prices and the cache, ``vfgym cache``: run in this process, against a real server."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from vfgym.cli import main
from vfgym.cli.conventions import Exit
from vfgym.model_server import ModelServer
from vfgym.results import load_results

DATASET = "reasoning-gym/leg_counting-v0"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache" / "answers.sqlite"
    monkeypatch.setenv("VFGYM_CACHE", str(path))
    monkeypatch.setenv("COLUMNS", "45")
    monkeypatch.chdir(tmp_path)
    return path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run a command, and return its exit code."""
    monkeypatch.setattr("sys.argv", ["vfgym", *arguments])
    with pytest.raises(SystemExit) as exit:
        main()
    return int(exit.value.code or 0)


def evaluate(monkeypatch: pytest.MonkeyPatch, server: ModelServer, *options: str) -> int:
    return run(monkeypatch, "eval", DATASET, "-m", "echo", "-b", server.openai_url, "-n", "8", "-c", "2", *options)


def test_a_limit_ends_a_run_with_its_own_exit_code(
    monkeypatch: pytest.MonkeyPatch, server: ModelServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert evaluate(monkeypatch, server, "--limit", "tokens=500,errors=5", "--limit", "time=600") == Exit.LIMIT
    out = " ".join(capsys.readouterr().out.split())
    assert "of 8 rollouts: the limit on tokens is used up" in out
    (path,) = [file.parent for file in tmp_path.rglob("results.jsonl")]
    assert load_results(path)["metadata"]["stopped_by"] is not None
    assert evaluate(monkeypatch, server, "--resume") == Exit.GOOD
    assert load_results(path)["metadata"]["stopped_by"] is None
    assert len(load_results(path)["outputs"]) == 8


def test_each_rollout_may_be_limited(monkeypatch: pytest.MonkeyPatch, server: ModelServer, tmp_path: Path) -> None:
    game = ("eval", "gymnasium/FrozenLake-v1", "--agent", "random", "-n", "4", "--limit-each", "turns=2")
    assert run(monkeypatch, *game) == Exit.GOOD
    (path,) = [file.parent for file in tmp_path.rglob("results.jsonl")]
    rows = load_results(path)["outputs"]
    assert {row["stop_condition"] for row in rows} >= {"limit_reached"}
    assert all(len(row["completion"]) <= 4 for row in rows)


def test_what_a_run_cost_is_printed(
    monkeypatch: pytest.MonkeyPatch, server: ModelServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text("[echo]\ninput = 1\noutput = 2\n")
    assert evaluate(monkeypatch, server, "--prices", "prices.toml", "--limit", "cost=100", "--no-save") == Exit.GOOD
    assert "echo: it cost 0.00" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--limit", "tokens=0"], "--limit: the limit tokens must be a positive integer, got 0"),
        (["--limit", "tokens=-5"], "--limit: the limit tokens must be a positive integer, got -5"),
        (["--limit", "token=5"], "--limit: there is no limit 'token'"),
        (["--limit", "tokens"], "--limit is written NAME=NUMBER"),
        (["--limit", "tokens=many"], "--limit is written NAME=NUMBER"),
        (["--limit", "tokens=5", "--limit", "tokens=6"], "--limit says tokens twice"),
        (["--limit-each", "cost=5"], "--limit-each: there is no limit 'cost'"),
        (["--limit", "cost=5"], "a limit on cost needs the prices"),
        (["--limit", "cost=5", "--prices", "prices.toml"], "no price for the model echo"),
        (["--prices", "none.toml"], "none.toml cannot be read"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_asked_or_written(
    monkeypatch: pytest.MonkeyPatch,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    options: list[str],
    problem: str,
) -> None:
    (tmp_path / "prices.toml").write_text("[ech]\ninput = 1\noutput = 2\n")
    before = server.num_requests
    assert evaluate(monkeypatch, server, *options) == Exit.WRONG_INPUT
    error = capsys.readouterr().err
    assert problem in error
    assert len(error.splitlines()) == 1
    assert server.num_requests == before
    assert not (tmp_path / "outputs").exists()


def test_a_cached_run_asks_for_nothing_again_and_the_cache_is_shown_and_cleared(
    monkeypatch: pytest.MonkeyPatch, server: ModelServer, capsys: pytest.CaptureFixture[str], own_cache: Path
) -> None:
    before = server.num_requests
    assert evaluate(monkeypatch, server, "--cache", "--no-save") == Exit.GOOD
    asked = server.num_requests - before
    assert evaluate(monkeypatch, server, "--cache", "--no-save") == Exit.GOOD
    assert server.num_requests - before - asked <= 1, "nothing but the question whether somebody listens"
    assert own_cache.stat().st_mode & 0o077 == 0
    capsys.readouterr()
    assert run(monkeypatch, "cache", "--json") == Exit.GOOD
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"path": str(own_cache), "answers": 8, "bytes": shown["bytes"], "models": {"echo": 8}}
    assert run(monkeypatch, "cache") == Exit.GOOD
    assert "8 answers" in capsys.readouterr().out
    assert run(monkeypatch, "cache", "clear", "--json") == Exit.GOOD
    assert json.loads(capsys.readouterr().out) == {"path": str(own_cache), "forgotten": 8}
    assert run(monkeypatch, "cache", "clear") == Exit.GOOD
    assert "forgot 0 answers" in capsys.readouterr().out


def test_a_file_that_is_no_cache_is_set_aside_and_a_database_of_something_else_refused(
    monkeypatch: pytest.MonkeyPatch,
    server: ModelServer,
    capsys: pytest.CaptureFixture[str],
    own_cache: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    own_cache.parent.mkdir()
    own_cache.write_text("notes of mine, long enough to be read as something" * 20)
    assert run(monkeypatch, "cache") == Exit.GOOD
    assert "0 answers" in capsys.readouterr().out
    (aside,) = own_cache.parent.glob("*.damaged-*")
    assert aside.read_text().startswith("notes of mine")
    assert aside.name in caplog.text
    own_cache.unlink()
    with sqlite3.connect(own_cache) as connection:
        connection.execute("CREATE TABLE places (name TEXT)")
    connection.close()
    whole = own_cache.read_bytes()
    for command in (["cache"], ["cache", "clear"]):
        assert run(monkeypatch, *command) == Exit.WRONG_INPUT
        assert "cannot be used" in capsys.readouterr().err
    before = server.num_requests
    assert evaluate(monkeypatch, server, "--cache") == Exit.WRONG_INPUT
    assert server.num_requests - before <= 1
    assert own_cache.read_bytes() == whole
