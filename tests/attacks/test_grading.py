"""Attacks on what grades: codes of a rubric, cells of a notebook and programs of Harbor's tasks don't write what grades them.

The sentences are those of ``docs/sandboxes.md`` and ``docs/agent_programs.md``. The heavy ones run with ``-m exhaustive``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from tests.harbor_tasks import make_task
from tests.programs import SECONDS
from vfgym.agents import ModelAgent
from vfgym.endings import Ending
from vfgym.rubrics.code_tests import find_pytest
from vfgym.sandboxes import SandboxSpec
from vfgym.state import State
from vfgym.testing import ScriptedClient

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
    for code in (LOOKS, evil, LOOKS, LOOKS):
        env.reset(seed=0)
        rewards.append(env.step(f"{fence}python\n{code}\ndef add(a, b):\n    return a + b\n{fence}").reward)
    env.close()
    assert [rewards[0], *rewards[2:]] == [1.0] * 3


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
LIBRARY = r"""#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
__attribute__((constructor)) void write_reward(void) {
    int reward = open("/logs/verifier/reward.txt", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (reward >= 0) { write(reward, "1\n", 2); close(reward); chmod("/logs/verifier/reward.txt", 0444); }
}
"""
CHEATS = {
    "a library that writes the reward": f"cat > evil.c <<'X'\n{LIBRARY}X\ngcc -w -shared -fPIC -o evil.so evil.c &&"
    " echo /app/evil.so > /etc/ld.so.preload",
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
    "an exit before the tests": "for f in /conftest.py /tests/conftest.py /sitecustomize.py; do echo 'import os; os._exit(0)' > $f; done;"
    " mkdir -p /root ~/.config; echo 'exit 0' > ~/.bash_env; echo BASH_ENV=~/.bash_env >> /etc/environment",
    "another interpreter": "printf '#!/bin/sh\\nexit 0\\n' > /tmp/python3; chmod +x /tmp/python3; p=$(command -v python3);"
    " mv $p $p.old; cp /tmp/python3 $p; for d in $(echo $PATH | tr : ' ') ~/.local/bin; do mkdir -p $d; cp /tmp/python3 $d/python3; done",
    "tests and a reward": "mkdir -p /tests /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo 'assert True' > /tests/test_it.py;"
    " chmod -R 555 /tests /logs; (while :; do echo 1 > /logs/verifier/reward.txt; done) & (setsid sleep 100 &)",
}
OF_EACH_KIND = ("a library that writes the reward", "a plugin in the home folder", "another interpreter", "tests and a reward")
"""What is loaded by every program, by each interpreter and by pytest; and what lies in its place."""
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
@pytest.mark.parametrize(
    "cheat", [pytest.param(cheat, id=name, marks=() if name in OF_EACH_KIND else pytest.mark.exhaustive) for name, cheat in CHEATS.items()]
)
def test_a_program_does_not_change_what_tests_it(cheat: str, tmp_path: Path) -> None:
    assert _reward_of(_hard_task(tmp_path, f"echo hello > greeting.txt\n{cheat}\ntrue")) == 0.0


AS_A_PLAIN_USER = """
import json, os, sys
from pathlib import Path
import aiohttp.web
from tests.attacks import test_grading
from vfgym.sandboxes import bwrap, cgroups, local
for cached in (local.find_interpreter, bwrap._find_problem, cgroups._find_parents):  # what root found
    cached.cache_clear()
os.setgroups([]), os.setgid(65534), os.setuid(65534)
os.environ["HOME"] = sys.argv[1]
cheats = {"none": "touch done", **test_grading.CHEATS}
rewards = {}
for number, (name, cheat) in enumerate(cheats.items()):
    task = test_grading._hard_task(Path(sys.argv[1], str(number)), f"echo hello > greeting.txt\\n{cheat}\\ntrue")
    rewards[name] = test_grading._reward_of(task)
print(json.dumps(rewards))
"""


@needs_sandbox
@pytest.mark.exhaustive
@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root is a plain user already")
def test_a_program_of_a_plain_user_does_not_change_what_tests_it() -> None:
    """Fell: there a program owned all folders of its sandbox that are not the host's, ``/etc`` among them."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o777)
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-c", AS_A_PLAIN_USER, folder]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=SECONDS * 3)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"none": 1.0, **dict.fromkeys(CHEATS, 0.0)}


@needs_sandbox
def test_the_tests_that_programs_attack_are_passed_by_an_honest_one(tmp_path: Path) -> None:
    assert _reward_of(_hard_task(tmp_path, "echo hello > greeting.txt; touch done")) == 1.0


@needs_sandbox
@pytest.mark.parametrize(
    "leaves",
    [
        "import os; os.kill(os.getppid(), 9)",
        pytest.param("while True: pass", marks=pytest.mark.exhaustive),
        pytest.param("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", marks=pytest.mark.exhaustive),
    ],
)
def test_tests_that_a_program_keeps_from_ending_are_its_failure(leaves: str, tmp_path: Path) -> None:
    """Fell: who could not pass the tests had them hang or be killed, and its rollout was missing instead of lost."""
    runs = "if python3 /app/made.py; then echo 1; else echo 0; fi > /logs/verifier/reward.txt"
    assert _failure_of(tmp_path / "works", f"cat > made.py <<'X'\n{leaves}\nX\n", runs) == Ending.POLICY_FAILED
    assert _failure_of(tmp_path / "broken", "true", "exit 3") == Ending.INFRASTRUCTURE_FAILED


def _failure_of(root: Path, solution: str, tests: str) -> Ending:
    task = _hard_task(root, solution)
    (task / "tests" / "test.sh").write_text(tests, encoding="utf-8")
    (task / "task.toml").write_text('schema_version = "1.4"\n[verifier]\ntimeout_sec = 3.0\n', encoding="utf-8")
    env = vfgym.HarborEnv(agent="oracle", dataset_path=task, backend="bwrap", max_turns=1)
    [row] = vfgym.evaluate(env, ModelAgent(ScriptedClient(["never asked"]), "m"), progress=False)["outputs"]
    return Ending(row["ending"])
