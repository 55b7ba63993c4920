"""`ToolEnv`: tools get what the model wrote, and what they return or raise is what it reads."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pydantic
import pytest

import verifiers_compat as vf
from tests.clients.canned_server import canned_server
from tests.verifiers_compat.environments import ROW, ROWS, Ledger, asking, look
from tests.verifiers_compat.models import Model, calling, evaluated, roles, rolled_out, texts
from verifiers_compat.envs.tool_env import with_title
from vfgym.model_server import ModelServer, Reply
from vfgym.testing import ScriptedClient


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def parts() -> list[dict[str, Any]]:
    """Give parts."""
    return [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]


def nothing() -> list[Any]:
    """Give no parts."""
    return []


def strings() -> list[str]:
    """Give texts."""
    return ["a", "b"]


def anything(value: Any = None) -> Any:
    """Give what is asked for."""
    return value


def fails() -> str:
    """Fail."""
    raise LookupError("not found")


TOOLS = [look, add, parts, nothing, strings, anything, fails]


@pytest.mark.parametrize(
    ("name", "arguments", "content"),
    [
        ("look", {"key": "ü✓"}, "value of ü✓"),
        ("add", {"a": 1}, "2"),
        ("parts", {}, parts()),
        ("nothing", {}, "[]"),  # content without a part is refused by the providers
        ("strings", {}, "['a', 'b']"),
        ("anything", {"value": {"k": 1, "n": None}}, "{'k': 1, 'n': None}"),
        ("anything", {}, "None"),
        ("anything", {"value": True}, "True"),
        ("anything", {"value": [{"type": "text"}]}, "[{'type': 'text'}]"),
        ("add", {"a": "1", "b": "2"}, "12"),  # arguments are not converted
        ("fails", {}, "not found"),
    ],
)
async def test_tool_outcomes(name: str, arguments: Any, content: Any) -> None:
    state = await rolled_out(vf.ToolEnv(tools=TOOLS, dataset=[ROW]), calling((name, arguments)), "done")
    (message,) = (message for message in state["completion"] if message["role"] == "tool")
    assert (message["tool_call_id"], message["content"]) == ("c0", content)
    assert state["stop_condition"] == "no_tools_called"


@pytest.mark.parametrize(
    ("name", "arguments", "error", "says"),
    [
        ("look", "{not json", "JSONDecodeError", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("look", "", "TypeError", "look() missing 1 required positional argument: 'key'"),  # empty text stands for no arguments
        ("look", "[1]", "TypeError", "look: the arguments should be a JSON object, got [1]"),
        ("nope", "{}", "KeyError", "'nope'"),
        ("look", {"zzz": "a"}, "TypeError", "look() got an unexpected keyword argument 'zzz'"),  # 3.13 suggests what is near
        ("add", {}, "TypeError", "add() missing 1 required positional argument: 'a'"),
    ],
)
async def test_tool_outcomes_that_the_model_is_to_blame_for(name: str, arguments: Any, error: str, says: str) -> None:
    """The model reads what Python says, and the error formatter gets the exception that Python raised."""
    env = vf.ToolEnv(tools=TOOLS, dataset=[ROW])
    for written in (says, error):
        state = await rolled_out(env, calling((name, arguments)), "done")
        assert texts(state["completion"]) == [written]
        assert (state["error"], state["stop_condition"]) == (None, "no_tools_called")
        env.error_formatter = lambda raised: type(raised).__name__


@pytest.mark.parametrize(
    ("name", "arguments", "stop_error", "error", "cause"),
    [
        ("look", "{not json", ValueError, vf.ToolParseError, ValueError),
        ("look", "{not json", vf.ToolParseError, vf.ToolParseError, ValueError),
        ("look", "{not json", vf.ToolCallError, None, None),
        ("look", "[1]", TypeError, vf.ToolParseError, TypeError),
        ("nope", "{}", vf.ToolCallError, vf.ToolCallError, KeyError),
        ("nope", "{}", KeyError, vf.ToolCallError, KeyError),
        ("look", {}, TypeError, vf.ToolCallError, TypeError),
        ("fails", {}, LookupError, vf.ToolCallError, LookupError),
        ("fails", {}, vf.Error, vf.ToolCallError, LookupError),
        ("fails", {}, vf.ToolParseError, None, None),
        ("fails", {}, ValueError, None, None),
    ],
)
async def test_tool_outcomes_that_stop(name: str, arguments: Any, stop_error: Any, error: Any, cause: Any) -> None:
    """Those that `stop_errors` names: what Python raised, or what it is recorded as."""
    state = await rolled_out(vf.ToolEnv(tools=TOOLS, dataset=[ROW], stop_errors=[stop_error]), calling((name, arguments)), "done")
    if error is None:
        assert (state["error"], state["stop_condition"]) == (None, "no_tools_called")
        return
    assert (state["stop_condition"], type(state["error"]), roles(state["completion"])) == ("has_error", error, ["assistant"])
    assert isinstance(state["error"].__cause__, cause)


async def test_async_tools_of_one_answer_run_one_after_another() -> None:
    notes: dict[str, str] = {}

    async def save(key: str, text: str) -> str:
        """Save a note."""
        await asyncio.sleep(0)
        notes[key] = text
        return "saved"

    async def load(key: str) -> str:
        """Load a note."""
        return notes.get(key, "no such note")

    env = vf.ToolEnv(tools=[save, load], dataset=[ROW])
    state = await rolled_out(env, calling(("save", {"key": "a", "text": "hello"}), ("load", {"key": "a"})), "done")
    assert texts(state["completion"]) == ["saved", "hello"]


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


ORDER = pydantic.create_model("Order", id=(int, ...))


@pytest.mark.parametrize(
    ("annotation", "given"),
    [(int, "1"), (int, None), (str, 5), (set[int], [1, 1]), (dict[str, int], {"a": "b"}), (ORDER, {"id": 7}), (ORDER, {"id": "seven"})],
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


async def test_the_model_sees_a_title_over_the_arguments_of_a_tool() -> None:
    from verifiers_compat.utils.tool_utils import convert_func_to_tool_def

    class Hiding(vf.StatefulToolEnv):
        def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
            return tool_args

    hiding = Hiding(dataset=[ROW])
    hiding.add_tool(look, args_to_skip=["key"])
    asked: list[Any] = []
    with ModelServer(models={"m": lambda request: asked.extend(request.tools) or "done"}) as server:
        await vf.ToolEnv(dataset=[ROW], tools=[look]).evaluate(asking(server.openai_url), "m")
    assert asked[0].parameters["title"] == "look_args"
    assert hiding.tool_defs[0].parameters["title"] == convert_func_to_tool_def(look).parameters["title"] == "look_args"


async def test_an_environments_tools_are_written_to() -> None:
    env = vf.ToolEnv(dataset=[{"question": "q"}], tools=[look], tool_defs=[{"name": "see", "description": "", "parameters": {}}])
    asked: list[list[str]] = []

    def answer_and_note(number: int, state: Any) -> str:
        asked.append([tool.openai["function"]["description"] for tool in state["tool_defs"]])
        return "x"

    assert all(isinstance(tool, vf.Tool) for tool in env.tool_defs)
    for description in ("See.", "Watch."):
        env.tool_defs[1].description = description
        await env.evaluate(Model(answer_and_note), "m")
    assert asked == [["", "See."], ["", "Watch."]]


async def test_what_was_written_to_a_tool_is_in_the_next_request() -> None:
    env = vf.ToolEnv(dataset=[{"question": "q"}], tools=[look])
    async with canned_server() as server:
        config = vf.ClientConfig(api_base_url=server.url, max_retries=0)
        client = vf.OpenAIChatCompletionsClient(config)
        for description in ("See.", "Watch."):
            env.tool_defs[0].description = description
            await client.get_response([vf.UserMessage("q")], "m", tools=env.tool_defs)
        await client.close()
        assert [body["tools"][0]["function"]["description"] for body in server.bodies] == ["See.", "Watch."]


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
    assert (output["error"], output["completion"][0]["reasoning_content"]) == (None, "I should look")
    assert "I should look" in json.dumps(body.get("messages") or body["input"])


async def test_metrics_of_a_tool_environment_and_of_a_rubric_that_is_added() -> None:
    env = vf.ToolEnv(tools=[look], dataset=[ROW])
    monitor = vf.Rubric()
    monitor.add_metric(lambda state: 10.0 * len(state["trajectory"]))
    env.add_rubric(monitor)
    (output,) = await evaluated(env, calling(("look", {"key": "a"}), ("look", {"key": "b"})), "done")
    assert output["metrics"] == {"num_turns": 2.0, "total_tool_calls": 2.0, "look_calls": 2.0, "<lambda>": 20.0}


@pytest.mark.parametrize("name", ["metadata", "name", "state", "messages", "arguments"])
async def test_an_argument_of_a_tool_may_have_any_name(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f'def take({name}: str) -> str:\n    """Take."""\n    return {name}', scope)
    env = vf.ToolEnv(tools=[scope["take"]], dataset=[ROW])
    assert [*env.tool_defs[0].parameters["properties"]] == env.tool_defs[0].parameters["required"] == [name]
    state = await rolled_out(env, calling(("take", {name: "x"})), "done")
    assert texts(state["completion"]) == ["x"]


def test_a_title_of_ones_own_stays() -> None:
    tool = vf.Tool(name="look", description="", parameters={"title": "Mine", "type": "object"})
    assert (with_title(tool).parameters["title"], [*with_title(tool).parameters]) == ("Mine", ["title", "type"])
