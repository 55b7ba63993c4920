"""What tests of a code may be, and running them in a sandbox whose commands are written down here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vfgym.errors import ConfigurationError, SandboxError
from vfgym.rubrics import code_tests
from vfgym.rubrics.code_tests import find_pytest, needs_pytest, normalize, read_tests, share_of_passed
from vfgym.sandboxes import ExecResult
from vfgym.testing import FakeClock

PROGRAM = {"stdin": "1", "stdout": "2"}


@pytest.mark.parametrize(
    ("tests", "read"),
    [
        (["assert f()"], ["assert f()"]),
        ('["assert f()"]', ["assert f()"]),
        (PROGRAM, [PROGRAM]),
        (json.dumps(PROGRAM), [PROGRAM]),
        ([{"stdout": ""}, {"pytest": "def test(): ..."}, ""], [{"stdout": ""}, {"pytest": "def test(): ..."}, ""]),
    ],
)
def test_tests_are_a_list_one_of_them_or_json(tests: Any, read: Any) -> None:
    assert read_tests({"tests": tests}) == read


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (None, "must be a list of tests that is not empty"),
        ({}, "must be a list of tests that is not empty"),
        ({"tests": []}, "must be a list of tests that is not empty"),
        ({"tests": "[]"}, "must be a list of tests that is not empty"),
        ({"tests": "["}, "or its JSON, which this is not"),
        ({"tests": 7}, "must be a list of tests"),
        ({"tests": [PROGRAM, {"stdin": "1"}]}, "a test must be"),
        ({"tests": [{"stdout": None}]}, "a test must be"),
        ({"tests": [{"stdin": 1, "stdout": ""}]}, "a test must be"),
        ({"tests": [{"pytest": 7}]}, "a test must be"),
        ({"tests": [{"stdout": "", "pytest": 7}]}, "a test must be"),
        ({"tests": ["assert True", 7]}, "got 7$"),
        ({"tests": [None]}, "a test must be"),
    ],
)
def test_what_is_no_test_is_refused(info: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read_tests(info)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        *(("a", "a\n\n \n", True), ("a \nb\t", "a\nb", True), (" a", "a", False), ("a\n\nb", "a\nb", False), ("\na", "a", False)),
        *(("", "\n", True), ("", "0", False)),
    ],
)
def test_outputs_are_compared_without_white_space_at_ends(one: str, other: str, equal: bool) -> None:
    assert (normalize(one) == normalize(other)) is equal


class Written:
    """A sandbox whose commands come out as a test says."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.files: dict[str, str] = {}
        self.timeouts: list[float] = []
        self.inputs: list[Any] = []
        self.commands: list[Any] = []

    async def write_file(self, path: str, text: str) -> None:
        self.files[path] = text

    async def exec(self, command: Any, *, input: Any = "", timeout: float = 0.0) -> ExecResult:
        self.commands.append(command)
        self.timeouts.append(timeout)
        self.inputs.append(input)
        outcome = self.outcomes.pop(0)
        outcome = outcome(input) if callable(outcome) else outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome if isinstance(outcome, ExecResult) else ExecResult(0, outcome, "")


def says(passed: int, total: int, token: str | None = None) -> Any:
    """Return what answers as the driver does, with the word that it was given, or another one."""
    return lambda given: f"printed by the code\n\n{json.loads(given)['token'] if token is None else token} {passed} {total}\n"


@pytest.mark.parametrize(
    ("test", "outcome", "share"),
    [
        (PROGRAM, "2\n", 1.0),
        (PROGRAM, "3", 0.0),
        (PROGRAM, ExecResult(1, "2", ""), 0.0),
        (PROGRAM, ExecResult(0, "2", "", truncated=True), 0.0),
        (PROGRAM, ExecResult(0, "2", "on stderr"), 1.0),
        ("assert f()", says(1, 1), 1.0),
        ("assert f()", says(0, 1), 0.0),
        ("assert f()", says(1, 1, token="another"), 0.0),
        ("assert f()", "", 0.0),
        ("assert f()", "1 1", 0.0),
        ({"pytest": "def test_it(): ..."}, says(3, 4), 0.75),
        ({"pytest": "def test_it(): ..."}, says(0, 0), 0.0),
        (PROGRAM, OSError("its folder is gone"), 0.0),
    ],
)
async def test_one_test_is_passed_by_what_it_prints(test: Any, outcome: Any, share: float) -> None:
    sandbox = Written(outcome)
    assert await share_of_passed(sandbox, "the code", [test], 10.0) == share  # type: ignore[arg-type]
    assert sandbox.files["solution.py"] == "the code"
    assert sandbox.files.get("test_solution.py") == (test.get("pytest") if isinstance(test, dict) else None)


async def test_the_share_is_of_all_tests_and_each_has_its_own_input() -> None:
    sandbox = Written("2", "wrong", says(1, 1), says(1, 2))
    tests = [PROGRAM, {"stdout": "2"}, "assert True", {"pytest": "..."}]
    assert await share_of_passed(sandbox, "", tests, 10.0) == (1 + 0 + 1 + 0.5) / 4  # type: ignore[arg-type]
    assert sandbox.inputs[:2] == ["1", ""]
    assert sandbox.commands[:2] == [["python3", "solution.py"]] * 2
    assert all(0 < timeout <= 10.0 for timeout in sandbox.timeouts)
    asked = [json.loads(given) for given in sandbox.inputs[2:]]
    assert asked[0]["check"] == "assert True"
    assert "check" not in asked[1]
    assert asked[0]["token"] != asked[1]["token"]


async def test_what_was_passed_before_the_code_broke_its_folder_counts() -> None:
    sandbox = Written("2", OSError("its folder is gone"))
    assert await share_of_passed(sandbox, "", [PROGRAM, {"stdout": "2"}, PROGRAM], 10.0) == 1 / 3  # type: ignore[arg-type]
    sandbox = Written()
    sandbox.write_file = None  # type: ignore[assignment,method-assign]

    async def refuse(path: str, text: str) -> None:
        raise PermissionError(path)

    sandbox.write_file = refuse  # type: ignore[method-assign]
    assert await share_of_passed(sandbox, "", [PROGRAM], 10.0) == 0.0  # type: ignore[arg-type]


async def test_all_tests_share_the_time_and_what_has_none_is_not_run() -> None:
    with FakeClock() as clock:

        def takes(seconds: float) -> Any:
            return lambda given: (clock.advance(seconds), "2")[1]

        sandbox = Written(takes(4.0), takes(6.0), takes(0.0))
        assert await share_of_passed(sandbox, "", [PROGRAM] * 3, 10.0) == 2 / 3  # type: ignore[arg-type]
        assert sandbox.timeouts == pytest.approx([10.0, 6.0])


async def test_a_sandbox_that_has_ended_or_has_no_pytest_is_no_fault_of_the_code() -> None:
    with pytest.raises(SandboxError):
        await share_of_passed(Written(SandboxError("it has ended")), "", [PROGRAM], 10.0)  # type: ignore[arg-type]
    await needs_pytest(Written(""))  # type: ignore[arg-type]
    with pytest.raises(SandboxError, match="pip install pytest"):
        await needs_pytest(Written(ExecResult(1, "", "")))  # type: ignore[arg-type]


def test_the_pytest_of_this_interpreter_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    folders, variables = find_pytest()
    assert {Path(folder).name for folder in folders} >= {"pytest", "_pytest", "pluggy", "iniconfig"}
    assert all(Path(folder).exists() for folder in folders)
    assert Path(variables.pop("PYTHONPATH"), "pytest").is_dir()
    assert variables == {"PYTHONDONTWRITEBYTECODE": "1"}
    monkeypatch.setattr(code_tests.importlib.util, "find_spec", lambda name: None)
    assert find_pytest() == ([], {})
