"""Attacks on sandboxes: none succeeds, as root and as a plain user, with bubblewrap and with containers.

What is attempted inside stands in `tests.attacks.sandboxes` and `tests.attacks.outside`; here it is run, beside bombs, other hosts and
namespaces.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from tests.attacks.sandboxes import ATTACKS
from tests.programs import SECONDS
from tests.sandboxes.engine import container_engine
from tests.sandboxes.hostile import attempts
from tests.sandboxes.making import need
from vfgym.aio.background import run_to_end
from vfgym.endings import Ending
from vfgym.errors import SandboxError
from vfgym.sandboxes import SandboxSpec, backends, create, registry
from vfgym.testing import ScriptedClient

NOBODY = 65534
LONG = 600
"""Seconds: all attacks, in containers."""
WAYS = ["bwrap", "bwrap as a plain user", "container"]


def _run(backend: str, arguments: list[str], environment: dict[str, str]) -> dict[str, str | None]:
    command = [sys.executable, "-m", "tests.attacks.sandboxes", backend, *arguments]
    environment = {**os.environ, **environment, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    harm: dict[str, str | None] = json.loads(done.stdout)
    return harm


def _as(way: str) -> tuple[str, list[str]]:
    backend, _, as_user = way.partition(" ")
    if as_user and os.geteuid() != 0:
        pytest.skip("who is not root is a plain user already")
    return backend, [f"user={NOBODY}"] if as_user else []


def test_a_fixed_part_of_the_attacks_does_no_harm() -> None:
    need("bwrap")
    names = [attack.what for attack in ATTACKS if attack.is_quick]
    assert _run("bwrap", names, {}) == dict.fromkeys(names)


@pytest.fixture(scope="module", params=WAYS)
def harm(request: pytest.FixtureRequest) -> Iterator[dict[str, str | None]]:
    backend, arguments = _as(request.param)
    if backend == "container":
        with container_engine() as engine:
            yield {**{attack.what: None for attack in ATTACKS}, **_run(backend, [f"image={engine.image}"], {"DOCKER_HOST": engine.address})}
    else:
        need(backend)
        yield _run(backend, arguments, {})


@pytest.mark.exhaustive
@pytest.mark.timeout(LONG)
@pytest.mark.parametrize("what", [attack.what for attack in ATTACKS])
def test_an_attack_does_no_harm(harm: dict[str, str | None], what: str) -> None:
    assert harm[what] is None


@pytest.mark.exhaustive
@pytest.mark.timeout(LONG)
def test_nothing_else_was_harmed(harm: dict[str, str | None]) -> None:
    assert set(harm) == {attack.what for attack in ATTACKS}


TESTS_FOLDER = Path(__file__).parents[1]
DOCS = TESTS_FOLDER.parent / "docs"


@pytest.mark.parametrize("page", ["sandboxes.md", "agent_programs.md", "limits.md", "models.md", "results.md"])
def test_the_guide_names_a_test_for_each_promise(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `([\w/.]+)::(\w+)`(?:: (.*))? \|$", text, re.MULTILINE)
    assert (
        {int(number) for number, *_ in rows}
        == {int(number) for numbers in re.findall(r"<sup>([\d, ]+)</sup>", text) for number in numbers.split(", ")}
        != set()
    )
    known = {attack.what for attack in ATTACKS} | {attempt.what for attempt in attempts(TESTS_FOLDER, 1, 1)}
    for _, file, test, what in rows:
        assert re.search(rf"def {test}\(", (TESTS_FOLDER / file).read_text(encoding="utf-8")), test
        assert not what or what in known


# By whose doing a rollout fails

BOMBS = {
    "files": "i=0; while :; do mkdir -p d$i; (cd d$i; seq 1 5000 | xargs touch); i=$((i + 1)); done",
    "sockets": "python3 -c 'import os, socket, time\nfor _ in range(20): os.fork()\n"
    "kept = [socket.socketpair() for _ in range(100)]\nfor pair in kept:\n  pair[0].setblocking(False)\n  try:\n"
    "    while 1: pair[0].send(bytes(1 << 16))\n"
    "  except OSError: pass\ntime.sleep(20)'",
    "processes": "b() { b | b & }; b; sleep 100",
    "memory": "python3 -c 'import os\nfor _ in range(5): os.fork()\nkept = []\nwhile 1: kept.append(bytearray(10 << 20))'",
}


@needs_sandbox
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
async def test_a_bomb_never_reads_as_infrastructure(bomb: str) -> None:
    """Or a policy would take its worst rollouts out of the count."""
    env = vfgym.SandboxEnv(
        dataset=[{"question": "?"}],
        rubric=vfgym.Rubric(lambda state: 1.0),
        timeout_per_command_seconds=5,
        sandbox=SandboxSpec(memory_mb=128, disk_mb=16, processes=64),
    )
    call = {"id": "1", "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": bomb})}}
    client = ScriptedClient([{"role": "assistant", "content": None, "tool_calls": [call]}, "Done."])
    state = await env.rollout(env.tasks.input(0), client, "m")
    assert state["ending"] in (Ending.TERMINATED, Ending.POLICY_FAILED), state["error"]


async def test_a_host_that_can_make_none_is_infrastructure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with pytest.raises(SandboxError) as raised:
        await create(SandboxSpec(), "unsafe")
    assert raised.value.failure_cause == "infrastructure"


# Other hosts and namespaces

ELSEWHERE = """
import sys, tempfile
from vfgym.sandboxes import backends
from vfgym.sandboxes.registry import remove_left
remove_left(dict(backends()))
"""


@needs_sandbox
def test_who_sees_no_process_of_ours_removes_no_sandbox_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another container that shares the temporary directory deleted live sandboxes."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("containment is not tested across namespaces: it takes root and unshare")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sandbox = run_to_end(create(SandboxSpec(), "unsafe"))
    try:
        environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
        command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", ELSEWHERE]
        subprocess.run(command, check=True, env=environment, timeout=SECONDS)
        assert len(list(tmp_path.glob("vfgym-sandboxes-*/*.json"))) == 1
        assert run_to_end(sandbox.exec("echo alive; ls -d $HOME")).stdout.startswith("alive\n/")
    finally:
        run_to_end(sandbox.close())
    assert list(tmp_path.glob("vfgym-sandboxes-*/*")) == []


@pytest.mark.parametrize("other", ["gethostname", "/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"])
def test_a_record_of_another_host_boot_or_namespace_is_left(other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that it names runs here as little as there, and only one of the two knows whether it has ended."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "theirs").mkdir()
    record = registry.Record("vfgym-theirs", "unsafe", [1 << 30, "1"], folder=str(tmp_path / "theirs"))
    read_text, readlink = Path.read_text, os.readlink
    with monkeypatch.context() as elsewhere:
        if other == "gethostname":
            elsewhere.setattr("socket.gethostname", lambda: "elsewhere")
        elsewhere.setattr(
            Path, "read_text", lambda path, *given, **named: "of another\n" if str(path) == other else read_text(path, *given, **named)
        )
        elsewhere.setattr(os, "readlink", lambda path, **named: "pid:[1]" if path == other else readlink(path, **named))
        registry.add(record, backends()["unsafe"])
        registry._own.clear()
    registry.remove_left(dict(backends()))
    assert (tmp_path / "theirs").exists()
    registry.add(record, backends()["unsafe"])
    registry._own.clear()
    registry.remove_left(dict(backends()))
    assert not (tmp_path / "theirs").exists()


@pytest.mark.exhaustive
@needs_sandbox
async def test_who_waits_for_an_interpreter_that_is_killed_is_answered_by_the_next_one() -> None:
    """Cells that come before, while and after one is killed read their own answers, never that the interpreter has ended."""
    deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    async with await create(SandboxSpec()) as sandbox:

        async def ask(wait: float) -> str | None:
            await asyncio.sleep(wait)
            return (await sandbox.python("1 + 1", timeout=20)).value

        for number in range(12):
            killed = asyncio.create_task(sandbox.python(deaf, timeout=0.15))
            assert await asyncio.gather(*(ask(0.07 * (number + each)) for each in range(3))) == ["2", "2", "2"]
            assert (await killed).state_is_lost
