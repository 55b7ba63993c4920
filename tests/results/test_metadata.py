"""The metadata of a run."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vfgym.limits import Spending
from vfgym.results import RolloutOutput, Run, metadata
from vfgym.results.metadata import package_versions, version_info


def run(**fields: Any) -> Run:
    known: dict[str, Any] = {
        **{"env_id": "game", "env_args": {}, "model": "m", "num_examples": 2, "rollouts_per_example": 2, "pass_threshold": 0.5},
        **{"version_info": {"vf_version": "1"}, "seed": 0, "state_columns": [], "max_concurrent": 3},
    }
    return Run(**{**known, **fields})


def row(example_id: int, reward: float, rollout: int | None = 0, **fields: Any) -> RolloutOutput:
    kept = {"example_id": example_id, "rollout": rollout, "reward": reward, "counted_reward": reward, "error": None, "metrics": {}}
    return RolloutOutput({**kept, **fields})


ROWS = [row(1, 1.0, 1), row(0, 0.0, 1), row(1, 1.0, None), row(0, 1.0)]


def test_rows_are_in_order_and_their_statistics_are_those_of_the_run() -> None:
    results = run().outputs(ROWS)
    assert [(each["example_id"], each["rollout"] or 0) for each in results["outputs"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    found = results["metadata"]
    assert (found["avg_reward"], found["pass_at_k"], found["pass_all_k"]) == (0.75, {"1": 0.75, "2": 1.0}, {"1": 0.75, "2": 0.5})
    assert (found["seed"], found["max_concurrent"], found["rollouts_per_example"], found["num_examples"]) == (0, 3, 2, 2)
    assert run(pass_threshold=0.0).metadata(ROWS)["pass_all_k"]["2"] == 1.0
    assert run().metadata(ROWS[:3])["avg_reward"] is None, "the run is not done"
    assert run(num_rollouts=3, shard=(0, 2)).metadata(ROWS[:3])["avg_reward"] == pytest.approx(2 / 3)
    assert run().title == "game m"
    assert found["is_model"] is True, "unless the run says that an agent played"


def test_what_a_run_is_stands_in_its_metadata() -> None:
    """Each with a value of its own, so that a swap shows."""
    limit: Any = {"limit": "cost", "used": 2.0, "allowed": 1.0}
    fields: dict[str, Any] = {
        **{"env_id": "x", "env_args": {"n": 0}, "model": "o", "num_examples": 7, "rollouts_per_example": 3, "pass_threshold": 0.0},
        **{"version_info": {"vf_version": "2"}, "seed": None, "state_columns": ["a"], "max_concurrent": 9, "path_to_save": Path("p")},
        **{"base_url": "http://b", "sampling_args": {"top_k": 0}, "is_model": False, "limits_each": {"turns": 5}, "stopped_by": limit},
        **{"redone": 4, "reward_range": None},
    }
    found: dict[str, Any] = dict(run(**fields).metadata([]))
    assert {name: found[name] for name in fields} == fields
    assert found["versions"] == package_versions()
    assert "redone" not in run(redone=0).metadata([])


def test_means_are_of_the_number_that_the_run_says() -> None:
    rows = [row(0, 4.0, failed=True, counted_reward=-1.0, ending="policy_failed"), row(1, 1.0)]
    fields: dict[str, Any] = {"rollouts_per_example": 1, "reward_range": (-1.0, 5.0)}
    assert run(**fields).metadata(rows)["avg_reward"] == 0.0
    assert run(**fields, mean_of="reward").metadata(rows)["avg_reward"] == 2.5
    assert run(**fields).metadata(rows)["reward_range"] == [-1.0, 5.0]
    equal = [row(0, 5.0), row(1, 5.0)]
    assert run(rollouts_per_example=1).metadata(equal)["interval"] is None
    assert run(**fields).metadata(equal)["interval"] is not None


def test_the_time_goes_on_when_a_run_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "time", SimpleNamespace(time=lambda: 90.0))
    found = run(started=60.0, earlier_seconds=5.0).metadata([])
    assert (found["time"], found["time_ms"], found["date"]) == (35.0, 35_000.0, "1970-01-01T00:01:00+00:00")


def test_no_secret_is_kept() -> None:
    secrets = {"env_args": {"api_key": "hunter2hunter2"}, "sampling_args": {"extra": {"authorization": "Bearer swordfish99"}}}
    text = json.dumps(run(**secrets, base_url="https://me:letmein77@host/v1").metadata([]))
    assert "https://" in text
    assert not [secret for secret in ("hunter2", "swordfish99", "letmein77") if secret in text]


@pytest.mark.parametrize(
    ("fields", "added"),
    [
        ({}, {}),
        ({"both_seats": True}, {"both_seats": True}),
        ({"shard": (0, 2), "num_rollouts": 0}, {"shard": [0, 2], "num_rollouts": 0}),
        ({"tags": ["a", "b"]}, {"tags": ["a", "b"]}),
        ({"spec": {}}, {"spec": {}}),
        ({"spent": Spending(abandoned=2)}, {"abandoned_requests": 2}),
        ({"spent": Spending()}, {}),
    ],
)
def test_what_not_every_run_has_stands_there_where_it_has(fields: dict[str, Any], added: dict[str, Any]) -> None:
    optional = ("both_seats", "shard", "num_rollouts", "tags", "spec", "abandoned_requests")
    assert {key: value for key, value in run(**fields).metadata([]).items() if key in optional} == added


def test_the_cost_is_that_of_the_run_or_of_its_rows() -> None:
    rows = [row(0, 1.0, spent={"cost": 0.5}), row(1, 1.0, spent={"cost": 0.25})]
    assert run().metadata(rows)["cost"] == 0.75
    assert run(spent=Spending(cost=0.0)).metadata(rows)["cost"] == 0.0
    assert run(spent=Spending(cost=None)).metadata(rows)["cost"] is None


def test_versions_are_of_what_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("textarena", "reasoning_gym"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert set(package_versions()) == {"python", "gymnasium", "numpy"}
    assert package_versions()["python"] == platform.python_version()
    for module, name in (("reasoning_gym", "reasoning-gym"), ("textarena", "textarena")):
        monkeypatch.setitem(sys.modules, module, object())  # type: ignore[arg-type]
        assert package_versions()[name] == importlib.metadata.version(name)


def test_the_commit_is_that_of_the_repository_that_tracks_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Path]] = []

    def git(command: list[str], cwd: Path, **options: Any) -> Any:
        asked.append((command[1], cwd))
        if command[-1] == "untracked.py":
            raise subprocess.CalledProcessError(1, command)
        return SimpleNamespace(stdout="4f2a\n")

    monkeypatch.setattr("vfgym.results.metadata.subprocess.run", git)
    for name, commit in (("tracked", "4f2a"), ("untracked", None)):
        monkeypatch.setitem(sys.modules, f"{name}_code", SimpleNamespace(__file__=str(tmp_path / f"{name}.py")))  # type: ignore[arg-type]
        assert version_info(type("Own", (), {"__module__": f"{name}_code"})())["env_commit"] == commit
    assert {cwd for _, cwd in asked if cwd != Path(metadata.__file__).parent.parent} == {tmp_path}


@pytest.mark.parametrize(("prompts_version", "kept"), [(None, False), ("1", False), (0, True), (3, True)])
def test_the_code_that_was_run(prompts_version: Any, kept: bool) -> None:
    own = type("Own", (), {"__module__": "numpy.own", "prompts_version": prompts_version})
    info = version_info(own())
    assert info["vf_version"] == importlib.metadata.version("vfgym")
    assert info["env_version"] == importlib.metadata.version("numpy")
    assert info.get("prompts_version", "none") == (prompts_version if kept else "none")
    unknown = type("Own", (), {"__module__": "not_a_distribution"})
    assert version_info(unknown())["env_version"] is None
