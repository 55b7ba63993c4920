"""Which backend is used, what is refused, and what is said where none works."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes.making import need
from vfgym.cli.sandboxes import print_sandboxes
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import SandboxSpec, backends, bwrap, check_spec, container, create, creation, find_backend, what_to_install
from vfgym.sandboxes.base import Probe


@pytest.fixture
def nothing_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")
    monkeypatch.setattr(bwrap, "_find_problem", bwrap._find_problem.__wrapped__)
    container._engine.cache_clear()


@pytest.mark.parametrize("asked", ["image", "processes", "disk_mb", "cpus", "start_command", "network"])
def test_a_backend_refuses_a_limit_that_it_can_not_keep_and_names_it(asked: str) -> None:
    values: dict[str, Any] = {"image": "debian", "processes": 8, "disk_mb": 8, "cpus": 1.5, "start_command": "up", "network": False}
    with pytest.raises(ConfigurationError, match=f"the backend unsafe can't keep {asked}"):
        check_spec(SandboxSpec(**{asked: values[asked]}), "unsafe")


async def test_bwrap_is_the_default_and_refuses_images_and_folders_of_the_host() -> None:
    need("bwrap")
    assert find_backend().name == "bwrap"
    async with await create() as sandbox:
        assert sandbox.backend == "bwrap"
    need("bwrap")
    with pytest.raises(ConfigurationError, match=r"the backend bwrap has no images.*use the backend container"):
        await create(SandboxSpec(image="debian"), "bwrap")
    with pytest.raises(ConfigurationError, match="the backend bwrap can't keep cpus, start_command: use the backend container"):
        await create(SandboxSpec(cpus=2, start_command="up"), "bwrap")
    with pytest.raises(ConfigurationError, match="working_dir can't be below /usr"):
        await create(SandboxSpec(working_dir="/usr/src"), "bwrap")


def test_a_name_that_is_not_known_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"there is no backend 'bwarp'.*Did you mean `bwrap`\?"):
        find_backend("bwarp")
    with pytest.raises(ConfigurationError, match="made of a SandboxSpec"):
        check_spec({"memory_mb": 1})  # type: ignore[arg-type]


class Other:
    """A backend that works, or says why not."""

    def __init__(self, problem: str | None = None) -> None:
        self.problem = problem

    def probe(self) -> Probe:
        return Probe(self.problem is None, {}, self.problem, "install it")


@pytest.mark.parametrize(
    ("problems", "chosen"),
    [
        ({"bwrap": None, "container": None}, "bwrap"),
        ({"bwrap": "broken", "container": None}, "container"),
        ({"bwrap": None, "container": "broken"}, "bwrap"),
        ({"bwrap": "no bwrap", "container": "no engine"}, None),
    ],
)
def test_the_first_safe_one_that_works_is_chosen(
    problems: dict[str, str | None], chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"unsafe": Other(), "mine": Other(), **{name: Other(problem) for name, problem in problems.items()}}
    monkeypatch.setattr(creation, "backends", lambda: known)
    if chosen is not None:
        assert find_backend() is known[chosen]  # type: ignore[comparison-overlap]
    else:
        with pytest.raises(ConfigurationError) as caught:
            find_backend()
        assert str(caught.value).splitlines() == [
            "commands of a model run in a sandbox, and none works on this machine:",
            "  bwrap: no bwrap. To install it: install it",
            "  container: no engine. To install it: install it",
            '`vfgym sandboxes` shows more; backend="unsafe" runs them without one, with all that you may do yourself.',
        ]
    assert find_backend("mine") is known["mine"]  # type: ignore[comparison-overlap]
    for name, problem in problems.items():
        if problem is not None:
            with pytest.raises(ConfigurationError) as caught:
                find_backend(name)
            assert str(caught.value) == f"the backend {name} of sandboxes does not work here: {problem}. To install it: install it"


def test_where_nothing_works_one_text_says_what_to_install(nothing_works: None) -> None:
    text = what_to_install()
    assert "bubblewrap (bwrap) is not installed. To install it: apt-get install bubblewrap" in text
    assert "container: no container engine answers" in text
    assert 'backend="unsafe"' in text
    with pytest.raises(ConfigurationError) as caught:
        check_spec(SandboxSpec())
    assert str(caught.value) == text


def test_a_bubblewrap_that_fails_is_not_used(nothing_works: None, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    assert backends()["bwrap"].probe().problem == "bubblewrap does not work here: No permissions to create new namespace"


async def test_a_sandbox_that_can_not_be_started_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    need("bwrap")
    monkeypatch.setattr(bwrap, "find_interpreter", lambda: "/usr/bin/no-such-python")
    with pytest.raises(SandboxError, match="no-such-python"):
        await create(SandboxSpec(), "bwrap")


def test_the_command_shows_what_works(capsys: pytest.CaptureFixture[str], nothing_works: None) -> None:
    print_sandboxes(as_json=False)
    text = capsys.readouterr().out
    assert "bwrap does not work here: bubblewrap (bwrap) is not installed\n  to install it: apt-get install bubblewrap" in text
    print_sandboxes(as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert set(found) >= {"bwrap", "container", "unsafe"}
    assert found["unsafe"]["works"] is True
    assert found["bwrap"]["works"] is False


def test_others_are_registered_as_entry_points(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("class Mine:\n    name = 'mine'\n\nclass Broken:\n    def __init__(self): raise OSError('no key')\n")
    folder = tmp_path / "mine-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[vfgym.sandboxes]\nbroken = mine:Broken\nmine = mine:Mine\n")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from vfgym.sandboxes import backends; print(*backends())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout.split() == ["bwrap", "container", "unsafe", "mine"]
    assert "the entry point broken = mine:Broken (group vfgym.sandboxes) can't be used: OSError: no key" in done.stderr


async def test_what_a_spec_names_of_the_host_can_be_read(tmp_path: Path) -> None:
    need("bwrap")
    tmp_path.chmod(0o700)
    if os.geteuid() == 0:
        with pytest.raises(ConfigurationError, match=r"can be read by its owner only.*chmod -R o\+rX"):
            await create(SandboxSpec(readable_paths=[tmp_path]), "bwrap")
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(parent.stat().st_mode | 0o055)
    (tmp_path / "data.txt").write_text("data")
    spec = SandboxSpec(readable_paths=[tmp_path], working_dir="/app", network=True)
    async with await create(spec) as sandbox:
        assert (await sandbox.exec(f"pwd; cat {tmp_path}/data.txt; touch {tmp_path}/new || echo refused")).stdout == "/app\ndatarefused\n"
        assert (await sandbox.exec("whoami; getent hosts localhost")).stdout.split()[0] == "sandbox"


def test_what_runs_inside_is_written_for_an_older_python() -> None:
    for path in (Path(bwrap.__file__).parent / "inside").glob("*.py"):
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
