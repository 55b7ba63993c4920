"""A container engine for tests: the one that answers, or Podman's service started for them; and an image with Python, made once."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

IMAGE = "localhost/vfgym-tests:bookworm"
CONFIGURATION = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
[engine]
runtime = "runc"
"""


@dataclass(frozen=True)
class Engine:
    """An engine that answers, and an image in it."""

    address: str
    image: str


@contextmanager
def container_engine() -> Iterator[Engine]:
    """Start an engine with an image, or skip the test, saying why it cannot be."""
    missing = [name for name in ("podman", "runc", "mmdebstrap") if shutil.which(name) is None]
    if missing:
        _skip(f"{', '.join(missing)} missing")
    if os.geteuid() != 0:
        _skip("Podman is started as root only")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "containers.conf").write_text(CONFIGURATION)
        environment = {**os.environ, "CONTAINERS_CONF": str(folder / "containers.conf"), "BUILDAH_ISOLATION": "chroot"}
        try:
            _make_image(folder, environment)
            _run(["podman", "run", "--rm", IMAGE, "true"], environment)
        except subprocess.CalledProcessError as error:
            _skip(f"{error.cmd[0]} cannot work here: {error.stderr.strip()[-300:]}")
        address = f"unix://{folder}/socket"
        with subprocess.Popen(["podman", "system", "service", "--time", "0", address], env=environment, cwd=folder) as service:
            try:
                while not (folder / "socket").exists() and service.poll() is None:
                    time.sleep(0.05)
                yield Engine(address, IMAGE)
            finally:
                service.terminate()


def _make_image(folder: Path, environment: dict[str, str]) -> None:
    """Make an image of Debian's packages, if it is not there; that takes a minute."""
    if subprocess.run(["podman", "image", "exists", IMAGE], env=environment, check=False).returncode == 0:
        return
    archive = str(folder / "root.tar")
    _run(["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3", "bookworm", archive], environment)
    _run(["podman", "import", "--quiet", archive, IMAGE], environment)


def _run(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


def _skip(why: str) -> NoReturn:
    pytest.skip(f"containment is not tested with container: {why}")
