"""One table of numbers: what this library costs, beside what the project set itself and beside its peers.

    python benchmarks/run.py [--small] [--only ROOM ...] [--no-peers] [--peers FOLDER] [--json FILE]

Rooms are modules of this folder. Each measurement runs in a process of its own, and those that another library can run too are run in its
interpreter next (`scripts/peers.py` makes it where it is missing). Times are CPU time, the least of several rounds, but for what is wall
time by nature (requests a second, paces, imports); `ratio` is how many times better this library is than the peer. No number is a failure:
the exit code is 1 where a measurement failed, which is named.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # instead of this folder, whose modules have names that others may have too

from benchmarks.measuring import PEER_PACKAGES, Bench, Figure, Measurement, Skipped  # noqa: E402
from scripts import peers  # noqa: E402

ROOMS = ("rollouts", "games", "vector", "serving", "executors", "memory")
MOST_SECONDS = 3600
"""How long a measurement may take."""

Row = dict[str, Any]


class MeasurementFailed(Exception):
    """A measurement ended with an error; the message is its last line."""


# One measurement


def name_of(measurement: Measurement) -> str:
    """Return the name by which another process finds a measurement."""
    return f"{measurement.__module__}:{measurement.__name__}"


def measure(name: str, bench: Bench) -> None:
    """Measure in this process, and print what was found as the last line."""
    module, _, function = name.partition(":")
    found: dict[str, Any] = {"figures": []}
    try:
        found["figures"].extend(asdict(figure) for figure in getattr(import_module(module), function)(bench))
    except Skipped as error:
        found["skipped"] = str(error)
    print("\n" + json.dumps(found), flush=True)


def measure_in(python: str | Path, measurement: Measurement, bench: Bench) -> list[Figure]:
    """Measure in a process of its own, and return the figures."""
    command = [str(python), __file__, "--measure", name_of(measurement), "--bench", json.dumps(asdict(bench))]
    with tempfile.TemporaryDirectory() as folder:  # some libraries write where they are
        try:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired:
            raise MeasurementFailed(f"it took more than {MOST_SECONDS} s") from None
    if done.returncode:
        raise MeasurementFailed((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    found = json.loads(done.stdout.splitlines()[-1])
    if "skipped" in found:
        report(f"{name_of(measurement)} is skipped: {found['skipped']}")
    return [Figure(**figure) for figure in found["figures"]]


def row_of(room: str, figure: Figure, theirs: Figure | None, peer: str | None) -> Row:
    """Return the row of a figure, beside the one of a peer where there is one."""
    value, limit, more_is_better = figure.value, figure.limit, figure.more_is_better
    their_value, their_name = (figure.peer, figure.peer_name) if theirs is None else (theirs.value, peer)
    over, under = (value, their_value) if more_is_better else (their_value, value)
    return {
        "room": room,
        "name": figure.name,
        "value": value,
        "unit": figure.unit,
        "limit": limit,
        "met": None if limit is None else value >= limit if more_is_better else value <= limit,
        "more_is_better": more_is_better,
        "peer": their_value,
        "peer_name": their_name,
        "ratio": over / under if over is not None and under else None,
    }


def rows_of(room: str, measurement: Measurement, bench: Bench, interpreters: dict[str, Path]) -> list[Row]:
    """Measure here and, where there is an interpreter of its peer, there.

    Raises:
        MeasurementFailed: If it failed here. What fails in a peer is reported, and skipped.
    """
    figures = measure_in(sys.executable, measurement, bench)
    peer: str | None = getattr(measurement, "peer", None)
    theirs: dict[str, Figure] = {}
    if peer in interpreters:
        there = Bench(PEER_PACKAGES[peer], bench.small, bench.ours)
        try:
            theirs = {figure.name: figure for figure in measure_in(interpreters[peer], measurement, there)}
        except MeasurementFailed as error:
            report(f"{name_of(measurement)} is skipped in {peer}: {error}")
    return [row_of(room, figure, theirs.get(figure.name), peer) for figure in figures]


# Peers


def interpreters_of(measurements: Sequence[Measurement], folder: Path) -> dict[str, Path]:
    """Return the interpreters of the peers of measurements, made where missing; what cannot be installed is reported, and skipped."""
    found = {}
    for peer in dict.fromkeys(getattr(measurement, "peer", None) for measurement in measurements):
        if peer is None:
            continue
        python = peers.python_of(peer, folder)
        try:
            if not can_import(python, PEER_PACKAGES[peer]):
                report(f"{peer} is installed in {python.parents[1]}")
                peers.make(peer, folder)
            found[peer] = python
        except (OSError, subprocess.SubprocessError) as error:
            report(f"{peer} is skipped, since it cannot be installed: {error}")
    return found


def can_import(python: Path, package: str) -> bool:
    """Return whether an interpreter is there and has a package."""
    return python.exists() and not subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode


# The table


def report(line: str) -> None:
    """Write a line that is not part of the table."""
    print(line, file=sys.stderr, flush=True)


def machine() -> dict[str, Any]:
    """Return what the numbers were measured on, and when."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def line_of(row: Row) -> str:
    """Return the line of a row."""

    def number(value: float | None) -> str:
        return "" if value is None else f"{value:,.{2 if abs(value) < 10 else 1 if abs(value) < 100 else 0}f}"

    sign = "" if row["limit"] is None else "≥ " if row["more_is_better"] else "≤ "
    met = {True: "met", False: "missed", None: ""}[row["met"]]
    ratio = "" if row["ratio"] is None else number(row["ratio"])
    cells = f"{number(row['value']):>8} {row['unit']:5} {sign + number(row['limit']):>9} {met:6} {number(row['peer']):>9} {ratio:>8}"
    return f"{row['name']:82} {cells} {row['peer_name'] or ''}".rstrip()


def measured_rows(chosen: Sequence[tuple[str, Measurement]], bench: Bench, interpreters: dict[str, Path]) -> Iterator[Row | str]:
    """Yield the rows of measurements, in their order, and for each that failed the line that says so."""

    def rows_or_failure(room: str, measurement: Measurement) -> list[Row | str]:
        try:
            return [*rows_of(room, measurement, bench, interpreters)]
        except MeasurementFailed as error:
            return [f"{room}: {measurement.__name__} failed: {error}"]

    with ThreadPoolExecutor(bench.count(1, 2)) as threads:  # where the numbers mean nothing, two at once are quicker
        for found in threads.map(lambda each: rows_or_failure(*each), chosen):
            yield from found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="do little, once: whether all measurements run, in a minute")
    parser.add_argument("--only", nargs="+", choices=ROOMS, default=ROOMS, metavar="ROOM", help=f"rooms: {', '.join(ROOMS)}")
    parser.add_argument("--no-peers", action="store_true", help="measure this library only")
    parser.add_argument("--peers", type=Path, default=peers.FOLDER, metavar="FOLDER", help="environments of peers (default: .peers/)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="file for the machine and the rows")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--bench", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.measure:
        measure(arguments.measure, Bench(**arguments.bench))
        return 0
    chosen = [(room, each) for room in ROOMS if room in arguments.only for each in import_module(f"benchmarks.{room}").MEASUREMENTS]
    measurements = [measurement for _, measurement in chosen]
    interpreters = {} if arguments.no_peers else interpreters_of(measurements, arguments.peers.absolute())
    found: dict[str, Any] = {"machine": machine(), "rows": []}
    print(", ".join(f"{name}: {value}" for name, value in found["machine"].items()))
    if arguments.small:
        print("These numbers mean nothing: little was done, once, and two at a time.")
    num_failed = 0
    try:
        for row in measured_rows(chosen, Bench(small=arguments.small), interpreters):
            if isinstance(row, str):
                report(row)
                num_failed += 1
                continue
            if not found["rows"] or found["rows"][-1]["room"] != row["room"]:
                print(f"\n{row['room']:82} {'here':>8} {'':5} {'limit':>9} {'':6} {'peer':>9} {'ratio':>8}")
            print(line_of(row), flush=True)
            found["rows"].append(row)
    finally:  # also what was measured before a Ctrl-C
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if num_failed else 0


if __name__ == "__main__":
    sys.exit(main())
