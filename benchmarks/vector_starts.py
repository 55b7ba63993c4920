"""Whether a vector of a game that imports modules as it goes begins each time it is started.

Run ``python benchmarks/vector_starts.py``. Each start is a process of its own, which makes a `ChatVectorEnv`, resets and steps it. What a
process says that fails is printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

PROGRAM = """
import sys
from vfgym.vector import ChatVectorEnv
envs = ChatVectorEnv(sys.argv[1], int(sys.argv[2]))
envs.reset(seed=0)
envs.step(envs.action_space.sample())
envs.close()
"""


def main() -> None:
    """Start the processes one after another, and count those that fail."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--starts", type=int, default=200, metavar="N", help="how many processes (default: 200)")
    parser.add_argument("--id", default="gymnasium/CarRacing-v3", help="what is played (default: CarRacing)")
    parser.add_argument("--envs", type=int, default=4, metavar="N", help="how many environments in each (default: 4)")
    arguments = parser.parse_args()
    started, failed = time.perf_counter(), 0
    for number in range(arguments.starts):
        command = [sys.executable, "-c", PROGRAM, arguments.id, str(arguments.envs)]
        ended = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "SDL_VIDEODRIVER": "dummy"})
        if ended.returncode:
            failed += 1
            print(f"start {number} failed with {ended.returncode}: {ended.stderr.strip().splitlines()[-1:]}", flush=True)
    print(f"{arguments.id}: {failed} of {arguments.starts} starts failed, in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
