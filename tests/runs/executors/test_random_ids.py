"""Whatever is registered is played elsewhere as it is here: a sample of ids, in processes and, where Ray is installed, in its actors."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import random
from typing import Any

import pytest

import vfgym
from tests.registered import playable_ids
from tests.runs.executors.players import without_drawn
from tests.sampling import SEED

SAMPLE = sorted(random.Random(SEED).sample(playable_ids(), 60))


def workers(name: str) -> Any:
    """Return workers that are used for all ids, so that each package is imported once."""
    if name == "process":
        return concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
    pytest.importorskip("ray")
    from vfgym.runs.executors.on_ray import RayExecutor

    return RayExecutor(num_cpus=0.1)


@pytest.mark.exhaustive
@pytest.mark.timeout(390)
@pytest.mark.parametrize("first", range(0, len(SAMPLE), 10))
@pytest.mark.parametrize("name", ["process", "ray"])
def test_rows_are_those_of_one_process(name: str, first: int) -> None:
    settings: dict[str, Any] = {"num_examples": 2, "rollouts_per_example": 2, "seed": 3, "limits_each": {"turns": 6}, "progress": False}
    differing = []
    with workers(name) as executor:
        for env_id in SAMPLE[first : first + 10]:
            here, there = (vfgym.evaluate(env_id, "random", **settings, **where) for where in ({}, {"executor": executor, "workers": 2}))
            if without_drawn(there["outputs"]) != without_drawn(here["outputs"]):
                differing.append(env_id)
    assert differing == []
