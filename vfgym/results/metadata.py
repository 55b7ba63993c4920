"""The metadata of a run: what was run, with which versions, and what came out."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from vfgym.errors import LimitFacts
from vfgym.limits import Spending
from vfgym.output.redaction import redact_data, redact_url
from vfgym.results.counting import MeanOf
from vfgym.results.outputs import RunOutputs
from vfgym.results.rows import RolloutOutput, row_order
from vfgym.results.spending import cost_of
from vfgym.results.statistics import Summary, planned_rollouts, statistics_of


class VersionInfo(TypedDict):
    """The code that was run."""

    vf_version: str
    vf_commit: str | None
    env_version: str | None
    """Version of the distribution that the environment comes from, where there is one."""
    env_commit: str | None
    """Git commit of the repository that holds the environment's code, where there is one."""
    prompts_version: NotRequired[int]
    """The version of vfgym's texts about Gymnasium's own games, where these are what a model was told."""


class GenerateMetadata(Summary):
    """Metadata of a run: what was run, and the statistics of what came out."""

    env_id: str
    env_args: dict[str, Any]
    model: str
    """Name of the model, or of the agent that answered."""
    is_model: bool
    """Whether that is the name of a model: an agent may have the same one."""
    base_url: str
    num_examples: int
    rollouts_per_example: int
    sampling_args: dict[str, Any]
    date: str
    """When the run began: ISO 8601, UTC; not written to disk."""
    time_ms: float
    """How long it took, in milliseconds; with what it took before it was resumed."""
    time: float
    """The same in seconds."""
    pass_threshold: float
    """Reward from which a rollout passes, in pass@k."""
    version_info: VersionInfo
    versions: dict[str, str]
    """Versions of Python and of the packages that decide what an episode is."""
    seed: int | None
    state_columns: list[str]
    max_concurrent: int
    reward_range: list[float] | None
    """The lowest and the highest number that a rollout can count with; None where that is not known."""
    limits_each: dict[str, float]
    """Limits of each rollout, by their names."""
    stopped_by: LimitFacts | None
    """The limit that ended the run; None where none has."""
    cost: float | None
    """Money that it cost, with rollouts that were given up or repeated; None where it is not known."""
    abandoned_requests: NotRequired[int]
    """Requests that were given up while they were under way, where there were any: what they cost stands nowhere."""
    redone: NotRequired[int]
    """How many rollouts were played again since the worker died that was playing them, where any were."""
    path_to_save: Path | None
    """Where the files are; not written to disk."""
    tags: NotRequired[list[str]]
    """Words by which it is found again, where it has any."""
    scored_again: NotRequired[bool]
    """Whether the rows are those of another run, scored again with another rubric, where they are."""
    scored_by: NotRequired[dict[str, Any]]
    """The name of that rubric, and the arguments that it was made with, where ``vfgym score`` was told them."""
    spec: NotRequired[dict[str, Any]]
    """The run as data, by which it can be played again (`vfgym.RunSpec`), where all that was played has a name."""
    shard: NotRequired[list[int]]
    """Which part of a run it is, where it is one, and how many parts there are."""
    num_rollouts: NotRequired[int]
    """How many rollouts a part has when it is done."""
    both_seats: NotRequired[bool]
    """Whether each game was played from both seats, where it was: `rollouts_per_example` counts both."""


class GenerateOutputs(TypedDict):
    """What a run gives: its rows, by example and rollout, and its metadata."""

    outputs: list[RolloutOutput]
    metadata: GenerateMetadata


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a run is, from its beginning: the fields are those of `GenerateMetadata`."""

    env_id: str
    env_args: dict[str, Any]
    model: str
    num_examples: int
    rollouts_per_example: int
    pass_threshold: float
    version_info: VersionInfo
    seed: int | None
    """None for a run whose rollouts draw fresh random numbers."""
    state_columns: list[str]
    max_concurrent: int
    path_to_save: Path | None = None
    base_url: str = ""
    sampling_args: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.time)
    """Seconds since the epoch."""
    is_model: bool = True
    """Whether `model` is the name of a model, and not that of an agent."""
    mean_of: MeanOf = "counted_reward"
    """Which number of its rows the means are of."""
    both_seats: bool = False
    """Whether each game is played from both seats, as two rollouts."""
    earlier_seconds: float = 0.0
    """What the run took before it was resumed."""
    reward_range: tuple[float, float] | None = None
    """The lowest and the highest number that a rollout can count with."""
    limits_each: dict[str, float] = field(default_factory=dict)
    """Limits of each rollout."""
    stopped_by: LimitFacts | None = None
    """The limit that ended it."""
    tags: list[str] = field(default_factory=list)
    """Words by which it is found again."""
    shard: tuple[int, int] | None = None
    """Which part of a run it is, and how many parts there are; None for a whole one."""
    num_rollouts: int | None = None
    """How many rollouts it has when it is done; None where `num_examples` and `rollouts_per_example` say so."""
    spec: dict[str, Any] | None = None
    """The run as data, without secrets."""
    redone: int = 0
    """Rollouts that were played again, since the worker died that was playing them."""
    spent: Spending | None = None
    """What it has spent so far, which goes on to be counted; None where only its rows tell."""

    @property
    def title(self) -> str:
        """What plays, and who answers: what stands beside the progress of the run."""
        return f"{self.env_id} {self.model}"

    def outputs(self, rows: Sequence[RolloutOutput]) -> GenerateOutputs:
        """Return what the run has given so far: its rows in order, and the metadata with their statistics."""
        rows = sorted(rows, key=row_order)
        return cast(GenerateOutputs, RunOutputs(outputs=rows, metadata=self.metadata(rows)))

    def metadata(self, rows: Sequence[RolloutOutput]) -> GenerateMetadata:
        """Return what the run is, without secrets, and the statistics of what it has given so far."""
        seconds = self.earlier_seconds + time.time() - self.started
        return {
            "env_id": self.env_id,
            "env_args": redact_data(self.env_args),
            "model": self.model,
            "is_model": self.is_model,
            "base_url": redact_url(self.base_url),
            "num_examples": self.num_examples,
            "rollouts_per_example": self.rollouts_per_example,
            "sampling_args": redact_data(self.sampling_args),
            "date": datetime.datetime.fromtimestamp(self.started, datetime.UTC).isoformat(),
            "time_ms": seconds * 1000,
            "time": seconds,
            **statistics_of(
                rows,
                self.rollouts_per_example,
                self.pass_threshold,
                of=self.mean_of,
                num_planned=planned_rollouts(vars(self)),
                reward_range=self.reward_range,
            ),
            "pass_threshold": self.pass_threshold,
            "version_info": self.version_info,
            "versions": package_versions(),
            "seed": self.seed,
            "state_columns": self.state_columns,
            "max_concurrent": self.max_concurrent,
            "reward_range": None if self.reward_range is None else list(self.reward_range),
            "limits_each": self.limits_each,
            "stopped_by": self.stopped_by,
            "cost": cost_of(rows) if self.spent is None else self.spent.cost,
            **({"abandoned_requests": self.spent.abandoned} if self.spent is not None and self.spent.abandoned else {}),  # type: ignore[typeddict-item]
            **({"redone": self.redone} if self.redone else {}),  # type: ignore[typeddict-item]
            "path_to_save": self.path_to_save,
            **({"both_seats": True} if self.both_seats else {}),  # type: ignore[typeddict-item]
            **({"shard": list(self.shard), "num_rollouts": self.num_rollouts} if self.shard is not None else {}),  # type: ignore[typeddict-item]
            **({"tags": self.tags} if self.tags else {}),  # type: ignore[typeddict-item]
            **({"spec": self.spec} if self.spec is not None else {}),  # type: ignore[typeddict-item]
        }


_OPTIONAL_PACKAGES = {"reasoning_gym": "reasoning-gym", "textarena": "textarena"}


def package_versions() -> dict[str, str]:
    """Return the versions of Python, Gymnasium, NumPy, and of the environment packages that are in use."""
    used = [name for module, name in _OPTIONAL_PACKAGES.items() if module in sys.modules]
    return {"python": platform.python_version(), **{name: _installed_version(name) for name in ("gymnasium", "numpy", *used)}}


@functools.cache
def _installed_version(name: str) -> str:
    return importlib.metadata.version(name)  # it reads the distribution's files, in 1 ms


def version_info(definition: object) -> VersionInfo:
    """Return which code an environment is made of."""
    module = type(definition).__module__
    info: VersionInfo = {
        "vf_version": importlib.metadata.version("vfgym"),
        "vf_commit": _commit_of("vfgym"),
        "env_version": _distribution_version(module.partition(".")[0]),
        "env_commit": _commit_of(module),
    }
    prompts_version = getattr(definition, "prompts_version", None)
    if isinstance(prompts_version, int):
        info["prompts_version"] = prompts_version
    return info


def _distribution_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def _commit_of(module: str) -> str | None:
    """Return the commit that is checked out in the repository which tracks a module's file."""
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:  # typed at a prompt: the code belongs to where the prompt was opened
        return _git("rev-parse", "HEAD", cwd=Path.cwd())
    folder = Path(file).resolve().parent
    # A virtual environment may lie inside some other repository, which does not track what is installed in it.
    tracked = _git("ls-files", "--error-unmatch", Path(file).name, cwd=folder)
    return _git("rev-parse", "HEAD", cwd=folder) if tracked is not None else None


def _git(*arguments: str, cwd: Path) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
