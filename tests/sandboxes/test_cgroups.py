"""Control groups: where they are made in either version, and that the kernel bounds by them what no look at processes sees."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from vfgym.sandboxes import cgroups

MEMORY = "30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
CPU = "31 1 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
PIDS = "32 1 0:28 /outer /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
UNIFIED = "33 1 0:29 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.mark.parametrize(
    ("own", "mounts", "found"),
    [
        ("4:memory:/a\n3:cpu,cpuacct:/c\n2:pids:/outer/d\n", MEMORY + CPU + PIDS, [("/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/pids/d")]),
        ("4:memory:/a\n", MEMORY, []),
        ("0::/user.slice/x\n", UNIFIED, [("/sys/fs/cgroup/user.slice/x",), ("/sys/fs/cgroup/user.slice",), ("/sys/fs/cgroup",)]),
        ("0::/\n", UNIFIED, [("/sys/fs/cgroup",)]),
        ("", "", []),
        ("0::/elsewhere\n", UNIFIED.replace(" / ", " /inner "), [("/sys/fs/cgroup",)]),
        (
            "4:memory:/a\n2:pids:/outer/d\n0::/x\n",
            MEMORY + PIDS + UNIFIED.replace("/sys/fs/cgroup ", "/unified "),
            [("/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/pids/d"), ("/unified/x",), ("/unified",)],
        ),
    ],
)
def test_groups_are_made_below_our_own_and_in_the_second_version_above_it(own: str, mounts: str, found: list[tuple[str, ...]]) -> None:
    assert list(cgroups._candidates(own, mounts)) == found


def test_limits_of_the_second_version_are_written_by_its_names(tmp_path: Path) -> None:
    for name in ("memory.max", "memory.swap.max", "pids.max"):
        (tmp_path / name).touch()
    for names, most in ((cgroups._MEMORY, 1 << 20), (cgroups._SWAP, None), (("pids.max",), 7)):
        cgroups._limit(str(tmp_path), names, most, 1 << 20)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "memory.max": "1048576",
        "memory.swap.max": "0",
        "pids.max": "7",
    }
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert cgroups.ControlGroup((str(tmp_path),)).was_short_of_memory()


def test_limits_of_the_first_version_are_those_of_memory_with_swap(tmp_path: Path) -> None:
    for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
        (tmp_path / name).touch()
    for names, most in ((cgroups._MEMORY, 5), (cgroups._SWAP, None), (("pids.max",), 7)):
        cgroups._limit(str(tmp_path), names, most, 9)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "memory.limit_in_bytes": "5",
        "memory.memsw.limit_in_bytes": "9",
    }


@pytest.mark.parametrize(
    ("name", "text", "was_short"),
    [
        ("memory.events", "oom 1\noom_kill 0\n", False),
        ("memory.events", "oom 1\n", False),
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", True),
        ("memory.events", "nonsense\n", False),
        ("other", "oom_kill 1\n", False),
    ],
)
def test_a_group_was_short_of_memory_where_the_kernel_has_killed(name: str, text: str, was_short: bool, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    (tmp_path / "second" / name).write_text(text)
    assert cgroups.ControlGroup((str(tmp_path / "first"), str(tmp_path / "second"))).was_short_of_memory() is was_short


def test_a_group_is_made_of_a_folder_below_each_parent_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parents = tuple(str(tmp_path / name) for name in ("a", "b"))
    monkeypatch.setattr(cgroups, "_find_parents", lambda: None)
    assert cgroups.make(1 << 20, 16) is None
    monkeypatch.setattr(cgroups, "_find_parents", lambda: parents)
    (tmp_path / "a").mkdir()
    assert cgroups.make(1 << 20, 16) is None, "there is no second one"
    assert list((tmp_path / "a").iterdir()) == []
    (tmp_path / "b").mkdir()
    one, other = cgroups.make(1 << 20, 16), cgroups.make(1 << 20, 16)
    assert one is not None
    assert other is not None
    assert [str(Path(folder).parent) for folder in one.folders] == list(parents)
    assert set(one.folders).isdisjoint(other.folders)
    cgroups.remove(one.folders)
    assert [Path(folder).is_dir() for folder in (*one.folders, *other.folders)] == [False, False, True, True]


def test_a_command_goes_into_each_folder_before_it_becomes_another() -> None:
    assert cgroups.ControlGroup(("/a b", "/c")).run_in(["ls", "-l"]) == [
        *("/bin/sh", "-c", "echo $$ > '/a b'/cgroup.procs && echo $$ > /c/cgroup.procs && exec \"$@\"", "sh", "ls", "-l"),
    ]


def test_the_kernel_bounds_memory_and_processes_of_a_group() -> None:
    group = cgroups.make(64 << 20, 16)
    if group is None:
        pytest.skip("containment is not tested with control groups: none can be made here")
    try:
        forks = (
            "import os, time\nn = 0\ntry:\n    while n < 50: os.fork() or time.sleep(60); n += 1\n"
            "except OSError: os.write(1, b'%d' % n)\nos.killpg(0, 9)"
        )
        ran = subprocess.run(
            group.run_in([sys.executable, "-c", forks]), capture_output=True, text=True, check=False, timeout=60, start_new_session=True
        )
        assert int(ran.stdout) <= 16
        assert not group.was_short_of_memory()
        takes = "import mmap\nm = mmap.mmap(-1, 128 << 20)\nfor at in range(0, 128 << 20, 4096): m[at] = 1"
        ran = subprocess.run(group.run_in([sys.executable, "-c", takes]), capture_output=True, text=True, check=False, timeout=60)
        assert ran.returncode == -9
        assert group.was_short_of_memory()
    finally:
        cgroups.remove(group.folders)
    assert not any(Path(folder).exists() for folder in group.folders)
    cgroups.remove(group.folders)
