"""Measurements that take no time, which `run.py` finds by their names in processes of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from benchmarks.measuring import Bench, Figure, Skipped, beside


def two_figures(bench: Bench) -> Iterator[Figure]:
    print("what a library prints is not part of the figures")
    yield Figure("a cost", 3.0, "µs", 2.0, 6.0, "another way")
    yield Figure("a rate", 3.0, "/s", 2.0, 6.0, "another way", more_is_better=True)


def says_how_much(bench: Bench) -> Iterator[Figure]:
    yield Figure(f"small: {bench.small}, {bench.count(10, 1)}", 0.0, "s")


def fails(bench: Bench) -> Iterator[Figure]:
    yield Figure("lost", 1.0, "s")
    raise RuntimeError("there is no such game")


def ends_its_process(bench: Bench) -> Iterator[Figure]:
    os._exit(3)
    yield


def cannot_be_made_here(bench: Bench) -> Iterator[Figure]:
    yield Figure("made", 1.0, "s")
    raise Skipped("there is no such device")


@beside("verifiers")
def known_to_a_peer(bench: Bench) -> Iterator[Figure]:
    is_peer = bench.package == "verifiers"
    value = bench.count(4, 1) * (2.0 if is_peer else 1.0)
    yield Figure("a cost", value, "µs")
    yield Figure("a rate", value, "/s", more_is_better=True)
    if not is_peer:
        yield Figure("known here only", 0.0, "µs", 0.0)


@beside("verifiers")
def fails_in_a_peer(bench: Bench) -> Iterator[Figure]:
    if bench.package == "verifiers":
        sys.exit("the peer has no such thing")
    yield Figure("a cost", 2.0, "µs", 2.0)
