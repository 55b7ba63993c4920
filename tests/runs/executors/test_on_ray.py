"""Runs in a Ray cluster; without Ray, what says how to get it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.runs.executors.players import FOLDER, answer, counting, deadly, without_drawn
from vfgym.errors import ConfigurationError, MissingExtra

HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.mark.skipif(HAS_RAY, reason="Ray is installed")
def test_without_ray_it_is_said_how_to_install_it() -> None:
    with pytest.raises(MissingExtra, match=r"playing in a Ray cluster needs .*vfgym\[ray\]"):
        vfgym.evaluate(counting, answer, progress=False, executor="ray")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster on this machine."""
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, log_to_driver=False, logging_level="WARNING", include_dashboard=False)
    yield ray
    ray.shutdown()


@pytest.mark.exhaustive
def test_rows_are_those_of_one_process(cluster: Any) -> None:
    here = vfgym.evaluate(counting, answer, rollouts_per_example=2, progress=False)
    there = vfgym.evaluate(counting, answer, rollouts_per_example=2, progress=False, executor="ray")
    assert without_drawn(there["outputs"]) == without_drawn(here["outputs"])
    assert there["metadata"]["spec"]["executor"] == "ray"
    assert cluster.is_initialized(), "a cluster that was there is not shut down"


@pytest.mark.exhaustive
def test_an_actor_that_dies_costs_what_it_was_playing(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vfgym.runs.executors.on_ray import RayExecutor

    cluster.shutdown()
    monkeypatch.setenv(FOLDER, str(tmp_path))  # of the actors, too
    cluster.init(num_cpus=2, log_to_driver=False, logging_level="WARNING", include_dashboard=False)
    here = without_drawn(vfgym.evaluate(counting, answer, progress=False)["outputs"])
    results = vfgym.evaluate(counting, deadly, progress=False, executor=RayExecutor(num_cpus=0.5), workers=2)
    rows = without_drawn(results["outputs"])
    assert [row for row in rows if row["example_id"] != 5] == [row for row in here if row["example_id"] != 5]
    assert rows[5]["ending"] == "infrastructure_failed"
    assert results["metadata"]["redone"] >= 3


@pytest.mark.exhaustive
def test_no_cluster_is_told_in_one_line() -> None:
    ray = pytest.importorskip("ray")
    from vfgym.runs.executors.on_ray import RayExecutor

    ray.shutdown()
    with pytest.raises(ConfigurationError, match="there is no Ray cluster to play in"):
        RayExecutor(address="127.0.0.1:1")
