"""A run with limits that is killed at any moment and resumed has the totals of one that was not, by its rows and by the server's count."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vfgym.model_server import ModelServer
from vfgym.results import load_results

SECONDS = 120.0
"""How long a run may hang before its test fails."""
AT_ONCE = 4

RUN = f"""
import sys, vfgym
from vfgym.messages import UserMessage

class Talk(vfgym.MultiTurnEnv):
    def env_response(self, messages, state):
        return [UserMessage("and then?")]

rubric = vfgym.Rubric(lambda completion: float(len(completion)))
env = Talk(dataset=[{{"question": f"topic {{i}}"}} for i in range(40)], max_turns=3, rubric=rubric)
agent = vfgym.ModelAgent(vfgym.ClientConfig(api_base_url=sys.argv[2], api_key_var="NONE"), "echo")
tokens = int(sys.argv[3])
vfgym.evaluate(env, agent, max_concurrent={AT_ONCE}, results_path=sys.argv[1], resume=True, progress=False,
               limits={{"tokens": tokens}} if tokens else None, prices={{"echo": {{"input": 1, "output": 2}}}})
"""


def begin(path: Path, server: ModelServer, tokens: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", RUN, str(path), server.openai_url, str(tokens)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> None:
    _, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode in (0, -signal.SIGKILL), stderr


def totals(path: Path) -> dict[str, Any]:
    results = load_results(path)
    spent = [row["spent"] for row in results["outputs"]]
    sums = {name: sum(each[name] for each in spent) for name in ("requests", "input_tokens", "output_tokens")}
    return {**sums, "cost": round(results["metadata"]["cost"] or 0, 9), "rows": len(spent), "stopped_by": results["metadata"]["stopped_by"]}


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_killed_at_any_moment_and_resumed_the_totals_are_the_same(tmp_path: Path) -> None:
    moments = random.Random(int(os.environ.get("VFGYM_TEST_SEED", "0")))
    with ModelServer(latency=0.003) as server:
        finish(begin(tmp_path / "whole", server, 0))
        whole = totals(tmp_path / "whole")
        assert server.num_requests == whole["requests"] == 120
        killed = 0
        for number in range(50):
            path, before = tmp_path / f"run{number}", server.num_requests
            process = begin(path, server, 0)
            while server.num_requests - before < moments.randrange(1, 110) and process.poll() is None:
                pass
            process.kill()
            finish(process)
            killed += process.returncode == -signal.SIGKILL
            finish(begin(path, server, 0))
            assert totals(path) == whole
            assert server.num_requests - before <= 120 + 3 * AT_ONCE, "what was finished is not asked for again"
        assert killed >= 40


@pytest.mark.exhaustive
@pytest.mark.timeout(900)
def test_a_limited_run_that_is_killed_spends_no_more_than_meant(tmp_path: Path) -> None:
    moments = random.Random(1)
    with ModelServer(latency=0.003) as server:
        for number in range(10):
            path, before = tmp_path / f"run{number}", server.num_requests
            process = begin(path, server, 3000)
            while server.num_requests - before < moments.randrange(1, 40) and process.poll() is None:
                pass
            process.kill()
            finish(process)
            finish(begin(path, server, 3000))
            found = totals(path)
            stopped_by = found["stopped_by"]
            assert stopped_by["limit"] == "tokens"
            assert stopped_by["used"] >= 3000
            largest = max(row["spent"]["input_tokens"] + row["spent"]["output_tokens"] for row in load_results(path)["outputs"])
            assert stopped_by["used"] < 3000 + AT_ONCE * largest
