"""The documented arguments of sandboxes, as what a sandbox of this machine is asked for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from verifiers_compat.envs import sandbox_arguments
from verifiers_compat.envs.sandbox_arguments import DEFAULT_IMAGE, AdvancedConfigs, spec_of_arguments, spec_of_request
from verifiers_compat.utils.threaded_sandbox_client import CreateSandboxRequest
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec

SPEC = SandboxSpec(working_dir="/work", env={"A": "1", "B": "1"})


@pytest.fixture(autouse=True)
def has_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No container engine answers, whatever is installed here."""
    monkeypatch.setattr(sandbox_arguments, "has_engine", lambda: False)


def changed(backend: str | None = "bwrap", *, spec: SandboxSpec = SPEC, **arguments: Any) -> dict[str, Any]:
    """Return what arguments change of a spec."""
    found = spec_of_arguments(spec, backend, **arguments)
    return {name: value for name, value in vars(found).items() if value != getattr(spec, name)}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, {}),
        ({"docker_image": DEFAULT_IMAGE, "start_command": "tail -f /dev/null", "cpu_cores": 1, "gpu_count": 0}, {}),
        ({"docker_image": None, "start_command": None, "cpu_cores": None, "gpu_count": None, "memory_gb": None}, {}),
        ({"memory_gb": 0.5, "disk_size_gb": 3}, {"memory_mb": 512, "disk_mb": 3072}),
    ],
)
def test_what_is_asked_for_without_an_engine(arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    assert changed(**arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"docker_image": "acme/tools:1", "cpu_cores": 3, "start_command": "serve"}, ("acme/tools:1", 3, "serve")),
        ({"docker_image": DEFAULT_IMAGE, "cpu_cores": 1, "start_command": "tail -f /dev/null"}, (DEFAULT_IMAGE, None, None)),
        ({"docker_image": DEFAULT_IMAGE, "spec": SandboxSpec(image="mine")}, ("mine", None, None)),
        ({"docker_image": "acme/tools:1", "spec": SandboxSpec(image="mine")}, ("acme/tools:1", None, None)),
    ],
)
def test_what_an_engine_is_asked_for(arguments: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """The image of a spec is replaced by any other than the default."""
    found = spec_of_arguments(**{"spec": SPEC, "backend": "container", **arguments})
    assert (found.image, found.cpus, found.start_command) == expected


def test_an_image_that_is_built_is_what_runs(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    built = SandboxSpec(dockerfile=tmp_path)
    assert changed("container", spec=built, docker_image="acme/tools:1", cpu_cores=2) == {"cpus": 2}


def test_an_engine_that_answers_runs_any_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_arguments, "has_engine", lambda: True)
    assert changed(None, docker_image="acme/tools:1", cpu_cores=2) == {"image": "acme/tools:1", "cpus": 2}
    assert changed(None, docker_image=DEFAULT_IMAGE) == {}
    assert changed(None, docker_image=DEFAULT_IMAGE, strict_image=True) == {"image": DEFAULT_IMAGE}


@pytest.mark.parametrize("backend", ["bwrap", None])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"docker_image": "acme/tools:1"}, "docker_image='acme/tools:1' needs backend='container'"),
        ({"docker_image": DEFAULT_IMAGE, "strict_image": True}, "where Node is here, but for strict_image=True"),
        ({"start_command": "serve"}, "start_command='serve' needs backend='container'"),
        ({"gpu_count": 1}, "gpu_count must be 0, since sandboxes have no GPUs; got 1"),
    ],
)
def test_what_sandboxes_do_not_offer_is_refused(backend: str | None, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        changed(backend, **arguments)


def test_cores_that_nothing_keeps_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    sandbox_arguments._tell_of_cpus.cache_clear()
    for _ in range(2):
        assert changed(cpu_cores=4) == {}
    assert [record.message.partition(" is not")[0] for record in caplog.records] == ["cpu_cores"]


def test_a_request_adds_its_variables_and_its_working_directory() -> None:
    request = CreateSandboxRequest(name="mine", memory_gb=1, disk_size_gb=None, environment_vars={"B": "2"}, working_dir="/app")
    spec = spec_of_request(SPEC, "bwrap", request)
    assert (spec.memory_mb, spec.disk_mb, spec.env, spec.working_dir) == (1024, SPEC.disk_mb, {"A": "1", "B": "2"}, "/app")
    assert SPEC.env == {"A": "1", "B": "1"}
    assert spec_of_request(SPEC, "bwrap", SimpleNamespace(memory_gb=2)).memory_mb == 2048
    assert spec_of_request(SPEC, "bwrap", object()) == SPEC
    with pytest.raises(ConfigurationError, match="needs backend='container'"):
        spec_of_request(SPEC, "bwrap", CreateSandboxRequest(), strict_image=True)


def test_further_settings_of_the_hosted_service_are_kept() -> None:
    assert AdvancedConfigs(region="eu").model_dump() == {"region": "eu"}
