"""`generate` and `evaluate`: groups, limits, retries, callbacks, clients in turn, errors, results."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

import verifiers_compat as vf
from tests.verifiers_compat import models
from tests.verifiers_compat.models import calling, response, texts
from vfgym import Client, ProceduralTasks
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.results import load_results
from vfgym.testing import ModelServer, ScriptedClient

ROWS = [{"question": f"question {index}", "answer": str(index)} for index in range(4)]


def right(completion: vf.Messages, answer: str) -> float:
    return float(completion[-1].content == answer)


def single(rows: Any = ROWS, **kwargs: Any) -> vf.SingleTurnEnv:
    return vf.SingleTurnEnv(dataset=rows, rubric=vf.Rubric(right), **kwargs)


class Model(models.Model):
    """Counts how many calls are under way at once."""

    at_once = most_at_once = 0
    closed = False

    async def get_response(self, *args: Any, **kwargs: Any) -> vf.Response:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            for _ in range(3):
                await asyncio.sleep(0)
            return await super().get_response(*args, **kwargs)
        finally:
            self.at_once -= 1

    async def close(self) -> None:
        self.closed = True


# Groups and rows


def test_outputs_stand_in_order_of_example_and_rollout_and_metadata_sums_them_up() -> None:
    results = single().evaluate_sync(Model(), "model-1", rollouts_per_example=2)
    outputs, metadata = results["outputs"], results["metadata"]
    assert [(output["example_id"], output["rollout"]) for output in outputs] == [(i, r) for i in range(4) for r in range(2)]
    assert results["reward"] == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert results["metrics"]["right"] == results["reward"]
    assert results["stop_conditions"] == ["max_turns_reached"] * 8
    assert results["task"] == ["default"] * 8
    assert results.metadata is metadata
    expected = {"model": "model-1", "num_examples": 4, "rollouts_per_example": 2, "avg_reward": 0.25, "avg_error": 0.0}
    assert {key: metadata[key] for key in expected} == expected
    assert metadata["pass_at_k"] == {"1": 0.25, "2": 0.25}


def test_rows_with_one_example_id_are_a_group_and_rows_without_are_not() -> None:
    sizes: list[int] = []

    def together(states: list[vf.State]) -> list[float]:
        sizes.append(len(states))
        return [float(len(states))] * len(states)

    env = vf.SingleTurnEnv(dataset=ROWS, rubric=vf.Rubric(together))
    rows = [{"question": "a", "example_id": 7}, {"question": "b"}, {"question": "c", "example_id": 7}, {"question": "d", "example_id": 0}]
    outputs = env.generate_sync(rows, Model(), "m")["outputs"]
    assert sorted(sizes) == [1, 1, 2]
    assert [(output["example_id"], output["prompt"][0]["content"], output["reward"]) for output in outputs] == [
        (0, "d", 1.0),
        (1, "b", 1.0),
        (7, "a", 2.0),
        (7, "c", 2.0),
    ]


def test_an_empty_rubric_scores_zero_also_alone() -> None:
    outputs = vf.SingleTurnEnv(dataset=ROWS).evaluate_sync(Model(), "m", independent_scoring=True)["outputs"]
    assert [output["reward"] for output in outputs] == [0.0] * 4


def test_a_group_is_scored_while_others_still_play() -> None:
    release = asyncio.Event()

    class Slow(Model):
        async def get_response(self, prompt: Any, *args: Any, **kwargs: Any) -> vf.Response:
            if prompt[-1].content == "question 0":
                await release.wait()
            return response("1")

    scored: list[int] = []

    def on_progress(outputs: list[Any], new: list[Any], metadata: Mapping[str, Any]) -> None:
        scored.extend(output["example_id"] for output in new)
        if len(scored) == 3:
            release.set()

    single().evaluate_sync(Slow(), "m", on_progress=on_progress)
    assert scored[-1] == 0
    assert sorted(scored) == [0, 1, 2, 3]


# Limits


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("limit", [1, 3, 8, -1])
def test_max_concurrent_counts_rollouts_whatever_the_size_of_groups(limit: int, independent: bool) -> None:
    client = Model()
    single().evaluate_sync(client, "m", rollouts_per_example=4, max_concurrent=limit, independent_scoring=independent)
    assert client.most_at_once == (16 if limit == -1 else limit)
    assert client.calls == 16


def test_older_limits_are_understood() -> None:
    at_once = most = 0

    async def scored(state: vf.State) -> float:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return 1.0

    client = Model()
    env = vf.SingleTurnEnv(dataset=ROWS, rubric=vf.Rubric(scored))
    env.evaluate_sync(client, "m", max_concurrent_generation=2, max_concurrent_scoring=1, independent_scoring=True)
    assert (client.most_at_once, most) == (2, 1)
    with pytest.raises(UnknownArgument, match="max_concurrent"):
        env.evaluate_sync(client, "m", max_concurent=2)


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (lambda env: env.evaluate_sync("gpt-4", "m"), "Client"),
        (lambda env: env.evaluate_sync(Model(), "m", rollouts_per_example=0), "rollouts_per_example"),
        (lambda env: env.evaluate_sync(Model(), "m", max_concurrent=2.5), "integer"),
        (lambda env: env.evaluate_sync(Model(), "m", state_columns="trajectory"), "list of names"),
        (lambda env: env.evaluate_sync(Model(), "m", hf_hub_dataset_name="x"), "push_to_hf_hub"),
        (lambda env: env.evaluate_sync(Model(), "m", redo_errors=True), "results_path"),
        (lambda env: env.generate_sync([], Model(), "m"), "no inputs to play"),
        (lambda env: env.generate_sync("rows", Model(), "m"), "rows"),
        (lambda env: env.generate_sync([3], Model(), "m"), "must be rows"),
        (lambda env: env.generate_sync(ROWS, Model(), 3), "name of a model"),
        (lambda env: env.generate_sync(ROWS, Model(), "m", max_retries=-1), "max_retries"),
        (lambda env: env.generate_sync(ROWS, Model(), "m", on_start=3), "callback"),
        (lambda env: vf.SingleTurnEnv(), "needs tasks"),
        (lambda env: vf.ToolEnv(tools=[]), "needs tasks"),
    ],
)
def test_the_documented_answer_to_bad_input(attempt: Callable[[vf.Environment], Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        attempt(single())


# Errors


def test_only_what_failed_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.0)
    failures = {
        "1": [vf.SandboxError("gone"), vf.EmptyModelResponseError("nothing")],
        "2": [vf.InfraError("down")] * 9,
        "3": [vf.ToolError("no")],
    }
    asked: Counter[str] = Counter()

    def answer(number: int, state: vf.State) -> Any:
        asked[state["answer"]] += 1
        left = failures.get(state["answer"], [])
        return left.pop(0) if left else state["answer"]

    outputs = single().evaluate_sync(Model(answer), "m", max_retries=3)["outputs"]
    assert asked == {"0": 1, "1": 3, "2": 4, "3": 1}
    assert [output["error"] and output["error"]["error"] for output in outputs] == [None, None, "InfraError", "ToolError"]
    assert [output["reward"] for output in outputs[:2]] == [1.0, 1.0]


def test_a_repeated_rollout_starts_from_a_fresh_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.0)

    class Writes(vf.SingleTurnEnv):
        async def setup_state(self, state: vf.State) -> None:
            assert "note" not in state["info"]
            state["info"]["note"] = "written"
            state["prompt"].append(vf.UserMessage("more"))

    env = Writes(dataset=[{"question": "q", "info": {"x": 1}}])
    client = Model(lambda number, state: vf.InfraError("down") if number == 0 else "1")
    output = env.evaluate_sync(client, "m", max_retries=1)["outputs"][0]
    assert output["error"] is None
    assert [message["content"] for message in output["prompt"]] == ["q", "more"]


def test_a_cancelled_run_cancels_every_rollout_and_runs_its_cleanup() -> None:
    cleaned: list[str] = []

    class Waits(vf.SingleTurnEnv):
        @vf.cleanup
        async def note(self, state: vf.State) -> None:
            cleaned.append(state["answer"])

    class Hangs(Model):
        async def get_response(self, *args: Any, **kwargs: Any) -> vf.Response:
            self.calls += 1
            return await asyncio.get_running_loop().create_future()

    async def main() -> None:
        client = Hangs()
        run = asyncio.ensure_future(Waits(dataset=ROWS).evaluate(client, "m"))
        while client.calls < 4:
            await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert sorted(cleaned) == ["0", "1", "2", "3"]


# Callbacks and clients


def test_callbacks_are_told_what_the_documents_say() -> None:
    told: dict[str, list[Any]] = {"start": [], "progress": [], "log": []}
    single().evaluate_sync(
        Model(),
        "m",
        num_examples=2,
        rollouts_per_example=2,
        on_start=lambda *args: told["start"].append(args),
        on_log=told["log"].append,
        on_progress=lambda all_outputs, new, metadata: told["progress"].append((len(all_outputs), len(new), metadata["avg_reward"])),
    )
    ((raw, filtered),) = told["start"]
    assert [row["example_id"] for row in raw] == [0, 1, 0, 1]
    assert [[row["example_id"] for row in group] for group in filtered] == [[0, 0], [1, 1]]
    assert [progress[:2] for progress in told["progress"]] == [(2, 2), (4, 2)]
    assert told["progress"][-1][2] == 0.5

    starts: list[Any] = []
    counts: list[int] = []
    single().evaluate_sync(
        Model(),
        "m",
        independent_scoring=True,
        on_start=lambda raw, left: starts.append(left),
        on_progress=[lambda done, new, _: counts.append(len(new))],
    )
    assert [row["example_id"] for row in starts[0]] == [0, 1, 2, 3]
    assert counts == [1, 1, 1, 1]


def test_metadata_that_a_callback_keeps_stay_those_of_their_moment() -> None:
    kept: list[tuple[list[float], Mapping[str, Any]]] = []
    single().evaluate_sync(
        Model(),
        "m",
        num_examples=2,
        rollouts_per_example=2,
        max_concurrent=1,
        on_progress=lambda outputs, new, metadata: kept.append(([row["reward"] for row in outputs], metadata)),
    )
    for rewards, metadata in [kept[-1], kept[0]]:  # the newest first, so that the older ones come after it
        assert metadata["avg_reward"] == sum(rewards) / len(rewards)
        assert metadata["avg_metrics"]["num_turns"] == 1.0
        assert metadata["num_examples"] == 2


class Endpoint(Client):
    """Notes who asks which endpoint."""

    def __init__(self, url: str, asked: list[tuple[str, str]]) -> None:
        self.url, self.asked, self.closed = url, asked, False

    async def get_response(self, prompt: Any, model: str, *args: Any, **kwargs: Any) -> vf.Response:
        self.asked.append((self.url, prompt[-1].content))
        return response("1")

    async def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("independent", [False, True])
def test_endpoints_take_turns_by_group_or_by_rollout_and_are_closed(monkeypatch: pytest.MonkeyPatch, independent: bool) -> None:
    asked: list[tuple[str, str]] = []
    made: list[Endpoint] = []

    def resolve(config: vf.ClientConfig, *args: Any) -> Endpoint:
        made.append(Endpoint(config.api_base_url, asked))
        return made[-1]

    monkeypatch.setattr("verifiers_compat.envs.api.resolve_client", resolve)
    config = vf.ClientConfig(endpoint_configs=[{"api_base_url": "http://a"}, {"api_base_url": "http://b"}])
    results = single().evaluate_sync(config, "m", rollouts_per_example=2, independent_scoring=independent, max_concurrent=1)
    assert Counter(url for url, _ in asked) == {"http://a": 4, "http://b": 4}
    by_question = {question: {url for url, each in asked if each == question} for _, question in asked}
    assert all(len(urls) == (2 if independent else 1) for urls in by_question.values())
    assert [client.closed for client in made] == [True, True]
    assert results["metadata"]["base_url"] == "http://a,http://b"


def test_a_client_that_was_given_is_not_closed_and_sampling_args_are_merged() -> None:
    seen: list[Any] = []
    client = Model(lambda number, state: seen.append(state["sampling_args"]) or "1")
    env = single(sampling_args={"temperature": 0.5, "extra_body": {"a": 1}})
    metadata = env.evaluate_sync(client, "m", {"top_p": 0.9, "extra_body": {"b": 2}}, num_examples=1)["metadata"]
    assert seen == [metadata["sampling_args"]] == [{"n": 1, "temperature": 0.5, "top_p": 0.9, "extra_body": {"b": 2}}]
    assert not client.closed


# Where it can be called


def test_sync_twins_work_inside_a_running_loop_in_threads_and_beside_each_other() -> None:
    async def main() -> float:
        return single().evaluate_sync(Model(), "m")["metadata"]["avg_reward"]

    assert asyncio.run(main()) == 0.25
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(single().evaluate_sync(Model(), "m").metadata["avg_reward"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0.25] * 4


def test_an_environment_can_be_made_in_a_thread_and_without_a_main_thread() -> None:
    made: list[vf.Environment] = []

    class Torn(vf.SingleTurnEnv):
        @vf.teardown
        async def over(self) -> None: ...

    thread = threading.Thread(target=lambda: made.append(Torn(dataset=ROWS)))
    thread.start()
    thread.join()
    assert made[0].evaluate_sync(Model(), "m")["metadata"]["num_examples"] == 4


async def test_run_rollout_and_run_group_take_older_and_newer_arguments() -> None:
    env = single()
    row = env.get_dataset()[1]
    client = ScriptedClient(["1"])
    assert (await env.run_rollout(row, client, "m", {"n": 1}, max_retries=1, state_columns=["model"]))["model"] == "m"
    limit = asyncio.Semaphore(1)
    assert (await env.run_rollout(limit, row, client, "m", {"n": 1}))["reward"] == 1.0
    assert not limit.locked()
    outputs = await env.run_group([row, row], client, "m", state_columns=["advantage"])
    assert [(output["rollout"], output["advantage"]) for output in outputs] == [(0, 0.0), (1, 0.0)]
    with pytest.raises(ConfigurationError, match="example_id"):
        await env.run_group([row, env.get_dataset()[2]], client, "m")


def test_scoring_can_be_left_out() -> None:
    env = single(score_rollouts=False)
    output = env.evaluate_sync(Model(), "m", num_examples=1)["outputs"][0]
    assert (output["reward"], output["metrics"]) == (0.0, {})
    env.set_kwargs(score_rollouts=True)
    assert "right" in env.evaluate_sync(Model(), "m", num_examples=1)["outputs"][0]["metrics"]


def test_an_overridden_get_eval_dataset_chooses_the_rows() -> None:
    class Chosen(vf.SingleTurnEnv):
        def get_eval_dataset(self, n: int = -1, seed: int | None = None) -> Any:
            return super().get_eval_dataset(n=2)

    outputs = Chosen(dataset=ROWS, rubric=vf.Rubric(right)).evaluate_sync(Model(), "m", rollouts_per_example=2)["outputs"]
    assert [output["example_id"] for output in outputs] == [0, 0, 1, 1]


# On disk


def test_results_are_saved_and_a_second_run_goes_on_where_the_first_was(tmp_path: Path) -> None:
    env = single()
    lines: list[str] = []
    client = Model(lambda number, state: RuntimeError("oops") if number == 5 else "1")
    path = tmp_path / "run"
    first = env.evaluate_sync(
        client,
        "m",
        num_examples=2,
        rollouts_per_example=3,
        max_concurrent=1,
        results_path=path,
        state_columns=["trajectory"],
        on_log=lines.append,
    )
    assert sorted(file.name for file in path.iterdir()) == ["metadata.json", "results.jsonl"]
    on_disk = [json.loads(line) for line in (path / "results.jsonl").read_text().splitlines()]
    assert [(row["example_id"], row["rollout"], row["reward"]) for row in on_disk] == [
        (output["example_id"], output["rollout"], output["reward"]) for output in first["outputs"]
    ]
    metadata = json.loads((path / "metadata.json").read_text())
    assert {"date", "path_to_save"}.isdisjoint(metadata)
    assert metadata["avg_error"] == first["metadata"]["avg_error"] == pytest.approx(1 / 6)

    starts: list[Any] = []
    options: dict[str, Any] = {"rollouts_per_example": 3, "results_path": path, "state_columns": ["trajectory"]}
    again = env.evaluate_sync(client, "m", num_examples=2, on_start=lambda *args: starts.append(args), **options)
    assert (client.calls, starts) == (6, [])
    assert again["outputs"] == json.loads(json.dumps(first["outputs"]))
    # A group is scored as a whole, so the group of the rollout that failed is played again as a whole.
    more = env.evaluate_sync(
        client,
        "m",
        num_examples=3,
        rollouts_per_example=3,
        results_path=path,
        state_columns=["trajectory"],
        redo_errors=True,
    )
    assert client.calls == 12
    assert [output["error"] for output in more["outputs"]] == [None] * 9
    assert [line.partition(" ")[0] for line in lines] == ["results"]


def test_the_default_directory_has_a_name_of_its_own_for_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        single(env_id="my-env").evaluate_sync(Model(), "org/model", num_examples=1, save_results=True)
    runs = list((tmp_path / "outputs" / "evals" / "my-env--org--model").iterdir())
    assert len(runs) == 2


# Groups of environments, and environments of others


def children() -> list[vf.Environment]:
    math = vf.SingleTurnEnv(dataset=[{"question": "1 + 0?", "answer": "1", "info": {"level": 1}}], rubric=vf.Rubric(right))
    tool = vf.ToolEnv(tools=[], dataset=[{"question": "hm"}, {"question": "ha"}], rubric=vf.Rubric(lambda completion: 0.5))
    return [math, vf.EnvGroup([tool], env_names=["tool"])]


def test_a_group_routes_each_row_to_its_environment_and_back() -> None:
    group = vf.EnvGroup(children(), names=["math", "nested"])
    assert group.get_dataset()["info"][:] == [
        {"level": 1, "env_id": "math"},
        {"env_id": ["nested", "tool"]},
        {"env_id": ["nested", "tool"]},
    ]
    results = group.evaluate_sync(Model(), "m", rollouts_per_example=2)
    outputs = results["outputs"]
    assert [output["info"]["env_id"] for output in outputs] == ["math"] * 2 + [["nested", "tool"]] * 4
    assert [output["reward"] for output in outputs] == [1.0] * 2 + [0.5] * 4
    assert "total_tool_calls" not in outputs[0]["metrics"]
    assert "total_tool_calls" in outputs[-1]["metrics"]
    assert results["metadata"]["avg_metrics"]["total_tool_calls"] == 0.0
    # What `get_dataset` gives can be handed back.
    assert [output["reward"] for output in group.generate_sync(group.get_dataset(), Model(), "m")["outputs"]] == [
        1.0,
        0.5,
        0.5,
    ]


async def test_a_group_rolls_out_by_its_own_methods_too() -> None:
    group = vf.EnvGroup(children(), env_names=["math", "nested"])
    row = group.get_dataset()[0]
    state = await group.rollout(row, ScriptedClient(["1"]), "m")
    await group.rubric.score_rollout(state)
    assert (state["reward"], state["info"]["env_id"]) == (1.0, "math")
    with pytest.raises(ConfigurationError, match="math, nested"):
        await group.rollout({**row, "info": {"env_id": "mth"}}, ScriptedClient(["1"]), "m")


async def test_a_groups_rubric_scores_with_that_of_the_environment_that_played_or_says_that_it_cannot() -> None:
    group = vf.EnvGroup(children(), env_names=["math", "nested"])
    nested = await group.rollout(group.get_dataset()[1], ScriptedClient(["1"]), "m")
    await group.rubric.score_rollout(nested)
    assert (nested["reward"], "total_tool_calls" in nested["metrics"]) == (0.5, True)
    labelled = await group.rollout({"question": "hm", "task": "math", "answer": "1", "example_id": 0}, ScriptedClient(["1"]), "m")
    await group.rubric.score_group([labelled])
    assert labelled["reward"] == 1.0
    await group.areset(options={"example_id": 1})
    await group.astep("1")
    with pytest.raises(ConfigurationError, match=r"does not say which environment of the group \(math, nested\) played it"):
        await group.rubric.score_rollout(group.state)


def test_any_gymnasium_environment_gets_the_api() -> None:
    env = vf.as_environment("FrozenLake-v1")
    results = env.evaluate_sync(ScriptedClient(["right"] * 100), "m", num_examples=3, rollouts_per_example=2)
    again = env.evaluate_sync(ScriptedClient(["right"] * 100), "m", num_examples=3, rollouts_per_example=2)
    assert len(results["outputs"]) == 6
    assert [output["completion"] for output in results["outputs"]] == [output["completion"] for output in again["outputs"]]
    observation, info = env.reset(seed=0)
    assert observation
    assert info["example_id"] == 0


def test_a_chat_environment_of_vfgym_gets_the_api_and_keeps_its_own() -> None:
    import vfgym

    inner = vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric(right))
    env = vf.as_environment(inner)
    assert env.evaluate_sync(Model(), "m")["metadata"]["avg_reward"] == 0.25
    assert env.rubric is inner.rubric
    assert vf.as_environment(single()).__class__ is vf.SingleTurnEnv
    with pytest.raises(ConfigurationError, match="expected an environment"):
        vf.as_environment(3)


# Both generations


def test_unknown_arguments_become_attributes_and_names_of_the_face_stay_free() -> None:
    class Author(vf.MultiTurnEnv):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(dataset=ROWS, name="mine", description="text", max_workers=4, **kwargs)
            self.tasks = ["an author's"]
            self.state = {"an author's": 1}

        def step(self, number: int) -> int:
            return number + 1

        def env_response(self, messages: vf.Messages, state: vf.State) -> str:
            return f"{self.step(len(messages))}"

    env = Author(max_turns=2, rubric=vf.Rubric(right))
    assert (env.name, env.description) == ("mine", "text")
    outputs = env.evaluate_sync(Model(), "m")["outputs"]
    assert outputs[0]["completion"][1] == {"role": "text", "content": "3"}
    assert env.tasks == ["an author's"]
    observation, _ = env.fork().reset(seed=0)
    assert observation[0]["content"].startswith("question")


def test_older_tools_and_timing_names() -> None:
    tool = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}}
    seen: list[vf.State] = []
    env = vf.SingleTurnEnv(dataset=ROWS, oai_tools=[tool], rubric=vf.Rubric(lambda state: seen.append(state) or 0.0))
    env.evaluate_sync(Model(), "m", num_examples=1)
    assert env.oai_tools == seen[0]["oai_tools"] == [tool]
    assert seen[0].get("oai_tools") == [tool]
    timing = seen[0]["timing"]
    assert timing["total_ms"] == timing.total * 1000 > 0
    assert timing["generation_ms"] == timing.generation.duration * 1000


def test_text_prompts_ask_a_completions_client() -> None:
    env = vf.SingleTurnEnv(dataset=[{"prompt": "Once upon"}], message_type="completion")
    assert env.client_type == "openai_completions"
    output = env.evaluate_sync(Model(), "m")["outputs"][0]
    assert output["prompt"] == [{"role": "text", "content": "Once upon"}]
    config = vf.ClientConfig(api_base_url="http://localhost:1/v1")
    assert type(env.initial_state(env.get_dataset()[0], config, "m", None)["client"]) is vf.OpenAICompletionsClient
    with pytest.raises(ConfigurationError, match="system_prompt"):
        vf.SingleTurnEnv(dataset=[{"prompt": "x"}], message_type="completion", system_prompt="no")


def test_datasets_are_built_when_asked_for_and_a_seed_shuffles_a_view() -> None:
    calls = 0

    def build() -> Sequence[Mapping[str, Any]]:
        nonlocal calls
        calls += 1
        return [{"question": str(index), "info": {f"key {index}": index}} for index in range(20)]

    env = vf.SingleTurnEnv(dataset=build)
    assert env.dataset is None
    assert calls == 0
    shuffled = env.get_dataset(seed=3)
    assert shuffled["example_id"][:] != list(range(20))
    assert env.get_dataset(n=50)["example_id"][:] == list(range(20))
    assert env.get_dataset(n=2)[1]["info"] == {"key 1": 1}
    assert env.dataset is env.build_dataset()
    assert (calls, env.build_eval_dataset(), env.eval_dataset) == (1, None, None)
    env.dataset = [{"question": "new"}]
    assert env.get_dataset()[0]["prompt"] == [{"role": "user", "content": "new"}]


# Rows and states that cannot be made, ids, and what is set on a group


def test_a_row_that_cannot_be_read_is_the_error_of_its_rollouts(tmp_path: Path) -> None:
    rows = [*ROWS[:2], {"prompt": [{"role": "nobody", "content": "x"}]}, ROWS[3]]
    for path in (None, tmp_path / "run"):
        results = single(rows).evaluate_sync(Model(), "m", results_path=path, on_start=lambda raw, left: None)
        errors = [output["error"] and output["error"]["error"] for output in results["outputs"]]
        assert errors == [None, None, "ConfigurationError", None]
    with pytest.raises(ConfigurationError, match="nobody"):
        single(rows).evaluate_sync(Model(), "m", strict=True)
    group = vf.EnvGroup(children(), env_names=["math", "nested"])
    routed = [group.get_dataset()[0], {"question": "?", "info": {"env_id": "nowhere"}}]
    assert [output["error"] is None for output in group.generate_sync(routed, Model(), "m")["outputs"]] == [True, False]


class Unbegun(vf.SingleTurnEnv):
    """An author's own `init_state` that raises for the task whose answer is "2", as often as there are errors."""

    def __init__(self, *errors: Exception, rows: Any = ROWS) -> None:
        super().__init__(dataset=rows, rubric=vf.Rubric(right))
        self.errors = [*errors]

    async def init_state(self, input: Any, client: Any = None, model: str = "", sampling_args: Any = None) -> vf.State:
        if input["answer"] == "2" and self.errors:
            raise self.errors.pop(0)
        return await super().init_state(input, client, model, sampling_args)


class OwnLoop(Unbegun):
    """The same where the rollout is the author's."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
        return await super().rollout(input, client, model, sampling_args)


@pytest.mark.parametrize("kind", [Unbegun, OwnLoop])
@pytest.mark.parametrize("error", [RuntimeError("quota"), vf.InfraError("quota")])
def test_a_state_that_cannot_be_made_is_the_error_of_its_rollout(kind: type[Unbegun], error: Exception, tmp_path: Path) -> None:
    results = kind(error).evaluate_sync(Model(), "m", results_path=tmp_path / "run")
    errors = [output["error"] and output["error"]["error_chain_repr"] for output in results["outputs"]]
    assert errors == [None, None, repr(error), None]
    assert [output["reward"] for output in results["outputs"]] == [0.0, 1.0, 0.0, 0.0]
    assert results["outputs"][2]["answer"] == "2"


@pytest.mark.parametrize("kind", [Unbegun, OwnLoop])
def test_tools_of_a_task_that_are_none_are_the_error_of_its_rollout(kind: type[Unbegun]) -> None:
    env = kind(rows=[{"question": "q", "answer": "1", "info": {"tool_defs": ["nonsense"]}}, ROWS[1]])
    outputs = env.evaluate_sync(Model(), "m")["outputs"]
    assert [output["error"] and output["error"]["error"] for output in outputs] == ["ConfigurationError", None]


@pytest.mark.parametrize("kind", [Unbegun, OwnLoop])
def test_an_infrastructure_that_was_not_there_at_first_is_asked_again(kind: type[Unbegun], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.0)
    outputs = kind(vf.InfraError("down")).evaluate_sync(Model(lambda number, state: "2"), "m", max_retries=1)["outputs"]
    assert [(output["error"], output["reward"]) for output in outputs] == [(None, 0.0), (None, 0.0), (None, 1.0), (None, 0.0)]


@pytest.mark.parametrize("kind", [Unbegun, OwnLoop])
def test_an_update_that_fails_is_the_error_of_its_rollout(kind: type[Unbegun]) -> None:
    class Broken(kind):  # type: ignore[misc, valid-type]
        @vf.update
        def count(self, state: vf.State) -> None:
            state["count"] = len(state["trajektory"])

    env = Broken(rows=ROWS[:1])
    (output,) = env.evaluate_sync(Model(), "m")["outputs"]
    assert output["error"]["error_chain_repr"] == "KeyError('trajektory')"
    with pytest.raises(KeyError, match="trajektory"):
        env.evaluate_sync(Model(), "m", strict=True)


def test_an_overridden_init_state_makes_the_state() -> None:
    class Own(vf.SingleTurnEnv):
        async def init_state(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
            state = await super().init_state(input, client, model, sampling_args)
            state["mine"] = state["answer"] * 2
            return state

    env = Own(dataset=ROWS, rubric=vf.Rubric(lambda state: float(state["mine"])))
    outputs = env.evaluate_sync(Model(), "m", state_columns=["mine"])["outputs"]
    assert [output["mine"] for output in outputs] == ["00", "11", "22", "33"]
    env.reset(options={"example_id": 2})
    assert env.step("x").reward == 22.0


def test_what_is_said_to_a_group_reaches_its_environments() -> None:
    math, nested = children()
    group = vf.EnvGroup([math, nested], env_names=["math", "nested"], score_rollouts=False, max_seq_len=7)
    assert (math.score_rollouts, nested.max_seq_len) == (False, 7)
    group.set_max_seq_len(9)
    group.set_score_rollouts(True)
    assert isinstance(nested, vf.EnvGroup)
    assert (math.max_seq_len, nested.envs[0].max_seq_len, nested.envs[0].score_rollouts) == (9, 9, True)
    group.set_kwargs(timeout_seconds=2.0, max_total_completion_tokens=9)
    assert [(env.timeout_seconds, env.max_total_completion_tokens) for env in (math, nested.envs[0])] == [(2.0, 9)] * 2
    monitor = vf.Rubric()
    monitor.add_metric(lambda completion: 3.0)
    group.add_rubric(monitor)

    def added(completion: vf.Messages) -> float:
        return 10.0

    group.rubric.add_reward_func(added)
    outputs = group.evaluate_sync(Model(), "m")["outputs"]
    assert [(output["metrics"]["<lambda>"], output["metrics"]["added"]) for output in outputs] == [(3.0, 10.0), (3.5, 10.0), (3.5, 10.0)]
    for name in ("rollout", "setup_state"):
        with pytest.raises(ConfigurationError, match="never run"):
            type("Hooked", (vf.EnvGroup,), {name: lambda self, *args: None})
    with pytest.raises(ConfigurationError, match="never run"):
        type("Marked", (vf.EnvGroup,), {"tidy": vf.cleanup(lambda self, state: None)})


def test_rows_that_share_an_id_are_one_example_in_evaluate_too(tmp_path: Path) -> None:
    rows = [{"question": "a", "example_id": 1}, {"question": "b", "example_id": 1}, {"question": "c", "example_id": 2}]
    env = vf.SingleTurnEnv(dataset=rows)
    for path in (None, tmp_path):
        outputs = env.evaluate_sync(Model(), "m", independent_scoring=True, results_path=path)["outputs"]
        assert [(output["example_id"], output["rollout"], output["prompt"][0]["content"]) for output in outputs] == [
            (1, 0, "a"),
            (1, 1, "b"),
            (2, 0, "c"),
        ]


def test_ids_of_other_kinds_keep_their_groups() -> None:
    env = single()
    rows = [{"question": text, "example_id": key} for text, key in (("a", "x"), ("b", 5.0), ("c", "x"), ("d", 5.0))]
    outputs = env.generate_sync(rows, Model(), "m", state_columns=["input"])["outputs"]
    assert [(output["example_id"], output["rollout"], output["prompt"][0]["content"]) for output in outputs] == [
        (0, 0, "a"),
        (0, 1, "c"),
        (5, 0, "b"),
        (5, 1, "d"),
    ]
    assert outputs[0]["input"]["src_id"] == "x"


def test_callbacks_read_running_means_and_cannot_end_a_run(caplog: pytest.LogCaptureFixture) -> None:
    means: list[tuple[float, float, int]] = []

    def note(outputs: Any, new: Any, metadata: Mapping[str, Any]) -> None:
        means.append((metadata["avg_reward"], metadata["avg_metrics"]["right"], metadata["num_examples"]))
        raise ValueError("oops")

    results = single().evaluate_sync(Model(), "m", max_concurrent=1, on_progress=note)
    assert means == [(0.0, 0.0, 4), (0.5, 0.5, 4), (pytest.approx(1 / 3), pytest.approx(1 / 3), 4), (0.25, 0.25, 4)]
    assert results["metadata"]["avg_reward"] == 0.25
    assert caplog.text.count("a callback raised") == 1

    async def never_awaited(*args: Any) -> None: ...

    with pytest.raises(ConfigurationError, match="async"):
        single().evaluate_sync(Model(), "m", on_progress=never_awaited)


def test_what_is_written_to_an_adapted_environment_is_its_own() -> None:
    import vfgym

    inner = vfgym.SingleTurnEnv(ROWS, rubric=vfgym.Rubric(right))
    env = vf.as_environment(inner)
    env.rubric = vf.Rubric(lambda state: 7.0)
    env.pass_threshold = 5.0
    metadata = env.evaluate_sync(Model(), "m")["metadata"]
    assert (metadata["avg_reward"], metadata["pass_threshold"], inner.pass_threshold) == (7.0, 5.0, 5.0)


# Promises about what goes wrong, and what is let go of


async def test_a_cancelled_run_ends_when_its_rollouts_have_cleaned_up_and_its_games_are_closed(tmp_path: Path) -> None:
    """In that order, and what was finished is on disk."""
    ended: list[str] = []
    waits = asyncio.Event()

    class Arcade(vf.SingleTurnEnv):
        async def setup_state(self, state: vf.State) -> Any:
            state.session = state.session or "a game"
            return await super().setup_state(state)

        @vf.cleanup
        async def leave(self, state: vf.State) -> None:
            await asyncio.sleep(0.02)
            ended.append("cleanup")

        async def close_session(self, session: Any) -> None:
            await asyncio.sleep(0.02)
            ended.append("closed")

    class Slow(Model):
        async def get_response(self, *args: Any, **kwargs: Any) -> vf.Response:
            if kwargs["state"]["example_id"] < 2:
                return response("1")
            try:
                waits.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.05)
                ended.append("model")
            raise AssertionError

    env = Arcade(dataset=ROWS, rubric=vf.Rubric(right))
    run = asyncio.create_task(env.evaluate(Slow(), "m", max_concurrent=1, results_path=tmp_path))
    await waits.wait()
    assert ended == ["cleanup", "cleanup"]
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert ended == ["cleanup", "cleanup", "model", "cleanup", "closed"]
    results = load_results(tmp_path)
    assert [(row["example_id"], row["reward"]) for row in results["outputs"]] == [(0, 0.0), (1, 1.0)]
    assert results["metadata"]["avg_reward"] == 0.5


async def test_others_on_the_loop_get_their_turn_while_a_client_answers_at_once() -> None:
    """A run whose client never waits can be cancelled, and starves nobody."""

    class Instant(Model):
        async def get_response(self, *args: Any, **kwargs: Any) -> vf.Response:
            self.calls += 1
            return response("1")

    client = Instant()
    env = single([{"question": "?", "answer": "1"}] * 100_000)
    run = asyncio.create_task(env.evaluate(client, "m", max_concurrent=1))
    while client.calls == 0:
        await asyncio.sleep(0)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert client.calls < 100_000


async def test_a_tool_that_the_author_put_into_the_map_by_hand_is_called() -> None:
    def shout(text: str) -> str:
        return text.upper()

    def look(text: str) -> str:
        """Look it up."""
        return text

    def look_closer(text: str) -> str:
        return f"closer: {text}"

    env = vf.ToolEnv(tools=[look], dataset=ROWS[:1])
    env.tool_map["shout"] = shout
    assert (await env.call_tool("shout", {"text": "hi"}, "c1")).content == "HI"
    assert (await env.call_tool("look", {"text": "hi"}, "c2")).content == "hi"
    env.tool_map["look"] = look_closer
    state = await env.rollout(env.get_dataset()[0], ScriptedClient([calling(("look", {"text": "hi"})), "done"]), "m")
    assert texts(state["completion"]) == ["closer: hi"]


async def test_strict_raises_what_scoring_raises_too(tmp_path: Path) -> None:
    class Unscorable(vf.Rubric):
        def group_scoring_steps(self, states: list[vf.State]) -> Any:
            raise ZeroDivisionError("a bug of the rubric")

    env = vf.SingleTurnEnv(dataset=ROWS[:1], rubric=Unscorable(right))
    outputs = (await env.evaluate(Model(), "m"))["outputs"]
    assert "a bug of the rubric" in str(outputs[0]["error"])
    with pytest.raises(ZeroDivisionError, match="a bug of the rubric"):
        await env.evaluate(Model(), "m", strict=True, results_path=tmp_path)


async def test_rollouts_of_one_example_belong_to_one_environment_of_a_group() -> None:
    group = vf.EnvGroup([single(), single()], env_names=["a", "b"])
    rows = [{"question": "?", "answer": "1", "example_id": 3, "info": {"env_id": name}} for name in "ab"]
    outputs = (await group.generate(rows, Model(), "m"))["outputs"]
    assert ["belong to different environments" in str(row["error"]) for row in outputs] == [True, True]
    alone = (await group.generate(rows, Model(), "m", independent_scoring=True))["outputs"]
    assert [(row["reward"], row["error"], row["info"]) for row in alone] == [(1.0, None, {"env_id": "a"}), (1.0, None, {"env_id": "b"})]


async def test_sources_without_an_end_are_played_as_far_as_is_asked_for() -> None:
    endless = single(ProceduralTasks(lambda number: {"question": f"{number}?", "answer": "1"}))
    with pytest.raises(ConfigurationError, match="no end"):
        await endless.evaluate(Model(), "m")
    with pytest.raises(ConfigurationError, match="no end"):
        endless.get_dataset()
    assert [row["question"] for row in endless.get_dataset(n=2)] == ["0?", "1?"]
    assert len((await endless.evaluate(Model(), "m", num_examples=3))["outputs"]) == 3


async def test_a_client_that_a_rollout_made_of_a_configuration_is_kept_and_closed_with_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where something else cannot be closed."""
    made: list[Endpoint] = []

    def resolve(config: vf.ClientConfig, *args: Any) -> Endpoint:
        made.append(Endpoint(config.api_base_url, []))
        return made[-1]

    class Stuck(vf.SingleTurnEnv):
        def close_session(self, session: Any) -> None:
            raise OSError("stuck")

    monkeypatch.setattr("verifiers_compat.envs.api.resolve_client", resolve)
    env = Stuck(dataset=ROWS, rubric=vf.Rubric(right))
    row = env.get_dataset()[0]
    for url in ("http://a", "http://a", "http://b"):
        await env.rollout(row, vf.ClientConfig(api_base_url=url, api_key_var="NONE"), "m")
    assert [client.url for client in made] == ["http://a", "http://b"]
    env.reset(seed=0)
    assert env.state is not None
    env.state.session = "a game"
    env._sessions.keep(env.episode)
    with pytest.raises(OSError, match="stuck"):
        env.close()
    assert [client.closed for client in made] == [True, True]


async def test_an_sdks_client_that_a_rollout_was_given_is_left_open() -> None:
    """Whoever made it closes it: other environments may use it still."""
    with ModelServer() as server:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="k") as client:
            for _ in range(2):
                env = single()
                state = await env.rollout(env.get_dataset()[0], client, "echo")
                await env.aclose()
                assert state["error"] is None
                assert not client.is_closed()


def test_the_number_of_rollouts_at_once_reaches_registered_executors() -> None:
    from verifiers_compat.utils.thread_utils import register_executor, unregister_executor

    executor = ThreadPoolExecutor(max_workers=1)
    register_executor("test of concurrency", executor)
    env = single()
    try:
        env.set_kwargs(concurrency=7)
        assert executor._max_workers >= 7
        assert env.concurrency == 7
    finally:
        unregister_executor("test of concurrency")
        executor.shutdown()


def test_interleaved_rollouts_ask_the_token_client_and_no_other_choice_is_lost() -> None:
    env = single()
    before = env.client_type
    env.set_kwargs(interleaved_rollouts=True)
    assert (env.interleaved_rollouts, env.client_type) == (True, "openai_chat_completions_token")
    env.set_interleaved_rollouts(False)
    assert env.client_type is None
    env.client_type = "anthropic_messages"
    env.set_interleaved_rollouts(False)
    assert env.client_type == "anthropic_messages"
    assert before is None


async def test_a_turn_of_a_loop_written_by_hand_is_recorded_by_an_async_hook_too() -> None:
    class ByHand(vf.MultiTurnEnv):
        async def add_trajectory_step(self, state: vf.State, trajectory_step: Any) -> None:
            await asyncio.sleep(0)
            trajectory_step["extras"]["noted"] = True
            state["trajectory"].append(trajectory_step)

        async def env_response(self, messages: vf.Messages, state: vf.State) -> Any:
            return []

    env = ByHand(dataset=ROWS)
    state = await env.init_state(env.get_dataset()[0], Model(), "m")
    await env.add_model_response(state, state["prompt"], response("x"))
    [step] = state["trajectory"]
    assert (step["extras"], step["completion"][0].content, list(step["prompt"])) == ({"noted": True}, "x", list(state["prompt"]))


async def test_results_that_cannot_be_pushed_are_returned_and_the_reason_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(outputs: Any, name: str | None) -> str:
        raise OSError(f"no right to write to {name}")

    monkeypatch.setattr("verifiers_compat.envs.api.push_to_hub", refuse)
    results = await single().evaluate(Model(), "m", push_to_hf_hub=True, hf_hub_dataset_name="me/mine")
    assert len(results["outputs"]) == 4
    assert "no right to write to me/mine" in caplog.text
