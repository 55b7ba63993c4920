"""`Environment`: its arguments, rows and states, an author's own rollout, and the clients that it keeps."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from typing import Any

import pytest
from openai import AsyncOpenAI

import verifiers_compat as vf
from tests.programs import run_python
from tests.verifiers_compat.environments import ROW, ROWS, Ledger, Talk, asking, four, look, right, single
from tests.verifiers_compat.models import Endpoint, Model, evaluated, response, rolled_out
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.testing import ScriptedClient


def test_an_environment_can_be_made_in_a_thread_and_without_a_main_thread() -> None:
    made: list[vf.Environment] = []

    class Torn(vf.SingleTurnEnv):
        @vf.teardown
        async def over(self) -> None: ...

    thread = threading.Thread(target=lambda: made.append(Torn(dataset=ROWS)))
    thread.start()
    thread.join()
    assert made[0].evaluate_sync(Model(), "m")["metadata"]["num_examples"] == 4


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
                env = four()
                state = await env.rollout(env.get_dataset()[0], client, "echo")
                await env.aclose()
                assert state["error"] is None
                assert not client.is_closed()


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
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split("\n")[:-1] == ["over a", "over b"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_nothing_that_was_given_is_changed_or_shared() -> None:
    funcs, weights = [right], [1.0]
    rubric = vf.Rubric(funcs, weights)
    rubric.add_reward_func(lambda: 0.0)
    assert (funcs, weights) == ([right], [1.0])
    assert vf.Rubric().funcs == []
    tools, skipped = [look], ["book"]
    env = vf.ToolEnv(tools=tools, dataset=[ROW])
    env.remove_tool(look)
    assert tools == [look]
    ledger = Ledger()

    def other(book: list[str], title: str = "") -> str:
        """Do something else."""
        return title

    ledger.add_tool(other)
    assert "book" in ledger.tool_defs[-1].parameters["properties"]
    assert skipped == ["book"]
    map_kwargs = {"num_proc": None}
    first, second = (vf.SingleTurnEnv(dataset=[ROW], map_kwargs=map_kwargs, rubric=rubric) for _ in range(2))
    assert first.map_kwargs is not second.map_kwargs
    assert len(rubric.funcs) == 2
    assert first.rubric is not second.rubric


async def test_a_task_column_of_text() -> None:
    seen: list[Any] = []

    def asks(task: str) -> float:
        seen.append(task)
        return float(task == "math" and f"{task}" == "math")

    (output,) = await evaluated(single({**ROW, "task": "math"}, rubric=vf.Rubric(asks)), "x")
    assert (output["error"], output["reward"]) == (None, 1.0)
    assert str(seen[0]) == "math"


def test_what_a_trainer_must_know_can_be_asked() -> None:
    def best(completions: list[Any]) -> list[float]:
        return [0.0] * len(completions)

    assert (single().requires_group_rollouts, single().provides_advantages) == (False, False)
    env = single(rubric=vf.Rubric([right, best]))
    assert (env.requires_group_rollouts, env.provides_advantages) == (True, False)
    assert vf.EnvGroup([single(), env]).requires_group_rollouts


@pytest.mark.parametrize("kind", ["configuration", "SDK client"])
async def test_a_single_rollout_takes_any_client(kind: str) -> None:
    """`init_state` is documented to take a client or a configuration, and older code gives the SDK's client to `rollout`."""
    from openai import AsyncOpenAI

    env = Talk(dataset=[ROW], max_turns=2)
    row = env.get_dataset()[0]
    with ModelServer() as server:
        async with AsyncOpenAI(base_url=server.openai_url, api_key="k") as sdk:
            client = sdk if kind == "SDK client" else asking(server.openai_url)
            state = await env.init_state(row, client, "echo")
            assert isinstance(state["client"], vf.Client)
            response = await env.get_model_response(state, state["prompt"])
            assert response.message.content == "1 + 1?"
            state = await env.rollout(row, client, "echo")
    await state["client"].close()
    assert (state["error"], state["completion"][-1]["content"]) == (None, "turn 1")


async def test_a_prompt_of_text_reaches_a_client_as_messages() -> None:
    class Asks(vf.Environment):
        async def rollout(self, input: Any, client: Any, model: str, sampling_args: Any = None) -> vf.State:
            state = await self.init_state(input, client, model, sampling_args)
            answer = await self.get_model_response(state, "just text")
            state["completion"] = answer.message.content
            state["is_completed"] = True
            return state

    client = Model(lambda number, state: "2")
    env = Asks(dataset=[ROW], rubric=vf.Rubric(lambda completion: float(completion == "2")))
    (output,) = (await env.evaluate(client, "m"))["outputs"]
    assert (output["error"], output["reward"]) == (None, 1.0)
    assert client.prompts == [[{"role": "text", "content": "just text"}]]


INNER = {"prompt": [{"role": "user", "content": "inner"}], "answer": "2", "info": {"k": 1}}


OAI_TOOLS = [{"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object", "properties": {}}}}]


def held(example_id: int) -> str:
    return json.dumps({"task": json.dumps({**INNER, "example_id": example_id})})


async def test_a_task_in_info_is_sent_as_it_is() -> None:
    """Beside a system prompt, too; its answer, info and id are those that reward functions and rows have."""
    seen: list[Any] = []

    def look(answer: Any, info: Any, task: Any) -> float:
        seen.append((answer, info, task["example_id"]))
        return 1.0

    rows = [{"question": "outer", "answer": "1", "info": held(number)} for number in (40, 41)]
    env, model = vf.SingleTurnEnv(dataset=rows, system_prompt="Be brief.", rubric=vf.Rubric(look)), Model()
    results = await env.evaluate(model, "m", max_concurrent=1)
    assert model.prompts == [INNER["prompt"]] * 2
    assert seen == [("2", {"k": 1}, 40), ("2", {"k": 1}, 41)]
    assert [(output["example_id"], output["answer"]) for output in results["outputs"]] == [(40, "2"), (41, "2")]
    assert [row["example_id"] for row in env.get_dataset()] == [40, 41]


async def test_rows_of_a_dataset_are_played_alike_when_they_are_given() -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": "outer", "info": held(7)}], system_prompt="Be brief.", rubric=vf.Rubric(lambda: 1.0))
    model = Model()
    state = await env.rollout(env.get_dataset()[0], model, "m")
    assert (model.prompts, state["example_id"]) == ([INNER["prompt"]], 7)


async def test_the_older_name_of_tools_is_read_in_rows_too() -> None:
    other = [{"type": "function", "function": {**OAI_TOOLS[0]["function"], "name": "other"}}]
    for info in ({"oai_tools": OAI_TOOLS}, {"tool_defs": OAI_TOOLS, "oai_tools": []}, {"tool_defs": OAI_TOOLS, "oai_tools": other}):
        env = vf.SingleTurnEnv(dataset=[{"question": "?", "info": json.dumps(info)}], rubric=vf.Rubric(lambda: 1.0))
        [output] = await evaluated(env, "1")
        assert [tool["name"] for tool in output["tool_defs"]] == ["look"]


@pytest.mark.parametrize("as_given", [json.dumps, dict], ids=["as JSON text", "as data"])
async def test_an_input_whose_task_is_a_whole_row_is_read_as_that_row(as_given: Any) -> None:
    whole = {"prompt": [{"role": "user", "content": "inner"}], "answer": "A", "example_id": 4}
    env, model, seen = single(rubric=vf.Rubric(lambda task, answer: seen.append((task["answer"], answer)) or 1.0)), Model(), []
    row = {"prompt": [{"role": "user", "content": "outer"}], "example_id": 0, "task": as_given(whole)}
    state = await env.rollout(row, model, "m")
    assert (state["answer"], state["example_id"], state["task"]["answer"]) == ("A", 4, "A")
    (output,) = (await env.generate([{"task": as_given(whole)}], model, "m"))["outputs"]
    assert (output["example_id"], seen) == (4, [("A", "A")])
    assert model.prompts == [whole["prompt"]] * 2


@pytest.mark.parametrize("label", ["math", "{not JSON", '{"level": 1}', "[1]"])
async def test_a_task_that_is_no_row_stays_a_label(label: str) -> None:
    (output,) = (await single().generate([{**ROW, "task": label}], Model(), "m"))["outputs"]
    assert (output["task"], output["prompt"][0]["content"]) == (label, "1 + 1?")


async def test_an_empty_system_prompt_adds_no_message_to_a_question() -> None:
    env, model = single({"question": "hi"}, system_prompt=""), Model()
    asked = [{"role": "user", "content": "hi"}]
    assert env.get_dataset()[0]["prompt"] == asked
    await env.evaluate(model, "m")
    await env.generate([env.get_dataset()[0], {"question": "hi"}], model, "m")
    await env.rollout(env.get_dataset()[0], model, "m")
    env.reset()
    env.step("1")
    assert model.prompts == [asked] * 4


def test_environments_without_the_hook_that_they_must_have_are_abstract() -> None:
    class Unfinished(vf.MultiTurnEnv):
        pass

    for cls, hook in (
        (vf.MultiTurnEnv, "env_response"),
        (Unfinished, "env_response"),
        (vf.Environment, "rollout"),
        (vf.StatefulToolEnv, "update_tool_args"),
    ):
        with pytest.raises(TypeError, match=f"{cls.__name__} must write {hook}"):
            cls(dataset=[ROW])


async def test_a_state_column_without_a_form_in_json_is_replaced_by_a_text_that_says_so() -> None:
    class Holding(Talk):
        async def setup_state(self, state: Any) -> None:
            state["lock"] = asyncio.Lock()

    (output,) = await evaluated(Holding(dataset=[ROW], max_turns=1), "1", state_columns=["lock"])
    assert (output["lock"], output["error"]) == ("<not kept: Lock has no form in JSON>", None)


async def test_keys_of_the_state_after_a_plain_rollout() -> None:
    env = single()
    states: list[vf.State] = []
    env.add_rubric(vf.Rubric(lambda state: states.append(state) or 0.0))
    await evaluated(env, "2")
    (state,) = states
    observed = {"advantage", "client", "completion", "error", "final_env_response", "input", "is_completed", "is_truncated", "metrics"}
    observed |= {"model", "reward", "sampling_args", "stop_condition", "task", "timing", "tool_defs", "trajectory", "trajectory_id"}
    assert observed | {"usage", "usage_tracker"} <= set(state)
    assert not {"prompt", "answer", "example_id"} & set(state)
    assert (state["answer"], state["example_id"], state.get("answer")) == ("2", 0, "2")
    assert len(state["trajectory_id"]) == 32
    step = state["trajectory"][0]
    assert set(step) == {"prompt", "completion", "response", "tokens", "reward", "advantage", "is_truncated", "trajectory_id", "extras"}
    assert step["trajectory_id"] == state["trajectory_id"]


async def test_order_of_the_keys_of_an_output() -> None:
    env = vf.ToolEnv(tools=[look], dataset=[{**ROW, "info": {"x": 1}}], rubric=vf.Rubric(right))
    (output,) = await evaluated(env, response("2", usage=(1, 1)), state_columns=["trajectory_id"])
    documented = ["example_id", "prompt", "completion", "answer", "info", "reward", "error", "timing", "is_completed", "is_truncated"]
    documented += ["stop_condition", "metrics", "tool_defs", "token_usage", "right", "num_turns", "total_tool_calls", "look_calls"]
    assert [key for key in output if key in documented or key == "trajectory_id"] == [*documented, "trajectory_id"]
    assert json.loads(json.dumps(output))["timing"]["total"] > 0


async def test_reward_functions_may_ask_for_any_column_and_the_task() -> None:
    seen: dict[str, Any] = {}

    def asks(question: str, difficulty: int, example_id: int, task: Any) -> float:
        seen.update(question=question, difficulty=difficulty, example_id=example_id, task=task)
        return 1.0

    env = vf.SingleTurnEnv(dataset=[{**ROW, "difficulty": 3}], rubric=vf.Rubric(asks))
    (output,) = await evaluated(env, "x")
    assert output["reward"] == 1.0
    assert (seen["question"], seen["difficulty"], seen["example_id"]) == ("1 + 1?", 3, 0)
    assert seen["task"]["question"] == "1 + 1?"
    assert seen["task"]["prompt"][0]["content"] == "1 + 1?"


async def test_usage_counts_calls_outside_the_trajectory() -> None:
    class Summarizes(Talk):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            summary = await self.get_model_response(state, [vf.UserMessage("summarize")])
            return [{"role": "user", "content": summary.message.content}]

    env = Summarizes(dataset=[ROW], max_turns=2)
    client = Model(lambda number, state: response("x", usage=[(10, 5), (3, 2), (20, 5)][number]))
    state = await env.rollout(env.get_dataset()[0], client, "m")
    assert len(state["trajectory"]) == 2
    assert env.get_state_usage(state) == {"input_tokens": 33.0, "output_tokens": 12.0}
    output = await env.run_rollout(env.get_dataset()[0], Model(client.answer), "m")
    assert output["token_usage"] == {"input_tokens": 33, "output_tokens": 12, "final_input_tokens": 15, "final_output_tokens": 10}


async def test_usage_that_nobody_reported_is_left_out() -> None:
    env = single()
    results = await env.evaluate(ScriptedClient(["2"]), "m")
    assert "token_usage" not in results["outputs"][0]
    assert results["metadata"]["usage"] is None
    assert env.get_state_usage(await rolled_out(env, "2")) is None


async def test_the_usage_of_a_run_is_the_mean_over_rollouts() -> None:
    client = Model(lambda number, state: response("x", usage=[(10, 5), (30, 15)][number]))
    usage = (await single(ROW, ROW).evaluate(client, "m", max_concurrent=1))["metadata"]["usage"]
    assert usage == {"input_tokens": 20.0, "output_tokens": 10.0, "final_input_tokens": 20.0, "final_output_tokens": 10.0}


async def test_usage_can_be_counted_by_hand() -> None:
    env = single()
    state = await env.init_state(env.get_dataset()[0], Model(), "m")
    assert env.get_state_usage(state) is None
    env.increment_state_usage(state, 3, 2.0)
    assert env.get_state_usage(state) == {"input_tokens": 3.0, "output_tokens": 2.0}
    with pytest.raises(ValueError, match="negative"):
        env.increment_state_usage(state, input_tokens=-1)

    class Anthropic:
        usage = {"input_tokens": 4, "output_tokens": float("nan")}

    env.increment_state_usage_from_response(state, Anthropic())
    env.increment_state_usage_from_response(state, object())
    assert env.get_state_usage(state) == dict(state["usage"]) == {"input_tokens": 7.0, "output_tokens": 2.0}


def test_the_base_of_an_environments_sampling_arguments() -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": "q"}], sampling_args={"temperature": 0.5})
    assert env.sampling_args == {"n": 1, "extra_body": {}, "temperature": 0.5}
    assert vf.SingleTurnEnv(dataset=[{"question": "q"}], sampling_args={"n": 2}).sampling_args["n"] == 2


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: single(message_type="poem"), "message_type must be 'chat' or 'completion', got 'poem'"),
        (lambda: single({"prompt": "x"}, message_type="completion", few_shot=[{"role": "user", "content": "?"}]), "few_shot"),
        (lambda: single({"prompt": "x"}, message_type="completion").set_system_prompt("Be kind."), "system_prompt"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        make()


def test_a_new_system_prompt_is_that_of_the_datasets_that_follow() -> None:
    env = single(system_prompt="Old.")
    for prompt in ("Old.", "New.", ""):
        env.set_system_prompt(prompt)
        assert [message["content"] for message in env.get_dataset()[0]["prompt"]] == [*filter(None, [prompt]), "1 + 1?"]


def test_parsers_of_two_kinds_are_told(caplog: pytest.LogCaptureFixture) -> None:
    single(parser=vf.XMLParser(["answer"]), rubric=vf.Rubric(right, parser=vf.XMLParser(["answer"])))
    assert caplog.text == ""
    single(parser=vf.XMLParser(["answer"]), rubric=vf.Rubric(right, parser=vf.ThinkParser()))
    assert "different parsers for itself and its rubric: ThinkParser and XMLParser" in caplog.text


def test_names_that_are_free_read_what_the_library_has_until_they_are_written() -> None:
    env = vf.SingleTurnEnv(dataset=ROWS[:3], eval_dataset=ROWS[:1])
    assert (len(env.tasks), len(env.eval_tasks), env.state, env.episode) == (3, 1, None, None)
    env.reset(seed=0)
    assert env.state is env.episode.state
    for name in ("state", "episode", "tasks", "eval_tasks"):
        setattr(env, name, None)
        assert getattr(env, name) is None
    env.close()
