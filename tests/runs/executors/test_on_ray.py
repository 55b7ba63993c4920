"""Runs in a Ray cluster; without Ray, what says how to get it."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from typing import Any

import pytest

import vfgym
from tests.runs.executors.players import FOLDER, answer, counting, deadly, without_drawn
from tests.sampling import SEED
from vfgym.errors import ConfigurationError, MissingExtra

HAS_RAY = importlib.util.find_spec("ray") is not None


@pytest.mark.skipif(HAS_RAY, reason="Ray is installed")
def test_without_ray_it_is_said_how_to_install_it() -> None:
    with pytest.raises(MissingExtra, match=r"playing in a Ray cluster needs .*vfgym\[ray\]"):
        vfgym.evaluate(counting, answer, progress=False, executor="ray")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A cluster on this machine, whose actors can leave traces."""
    ray = pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(tmp_path_factory.mktemp("traces")))
        ray.init(num_cpus=2, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
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
def test_an_actor_that_dies_costs_what_it_was_playing(cluster: Any) -> None:
    from vfgym.runs.executors.on_ray import RayExecutor

    here = without_drawn(vfgym.evaluate(counting, answer, progress=False)["outputs"])
    results = vfgym.evaluate(counting, deadly, progress=False, executor=RayExecutor(num_cpus=0.5), workers=2)
    rows = without_drawn(results["outputs"])
    assert [row for row in rows if row["example_id"] != 5] == [row for row in here if row["example_id"] != 5]
    assert rows[5]["ending"] == "infrastructure_failed"
    assert results["metadata"]["redone"] >= 3


@pytest.mark.exhaustive
def test_actors_that_are_killed_at_random_moments_cost_no_row(cluster: Any) -> None:
    from vfgym.runs.executors.on_ray import RayExecutor

    drawn = random.Random(SEED)
    left = sorted(drawn.sample(range(1, 1900), 10))
    executor = RayExecutor(num_cpus=0.5)

    def kill(row: Any, progress: Any) -> None:
        if left and progress.done >= left[0] and executor._actors:
            left.pop(0)
            cluster.kill(drawn.choice(list(executor._actors.values())))

    results = vfgym.evaluate(counting, answer, env_args={"num_tasks": 2000}, progress=False, executor=executor, workers=2, on_progress=kill)
    assert left == []
    assert [row["example_id"] for row in results["outputs"]] == list(range(2000))
    assert {row["error"] is None for row in results["outputs"]} == {True}
    assert 0 < results["metadata"]["redone"] <= 320
    print(f"redone {results['metadata']['redone']}")


@pytest.mark.exhaustive
def test_no_cluster_is_told_in_one_line(cluster: Any) -> None:
    from vfgym.runs.executors.on_ray import RayExecutor

    cluster.shutdown()
    with pytest.raises(ConfigurationError, match="there is no Ray cluster to play in"):
        RayExecutor(address="127.0.0.1:1")
