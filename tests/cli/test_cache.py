"""``vfgym cache``: what the cache of answers holds, and forgetting it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cases import GAME, SHORT
from tests.commands import run_vfgym
from vfgym.cli.cache import clear_cache, print_cache
from vfgym.clients.cache import ResponseCache
from vfgym.model_server import ModelServer


@pytest.fixture(autouse=True)
def file(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = directory / "cache" / "answers.sqlite"
    monkeypatch.setenv("VFGYM_CACHE", str(path))
    return path


def fill(number: int) -> None:
    with ModelServer() as server:
        run_vfgym("eval", SHORT, "-m", "echo", "-b", server.openai_url, "-n", str(number), "--cache", "--no-save")


def test_what_the_cache_holds_is_shown_and_forgotten(file: Path) -> None:
    assert "`vfgym eval --cache` keeps answers in it; VFGYM_CACHE names another file." in run_vfgym("cache").stdout
    fill(2)
    told = json.loads(run_vfgym("cache", "--json").stdout)
    answers = told["answers"]
    assert answers > 0
    assert told == {"path": str(file), "answers": answers, "bytes": told["bytes"], "models": {"echo": answers}}
    shown = run_vfgym("cache").stdout
    assert shown.startswith(f"{file}\n{answers} answers, ")
    assert "echo" in shown
    assert json.loads(run_vfgym("cache", "clear", "--json").stdout) == {"path": str(file), "forgotten": answers}
    assert run_vfgym("cache", "clear").stdout == f"forgot 0 answers of {file}\n"


def test_a_file_that_is_no_cache_is_set_aside(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("notes of mine, long enough to be read as something" * 20)
    done = run_vfgym("cache")
    assert "0 answers" in done.stdout
    (aside,) = file.parent.glob("*.damaged-*")
    assert aside.read_text().startswith("notes of mine")
    assert aside.name in done.stderr


def test_a_database_of_something_else_is_refused_and_stays(file: Path) -> None:
    file.parent.mkdir()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE places (name TEXT)")
    connection.close()
    whole = file.read_bytes()
    with ModelServer() as server:
        evaluation = ["eval", GAME, "-m", "echo", "-b", server.openai_url, "--cache"]
        for command in (["cache"], ["cache", "clear"], evaluation):
            assert "cannot be used" in run_vfgym(*command, exit_code=2).stderr
        assert server.num_requests <= 1
    assert file.read_bytes() == whole


@pytest.mark.parametrize("show", [print_cache, clear_cache])
@pytest.mark.parametrize("fails", [False, True])
def test_the_cache_is_closed_again(show: Any, fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Any] = []

    class Closed(ResponseCache):
        def close(self) -> None:
            closed.append(self)
            super().close()

    def broken(cache: ResponseCache) -> Any:
        raise OSError("no disk")

    if fails:
        monkeypatch.setattr(Closed, "contents" if show is print_cache else "clear", broken)
    monkeypatch.setattr("vfgym.cli.cache.ResponseCache", Closed)
    with pytest.raises(OSError, match="no disk") if fails else contextlib.nullcontext():
        show(as_json=True)
    assert len(closed) == 1
