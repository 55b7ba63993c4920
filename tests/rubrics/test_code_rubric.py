"""`CodeRubric`: the share of a task's tests that a code passes, whatever the code does, and never in the evaluating process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import vfgym
from tests.agent_programs import needs_sandbox
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.rubrics import code_rubric
from vfgym.rubrics.code_rubric import last_code_block
from vfgym.sandboxes import SandboxSpec

pytestmark = needs_sandbox
ADD = "def add(a, b):\n    return a + b\n"
DOUBLE = "print(int(input()) * 2)"
HARMFUL = {
    "endless": "while True: pass",
    "endless and deaf": "import signal\nfor s in (1, 2, 3, 15): signal.signal(s, signal.SIG_IGN)\nwhile True: pass",
    "exits as if all were well": "import os; os._exit(0)",
    "exits by an exception": "raise SystemExit(0)",
    "exits later": "import atexit, os; atexit.register(os._exit, 0)\nraise KeyboardInterrupt",
    "kills all": "import os; os.kill(-1, 9)",
    "takes memory": "x = bytearray(1 << 34)",
    "bombs": "import os\nwhile True: os.fork()",
    "floods": "import sys\nwhile True: sys.stdout.write('x' * 100000)",
    "writes the tests anew": "open('test_solution.py', 'w').write('def test_a(): pass')\nraise ValueError",
    "leaves a process": "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)\nraise ValueError",
}

SLOW = ("endless", "bombs", "floods")
"""What takes all of its time."""


def fenced(code: str) -> str:
    return f"Here it is:\n```python\n{code}\n```\nGood luck."


def score(tests: Any, *completions: str, seconds: float = 60.0) -> tuple[list[float], list[Any]]:
    """Return the rewards of completions, one after the other, and what went wrong."""
    env = vfgym.SingleTurnEnv(dataset=[{"question": "?", "info": {"tests": tests}}], rubric=vfgym.CodeRubric(timeout_seconds=seconds))
    rewards, errors = [], []
    for completion in completions:
        env.reset(seed=0)
        rewards.append(env.step(completion).reward)
        errors.append(env.episode.state.get("metrics_errors"))
    env.close()
    return rewards, errors


MODULE = """
import pytest
from solution import add

@pytest.mark.parametrize("a", [1, 2])
def test_adds(a):
    assert add(a, 1) == a + 1

def test_refuses():
    with pytest.raises(TypeError):
        add(1)

def test_fails():
    assert add(1, 1) == 3
"""


@pytest.mark.parametrize(
    ("code", "tests", "share"),
    [
        (DOUBLE, [{"stdin": "3\n", "stdout": "6 \n\n"}, {"stdin": "4\n", "stdout": "8"}, {"stdin": "1\n", "stdout": "3"}], 2 / 3),
        (DOUBLE + "\nraise SystemExit(1)", [{"stdin": "3", "stdout": "6"}], 0.0),
        (ADD, ["assert add(1, 2) == 3", "assert add(1, 2) == 4", "x = add(1, 1)\nassert x == 2", "assert no_such_name"], 0.5),
        (ADD + "if __name__ == '__main__':\n    1 / 0", [{"pytest": MODULE}, "assert add(1, 2) == 3"], 0.875),
        ("this is not Python", ["assert True", {"stdout": ""}], 0.0),
    ],
)
def test_a_code_gets_the_share_of_the_tests_that_it_passes(code: str, tests: Any, share: float) -> None:
    assert score(tests, fenced(code)) == ([pytest.approx(share)], [None])


def test_the_last_fenced_block_counts_after_the_reasoning() -> None:
    wrong = fenced("def add(a, b):\n    return 0")
    completions = (f"<think>{wrong}</think>{wrong}{fenced(ADD)}", f"<think>{fenced(ADD)}</think>No idea.")
    assert score(["assert add(1, 2) == 3"], *completions)[0] == [1.0, 0.0]
    assert last_code_block("no fence ``` here") == ""
    assert last_code_block("1. So\n   ```py\n   x\n   ```\n") == "   x\n"
    cut_off = "```\na\n```\n```python\nb"
    assert [last_code_block(text) for text in ("", cut_off, "```\n```", "```\n```py\n```")] == ["", "a\n", "", "```py\n"]


@pytest.mark.parametrize(
    "code", [pytest.param(code, id=name, marks=pytest.mark.exhaustive if name in SLOW else ()) for name, code in HARMFUL.items()]
)
def test_what_does_harm_scores_nothing_and_the_next_code_is_scored_right(code: str) -> None:
    tests = ["assert add(1, 2) == 3", {"stdin": "", "stdout": "3"}]
    assert score(tests, fenced(code), fenced(ADD), seconds=1.0) == ([0.0, 0.5], [None, None])


def test_nothing_of_a_code_is_there_for_the_next_one() -> None:
    writes = "open('kept.txt', 'w').write('x')\nimport os; os.makedirs('/opt/kept')"
    looks = "import os\nfound = os.listdir('.') + [each for each in ('/opt/kept',) if os.path.exists(each)]"
    assert score(["assert sorted(found) in (['solution.py'], [])"], fenced("found = []\n" + writes), fenced(looks)) == (
        [1.0, 1.0],
        [None, None],
    )


def test_an_endless_code_keeps_what_it_passed_before() -> None:
    code = "n = int(input())\nwhile n > 2: pass\nprint(n)"
    tests = [{"stdin": str(n), "stdout": str(n)} for n in (1, 2, 3, 1)]
    assert score(tests, fenced(code), seconds=1.5)[0] == [0.5]


def solutions(count: int) -> list[tuple[str, float]]:
    """Return codes with their scores: right, wrong and half right ones, and a tenth that does harm."""
    harmful = list(HARMFUL.values())
    kinds = [("print(int(input()) * 2)", 1.0), ("print(6)", 0.5), ("print(7)", 0.0)]
    return [(harmful[number // 10 % len(harmful)], 0.0) if number % 10 == 9 else kinds[number % 3] for number in range(count)]


@pytest.mark.parametrize("count", [9, pytest.param(200, marks=pytest.mark.exhaustive)])
def test_many_solutions_at_once_are_scored_right(count: int) -> None:
    wanted = solutions(count)
    tests = [{"stdin": "3\n", "stdout": "6"}, {"stdin": "5\n", "stdout": "10"}]
    env = vfgym.SingleTurnEnv(
        dataset=[{"question": str(number), "info": {"tests": tests}} for number in range(count)],
        rubric=vfgym.CodeRubric(timeout_seconds=1.0),
    )
    results = vfgym.evaluate(env, lambda observation, info: fenced(wanted[int(observation[0].content)][0]), progress=False)
    rewards = {int(row["prompt"][0]["content"]): row["reward"] for row in results["outputs"]}
    assert [rewards[number] for number in range(count)] == [share for _, share in wanted]
    assert [row.get("metrics_errors") for row in results["outputs"]] == [None] * count
    env.close()


def test_a_code_that_ends_two_sandboxes_scores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def end(sandbox: Any, code: str, *others: Any) -> float:
        asked.append(code)
        raise SandboxError("it has ended")

    monkeypatch.setattr(code_rubric, "share_of_passed", end)
    assert score(["assert True"], fenced(ADD)) == ([0.0], [None])
    assert len(asked) == 2, "the first may have been somebody else's doing"


def test_tests_that_are_none_are_recorded_as_an_error() -> None:
    [reward], [errors] = score([{"stdin": "1"}], fenced(ADD))
    assert reward == 0.0
    assert "a test must be" in errors["passed_tests"]


def test_bad_arguments_are_refused_and_a_rubric_can_be_pickled() -> None:
    for wrong in (0, -1, float("inf"), float("nan"), True, "1"):
        with pytest.raises(ConfigurationError) as raised:
            vfgym.CodeRubric(timeout_seconds=wrong)  # type: ignore[arg-type]
        assert str(raised.value) == f"timeout_seconds must be a positive number of seconds, got {wrong!r}"
    rubric = vfgym.CodeRubric(len, [0.5])
    assert [(each.name, each.weight, each.range) for each in rubric.functions] == [("len", 0.5, None), ("passed_tests", 1.0, (0.0, 1.0))]
    with pytest.raises(ConfigurationError, match="the backend bwrap has no images"):
        vfgym.CodeRubric(sandbox=SandboxSpec(image="acme/tools"), backend="bwrap")
    copied = pickle.loads(pickle.dumps(vfgym.CodeRubric(timeout_seconds=3)))
    assert copied.timeout_seconds == 3
