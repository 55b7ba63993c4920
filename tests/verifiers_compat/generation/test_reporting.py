"""What callbacks are told of a run, and that they cannot end it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.verifiers_compat.environments import four
from tests.verifiers_compat.models import Model
from vfgym.errors import ConfigurationError


def test_callbacks_are_told_what_the_documents_say() -> None:
    told: dict[str, list[Any]] = {"start": [], "progress": [], "log": []}
    four().evaluate_sync(
        Model(),
        "m",
        num_examples=2,
        rollouts_per_example=2,
        on_start=lambda *args: told["start"].append(args),
        on_log=told["log"].append,
        on_progress=lambda all_outputs, new, metadata: told["progress"].append((len(all_outputs), len(new), metadata["avg_reward"])),
    )
    ((raw, filtered),) = told["start"]
    assert [row["example_id"] for row in raw] == [0, 1, 0, 1]
    assert [[row["example_id"] for row in group] for group in filtered] == [[0, 0], [1, 1]]
    assert [progress[:2] for progress in told["progress"]] == [(2, 2), (4, 2)]
    assert told["progress"][-1][2] == 0.5

    starts: list[Any] = []
    counts: list[int] = []
    four().evaluate_sync(
        Model(),
        "m",
        independent_scoring=True,
        on_start=lambda raw, left: starts.append(left),
        on_progress=[lambda done, new, _: counts.append(len(new))],
    )
    assert [row["example_id"] for row in starts[0]] == [0, 1, 2, 3]
    assert counts == [1, 1, 1, 1]


def test_metadata_that_a_callback_keeps_stay_those_of_their_moment() -> None:
    kept: list[tuple[list[float], Mapping[str, Any]]] = []
    four().evaluate_sync(
        Model(),
        "m",
        num_examples=2,
        rollouts_per_example=2,
        max_concurrent=1,
        on_progress=lambda outputs, new, metadata: kept.append(([row["reward"] for row in outputs], metadata)),
    )
    for rewards, metadata in [kept[-1], kept[0]]:  # the newest first, so that the older ones come after it
        assert metadata["avg_reward"] == sum(rewards) / len(rewards)
        assert metadata["avg_metrics"]["num_turns"] == 1.0
        assert metadata["num_examples"] == 2


def test_callbacks_read_running_means_and_cannot_end_a_run(caplog: pytest.LogCaptureFixture) -> None:
    means: list[tuple[float, float, int]] = []

    def note(outputs: Any, new: Any, metadata: Mapping[str, Any]) -> None:
        means.append((metadata["avg_reward"], metadata["avg_metrics"]["right"], metadata["num_examples"]))
        raise ValueError("oops")

    results = four().evaluate_sync(Model(), "m", max_concurrent=1, on_progress=note)
    assert means == [(0.0, 0.0, 4), (0.5, 0.5, 4), (pytest.approx(1 / 3), pytest.approx(1 / 3), 4), (0.25, 0.25, 4)]
    assert results["metadata"]["avg_reward"] == 0.25
    assert caplog.text.count("a callback raised") == 1

    async def never_awaited(*args: Any) -> None: ...

    with pytest.raises(ConfigurationError, match="async"):
        four().evaluate_sync(Model(), "m", on_progress=never_awaited)
