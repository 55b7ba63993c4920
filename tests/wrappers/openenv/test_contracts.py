"""Both contracts: which one a server has, its tools, and what their results are to a model."""

from __future__ import annotations

from typing import Any

import pytest

from tests.openenv_servers import GYM_ACTION, MCP_ACTION, TOOLS
from vfgym.errors import ConfigurationError
from vfgym.messages import MESSAGE_TYPES, AssistantMessage, ToolCall
from vfgym.parsers import Parser, XMLParser
from vfgym.wrappers.openenv.actions import ActionReader
from vfgym.wrappers.openenv.contracts import GymPlay, McpPlay, contract_of, read_tools, tool_content
from vfgym.wrappers.openenv.protocol import ActionRefused, ServerError, ServerReply
from vfgym.wrappers.openenv.rendering import Renderer


@pytest.mark.parametrize(
    ("schema", "contract"),
    [(GYM_ACTION, "gym"), (MCP_ACTION, "mcp"), ({}, "gym"), ({"properties": {"tool_name": {}}}, "gym"), ({"properties": None}, "gym")],
)
def test_the_schema_says_how_a_server_is_played(schema: dict[str, Any], contract: str) -> None:
    assert contract_of(schema) == contract


def listed(tools: Any) -> Any:
    return read_tools("http://host", ServerReply({"tools": tools}, 0.0, False, {}))


def test_tools_are_read_by_either_name_of_their_schema() -> None:
    assert [tool.name for tool in listed(TOOLS)] == ["add", "give_up"]
    [tool] = listed([{"name": "look", "description": "Look.", "inputSchema": {"type": "object", "properties": {"at": {"type": "string"}}}}])
    assert (tool.description, list(tool.parameters["properties"])) == ("Look.", ["at"])
    assert listed([]) == []
    for wrong in (None, "add", [3], {}):
        with pytest.raises(ServerError, match="was asked for its tools and answered without them"):
            listed(wrong)
    with pytest.raises(ConfigurationError):
        listed([{"description": "nameless"}])


SEE, IMAGE = {"type": "text", "text": "see"}, {"type": "image", "data": "AAAA"}


def shown(kind: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,AAAA"}}


@pytest.mark.parametrize(
    ("observation", "content"),
    [
        ({"error": {"message": "no such tool"}, "result": 1}, "Error: no such tool"),
        ({"error": "broken"}, "Error: broken"),
        ({"error": None, "result": "text"}, "text"),
        ({"result": ""}, ""),
        ({"result": 0}, "0"),
        ({"result": None}, "null"),
        ({"result": {"content": "x"}}, '{"content":"x"}'),
        ({"total": 1}, '{"total":1}'),
        ({"result": {"content": []}}, "The tool returned no result."),
        ({"result": {"content": [], "structured_content": 0}}, "0"),
        ({"result": {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}, "a\nb"),
        ({"result": {"content": [{"type": "image", "data": "AAAA", "mime_type": "image/gif"}]}}, [shown("gif")]),
        ({"result": {"content": ["odd", {"type": "text", "text": 0}]}}, '"odd"\n0'),
        ({"error": {}, "result": 1}, "1"),
        ({"error": {"code": 1}}, "Error: None"),
        ({"result": {"content": [{"type": "audio"}]}}, '{"type":"audio"}'),
        ({"result": {"content": [SEE, IMAGE, {**IMAGE, "mimeType": "image/gif"}]}}, [SEE, shown("png"), shown("gif")]),
    ],
)
def test_what_a_tool_gave_is_the_content_of_a_message(observation: dict[str, Any], content: Any) -> None:
    assert tool_content(observation) == content


class Session:
    """A session whose steps give, or raise, one thing after another."""

    def __init__(self, *replies: Any) -> None:
        self.replies, self.asked = list(replies), []

    async def step(self, action: Any) -> ServerReply:
        self.asked.append(action)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


async def test_the_calls_of_an_answer_are_steps_until_the_episode_is_over() -> None:
    """Their rewards are added up, and what is wrong with one is its result."""
    session = Session(
        ServerReply({"result": "a"}, 1.0, False, {}), ActionRefused("too much"), ServerReply({"result": "b"}, 0.5, True, {"n": 2})
    )
    calls = [ToolCall(str(place), "act", arguments) for place, arguments in enumerate(["{}", "{}", "{", '{"x": 1}', "{}"])]
    turn, reply = await McpPlay(MESSAGE_TYPES).answer(session, AssistantMessage(None, tool_calls=calls), 0, is_cut_off=False)  # type: ignore[arg-type]
    assert [message.tool_call_id for message in turn.messages] == ["0", "1", "2", "3", "4"]
    said = [str(message.content) for message in turn.messages]
    assert (said[0], said[1], said[3], said[4]) == ("a", "Error: too much", "b", "Not carried out: the episode is over.")
    assert said[2].startswith("Error: act: the arguments are not valid JSON")
    assert (turn.reward, turn.terminated, turn.is_valid, turn.info) == (1.5, True, True, {"metadata": {"n": 2}})
    assert reply == ServerReply({"result": "b"}, 0.5, True, {"n": 2})
    assert [action["arguments"] for action in session.asked] == [{}, {}, {"x": 1}]


@pytest.mark.parametrize(("calls", "is_valid"), [([], True), ([ToolCall("1", "act", "{")], False)])
async def test_an_answer_is_invalid_where_none_of_its_calls_is_a_step(calls: list[ToolCall], is_valid: bool) -> None:
    turn, reply = await McpPlay(MESSAGE_TYPES).answer(Session(), AssistantMessage("x", tool_calls=calls), 0, is_cut_off=False)  # type: ignore[arg-type]
    assert (turn.is_valid, turn.reward, turn.terminated, reply) == (is_valid, 0.0, False, None)


def gym_play(parser: Parser | None = None) -> GymPlay:
    def render(observation: dict[str, Any], context: str, seed: int) -> list[dict[str, str]]:
        return [{"role": "user", "content": f"{context} {seed}: {observation['total']}"}]

    return GymPlay(ActionReader(GYM_ACTION), Renderer(render, "gym", GYM_ACTION), parser or Parser(), MESSAGE_TYPES)


@pytest.mark.parametrize("done", [False, True])
async def test_an_answer_is_one_step(done: bool) -> None:
    given = ServerReply({"total": 7}, 0.5, done, {"n": 0})
    session = Session(given)
    turn, reply = await gym_play().answer(session, AssistantMessage('{"add": 0}'), 3, is_cut_off=False)  # type: ignore[arg-type]
    assert ([message.content for message in turn.messages], reply) == (["step 3: 7"], given)
    assert (turn.reward, turn.terminated, turn.is_valid, turn.info) == (0.5, done, True, {"metadata": {"n": 0}})
    assert session.asked == [{"add": 0}]


@pytest.mark.parametrize(
    ("answer", "is_cut_off", "problem", "asked"),
    [
        ("Hm.", False, "names no action", 0),
        ("<action>4</action> or <action>5</action>", False, "", 0),
        ("I add 4.\n4", True, "cut off", 0),
        ("<action>4</action>", False, "The action does not fit: too much. ", 1),
        ("<action>4</action> and", True, "The action does not fit: too much. ", 1),
    ],
)
async def test_what_is_no_step_is_asked_for_again(answer: str, is_cut_off: bool, problem: str, asked: int) -> None:
    session = Session(ActionRefused("too much"))
    turn, reply = await gym_play().answer(session, AssistantMessage(answer), 3, is_cut_off=is_cut_off)  # type: ignore[arg-type]
    [message] = turn.messages
    assert (message.role, reply, len(session.asked)) == ("user", None, asked)
    assert problem in str(message.content)
    assert str(message.content).endswith(f". {ActionReader(GYM_ACTION).instructions}")
    assert (turn.reward, turn.terminated, turn.is_valid) == (0.0, False, False)


async def test_a_parser_finds_the_answer() -> None:
    session = Session(ServerReply({"total": 7}, 0.0, False, {}))
    message = AssistantMessage("<guess>9</guess><answer>4</answer>")
    await gym_play(XMLParser(["guess", "answer"])).answer(session, message, 3, is_cut_off=False)  # type: ignore[arg-type]
    assert session.asked == [{"add": 4}]


@pytest.mark.parametrize("error", [ServerError("http://host", "is gone"), KeyError("odd")], ids=repr)
async def test_an_error_of_the_server_is_no_result(error: Exception) -> None:
    call = ToolCall("1", "act", "{}")
    for play, message in ((McpPlay(MESSAGE_TYPES), AssistantMessage(None, tool_calls=[call, call])), (gym_play(), AssistantMessage("4"))):
        session = Session(error, ServerReply({"total": 1}, 0.0, False, {}))
        with pytest.raises(type(error)):
            await play.answer(session, message, 0, is_cut_off=False)  # type: ignore[arg-type]
        assert len(session.asked) == 1
