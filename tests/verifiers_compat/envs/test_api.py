"""`RolloutAPI`: `generate`, `evaluate`, `run_rollout` and `run_group`, their clients and where they can be called."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROW, ROWS, Talk, asking, four, look, right, single
from tests.verifiers_compat.models import Counting, Endpoint, Model, response
from verifiers_compat.utils.thread_utils import register_executor, unregister_executor
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.model_server import ModelServer
from vfgym.testing import ScriptedClient


@pytest.mark.parametrize("independent", [False, True])
def test_endpoints_take_turns_by_group_or_by_rollout_and_are_closed(monkeypatch: pytest.MonkeyPatch, independent: bool) -> None:
    asked: list[tuple[str, str]] = []
    made: list[Endpoint] = []

    def resolve(config: vf.ClientConfig, *args: Any) -> Endpoint:
        made.append(Endpoint(config.api_base_url, asked))
        return made[-1]

    monkeypatch.setattr("verifiers_compat.envs.api.resolve_client", resolve)
    config = vf.ClientConfig(endpoint_configs=[{"api_base_url": "http://a"}, {"api_base_url": "http://b"}])
    results = four().evaluate_sync(config, "m", rollouts_per_example=2, independent_scoring=independent, max_concurrent=1)
    assert Counter(url for url, _ in asked) == {"http://a": 4, "http://b": 4}
    by_question = {question: {url for url, each in asked if each == question} for _, question in asked}
    assert all(len(urls) == (2 if independent else 1) for urls in by_question.values())
    assert [client.closed for client in made] == [True, True]
    assert results["metadata"]["base_url"] == "http://a,http://b"


def test_a_client_that_was_given_is_not_closed_and_sampling_args_are_merged() -> None:
    seen: list[Any] = []
    client = Counting(lambda number, state: seen.append(state["sampling_args"]) or "1")
    env = four(sampling_args={"temperature": 0.5, "extra_body": {"a": 1}})
    metadata = env.evaluate_sync(client, "m", {"top_p": 0.9, "extra_body": {"b": 2}}, num_examples=1)["metadata"]
    assert seen == [metadata["sampling_args"]] == [{"n": 1, "temperature": 0.5, "top_p": 0.9, "extra_body": {"b": 2}}]
    assert not client.closed


async def test_sync_twins_work_inside_a_running_loop_and_in_threads() -> None:
    assert four().evaluate_sync(Model(), "m")["metadata"]["avg_reward"] == 0.25
    client = Model(lambda number, state: RuntimeError("from inside"))
    with pytest.raises(RuntimeError, match="from inside"):
        single().evaluate_sync(client, "m", strict=True)
    assert client.calls == 1
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(four().evaluate_sync, Model(), "m") for _ in range(4)]
    assert [each.result().metadata["avg_reward"] for each in found] == [0.25] * 4


async def test_run_rollout_and_run_group_take_older_and_newer_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.0)
    env = four()
    row, client, limit = env.get_dataset()[1], ScriptedClient(["1"]), asyncio.Semaphore(1)
    assert (await env.run_rollout(row, client, "m", {"n": 1}, max_retries=1, state_columns=["model"]))["model"] == "m"
    assert (await env.run_rollout(limit, row, client, "m", {"n": 1}))["reward"] == 1.0
    assert not limit.locked()
    seen: list[Any] = []

    def look_closely(number: int, state: Any) -> Any:
        seen.append((limit.locked(), state["sampling_args"].get("temperature")))
        return vf.InfraError("down") if number == 0 else "1"

    for play in (
        env.run_rollout(limit, row, Model(look_closely), "m", {"temperature": 0.5}),
        env.run_rollout(row, Model(look_closely), "m", {"temperature": 0.0}, 1, sem=limit),
        env.run_group([row], Model(look_closely), "m", {"temperature": 0.2}, 1, sem=limit),
    ):
        await play
    assert seen == [(True, 0.5), (True, 0.0), (True, 0.0), (True, 0.2), (True, 0.2)]
    outputs = await env.run_group([row, row], client, "m", state_columns=["advantage"])
    assert [(output["rollout"], output["advantage"]) for output in outputs] == [(0, 0.0), (1, 0.0)]
    with pytest.raises(ConfigurationError, match="example_id"):
        await env.run_group([row, env.get_dataset()[2]], client, "m")


def test_scoring_can_be_left_out() -> None:
    env = four(score_rollouts=False)
    output = env.evaluate_sync(Model(), "m", num_examples=1)["outputs"][0]
    assert (output["reward"], output["metrics"]) == (0.0, {})
    env.set_kwargs(score_rollouts=True)
    assert "right" in env.evaluate_sync(Model(), "m", num_examples=1)["outputs"][0]["metrics"]


def test_the_default_directory_has_a_name_of_its_own_for_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        four(env_id="my-env").evaluate_sync(Model(), "org/model", num_examples=1, save_results=True)
    assert len(list((tmp_path / "outputs" / "evals" / "my-env--org--model").iterdir())) == 2


def test_rows_that_share_an_id_are_one_example_in_evaluate_too(tmp_path: Path) -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": name, "example_id": number} for name, number in (("a", 1), ("b", 1), ("c", 2))])
    for path in (None, tmp_path):
        outputs = env.evaluate_sync(Model(), "m", independent_scoring=True, results_path=path)["outputs"]
        told = [(output["example_id"], output["rollout"], output["prompt"][0]["content"]) for output in outputs]
        assert told == [(1, 0, "a"), (1, 1, "b"), (2, 0, "c")]


def test_the_number_of_rollouts_at_once_reaches_registered_executors() -> None:
    executor, env = ThreadPoolExecutor(max_workers=1), four()
    register_executor("test of concurrency", executor)
    try:
        env.set_kwargs(concurrency=7)
        assert (executor._max_workers >= 7, env.concurrency) == (True, 7)
    finally:
        unregister_executor("test of concurrency")
        executor.shutdown()


def test_interleaved_rollouts_ask_the_token_client_and_no_other_choice_is_lost() -> None:
    env = four()
    assert env.client_type is None
    env.set_kwargs(interleaved_rollouts=True)
    assert (env.interleaved_rollouts, env.client_type) == (True, "openai_chat_completions_token")
    env.set_interleaved_rollouts(False)
    assert env.client_type is None
    env.client_type = "anthropic_messages"
    env.set_interleaved_rollouts(False)
    assert env.client_type == "anthropic_messages"


async def test_results_that_cannot_be_pushed_are_returned_and_the_reason_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(outputs: Any, name: str | None) -> str:
        raise OSError(f"no right to write to {name}")

    monkeypatch.setattr("verifiers_compat.envs.api.push_to_hub", refuse)
    results = await four().evaluate(Model(), "m", push_to_hf_hub=True, hf_hub_dataset_name="me/mine")
    assert (len(results["outputs"]), "no right to write to me/mine" in caplog.text) == (4, True)


@pytest.mark.parametrize(("threshold", "passes"), [(0.4, 0.0), (0.3, 1.0), (0.0, 1.0)])
async def test_pass_at_k_counts_from_the_threshold_of_the_environment(threshold: float, passes: float) -> None:
    env = vf.SingleTurnEnv(dataset=[ROW], rubric=vf.Rubric(lambda: 0.3), pass_threshold=threshold)
    metadata = (await env.evaluate(ScriptedClient(["x"]), "m", rollouts_per_example=2))["metadata"]
    assert (metadata["pass_at_k"], metadata["pass_threshold"]) == ({"1": passes, "2": passes}, threshold)


async def test_there_is_no_server_to_play_on() -> None:
    env = single()
    with pytest.raises(ValueError, match="env_client must be an object with the async methods run_rollout and run_group, got object"):
        env.env_client = object()
    row = dict(env.get_dataset()[0])
    assert (await env.run_rollout(row, Model(), "m", env_client=None))["error"] is None
    for play in (env.run_rollout(row, Model(), "m", env_client=object()), env.run_group([row], Model(), "m", env_client=object())):  # type: ignore[arg-type]
        with pytest.raises(vf.Error, match="env_client"):
            await play


async def test_a_client_of_ones_own() -> None:
    seen: list[Any] = []
    native = SimpleNamespace(closed=False)

    class Own(vf.Client[Any, list[Any], dict[str, Any], dict[str, Any]]):
        def setup_client(self, config: vf.ClientConfig) -> Any:
            return native

        async def to_native_prompt(self, messages: vf.Messages) -> tuple[list[Any], dict[str, Any]]:
            return [dict(message) for message in messages], {"extra": 1}

        async def to_native_tool(self, tool: vf.Tool) -> dict[str, Any]:
            return {"tool": tool.name}

        async def get_native_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any) -> Any:
            seen.append((prompt[-1]["content"], model, sampling_args["temperature"], tools, kwargs))
            return {"text": "2"}

        async def raise_from_native_response(self, response: dict[str, Any]) -> None:
            if response["text"] is None:
                raise vf.EmptyModelResponseError("nothing")

        async def from_native_response(self, native: dict[str, Any]) -> vf.Response:
            return response(native["text"], usage=(3, 1))

        async def close(self) -> None:
            native.closed = True

    given, configured = Own(native), Own(vf.ClientConfig(extra_headers_from_state={"X-Id": "example_id"}))
    env = vf.ToolEnv(tools=[look], dataset=[ROW], rubric=vf.Rubric(right))
    for client in (given, configured):
        assert client.client is native
        (output,) = (await env.evaluate(client, "m", {"temperature": 0.5}))["outputs"]
        assert (output["error"], output["reward"], output["token_usage"]["input_tokens"]) == (None, 1.0, 3)
    *told, kwargs = seen[-1]
    assert told == ["1 + 1?", "m", 0.5, [{"tool": "look"}]]
    assert (kwargs["extra"], kwargs["state"]["example_id"], kwargs["extra_headers"]) == (1, 0, {"X-Id": "0"})
    await given.close()
    assert native.closed


def test_older_limits_are_understood() -> None:
    at_once = most = 0

    async def scored(state: vf.State) -> float:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return 1.0

    env = vf.SingleTurnEnv(dataset=ROWS, rubric=vf.Rubric(scored))
    for options, expected in (
        ({"max_concurrent_generation": 2, "max_concurrent_scoring": 1}, (2, 1)),
        ({"max_concurrent_generation": 2, "max_concurrent": 3, "max_concurrent_scoring": None}, (3, 3)),
    ):
        most, client = 0, Counting()
        env.evaluate_sync(client, "m", independent_scoring=True, use_tqdm=False, save_every=1, interleave_scoring=True, **options)
        assert (client.most_at_once, most) == expected
    with pytest.raises(UnknownArgument, match="Did you mean `max_concurrent`"):
        env.evaluate_sync(Counting(), "m", max_concurent=2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"num_examples": 2, "rollouts_per_example": 2}, [(0, 0), (0, 1), (1, 0), (1, 1)]),
        *(({"num_examples": number}, [(0, 0), (1, 0), (2, 0)]) for number in (-1, 0, 9)),
        ({"split": "train"}, [(0, 0), (1, 0), (2, 0), (3, 0)]),
        ({"example_ids": iter([2, 0])}, [(0, 0), (2, 0)]),
        ({"split": "train", "example_ids": [3]}, [(3, 0)]),
        ({"example_ids": []}, "example_ids"),
        ({"example_ids": [9]}, "9"),
    ],
)
def test_evaluate_plays_the_split_the_number_and_the_ids_that_are_asked_for(options: dict[str, Any], expected: Any) -> None:
    env = vf.SingleTurnEnv(dataset=ROWS, eval_dataset=ROWS[:3])
    if isinstance(expected, str):
        with pytest.raises(ConfigurationError, match=expected):
            env.evaluate_sync(Model(), "m", **options)
        return
    outputs = env.evaluate_sync(Model(), "m", **options)["outputs"]
    assert [(output["example_id"], output["rollout"]) for output in outputs] == expected


def test_a_seed_replays_the_random_numbers_of_each_rollout() -> None:
    env = vf.SingleTurnEnv(dataset=ROWS[:2], rubric=vf.Rubric(lambda state: float(state.rng.random())))

    def rewards(seed: int | None) -> list[float]:
        results = env.evaluate_sync(Model(), "m", rollouts_per_example=2, seed=seed)
        assert results["metadata"].get("seed") == seed
        return [output["reward"] for output in results["outputs"]]

    assert rewards(0) == rewards(0)
    assert len({*rewards(0), *rewards(1), *rewards(None), *rewards(None)}) == 16


def test_a_run_and_each_rollout_stop_at_their_limits() -> None:
    results = four().evaluate_sync(Model(), "m", limits={"requests": 2}, max_concurrent=1)
    assert (len(results["outputs"]), "requests" in str(results["metadata"]["stopped_by"])) == (2, True)
    results = Talk(dataset=[ROW]).evaluate_sync(Model(), "m", limits={"requests": 9}, limits_each={"turns": 2})
    assert (results["outputs"][0]["metrics"]["num_turns"], results["metadata"].get("stopped_by")) == (2.0, None)


async def test_clients_are_made_for_the_api_and_the_endpoints_that_are_configured() -> None:
    """An environment says which API is spoken unless the client does; those that take turns know with whom."""
    env = single()
    env.client_type = "openai_completions"
    for given, expected in (({}, vf.OpenAICompletionsClient), ({"client_type": "openai_chat_completions"}, vf.OpenAIChatCompletionsClient)):
        [client], made = env._resolve_clients(asking("http://localhost:1/v1", **given))
        assert (type(client), made) == (expected, [client])
        await client.close()
    config = vf.ClientConfig(endpoint_configs=[{"api_base_url": f"http://localhost:{port}/v1"} for port in (1, 2)])
    clients, made = env._resolve_clients(config)
    assert clients is made
    assert [client.taking_turns for client in clients] == ["http://localhost:1/v1,http://localhost:2/v1"] * 2  # type: ignore[attr-defined]
    for client in clients:
        await client.close()


async def test_a_client_of_the_openai_sdk_is_asked_and_a_synchronous_one_leaves_no_connection_open() -> None:
    env = single({"question": "2", "answer": "2"})
    with ModelServer() as server:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="k") as client:
            for each in (client, vf.OpenAIChatCompletionsClient(client)):
                assert (await env.evaluate(each, model="echo"))["metadata"]["avg_reward"] == 1.0
        with OpenAI(base_url=server.openai_url, api_key="k") as client:
            assert (await env.evaluate(client, model="echo"))["metadata"]["avg_reward"] == 1.0
    gc.collect()  # what was not closed warns, which is an error here


def test_groups_are_played_and_scored_as_wholes_unless_scoring_is_independent() -> None:
    def size(states: list[Any]) -> list[float]:
        return [float(len(states))] * len(states)

    env = vf.SingleTurnEnv(dataset=[ROW], rubric=vf.Rubric(size))
    row = env.get_dataset()[0]
    for results in (env.evaluate_sync(Model(), "m", rollouts_per_example=2), env.generate_sync([row, row], Model(), "m")):
        assert [(output["rollout"], output["reward"]) for output in results["outputs"]] == [(0, 2.0), (1, 2.0)]
    with pytest.raises(
        ConfigurationError, match=r"^size scores whole groups, so rollouts cannot be scored alone: leave out independent_sco"
    ):
        env.evaluate_sync(Model(), "m", independent_scoring=True)
