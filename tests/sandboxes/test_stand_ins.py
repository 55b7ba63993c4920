"""What of this machine stands for an image where no container engine answers."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from tests.sandboxes.making import need
from vfgym.envs.sandbox import SandboxEnv
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec, create, stand_ins
from vfgym.sandboxes.local import find_interpreter
from vfgym.sandboxes.stand_ins import find_stand_in, with_stand_in

ROWS = [{"question": "?"}]


@pytest.mark.parametrize("image", ["python:3.13-slim", "python", "docker.io/library/python:3.11@sha256:0", "docker.io/python:latest"])
def test_python_stands_for_any_version_of_its_image_and_says_which_it_is(image: str) -> None:
    version = subprocess.run([find_interpreter(), "--version"], capture_output=True, text=True, check=True).stdout.strip()
    assert find_stand_in(image) == f"{find_interpreter()} ({version})"


def test_systems_are_stood_for_and_what_else_an_image_has_is_not() -> None:
    assert find_stand_in("ubuntu:24.04") == find_stand_in("debian:bookworm-slim")
    for image in ("acme/python:3.11", "ghcr.io/acme/debian", "localhost/ubuntu:1", "pytorch/pytorch", "pythonista", "alpine:3", ""):
        assert find_stand_in(image) is None


def test_node_stands_for_its_image_where_sandboxes_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = find_stand_in.__wrapped__
    monkeypatch.setattr(stand_ins, "_SEEN_INSIDE", "/no/such/folder")
    assert found("node:22-slim") is None
    monkeypatch.setattr(stand_ins.shutil, "which", lambda name, path: "/bin/sh" if name == "node" else None)
    assert found("node:22-slim") is None  # what has no version is not it
    monkeypatch.setattr(stand_ins.shutil, "which", lambda name, path: find_interpreter() if name == "node" else None)
    assert str(found("node:22-slim")).startswith(find_interpreter())


def test_a_spec_keeps_its_image_where_that_is_strict_or_an_engine_makes_it() -> None:
    spec = SandboxSpec(image="debian:12", memory_mb=64)
    assert with_stand_in(spec, "bwrap") == replace(spec, image=None)
    assert with_stand_in(spec, "bwrap", strict_image=True) is spec
    assert with_stand_in(spec, "container") is with_stand_in(spec, "unsafe") is spec
    other = SandboxSpec(image="acme/tools:1")
    assert with_stand_in(other, "bwrap") is other


async def test_an_environment_runs_an_image_with_what_is_here_unless_it_is_strict() -> None:
    need("bwrap")
    spec = SandboxSpec(image="python:3.12-slim")
    env = SandboxEnv(dataset=ROWS, sandbox=spec, backend="bwrap")
    env.reset(seed=0)
    assert env.episode.state["sandbox"].backend == "bwrap"
    env.close()
    with pytest.raises(ConfigurationError, match="the backend bwrap has no images"):
        SandboxEnv(dataset=ROWS, sandbox=spec, backend="bwrap", strict_image=True)
    with pytest.raises(ConfigurationError, match="the backend bwrap has no images"):
        await create(spec, "bwrap")  # who asks a backend itself gets what was asked for
