"""Projects: what a manifest says, and what starts its servers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.wrappers.openenv.playing import COMMAND, started_by, write_project
from vfgym.errors import ConfigurationError
from vfgym.sandboxes import Probe, SandboxSpec
from vfgym.sandboxes.container import ContainerBackend
from vfgym.wrappers.openenv import project as project_module
from vfgym.wrappers.openenv.project import Project, read_project, servers_of
from vfgym.wrappers.openenv.sandboxed import start_sandboxed
from vfgym.wrappers.openenv.starting import StartedServers, start_process


def test_a_project_without_a_backend_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = read_project(write_project(tmp_path, port=9000))
    silent = Probe(works=False, protects={}, problem="no container engine answers", install="start Docker")
    monkeypatch.setattr(ContainerBackend, "probe", lambda self: silent)
    why = {None: "no container engine answers. To install it: start Docker", "podmann": "there is no backend 'podmann'"}
    for backend, words in why.items():
        with pytest.raises(ConfigurationError, match=words) as caught:
            servers_of(project, backend, start_timeout=1, request_timeout=1)
        assert "docker run -p 9000:9000 counting:1) and give url='http://127.0.0.1:9000'" in str(caught.value)
        assert "backend='unsafe'" in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (None, "is a folder with a .build.json"),
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ('{"contract": "gmy"}', "Did you mean `gym`"),
        ('{"port": "8000"}', "port must be a whole number, got '8000'"),
        ('{"port": true}', "port must be a whole number, got True"),
        *((f'{{"port": {port}}}', f"port must be from 1 to 65535, got {port}") for port in (0, -1, 65536)),
        ('{"start_command": 3}', "start_command must be text"),
        ('{"image": 3}', "image must be text"),
        ("{}", "has no start_command"),
    ],
)
def test_a_malformed_project_is_an_error(tmp_path: Path, manifest: str | None, words: str) -> None:
    if manifest is not None:
        (tmp_path / ".build.json").write_text(manifest)
    with pytest.raises(ConfigurationError, match=words):
        started_by(tmp_path)


def test_what_a_manifest_leaves_out_has_a_default(tmp_path: Path) -> None:
    (tmp_path / ".build.json").write_text("{}")
    assert read_project(str(tmp_path)) == Project(tmp_path, None, 8000, None, None)
    for port in (1, 65535):
        project = read_project(write_project(tmp_path, port=port, contract="mcp"))
        assert project == Project(tmp_path, "counting:1", port, COMMAND, "mcp")


@pytest.mark.parametrize(
    ("backend", "of_backend"),
    [
        ("unsafe", {}),
        (None, {"image": "counting:1", "backend": "container"}),
        ("container", {"image": "counting:1", "backend": "container"}),
        ("bwrap", {"image": None, "backend": "bwrap"}),
    ],
)
def test_servers_are_started_with_what_the_project_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str | None, of_backend: dict[str, Any]
) -> None:
    """Only the container backend takes the image."""
    checked: list[Any] = []
    monkeypatch.setattr(project_module, "check_spec", lambda *arguments: checked.append(arguments))
    source = servers_of(read_project(write_project(tmp_path, port=9000)), backend, start_timeout=3, request_timeout=7)
    assert isinstance(source, StartedServers)
    start: Any = source._start
    assert start.func is (start_process if backend == "unsafe" else start_sandboxed)
    assert (start.args, start.keywords) == ((COMMAND, tmp_path, 9000), {"start_timeout": 3, "request_timeout": 7, **of_backend})
    assert checked == ([(SandboxSpec(image=of_backend["image"]), of_backend["backend"])] if of_backend else [])


@pytest.mark.parametrize("name", ["start_timeout", "request_timeout"])
def test_times_are_numbers_of_seconds(tmp_path: Path, name: str) -> None:
    seconds: Any = {"start_timeout": 60, "request_timeout": 60, name: 0}
    with pytest.raises(ConfigurationError, match=f"{name} must be a positive number of seconds"):
        servers_of(read_project(write_project(tmp_path)), "unsafe", **seconds)
