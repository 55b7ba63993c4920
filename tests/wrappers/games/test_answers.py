"""`Answers`: an action is read from text or from a call of the tool ``act``, and replies have the form that providers demand."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from vfgym.codecs import ActionNotFound, codec_for
from vfgym.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from vfgym.wrappers.games.answers import ActionSampler, Answers

CODEC = codec_for(gym.spaces.Discrete(3, start=0), ["left", "stay", "right"])
TEXT, TOOL = Answers(CODEC), Answers(CODEC, as_tool=True, game="Chess")
IMAGE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]


def calling(*arguments: str, name: str = "act", content: str | None = None) -> AssistantMessage:
    return AssistantMessage(content, tool_calls=[ToolCall(f"call_{n}", name, each) for n, each in enumerate(arguments, 1)])


def test_the_model_is_told_how_to_answer_and_of_the_tool_where_there_is_one() -> None:
    assert (TEXT.tools, TEXT.instructions) == ([], "Answer with one action in <action> tags, like this: <action>stay</action>")
    assert 'with the arguments {"action": "stay"}.' in TOOL.instructions
    (tool,) = TOOL.tools
    assert tool.name == "act"
    assert tool.description == "Play your next action in Chess. Actions: 0 (left), 1 (stay), 2 (right)."
    assert tool.parameters == {
        "type": "object",
        "properties": {"action": CODEC.schema},
        "required": ["action"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("answers", [TEXT, TOOL])
def test_text_is_read_whether_or_not_there_is_a_tool(answers: Answers) -> None:
    assert answers.read(AssistantMessage("<action>right</action>")) == 2
    assert answers.read(AssistantMessage([{"type": "text", "text": "left"}])) == 0
    assert answers.read(answers.in_text(0)) == 0
    assert answers.read(AssistantMessage("left", tool_calls=[])) == 0
    with pytest.raises(ActionNotFound, match="names no action"):
        answers.read(AssistantMessage(None, tool_calls=None))


def test_a_call_is_read_and_goes_before_the_text() -> None:
    assert TOOL.read(calling('{"action": 0}', content="right")) == 0
    assert TOOL.read(TOOL.as_call(2, "call_9")) == 2
    assert TOOL.as_call(2, "call_9").tool_calls == [ToolCall("call_9", "act", '{"action": "right"}')]
    assert TOOL.as_call(0).tool_calls == [ToolCall("call_1", "act", '{"action": "left"}')]


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (calling('{"action": 3}'), "must be a name or a number from 0 to 2, got 3"),
        (calling("{}"), 'takes one argument: {"action": ...}. Actions: 0 (left)'),
        (calling('{"action": 1, "speed": 2}'), "takes one argument"),
        (calling("[1]"), "takes one argument"),
        (calling("{left}"), "The arguments of `act` are not JSON: "),
        (calling('{"action": 1}', name="walk"), "There is no tool `walk`. Call `act`."),
        (calling('{"action": 1}', '{"action": 1}'), "You called tools 2 times. Call `act` once a turn."),
    ],
)
def test_a_call_that_plays_nothing_is_told_why(message: AssistantMessage, problem: str) -> None:
    for read in (TOOL.read, TOOL.read_cut_off):
        with pytest.raises(ActionNotFound) as caught:
            read(message)
        assert problem in str(caught.value)
    with pytest.raises(ActionNotFound, match="There are no tools in this game"):
        TEXT.read(message)


def test_of_a_message_that_was_cut_off_only_what_is_whole_counts() -> None:
    assert TOOL.read_cut_off(calling('{"action": "left"}')) == 0
    assert TEXT.read_cut_off(AssistantMessage("<action>left</action> or <action>rig")) == 0
    with pytest.raises(ActionNotFound, match="cut off"):
        TEXT.read_cut_off(AssistantMessage("left"))


@pytest.mark.parametrize("content", ["Well.", IMAGE])
def test_a_reply_answers_each_call_and_shows_images_to_the_user(content: Any) -> None:
    assert TEXT.reply(AssistantMessage("left"), content) == [UserMessage(content)]
    first, second, *shown = TOOL.reply(calling("{}", "{}"), content)
    assert first == ToolMessage(content if content == "Well." else "See below.", tool_call_id="call_1")
    assert (second["tool_call_id"], second["content"]) == ("call_2", "Not carried out: one call is played a turn.")
    assert shown == ([] if content == "Well." else [UserMessage(content)])
    for message in (AssistantMessage("left"), calling("{}", "{}")):
        assert TOOL.content_of(TOOL.reply(message, content)) == content


def test_samples_follow_from_the_numbers_they_are_given_and_touch_no_space() -> None:
    space = gym.spaces.Box(-1, 1, (2,), seed=3)
    expected = gym.spaces.Box(-1, 1, (2,), seed=3).sample()
    answers = Answers(codec_for(space), as_tool=True)
    sampler = ActionSampler(answers)
    one, other = (sampler.sample(np.random.default_rng(seed)) for seed in (1, 2))
    assert one == sampler.sample(np.random.default_rng(1)) != other
    assert one.tool_calls is not None
    assert other.tool_calls is not None
    assert one.tool_calls[0].id != other.tool_calls[0].id
    assert space.contains(np.array(json.loads(one.tool_calls[0].arguments)["action"], np.float32))
    np.testing.assert_equal(space.sample(), expected)
    assert {ActionSampler(TEXT).sample(np.random.default_rng(seed)).content for seed in range(20)} == {"left", "stay", "right"}
    assert ActionSampler(TEXT) == ActionSampler(Answers(CODEC, game="Go"))
    assert ActionSampler(TEXT) != ActionSampler(TOOL)
    assert ActionSampler(TEXT) != sampler
    assert ActionSampler(TEXT) != ActionSampler(Answers(codec_for(gym.spaces.Discrete(3))))
    assert repr(sampler) == f"ActionSampler({space})"
