"""The example packages can be installed, `vf-eval` runs them against a server on this machine, and they can be stepped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.models import calling
from verifiers_compat.cli.packages.check import check_target
from verifiers_compat.cli.packages.targets import open_target
from verifiers_compat.cli.requirements import requirements_of
from vfgym.model_server import ModelRequest, ModelServer

FOLDER = Path(__file__).parents[3] / "examples" / "environments"


def shopper(request: ModelRequest) -> Any:
    """Look up the price of every fruit in the question, then add them up."""
    if request.messages[-1]["role"] == "user":
        fruits = request.messages[-1]["content"].removesuffix("?").partition(": ")[2].split(", ")
        return calling(*(("price", {"fruit": fruit}) for fruit in fruits))
    return f"{sum(int(message['content']) for message in request.messages if message['role'] == 'tool')}"


def careful(request: ModelRequest) -> str:
    """Be wrong by one at first, and right when asked to check."""
    words = request.messages[0]["content"].removesuffix("?").split()
    total = int(words[-3]) + int(words[-1])
    return f"It is {total if len(request.messages) > 1 else total + 1}."


EVALUATIONS = """
api_base_url = "{url}"

[[eval]]
env_id = "price-list"
model = "shopper"
num_examples = 3

[eval.taskset]
num_tasks = 3

[[eval]]
env_id = "checked-answers"
model = "careful"
"""


@pytest.fixture
def importable(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = set(sys.modules)
    for folder in ("price_list", "checked_answers"):
        monkeypatch.syspath_prepend(str(FOLDER / folder))
    yield
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in ("price_list", "checked_answers"):
            del sys.modules[name]


@pytest.mark.usefixtures("importable")
def test_they_are_evaluated(workspace: Path, vf_eval: Callable[..., Any]) -> None:
    with ModelServer({"shopper": shopper, "careful": careful}) as server:
        (workspace / "run.toml").write_text(EVALUATIONS.format(url=server.openai_url))
        done = vf_eval("run.toml")
    assert done.code == 0, done.err
    for line in ("reward: avg - 1.100", "frugal: avg - 1.000", "reward: avg - 1.000", "changed: avg - 1.000", "command_completed: 1.0"):
        assert line in done.out


@pytest.mark.parametrize(("name", "module"), [("price_list", "price_list.py"), ("checked_answers", "checked_answers/__init__.py")])
def test_they_can_be_installed(name: str, module: str, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel of each has its code and says what it requires, and everything that it uses is here."""
    import hatchling.build

    monkeypatch.chdir(FOLDER / name)
    wheel = workspace / hatchling.build.build_wheel(str(workspace))
    with open_target(str(wheel), workspace) as target:
        assert target.root.joinpath(*module.split("/")).is_file()
        assert check_target(target).is_complete
    assert requirements_of(wheel).name == name.replace("_", "-")
