"""What somebody's agent attempts against its evaluator, and what must come of it.

The sentences are those of ``docs/models.md``. The heavy ones run with ``-m exhaustive``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox, running
from tests.attacks.attack import KEY, quick_or_exhaustive
from vfgym.agents.isolated import IsolatedAgent
from vfgym.errors import ConfigurationError, ModelError, WorkerTimeout
from vfgym.model_server import ModelServer
from vfgym.sandboxes import SandboxSpec

AGENTS = """
import asyncio, gc, os, pickle, signal, socket, subprocess, sys, threading, time

def note(text):
    with open(os.path.join(os.path.dirname(__file__), "noted"), "a") as file:
        print(text, file=file)

class Pickled:
    def __reduce__(self):
        return exec, ("import os; open('pwned', 'w').write(str(os.getpid()))",)

def object_(observation, info):
    return Pickled()

class Text(str):
    def __reduce__(self):
        return exec, ("import os; open('pwned', 'w').write(str(os.getpid()))",)

def text(observation, info):
    return Text("yes")

def error(observation, info):
    class Evil(Exception):
        def __reduce__(self):
            return exec, ("import os; open('pwned', 'w').write(str(os.getpid()))",)
    raise Evil("no")

def channels():
    # Every descriptor of this process that is a socket: one leads to the evaluator.
    found = []
    for number in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                found.append(number)
        except OSError:
            pass
    return found

def send(data, framed=True):
    import struct
    for number in channels():
        try:
            os.write(number, (struct.pack("!i", len(data)) if framed else b"") + data)
        except OSError:
            pass

def writes_pickle(observation, info):
    send(pickle.dumps((pickle.dumps((Pickled(), None)), False)))
    return "yes"

def writes_garbage(observation, info):
    send(b"\\xff" * 100, framed=False)
    return "yes"

def writes_a_size(observation, info):
    send(b"\\xff\\xff\\xff\\xff\\x00\\x00\\xff\\xff\\xff\\xff\\xff\\xff", framed=False)
    time.sleep(3600)

def writes_nesting(observation, info):
    send(b'0{"result": ' + b"[" * 100000 + b"]" * 100000 + b"}")
    return "yes"

def writes_much(observation, info):
    return "x" * (65 << 20)

def leaves(observation, info):
    # A child in a session of its own, whose parent has ended, one that ignores signals, and a thread.
    code = "import os, signal, time\\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\\nif os.fork(): os._exit(0)\\nos.setsid()\\n"
    code += "if os.fork(): os._exit(0)\\ntime.sleep(3600)  # left-by-an-agent"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True).wait()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)  # left-by-an-agent"])
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return "yes"

def ignores_its_clock(observation, info):
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGPROF):
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.sleep(3600)

def exits(observation, info):
    os._exit(0)

def leaves_python(observation, info):
    sys.exit("enough")

def kills_its_keeper(observation, info):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)

def fills_memory(observation, info):
    kept = []
    while True:
        kept.append(bytearray(10**8))

def looks(observation, info):
    found = {name: value for name, value in os.environ.items() if "SECRET" in name or "KEY" in name}
    files = [path for path in (os.environ.get("HOME", "/") + "/.ssh", "/etc/shadow") if os.access(path, os.R_OK)]
    for address in (("127.0.0.1", PORT), ("1.1.1.1", 53)):
        try:
            socket.create_connection(address, timeout=2)
            files.append(address)
        except OSError:
            pass
    try:
        with open(FILE) as file:
            files.append(file.read())
    except OSError:
        pass
    try:
        os.kill(PID, 0)
        files.append("the evaluator's process")
    except OSError:
        pass
    return repr([found, files])

def prints_without_end(observation, info):
    for _ in range(300):
        print("x" * 2**20)
    return "yes"

def says_yes(observation, info):
    return "yes"
"""


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module of agents in the current directory, whose name no other test has."""
    name = f"evil_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(AGENTS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield name
    assert not (tmp_path / "pwned").exists(), "code of the agent ran in this process"


def yes_env(timeout_seconds: float | None = 60) -> vfgym.SingleTurnEnv:
    rubric = vfgym.Rubric(lambda completion: float(completion[-1].content == "yes"))
    return vfgym.SingleTurnEnv([{"question": "?"}], rubric=rubric, timeout_seconds=timeout_seconds)


def play(agent: Any, **options: Any) -> Any:
    [row] = vfgym.evaluate(yes_env(**options), agent, progress=False)["outputs"]
    return row


FAILING = {
    "object_": "answers with text, a message, a Response or JSON data",
    "error": "Evil",
    "writes_garbage": "",
    "writes_pickle": "",
    "writes_nesting": "",
    "writes_much": "",
    "exits": "its process ended",
    "leaves_python": "enough",
}


@pytest.mark.parametrize("name", quick_or_exhaustive([*FAILING], "error", "writes_pickle", "writes_garbage", "exits"))
def test_nothing_that_an_isolated_agent_says_runs_here_and_its_failures_are_its_own(evil: str, name: str) -> None:
    """Fell: what an agent of ``--isolate`` answered, raised, or wrote to its pipe was unpickled in the evaluator's process."""
    agent = IsolatedAgent(f"{evil}:{name}")
    row = play(agent)
    assert row["reward"] == 0.0 or row["reward"] is None
    assert row["error"]["error"] == "ModelError"
    assert FAILING[name] in repr(row["error"])
    assert row["ending"] == "policy_failed"
    agent.close()
    # The library goes on, with this agent's module and with others.
    other = IsolatedAgent(f"{evil}:says_yes")
    assert play(other)["reward"] == 1.0
    other.close()


def test_a_subclass_of_text_arrives_as_text(evil: str) -> None:
    agent = IsolatedAgent(f"{evil}:text")
    assert play(agent)["reward"] == 1.0
    agent.close()


@pytest.mark.parametrize("name", ["ignores_its_clock", "writes_a_size", "kills_its_keeper"])
def test_an_agent_that_holds_up_its_evaluator_is_ended_from_outside(evil: str, name: str) -> None:
    agent = IsolatedAgent(f"{evil}:{name}", answer_seconds=1)
    environment = yes_env(None)
    observation, info = environment.reset(seed=0)
    with pytest.raises((WorkerTimeout, ModelError)) as caught:
        agent.for_episode(environment)(observation, info)
    assert caught.value.failure_cause == "policy"
    agent.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up, on Linux")
@pytest.mark.parametrize("sandbox", [False, pytest.param(True, marks=needs_sandbox)])
def test_what_an_agent_leaves_behind_ends_with_it(evil: str, sandbox: bool) -> None:
    """Fell: children in sessions of their own stayed when the agent's process had ended."""
    agent = IsolatedAgent(f"{evil}:leaves", sandbox=sandbox)
    assert play(agent)["reward"] == 1.0
    wait_until(lambda: len(running("left-by-an-agent")) >= 2)
    agent.close()
    wait_until(lambda: not running("left-by-an-agent"))


@needs_sandbox
def test_a_sandboxed_agent_sees_nothing_of_its_evaluator(evil: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Environment variables, files of the current directory, the network and loopback, and the processes of the machine."""
    monkeypatch.setenv("MY_SECRET", "s3cret")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / ".env").write_text("OPENAI_API_KEY=x")
    with ModelServer() as running_server:
        module = tmp_path / f"{evil}.py"
        port = running_server.url.rpartition(":")[2]
        code = module.read_text().replace("PORT)", f"{port})").replace("FILE", repr(str(tmp_path / ".env")))
        module.write_text(code.replace("os.kill(PID", f"os.kill({os.getpid()}"))
        agent = IsolatedAgent(f"{evil}:looks", sandbox=True)
        row = play(agent)
        agent.close()
    assert row["error"] is None
    assert row["completion"][-1]["content"] == "[{}, []]"


@needs_sandbox
@pytest.mark.parametrize("name", quick_or_exhaustive(["fills_memory", "object_", "error", "exits", "leaves_python"], "fills_memory"))
def test_a_sandboxed_agent_that_fails_does_so_by_its_own_doing(evil: str, name: str) -> None:
    agent = IsolatedAgent(f"{evil}:{name}", sandbox=SandboxSpec(memory_mb=600))
    row = play(agent)
    assert row["error"]["error"] == "ModelError"
    assert row["ending"] == "policy_failed"
    agent.close()


@needs_sandbox
@pytest.mark.exhaustive
def test_a_sandboxed_agent_that_prints_without_end_plays_on(evil: str) -> None:
    agent = IsolatedAgent(f"{evil}:prints_without_end", sandbox=True)
    assert play(agent)["reward"] == 1.0
    agent.close()


@needs_sandbox
@pytest.mark.exhaustive
def test_a_sandboxed_agent_that_never_answers_is_ended(evil: str) -> None:
    agent = IsolatedAgent(f"{evil}:ignores_its_clock", sandbox=True, answer_seconds=5)
    row = play(agent, timeout_seconds=None)
    assert "answer took more than 5 wall_seconds" in repr(row["error"])
    agent.close()


@needs_sandbox
def test_a_module_is_not_run_here_to_be_found_for_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package whose ``__init__`` does harm is copied into the sandbox, and imported there alone."""
    package = tmp_path / f"pack_{tmp_path.name}"
    package.mkdir()
    (package / "__init__.py").write_text("import pathlib\npathlib.Path('/tmp/ran-here').touch()")
    (package / "agent.py").write_text("def agent(observation, info):\n    return 'yes'")
    monkeypatch.chdir(tmp_path)
    agent = IsolatedAgent(f"{package.name}.agent:agent", sandbox=True)
    assert play(agent)["reward"] == 1.0
    agent.close()
    assert not Path("/tmp/ran-here").exists()
    with pytest.raises(ConfigurationError, match="there is no module 'no_such_module'"):
        IsolatedAgent("no_such_module:agent", sandbox=True)
