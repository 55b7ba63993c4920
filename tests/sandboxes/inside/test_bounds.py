"""What programs cost, as the agent counts it: memory of their own, shared pieces, sockets, terminals. Sandboxes test that it is bounded."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from typing import Any

import pytest

from vfgym.sandboxes.inside import bounds
from vfgym.sandboxes.inside.bounds import Bounds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SETTINGS = {"most_memory": 1 << 40, "most_files": None, "counted": [], "most_shared": 0, "most_terminals": None, "counts_sockets": False}


FILES = {
    "/proc/sys/net/core/wmem_default": b"1000\n",
    "/proc/net/sockstat": b"sockets: used 3\nTCP: inuse 1\n",
    "/proc/net/tcp": b"header\n 0: 0100007F:1F90 00000000:0000 0A 000000FF:00000001 00:00\n 1: a b 01 00000010:00000000 00:00\n",
    "/proc/net/tcp6": b"header\n 0: a b 01 00000000:00000100 00:00\n",
}
SOCKETS = 3 * 1000 + 0xFF + 1 + 0x10 + 0x100


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"most_files": -1, "counted": ["/proc"]}, "made 0 files and folders, and it may have -1"),
        ({"most_files": 0, "counted": ["/proc"]}, None),
        ({"most_terminals": -1}, "terminals, and it may have -1"),
        ({"most_terminals": 100_000}, None),
        ({"counts_sockets": True, "most_memory": SOCKETS - 1}, "its programs have 3 sockets, which can hold 0 MB, and it may use 0"),
        ({"counts_sockets": True, "most_memory": SOCKETS}, None),
        ({"counts_sockets": False, "most_memory": 0}, None),
    ],
)
def test_what_the_sandbox_must_end_for(settings: dict[str, Any], words: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "_read", lambda path: FILES.get(path, b""))
    reason = Bounds({**SETTINGS, **settings}).look([])
    assert reason is None if words is None else words in str(reason)


def test_the_largest_process_is_killed_until_the_others_have_room() -> None:
    code = "import sys; kept = b'x' * (int(sys.argv[1]) << 20); print(flush=True); sys.stdin.read()"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with (
        subprocess.Popen([sys.executable, "-c", code, "1"], **pipes) as small,
        subprocess.Popen([sys.executable, "-c", code, "100"], **pipes) as large,
    ):
        for each in (small, large):
            each.stdout.readline()  # type: ignore[union-attr]
        assert bounds._own_memory(large.pid) - bounds._own_memory(small.pid) > 90 << 20
        assert bounds._own_memory(large.pid) <= bounds._mapped(large.pid)
        Bounds({**SETTINGS, "most_memory": 400 << 20})._bound_memory({small.pid, large.pid})
        assert large.poll() is None
        Bounds({**SETTINGS, "most_memory": 80 << 20})._bound_memory({small.pid, large.pid})
        assert large.wait() == -9
        assert small.poll() is None
        small.communicate()


def test_each_piece_of_shared_memory_counts_for_one_process() -> None:
    before = bounds._shared_pieces([os.getpid()]).get(os.getpid(), set())
    with mmap.mmap(-1, 4096):
        found = bounds._shared_pieces([os.getpid(), os.getpid()])[os.getpid()]
        assert found == set(), "the second time they are known"
        assert len(bounds._shared_pieces([os.getpid()])[os.getpid()] - before) == 1
