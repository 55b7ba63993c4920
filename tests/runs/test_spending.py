"""What runs spend: limits end them or their rollouts, resuming counts on, prices, and the cache."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from vfgym import AssistantMessage, ChatEnv, ClientConfig, JudgeRubric, ModelAgent, MultiTurnEnv, Rubric, SingleTurnEnv
from vfgym.errors import ConfigurationError, LimitReached
from vfgym.messages import Message, UserMessage
from vfgym.model_server import ModelServer
from vfgym.results import GenerateOutputs, load_results
from vfgym.state import State

PRICES = {"echo": {"input": 1.0, "output": 10.0}}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def model(server: ModelServer, name: str = "echo") -> ModelAgent:
    return ModelAgent(config(server), name)


def config(server: ModelServer) -> ClientConfig:
    return ClientConfig(api_base_url=server.openai_url, api_key_var="NONE", max_retries=10)


def right(completion: Any) -> float:
    return float("7" in completion[-1].content)


async def judged(judge: Any, prompt: Any, completion: Any, answer: Any, state: State) -> float:
    return float(len(await judge(prompt, completion, answer, state)) > 0)


def questions(count: int = 20, **kwargs: Any) -> SingleTurnEnv:
    rows = [{"question": f"Is it {number}?"} for number in range(count)]
    return SingleTurnEnv(**{"dataset": rows, "rubric": Rubric(right), **kwargs})


class Talk(MultiTurnEnv):
    """Talks on without an end."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": [{"question": f"hello {number}"} for number in range(4)], "rubric": Rubric(lambda: 1.0), **kwargs})

    def env_response(self, messages: list[Message], state: State) -> list[Message]:
        return [UserMessage("and then?")]


class Slow(Talk):
    async def env_response(self, messages: list[Message], state: State) -> list[Message]:  # type: ignore[override]
        await asyncio.sleep(60)
        return []


def evaluate(*args: Any, **kwargs: Any) -> GenerateOutputs:
    return vfgym.evaluate(*args, **{"progress": False, **kwargs})


def spent_tokens(results: GenerateOutputs) -> float:
    return sum(row["spent"]["input_tokens"] + row["spent"]["output_tokens"] for row in results["outputs"])


# Of a run


def test_a_limit_on_tokens_ends_a_run_and_says_so(server: ModelServer, tmp_path: Path) -> None:
    before = server.num_requests
    results = evaluate(questions(), model(server), limits={"tokens": 200}, max_concurrent=1, results_path=tmp_path / "run")
    metadata = results["metadata"]
    assert metadata["stopped_by"] is not None
    assert metadata["stopped_by"] == {"limit": "tokens", "allowed": 200, "used": spent_tokens(results)}
    assert 200 <= spent_tokens(results) < 200 + spent_tokens(results) / len(results["outputs"])
    assert len(results["outputs"]) == server.num_requests - before < 20
    assert load_results(tmp_path / "run")["metadata"]["stopped_by"] == metadata["stopped_by"]
    assert (metadata["avg_reward"], metadata["std_error"], metadata["avg_return"]) == (None, None, None)


def test_rollouts_that_were_running_are_given_up_and_are_no_rows(server: ModelServer) -> None:
    before = server.num_requests
    results = evaluate(Talk(max_turns=6), model(server), limits={"requests": 9}, max_concurrent=4)
    assert 9 - 3 <= server.num_requests - before <= 9, "up to three others were under way, and may not have arrived"
    assert results["metadata"]["stopped_by"] == {"limit": "requests", "allowed": 9, "used": 9}
    assert results["outputs"] == []


def test_a_resumed_run_counts_on_and_is_stopped_no_more(server: ModelServer, tmp_path: Path) -> None:
    path = tmp_path / "run"
    first = evaluate(questions(), model(server), limits={"tokens": 200}, max_concurrent=1, results_path=path)
    again = evaluate(questions(), model(server), limits={"tokens": 200}, max_concurrent=1, results_path=path, resume=True)
    assert again["metadata"]["stopped_by"] == first["metadata"]["stopped_by"]
    assert len(again["outputs"]) == len(first["outputs"])
    more = evaluate(questions(), model(server), limits={"tokens": 400}, max_concurrent=1, results_path=path, resume=True)
    assert 400 <= spent_tokens(more) < 400 + spent_tokens(more) / len(more["outputs"])
    limits = {"requests": 20}
    whole = evaluate(questions(), model(server), limits=limits, max_concurrent=1, results_path=path, resume=True)
    assert whole["metadata"]["stopped_by"] is None, "though it is used up, all was played"
    assert load_results(path)["metadata"]["stopped_by"] is None
    assert (len(whole["outputs"]), sum(row["spent"]["requests"] for row in whole["outputs"])) == (20, 20)


def test_time_ends_a_run_in_which_no_model_is_asked() -> None:
    results = evaluate(Slow(), lambda observation, info: "go on", limits={"time": 0.05})
    stopped_by = results["metadata"]["stopped_by"]
    assert stopped_by is not None
    assert (stopped_by["limit"], stopped_by["allowed"]) == ("time", 0.05)
    assert results["outputs"] == []


def test_errors_end_a_run_and_are_rows() -> None:
    def fail(observation: Any, info: Any) -> str:
        raise RuntimeError("no")

    results = evaluate(questions(), fail, limits={"errors": 3}, max_concurrent=1)
    assert len(results["outputs"]) == 3
    assert results["metadata"]["stopped_by"] == {"limit": "errors", "allowed": 3, "used": 3}


def test_the_tokens_of_judges_count(server: ModelServer) -> None:
    rubric = JudgeRubric(judged, judge_client=config(server), judge_model="echo")
    before = server.num_requests
    results = evaluate(questions(rubric=rubric), model(server), limits={"requests": 7}, max_concurrent=1)
    assert server.num_requests - before == 7
    assert [row["reward"] for row in results["outputs"]] == [1.0] * 3, "one whose judge was refused is given up, not scored 0"
    assert all(row["spent"]["requests"] == 2 for row in results["outputs"])
    assert all(row["spent"]["input_tokens"] > row["token_usage"]["input_tokens"] for row in results["outputs"])


def test_what_a_judge_spent_stands_in_the_row_though_scoring_failed(server: ModelServer) -> None:
    class Broken(JudgeRubric):
        async def score_rollout(self, state: State) -> None:
            await self.judge(state["prompt"], state["completion"], "yes", state)
            raise ValueError("a defect of the rubric")

    env = SingleTurnEnv(dataset=[{"question": "?", "answer": "yes"}], rubric=Broken(judge_client=config(server), judge_model="echo"))
    results = evaluate(env, model(server), limits={"requests": 100})
    [row] = results["outputs"]
    assert (row["failed"], row["spent"]["requests"]) == (True, 2)


def test_a_block_around_a_run_ends_it_and_what_was_finished_is_on_disk(server: ModelServer, tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(LimitReached), vfgym.limit(requests=4):
        evaluate(questions(), model(server), max_concurrent=1, results_path=path)
    loaded = load_results(path)
    assert len(loaded["outputs"]) == 4
    assert loaded["metadata"]["stopped_by"] == {"limit": "requests", "allowed": 4, "used": 4}


# Of each rollout


@pytest.mark.parametrize("limits", [{"turns": 3}, {"tokens": 150}])
def test_a_rollout_that_used_up_its_limit_is_truncated_and_scored(server: ModelServer, limits: dict[str, int], tmp_path: Path) -> None:
    """By a judge, if need be, whose tokens do not count."""
    env = Talk(rubric=JudgeRubric(judged, judge_client=config(server), judge_model="echo"))
    results = evaluate(env, model(server), limits_each=limits, results_path=tmp_path)
    for row in results["outputs"]:
        assert (row["stop_condition"], row["is_truncated"], row["error"], row["reward"]) == ("limit_reached", True, None, 1.0)
        assert row["completion"][-1]["role"] == "assistant"
        turns = sum(message["role"] == "assistant" for message in row["completion"])
        if "turns" in limits:
            assert turns == 3
        else:
            usage = row["token_usage"]
            assert usage["input_tokens"] + usage["output_tokens"] >= 150
    assert results["metadata"]["stopped_by"] is None
    assert results["metadata"]["limits_each"] == limits
    for others in (None, {name: allowed + 1 for name, allowed in limits.items()}):
        with pytest.raises(ConfigurationError, match="limits_each"):
            evaluate(env, model(server), limits_each=others, results_path=tmp_path, resume=True)


def test_time_of_a_rollout(server: ModelServer) -> None:
    for row in evaluate(Slow(), model(server), limits_each={"time": 0.05})["outputs"]:
        assert (row["stop_condition"], row["is_truncated"], row["error"], row["reward"]) == ("limit_reached", True, None, 1.0)


class Authored(ChatEnv):
    """Its author wrote the whole rollout, which asks ten times."""

    async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> State:
        state = self.initial_state(self.tasks_of("eval").copy_input(input), client, model, sampling_args)
        said: list[Any] = list(state["prompt"])
        for _ in range(10):
            response = await client.get_response(said, model, sampling_args)
            said += [AssistantMessage(response.message.content), UserMessage("more")]
            state["completion"] = said[1:]
        return state


@pytest.mark.parametrize("limits", [{"turns": 3}, {"tokens": 40}])
def test_a_rollout_that_its_author_wrote_has_the_same_limits(server: ModelServer, limits: dict[str, int]) -> None:
    before = server.num_requests
    env = Authored(dataset=[{"question": f"hello {number}"} for number in range(2)], rubric=Rubric(lambda: 1.0))
    results = evaluate(env, model(server), limits_each=limits)
    for row in results["outputs"]:
        assert (row["stop_condition"], row["is_truncated"], row["error"], row["reward"]) == ("limit_reached", True, None, 1.0)
    if "turns" in limits:
        assert server.num_requests - before == 2 * 3
    compat = vf_environment([{"question": "hello"}])
    again = compat.evaluate_sync(config(server), "echo", limits_each=limits)
    (row,) = again["outputs"]
    assert (row["stop_condition"], row["is_truncated"], row["error"], row["reward"]) == ("limit_reached", True, None, 1.0)


def vf_environment(rows: list[dict[str, Any]]) -> Any:
    """Return an environment of `verifiers_compat` whose author wrote the whole rollout."""

    class Written(vf.Environment):
        async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> Any:
            state = await self.init_state(input, client, model, sampling_args)
            said: list[Any] = list(state["prompt"])
            for _ in range(10):
                response = await client.get_response(said, model, sampling_args)
                said += [vf.AssistantMessage(content=response.message.content), vf.UserMessage(content="more")]
            return state

    return Written(dataset=rows, rubric=vf.Rubric(lambda: 1.0))


def test_generate_has_the_limits_of_a_run(server: ModelServer, tmp_path: Path) -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": f"hello {number}"} for number in range(8)], rubric=vf.Rubric(lambda: 1.0))
    arguments: dict[str, Any] = {
        "max_concurrent": 1,
        "independent_scoring": True,
        "results_path": tmp_path / "run",
        "on_progress": lambda *_: None,
    }
    before = server.num_requests
    results = env.evaluate_sync(config(server), "echo", limits={"requests": 3}, prices=PRICES, **arguments)
    assert server.num_requests - before == len(results["outputs"]) == 3
    assert results["metadata"]["stopped_by"] == {"limit": "requests", "allowed": 3, "used": 3}
    assert results["metadata"]["cost"] > 0
    whole = env.evaluate_sync(config(server), "echo", limits={"requests": 8}, **arguments)
    assert (len(whole["outputs"]), whole["metadata"]["stopped_by"]) == (8, None)


# Prices


def test_rows_and_metadata_tell_what_they_cost(server: ModelServer) -> None:
    results = evaluate(questions(4), model(server), prices=PRICES)
    costs = [row["spent"]["cost"] for row in results["outputs"]]
    usage = results["outputs"][0]["token_usage"]
    assert costs[0] == pytest.approx((usage["input_tokens"] + 10 * usage["output_tokens"]) / 1e6)
    assert results["metadata"]["cost"] == pytest.approx(sum(costs))
    unknown = evaluate(questions(1), model(server), prices={"other": PRICES["echo"]})
    assert (unknown["outputs"][0]["spent"]["cost"], unknown["metadata"]["cost"]) == (None, None)
    assert evaluate(questions(1), model(server))["metadata"]["cost"] is None


def test_the_cost_of_a_run_counts_rollouts_that_were_given_up_and_goes_on_when_it_is_resumed(server: ModelServer, tmp_path: Path) -> None:
    def run(**kwargs: Any) -> GenerateOutputs:
        return evaluate(Talk(max_turns=4), model(server), prices=PRICES, max_concurrent=2, results_path=tmp_path / "run", **kwargs)

    first = run(limits={"requests": 6})
    cost, of_rows = first["metadata"]["cost"], sum(row["spent"]["cost"] for row in first["outputs"])
    assert cost is not None
    assert cost > of_rows, "somebody was in the middle of a rollout"
    assert load_results(tmp_path / "run")["metadata"]["cost"] == cost
    second = run(resume=True)
    assert len(second["outputs"]) == 4
    played = sum(row["spent"]["cost"] for row in second["outputs"]) - of_rows
    assert second["metadata"]["cost"] == pytest.approx(cost + played)


def test_requests_that_are_given_up_under_way_are_counted(tmp_path: Path) -> None:
    with ModelServer(latency=30.0) as slow:
        results = evaluate(questions(3), model(slow), prices=PRICES, limits={"time": 1.0}, results_path=tmp_path / "run")
    assert results["metadata"]["abandoned_requests"] == 3
    assert load_results(tmp_path / "run")["metadata"]["abandoned_requests"] == 3
    with ModelServer() as quick:
        resumed = evaluate(questions(3), model(quick), prices=PRICES, resume=True, results_path=tmp_path / "run")
    assert resumed["metadata"]["abandoned_requests"] == 3
    assert len(resumed["outputs"]) == 3


def test_a_limit_on_cost_is_refused_before_anything_is_asked_where_a_price_is_unknown(server: ModelServer, tmp_path: Path) -> None:
    before = server.num_requests
    path = tmp_path / "run"
    with pytest.raises(ConfigurationError, match="no price for the model echo"):
        evaluate(questions(), model(server), prices={"other": PRICES["echo"]}, limits={"cost": 1}, results_path=path)
    with pytest.raises(ConfigurationError, match="needs the prices"):
        evaluate(questions(), model(server), limits={"cost": 1}, results_path=path)
    assert server.num_requests == before
    assert not path.exists()


def test_a_judge_without_a_price_ends_a_run_whose_cost_is_limited(server: ModelServer) -> None:
    rubric = JudgeRubric(judged, judge_client=config(server), judge_model="judge-1")
    with pytest.raises(ConfigurationError, match="no price for the model judge-1"):
        evaluate(questions(rubric=rubric), model(server), prices=PRICES, limits={"cost": 1})


def test_a_run_without_known_cost_gets_no_limit_on_cost(server: ModelServer, tmp_path: Path) -> None:
    path = tmp_path / "run"
    evaluate(questions(2), model(server), results_path=path, prices={"other": PRICES["echo"]})
    with pytest.raises(ConfigurationError, match="do not tell what they cost"):
        evaluate(questions(), model(server), results_path=path, resume=True, prices=PRICES, limits={"cost": 1})


# The cache


def test_a_second_cached_run_asks_for_nothing_and_is_the_same(server: ModelServer, tmp_path: Path) -> None:
    calls = iter(range(1000))
    server.models["counting"] = lambda request: f"answer {next(calls)} 7"
    cache, before = tmp_path / "answers.sqlite", server.num_requests
    arguments: dict[str, Any] = {"rollouts_per_example": 3, "cache": cache, "prices": {"counting": PRICES["echo"]}}
    first = evaluate(Talk(max_turns=2), model(server, "counting"), **arguments)
    assert server.num_requests - before == 4 * 3 * 2
    second = evaluate(Talk(max_turns=2), model(server, "counting"), **arguments)
    assert server.num_requests - before == 4 * 3 * 2
    assert [row["completion"] for row in first["outputs"]] == [row["completion"] for row in second["outputs"]]
    assert [row["token_usage"] for row in first["outputs"]] == [row["token_usage"] for row in second["outputs"]]
    assert len({json.dumps(row["completion"][-1]["content"]) for row in first["outputs"]}) == 12, "rollouts of one task differ"
    assert (second["metadata"]["cost"], spent_tokens(second)) == (0.0, 0)


def test_limits_of_rollouts_are_the_same_with_cached_answers(server: ModelServer, tmp_path: Path) -> None:
    how: dict[str, Any] = {"limits_each": {"tokens": 150}, "cache": tmp_path / "answers.sqlite"}
    first, second = ([row["completion"] for row in evaluate(Talk(), model(server), **how)["outputs"]] for _ in range(2))
    assert first == second


def test_examples_that_ask_the_same_at_once_go_on_with_the_answer_that_is_kept(server: ModelServer, tmp_path: Path) -> None:
    calls = iter(range(1000))
    server.models["counting"] = lambda request: f"answer {next(calls)}"
    env = SingleTurnEnv(dataset=[{"question": "the same", "answer": ""}] * 6, rubric=Rubric())
    first, second = (evaluate(env, model(server, "counting"), cache=tmp_path / "answers.sqlite") for _ in range(2))
    assert [row["completion"] for row in first["outputs"]] == [row["completion"] for row in second["outputs"]]


def test_answers_out_of_the_cache_use_up_nothing(server: ModelServer, tmp_path: Path) -> None:
    cache = tmp_path / "answers.sqlite"
    evaluate(questions(5), model(server), cache=cache)
    results = evaluate(questions(7), model(server), cache=cache, limits={"requests": 2})
    assert len(results["outputs"]) == 7
    assert results["metadata"]["stopped_by"] is None


# A provider that is busy
