"""What `benchmarks/run.py` promises: a row for each figure, beside limits and peers; an exit code that is about errors, not numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks import memory, rollouts, run
from benchmarks.measuring import Bench, Measurement
from scripts import peers
from tests.benchmarks import measurements

ROOT = Path(__file__).parents[2]
KEYS = {"room", "name", "value", "unit", "limit", "met", "more_is_better", "peer", "peer_name", "ratio"}


@pytest.fixture
def measure_these(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give rooms measurements of the test's own."""

    def put(*chosen: Measurement, rooms: tuple[str, ...] = run.ROOMS) -> None:
        for room in run.ROOMS:
            monkeypatch.setattr(import_module(f"benchmarks.{room}"), "MEASUREMENTS", chosen if room in rooms else ())

    return put


@pytest.fixture
def peer_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this interpreter be that of the peer."""
    monkeypatch.setattr(peers, "python_of", lambda name, folder: Path(sys.executable))
    monkeypatch.setattr(run, "can_import", lambda python, package: True)


def rows_of(tmp_path: Path, *options: str, code: int = 0) -> list[dict[str, Any]]:
    """Return the rows of a run."""
    file = tmp_path / "rows.json"
    assert run.main([*options, "--json", str(file)]) == code
    return json.loads(file.read_text(encoding="utf-8"))["rows"]


def test_a_row_says_what_was_measured_and_whether_the_limit_is_met(measure_these: Any, tmp_path: Path) -> None:
    measure_these(measurements.two_figures, rooms=("games",))
    cost, rate = rows_of(tmp_path, "--no-peers")
    both = {"room": "games", "value": 3.0, "limit": 2.0, "peer": 6.0, "peer_name": "another way"}
    assert cost == {**both, "name": "a cost", "unit": "µs", "met": False, "more_is_better": False, "ratio": 2.0}
    assert rate == {**both, "name": "a rate", "unit": "/s", "met": True, "more_is_better": True, "ratio": 0.5}


def test_what_there_is_not_is_null(measure_these: Any, tmp_path: Path) -> None:
    measure_these(measurements.says_how_much, rooms=("games",))
    [row] = rows_of(tmp_path, "--no-peers")
    assert row.keys() == KEYS
    assert {key for key, value in row.items() if value is None} == {"limit", "met", "peer", "peer_name", "ratio"}


def test_the_file_says_what_machine_it_was(measure_these: Any, tmp_path: Path) -> None:
    measure_these()
    assert run.main(["--json", str(tmp_path / "rows.json")]) == 0
    found = json.loads((tmp_path / "rows.json").read_text())
    assert found.keys() == {"machine", "rows"}
    assert found["machine"].keys() == {"cpu", "cores", "python", "date"}
    assert found["machine"]["cpu"]
    assert found["machine"]["cores"] > 0


def test_the_table_has_what_the_file_has(measure_these: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure_these(measurements.two_figures, rooms=("games", "memory"))
    rows_of(tmp_path, "--no-peers")
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line]  # the first one is the machine
    assert [line[0] for line in lines[1:]] == ["games", "a", "a", "memory", "a", "a"]
    assert lines[2] == ["a", "cost", "3.00", "µs", "≤", "2.00", "missed", "6.00", "2.00", "another", "way"]
    assert lines[3] == ["a", "rate", "3.00", "/s", "≥", "2.00", "met", "6.00", "0.50", "another", "way"]


@pytest.mark.parametrize("room", run.ROOMS)
def test_only_the_rooms_that_are_named_are_measured(measure_these: Any, tmp_path: Path, room: str) -> None:
    measure_these(measurements.says_how_much)
    assert [row["room"] for row in rows_of(tmp_path, "--no-peers", "--only", room)] == [room]


def test_rooms_come_in_their_order_and_all_where_none_is_named(measure_these: Any, tmp_path: Path) -> None:
    measure_these(measurements.says_how_much)
    assert [row["room"] for row in rows_of(tmp_path, "--no-peers", "--small")] == list(run.ROOMS)
    assert [row["room"] for row in rows_of(tmp_path, "--no-peers", "--only", "memory", "games")] == ["games", "memory"]


def test_a_room_that_there_is_not_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main(["--only", "rollout"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "'rollout'" in said
    assert all(room in said for room in run.ROOMS)


@pytest.mark.parametrize(("options", "name"), [((), "small: False, 10"), (("--small",), "small: True, 1")])
def test_little_is_done_where_that_was_asked(measure_these: Any, tmp_path: Path, options: tuple[str, ...], name: str) -> None:
    measure_these(measurements.says_how_much, rooms=("vector",))
    assert [row["name"] for row in rows_of(tmp_path, "--no-peers", *options)] == [name]


@pytest.mark.parametrize(
    ("measurement", "said"),
    [(measurements.fails, "RuntimeError: there is no such game"), (measurements.ends_its_process, "exit code 3")],
)
def test_a_measurement_that_fails_is_named_and_the_others_go_on(
    measure_these: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], measurement: Measurement, said: str
) -> None:
    measure_these(measurement, measurements.says_how_much, rooms=("serving",))
    rows = rows_of(tmp_path, "--no-peers", "--small", code=1)
    assert [row["name"] for row in rows] == ["small: True, 1"]
    assert f"serving: {measurement.__name__} failed: {said}" in capsys.readouterr().err


def test_what_cannot_be_measured_on_this_machine_is_skipped_and_is_not_a_failure(
    measure_these: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure_these(measurements.cannot_be_made_here, rooms=("executors",))
    assert [row["name"] for row in rows_of(tmp_path, "--no-peers")] == ["made"]
    assert "cannot_be_made_here is skipped: there is no such device" in capsys.readouterr().err


# Peers


@pytest.mark.usefixtures("peer_is_here")
@pytest.mark.parametrize(("options", "value"), [((), 8.0), (("--small",), 2.0)], ids=str)
def test_what_a_peer_runs_too_stands_beside_it(measure_these: Any, tmp_path: Path, options: tuple[str, ...], value: float) -> None:
    measure_these(measurements.known_to_a_peer, rooms=("rollouts",))
    cost, rate, ours = rows_of(tmp_path, *options)
    assert (cost["peer"], cost["peer_name"], cost["ratio"]) == (value, "verifiers", 2.0)
    assert (rate["peer"], rate["peer_name"], rate["ratio"]) == (value, "verifiers", 0.5)
    assert (ours["peer"], ours["peer_name"], ours["ratio"], ours["met"]) == (None, None, None, True)


@pytest.mark.usefixtures("peer_is_here")
def test_without_peers_none_is_run(measure_these: Any, tmp_path: Path) -> None:
    measure_these(measurements.known_to_a_peer, rooms=("rollouts",))
    assert {row["peer"] for row in rows_of(tmp_path, "--no-peers")} == {None}


@pytest.mark.usefixtures("peer_is_here")
def test_what_fails_in_a_peer_is_reported_and_skipped(measure_these: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure_these(measurements.fails_in_a_peer, rooms=("rollouts",))
    [row] = rows_of(tmp_path)
    assert (row["value"], row["met"], row["peer"], row["ratio"]) == (2.0, True, None, None)
    assert "fails_in_a_peer is skipped in verifiers: the peer has no such thing" in capsys.readouterr().err


def test_a_peer_that_cannot_be_installed_is_reported_and_skipped(
    measure_these: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def make(name: str, folder: Path) -> None:
        asked.append((name, folder))
        raise subprocess.CalledProcessError(1, ["pip"])

    monkeypatch.setattr(peers, "make", make)
    measure_these(measurements.known_to_a_peer, rooms=("rollouts",))
    rows = rows_of(tmp_path, "--peers", str(tmp_path / "elsewhere"))
    assert asked == [("verifiers", tmp_path / "elsewhere")]
    assert {row["peer"] for row in rows} == {None}
    assert "verifiers is skipped" in capsys.readouterr().err


def test_what_measurements_are_compared_with_can_be_installed() -> None:
    named = {getattr(each, "peer", None) for room in run.ROOMS for each in import_module(f"benchmarks.{room}").MEASUREMENTS}
    assert named - {None} == set(run.PEER_PACKAGES)
    assert set(run.PEER_PACKAGES) <= set(peers.REQUIREMENTS)


# Real ones


@pytest.mark.parametrize("measurement", [memory.kept_rollouts, memory.open_episodes, rollouts.single_turn], ids=lambda each: each.__name__)
def test_real_measurements_yield_numbers(measurement: Measurement) -> None:
    figures = [*measurement(Bench(small=True))]
    assert all(figure.value > 0 for figure in figures)
    assert len({figure.name for figure in figures}) == len(figures) > 0


def test_it_runs_as_a_script_from_any_folder(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, ROOT / "benchmarks" / "run.py", "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert "--no-peers" in ended.stdout
