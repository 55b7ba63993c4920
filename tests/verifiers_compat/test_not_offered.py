"""Every documented name that is not offered says so, with a true reason, wherever it was documented: in packages and in submodules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.programs import run_python
from verifiers_compat.not_offered import REASONS, find_reason

REQUESTS = {
    "from verifiers.envs.integrations.browser_env import BrowserEnv": "browsers of a hosted service",
    "from verifiers.envs.integrations import browser_env": "browsers of a hosted service",
    "from verifiers.envs.experimental.harbor_env import HarborMCPServer": "bring MCP servers are not offered",
    "from verifiers.envs.experimental.composable.tasksets.swe import make_swe_taskset": "a SandboxTaskSet with your rows",
    "from verifiers.envs.integrations.browser_env.modes.base import BrowserMode": "browsers of a hosted service",
    "from verifiers.v1.packages.harnesses.pi import Pi": "in verifiers.v1 itself",
    "from verifiers.v1.utils import sandbox_utils": "state.get_sandbox()",
    "from verifiers.scripts.tui import main": "load_results",
    "from verifiers.serve import EnvServer": "in the process that plays them",
    "from verifiers import GRPOTrainer": "no trainer is part of this package",
    "import verifiers as vf; vf.BrowserEnv": "browsers of a hosted service",
    "from verifiers_compat.envs.integrations import browser_env": "browsers of a hosted service",
}
"""Ways to ask for what is not offered, and words of the reason."""

ASK_FOR_ALL = """
    import importlib, json, sys
    from verifiers_compat import install
    install()
    from verifiers_compat.not_offered import REASONS
    found, requests = {}, {code: code for code in json.load(sys.stdin)}
    for path in REASONS:
        module, _, name = f"verifiers.{path}".rpartition(".")
        requests |= {path: f"from {module} import {name}", f"import {path}": f"import verifiers.{path}"}
    for key, code in requests.items():
        try:
            exec(code, {})
            found[key] = "it is there"
        except Exception as error:
            found[key] = f"{type(error).__name__}: {error}"
    print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """What each name answers that is asked for as ``from verifiers... import name``, and as a module."""
    return json.loads(run_python(ASK_FOR_ALL, check=True, input=json.dumps(list(REQUESTS))).stdout)


def test_every_name_that_is_not_offered_says_why(answers: dict[str, str]) -> None:
    """With `ImportError`, so that packages that can do without it go on; and nothing that is offered has a reason not to be."""
    for path in REASONS:
        module = path.rpartition(".")[0]
        reason = find_reason(module) or REASONS[path]  # of a module that is not offered, each name has the module's reason
        assert answers[path].startswith(("ImportError: verifiers.", "ModuleNotFoundError: verifiers.")), path
        assert answers[path].endswith(f" is not offered: {reason}"), path


def test_modules_that_are_not_offered_say_why(answers: dict[str, str]) -> None:
    for path in (
        "envs.integrations.browser_env",
        "envs.experimental.opencode_rlm_env",
        "scripts.tui",
        "cli.tui",
        "serve",
        "rl",
        "v1.packages",
    ):
        assert answers[f"import {path}"] == f"ModuleNotFoundError: verifiers.{path} is not offered: {REASONS[path]}"


def test_the_reason_is_that_of_the_name(answers: dict[str, str]) -> None:
    """Below a module that is not offered, too; a viewer is not a sandbox."""
    for code, words in REQUESTS.items():
        assert "is not offered: " in answers[code]
        assert words in answers[code]


def test_what_was_never_there_has_no_reason() -> None:
    assert find_reason("envs.no_such_env") is None
    assert find_reason("") is None
    assert find_reason("envs.browser_env_of_mine") is None


def test_the_guide_names_the_classes_that_are_not_offered() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "coming_from_verifiers.md").read_text()
    section = guide.partition("## What is not here")[2]
    missing = [name for name in REASONS if name[0].isupper() and f"`{name}`" not in section]
    assert missing == []
