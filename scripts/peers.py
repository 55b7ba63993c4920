"""Make virtual environments of other libraries, which tests marked ``peers`` compare this one with.

usage: python scripts/peers.py [NAME ...]

Each lives in an environment of its own below ``.peers/``, because what it requires does not go beside what this library requires.
It is only ever run in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

OURS = str(Path(__file__).parent.parent)
FOLDER = Path(OURS, ".peers")

REQUIREMENTS: Mapping[str, Sequence[str]] = {
    "verifiers": ["verifiers==0.1.14", "datasets<4.7", "mcp<2", "gymnasium==1.4.*"],  # Gymnasium for its `GymEnv`
    "mini-swe-agent": ["mini-swe-agent==2.4.6", "mcp"],  # an agent's own program; its litellm imports mcp without asking for it
    # Trainers run beside this library, which is installed as it stands here. torch is named first: what asks for it brings CUDA.
    "trl": ["torch==2.13.0", "trl==1.16.0", "jmespath", "matplotlib", "-e", OURS],
    "skyrl": ["skyrl-gym==0.4.0", "-e", OURS],
    "gem": ["gem-llm==0.1.0", "-e", OURS],
    "tinker": ["torch==2.13.0", "tinker-cookbook==0.5.8", "-e", OURS],
    "torchrl": ["torch==2.13.0", "torchrl==0.14.0", "stable-baselines3==2.9.2", "-e", OURS],
    # verl does not say that it needs cachetools; the rest of what verl[verl-core] names is not imported where agent loops run.
    "verl": ["torch==2.13.0", "verl==0.9.1", "cachetools", "-e", OURS],
    # What areal names does not go together without CUDA: of it, this is what its workflow and its proxy import (see `ALONE`).
    "areal": [
        *("torch==2.13.0", "transformers==5.3.0", "datasets", "litellm==1.82.0", "openai", "anthropic", "fastapi", "uvicorn", "uvloop"),
        *("flask", "ray[default]", "hydra-core", "omegaconf", "torchdata", "numba", "einops", "orjson", "psutil", "lark", "colorlog"),
        *("aiofiles", "aiohttp", "httpx", "sentencepiece", "tenacity", "regex", "nvidia-ml-py", "python-multipart", "pandas", "pillow"),
        *("setproctitle", "msgspec", "pyzmq", "-e", OURS),
    ],
    "art": ["openpipe-art==0.5.18", "-e", OURS],
    "rllm": ["rllm-model-gateway==0.1.0", "-e", OURS],  # rllm itself is not on PyPI
    "openenv": ["openenv==0.10.0"],  # it needs mcp below 2
    # Games of others. nle says that it needs Gymnasium 1.2, and runs with 1.4 (see `ALONE`).
    "games": [
        *("crafter==1.8.3", "flappy-bird-gymnasium==0.4.0", "highway-env==1.12.1", "minatar==1.0.15", "mpe2==1.1.1", "popgym==1.0.7"),
        *("scienceworld==1.2.3", "textworld==1.7.0", "textworld-express==1.1.0", "vizdoom==1.3.2", "setuptools<80"),
        *("pettingzoo[butterfly]==1.27.0", "-e", f"{OURS}[images,pettingzoo]"),
    ],
}
"""What is installed for each."""

ALONE: Mapping[str, str] = {"areal": "areal==1.0.4", "games": "nle==1.3.0"}
"""What is installed after that, without what it names."""


def python_of(name: str, folder: Path = FOLDER) -> Path:
    """Return the interpreter of a library's environment, which need not be there yet."""
    return folder / name / "bin" / "python"


def make(name: str, folder: Path = FOLDER) -> None:
    """Make the environment of a library, or bring it to what is required."""
    python = python_of(name, folder)
    if not python.exists():
        venv.create(python.parents[1], with_pip=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]], check=True)
    if name in ALONE:
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "--no-deps", ALONE[name]], check=True)
    print(f"{name}: {python}")


def main() -> None:
    """Make those that are named, or all."""
    names = sys.argv[1:] or list(REQUIREMENTS)
    for name in names:
        if name not in REQUIREMENTS:
            sys.exit(f"there is no {name!r}; there are {', '.join(REQUIREMENTS)}")
    for name in names:
        make(name)


if __name__ == "__main__":
    main()
