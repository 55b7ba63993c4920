"""Packages that cannot be loaded: ``load_environment`` says which, what failed, where, and what to do, in one line."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from verifiers_compat.utils.config_utils import MissingKeyError
from verifiers_compat.utils.env_utils import load_environment
from verifiers_compat.utils.load_failures import EnvironmentLoadError, describe_failure, report_failures
from vfgym.errors import ConfigurationError, ToolError

FETCH = "import urllib.request\n    urllib.request.urlopen('http://127.0.0.1:{port}/data')"

CASES = {
    "fails": ("def load_environment():\n    return {}['x']", EnvironmentLoadError, ["loading", "KeyError: 'x' (broken_env.py:3)"]),
    "fails when it is imported": ("\n1 / 0", EnvironmentLoadError, ["importing", "ZeroDivisionError: division by zero (broken_env.py:3)"]),
    "says more than a line": (
        "def load_environment():\n    raise RuntimeError('one\\n\\n  two')",
        EnvironmentLoadError,
        ["RuntimeError: one two (broken_env.py:3)"],
    ),
    "needs a key": (
        "def load_environment():\n    vf.ensure_keys(['NO_SUCH_KEY', 'NOR_THIS'])",
        MissingKeyError,
        ["not set, or empty: NO_SUCH_KEY, NOR_THIS", "export NO_SUCH_KEY=... NOR_THIS=..."],
    ),
    "needs data that cannot be reached": (
        f"def load_environment():\n    {FETCH}",
        EnvironmentLoadError,
        ["URLError", "Connection refused", "(broken_env.py:4)", "from the network", "HF_HUB_OFFLINE=1"],
    ),
    "uses a module that is not offered": (
        "from verifiers.envs.integrations.browser_env import BrowserEnv",
        ConfigurationError,
        ["importing", "verifiers.envs.integrations.browser_env is not offered: it drives browsers", "(broken_env.py:2)"],
    ),
    "uses a name that is not offered": (
        "def load_environment():\n    return vf.BrowserEnv()",
        ConfigurationError,
        ["loading", "verifiers.BrowserEnv is not offered: ", "Use vf.ToolEnv", "(broken_env.py:3)"],
    ),
    "imports what is not installed": (
        "import no_such_module",
        ConfigurationError,
        ["No module named 'no_such_module' (broken_env.py:2)", "`vf-install broken-env` installs what it imports"],
    ),
    "is set up in a way that cannot work": (
        "def load_environment():\n    return vf.XMLParser([])",
        ConfigurationError,
        ["loading the environment 'broken-env' failed"],
    ),
}


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.usefixtures("vf")
def test_the_error_names_the_package_and_what_to_do(case: str, write_module: Callable[..., None], closed_port: int) -> None:
    code, kind, words = CASES[case]
    write_module("broken_env", "import verifiers as vf\n" + code.replace("{port}", str(closed_port)))
    with pytest.raises(kind) as caught:
        load_environment("broken-env")
    told = str(caught.value)
    assert "'broken-env'" in told
    assert "\n" not in told
    for word in words:
        assert word in told
    assert caught.value.__cause__ is not None or kind is MissingKeyError


def test_only_what_an_environments_code_raises_is_turned() -> None:
    """An error of the library passes, as what ends a program does; the cause is what was raised."""
    for error in (ToolError("x"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)) as caught, report_failures("an-env"):
            raise error
        assert caught.value is error
    cause = KeyError("x")
    with (
        pytest.raises(EnvironmentLoadError, match=r"^doing the environment 'an-env' failed: KeyError: 'x'$") as failed,
        report_failures("an-env", "doing"),
    ):
        raise cause
    assert failed.value.__cause__ is cause


def test_a_failure_is_one_line_of_bounded_length() -> None:
    assert describe_failure(ValueError(""), "an-env") == "ValueError"
    assert describe_failure(ValueError("one.\n two. "), "an-env") == "ValueError: one. two"
    assert len(describe_failure(ValueError("word " * 1000), "an-env")) < 600
    network = ValueError("mine")
    network.__cause__ = ConnectionRefusedError("no")
    assert "HF_HUB_OFFLINE=1" in describe_failure(network, "an-env")
    assert "HF_HUB_OFFLINE=1" not in describe_failure(OSError("no such file"), "an-env")
