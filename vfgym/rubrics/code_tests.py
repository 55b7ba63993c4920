"""Tests of a model's code: what a dataset may ask for, and running them in a sandbox. Nothing of the code runs in this process."""

from __future__ import annotations

import importlib.util
import json
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import Sandbox

_DRIVER = r"""
import json, os, sys, types
asked, write, leave = json.load(sys.stdin), os.write, os._exit
passed, total = 0, 1
try:
    if "check" in asked:
        module = sys.modules["solution"] = types.ModuleType("solution")
        with open("solution.py", encoding="utf-8") as file:
            exec(compile(file.read(), "solution.py", "exec"), module.__dict__)
        exec(compile(asked["check"], "<test>", "exec"), module.__dict__)
        passed = 1
    else:
        import pytest
        outcomes = {}
        class Outcomes:
            def pytest_runtest_logreport(self, report):
                outcomes[report.nodeid] = outcomes.get(report.nodeid, True) and report.outcome == "passed"
        code = pytest.main(["-q", "-p", "no:cacheprovider", "--tb=no", "test_solution.py"], plugins=[Outcomes()])
        if code in (0, 1):
            passed, total = sum(outcomes.values()), len(outcomes)
except BaseException:
    pass
write(1, ("\n%s %d %d\n" % (asked["token"], passed, total)).encode())
leave(0)
"""
"""Runs in the sandbox: what it prints last, with a word that only this run has, says how many tests passed. A code that ends the
interpreter before says nothing; one that searches its interpreter for the word can say what it likes."""

_PYTEST = ("pytest", "_pytest", "py.py", "iniconfig", "packaging", "pluggy", "pygments")
"""The packages and modules that pytest consists of."""


def read_tests(info: Any) -> list[Any]:
    """Return the tests that a task has in ``info["tests"]``.

    Raises:
        ConfigurationError: If there are none, or one is nothing that can be run.
    """
    tests = info.get("tests") if isinstance(info, Mapping) else None
    if isinstance(tests, str):
        try:
            tests = parse_json(tests)
        except ValueError as error:
            raise ConfigurationError(f'info["tests"] must be a list of tests, or its JSON, which this is not: {error}') from None
    if isinstance(tests, Mapping):
        tests = [tests]
    if not isinstance(tests, list) or not tests:
        raise ConfigurationError(f'info["tests"] must be a list of tests that is not empty, or its JSON, got {tests!r}')
    for test in tests:
        is_text = isinstance(test, Mapping) and all(isinstance(test[name], str) for name in ("stdin", "stdout", "pytest") if name in test)
        if not isinstance(test, str) and not (is_text and ("stdout" in test or "pytest" in test)):
            raise ConfigurationError(f'a test must be {{"stdin", "stdout"}}, lines with an assert, or {{"pytest": text}}, got {test!r}')
    return tests


def find_pytest() -> tuple[list[str], dict[str, str]]:
    """Return where the pytest that is installed here lies, and the variables by which it is found; nothing where there is none."""
    found = importlib.util.find_spec("pytest")
    if found is None or found.origin is None:
        return [], {}
    site = Path(found.origin).parents[1]
    folders = [str(site / name) for name in _PYTEST if (site / name).exists()]
    return folders, {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}


async def share_of_passed(sandbox: Sandbox, code: str, tests: list[Any], seconds: float) -> float:
    """Run tests of a code in a sandbox that nobody else has, in order, and return the share that passed.

    Args:
        sandbox: Where they run.
        code: A program in Python.
        tests: See `read_tests`.
        seconds: How long all may take together; those that had no time have not passed.

    Raises:
        SandboxError: If the sandbox has ended.
    """
    deadline, passed = time.monotonic() + seconds, 0.0
    try:
        await sandbox.write_file("solution.py", code)
        for test in tests:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            is_program = not isinstance(test, str) and "stdout" in test
            passed += await (_run_program(sandbox, test, left) if is_program else _run_checks(sandbox, test, left))
    except OSError:  # the code has made its own folder unusable
        pass
    return passed / len(tests)


async def _run_program(sandbox: Sandbox, test: Mapping[str, str], seconds: float) -> float:
    """Run the code as a program, and compare what it prints."""
    result = await sandbox.exec(["python3", "solution.py"], input=test.get("stdin", ""), timeout=seconds)
    return float(result.exit_code == 0 and not result.truncated and normalize(result.stdout) == normalize(test["stdout"]))


async def _run_checks(sandbox: Sandbox, test: Any, seconds: float) -> float:
    """Import the code, and run lines with an assert, or pytest."""
    asked = {"token": secrets.token_hex(16)}
    if isinstance(test, str):
        asked["check"] = test
    else:
        await sandbox.write_file("test_solution.py", test["pytest"])
    result = await sandbox.exec(["python3", "-c", _DRIVER], input=json.dumps(asked), timeout=seconds)
    last = result.stdout.rstrip("\n").rpartition("\n")[2].split(" ")
    if len(last) != 3 or last[0] != asked["token"]:
        return 0.0
    passed, total = int(last[1]), int(last[2])
    return passed / total if total else 0.0


def normalize(output: str) -> list[str]:
    r"""Return the lines of an output as they are compared: without white space at their ends, and without empty ones at the end.

    >>> normalize("1 \n\n2\n\n") == normalize("1\n\n2")
    True
    """
    lines = [line.rstrip() for line in output.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


async def needs_pytest(sandbox: Sandbox) -> None:
    """Check that pytest is there.

    Raises:
        SandboxError: If it is not.
    """
    if (await sandbox.exec(["python3", "-c", "import pytest"])).exit_code != 0:
        raise SandboxError("tests for pytest need it in the sandbox: pip install pytest, or give a SandboxSpec(python=...) that has it")
