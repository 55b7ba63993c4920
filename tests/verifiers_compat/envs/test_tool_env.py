"""`ToolEnv`: tools get what the model wrote, and what they return or raise is what it reads."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pydantic
import pytest

import verifiers_compat as vf
from tests.clients.canned_server import canned_server
from tests.models import Recording
from tests.verifiers_compat.environments import ROW, Ledger, asking, look
from tests.verifiers_compat.models import calling, roles, rolled_out, texts
from verifiers_compat.envs.tool_env import with_title
from verifiers_compat.utils.tool_utils import convert_func_to_tool_def
from vfgym.model_server import ModelServer, Reply

PARTS = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def anything(value: Any = None) -> Any:
    """Give what is asked for."""
    return value


def fails() -> str:
    """Fail."""
    raise LookupError("not found")


def with_tools(*tools: Any, **kwargs: Any) -> vf.ToolEnv:
    return vf.ToolEnv(tools=list(tools or (look, add, anything, fails)), dataset=[ROW], **kwargs)


async def read_of(env: Any, *calls: tuple[str, Any]) -> list[Any]:
    """Return what the model reads of the calls of one answer."""
    return texts((await rolled_out(env, calling(*calls), "done"))["completion"])


@pytest.mark.parametrize(
    ("name", "arguments", "content"),
    [
        ("look", {"key": "ü✓"}, "value of ü✓"),
        ("add", {"a": 1}, "2"),
        ("anything", {"value": PARTS}, PARTS),
        ("anything", {"value": []}, "[]"),  # content without a part is refused by the providers
        ("anything", {"value": ["a", "b"]}, "['a', 'b']"),
        ("anything", {"value": {"k": 1, "n": None}}, "{'k': 1, 'n': None}"),
        ("anything", {}, "None"),
        ("anything", {"value": True}, "True"),
        ("anything", {"value": [{"type": "text"}]}, "[{'type': 'text'}]"),
        ("add", {"a": "1", "b": "2"}, "12"),  # arguments are not converted
        ("fails", {}, "not found"),
    ],
)
async def test_tool_outcomes(name: str, arguments: Any, content: Any) -> None:
    state = await rolled_out(with_tools(), calling((name, arguments)), "done")
    (message,) = (message for message in state["completion"] if message["role"] == "tool")
    assert (message["tool_call_id"], message["content"], state["stop_condition"]) == ("c0", content, "no_tools_called")


@pytest.mark.parametrize(
    ("name", "arguments", "error", "says"),
    [
        ("look", "{not json", "JSONDecodeError", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("look", "", "TypeError", "look() missing 1 required positional argument: 'key'"),  # empty text stands for no arguments
        ("look", "[1]", "TypeError", "look: the arguments should be a JSON object, got [1]"),
        ("nope", "{}", "KeyError", "'nope'"),
        ("look", {"zzz": "a"}, "TypeError", "look() got an unexpected keyword argument 'zzz'"),  # 3.13 suggests what is near
    ],
)
async def test_tool_outcomes_that_the_model_is_to_blame_for(name: str, arguments: Any, error: str, says: str) -> None:
    """The model reads what Python says, and the error formatter gets the exception that Python raised."""
    env = with_tools()
    for written in (says, error):
        state = await rolled_out(env, calling((name, arguments)), "done")
        assert (texts(state["completion"]), state["error"], state["stop_condition"]) == ([written], None, "no_tools_called")
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
    state = await rolled_out(with_tools(stop_errors=[stop_error]), calling((name, arguments)), "done")
    if error is None:
        assert (state["error"], state["stop_condition"]) == (None, "no_tools_called")
        return
    assert (state["stop_condition"], type(state["error"]), roles(state["completion"])) == ("has_error", error, ["assistant"])
    assert isinstance(state["error"].__cause__, cause)


async def test_async_tools_of_one_answer_run_one_after_another() -> None:
    order: list[str] = []

    async def slow(key: str) -> str:
        """Take a while."""
        order.append(f"begin {key}")
        await asyncio.sleep(0)
        order.append(f"end {key}")
        return key

    assert await read_of(with_tools(slow), ("slow", {"key": "a"}), ("slow", {"key": "b"})) == ["a", "b"]
    assert order == ["begin a", "end a", "begin b", "end b"]


ORDER = pydantic.create_model("Order", id=(int, ...))


@pytest.mark.parametrize(
    ("annotation", "given"), [(int, "1"), (int, None), (str, 5), (set[int], [1, 1]), (dict[str, int], {"a": "b"}), (ORDER, {"id": "seven"})]
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
    assert await read_of(env, ("take", {"a": given})) == ["ok"]
    assert [(type(value), value) for value in called] == [(type(given), given)] * (1 + is_overridden)


@pytest.mark.parametrize("make", [with_tools, Ledger])
async def test_arguments_that_are_encoded_twice(make: Any) -> None:
    name, argument = ("write", "text") if make is Ledger else ("look", "key")
    decoded, *others = await read_of(make(), (name, json.dumps(json.dumps({argument: "a"}))), (name, "3"), (name, '["a"]'))
    assert decoded in ("value of a", "1 lines")
    assert all("object" in other for other in others)


async def test_call_tool_is_a_coroutine_wherever_an_author_calls_it() -> None:
    """Published environments carry out the calls of an answer all at once."""

    class Parallel(vf.ToolEnv):
        async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: Any) -> vf.Messages:
            calls = [(call.name, json.loads(call.arguments), call.id) for call in messages[-1].tool_calls]
            results = await asyncio.gather(*(asyncio.create_task(self.call_tool(*call)) for call in calls), return_exceptions=True)
            told = [{"role": "tool", "content": repr(result), "tool_call_id": call[2]} for call, result in zip(calls, results, strict=True)]
            return [result if isinstance(result, dict) else other for result, other in zip(results, told, strict=True)]

    async def later(key: str) -> str:
        """Look it up later."""
        await asyncio.sleep(0)
        return f"later {key}"

    calls = [("look", {"key": "a"}), ("later", {"key": "b"}), ("nope", {}), ("look", {"kee": "a"})]
    *told, wrong = await read_of(Parallel(tools=[look, later], dataset=[ROW]), *calls)
    assert (told, "TypeError" in wrong) == (["value of a", "later b", "KeyError('nope')"], True)
    assert asyncio.iscoroutinefunction(vf.ToolEnv.call_tool)
    message = await asyncio.to_thread(lambda: asyncio.run(with_tools().call_tool("look", {"key": "c"}, "id")))
    assert message.content == "value of c"


async def test_env_response_can_be_made_a_task_and_cancelled() -> None:
    started, cancelled = asyncio.Event(), []

    async def wait(key: str) -> str:
        """Wait."""
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

    state = await rolled_out(Tasks(tools=[look], dataset=[ROW]), calling(("look", {"key": "a"}), ("look", {"key": "b"})), "done")
    assert texts(state["completion"]) == ["value of a", "value of b"]
    env = with_tools(wait)
    conversation = [vf.AssistantMessage(content=None, tool_calls=[vf.ToolCall(id="1", name="wait", arguments='{"key": "x"}')])]
    begun = asyncio.create_task(env.env_response(conversation, state))
    await started.wait()
    not_begun = asyncio.create_task(env.env_response(conversation, state))
    for task in (begun, not_begun):
        task.cancel()
    assert [type(result) for result in await asyncio.gather(begun, not_begun, return_exceptions=True)] == [asyncio.CancelledError] * 2
    assert cancelled == ["x"]
    env.env_response(conversation, state).close()


async def test_tools_of_one_rollout_only() -> None:
    class Chosen(vf.ToolEnv):
        async def setup_state(self, state: vf.State, **kwargs: Any) -> vf.State:
            state = await super().setup_state(state, **kwargs)
            state["tool_defs"] = [tool for tool in state["tool_defs"] if tool.name == state["answer"]]
            return state

    client = Recording(["done"])
    await Chosen(tools=[look, add], dataset=[{"question": "?", "answer": "add"}]).evaluate(client, "m")
    assert [[tool.name for tool in asked["tools"]] for asked in client.asked] == [["add"]]


async def test_a_tool_that_the_author_put_into_the_map_by_hand_is_called() -> None:
    env = with_tools()
    env.tool_map |= {"shout": lambda text: text.upper(), "look": lambda key: f"closer: {key}"}
    assert (await env.call_tool("shout", {"text": "hi"}, "c1")).content == "HI"
    assert await read_of(env, ("look", {"key": "hi"}), ("add", {"a": 1})) == ["closer: hi", "2"]


async def test_the_model_sees_a_title_over_the_arguments_of_a_tool_and_what_was_written_to_it() -> None:
    class Hiding(vf.StatefulToolEnv):
        def update_tool_args(self, tool_name: str, tool_args: Any, messages: Any, state: Any, **kwargs: Any) -> Any:
            return tool_args

    hiding = Hiding(dataset=[ROW])
    hiding.add_tool(look, args_to_skip=["key"])
    assert hiding.tool_defs[0].parameters["title"] == convert_func_to_tool_def(look).parameters["title"] == "look_args"
    tool = with_title(vf.Tool(name="look", description="", parameters={"title": "Mine", "type": "object"}))
    assert tool.parameters == {"title": "Mine", "type": "object"}, "one of its own stays"
    env = with_tools(look)
    async with canned_server() as server:
        client = vf.OpenAIChatCompletionsClient(vf.ClientConfig(api_base_url=server.url, max_retries=0))
        for description in ("See.", "Watch."):
            env.tool_defs[0].description = description
            await client.get_response([vf.UserMessage("q")], "m", tools=env.tool_defs)
        await client.close()
    asked = [body["tools"][0]["function"] for body in server.bodies]
    assert [(tool["parameters"]["title"], tool["description"]) for tool in asked] == [("look_args", "See."), ("look_args", "Watch.")]


@pytest.mark.parametrize("client_type", ["openai_chat_completions", "openai_responses", "anthropic_messages"])
async def test_reasoning_is_sent_back_between_tool_calls(client_type: Any) -> None:
    def policy(request: Any) -> Reply:
        if request.messages[-1]["role"] == "tool":
            return Reply("done", reasoning="enough")
        return Reply(None, [vf.ToolCall("c0", "look", '{"key": "a"}')], reasoning="I should look")

    with ModelServer({"m": policy}) as server:
        url = server.url if client_type == "anthropic_messages" else server.openai_url
        (output,) = (await with_tools().evaluate(asking(url, client_type=client_type), "m", {"max_tokens": 50}))["outputs"]
        body = server.requests[-1].body
    assert (output["error"], output["completion"][0]["reasoning_content"]) == (None, "I should look")
    assert "I should look" in json.dumps(body.get("messages") or body["input"])


@pytest.mark.parametrize("name", ["metadata", "name", "state", "messages", "arguments"])
async def test_an_argument_of_a_tool_may_have_any_name(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f'def take({name}: str) -> str:\n    """Take."""\n    return {name}', scope)
    env = with_tools(scope["take"])
    assert [*env.tool_defs[0].parameters["properties"]] == env.tool_defs[0].parameters["required"] == [name]
    assert await read_of(env, ("take", {name: "x"})) == ["x"]
