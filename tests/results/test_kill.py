"""A run that is killed at any moment resumes to the same results: no row lost, none twice, no finished rollout repeated."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from vfgym.results import load_results

SECONDS = 240.0
"""How long a run may hang before its test fails."""
ROLLOUTS = 2

RUN = """
import asyncio, os, sys
import vfgym
from vfgym.messages import UserMessage

calls = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

class Talk(vfgym.MultiTurnEnv):
    def env_response(self, messages, state):
        return [UserMessage(f"go on {state.rng.integers(10**9)} é")]

    @vfgym.cleanup
    def told(self, state):
        os.write(calls, f"{state['input']['example_id']}\\n".encode())

def length(completion):
    return float(len(completion[-1].content))

def share(completions):
    return [1.0 / len(completions)] * len(completions)

async def agent(observation, info):
    await asyncio.sleep(0.001)  # as a model takes its time, so that the kill comes while episodes are going on
    return f"answer to {observation[-1].content}"

rubric = vfgym.Rubric([length, share] if sys.argv[3] == "groups" else [length])
env = Talk(dataset=[{"question": f"topic {i}", "info": {"i": i}} for i in range(int(sys.argv[4]))], max_turns=3, rubric=rubric)
vfgym.evaluate(env, agent, rollouts_per_example=2, max_concurrent=8, results_path=sys.argv[1], resume=True, seed=3,
               state_columns=["trajectory"], progress=False)
print("done")
"""


def begin(path: Path, calls: Path, scoring: str, num_examples: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(path), str(calls), scoring, str(num_examples)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    stdout, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode in (0, -signal.SIGKILL), stderr
    return stdout


def comparable(path: Path) -> list[dict[str, Any]]:
    rows = []
    for row in load_results(path)["outputs"]:
        text = json.dumps({key: value for key, value in row.items() if key != "timing"})
        data = json.loads(text)
        for step in data["trajectory"]:
            step["trajectory_id"] = step["response"] = None
        rows.append(data)
    return rows


def lines_in(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0


@pytest.mark.parametrize(
    ("kills", "num_examples", "scoring"),
    [(2, 10, "groups"), *(pytest.param(40, 150, each, marks=pytest.mark.exhaustive) for each in ("alone", "groups"))],
)
def test_a_killed_run_resumes_to_the_same_results(tmp_path: Path, kills: int, num_examples: int, scoring: str) -> None:
    whole, path, calls = tmp_path / "whole", tmp_path / "run", tmp_path / "calls"
    with begin(whole, tmp_path / "whole_calls", scoring, num_examples) as process:
        assert finish(process) == "done\n"
    total = num_examples * ROLLOUTS
    seed = random.randrange(10**6)
    print(f"seed {seed}")  # shown if the test fails
    chance = random.Random(seed)
    for _ in range(kills):
        until = min(total - 1, lines_in(path / "results.jsonl") + chance.randrange(1, total // kills + 1))
        with begin(path, calls, scoring, num_examples) as process:
            # Not at a row's end: it goes on while this looks.
            while lines_in(path / "results.jsonl") < until and process.poll() is None:
                pass
            os.kill(process.pid, signal.SIGKILL)
            finish(process)
    with begin(path, calls, scoring, num_examples) as process:
        assert finish(process) == "done\n"
    assert comparable(path) == comparable(whole)
    stored = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
    places = [(row["example_id"], row["rollout"]) for row in stored]
    assert places == [(i, n) for i in range(num_examples) for n in range(ROLLOUTS)]
    played = Counter(int(line) for line in calls.read_text().splitlines())
    assert len(played) == num_examples
    # Eight workers at most had an episode each that was lost, or one of a group whose other member was finished.
    assert played.total() <= total + kills * 8 * (ROLLOUTS if scoring == "groups" else 1)
    again = lines_in(calls)
    with begin(path, calls, scoring, num_examples) as process:
        assert finish(process) == "done\n"
    assert lines_in(calls) == again, "a finished run plays nothing"
    assert sorted(file.name for file in path.iterdir()) == ["metadata.json", "results.jsonl"]
