"""What bubblewrap is asked for, and what the backend refuses: said without starting anything. What comes of it is tested in sandboxes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec, bwrap
from vfgym.sandboxes.bwrap import BwrapBackend

GIVEN = {"filter": 11, "/etc/passwd": 12, "/etc/group": 13, "/etc/hosts": 14}
INTERPRETER = "/usr/bin/python3"


@pytest.fixture(params=[0, 1000], ids=["root", "user"])
def uid(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(os, "geteuid", lambda: request.param)
    return int(request.param)


def arguments(spec: SandboxSpec, *, kernel_bounds_memory: bool = False, interpreter: str = INTERPRETER) -> list[str]:
    return bwrap._arguments(spec, interpreter, GIVEN, kernel_bounds_memory)


def after(words: list[str], option: str, count: int = 1) -> list[Any]:
    """Return what follows an option wherever it is."""
    found = [words[place + 1 : place + 1 + count] for place, word in enumerate(words) if word == option]
    return [each[0] for each in found] if count == 1 else [tuple(each) for each in found]


def test_namespaces_and_rights(uid: int) -> None:
    words = arguments(SandboxSpec())
    assert {"--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent"} <= set(words)
    assert after(words, "--seccomp") == ["11"]
    assert ("--unshare-user" in words) is (uid != 0)
    assert (after(words, "--cap-drop"), after(words, "--cap-add")) == ((["ALL"], ["CAP_SETUID", "CAP_SETGID"]) if uid == 0 else ([], []))


@pytest.mark.parametrize("network", [None, False, True])
def test_the_network_is_shared_only_where_it_is_asked_for(network: bool | None) -> None:
    words = arguments(SandboxSpec(network=network))
    assert ("--unshare-net" in words) is (network is not True)
    bound = {source for source, _ in after(words, "--ro-bind-try", 2)}
    assert (bound & {"/etc/resolv.conf", "/etc/services"}) == ({"/etc/resolv.conf", "/etc/services"} if network else set())
    assert {f"/etc/{name}" for name in (*bwrap._CONFIGURATION, *bwrap._CERTIFICATES)} <= bound


@pytest.mark.parametrize(("disk_mb", "size", "shared"), [(None, 512 << 20, 64 << 20), (16, 16 << 20, 16 << 20), (65, 65 << 20, 64 << 20)])
def test_files_lie_in_memory_of_a_limited_size(disk_mb: int | None, size: int, shared: int) -> None:
    words = arguments(SandboxSpec(disk_mb=disk_mb))
    sized = {words[place + 3]: (words[place - 1], words[place + 1]) for place, word in enumerate(words) if word == "--size"}
    assert sized["/"] == ("1777", str(size))
    assert sized["/dev/shm"] == ("1777", str(shared))
    assert sized["/etc"] == ("0755", str(1 << 20))
    assert after(words, "--remount-ro") == ["/dev", "/etc"]


@pytest.mark.parametrize("kernel_bounds_memory", [False, True])
def test_a_file_that_gives_memory_is_replaced_where_the_kernel_bounds_none(kernel_bounds_memory: bool) -> None:
    words = arguments(SandboxSpec(), kernel_bounds_memory=kernel_bounds_memory)
    assert after(words, "--dev-bind", 2) == ([] if kernel_bounds_memory else [("/dev/full", "/dev/zero")])


def test_what_can_be_read(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    words = arguments(SandboxSpec(readable_paths=[tmp_path / "one", tmp_path / "other"]), interpreter="/opt/python/bin/python3")
    bound = after(words, "--ro-bind", 2)
    for path in ("/usr", f"{tmp_path}/one", f"{tmp_path}/other", "/opt/python"):
        assert bound.count((path, path)) == 1
    assert after(words, "--ro-bind-data", 2) == [("12", "/etc/passwd"), ("13", "/etc/group"), ("14", "/etc/hosts")]


@pytest.mark.parametrize(
    ("interpreter", "more"),
    [("/usr/bin/python3", []), ("/usr/local/bin/python3", []), ("/opt/p/bin/python3", ["/opt/p"]), ("/usr2/bin/python3", ["/usr2"])],
)
def test_an_interpreter_of_the_system_needs_no_place_of_its_own(interpreter: str, more: list[str]) -> None:
    assert bwrap._readable_paths(SandboxSpec(readable_paths=["/etc/hosts"]), interpreter) == ["/etc/hosts", *more]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ([], []),
        (["/"], []),
        (["/a/b/c", "/a/d"], ["/a", "/a/b", "/a/b/c", "/a/d"]),
        (["/usr", "/usr/lib", "/usr2/lib"], ["/usr2", "/usr2/lib"]),
    ],
)
def test_folders_with_those_above_them(paths: list[str], found: list[str]) -> None:
    assert list(bwrap._parents(paths)) == found


@pytest.mark.parametrize(
    ("readable", "working_dir", "kept", "closed"),
    [
        ([], "/workspace", [], []),
        (["/data/set"], "/workspace", [], ["/data"]),
        (["/data/a/b", "/more/c"], "/workspace", [], ["/data", "/more"]),
        (["/tmp/x/data"], "/workspace", ["/tmp"], ["/tmp/x"]),
        (["/tmp/data"], "/workspace", ["/tmp"], []),
        (["/home/me/data"], "/workspace", ["/home"], ["/home/me"]),
        (["/srv/app/data"], "/srv/app", ["/srv", "/srv/app"], []),
    ],
)
def test_folders_above_what_can_be_read_are_mounts_of_their_own(
    readable: list[str], working_dir: str, kept: list[str], closed: list[str], uid: int
) -> None:
    found = bwrap._mounts_above(SandboxSpec(working_dir=working_dir), readable)
    assert found == (([], []) if uid == 0 else (kept, closed))


@pytest.mark.parametrize(("folder", "mode"), [("/tmp", "1777"), ("/var/tmp", "1777"), ("/etc", "0755"), ("/tmp/x", "0755")])
def test_everybody_may_write_to_folders_for_passing_files(folder: str, mode: str) -> None:
    assert bwrap._mode_of(folder) == mode


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"image": "debian"}, "the backend bwrap has no images, so it can't keep image: use the backend container"),
        ({"cpus": 1.0}, "the backend bwrap can't keep cpus: use the backend container"),
        ({"start_command": ""}, "the backend bwrap can't keep start_command: use the backend container"),
        ({"cpus": 1.0, "start_command": "up"}, "the backend bwrap can't keep cpus, start_command: use the backend container"),
        *(
            (
                {"working_dir": f"/{top}/x"},
                f"working_dir can't be below /{top}, which is the host's; use a folder such as /workspace or /app",
            )
            for top in ("usr", "proc", "dev", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
        ),
    ],
)
def test_what_it_can_not_keep_is_refused(values: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        BwrapBackend().check(SandboxSpec(**values))
    assert str(caught.value) == says


def test_a_dockerfile_is_refused_too_and_what_it_keeps_is_not(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").touch()
    with pytest.raises(ConfigurationError, match="can't keep dockerfile"):
        BwrapBackend().check(SandboxSpec(dockerfile=tmp_path))
    BwrapBackend().check(SandboxSpec(working_dir="/user/x", cpu_seconds=1, processes=8, disk_mb=8, network=False))


@pytest.mark.parametrize(
    ("mode", "is_folder", "is_readable"),
    [
        *((0o700, True, False), (0o701, True, True), (0o705, True, True)),
        *((0o601, False, False), (0o600, False, False), (0o604, False, True)),
    ],
)
def test_what_only_its_owner_can_read_is_refused_where_root_starts(
    mode: int, is_folder: bool, is_readable: bool, uid: int, tmp_path: Path
) -> None:
    path = tmp_path / "data"
    if is_folder:
        path.mkdir()
    else:
        path.touch()
    path.chmod(mode)
    spec = SandboxSpec(readable_paths=["/usr/bin", path])
    if uid != 0 or is_readable:
        BwrapBackend().check(spec)
        return
    with pytest.raises(ConfigurationError) as caught:
        BwrapBackend().check(spec)
    assert str(caught.value) == (
        f"{path} can be read by its owner only, and a sandbox that root starts has a user id of its own: chmod -R o+rX {path}"
    )


@pytest.mark.parametrize("error", [None, KeyError("x"), KeyboardInterrupt()])
def test_files_of_the_system_are_given_by_pipes_that_are_closed_afterwards(error: BaseException | None) -> None:
    given: dict[str, int] = {}
    try:
        with bwrap._opened(1234, False) as given:
            assert given.keys() == GIVEN.keys()
            texts = {name: os.read(descriptor, 1 << 16).decode() for name, descriptor in given.items() if name != "filter"}
            if error is not None:
                raise error
    except BaseException as caught:
        assert caught is error
    assert "sandbox:x:1234:1234:sandbox:/home/sandbox:/bin/sh\n" in texts["/etc/passwd"]
    assert texts["/etc/group"] == "root:x:0:\nsandbox:x:1234:\n"
    assert texts["/etc/hosts"].splitlines() == ["127.0.0.1 localhost sandbox", "::1 localhost"]
    for descriptor in given.values():
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.parametrize(
    ("ranges", "first", "last"),
    [
        ("0 0 4294967295\n", 1 << 30, (1 << 31) - 3),
        ("0 1000 1\n1 100000 65536\n", 1 + 32768, 1 + 65533),
        ("5 0 100\n200 0 10\n", 55, 102),
    ],
)
def test_a_user_id_is_in_the_upper_half_of_the_largest_range(ranges: str, first: int, last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap.Path, "read_text", lambda path: ranges if str(path) == "/proc/self/uid_map" else "")
    picked = {bwrap.pick_user_id() for _ in range(200)}
    assert first <= min(picked)
    assert max(picked) <= last
    assert len(picked) > 1


@pytest.mark.parametrize(
    ("system", "machine", "problem"),
    [
        ("Darwin", "arm64", "bubblewrap needs Linux, this is Darwin"),
        ("Linux", "vax", "its filter of system calls is not written for vax"),
        ("Linux", "x86_64", "bubblewrap (bwrap) is not installed"),
    ],
)
def test_why_it_does_not_work(system: str, machine: str, problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bwrap.platform, "system", lambda: system)
    monkeypatch.setattr(bwrap.platform, "machine", lambda: machine)
    monkeypatch.setattr(bwrap, "_find_problem", bwrap._find_problem.__wrapped__)
    probe = BwrapBackend().probe()
    assert (probe.works, probe.problem) == (False, problem)
    assert probe.install == "apt-get install bubblewrap (or your system's package bubblewrap), version 0.5 or newer"
    monkeypatch.setattr(bwrap, "_find_problem", lambda: None)
    probe = BwrapBackend().probe()
    assert (probe.works, probe.problem, probe.install) == (True, None, None)
    assert probe.protects.keys() == {"files", "network", "processes", "memory", "disk", "kernel"}
