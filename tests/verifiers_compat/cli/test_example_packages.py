"""The example packages can be installed, `vf-eval` runs them against a server on this machine, and they can be stepped."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
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


@pytest.mark.usefixtures("importable")
def test_the_taskset_takes_its_configuration_and_can_be_stepped() -> None:
    env: Any = vf.load_environment("price-list", config={"taskset": {"num_tasks": 2, "max_fruits": 1}, "harness": {"max_turns": 3}})
    assert (len(env.get_dataset()), env.harness.max_turns) == (2, 3)
    observation, info = env.reset(seed=0)
    [tool] = info["tools"]
    assert list(tool["function"]["parameters"]["properties"]) == ["fruit"]
    fruit = observation[-1]["content"].removesuffix("?").partition(": ")[2]
    observation, *_ = env.step(calling(("price", {"fruit": fruit})))
    outcome = env.step(f"Together: {observation[-1]['content']}")
    assert (outcome.reward, outcome.terminated, outcome.info["metrics"]) == (1.1, True, {"correct": 1.0, "frugal": 1.0, "lookups": 1.0})
    with pytest.raises(ValueError, match="max_fruit"):
        vf.load_environment("price-list", config={"taskset": {"max_fruit": 1}})
    env.close()


@pytest.mark.usefixtures("importable")
def test_the_model_of_a_command_is_whoever_steps_the_environment() -> None:
    env: Any = vf.load_environment("checked-answers", num_tasks=1)
    observation, _ = env.reset(seed=0)
    assert observation[-1]["content"] == "What is 7 + 13?"
    observation, reward, terminated, *_ = env.step("21")
    assert (observation[-1]["content"], reward, terminated) == ("Check this, and end with the right number.", 0.0, False)
    outcome = env.step("It is 20.")
    assert (outcome.reward, outcome.terminated, outcome.info["stop_condition"]) == (1.0, True, "command_completed")
    assert json.loads(json.dumps(env.state["command"]))["stdout"] == "It is 20.\n"
    env.close()
