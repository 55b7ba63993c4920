"""Workers and coordinators that are killed at random moments: each row is there once, what was played again is counted, nothing is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.runs.executors.players import FOLDER, processes
from tests.sampling import SEED
from vfgym import ClientConfig, ModelAgent
from vfgym.model_server import ModelServer
from vfgym.results import load_results

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(1800), pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

NUM_ROLLOUTS = 2000
NUM_KILLS = 10
NAME = "tests.runs.executors.players"
PRICES = {"echo": {"input": 1.0, "output": 10.0}}


def moments(seed: int) -> list[int]:
    """Return after which rows somebody is killed."""
    return sorted(random.Random(seed).sample(range(1, NUM_ROLLOUTS - 100), NUM_KILLS))


def test_workers_are_killed(tmp_path: Path) -> None:
    """With a limit, so that each request is counted before it is sent: what the server got is what the run tells of."""
    drawn, left = random.Random(SEED), moments(SEED)
    with ModelServer() as server, processes() as executor:

        def kill(row: Any, progress: Any) -> None:
            if left and progress.done >= left[0]:
                left.pop(0)
                running = [process.pid for process in executor._running.values()]
                if running:
                    os.kill(drawn.choice(running), signal.SIGKILL)

        agent = ModelAgent(ClientConfig(api_base_url=server.openai_url, api_key_var="NONE"), "echo")
        results = vfgym.evaluate(
            f"{NAME}:counting",
            agent,
            env_args={"num_tasks": NUM_ROLLOUTS, "width": 5},
            progress=False,
            executor=executor,
            workers=2,
            limits={"requests": 100_000},
            prices=PRICES,
            results_path=tmp_path / "run",
            on_progress=kill,
        )
        num_requests = server.num_requests
    assert left == []
    metadata, rows = results["metadata"], load_results(tmp_path / "run")["outputs"]
    assert [row["example_id"] for row in rows] == list(range(NUM_ROLLOUTS))
    assert {row["error"] is None for row in rows} == {True}
    assert 0 < metadata["redone"] <= NUM_KILLS * 32
    each = {row["spent"]["cost"] for row in rows}
    assert len(each) == 1, "all cost the same"
    assert metadata["cost"] is not None
    counted = round(metadata["cost"] / each.pop())
    abandoned = metadata.get("abandoned_requests", 0)
    assert NUM_ROLLOUTS <= counted <= num_requests <= counted + abandoned
    assert abandoned <= NUM_KILLS * 32
    print(f"redone {metadata['redone']}, sent {num_requests}, counted {counted}, abandoned {abandoned}")


RUN = f"""
import os, signal, sys
import vfgym

def end(row, progress):
    if progress.done == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    vfgym.evaluate("{NAME}:counting", "{NAME}:noting", env_args={{"num_tasks": {NUM_ROLLOUTS}}}, progress=False, executor="process",
        workers=2, results_path=sys.argv[1], resume=True, on_progress=end)
"""


def test_coordinators_are_killed_and_the_run_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    (tmp_path / "run.py").write_text(RUN)
    for moment in [*moments(SEED + 1), -1]:
        command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "run"), str(moment)]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.getcwd()}, capture_output=True, text=True)
        assert done.returncode == (0 if moment == -1 else -signal.SIGKILL), done.stderr
        assert "Traceback" not in done.stderr
        players = {int(trace.name.split("-")[1]) for trace in folder.iterdir()}
        deadline = time.monotonic() + 60
        while (alive := [pid for pid in players if Path(f"/proc/{pid}").exists()]) != []:
            assert time.monotonic() < deadline, f"{alive} go on without their coordinator"
            time.sleep(0.05)
    rows = load_results(tmp_path / "run")["outputs"]
    assert [row["example_id"] for row in rows] == list(range(NUM_ROLLOUTS))
    assert "redone" not in load_results(tmp_path / "run")["metadata"]
    print(f"{len(list(folder.iterdir())) - NUM_ROLLOUTS} rollouts were under way at {NUM_KILLS} ends")
