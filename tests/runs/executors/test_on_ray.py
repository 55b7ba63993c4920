"""Runs in a Ray cluster; without Ray, what says how to get it."""

from __future__ import annotations

import asyncio
import importlib.util
import random
from collections.abc import Iterator
from typing import Any

import pytest

import vfgym
from tests.runs.executors.players import FOLDER, answer, counting, deadly, without_drawn
from tests.sampling import SEED
from vfgym import ClientConfig, ModelAgent
from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.model_server import ModelServer
from vfgym.runs.executors.coordinator import Coordinator

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
@pytest.mark.timeout(1800)
def test_nodes_that_are_killed_at_random_moments_cost_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two nodes with a worker each, one is killed ten times, and replaced; each request is counted, also of what was lost."""
    ray = pytest.importorskip("ray")
    ray.shutdown()
    from ray.cluster_utils import Cluster

    from vfgym.runs.executors.on_ray import RayExecutor

    drawn = random.Random(SEED)
    left = [drawn.randint(1, 60) for _ in range(10)]
    """After how many rows the node is killed, counted from when both workers were there."""
    joined, admit = [0], Coordinator._admit
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    others = [nodes.add_node(num_cpus=1)]

    def count(self: Coordinator, *arguments: Any) -> Any:
        joined[0] += 1
        return admit(self, *arguments)

    def kill(row: Any, progress: Any) -> None:
        if left and joined[0] >= 2 + (10 - len(left)):
            left[-1] -= 1
            if not left[-1]:
                left.pop()
                nodes.remove_node(others.pop(), allow_graceful=False)
                others.append(nodes.add_node(num_cpus=1))

    monkeypatch.setattr(Coordinator, "_admit", count)
    try:
        ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
        with ModelServer(latency=1.5) as server:  # so that a new node is there before too many rows are
            agent = ModelAgent(ClientConfig(api_base_url=server.openai_url, api_key_var="NONE"), "echo")
            playing = vfgym.aevaluate(
                "tests.runs.executors.players:counting",
                agent,
                env_args={"num_tasks": 2000, "width": 5},
                progress=False,
                max_concurrent=16,
                executor=RayExecutor(),
                workers=2,
                limits={"requests": 100_000},
                prices={"echo": {"input": 1.0, "output": 10.0}},
                on_progress=kill,
            )
            results = asyncio.run(playing)  # on this thread, on which alone Ray adds nodes
            num_requests = server.num_requests
    finally:
        ray.shutdown()
        nodes.shutdown()
    assert left == []
    rows, metadata = results["outputs"], results["metadata"]
    assert [row["example_id"] for row in rows] == list(range(2000))
    assert {row["error"] is None for row in rows} == {True}
    assert 0 < metadata["redone"] <= 320
    each = {row["spent"]["cost"] for row in rows}
    assert len(each) == 1, "all cost the same"
    assert metadata["cost"] is not None
    counted, abandoned = round(metadata["cost"] / each.pop()), metadata.get("abandoned_requests", 0)
    assert 2000 <= counted <= num_requests <= counted + abandoned
    print(f"redone {metadata['redone']}, sent {num_requests}, counted {counted}, abandoned {abandoned}")


@pytest.mark.exhaustive
def test_no_cluster_is_told_in_one_line(cluster: Any) -> None:
    from vfgym.runs.executors.on_ray import RayExecutor

    cluster.shutdown()
    with pytest.raises(ConfigurationError, match="there is no Ray cluster to play in"):
        RayExecutor(address="127.0.0.1:1")
