"""Packages that cannot be loaded: ``vf-eval`` and ``load_environment`` say which, what failed, where, and what to do, in one line."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.alias import install
from verifiers_compat.utils.config_utils import MissingKeyError
from verifiers_compat.utils.env_utils import EnvironmentLoadError, load_environment
from vfgym.errors import ConfigurationError

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
def test_the_error_names_the_package_and_what_to_do(case: str, workspace: Path, closed_port: int, vf_eval: Callable[..., Any]) -> None:
    code, kind, words = CASES[case]
    (workspace / "modules" / "broken_env.py").write_text("import verifiers as vf\n" + code.replace("{port}", str(closed_port)))
    install()
    with pytest.raises(kind) as caught:
        load_environment("broken-env")
    done = vf_eval("broken-env", "-m", "none", "-b", "http://127.0.0.1:1/v1")
    assert done.code == 2
    assert done.err == f"error: {caught.value}\n"
    assert "'broken-env'" in done.err
    for word in words:
        assert word in done.err


def test_a_data_set_that_is_built_later_is_reported_alike(workspace: Path, closed_port: int, vf_eval: Callable[..., Any]) -> None:
    rows = f"def rows():\n    {FETCH.format(port=closed_port)}\n"
    code = f"import verifiers as vf\n{rows}def load_environment():\n    return vf.SingleTurnEnv(dataset=rows)"
    (workspace / "modules" / "later_env.py").write_text(code)
    done = vf_eval("later-env", "-m", "none", "-b", "http://127.0.0.1:1/v1")
    assert done.code == 2
    assert done.err.startswith("error: the dataset of 'later-env' cannot be built: URLError: ")
    assert "(later_env.py:4)" in done.err
    assert done.err.count("\n") == 1


def test_the_traceback_is_there_for_those_who_ask(workspace: Path, vf_eval: Callable[..., Any]) -> None:
    (workspace / "modules" / "broken_env.py").write_text("1 / 0")
    done = vf_eval("broken-env", "-m", "none", "--debug")
    assert done.code == 1
    assert "ZeroDivisionError" in done.err
    assert "Traceback" in done.err
