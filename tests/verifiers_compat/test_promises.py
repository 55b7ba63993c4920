"""What the documents of this API promise and implementations of it easily get wrong, what users reported, and what no page says.

The last part is what published environments rely on all the same.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import json
import signal
import threading
import time
import typing
import weakref
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset, concatenate_datasets
from pydantic import BaseModel

import verifiers_compat as vf
from tests.clients.canned_server import canned_server
from tests.programs import run_python
from tests.verifiers_compat.environments import ROW, Countdown, Talk, asking, look, right, single
from tests.verifiers_compat.models import Model, calling, evaluated, roles, rolled_out, texts
from vfgym.model_server import ModelServer, Reply
from vfgym.testing import ScriptedClient

# What is documented


async def test_advantages_come_from_the_whole_reward_whatever_rubrics_are_added() -> None:
    env = vf.ToolEnv(tools=[look], dataset=[ROW], rubric=vf.RubricGroup([vf.Rubric(right), vf.Rubric(lambda: 0.5)]))
    env.add_rubric(vf.Rubric(lambda completion: float(len(completion)), weights=[0.1]))
    call = calling(("look", {"key": "a"}))

    def answer(number: int, state: Any) -> Any:
        return ["2", call, "no"][number]

    outputs = (await env.evaluate(Model(answer), "m", rollouts_per_example=2, max_concurrent=1, state_columns=["advantage", "trajectory"]))[
        "outputs"
    ]
    rewards = [output["reward"] for output in outputs]
    assert rewards == pytest.approx([1.6, 0.8])
    assert [output["advantage"] for output in outputs] == pytest.approx([0.4, -0.4])
    for output in outputs:
        for step in output["trajectory"]:
            assert (step["reward"], step["advantage"]) == (output["reward"], output["advantage"])


async def test_what_an_author_wrote_into_steps_stays() -> None:
    class Shaped(Talk):
        async def add_trajectory_step(self, state: vf.State, trajectory_step: vf.TrajectoryStep) -> None:
            trajectory_step["reward"] = 0.25
            await super().add_trajectory_step(state, trajectory_step)

    env = Shaped(dataset=[ROW], max_turns=1, rubric=vf.Rubric(lambda: 1.0))
    (output,) = await evaluated(env, "x", state_columns=["trajectory"])
    assert (output["trajectory"][0]["reward"], output["trajectory"][0]["advantage"]) == (0.25, 0.0)


async def test_an_unexpected_exception_ends_one_rollout_only() -> None:
    cleaned: list[str] = []

    class Buggy(Talk):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            assert state["answer"] != "1", "a bug"
            return await super().env_response(messages, state)

        @vf.cleanup
        async def note(self, state: vf.State) -> None:
            cleaned.append(state["answer"])

    env = Buggy(dataset=[{"question": "?", "answer": str(number)} for number in range(3)], max_turns=2)
    outputs = await evaluated(env, "a", "b", rollouts_per_example=2)
    assert [output["error"] and output["error"]["error"] for output in outputs] == [None, None, *["AssertionError"] * 2, None, None]
    assert "a bug" in outputs[2]["error"]["error_chain_repr"]
    assert {output["stop_condition"] for output in outputs if output["error"] is None} == {"max_turns_reached"}
    assert Counter(cleaned) == {"0": 2, "1": 2, "2": 2}
    with pytest.raises(AssertionError, match="a bug"):
        await env.evaluate(ScriptedClient(["a", "b"]), "m", strict=True)


async def test_open_objects_and_optional_arguments() -> None:
    def find(query: str, filters: dict[str, int] | None = None, limit: int = 5, **extra: Any) -> str:
        """Find something."""
        return json.dumps([query, filters, limit, extra])

    env = vf.ToolEnv(tools=[find], dataset=[ROW])
    schema = env.tool_defs[0].parameters
    assert schema["required"] == ["query"]
    assert "limit" in schema["properties"]
    assert schema.get("additionalProperties") is not False
    state = await rolled_out(env, calling(("find", {"query": "x", "filters": {"a": 1}, "colour": "red"})), "done")
    assert texts(state["completion"]) == ['["x", {"a": 1}, 5, {"colour": "red"}]']


class Order(BaseModel):
    """What a tool takes."""

    id: int


@dataclass
class Point:
    """What another one takes."""

    x: int


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (int, "1"),
        (int, 2.0),
        (int, None),
        (str, 5),
        (list[str], '["a"]'),
        (set[int], [1, 1]),
        (tuple[int, int], [1, 2]),
        (typing.Literal["a", "b"], "c"),
        (signal.Signals, 2),
        (Order, {"id": 7}),
        (Order, {"id": "seven"}),
        (Point, {"x": 1}),
        (dict[str, int], {"a": "b"}),
    ],
)
@pytest.mark.parametrize("is_overridden", [False, True])
async def test_a_tool_gets_what_the_model_wrote(annotation: Any, given: Any, is_overridden: bool) -> None:
    """Neither checked nor converted: published tools make what they want of it themselves."""
    called: list[Any] = []

    def take(a: Any) -> str:
        """Take something."""
        called.append(a)
        return "ok"

    take.__annotations__["a"] = annotation

    class Watching(vf.ToolEnv):
        async def call_tool(self, tool_name: str, tool_args: dict[str, Any], tool_call_id: str, **kwargs: Any) -> vf.Message:
            called.append(tool_args["a"])
            return await super().call_tool(tool_name, tool_args, tool_call_id, **kwargs)

    env = (Watching if is_overridden else vf.ToolEnv)(tools=[take], dataset=[ROW])
    state = await rolled_out(env, calling(("take", {"a": given})), "done")
    assert texts(state["completion"]) == ["ok"]
    assert [(type(value), value) for value in called] == [(type(given), given)] * (1 + is_overridden)


class Ledger(vf.StatefulToolEnv):
    """Writes into a book of the rollout, whose argument the model does not see."""

    def __init__(self, raising: dict[str, Exception] | None = None, **kwargs: Any) -> None:
        super().__init__(dataset=[ROW], **kwargs)
        self.raising = raising or {}
        self.add_tool(self.write, args_to_skip=["book"])

    async def setup_state(self, state: vf.State, **kwargs: Any) -> vf.State:
        state = await super().setup_state(state) or state
        state["book"] = []
        return state

    async def write(self, text: str, book: list[str]) -> str:
        """Write something."""
        book.append(text)
        return f"{len(book)} lines"

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: vf.Messages, state: vf.State, **kwargs: Any
    ) -> dict[str, Any]:
        if tool_args.get("text") in self.raising:
            raise self.raising[tool_args["text"]]
        return {**tool_args, "book": state["book"]}


async def test_update_tool_args_is_asked_about_unknown_tools_too() -> None:
    asked: list[tuple[str, Any]] = []

    class Asked(Ledger):
        def update_tool_args(self, tool_name: str, tool_args: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
            asked.append((tool_name, tool_args))
            return super().update_tool_args(tool_name, tool_args, *args, **kwargs)

    state = await rolled_out(Asked(), calling(("nope", {"text": "x"}), ("write", "{"), ("write", "[1]"), ("write", {"text": "y"})), "done")
    assert asked == [("nope", {"text": "x"}), ("write", {"text": "y"})]
    unknown, *_, written = texts(state["completion"])
    assert (unknown, written) == ("'nope'", "1 lines")


@pytest.mark.parametrize(("kind", "stop_error"), [(vf.ToolEnv, TypeError), (Ledger, ValueError)])
async def test_arguments_that_are_no_object(kind: Any, stop_error: Any) -> None:
    def write(text: str) -> str:
        """Write."""
        return text

    env = kind(stop_errors=[stop_error]) if kind is Ledger else kind(tools=[write], dataset=[ROW], stop_errors=[stop_error])
    state = await rolled_out(env, calling(("write", "[1]")), "done")
    assert isinstance(state["error"], vf.ToolParseError)
    assert isinstance(state["error"].__cause__, stop_error)


def test_hidden_arguments_cannot_be_given_by_the_model() -> None:
    env = Ledger()
    assert list(env.tool_defs[0].parameters["properties"]) == ["text"]
    (output,) = env.evaluate_sync(
        ScriptedClient([calling(("write", {"text": "x", "book": ["mine"]})), "done"]), "m", state_columns=["book"]
    )["outputs"]
    assert output["book"] == []
    assert "book" in output["completion"][1]["content"]


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


def test_a_seed_shuffles_a_view() -> None:
    env = single(*({**ROW, "question": str(number)} for number in range(30)))
    order = env.get_dataset()["question"][:]
    shuffled = env.get_dataset(seed=1)["question"][:]
    assert shuffled != order
    assert env.get_dataset()["question"][:] == order
    assert env.get_dataset(seed=1)["question"][:] == shuffled
    assert env.get_dataset(n=3, seed=1)["question"][:] == shuffled[:3]
    assert env.get_eval_dataset(seed=1)["question"][:] == shuffled
    assert env.get_eval_dataset()["question"][:] == order


@pytest.mark.parametrize(
    "changed", [{"sampling_args": {"temperature": 1.0}}, {"model": "other"}, {"rollouts_per_example": 2}, {"num_examples": 1}]
)
async def test_a_directory_belongs_to_one_run(changed: dict[str, Any], tmp_path: Path) -> None:
    options: dict[str, Any] = {"model": "m", "sampling_args": {"temperature": 0.0}, "results_path": tmp_path}
    await single(ROW, ROW).evaluate(ScriptedClient(["x"]), **options)
    with pytest.raises(ValueError, match=next(iter(changed))):
        await single(ROW, ROW).evaluate(ScriptedClient(["x"]), **{**options, **changed})


async def test_a_runtime_error_comes_through_inside_a_running_loop() -> None:
    client = Model(lambda number, state: RuntimeError("from inside"))
    with pytest.raises(RuntimeError, match="from inside"):
        single().evaluate_sync(client, "m", strict=True)
    assert client.calls == 1


async def test_group_functions_are_known_by_their_arguments() -> None:
    def annotated(scores: Any = None) -> list[float]:  # a string: this module has postponed annotations
        return [1.0, 2.0]

    def one(completion: Any) -> list[float]:
        return [1.0]

    assert vf.Rubric(annotated).has_group_rewards
    assert not vf.Rubric(one).has_group_rewards
    outputs = await evaluated(single(rubric=vf.Rubric(annotated)), "x", rollouts_per_example=2)
    assert [output["reward"] for output in outputs] == [1.0, 2.0]


async def test_a_group_of_different_environments(capsys: pytest.CaptureFixture[str]) -> None:
    from verifiers_compat.utils.eval_utils import print_results

    calls: list[str] = []

    def build() -> list[dict[str, Any]]:
        calls.append("built")
        return [ROW]

    tool = vf.ToolEnv(tools=[look], dataset=build, rubric=vf.Rubric(lambda: 1.0))
    group = vf.EnvGroup([single(ROW), tool], env_names=["one", "tools"])
    assert calls == []
    group.set_max_total_completion_tokens(7)
    assert tool.max_total_completion_tokens == 7
    results = await group.evaluate(ScriptedClient(["2"]), "m")
    assert "total_tool_calls" not in results["outputs"][0]["metrics"]
    print_results(results)
    assert "total_tool_calls" in capsys.readouterr().out
    with pytest.raises(ValueError, match="same"):
        vf.EnvGroup([single(), single()], env_names=["same", "same"])


async def test_a_child_with_train_rows_only_is_evaluated_too() -> None:
    both = vf.SingleTurnEnv(dataset=[ROW], eval_dataset=[{"question": "eval?"}])
    group = vf.EnvGroup([both, single(ROW)], env_names=["both", "train"])
    assert [row["info"]["env_id"] for row in group.get_eval_dataset()] == ["both", "train"]
    assert [row["example_id"] for row in group.get_eval_dataset()] == [0, 1]


async def test_what_an_own_rollout_raises_is_its_output_when_the_retries_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfgym.runs.retries._FIRST_WAIT", 0.0)

    class Down(vf.SingleTurnEnv):
        async def rollout(self, *args: Any, **kwargs: Any) -> vf.State:
            raise vf.SandboxError("always down")

    (output,) = (await Down(dataset=[ROW]).evaluate(Model(), "m", max_retries=1))["outputs"]
    assert (output["error"]["error"], output["reward"]) == ("SandboxError", 0.0)


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


# What users reported


@pytest.mark.parametrize("make", [lambda: vf.ToolEnv(tools=[look], dataset=[ROW]), Ledger], ids=["stateless", "stateful"])
async def test_arguments_that_are_encoded_twice(make: Any) -> None:
    env = make()
    name, argument = ("look", "key") if env.tool_defs[0].name == "look" else ("write", "text")
    twice = json.dumps(json.dumps({argument: "a"}))
    state = await rolled_out(env, calling((name, twice), (name, "3"), (name, '["a"]')), "done")
    decoded, number, listed = texts(state["completion"])
    assert decoded in ("value of a", "1 lines")
    assert "object" in number
    assert "object" in listed


async def test_another_refusal_is_an_error_of_the_model() -> None:
    async with canned_server((400, {"error": {"message": "temperature is too high", "type": "x"}})) as server:
        (output,) = (await single().evaluate(asking(server.root), "m"))["outputs"]
    assert (output["stop_condition"], output["error"]["error"]) == ("has_error", "ModelError")


async def test_more_examples_than_there_are() -> None:
    results = await single(ROW, ROW).evaluate(ScriptedClient(["2"]), "m", num_examples=10)
    assert (len(results["outputs"]), results["metadata"]["num_examples"]) == (2, 2)
    assert len(single(ROW, ROW).get_dataset(n=10)) == 2


async def test_results_of_different_environments_go_into_one_dataset() -> None:
    one = await single({**ROW, "info": {"a": 1}}).evaluate(ScriptedClient(["2"]), "m")
    tool = vf.ToolEnv(tools=[look], dataset=[{"question": "?", "info": {"b": ["x"]}}])
    two = await tool.evaluate(ScriptedClient([calling(("look", {"key": "a"})), "done"]), "m")
    both = concatenate_datasets([vf.Environment.make_dataset(one), vf.Environment.make_dataset(two)])
    assert both["reward"][:] == [1.0, 0.0]
    assert len(both) == 2


async def test_scoring_takes_as_long_as_all_rubrics_together() -> None:
    moments: list[float] = []

    async def first() -> float:
        moments.append(time.time())
        return 0.0

    async def last() -> float:
        moments.append(time.time())
        return 0.0

    (output,) = await evaluated(single(rubric=vf.RubricGroup([vf.Rubric(first), vf.Rubric(last)])), "x")
    timing = output["timing"]
    assert timing["generation"]["end"] <= timing["scoring"]["start"] <= moments[0] <= moments[1] <= timing["scoring"]["end"]
    assert timing["total"] == pytest.approx(timing["scoring"]["end"] - timing["generation"]["start"])
    phases = sum(timing[phase]["duration"] for phase in ("setup", "model", "env", "scoring"))
    assert timing["overhead"] == pytest.approx(timing["total"] - phases)


def test_mathematics_is_verified_in_any_thread() -> None:
    rows = [{"question": "1/2?", "answer": r"\frac{1}{2}"}, {"question": "3?", "answer": "3"}]
    env = vf.SingleTurnEnv(dataset=rows, rubric=vf.MathRubric())
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(env.evaluate_sync(ScriptedClient([r"It is \boxed{0.5}."]), "m")))
    thread.start()
    thread.join()
    env.close()
    assert [output["metrics"]["correct_answer"] for output in found[0]["outputs"]] == [1.0, 0.0]


@pytest.mark.parametrize("client_type", ["openai_chat_completions", "openai_responses", "anthropic_messages"])
async def test_reasoning_is_sent_back_between_tool_calls(client_type: Any) -> None:
    def policy(request: Any) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("done", reasoning="enough")
        return Reply(None, [vf.ToolCall("c0", "look", '{"key": "a"}')], reasoning="I should look")

    with ModelServer({"m": policy}) as server:
        url = server.url if client_type == "anthropic_messages" else server.openai_url
        env = vf.ToolEnv(tools=[look], dataset=[ROW])
        (output,) = (await env.evaluate(asking(url, client_type=client_type), "m", {"max_tokens": 50}))["outputs"]
        body = server.requests[-1].body
    assert output["error"] is None
    assert output["completion"][0]["reasoning_content"] == "I should look"
    assert "I should look" in json.dumps(body.get("messages") or body["input"])


@pytest.mark.parametrize("client_type", ["openai_chat_completions", "openai_responses"])
async def test_a_reply_with_reasoning_only_is_a_reply(client_type: Any) -> None:
    with ModelServer({"thinks": lambda request: Reply(None, reasoning="hm"), "silent": lambda request: Reply(None)}) as server:
        config = asking(server.openai_url, client_type=client_type)
        (output,) = (await single().evaluate(config, "thinks"))["outputs"]
        (silent,) = (await single().evaluate(config, "silent"))["outputs"]
    assert (output["error"], output["completion"][0]["reasoning_content"]) == (None, "hm")
    assert silent["error"]["error"] == "EmptyModelResponseError"


@pytest.mark.parametrize("independent", [False, True])
async def test_a_row_that_cannot_be_read_ends_its_own_rollout_only(independent: bool) -> None:
    """The first rows are read by then: what they gave must not be lost."""
    env = vf.SingleTurnEnv(dataset=[ROW, {**ROW, "info": "{no json"}, ROW], rubric=vf.Rubric(right))
    outputs = await evaluated(env, "2", max_concurrent=1, independent_scoring=independent)
    assert [output["reward"] for output in outputs] == [1.0, 0.0, 1.0]
    assert "JSON" in str(outputs[1]["error"])


async def test_tool_calls_are_written_as_data_and_read_as_text_too(tmp_path: Path) -> None:
    from verifiers_compat.utils.eval_utils import print_results
    from verifiers_compat.utils.message_utils import format_messages, messages_to_printable
    from verifiers_compat.utils.save_utils import load_outputs

    env = vf.ToolEnv(tools=[look], dataset=[ROW])
    await env.evaluate(ScriptedClient([calling(("look", {"key": "a"})), "done"]), "m", results_path=tmp_path, save_results=True)
    file = tmp_path / "results.jsonl"
    row = json.loads(file.read_text())
    (call,) = row["completion"][0]["tool_calls"]
    assert isinstance(call, dict)
    row["completion"][0]["tool_calls"] = [json.dumps({"id": "c0", "name": "look", "arguments": '{"key": "a"}'})]
    file.write_text(json.dumps(row) + "\n")
    (loaded,) = load_outputs(tmp_path)
    assert "look" in str(format_messages(loaded["completion"]))
    assert "look" in json.dumps(messages_to_printable(loaded["completion"]))
    print_results({"outputs": [loaded], "metadata": json.loads((tmp_path / "metadata.json").read_text())})


async def test_states_are_let_go_once_their_rows_are_made() -> None:
    class Big: ...

    alive: list[weakref.ref[Any]] = []

    class Holds(Talk):
        async def setup_state(self, state: vf.State) -> None:
            state["big"] = Big()
            alive.append(weakref.ref(state["big"]))

    await Holds(dataset=[ROW] * 6, max_turns=2).evaluate(ScriptedClient(["a", "b"]), "m", max_concurrent=1)
    gc.collect()
    assert [each() for each in alive] == [None] * 6


async def test_rows_of_a_child_in_a_group() -> None:
    child = single()
    alone = vf.EnvGroup([child], env_names=["only"])
    outputs = (await alone.generate(child.get_dataset(), ScriptedClient(["2"]), "m"))["outputs"]
    assert outputs[0]["reward"] == 1.0
    several = vf.EnvGroup([child, single()], env_names=["a", "b"])
    with pytest.raises(ValueError, match="a, b"):
        await several.rollout(child.get_dataset()[0], ScriptedClient(["2"]), "m")


def test_what_a_trainer_must_know_can_be_asked() -> None:
    def best(completions: list[Any]) -> list[float]:
        return [0.0] * len(completions)

    assert (single().requires_group_rollouts, single().provides_advantages) == (False, False)
    env = single(rubric=vf.Rubric([right, best]))
    assert (env.requires_group_rollouts, env.provides_advantages) == (True, False)
    assert vf.EnvGroup([single(), env]).requires_group_rollouts


async def test_results_say_with_which_versions_they_were_made() -> None:
    import importlib.metadata

    version = (await single().evaluate(ScriptedClient(["2"]), "m"))["metadata"]["version_info"]
    assert set(version) == {"vf_version", "vf_commit", "env_version", "env_commit"}
    assert version["vf_version"] == importlib.metadata.version("vfgym")


async def test_each_row_of_a_group_has_the_tools_of_its_environment() -> None:
    with ModelServer({"m": lambda request: "done"}) as server:
        tools = vf.ToolEnv(tools=[look], dataset=[{"question": "with tools"}])
        group = vf.EnvGroup([tools, single({"question": "without"})], env_names=["tools", "none"])
        outputs = (await group.evaluate(asking(server.openai_url), "m"))["outputs"]
        offered = {request.body["messages"][-1]["content"]: request.body.get("tools") for request in server.requests}
    assert offered["with tools"][0]["function"]["name"] == "look"
    assert offered["without"] is None
    assert [[tool["name"] for tool in output["tool_defs"]] for output in outputs] == [["look"], []]


# What published environments rely on


def test_messages_read_as_dicts_and_as_objects() -> None:
    for message in (vf.UserMessage("hi"), vf.UserMessage(role="user", content="hi"), vf.UserMessage(content="hi")):
        assert message["content"] == message.content == message.get("content") == "hi"
        assert "content" in message
        assert message.get("name", "nobody") == "nobody"
        assert message == {"role": "user", "content": "hi"}
    said = vf.AssistantMessage(content="x")
    assert (said.role, said.tool_calls, said.reasoning_content, said.thinking_blocks) == ("assistant", None, None, None)
    call = vf.ToolCall(id="c", name="look", arguments="{}")
    assert (call.id, call.name, call.arguments) == ("c", "look", "{}")
    assert vf.AssistantMessage(content=None, tool_calls=[call]).tool_calls[0].name == "look"


@pytest.mark.parametrize("style", ["item", "attribute"])
async def test_an_edited_message_is_what_the_next_prompt_shows(style: str) -> None:
    class Forgets(vf.ToolEnv):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            for message in messages:
                if message["role"] == "tool" and style == "item":
                    message["content"] = "(left out)"
                elif message["role"] == "tool":
                    message.content = "(left out)"
            return await super().env_response(messages, state, **kwargs)

    def policy(request: Any) -> Any:
        turn = roles(request.messages).count("assistant")
        return calling(("look", {"key": str(turn)})) if turn < 3 else "done"

    with ModelServer({"m": policy}) as server:
        (output,) = (await Forgets(tools=[look], dataset=[ROW]).evaluate(asking(server.openai_url), "m"))["outputs"]
        shown = [texts(request.body["messages"]) for request in server.requests]
    assert output["error"] is None
    assert shown == [[], ["value of 0"], ["(left out)", "value of 1"], ["(left out)", "(left out)", "value of 2"]]


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

        async def get_native_response(
            self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any
        ) -> dict[str, Any]:
            seen.append((prompt[-1]["content"], model, dict(sampling_args), tools, kwargs))
            return {"text": "2"}

        async def raise_from_native_response(self, response: dict[str, Any]) -> None:
            if response["text"] is None:
                raise vf.EmptyModelResponseError("nothing")

        async def from_native_response(self, response: dict[str, Any]) -> vf.Response:
            return vf.Response(
                id="r",
                created=0,
                model="m",
                usage=vf.Usage(prompt_tokens=3, reasoning_tokens=0, completion_tokens=1, total_tokens=4),
                message=vf.ResponseMessage(
                    content=response["text"], reasoning_content=None, finish_reason="stop", is_truncated=False, tokens=None, tool_calls=None
                ),
            )

        async def close(self) -> None:
            native.closed = True

    given = Own(native)
    assert given.client is native
    configured = Own(vf.ClientConfig(extra_headers_from_state={"X-Id": "example_id"}))
    assert configured.client is native
    env = vf.ToolEnv(tools=[look], dataset=[ROW], rubric=vf.Rubric(right))
    for client in (given, configured):
        (output,) = (await env.evaluate(client, "m", {"temperature": 0.5}))["outputs"]
        assert (output["error"], output["reward"], output["token_usage"]["input_tokens"]) == (None, 1.0, 3)
    content, model, sampling_args, tools, kwargs = seen[-1]
    assert (content, model, sampling_args["temperature"], tools) == ("1 + 1?", "m", 0.5, [{"tool": "look"}])
    assert kwargs["extra"] == 1
    assert kwargs["state"]["example_id"] == 0
    assert kwargs["extra_headers"] == {"X-Id": "0"}
    await given.close()
    assert native.closed


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


def test_unknown_arguments_become_attributes_and_datasets_are_there_at_once() -> None:
    env = vf.SingleTurnEnv(
        dataset=Dataset.from_list([ROW]), eval_dataset=Dataset.from_list([ROW, ROW]), name="mine", description="what it does", env_id="x"
    )
    assert (env.name, env.description, env.env_id) == ("mine", "what it does", "x")
    assert (len(env.dataset), len(env.eval_dataset)) == (1, 2)
    assert env.dataset[0]["prompt"] == [{"role": "user", "content": "1 + 1?"}]


async def test_parsers_that_never_call_their_base() -> None:
    @dataclass
    class Word(vf.Parser):
        position: int = -1

        def parse(self, text: str) -> str:
            return text.split()[self.position]

    class Proxy:
        def __init__(self, inner: vf.Parser) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    def parsed(parser: Any, completion: Any, answer: str) -> float:
        return float(parser.parse_answer(completion) == answer)

    for parser in (Word(), Proxy(Word())):
        rubric = vf.Rubric([parsed, parser.get_format_reward_func()], parser=parser)
        (output,) = await evaluated(single(parser=parser, rubric=rubric), "it is 2")
        assert (output["error"], output["metrics"]["parsed"], output["metrics"]["format_reward_func"]) == (None, 1.0, 1.0)


async def test_reward_functions_of_all_kinds() -> None:
    def scaled(completion: Any, *, factor: float, answer: Any) -> float:
        return factor * answer["value"]

    half = functools.partial(scaled, factor=0.5)
    half.__name__ = "half"  # type: ignore[attr-defined]
    unnamed = functools.partial(scaled, factor=0.25)

    class Length:
        def __call__(self, completion: Any, difficulty: int) -> float:
            return float(difficulty)

    class Checks:
        async def check(self, state: Any, **kwargs: Any) -> float:
            return float("prompt" in kwargs and "difficulty" in kwargs)

    env = vf.SingleTurnEnv(
        dataset=[{"question": "?", "answer": {"value": 2}, "difficulty": 3}], rubric=vf.Rubric([half, unnamed, Length(), Checks().check])
    )
    (output,) = await evaluated(env, "x")
    assert output.get("metrics_errors") is None
    assert (output["metrics"]["half"], output["metrics"]["check"], output["reward"]) == (1.0, 1.0, 5.5)
    assert output["answer"] == {"value": 2}


async def test_an_overridden_is_completed_decides_alone() -> None:
    class Twice(Talk):
        async def is_completed(self, state: vf.State, **kwargs: Any) -> bool:
            return len(state["trajectory"]) >= 2

    (output,) = await evaluated(Twice(dataset=[ROW]), "a", "b", "c")
    assert (roles(output["completion"]), output["stop_condition"], output["error"]) == (["assistant", "user", "assistant"], None, None)


def test_rubrics_tell_their_functions() -> None:
    def bonus(completion: Any) -> float:
        return 0.0

    env = vf.SingleTurnEnv(dataset=[ROW], rubric=vf.Rubric([right, bonus], weights=[1.0, 0.5]))
    assert isinstance(env.rubric, vf.RubricGroup)
    own = env.rubric.rubrics[0]
    assert (own.funcs, own.weights) == ([right, bonus], [1.0, 0.5])
    assert own._get_reward_func_names() == ["right", "bonus"]
    assert own._get_reward_funcs() == [right, bonus]
    assert own._get_reward_weights() == [1.0, 0.5]
    assert env.rubric._get_reward_func_names()[:2] == ["right", "bonus"]
    assert len(env.rubric._get_reward_funcs()) == len(env.rubric._get_reward_weights()) == len(env.rubric._get_reward_func_names())


async def test_stateful_tools_are_open_to_inspection() -> None:
    env = Ledger()
    assert env.skipped_args == {"write": ["book"]}
    assert [tool.name for tool in env.tool_defs] == ["write"]
    for number in range(300):

        def tool(text: str, book: list[str]) -> str:
            """Do one of many things."""
            return text

        tool.__name__ = f"tool_{number}"
        env.add_tool(tool, args_to_skip=["book"])
    state = await rolled_out(env, calling(("tool_299", {"text": "x"})), "done")
    assert len(state["tool_defs"]) == 301
    assert texts(state["completion"]) == ["x"]


STOPS = {
    "has_error": vf.MultiTurnEnv,
    "prompt_too_long": vf.MultiTurnEnv,
    "max_turns_reached": vf.MultiTurnEnv,
    "timeout_reached": vf.MultiTurnEnv,
    "max_total_completion_tokens_reached": vf.MultiTurnEnv,
    "has_final_env_response": vf.MultiTurnEnv,
    "no_tools_called": vf.ToolEnv,
}


@pytest.mark.parametrize("name", STOPS)
@pytest.mark.parametrize("is_async", [False, True])
async def test_stop_conditions_may_ask_their_base(name: str, is_async: bool) -> None:
    """Awaited, as documented, and plainly; with whatever arguments they were given."""
    asked: list[bool] = []

    class Asking(STOPS[name]):  # type: ignore[misc]
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            return [{"role": "user", "content": "go on"}]

    async def awaits(self: Any, state: vf.State, **kwargs: Any) -> bool:
        asked.append(await getattr(super(Asking, self), name)(state, **kwargs))
        return asked[-1]

    def asks(self: Any, state: vf.State, **kwargs: Any) -> bool:
        asked.append(bool(getattr(super(Asking, self), name)(state)))
        return asked[-1]

    own = awaits if is_async else asks
    own.__name__ = name
    setattr(Asking, name, vf.stop(own))
    env = Asking(dataset=[ROW], max_turns=2)
    state = await rolled_out(env, "a", "b")
    assert (state["error"], state["stop_condition"]) == (None, name if name == "no_tools_called" else "max_turns_reached")
    assert asked[-1] is (state["stop_condition"] == name)
    assert await getattr(super(Asking, env), name)(state) is asked[-1]


@pytest.mark.parametrize("turns", [0, 2])
async def test_what_a_stop_condition_says_equals_its_truth_value(turns: int) -> None:
    env = Talk(dataset=[ROW], max_turns=2)
    asked: Any = env.max_turns_reached
    holds = asked(vf.State(trajectory=[None] * turns))
    assert (holds == bool(turns), holds == (not turns), holds != bool(turns), holds is None) == (True, False, False, False)
    assert holds == asked(vf.State(trajectory=[None] * turns))
    assert {holds, bool(turns)} == {await holds}


async def test_stop_conditions_can_be_awaited_from_outside() -> None:
    game = vf.GymEnv(Countdown, action_parser=int, num_train_episodes=1)
    state = await rolled_out(game, "1", "1", "1")
    assert state["stop_condition"] == "is_done"
    assert await game.is_done(state) is True
    assert await asyncio.create_task(game.has_error(state)) is False
    assert game.is_done(state)
    assert not game.has_error(state)


class Parallel(vf.ToolEnv):
    """Carries out the calls of an answer all at once, as published environments do."""

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
        calls = [(call.name, json.loads(call.arguments), call.id) for call in messages[-1].tool_calls]
        results = await asyncio.gather(*(self.call_tool(*call) for call in calls), return_exceptions=True)
        async with asyncio.TaskGroup() as group:
            again = [
                group.create_task(self.call_tool(*call)) for call, result in zip(calls, results, strict=True) if isinstance(result, dict)
            ]
        assert [task.result() for task in again] == [result for result in results if isinstance(result, dict)]
        return [
            result if isinstance(result, dict) else {"role": "tool", "content": repr(result), "tool_call_id": call[2]}
            for call, result in zip(calls, results, strict=True)
        ]


async def test_call_tool_is_a_coroutine_wherever_an_author_calls_it() -> None:
    async def later(key: str) -> str:
        """Look it up later."""
        await asyncio.sleep(0)
        return f"later {key}"

    answer = calling(("look", {"key": "a"}), ("later", {"key": "b"}), ("nope", {}), ("look", {"kee": "a"}))
    texts_of_tools = ["value of a", "later b", "KeyError('nope')"]
    state = await rolled_out(Parallel(tools=[look, later], dataset=[ROW]), answer, "done")
    assert texts(state["completion"])[:3] == texts_of_tools
    assert "TypeError" in texts(state["completion"])[3]
    assert asyncio.iscoroutinefunction(vf.ToolEnv.call_tool)

    def in_a_thread() -> Any:
        return asyncio.run(vf.ToolEnv(tools=[look], dataset=[ROW]).call_tool("look", {"key": "c"}, "id"))

    message = await asyncio.to_thread(in_a_thread)
    assert message.content == "value of c"


async def test_env_response_can_be_made_a_task() -> None:
    started, cancelled = asyncio.Event(), []

    async def wait(key: str) -> str:
        """Wait."""
        if key == "not":
            return "did not wait"
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(key)
            raise
        return ""

    class Tasks(vf.ToolEnv):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            return await asyncio.create_task(super().env_response(messages, state, **kwargs))

    answer = calling(("look", {"key": "a"}), ("look", {"key": "b"}))
    state = await rolled_out(Tasks(tools=[look], dataset=[ROW]), answer, "done")
    assert texts(state["completion"]) == ["value of a", "value of b"]
    state = await rolled_out(Tasks(tools=[look, wait], dataset=[ROW]), calling(("wait", {"key": "not"})), "done")
    assert texts(state["completion"]) == ["did not wait"]

    env = vf.ToolEnv(tools=[wait], dataset=[ROW])
    conversation = [vf.AssistantMessage(content=None, tool_calls=[vf.ToolCall(id="1", name="wait", arguments='{"key": "x"}')])]
    begun = asyncio.create_task(env.env_response(conversation, state))
    await started.wait()
    begun.cancel()
    not_begun = asyncio.create_task(env.env_response(conversation, state))
    not_begun.cancel()
    assert [type(result) for result in await asyncio.gather(begun, not_begun, return_exceptions=True)] == [asyncio.CancelledError] * 2
    assert cancelled == ["x"]
    env.env_response(conversation, state).close()


async def test_tools_of_one_rollout_only() -> None:
    class Chosen(vf.ToolEnv):
        async def setup_state(self, state: vf.State, **kwargs: Any) -> vf.State:
            state = await super().setup_state(state, **kwargs)
            state["tool_defs"] = [tool for tool in state["tool_defs"] if tool.name == state["answer"]]
            return state

    def other() -> str:
        """Do something else."""
        return ""

    with ModelServer({"m": lambda request: ",".join(tool.name for tool in request.tools)}) as server:
        env = Chosen(tools=[look, other], dataset=[{"question": "?", "answer": name} for name in ("look", "other", "none")])
        outputs = (await env.evaluate(asking(server.openai_url), "m"))["outputs"]
    assert [output["error"] or output["completion"][-1]["content"] for output in outputs[:2]] == ["look", "other"]
    assert [tool.name for tool in env.tool_defs] == ["look", "other"]


@pytest.mark.parametrize("name", [name for name in vf.types.__all__ if name[0].isupper()])
def test_documented_types_can_stand_in_annotations(name: str) -> None:
    """Published modules do not postpone their annotations, so that ``vf.SamplingArgs | None`` is computed."""
    documented = getattr(vf, name)
    assert documented | None == typing.Optional[documented]  # noqa: UP045, it is what the other spelling is compared with

    def annotated(x: documented) -> None: ...

    annotated.__annotations__ = {"x": documented}
    assert "x" in typing.get_type_hints(annotated)
