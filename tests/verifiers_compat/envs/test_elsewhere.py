"""`generate` in other processes: the rows are those of this one, and what cannot be told to a worker is refused by name."""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from datasets import Dataset

import verifiers_compat as vf
from tests.runs.executors.players import without_drawn
from tests.verifiers_compat import packages
from tests.verifiers_compat.test_packages_on_workers import answer
from vfgym import ClientConfig
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer

PACKAGE = packages.__name__


class Groups(vf.SingleTurnEnv):
    """Its author plays groups."""

    async def run_group(self, group_inputs: Any, client: Any, model: Any, sampling_args: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Say how many there are, and on which thread."""
        said = [{"role": "assistant", "content": f"{len(group_inputs)} for {model} with {sampling_args['top_p']}"}]
        return [{"prompt": each["prompt"], "completion": said, "reward": 0.5} for each in group_inputs]


@pytest.fixture(scope="module")
def client() -> Iterator[ClientConfig]:
    with ModelServer(models={"m": answer}) as server:
        yield ClientConfig(api_base_url=server.openai_url, api_key="none")


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module whose environment a test makes."""
    made = types.ModuleType("of_this_test")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def rows(env: Any, client: Any, executor: Any = None, **kwargs: Any) -> list[Any]:
    """Evaluate on two workers in threads of this process; in its own event loop without an executor."""
    if executor is None:
        return env.evaluate_sync(client, "m", on_progress=[], use_tqdm=False, **kwargs)["outputs"]  # type: ignore[no-any-return]
    return env.evaluate_sync(client, "m", executor=executor, workers=2, use_tqdm=False, **kwargs)["outputs"]  # type: ignore[no-any-return]


@pytest.fixture
def threads() -> Iterator[concurrent.futures.Executor]:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.parametrize("independent", [False, True])
def test_rows_are_those_of_this_process(independent: bool, client: ClientConfig, threads: concurrent.futures.Executor) -> None:
    env = vf.load_environment(PACKAGE, num_tasks=3)
    env.set_kwargs(max_turns=2)
    how = {"rollouts_per_example": 2, "seed": 0, "independent_scoring": independent, "state_columns": ["prompt"], "max_concurrent": 3}
    here, there = rows(env, client, **how), rows(env, client, threads, **how)
    assert without_drawn(there) == without_drawn(here)
    assert {row["reward"] for row in there} == {0.0, 1.0}


def test_processes_load_the_environment_again(client: ClientConfig) -> None:
    env = vf.load_environment(PACKAGE, num_tasks=2)
    env.set_kwargs(max_turns=1)
    done = env.evaluate_sync(client, "m", executor="process", workers=1, use_tqdm=False, seed=1)
    assert [row["metrics"]["num_turns"] for row in done["outputs"]] == [1.0, 1.0]
    assert done["metadata"]["num_examples"] == 2


def test_inputs_that_are_given_travel_row_by_row(client: ClientConfig, threads: concurrent.futures.Executor) -> None:
    env = vf.load_environment(PACKAGE)
    given = [{"question": "1 + 1?", "answer": "2", "example_id": 7}, {"question": "2 + 2?", "answer": "4", "example_id": 3}]
    told = asyncio.run(env.generate(Dataset.from_list(given), client, "m", executor=threads, workers=2, use_tqdm=False))["outputs"]
    assert [(row["example_id"], row["answer"], row["reward"]) for row in told] == [(3, "4", 0.0), (7, "2", 1.0)]


@pytest.mark.parametrize("split", ["train", "eval"])
def test_each_split_is_played_from_its_own_tasks(
    split: Any, client: ClientConfig, threads: concurrent.futures.Executor, module: types.ModuleType
) -> None:
    sets = {
        name: Dataset.from_list([{"question": name, "answer": f"{name} {number}"} for number in range(2)]) for name in ("train", "eval")
    }
    module.load_environment = lambda: vf.SingleTurnEnv(dataset=sets["train"], eval_dataset=sets["eval"])  # type: ignore[attr-defined]
    found = rows(vf.load_environment("of_this_test"), client, threads, split=split)
    assert [row["answer"] for row in found] == [f"{split} 0", f"{split} 1"]


def test_an_authors_run_group_plays_whole_groups(
    client: ClientConfig, threads: concurrent.futures.Executor, module: types.ModuleType
) -> None:
    module.load_environment = lambda: Groups(dataset=Dataset.from_list([{"question": "q", "answer": "a"}] * 3))  # type: ignore[attr-defined]
    env, how = vf.load_environment("of_this_test"), {"rollouts_per_example": 2, "sampling_args": {"top_p": 0.0}, "max_concurrent": 4}
    here, there = rows(env, client, **how), rows(env, client, threads, **how)
    assert without_drawn(there) == without_drawn(here)
    assert [row["completion"][0]["content"] for row in there] == ["2 for m with 0.0"] * 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"client": object()}, "client must be a ClientConfig, got an object of object"),
        ({"env": packages.load_environment()}, r"must be loaded by its id \(vf.load_environment\), got an object of ToolEnv"),
        ({"attributes": {"own": object()}}, "attributes must have a form in JSON, and 'own' is, or has in it, an object of object"),
        ({"sampling_args": {"stop": {1}}}, "sampling_args must have a form in JSON, and 'stop' is, or has in it, an object of set"),
        ({"env_client": True}, "an env_client plays the rollouts elsewhere, and so does an executor"),
        ({"executor": "local"}, "workers=2 says how many processes play"),
    ],
)
def test_what_cannot_be_told_to_a_worker_is_refused(change: dict[str, Any], message: str, client: ClientConfig) -> None:
    env = change.pop("env", None) or vf.load_environment(PACKAGE)
    env.set_kwargs(**change.pop("attributes", {}))
    if change.pop("env_client", False):
        env.env_client = Groups(dataset=Dataset.from_list([{"question": "q"}]))
    how = {"client": client, "executor": "process", **change}
    with pytest.raises(ConfigurationError, match=message):
        env.evaluate_sync(model="m", workers=2, use_tqdm=False, **how)


def test_inputs_without_a_form_in_json_are_refused(client: ClientConfig) -> None:
    env, given = vf.load_environment(PACKAGE), [{"question": "q", "answer": "a", "info": {"made": object()}}]
    with pytest.raises(ConfigurationError, match=r"the input with example_id 0 must have a form in JSON, and 'info' is, or has in it"):
        env.generate_sync(given, client, "m", executor="process", use_tqdm=False)
