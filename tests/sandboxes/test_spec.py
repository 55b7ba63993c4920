"""`SandboxSpec`: what it takes, how it keeps it, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec
from vfgym.sandboxes.spec import check_env, most_files


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"memory_mb": 0}, "memory_mb must be an integer of 32 or more, got 0"),
        ({"memory_mb": 1.5}, "memory_mb must be an integer"),
        ({"memory_mb": None}, "memory_mb must be an integer"),
        ({"processes": 1}, "processes must be an integer of 4 or more, got 1"),
        ({"disk_mb": True}, "disk_mb must be an integer"),
        ({"open_files": "many"}, "open_files must be an integer"),
        ({"cpu_seconds": 0}, "cpu_seconds must be a number above 0, got 0"),
        ({"cpu_seconds": float("inf")}, "cpu_seconds must be a number above 0, got inf"),
        ({"network": "off"}, "network must be True or False, or None"),
        ({"working_dir": "app"}, "working_dir must be an absolute path below /"),
        ({"working_dir": "/"}, "working_dir must be an absolute path below /"),
        ({"env": {"A": 1}}, "env must map names to texts, got 'A': int"),
        ({"env": ["A=1"]}, "env must map names to texts"),
        ({"readable_paths": "/usr"}, "readable_paths must be a list of paths"),
        ({"readable_paths": ["/no/such/path"]}, "readable_paths: there is no /no/such/path"),
        ({"readable_paths": ["/"]}, "readable_paths can't name /: a sandbox has its own"),
        ({"readable_paths": ["/usr"], "working_dir": "/usr/src"}, "readable_paths can't name /usr"),
        ({"dockerfile": "/no/such/folder"}, "dockerfile: there is no /no/such/folder"),
        ({"dockerfile": "/usr"}, "dockerfile must be a folder with a file Dockerfile in it; /usr has none"),
        ({"image": "a", "dockerfile": "/usr"}, "an image or a dockerfile to build one from, got both"),
        ({"python": "/usr/lib"}, "python must be a virtual environment"),
        ({"cpus": 0.0}, "cpus must be a number above 0, got 0.0"),
        ({"cpus": float("nan")}, "cpus must be a number above 0, got nan"),
        ({"memory_mb": 31}, "memory_mb must be an integer of 32 or more, got 31"),
        ({"open_files": 15}, "open_files must be an integer of 16 or more"),
        ({"open_files": None}, "open_files must be an integer"),
        ({"disk_mb": 0}, "disk_mb must be an integer of 1 or more, got 0"),
        ({"env": {"": "x"}}, "env must map names to texts"),
        ({"env": {"A=B": "x"}}, "env must map names to texts"),
        ({"env": {"A": "x\0"}}, "env must map names to texts"),
        ({"processes": 3}, "processes must be an integer of 4 or more, got 3"),
        ({"memory_mb": True}, "memory_mb must be an integer"),
        ({"cpu_seconds": True}, "cpu_seconds must be a number above 0, got True"),
        ({"cpus": "2"}, "cpus must be a number above 0, got '2'"),
        ({"cpus": -1}, "cpus must be a number above 0, got -1"),
        ({"env": {"A\0": "x"}}, "env must map names to texts"),
        ({"env": {1: "x"}}, "env must map names to texts, got 1: str"),
        *(({"readable_paths": ["/usr", path]}, f"readable_paths can't name {path}: a sandbox has its own") for path in ("/dev", "/sys")),
        ({"readable_paths": Path("/usr")}, "readable_paths must be a list of paths"),
        ({"working_dir": "/."}, "working_dir must be an absolute path below /"),
        ({"working_dir": 7}, "working_dir must be an absolute path below /"),
        ({"readable_paths": ["/usr", "/proc"]}, "readable_paths can't name /proc"),
        ({"readable_paths": [7]}, "readable_paths must be a path, got 7"),
        ({"python": "/no/such/venv"}, "python: there is no /no/such/venv"),
        ({"forwards": {0: "/socket"}}, "forwards must map ports to paths"),
        ({"forwards": {65536: "/socket"}}, "forwards must map ports to paths"),
        ({"forwards": {80: "/socket", "81": "/socket"}}, "forwards must map ports to paths .* got '81'"),
        ({"forwards": {80: 7}}, "forwards must map ports to paths"),
    ],
)
def test_a_spec_says_what_it_can_not_use(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        SandboxSpec(**values)


@pytest.mark.parametrize(
    "values",
    [
        *({name: None} for name in ("processes", "disk_mb", "cpu_seconds", "cpus", "network")),
        *({name: least} for name, least in (("memory_mb", 32), ("processes", 4), ("disk_mb", 1), ("open_files", 16))),
        *({name: 0.5} for name in ("cpu_seconds", "cpus")),
        {"network": False},
        {"network": True},
        {"env": {"A": ""}},
        {"forwards": {1: "/a", 65535: "/b"}},
    ],
    ids=str,
)
def test_the_least_that_there_may_be_is_taken_as_it_is(values: dict[str, Any]) -> None:
    [(name, value)] = values.items()
    assert getattr(SandboxSpec(**values), name) == value


def test_paths_are_kept_as_absolute_ones_and_maps_as_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("data", "more", "venv/bin", "image"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "venv/bin/python").touch()
    (tmp_path / "image/Dockerfile").touch()
    env, forwards = {"A": "1"}, {80: Path("socket")}
    spec = SandboxSpec(
        readable_paths=["data", Path("more")], python="venv", dockerfile=Path("image"), env=env, forwards=forwards, working_dir="/a/../b/"
    )
    env["A"], forwards[80] = "2", Path("other")
    assert spec.readable_paths == (f"{tmp_path}/data", f"{tmp_path}/more")
    assert (spec.python, spec.dockerfile) == (f"{tmp_path}/venv", f"{tmp_path}/image")
    assert (spec.env, spec.forwards, spec.working_dir) == ({"A": "1"}, {80: f"{tmp_path}/socket"}, "/b")
    assert os.path.isabs(spec.forwards[80])


def test_a_path_that_only_begins_as_the_working_dir_does_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    assert SandboxSpec(readable_paths=[tmp_path / "work"], working_dir=f"{tmp_path}/workspace").readable_paths == (f"{tmp_path}/work",)
    with pytest.raises(ConfigurationError, match="readable_paths can't name"):
        SandboxSpec(readable_paths=[tmp_path / "work"], working_dir=f"{tmp_path}/work")


@pytest.mark.parametrize(("disk_mb", "files"), [(1, 4096), (16, 4096), (17, 4352), (512, 131072)])
def test_a_disk_has_room_for_256_files_a_megabyte_and_4096_at_least(disk_mb: int, files: int) -> None:
    assert most_files(disk_mb) == files


def test_environment_variables_are_refused_by_the_name_of_the_argument() -> None:
    check_env("env_vars", {})
    with pytest.raises(ConfigurationError, match="env_vars must map names to texts, got 'B': int"):
        check_env("env_vars", {"A": "fine", "B": 0})  # type: ignore[dict-item]
