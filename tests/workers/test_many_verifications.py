"""Many verifications with hopeless ones among them, as a training run has them: right scores, and nobody waits for a hopeless one.

They run in a script without a main guard, and in a worker of an `AsyncVectorEnv`, which is a daemonic process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers.processes import end_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")

SCRIPT = """
import asyncio, json, os, sys
from typing import Any
import gymnasium
from tests.workers.processes import descendants, peak_mb
from vfgym.rubrics.math_rubric import VerificationTimeout, verify_response

COUNT = int(sys.argv[2])
HOPELESS = range(0, COUNT, COUNT // int(sys.argv[3]))

def verification(n, **limit):
    if n in HOPELESS:
        return asyncio.ensure_future(verify_response("9^{9^{9}}", str(n), **limit))
    wrong = n % 7 == 0
    return asyncio.ensure_future(verify_response(f"{n + wrong}.5", rf"\\\\frac{{{2 * n + 1}}}{{2}}"))

async def play():
    # They may take hours, and all others are done before.
    tasks = {n: verification(n, timeout_seconds=3600) for n in range(COUNT)}
    good = {n: task for n, task in tasks.items() if n not in HOPELESS}
    scores = await asyncio.gather(*good.values())
    assert scores == [float(n % 7 != 0) for n in good], "scores"
    assert not any(tasks[n].done() for n in HOPELESS), "waited for hopeless ones"
    peaks = [peak_mb(pid) for pid in (os.getpid(), *descendants(os.getpid()))]
    for n in HOPELESS:
        tasks[n].cancel()
    # None waits for more than its own limit.
    hopeless = await asyncio.gather(*(verification(n, timeout_seconds=0.5) for n in HOPELESS), return_exceptions=True)
    assert all(isinstance(each, VerificationTimeout) for each in hopeless), hopeless
    hopeless = [verification(n, timeout_seconds=3600) for n in HOPELESS]
    await asyncio.sleep(0)  # they are asked before this one
    assert await verify_response("0.50", "1/2") == 1.0
    print(json.dumps([os.getpid(), max(peaks), descendants(os.getpid())]), flush=True)
    await asyncio.gather(*hopeless)

class Env(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        return 0, {}
    def step(self, action):
        asyncio.run(play())

if sys.argv[1] == "script":
    asyncio.run(play())
else:
    envs = gymnasium.vector.AsyncVectorEnv([Env], context="fork")
    envs.reset()
    envs.step([0])
"""


@pytest.mark.parametrize(("count", "hopeless"), [(40, 2), pytest.param(1500, 15, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("where", ["script", pytest.param("AsyncVectorEnv", marks=pytest.mark.exhaustive)])
async def test_hopeless_ones_among_them(where: str, count: int, hopeless: int, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, str(path), where, str(count), str(hopeless)]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment) as process:
        assert process.stdout is not None
        try:
            pid, peak_mb, pids = json.loads(process.stdout.readline())
            assert peak_mb < 900
            assert len(pids) > 2 * hopeless  # each with its keeper
            os.kill(pid, signal.SIGKILL)
            await end_of(pids)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # with the worker of the vector environment, whom nobody else would end
