"""`Environment`: its arguments, rows and states, an author's own rollout, and the clients that it keeps."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from openai import AsyncOpenAI

import verifiers_compat as vf
from tests.programs import run_python
from tests.verifiers_compat.environments import ROW, ROWS, Talk, asking, look, right, single
from tests.verifiers_compat.models import Endpoint, Model, evaluated, response, rolled_out
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.testing import ScriptedClient

OAI_TOOL = {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}}


def test_unknown_arguments_become_attributes_and_names_of_the_face_stay_free() -> None:
    class Author(vf.MultiTurnEnv):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(dataset=ROWS, name="mine", description="text", max_workers=4, **kwargs)
            self.tasks, self.state = ["an author's"], {"an author's": 1}

        def step(self, number: int) -> int:
            return number + 1

        def env_response(self, messages: vf.Messages, state: vf.State) -> str:
            return f"{self.step(len(messages))}"

    env = Author(max_turns=2, rubric=vf.Rubric(right))
    outputs = env.evaluate_sync(Model(), "m")["outputs"]
    assert outputs[0]["completion"][1] == {"role": "text", "content": "3"}
    assert (env.name, env.description, env.tasks, env.state) == ("mine", "text", ["an author's"], {"an author's": 1})
    assert env.fork().reset(seed=0)[0][0]["content"].startswith("question")


def test_names_that_are_free_read_what_the_library_has_until_they_are_written() -> None:
    env = vf.SingleTurnEnv(dataset=ROWS[:3], eval_dataset=ROWS[:1])
    assert (len(env.tasks), len(env.eval_tasks), env.state, env.episode) == (3, 1, None, None)
    env.reset(seed=0)
    assert env.state is env.episode.state
    for name in ("state", "episode", "tasks", "eval_tasks"):
        setattr(env, name, None)
        assert getattr(env, name) is None
    env.close()


async def test_older_tools() -> None:
    seen: list[vf.State] = []
    env = vf.SingleTurnEnv(dataset=ROWS[:1], oai_tools=[OAI_TOOL], rubric=vf.Rubric(lambda state: seen.append(state) or 0.0))
    await env.evaluate(Model(), "m")
    assert env.oai_tools == seen[0]["oai_tools"] == seen[0].get("oai_tools") == [OAI_TOOL]
    other = {"type": "function", "function": {**OAI_TOOL["function"], "name": "other"}}  # type: ignore[dict-item]
    for info in ({"oai_tools": [OAI_TOOL]}, {"tool_defs": [OAI_TOOL], "oai_tools": []}, {"tool_defs": [OAI_TOOL], "oai_tools": [other]}):
        [output] = await evaluated(vf.SingleTurnEnv(dataset=[{"question": "?", "info": json.dumps(info)}]), "1")
        assert [tool["name"] for tool in output["tool_defs"]] == ["look"]


def test_text_prompts_ask_a_completions_client() -> None:
    env = vf.SingleTurnEnv(dataset=[{"prompt": "Once upon"}], message_type="completion")
    assert env.client_type == "openai_completions"
    assert env.evaluate_sync(Model(), "m")["outputs"][0]["prompt"] == [{"role": "text", "content": "Once upon"}]
    config = vf.ClientConfig(api_base_url="http://localhost:1/v1")
    assert type(env.initial_state(env.get_dataset()[0], config, "m", None)["client"]) is vf.OpenAICompletionsClient


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: single(message_type="poem"), ConfigurationError, "message_type must be 'chat' or 'completion', got 'poem'"),
        (lambda: single({"prompt": "x"}, message_type="completion", few_shot=[{"role": "user", "content": "?"}]), ValueError, "few_shot"),
        (lambda: single({"prompt": "x"}, message_type="completion", system_prompt="no"), ConfigurationError, "system_prompt"),
        (lambda: single({"prompt": "x"}, message_type="completion").set_system_prompt("Be kind."), ConfigurationError, "system_prompt"),
        (lambda: vf.MultiTurnEnv(dataset=[ROW]), TypeError, "MultiTurnEnv must write env_response"),
        (lambda: type("Unfinished", (vf.MultiTurnEnv,), {})(dataset=[ROW]), TypeError, "Unfinished must write env_response"),
        (lambda: vf.Environment(dataset=[ROW]), TypeError, "Environment must write rollout"),
        (lambda: vf.StatefulToolEnv(dataset=[ROW]), TypeError, "StatefulToolEnv must write update_tool_args"),
    ],
)
def test_arguments_that_do_not_fit_and_missing_hooks_are_refused(make: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        make()


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
    env.state.session = "a game"
    env._sessions.keep(env.episode)
    with pytest.raises(OSError, match="stuck"):
        env.close()
    assert [client.closed for client in made] == [True, True]


@pytest.mark.parametrize("kind", ["configuration", "SDK client"])
async def test_a_single_rollout_takes_any_client(kind: str) -> None:
    """`init_state` takes a client or a configuration, and older code gives the SDK's, which whoever made it closes."""
    env = Talk(dataset=[ROW], max_turns=2)
    row = env.get_dataset()[0]
    with ModelServer() as server:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="k") as sdk:
            client = sdk if kind == "SDK client" else asking(server.openai_url)
            state = await env.init_state(row, client, "echo")
            assert isinstance(state["client"], vf.Client)
            assert (await env.get_model_response(state, state["prompt"])).message.content == "1 + 1?"
            state = await env.rollout(row, client, "echo")
            await env.aclose()
            assert not sdk.is_closed()
    assert (state["error"], state["completion"][-1]["content"]) == (None, "turn 1")


def test_every_environment_is_torn_down_and_no_signal_is_taken() -> None:
    program = """
import signal
import verifiers_compat as vf

class Env(vf.SingleTurnEnv):
    @vf.teardown
    async def over(self):
        print("over", self.env_id, flush=True)

before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
envs = [Env(dataset=[{"question": "?"}], env_id=name) for name in "ab"]
assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
envs[0].close()
envs[0].close()
"""
    done = run_python(program, "-W", "error")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "over a\nover b\n")


def test_nothing_that_was_given_is_changed_or_shared() -> None:
    funcs, weights, tools, map_kwargs = [right], [1.0], [look], {"num_proc": None}
    rubric = vf.Rubric(funcs, weights)
    rubric.add_reward_func(lambda: 0.0)
    vf.ToolEnv(tools=tools, dataset=[ROW]).remove_tool(look)
    assert (funcs, weights, tools, vf.Rubric().funcs) == ([right], [1.0], [look], [])
    first, second = (vf.SingleTurnEnv(dataset=[ROW], map_kwargs=map_kwargs, rubric=rubric) for _ in range(2))
    assert first.map_kwargs is not second.map_kwargs
    assert (first.rubric is not second.rubric, len(rubric.funcs)) == (True, 2)


def test_what_a_trainer_must_know_can_be_asked() -> None:
    def best(completions: list[Any]) -> list[float]:
        return [0.0] * len(completions)

    env = single(rubric=vf.Rubric([right, best]))
    assert [(each.requires_group_rollouts, each.provides_advantages) for each in (single(), env)] == [(False, False), (True, False)]
    assert vf.EnvGroup([single(), env]).requires_group_rollouts


async def test_a_prompt_of_text_reaches_a_client_as_messages() -> None:
    class Asks(vf.Environment):
        async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
            state = await self.init_state(input, client, model, sampling_args)
            state["completion"] = (await self.get_model_response(state, "just text")).message.content
            state["is_completed"] = True
            return state

    client = Model(lambda number, state: "2")
    env = Asks(dataset=[ROW], rubric=vf.Rubric(lambda completion: float(completion == "2")))
    (output,) = (await env.evaluate(client, "m"))["outputs"]
    assert (output["error"], output["reward"]) == (None, 1.0)
    assert client.prompts == [[{"role": "text", "content": "just text"}]]


INNER = {"prompt": [{"role": "user", "content": "inner"}], "answer": "2", "info": {"k": 1}}


async def test_a_task_in_info_is_sent_as_it_is() -> None:
    """Beside a system prompt, too; its answer, info and id are those that reward functions and rows have."""
    seen: list[Any] = []

    def look(answer: Any, info: Any, task: Any) -> float:
        seen.append((answer, info, task["example_id"]))
        return 1.0

    held = [json.dumps({"task": json.dumps({**INNER, "example_id": number})}) for number in (40, 41)]
    rows = [{"question": "outer", "answer": "1", "info": info} for info in held]
    env, model = vf.SingleTurnEnv(dataset=rows, system_prompt="Be brief.", rubric=vf.Rubric(look)), Model()
    results = await env.evaluate(model, "m", max_concurrent=1)
    assert seen == [("2", {"k": 1}, 40), ("2", {"k": 1}, 41)]
    assert [(output["example_id"], output["answer"]) for output in results["outputs"]] == [(40, "2"), (41, "2")]
    assert [row["example_id"] for row in env.get_dataset()] == [40, 41]
    assert (await env.rollout(env.get_dataset()[0], model, "m"))["example_id"] == 40
    assert model.prompts == [INNER["prompt"]] * 3


@pytest.mark.parametrize("as_given", [json.dumps, dict], ids=["as JSON text", "as data"])
async def test_an_input_whose_task_is_a_whole_row_is_read_as_that_row(as_given: Any) -> None:
    whole = {"prompt": [{"role": "user", "content": "inner"}], "answer": "A", "example_id": 4}
    env, model, seen = single(rubric=vf.Rubric(lambda task, answer: seen.append((task["answer"], answer)) or 1.0)), Model(), []
    row = {"prompt": [{"role": "user", "content": "outer"}], "example_id": 0, "task": as_given(whole)}
    state = await env.rollout(row, model, "m")
    assert (state["answer"], state["example_id"], state["task"]["answer"]) == ("A", 4, "A")
    (output,) = (await env.generate([{"task": as_given(whole)}], model, "m"))["outputs"]
    assert (output["example_id"], seen, model.prompts) == (4, [("A", "A")], [whole["prompt"]] * 2)


@pytest.mark.parametrize("label", ["math", "{not JSON", '{"level": 1}', "[1]"])
async def test_a_task_that_is_no_row_stays_a_label(label: str) -> None:
    env = single({**ROW, "task": label}, rubric=vf.Rubric(lambda task: float(task == label and str(task) == label)))
    for rows in (env.get_dataset(), [{**ROW, "task": label}]):
        (output,) = (await env.generate(rows, Model(), "m"))["outputs"]
        assert (output["task"], output["prompt"][0]["content"], output["reward"]) == (label, "1 + 1?", 1.0)


async def test_a_new_system_prompt_is_that_of_what_follows_and_an_empty_one_adds_no_message() -> None:
    env, model = single(system_prompt="Old."), Model()
    for prompt in ("Old.", "New.", ""):
        env.set_system_prompt(prompt)
        shown = [*filter(None, [prompt]), "1 + 1?"]
        assert [message["content"] for message in env.get_dataset()[0]["prompt"]] == shown
        await env.evaluate(model, "m")
        await env.generate([env.get_dataset()[0], {"question": "1 + 1?"}], model, "m")
        await env.rollout(env.get_dataset()[0], model, "m")
        assert [[message["content"] for message in each] for each in model.prompts[-4:]] == [shown] * 4
        assert [message.content for message in env.reset()[0]] == shown


async def test_a_state_column_without_a_form_in_json_is_replaced_by_a_text_that_says_so() -> None:
    class Holding(Talk):
        async def setup_state(self, state: Any) -> None:
            state["lock"] = asyncio.Lock()

    (output,) = await evaluated(Holding(dataset=[ROW], max_turns=1), "1", state_columns=["lock"])
    assert (output["lock"], output["error"]) == ("<not kept: Lock has no form in JSON>", None)


async def test_keys_of_the_state_after_a_plain_rollout() -> None:
    states: list[vf.State] = []
    await evaluated(single(rubric=vf.Rubric(lambda state: states.append(state) or 0.0)), "2")
    (state,) = states
    observed = "advantage client completion error final_env_response input is_completed is_truncated metrics model reward sampling_args"
    observed += " stop_condition task timing tool_defs trajectory trajectory_id usage usage_tracker"
    assert {*observed.split()} <= set(state)
    assert not {"prompt", "answer", "example_id"} & set(state)
    assert (state["answer"], state["example_id"], state.get("answer"), len(state["trajectory_id"])) == ("2", 0, "2", 32)
    step = state["trajectory"][0]
    assert set(step) == {"prompt", "completion", "response", "tokens", "reward", "advantage", "is_truncated", "trajectory_id", "extras"}
    assert step["trajectory_id"] == state["trajectory_id"]


async def test_order_of_the_keys_of_an_output() -> None:
    env = vf.ToolEnv(tools=[look], dataset=[{**ROW, "info": {"x": 1}}], rubric=vf.Rubric(right))
    (output,) = await evaluated(env, response("2", usage=(1, 1)), state_columns=["trajectory_id"])
    documented = "example_id prompt completion answer info reward error timing is_completed is_truncated stop_condition metrics tool_defs"
    documented += " token_usage right num_turns total_tool_calls look_calls trajectory_id"
    assert [key for key in output if key in documented.split()] == documented.split()
    assert json.loads(json.dumps(output))["timing"]["total"] > 0


async def test_usage_counts_calls_outside_the_trajectory() -> None:
    class Summarizes(Talk):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            summary = await self.get_model_response(state, [vf.UserMessage("summarize")])
            return [{"role": "user", "content": summary.message.content}]

    env = Summarizes(dataset=[ROW], max_turns=2)
    client = Model(lambda number, state: response("x", usage=[(10, 5), (3, 2), (20, 5)][number]))
    state = await env.rollout(env.get_dataset()[0], client, "m")
    assert (len(state["trajectory"]), env.get_state_usage(state)) == (2, {"input_tokens": 33.0, "output_tokens": 12.0})
    output = await env.run_rollout(env.get_dataset()[0], Model(client.answer), "m")
    assert output["token_usage"] == {"input_tokens": 33, "output_tokens": 12, "final_input_tokens": 15, "final_output_tokens": 10}


async def test_the_usage_of_a_run_is_the_mean_over_rollouts_and_what_nobody_reported_is_left_out() -> None:
    client = Model(lambda number, state: response("x", usage=[(10, 5), (30, 15)][number]))
    usage = (await single(ROW, ROW).evaluate(client, "m", max_concurrent=1))["metadata"]["usage"]
    assert usage == {"input_tokens": 20.0, "output_tokens": 10.0, "final_input_tokens": 20.0, "final_output_tokens": 10.0}
    results = await single().evaluate(ScriptedClient(["2"]), "m")
    assert ("token_usage" in results["outputs"][0], results["metadata"]["usage"]) == (False, None)
    assert single().get_state_usage(await rolled_out(single(), "2")) is None


async def test_usage_can_be_counted_by_hand() -> None:
    class Anthropic:
        usage = {"input_tokens": 4, "output_tokens": float("nan")}

    env = single()
    state = await env.init_state(env.get_dataset()[0], Model(), "m")
    assert env.get_state_usage(state) is None
    env.increment_state_usage(state, 3, 2.0)
    assert env.get_state_usage(state) == {"input_tokens": 3.0, "output_tokens": 2.0}
    with pytest.raises(ValueError, match="negative"):
        env.increment_state_usage(state, input_tokens=-1)
    env.increment_state_usage_from_response(state, Anthropic())
    env.increment_state_usage_from_response(state, object())
    assert env.get_state_usage(state) == dict(state["usage"]) == {"input_tokens": 7.0, "output_tokens": 2.0}


def test_the_base_of_an_environments_sampling_arguments() -> None:
    assert single(sampling_args={"temperature": 0.5}).sampling_args == {"n": 1, "extra_body": {}, "temperature": 0.5}
    assert single(sampling_args={"n": 2}).sampling_args["n"] == 2


def test_parsers_of_two_kinds_are_told(caplog: pytest.LogCaptureFixture) -> None:
    single(parser=vf.XMLParser(["answer"]), rubric=vf.Rubric(right, parser=vf.XMLParser(["answer"])))
    assert caplog.text == ""
    single(parser=vf.XMLParser(["answer"]), rubric=vf.Rubric(right, parser=vf.ThinkParser()))
    assert "different parsers for itself and its rubric: ThinkParser and XMLParser" in caplog.text
