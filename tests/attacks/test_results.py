"""Attacks on ``docs/results.md``: each test says what is attempted; the table at the end of that page has its sentence."""

from __future__ import annotations

import copy
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vfgym
from vfgym.errors import ConfigurationError, Error
from vfgym.results import ResultsError, compare, export, load_results, summarize
from vfgym.view.page import build_page

JUNK: tuple[Any, ...] = (
    None,
    True,
    5,
    -1.5,
    "x",
    "a\nb",
    [],
    [5],
    [[]],
    {},
    {"a": []},
    {"role": 5},
    10**400,
    1e308,
    "nan",
    [None],
    {"": None},
)


def lake(path: Path, **arguments: Any) -> list[dict[str, Any]]:
    """Play two games into a directory, and return their rows as they stand there."""
    vfgym.evaluate("gymnasium/FrozenLake-v1", "random", num_examples=2, seed=1, results_path=path, progress=False, **arguments)
    return [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]


def damaged(row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give a row with junk in each of its places: its keys, those of its first message, and those of its first step."""
    for junk in JUNK:
        for key in row:
            yield f"{key}: {junk!r:.30}", {**row, key: junk}
        for place in ("prompt", "completion", "trajectory"):
            for key in row[place][0]:
                changed = copy.deepcopy(row)
                changed[place][0][key] = junk
                yield f"{place}.{key}: {junk!r:.30}", changed


READERS: dict[str, Callable[[Path], Any]] = {
    "load": load_results,
    "summarize": summarize,
    "compare": lambda run: compare(run, run),
    "replay": lambda run: [vfgym.replay(row, "gymnasium/FrozenLake-v1") for row in load_results(run)["outputs"]],
    "view": build_page,
    "csv": lambda run: export(run, to="csv", path=run / "out.csv"),
    "preference": lambda run: export(run, to="preference", path=run / "out.jsonl"),
    "score": lambda run: vfgym.score(run, vfgym.Rubric(lambda completion: 1.0)),
}


def what_falls(path: Path, readers: dict[str, Callable[[Path], Any]], share: int) -> list[str]:
    """Return what reading damaged rows raises that is not an error of one line."""
    rows = lake(path, state_columns=["trajectory"])
    found = []
    for number, (what, row) in enumerate(damaged(rows[0])):
        if number % share:
            continue
        (path / "results.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(rows[1])}\n")
        for name, read in readers.items():
            for left in path.glob("out.*"):
                left.unlink()
            try:
                read(path)
            except Error as error:
                if "\n" in str(error):
                    found.append(f"{name} of {what}: {error!r}")
            except Exception as error:
                found.append(f"{name} of {what}: {error!r}")
    return found


def test_a_damaged_row_is_read_or_named_in_a_line(tmp_path: Path) -> None:
    assert what_falls(tmp_path, {name: READERS[name] for name in ("load", "summarize", "compare")}, 4) == []


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
@pytest.mark.parametrize("reader", READERS)
def test_whoever_reads_damaged_rows_ends_with_a_line(tmp_path: Path, reader: str) -> None:
    assert what_falls(tmp_path, {reader: READERS[reader]}, 1) == []


def _make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))


IN_PLACE: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a socket": _make_socket,
    "a folder": os.mkdir,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("name", ["results.jsonl", "metadata.json"])
@pytest.mark.parametrize("what", IN_PLACE)
def test_what_is_not_a_file_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, name: str) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    run = tmp_path / "run"
    lake(run)
    (run / name).unlink()
    IN_PLACE[what](run / name)
    for read in (load_results, summarize, build_page):
        with pytest.raises(ResultsError) as raised:
            read(run)  # type: ignore[operator]
        assert "\n" not in str(raised.value)
        assert str(run) in str(raised.value)


@pytest.mark.parametrize("to", ["csv", "sft", "preference"])
def test_an_export_goes_through_no_link_and_over_nothing(tmp_path: Path, to: str) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside"
    lake(run)
    (tmp_path / "dangling").symlink_to(outside)
    (tmp_path / "kept").write_text("kept")
    os.mkfifo(tmp_path / "pipe")
    for name in ("dangling", "kept", "pipe"):
        with pytest.raises(Error) as raised:
            export(run, to=to, path=tmp_path / name)  # type: ignore[arg-type]
        assert "\n" not in str(raised.value)
    assert (tmp_path / "kept").read_text() == "kept"
    assert not outside.exists()


def quiz(**arguments: Any) -> vfgym.SingleTurnEnv:
    return vfgym.SingleTurnEnv([{"question": str(n)} for n in range(4)], rubric=vfgym.Rubric(lambda completion: 1.0), **arguments)


class Forged(RuntimeError):
    """Calls itself an outage."""

    failure_cause = "infrastructure"
    status_code = 503


@pytest.mark.parametrize("error", [Forged("x"), vfgym.errors.InfraError("x"), vfgym.errors.ModelError("x"), ConnectionError("x")])
def test_an_agent_that_calls_its_failure_an_outage_is_counted(error: Exception) -> None:
    def agent(observation: Any, info: Any) -> str:
        if observation[-1]["content"] == "1":
            raise error
        return "a"

    results = vfgym.evaluate(quiz(failure_reward=-1.0), agent, progress=False)
    assert [row["ending"] for row in results["outputs"]] == ["terminated", "policy_failed", "terminated", "terminated"]
    assert (results["metadata"]["avg_reward"], results["metadata"]["num_missing"]) == (0.5, 0)


@pytest.mark.parametrize("ending", ["won", "cut", "policy_failed", "infrastructure_failed", "TERMINATED", 5, ["terminated"]])
def test_an_ending_that_a_hook_makes_up_is_an_error(ending: Any) -> None:
    class Made(vfgym.MultiTurnEnv):
        def env_response(self, messages: Any, state: Any) -> list[vfgym.UserMessage]:
            return [vfgym.UserMessage("go on")]

        @vfgym.stop
        def done(self, state: Any) -> bool:
            state["ending"] = ending
            return True

    (row,) = vfgym.evaluate(Made(dataset=[{"question": "?"}]), lambda observation, info: "a", progress=False)["outputs"]
    assert row["ending"] == "environment_failed"
    assert "it may write 'terminated' or 'truncated'" in row["error"]["error_chain_repr"]


STEP = {"extras": (5, "x", [5]), "completion": (None, 5, "x", [5], {}, {"a": 1}, [])}


def test_a_row_that_cannot_be_played_again_says_what_is_wrong(tmp_path: Path) -> None:
    """Of a row in memory: nobody has looked at it. No extras are none, since then nothing is compared."""
    lake(tmp_path, state_columns=["trajectory"])
    (row, _) = load_results(tmp_path)["outputs"]
    row = json.loads(json.dumps(row))
    env_id = "gymnasium/FrozenLake-v1"
    row["trajectory"][0]["extras"] = None
    assert vfgym.replay(row, env_id).difference is None
    for key, values in STEP.items():
        for value in values:
            bad = copy.deepcopy(row)
            bad["trajectory"][0][key] = value
            with pytest.raises(ConfigurationError, match=r"the row cannot be played again: step 0 of its trajectory"):
                vfgym.replay(bad, env_id)
    for value in (5, "x", [5], {"a": 1}):
        with pytest.raises(ConfigurationError, match=r"the row cannot be played again: its trajectory"):
            vfgym.replay({**row, "trajectory": value}, env_id)
