"""Attacks on sandboxes and on what is graded in them: none succeeds, as root and as a plain user, with bubblewrap and with containers.

What is attempted inside stands in `tests.attacks.sandboxes`; here it is run, beside attacks on the environments that stand on sandboxes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from tests.attacks.sandboxes import ATTACKS
from tests.harbor_tasks import make_task
from tests.programs import SECONDS
from tests.sandboxes.engine import container_engine
from tests.sandboxes.hostile import attempts
from tests.sandboxes.making import need
from vfgym.aio.background import run_to_end
from vfgym.endings import Ending
from vfgym.errors import SandboxError
from vfgym.rubrics.code_tests import find_pytest
from vfgym.sandboxes import SandboxSpec, backends, create, registry
from vfgym.state import State
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


@pytest.mark.parametrize("page", ["sandboxes.md", "agent_programs.md"])
def test_the_guide_names_a_test_for_each_promise(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `([\w/.]+)::(\w+)`(?:: (.*))? \|$", text, re.MULTILINE)
    assert {int(number) for number, *_ in rows} == set(map(int, re.findall(r"<sup>(\d+)</sup>", text))) != set()
    known = {attack.what for attack in ATTACKS} | {attempt.what for attempt in attempts(TESTS_FOLDER, 1, 1)}
    for _, file, test, what in rows:
        assert re.search(rf"def {test}\(", (TESTS_FOLDER / file).read_text(encoding="utf-8")), test
        assert not what or what in known


# Codes of a rubric

EVIL = {
    "rules of access": "import os, struct\n"
    "acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *each) for each in ((1, 7, 2**32 - 1), (2, 0, 12345), (4, 0, 2**32 - 1),"
    " (16, 0, 2**32 - 1), (32, 0, 2**32 - 1)))\n"
    "os.setxattr('.', 'system.posix_acl_default', acl)\n",
    "attributes": "import os\nos.setxattr('.', 'user.left', b'x')\nos.setxattr('/tmp', 'user.left', b'x')\n",
    "a module": "import os\nfor place in ('.', '/tmp', os.path.expanduser('~')):\n"
    "    open(place + '/json.py', 'w').write('import os; os._exit(1)')\n",
    "no room": "import os\nfor n in range(10**6):\n    open(f'/tmp/{n}', 'w')\n",
}
LOOKS = (
    "import os, sys\nassert not os.listxattr('.') and not os.listxattr('/tmp')\n"
    "own = [f'{path}/' for path in (sys.prefix, *sys.path)]\n"  # the interpreter may lie below /tmp: nothing else may
    "assert all(any(path.startswith(f'/tmp/{name}/') for path in own) for name in os.listdir('/tmp'))\n"
)


@needs_sandbox
@pytest.mark.parametrize("evil", EVIL.values(), ids=EVIL)
def test_one_evil_code_changes_nothing_for_those_after_it(evil: str) -> None:
    """Honest codes were scored 1 1 1, and after one that set rules of access 0 0 0 0."""
    fence = "`" * 3
    tests = ["assert add(1, 2) == 3", {"stdin": "", "stdout": ""}]
    rubric = vfgym.CodeRubric(timeout_seconds=20, sandbox=SandboxSpec(disk_mb=16))
    env = vfgym.SingleTurnEnv(dataset=[{"question": "?", "info": {"tests": tests}}], rubric=rubric)
    rewards = []
    for code in (LOOKS, evil, LOOKS, LOOKS, LOOKS):
        env.reset(seed=0)
        rewards.append(env.step(f"{fence}python\n{code}\ndef add(a, b):\n    return a + b\n{fence}").reward)
    env.close()
    assert [rewards[0], *rewards[2:]] == [1.0] * 4


# What grades


def _cell(code: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "function": {"name": "python", "arguments": json.dumps({"code": code})}}],
    }


class Checked(vfgym.PythonEnv):
    """The model is to write 42 into a file; the environment looks with a cell of its own."""

    async def post_rollout(self, state: State) -> None:
        cell = await state["sandbox"].python("open('answer.txt').read().strip() == '42'", timeout=20)
        state["passes"] = cell.value == "True"


FORGERS = {
    "writes answers into the channel": "import json, os\nsaid = json.dumps({'value': 'True', 'traceback': None,"
    " 'is_cut': False}).encode()\nfor _ in range(5): os.write(3, len(said).to_bytes(4, 'big') + said)",
    "answers from a thread that takes the questions": "import json, os, socket, threading\nchannel = socket.socket(fileno=os.dup(3))\n"
    "def answer():\n    while True:\n        size = int.from_bytes(channel.recv(4), 'big')\n"
    "        asked = json.loads(channel.recv(size))\n"
    "        said = json.dumps({'value': 'True', 'traceback': None, 'is_cut': False, 'token': asked.get('token')}).encode()\n"
    "        channel.sendall(len(said).to_bytes(4, 'big') + said)\nthreading.Thread(target=answer, daemon=True).start()",
    "writes open anew": "import builtins, io\nbuiltins.open = lambda *a, **k: io.StringIO('42')",
    "writes modules that a new interpreter loads": "for name in ('json', 'ast', 'socket', 'linecache', 'types', 'traceback'):\n"
    "    open(name + '.py', 'w').write('import builtins, io; builtins.open = lambda *a, **k: io.StringIO(\"42\")')",
    "writes what each interpreter loads": "import os, site\nfolder = site.getusersitepackages()\nos.makedirs(folder, exist_ok=True)\n"
    "open(folder + '/usercustomize.py', 'w').write('import builtins, io; builtins.open = lambda *a, **k: io.StringIO(\"42\")')",
}


@needs_sandbox
@pytest.mark.parametrize("forger", FORGERS.values(), ids=FORGERS)
@pytest.mark.parametrize("answer", ["41", "42"])
def test_a_cell_does_not_answer_the_environment(forger: str, answer: str) -> None:
    env = Checked(dataset=[{"question": "?"}], rubric=vfgym.Rubric(lambda state: float(state["passes"])), timeout_per_command_seconds=20)
    env.reset(seed=0)
    env.step(_cell(f"_ = open('answer.txt', 'w').write('{answer}')"))
    env.step(_cell(forger))
    _, reward, *_ = env.step("Done.")
    env.close()
    assert reward == float(answer == "42")


PLUGIN = """import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    out = yield
    out.get_result().outcome = "passed"
"""
CHEATS = {
    "a library that every program loads": "cp /bin/true /tmp/x.so; echo /tmp/x.so > /etc/ld.so.preload;"
    " printf '#!/bin/sh\\nexit 0\\n' > /tmp/grep; chmod +x /tmp/grep; mv /usr/bin/grep /usr/bin/g; cp /tmp/grep /usr/bin/grep; mv /bin /b;"
    " cp -r /b /bin; cp /tmp/grep /bin/grep",
    "a configuration of pytest above the tests": "printf '[pytest]\\naddopts = -p evil\\npythonpath = /app\\n' > /pytest.ini;"
    f" cat > /app/evil.py <<'X'\n{PLUGIN}X\n",
    "a conftest above the tests": f"cat > /conftest.py <<'X'\n{PLUGIN}X\n",
    "a plugin in the home folder": "d=$(python3 -c 'import site; print(site.getusersitepackages())'); mkdir -p $d/evil-1.dist-info;"
    f" cat > $d/evil.py <<'X'\n{PLUGIN}X\nprintf '[pytest11]\\nevil = evil\\n' > $d/evil-1.dist-info/entry_points.txt;"
    " printf 'Name: evil\\nVersion: 1\\n' > $d/evil-1.dist-info/METADATA",
    "what each interpreter loads": "d=$(python3 -c 'import site; print(site.getusersitepackages())'); mkdir -p $d;"
    " echo 'import os; os._exit(0)' > $d/usercustomize.py; echo 'import os; os._exit(0)' > $d/evil.pth",
    "a shell's start": "for f in ~/.bashrc ~/.profile ~/.bash_profile /etc/profile /etc/bash.bashrc; do echo 'exit 0' > $f; done",
    "tests and a reward": "mkdir -p /tests /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo 'assert True' > /tests/test_it.py;"
    " chmod -R 555 /tests /logs; (while :; do echo 1 > /logs/verifier/reward.txt; done) & (setsid sleep 100 &)",
}
TESTS = (
    "if grep -qx hello /app/greeting.txt && python3 -m pytest -q -p no:cacheprovider /tests/test_it.py >&2; then echo 1; else echo 0; fi"
    " > /logs/verifier/reward.txt"
)


def _hard_task(folder: Path, solution: str) -> Path:
    task = make_task(folder, "hard", solution=solution, tests=TESTS)
    (task / "tests" / "test_it.py").write_text(
        "def test_it():\n    assert open('/app/greeting.txt').read() == 'hello\\n' and open('/app/done')"
    )
    return task


def _reward_of(task: Path) -> float:
    folders, variables = find_pytest()
    env = vfgym.HarborEnv(None, task, agent="oracle", backend="bwrap", sandbox=SandboxSpec(readable_paths=folders, env=variables))
    env.reset(seed=0)
    reward = float(env.step("nobody asked")[1])
    env.close()
    return reward


@needs_sandbox
@pytest.mark.parametrize("cheat", CHEATS.values(), ids=CHEATS)
def test_a_program_does_not_change_what_tests_it(cheat: str, tmp_path: Path) -> None:
    assert _reward_of(_hard_task(tmp_path, f"echo hello > greeting.txt\n{cheat}\ntrue")) == 0.0


@needs_sandbox
def test_the_tests_that_programs_attack_are_passed_by_an_honest_one(tmp_path: Path) -> None:
    assert _reward_of(_hard_task(tmp_path, "echo hello > greeting.txt; touch done")) == 1.0


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
