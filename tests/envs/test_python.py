"""`PythonEnv`: cells run in one interpreter of the episode's sandbox, with packages that are installed once and only read."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from tests.models import InOrder, calling
from vfgym.envs.python import describe_cell, end_text
from vfgym.envs.python_packages import find_packages
from vfgym.envs.sandboxed import sandboxes_in_use
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import CellResult, SandboxSpec
from vfgym.testing import check_environment

pytestmark = needs_sandbox

ROWS = [{"question": "What is 6 times 7?", "answer": "42"}]
SIGNAL_PROOF = "import signal, os\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nos.system('sleep 600')\nwhile True: pass"


def cell(env: Any, code: str) -> str:
    return str(env.step(calling(("python", {"code": code}))).observation[-1].content)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that can be installed without a network, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tiny.py", "number = 42\n")
        file.writestr("tinier/tests/test_it.py", "number = 42\n")
        file.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        file.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\ntinier/tests/test_it.py,,\n")
    return path


@pytest.mark.exhaustive
def test_it_keeps_every_promise_though_it_measures_seconds() -> None:
    assert [check for check in check_environment(lambda: vfgym.PythonEnv(dataset=ROWS)) if not check.passed] == []


def test_the_model_reads_what_came_of_each_cell_and_state_is_kept() -> None:
    env = vfgym.PythonEnv(timeout_per_command_seconds=0.5, dataset=ROWS, max_turns=20)
    _, info = env.reset(seed=0)
    [tool] = info["tools"]
    assert (tool["function"]["name"], list(tool["function"]["parameters"]["properties"])) == ("python", ["code"])
    assert (cell(env, "x = 6 * 7"), cell(env, "x")) == ("(no output)", "Out[2]: 42")
    assert cell(env, "import sys; print('  a', file=sys.stderr); print('  b'); x") == "  b\nstderr:\n  a\nOut[3]: 42"
    assert cell(env, "1 / 0").endswith("1 / 0\n     ~~^~~\nZeroDivisionError: division by zero")
    assert cell(env, "open('kept.txt', 'w').write(str(x))") == "Out[5]: 2"
    endless = cell(env, "print('begun')\nwhile True: pass")
    assert endless.startswith("begun\n")
    assert endless.endswith("Error: Cell timed out after 0.5s")
    assert "state is lost" not in endless
    assert cell(env, "x, open('kept.txt').read()") == "Out[7]: (42, '42')"
    *_, info = env.step("42")
    assert info["metrics"]["python_calls"] == 7
    assert info["metrics"]["python_ready_wait_time"] > 0
    assert (env.episode.state["python_state"]["execution_count"], sandboxes_in_use()) == (7, [])


def test_a_cell_that_cannot_be_interrupted_is_killed_and_its_state_is_lost() -> None:
    env = vfgym.PythonEnv(timeout_per_command_seconds=0.5, dataset=ROWS)
    env.reset(seed=0)
    cell(env, "x = 1")
    killed = cell(env, SIGNAL_PROOF)
    assert "Cell timed out after 0.5s" in killed
    assert "state is lost" in killed
    assert "NameError: name 'x' is not defined" in cell(env, "x")
    assert cell(env, "2 + 2") == "Out[4]: 4"
    exited = cell(env, "import os; os._exit(3)")
    assert "timed out" not in exited
    assert "state is lost" in exited
    env.close()


async def test_packages_are_installed_once_and_only_read(
    wheel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_QUIET", raising=False)  # of whoever runs the tests: pip would tell nothing
    env = vfgym.PythonEnv(f"--no-index {wheel}", dataset=ROWS)
    code = "import tiny, os, sys; tiny.number, os.access(tiny.__file__, os.W_OK), sys.prefix"
    results = await vfgym.aevaluate(
        env,
        lambda observation, info: calling(("python", {"code": code})) if len(observation) == 1 else "done",
        rollouts_per_example=3,
        progress=False,
    )
    [folder] = [path for path in (wheel.parent / "cache" / "vfgym" / "python-packages").iterdir() if path.is_dir()]
    for row in results["outputs"]:
        assert row["completion"][1]["content"] == f"Out[1]: (42, False, {str(folder)!r})"
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("sandboxes: ")]
    assert [line.split()[1] for line in shown] == ["installing", "Installing", "compiling", "--no-index"]
    compiled = {path.name.partition(".")[0] for path in folder.rglob("*.pyc")}
    assert {"tiny"} == {name for name in compiled if name in ("tiny", "test_it")}  # tests are not
    made = (folder / "pyvenv.cfg").stat().st_mtime_ns
    wheel.unlink()  # another environment that asks for the same finds it
    await vfgym.PythonEnv(f"--no-index  {wheel}", dataset=ROWS).rollout(env.tasks.input(0), InOrder("done"), "m")
    assert (folder / "pyvenv.cfg").stat().st_mtime_ns == made


async def test_wheels_of_requirements_by_name_are_kept_and_taken_again(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once it was installed, a package is there for other requirements too, though no index has it any more."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    await find_packages("tiny")
    kept = wheel.parent / "cache" / "vfgym" / "wheels"
    assert [path.name for path in kept.iterdir()] == [wheel.name]
    wheel.unlink()
    folder = await find_packages("tiny>=1.0")
    assert (folder is not None, len(list((folder or kept).rglob("tiny.py")))) == (True, 1)
    assert [path.name for path in kept.iterdir()] == [wheel.name]
    assert "sandboxes: tiny>=1.0 are installed" in capsys.readouterr().err.replace("'", "")


async def test_packages_that_cannot_be_installed_are_the_error_of_each_episode(wheel: Path) -> None:
    env = vfgym.PythonEnv("--no-index no-such-package-of-tests", dataset=ROWS)
    for _ in range(2):
        state = await env.rollout(env.tasks.input(0), InOrder("never"), "m")
        assert isinstance(state["error"], SandboxError)
        assert "No matching distribution found for no-such-package-of-tests" in str(state["error"])
        assert (state["trajectory"], state["stop_condition"]) == ([], "has_error")
    assert [path.suffix for path in (wheel.parent / "cache" / "vfgym" / "python-packages").iterdir()] == [".lock"]


def test_bad_input_is_refused_at_construction(wheel: Path) -> None:
    with pytest.raises(ConfigurationError, match="pip_install_packages can't be read: No closing quotation"):
        vfgym.PythonEnv("numpy 'scipy", dataset=ROWS)
    with pytest.raises(ConfigurationError, match=r"leave SandboxSpec\(python=...\) out"):
        vfgym.PythonEnv("numpy", dataset=ROWS, sandbox=SandboxSpec(python=os.environ["VIRTUAL_ENV"]))


LATE, LOST = (
    "Error: Cell timed out after 2.5s",
    "Error: The interpreter's state is lost: nothing that earlier cells defined is there any more",
)


@pytest.mark.parametrize(
    ("fields", "most", "said"),
    [
        ({}, None, "(no output)"),
        ({"stdout": " \n", "stderr": "\n"}, None, "(no output)"),
        ({"value": ""}, None, "Out[3]: "),
        ({"value": "0", "stdout": "  a \n"}, None, "  a\nOut[3]: 0"),
        ({"stdout": "a", "stderr": "  b\n", "traceback": "c", "value": "d"}, None, "a\nstderr:\n  b\nc\nOut[3]: d"),
        ({"timed_out": True}, None, LATE),
        ({"state_is_lost": True, "stdout": "a"}, None, f"a\n{LOST}"),
        ({"timed_out": True, "state_is_lost": True}, 0, f"{LATE}\n{LOST}"),
        ({"stdout": "abcd"}, 4, "abcd"),
        ({"stdout": "abcde"}, 4, "abcd\n... [output truncated]"),
        ({"stdout": "a"}, 0, "\n... [output truncated]"),
        ({"stdout": "abcde", "timed_out": True}, 4, f"abcd\n... [output truncated]\n{LATE}"),
    ],
)
def test_what_came_of_a_cell_is_told(fields: dict[str, Any], most: int | None, said: str) -> None:
    """The limit is of what it printed and gave, not of what is told of its end."""
    nothing = {"stdout": "", "stderr": "", "value": None, "traceback": None, "timed_out": False, "state_is_lost": False}
    assert describe_cell(CellResult(**{**nothing, "truncated": False, "count": 3, **fields}), 2.5, most) == said


def test_a_command_is_called_so() -> None:
    late = CellResult("", "", None, None, True, False, False, 1)
    assert end_text("a", late, 3, None, "Command") == "a\nError: Command timed out after 3s"


@pytest.mark.exhaustive
def test_many_episodes_at_once_leave_flat_memory_and_no_process() -> None:
    """Five hundred episodes, 64 at once, and as many again: what is in use afterwards does not grow with them."""
    env = vfgym.PythonEnv(dataset=[{"question": str(number)} for number in range(500)], rubric=vfgym.Rubric(right))
    play = {"max_concurrent": 64, "progress": False}

    def agent(observation: Any, info: Any) -> Any:
        number = observation[0].content
        return calling(("python", {"code": f"x = {number}\nx + 1"})) if len(observation) == 1 else observation[-1].content

    used = []
    for _ in range(3):
        results = vfgym.evaluate(env, agent, **play)
        assert results["metadata"]["avg_reward"] == 1.0
        used.append(_resident_mb())
        assert sandboxes_in_use() == []  # of processes, the suite's own check of each test knows
        del results
    assert used[2] - used[1] < 30, used


def right(prompt: Any, completion: Any) -> float:
    return float(completion[-1].content == f"Out[1]: {int(prompt[0].content) + 1}")


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
