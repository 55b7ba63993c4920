"""What workers play in these tests: environments and agents that they can import."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym

from tests.commands import _processes  # noqa: F401  (whose forkserver has imported the library)
from vfgym import Rubric
from vfgym.envs import SingleTurnEnv
from vfgym.runs.executors.processes import ProcessExecutor

FOLDER = "VFGYM_TEST_EXECUTORS"
"""Environment variable: a directory where agents leave traces."""


class Counting(SingleTurnEnv):
    """Asks for the number of the task; half of the answers of `answer` are right."""

    def __init__(self, num_tasks: int = 12, width: int = 0, **kwargs: Any) -> None:
        """Ask so many questions, each of so many characters or more."""
        tasks = [{"question": f"{number:0{width}}", "answer": str(number)} for number in range(num_tasks)]
        super().__init__(dataset=tasks, rubric=Rubric([is_right]), **kwargs)


gym.register("of-players/Counting-v0", entry_point="tests.runs.executors.players:Counting", disable_env_checker=True)


def is_right(completion: Any, answer: str) -> float:
    """Say whether an answer is right."""
    return float(completion[-1]["content"] == answer)


def counting(**kwargs: Any) -> gym.Env[Any, Any]:
    """Make the environment."""
    return Counting(**kwargs)


def trace_of(name: str) -> Path:
    """Return a file by which processes know of each other."""
    return Path(os.environ[FOLDER], name)


def answer(observation: Any, info: Any) -> str:
    """Answer each second question rightly."""
    number = int(observation[-1]["content"])
    return str(number) if number % 2 else "?"


def deadly(observation: Any, info: Any) -> str:
    """Kill the process at question 3, the first time, and at question 5, always."""
    number = int(observation[-1]["content"])
    trace = trace_of("dead")
    if number == 5 or (number == 3 and not trace.exists()):
        trace.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(observation, info)


def noting(observation: Any, info: Any) -> str:
    """Leave a trace of each answer, and of the process that gave it."""
    trace_of(f"{observation[-1]['content']}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return answer(observation, info)


class _Forked(ProcessExecutor):
    """Its processes are forked off one that may have begun in another test: they are told where traces are left in this one."""

    def submit(self, func: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Start a process."""
        return super().submit(_call_with_traces, os.environ.get(FOLDER), func, args, kwargs)


def _call_with_traces(folder: str | None, func: Any, args: Any, kwargs: Any) -> None:
    if folder is not None:
        os.environ[FOLDER] = folder
    func(*args, **kwargs)


def processes() -> ProcessExecutor:
    """Return an executor whose processes have imported the library already."""
    return _Forked("forkserver")


def without_drawn(rows: Any) -> list[dict[str, Any]]:
    """Return rows without what differs each time that a rollout is played."""
    return [{name: value for name, value in row.items() if name not in ("timing", "trajectory")} for row in rows]


def failing(observation: Any, info: Any) -> str:
    """Fail."""
    raise RuntimeError("no answer")


async def waiting(observation: Any, info: Any) -> str:
    """Answer never."""
    await asyncio.Event().wait()
    return ""


class Closing:
    """An agent that leaves a trace when it is closed."""

    def for_episode(self, env: Any) -> Any:
        """Return what answers."""
        return answer

    def as_spec(self) -> None:
        """Have no name."""

    def close(self) -> None:
        """Leave a trace."""
        trace_of("closed").touch()
