"""Tool environments: what a call becomes, which calls overlap, and the errors that end an episode."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from vfgym import SingleTurnEnv, ToolEnv, ToolMessage, blocking
from vfgym.envs.tool import ToolMonitorRubric
from vfgym.errors import AgentError, ConfigurationError, ResetNeeded, SandboxError, ToolCallError, ToolError, ToolParseError
from vfgym.messages import AssistantMessage, Message, ToolCall

ROWS = [{"question": "use the tools"}]


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def say(text: str) -> str:
    """Return the text."""
    return text


def record(size: int) -> dict[str, Any]:
    """Return a record."""
    return {"ok": True, "left": None, "size": size}


def nothing() -> None:
    """Return nothing."""


def picture() -> list[dict[str, Any]]:
    """Return content parts."""
    return [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]


def names() -> list[str]:
    """Return a list of text."""
    return ["a", "b"]


def fail(reason: str) -> str:
    """Raise an error."""
    raise LookupError(reason)


async def later(text: str) -> str:
    """Return the text after a while."""
    await asyncio.sleep(0)
    return text


async def fail_later(reason: str) -> str:
    """Raise an error after a while."""
    await asyncio.sleep(0)
    raise LookupError(reason)


TOOLS = [add, say, record, nothing, picture, names, fail, later, fail_later]


def call(name: str, arguments: Any = None, id: str = "c1") -> ToolCall:
    """Return a tool call; arguments that are not text are encoded."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return ToolCall(id=id, name=name, arguments=text)


def calling(*calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(None, tool_calls=list(calls))


def answers(env: ToolEnv, *calls: ToolCall) -> list[Message]:
    """Reset, make the calls in one message, and return the tool messages."""
    env.reset(seed=0)
    return env.step(calling(*calls)).observation[2:]


# What a call becomes


@pytest.mark.parametrize(
    ("name", "arguments", "content"),
    [
        *[("add", {"a": 2, "b": 3}, "5"), ("add", {"a": 2}, "3"), ("add", {"a": "2"}, "3")],
        *[("add", json.dumps(json.dumps({"a": 2, "b": 3})), "5"), ("say", {"text": "hi"}, "hi"), ("say", {"text": ""}, "")],
        *[("later", {"text": "hi"}, "hi"), ("nothing", "", "null"), ("record", {"size": 1}, '{"ok":true,"left":null,"size":1}')],
        *[("names", {}, '["a","b"]'), ("picture", {}, picture()), ("fail", {"reason": "no such page"}, "no such page")],
        ("fail_later", {"reason": "no such page"}, "no such page"),
    ],
)
def test_a_call_is_answered_with_what_the_tool_returned_or_raised(name: str, arguments: Any, content: Any) -> None:
    """Text stays text, content parts stay parts, anything else is JSON; an error is told in its own words."""
    [message] = answers(ToolEnv(tools=TOOLS, dataset=ROWS), call(name, arguments))
    assert message == ToolMessage(content, tool_call_id="c1") if isinstance(content, list) else content in message["content"]
    assert (message["role"], message["tool_call_id"]) == ("tool", "c1")
    if isinstance(content, str) and name not in ("fail", "fail_later"):
        assert message["content"] == content


def test_the_error_formatter_writes_what_is_told() -> None:
    env = ToolEnv(tools=TOOLS, dataset=ROWS, error_formatter=lambda error: f"<{type(error).__name__}>")
    contents = [message["content"] for message in answers(env, call("fail", {"reason": "x"}), call("nope"), call("add", "{"))]
    assert contents == ["<LookupError>", "<ToolCallError>", "<ToolParseError>"]


def test_every_call_of_a_message_gets_one_answer_in_order() -> None:
    env = ToolEnv(tools=TOOLS, dataset=ROWS)
    calls = [
        *[call("later", {"text": "one"}, "1"), call("say", {"text": "two"}, "2"), call("nope", {}, "3")],
        *[call("fail_later", {"reason": "four"}, "4"), call("later", {"text": "five"}, "5"), call("add", "{", "6")],
    ]
    messages = answers(env, *calls)
    assert [message["tool_call_id"] for message in messages] == ["1", "2", "3", "4", "5", "6"]
    assert [message["content"] for message in messages if message["tool_call_id"] in "125"] == ["one", "two", "five"]


# Which calls overlap


def test_async_tools_of_one_message_run_at_once_and_answer_in_order() -> None:
    here: list[str] = []
    ended: list[str] = []

    async def meet(name: str, last: bool = False) -> str:
        here.append(name)
        while len(here) < 3 or (name == "a" and len(ended) < 2):
            await asyncio.sleep(0)
        ended.append(name)
        return name

    messages = answers(ToolEnv(tools=[meet], dataset=ROWS), *(call("meet", {"name": name}, name) for name in "abc"))
    assert [message["content"] for message in messages] == ["a", "b", "c"]
    assert ended[-1] == "a", "the first call was the last to end"


def test_a_plain_tool_waits_for_the_calls_before_it() -> None:
    order: list[str] = []

    async def slow(name: str) -> str:
        await asyncio.sleep(0)
        order.append(name)
        return name

    def plain(name: str) -> str:
        order.append(name)
        return name

    calls = [("slow", "a"), ("slow", "b"), ("plain", "c"), ("slow", "d"), ("plain", "e")]
    messages = answers(ToolEnv(tools=[slow, plain], dataset=ROWS), *(call(tool, {"name": name}) for tool, name in calls))
    assert ("".join(order), [message["content"] for message in messages]) == ("abcde", list("abcde"))


async def test_a_cancelled_step_cancels_its_tools() -> None:
    events: list[str] = []

    async def endless(name: str) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            events.append(name)
        return name

    env = ToolEnv(tools=[endless], dataset=ROWS)
    await env.areset(seed=0)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(env.astep(calling(call("endless", {"name": "a"}), call("endless", {"name": "b"}))), 0.01)
    assert sorted(events) == ["a", "b"]
    with pytest.raises(ResetNeeded):
        await env.astep("x")


# How episodes end


def test_an_answer_without_calls_ends_the_episode() -> None:
    env = ToolEnv(tools=TOOLS, dataset=ROWS)
    env.reset(seed=0)
    assert not env.step(calling(call("say", {"text": "hi"}))).terminated
    outcome = env.step("done")
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (True, False, "no_tools_called")


def test_the_calls_of_the_last_allowed_turn_are_not_carried_out() -> None:
    calls: list[str] = []

    def act(name: str) -> str:
        calls.append(name)
        return name

    env = ToolEnv(tools=[act], max_turns=2, dataset=ROWS)
    env.reset(seed=0)
    env.step(calling(call("act", {"name": "a"})))
    outcome = env.step(calling(call("act", {"name": "b"})))
    assert (outcome.truncated, outcome.info["stop_condition"]) == (True, "max_turns_reached")
    assert ([message["role"] for message in env.state["completion"]], calls) == (["assistant", "tool", "assistant"], ["a"])


@pytest.mark.parametrize(
    ("wrong", "stop_errors", "raised"),
    [
        (call("add", "{"), [ToolParseError], ToolParseError),
        (call("add", "[]"), [ToolParseError], ToolParseError),
        (call("add", "{"), [ToolError], ToolParseError),
        (call("add", "{"), [ValueError], ToolParseError),
        (call("add", "{"), [ToolCallError], None),
        (call("nope"), [ToolCallError], ToolCallError),
        (call("add", {}), [ToolCallError], ToolCallError),
        (call("nope"), [ToolParseError], None),
        (call("fail", {"reason": "x"}), [LookupError], ToolCallError),
        (call("fail_later", {"reason": "x"}), [LookupError], ToolCallError),
        (call("fail", {"reason": "x"}), [ToolCallError], ToolCallError),
        (call("fail", {"reason": "x"}), [Exception], ToolCallError),
        (call("fail", {"reason": "x"}), [ZeroDivisionError], None),
        (call("fail", {"reason": "x"}), None, None),
    ],
)
def test_stop_errors_end_the_episode(wrong: ToolCall, stop_errors: list[type[Exception]] | None, raised: type[Exception] | None) -> None:
    """They are matched against what the library found and against what the tool raised."""
    env = ToolEnv(tools=TOOLS, dataset=ROWS, stop_errors=stop_errors)
    env.reset(seed=0)
    outcome = env.step(calling(wrong))
    if raised is None:
        assert (outcome.terminated, outcome.observation[-1]["role"]) == (False, "tool")
    else:
        assert (outcome.terminated, outcome.info["stop_condition"]) == (True, "has_error")
        assert type(env.state["error"]) is raised
        if wrong.name.startswith("fail"):
            assert isinstance(env.state["error"].__cause__, LookupError)


@pytest.mark.parametrize("stopping", [call("later", "{"), call("nope"), call("fail_later", {"reason": "x"}), call("fail", {"reason": "x"})])
def test_a_stop_error_leaves_no_other_call_of_the_message_half_done(stopping: ToolCall) -> None:
    """The calls before it are carried out; none is left running or never awaited."""
    events: list[str] = []

    async def work(name: str) -> str:
        events.append(f"{name} begins")
        await asyncio.sleep(0)
        events.append(f"{name} ends")
        return name

    env = ToolEnv(tools=[*TOOLS, work], dataset=ROWS, stop_errors=[ToolError])
    env.reset(seed=0)
    outcome = env.step(calling(call("work", {"name": "a"}), stopping))
    assert (outcome.info["stop_condition"], events) == ("has_error", ["a begins", "a ends"])


@pytest.mark.parametrize(
    ("raised", "cause"),
    [
        (SandboxError("gone"), "infrastructure"),
        (AgentError("broken"), "policy"),
        (LookupError("x"), "environment"),
        (ToolError("x"), "environment"),
    ],
)
def test_whose_doing_a_stop_error_is(raised: Exception, cause: str) -> None:
    """That of a host is not the model's, although a call of the model met it."""

    def break_down() -> None:
        """Raise an error."""
        raise raised

    env = ToolEnv(tools=[break_down], dataset=ROWS, stop_errors=[Exception])
    env.reset(seed=0)
    env.step(calling(call("break_down")))
    assert env.state.failure_cause == cause
    assert isinstance(env.state["error"], ToolError)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "told"),
    [(KeyboardInterrupt(), None), (SystemExit(1), "SystemExit(1) was raised"), (asyncio.CancelledError(), "CancelledError() was raised")],
)
def test_only_what_ends_the_run_is_not_told_to_the_model(error: BaseException, told: str | None, is_async: bool) -> None:
    """A cancellation does where the task that plays was cancelled, and here it was not."""

    def stop() -> None:
        """Raise what stops everything."""
        raise error

    async def stop_later() -> None:
        """Raise what stops everything."""
        raise error

    env = ToolEnv(tools=[stop, stop_later], dataset=ROWS)
    env.reset(seed=0)
    wrong = calling(call("stop_later" if is_async else "stop"))
    if told is None:
        with pytest.raises(type(error)):
            env.step(wrong)
    else:
        assert env.step(wrong).observation[-1] == ToolMessage(told, tool_call_id="c1")
    env.close()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"error_formatter": "text"}, "error_formatter must be a function from an exception to text, got str"),
        ({"stop_errors": [LookupError, "x"]}, "stop_errors must be exceptions, got 'x'"),
        ({"stop_errors": [int]}, "stop_errors must be exceptions, got <class 'int'>"),
        ({"stop_errors": [LookupError("x")]}, "stop_errors must be exceptions, got LookupError"),
        ({"stop_errors": LookupError}, r"stop_errors must be a list of exceptions, got type: write stop_errors=\[LookupError\]"),
        ({"tools": say}, r"tools must be a list of functions, got function: write tools=\[say\]"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        ToolEnv(**{"dataset": ROWS, **arguments})


@pytest.mark.parametrize(("arguments", "turns"), [({}, 10), ({"max_turns": 2}, 2), ({"max_turns": 0}, None), ({"max_turns": -1}, None)])
def test_the_limit_of_turns(arguments: dict[str, int], turns: int | None) -> None:
    env = ToolEnv(tools=[nothing], dataset=ROWS, **arguments)
    env.reset(seed=0)
    ends = [env.step(calling(call("nothing"))).truncated for _ in range(turns or 12)]
    assert ends == [False] * (len(ends) - 1) + [turns is not None]
    env.close()


# Overriding the execution


async def test_call_tool_can_be_called() -> None:
    """Alone, as an override may."""
    env = ToolEnv(tools=[add, later], dataset=ROWS)
    assert await env.call_tool("add", {"a": 2, "b": 3}, "c7") == ToolMessage("5", tool_call_id="c7")
    assert await env.call_tool("later", {"text": "hi"}, "c8") == ToolMessage("hi", tool_call_id="c8")
    with pytest.raises(ToolCallError, match=r"unknown tool 'nope'; available: add, later$"):
        await env.call_tool("nope", {}, "c9")


async def test_a_blocking_tool_holds_up_no_event_loop() -> None:
    threads: list[int] = []

    @blocking
    def wait(text: str) -> str:
        """Return the text."""
        threads.append(threading.get_ident())
        return text

    env = ToolEnv(tools=[wait], dataset=ROWS)
    await env.areset(seed=0)
    outcome = await env.astep(calling(call("wait", {"text": "a"}, "1"), call("wait", {"text": "b"}, "2")))
    assert [message["content"] for message in outcome.observation[2:]] == ["a", "b"]
    assert threading.get_ident() not in threads
    await env.aclose()


def test_call_tool_may_be_overridden() -> None:
    class Loud(ToolEnv):
        async def call_tool(self, tool_name: str, tool_args: Any, tool_call_id: str, **kwargs: Any) -> Any:
            if tool_name == "secret":
                return {"role": "tool", "content": "you found it", "tool_call_id": tool_call_id}
            message = await super().call_tool(tool_name, tool_args, tool_call_id, **kwargs)
            return message.replace(content=message["content"].upper())

    env = Loud(tools=TOOLS, dataset=ROWS)
    messages = answers(env, call("later", {"text": "hi"}, "1"), call("secret", {}, "2"), call("fail", {"reason": "why"}, "3"))
    assert [message["content"] for message in messages] == ["HI", "you found it", "why"]


# Tools come and go


def test_tools_are_shown_in_info_and_follow_add_and_remove() -> None:
    env = ToolEnv(tools=[add], dataset=ROWS)
    _, info = env.reset(seed=0)
    assert [tool["function"]["name"] for tool in info["tools"]] == ["add"]
    env.add_tool(say)
    env.remove_tool(add)
    _, info = env.reset(seed=0)
    assert [tool["function"]["name"] for tool in info["tools"]] == ["say"]
    assert [*info["metrics"]] == ["num_turns", "total_tool_calls", "say_calls"]
    assert (env.tools, env.tool_map, [tool.name for tool in env.tool_defs]) == ([say], {"say": say}, ["say"])
    [message] = answers(env, call("add", {"a": 1}))
    assert message["content"] == "unknown tool 'add'; available: say."
    [message] = answers(env, call("says", {"text": "a"}))
    assert message["content"] == "unknown tool 'says'; available: say. Did you mean `say`?"
    env.remove_tool(say)
    [message] = answers(env, call("say", {"text": "a"}))
    assert message["content"] == "unknown tool 'say'; available: none."
    with pytest.raises(ConfigurationError, match=r"it has none$"):
        env.remove_tool(say)
    env.close()


def test_a_tool_may_be_replaced_by_one_of_its_name() -> None:
    """What was known of the first one is forgotten; the list that was given stays as it was."""

    order: list[str] = []

    async def slow(text: str) -> str:
        """Return the text after a while."""
        await asyncio.sleep(0)
        order.append(text)
        return text

    def plain(text: str) -> str:
        """Return the text twice."""
        order.append(text)
        return 2 * text

    plain.__name__ = "later"
    given = [slow, later, say]
    env = ToolEnv(tools=given, dataset=ROWS)
    before = env.action_space
    env.remove_tool(later)
    without = env.action_space
    env.add_tool(plain)
    assert (given, env.tools, [*env.tool_map]) == ([slow, later, say], [slow, say, plain], ["slow", "say", "later"])
    messages = answers(env, call("slow", {"text": "a"}, "1"), call("later", {"text": "b"}, "2"))
    assert ([message["content"] for message in messages], order) == (["a", "bb"], ["a", "b"])
    names = [{tool.name for tool in space.sampler.tools} for space in (before, without, env.action_space)]
    assert names == [{"slow", "later", "say"}, {"slow", "say"}, {"slow", "say", "later"}]
    env.close()


def test_two_tools_of_one_name_are_refused() -> None:
    env = ToolEnv(tools=[add], dataset=ROWS)
    with pytest.raises(ConfigurationError, match="'add' already"):
        env.add_tool(add)
    with pytest.raises(ConfigurationError, match="not a tool of this environment; it has add"):
        env.remove_tool(say)


def total_tool() -> str:
    """Is named like the metric of all tools."""
    return "done"


def test_no_tool_has_the_metric_of_all_tools() -> None:
    with pytest.raises(ConfigurationError, match="a tool cannot be named 'total_tool': total_tool_calls counts the calls of all tools"):
        ToolEnv(tools=[add, total_tool], dataset=ROWS)
    env = ToolEnv(tools=[add], dataset=ROWS)
    with pytest.raises(ConfigurationError, match="'total_tool'"):
        env.add_tool(total_tool)
    assert (list(env.tool_map), [tool.name for tool in env.tool_defs]) == (["add"], ["add"])


def test_where_a_server_has_such_a_tool_the_metric_is_of_all_tools() -> None:
    rubric = ToolMonitorRubric(["total_tool", "add"])
    assert rubric.metric_names == ["total_tool_calls", "add_calls"]
    env = SingleTurnEnv(ROWS, rubric=rubric)
    env.reset(seed=0)
    env.step(calling(call("add", {}), call("add", {}), call("total_tool", {})))
    assert env.state is not None
    assert (env.state["metrics"]["total_tool_calls"], env.state["metrics"]["add_calls"]) == (3.0, 2.0)


def test_calls_are_metrics() -> None:
    """They count what the model called, whether or not it succeeded and whether or not the tool exists."""
    env = ToolEnv(tools=[add, say], dataset=ROWS)
    env.add_tool(later)
    env.reset(seed=0)
    env.step(calling(call("add", {"a": 1}), call("add", "{"), call("nope")))
    metrics = env.step("done").info["metrics"]
    assert metrics == {"num_turns": 2.0, "total_tool_calls": 3.0, "add_calls": 2.0, "say_calls": 0.0, "later_calls": 0.0}
    assert {type(value) for value in metrics.values()} == {float}
