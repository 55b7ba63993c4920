"""Containment: what hostile commands and cells try (`hostile`) harms neither the host, nor the library, nor another sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.programs import SECONDS
from tests.sandboxes.engine import container_engine
from tests.sandboxes.hostile import attempts
from tests.sandboxes.making import need

NAMES = [attempt.what for attempt in attempts(Path("folder"), 1, 1)]
NOBODY = 65534


@pytest.fixture(params=["bwrap", "bwrap as a plain user", pytest.param("container", marks=pytest.mark.exhaustive)])
def harm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str | None]]:
    backend, _, as_user = request.param.partition(" ")
    arguments: list[str] = []
    environment: dict[str, str] = {}
    if as_user:
        if os.geteuid() != 0:
            pytest.skip("who is not root is a plain user already")
        arguments = [f"user={NOBODY}"]
    if backend == "container":
        with container_engine() as engine:
            yield _run(backend, [f"image={engine.image}"], {"DOCKER_HOST": engine.address})
    else:
        need(backend)
        yield _run(backend, arguments, environment)


def _run(backend: str, arguments: list[str], environment: dict[str, str]) -> Any:
    command = [sys.executable, "-m", "tests.sandboxes.hostile", backend, *arguments]
    environment = {**os.environ, **environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_attempt_does_no_harm(harm: dict[str, str | None]) -> None:
    """None of them does; one case, since workers that share the cases of a module would each run all attempts."""
    assert harm == dict.fromkeys(NAMES)


def test_the_guide_names_every_attempt() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "sandboxes.md").read_text(encoding="utf-8").partition("## What was tried")[2]
    assert [line.split(" | ")[0].removeprefix("| ") for line in guide.splitlines() if line.startswith("| ")][1:] == NAMES
