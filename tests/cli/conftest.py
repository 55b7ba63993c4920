"""Where commands are tested: in a directory of their own, with some agents in a module, without anybody's API keys."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.cli.cases import DATASET
from vfgym.model_server import ModelServer, environment_oracle
from vfgym.model_server.policies import echo

MODULE = """
import asyncio
import gymnasium, vfgym

def forty_two(observation, info):
    return "42"

def one_argument(observation):
    return "42"

def fails(observation, info):
    raise ValueError("first line\\nsecond line " + "x" * 300)

def never_returns(observation, info):
    while True:
        pass

async def waits(observation, info):
    print("waiting", flush=True)
    await asyncio.Event().wait()

def brief(completion, parser):
    return float(len(parser.parse_answer(completion) or "") < 3)

def even(completion, info):
    return 1.0 if info["number"] % 2 == 0 else None

def careless(completion):
    raise ValueError("no")

REWARDS = {"brief": brief, "even": even, "careless": careless, "broken": lambda completions: [0.0], "group": lambda completions: [1.0, 0.0]}

def make(reward="brief", **kwargs):
    rows = [{"question": str(i), "answer": str(i), "info": {"number": i}} for i in range(4)]
    return vfgym.SingleTurnEnv(rows, rubric=vfgym.Rubric(REWARDS[reward]), **kwargs)

gymnasium.register("Short-v0", make)

def cannot_be_made():
    raise RuntimeError("cannot be made")

gymnasium.register("Fails-v0", cannot_be_made)
gymnasium.register("Missing-v0", "mine:missing")
gymnasium.register("Nothing-v0", lambda: None)
"""


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a module `mine`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    (tmp_path / "mine.py").write_text(MODULE)
    return tmp_path


@pytest.fixture(scope="session")
def knows() -> Any:
    """A model that knows the answers of `DATASET`."""
    with contextlib.closing(gymnasium.make(DATASET)) as env:
        return environment_oracle(env)


@pytest.fixture
def server(knows: Any) -> Iterator[ModelServer]:
    """A server with the models `knows` and `echo`."""
    with ModelServer({"knows": knows, "echo": echo}) as server:
        yield server
