"""Messages that can be written to: whatever is written, at any depth, is what the next prompt shows, and costs its own message only."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import weakref
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest

import verifiers_compat as vf
from tests.clients.canned_server import CannedServer, canned_server
from verifiers_compat import messages
from vfgym.clients.formats import openai_chat as chat_format
from vfgym.clients.providers import openai_chat_completions
from vfgym.clients.providers.openai_chat_completions import OpenAIChatCompletionsClient
from vfgym.errors import InvalidMessage
from vfgym.messages import ToolCall as FrozenCall
from vfgym.messages.chat import convert_all

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}


class ThroughTheSdk(OpenAIChatCompletionsClient):
    """Has a conversion of its own, so it is asked through the SDK."""

    async def to_native_tool(self, tool: Any) -> Any:
        return await super().to_native_tool(tool)


@pytest.fixture
async def server() -> AsyncIterator[CannedServer]:
    async with canned_server() as running:
        yield running


@pytest.fixture(params=[OpenAIChatCompletionsClient, ThroughTheSdk])
async def client(request: pytest.FixtureRequest, server: CannedServer) -> AsyncIterator[OpenAIChatCompletionsClient]:
    made: OpenAIChatCompletionsClient = request.param(vf.ClientConfig(api_base_url=server.url, max_retries=0))
    yield made
    await made.close()


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages that were converted, one by one."""
    seen: list[Any] = []

    def counting(message: Any) -> dict[str, Any]:
        seen.append(message)
        return chat_format.native_message(message)

    monkeypatch.setattr(openai_chat_completions, "native_message", counting)
    return seen


def episode() -> list[Any]:
    """Return a conversation in which the model called a tool, saw its result and was asked to go on."""
    return [
        vf.SystemMessage("Be kind."),
        vf.UserMessage([{"type": "text", "text": "What is here?"}, IMAGE]),
        vf.AssistantMessage(None, tool_calls=[vf.ToolCall(id="c1", name="look", arguments='{"at": 1}')], notes=[{"deep": [1]}]),
        vf.ToolMessage([{"type": "text", "text": "a long result"}], tool_call_id="c1"),
        vf.AssistantMessage("so"),
        vf.UserMessage("go on"),
    ]


def taking_turns(conversation: list[Any], count: int = 2) -> None:
    conversation += [message for turn in range(count) for message in (vf.AssistantMessage(f"a{turn}"), vf.UserMessage(f"u{turn}"))]


WRITES: list[tuple[int, Callable[[Any], Any]]] = [
    (3, lambda message: message.update(content="(cut)")),
    (3, lambda message: setattr(message, "content", "(cut)")),
    (3, lambda message: message["content"].append(IMAGE)),
    (3, lambda message: message["content"].extend([IMAGE, AUDIO])),
    (3, lambda message: message["content"].insert(0, IMAGE)),
    (3, lambda message: message["content"].pop()),
    (3, lambda message: message["content"].clear()),
    (3, lambda message: message["content"].__imul__(2)),
    (3, lambda message: message["content"].__iadd__([IMAGE])),
    (3, lambda message: message["content"].__setitem__(slice(None), [IMAGE])),
    (3, lambda message: message["content"].__delitem__(0)),
    (3, lambda message: message["content"][0].update(text="(cut)")),
    (3, lambda message: message["content"][0].__setitem__("text", "(cut)")),
    (3, lambda message: message["content"][0].__ior__({"text": "(cut)"})),
    (3, lambda message: message["content"][0].setdefault("cache_control", {"type": "ephemeral"})),
    (1, lambda message: message["content"].reverse()),
    (1, lambda message: message["content"].sort(key=lambda part: part["type"])),
    (1, lambda message: message["content"].remove(IMAGE)),
    (1, lambda message: message["content"][1]["image_url"].update(url="data:,")),
    (1, lambda message: message["content"][1]["image_url"].pop("url")),
    (1, lambda message: message["content"][1]["image_url"].popitem()),
    (1, lambda message: message["content"][1]["image_url"].clear()),
    (1, lambda message: message["content"][1].__delitem__("image_url")),
    (2, lambda message: setattr(message.tool_calls[0], "arguments", "{}")),
    (2, lambda message: message.tool_calls[0].__setitem__("arguments", "{}")),
    (2, lambda message: message.tool_calls[0]["function"].update(arguments="{}")),
    (2, lambda message: message.tool_calls[0].update(function={"name": "see", "arguments": "{}"})),
    (2, lambda message: message.tool_calls[0].pop("type")),
    (2, lambda message: message.tool_calls.append(vf.ToolCall(id="c2", name="look", arguments="{}"))),
    (2, lambda message: message["notes"][0]["deep"].append(2)),
    (2, lambda message: message.pop("notes")),
    (2, lambda message: message.popitem()),
    (3, lambda message: message.__ior__({"content": "(cut)"})),
    (2, lambda message: message.tool_calls[0]["function"].__delitem__("arguments")),
]


@pytest.mark.parametrize("turns_later", [pytest.param(0, marks=pytest.mark.exhaustive), 2])
@pytest.mark.parametrize("write", WRITES)
async def test_what_is_written_to_an_earlier_message_is_in_the_next_prompt_and_nothing_else_is_converted_again(
    client: OpenAIChatCompletionsClient, server: CannedServer, converted: list[Any], write: tuple[int, Any], turns_later: int
) -> None:
    conversation, other = episode(), episode()
    for _ in range(2):
        await client.get_response(conversation, "m")
        await client.get_response(other, "m")
        taking_turns(conversation, turns_later)
        taking_turns(other, turns_later)
    await client.get_response(conversation, "m")
    await client.get_response(other, "m")
    untouched = server.bodies[-2]["messages"]
    converted.clear()
    index, change = write
    change(conversation[index])
    await client.get_response(conversation, "m")
    shown = server.bodies[-1]["messages"]
    assert converted == [conversation[index]]
    assert shown == [chat_format.native_message(message) for message in conversation]
    assert shown != untouched
    await client.get_response(conversation, "m")
    await client.get_response(other, "m")
    assert server.bodies[-1]["messages"] == untouched
    assert len(converted) == 1


async def test_raw_messages_among_known_ones(client: OpenAIChatCompletionsClient, server: CannedServer) -> None:
    conversation = episode()
    await client.get_response(conversation, "m")
    raw = [dict(conversation[0]), *conversation[1:], {"role": "assistant", "content": "and"}, {"role": "user", "content": "yes"}]
    await client.get_response(raw, "m")
    assert server.bodies[-1]["messages"][-3:] == [{"role": "user", "content": "go on"}, *raw[-2:]]
    with pytest.raises(vf.Error, match=r"messages\[6\]"):
        await client.get_response([*conversation, {"role": "nobody"}], "m")  # type: ignore[list-item]


async def test_a_part_that_several_messages_share_shows_its_edit_in_each(
    client: OpenAIChatCompletionsClient, server: CannedServer, converted: list[Any]
) -> None:
    part, call = vf.TextContentPart(text="long"), vf.ToolCall(id="c1", name="look", arguments="{}")
    conversation = [
        *[vf.UserMessage([part]), vf.AssistantMessage(None, tool_calls=[call])],
        *[vf.ToolMessage([part], tool_call_id="c1"), vf.AssistantMessage("so", tool_calls=[call]), vf.UserMessage("go on")],
    ]
    await client.get_response(conversation, "m")
    converted.clear()
    part.text, call.arguments = "short", '{"at": 1}'
    await client.get_response(conversation, "m")
    shown = server.bodies[-1]["messages"]
    assert shown == [chat_format.native_message(message) for message in conversation]
    assert [shown[0]["content"][0]["text"], shown[2]["content"][0]["text"]] == ["short", "short"]
    assert [shown[at]["tool_calls"][0]["function"]["arguments"] for at in (1, 3)] == ['{"at": 1}', '{"at": 1}']
    assert converted == conversation[:4]


# What is inside


def test_parts_and_calls_stay_themselves() -> None:
    text, image = vf.TextContentPart(text="a"), vf.ImageUrlContentPart(image_url=IMAGE["image_url"])
    call = vf.ToolCall(id="c1", name="look", arguments="{}")
    said = vf.AssistantMessage([text], tool_calls=[call], notes=(text,))
    asked = vf.UserMessage([text, image]).replace(name="ann")
    parts = asked["content"] = [image, text]
    calls = said["tool_calls"]
    parts.append(text)
    calls.append(call)
    assert all(one is other for one, other in zip([*asked["content"], *said["content"]], [image, text, text, text], strict=True))
    assert all(each is call for each in said.tool_calls)
    assert (said["notes"][0] is text, asked["content"] is parts, len(said.tool_calls)) == (True, True, 2)


def test_plain_dicts_become_parts_and_are_themselves_left_alone() -> None:
    given = [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "file", "file": {"file_id": "f"}}]
    untouched = copy.deepcopy(given)
    message = vf.UserMessage("x", notes={"deep": [{"at": 1}]})
    message.content = given
    message.content[0].text = message.content[0].cache_control.type = message.content[1].file.file_id = "b"
    message.notes.deep[0].at = 2
    message.update(seen=[{"by": {"name": "ann"}}])
    assert message.seen[0].by.name == "ann"
    assert message == {
        **{"role": "user", "notes": {"deep": [{"at": 2}]}, "seen": [{"by": {"name": "ann"}}]},
        "content": [{"type": "text", "text": "b", "cache_control": {"type": "b"}}, {"type": "file", "file": {"file_id": "b"}}],
    }
    assert given == untouched


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_deep_copies_are_equal_and_their_own(twin_of: Callable[[Any], Any]) -> None:
    for message in episode():
        [native] = convert_all([message], chat_format.native_message)
        twin = twin_of(message)
        assert (twin, type(twin)) == (message, type(message))
        assert json.loads(json.dumps(twin)) == json.loads(json.dumps(message)) == message
        if message["role"] == "assistant" and message.tool_calls:
            assert type(twin.tool_calls[0]) is vf.ToolCall
            twin.tool_calls[0].arguments = "{}"
            twin["notes"][0].deep.append(2)
            assert (message.tool_calls[0].arguments, message["notes"]) == ('{"at": 1}', [{"deep": [1]}])
        elif isinstance(message["content"], list):
            assert type(twin["content"][0]) is vf.TextContentPart
            twin["content"][0].text = "changed"
            assert message["content"][0]["text"] != "changed"
        else:
            twin["content"] = "changed"
        assert twin != message
        assert convert_all([message, twin], chat_format.native_message) == [native, chat_format.native_message(twin)]


def test_copies_have_fields_of_their_own() -> None:
    message = episode()[2]
    twin = copy.copy(message)
    twin["content"] = "so"
    assert (message["content"], twin["tool_calls"] is message["tool_calls"]) == (None, True)
    call = copy.copy(message.tool_calls[0])
    call.name = "see"
    assert (type(call), call["function"]["name"], message.tool_calls[0].name) == (vf.ToolCall, "see", "look")
    message = vf.UserMessage([{"type": "text", "text": "a"}])
    other = message.model_copy(update={"content": "b", "seen": True})
    assert (other["content"], other.seen, type(other), message) == (
        "b",
        True,
        vf.UserMessage,
        vf.UserMessage([{"type": "text", "text": "a"}]),
    )
    deep: Any = message.model_copy(deep=True)
    deep.content[0]["text"] = "c"
    assert message.content[0]["text"] == "a"


async def test_an_episode_is_let_go_without_the_garbage_collector(client: OpenAIChatCompletionsClient) -> None:
    class Text(str):
        """A text that can be watched."""

    conversation = [vf.UserMessage([{"type": "text", "text": Text("u")}]), vf.AssistantMessage(Text("a")), vf.UserMessage(Text("go on"))]
    for _ in range(3):
        await client.get_response(conversation, "m")
        taking_turns(conversation, 1)
    gone = [weakref.ref(text) for text in (conversation[0].content[0].text, conversation[1].content, conversation[2].content)]
    gc.disable()
    try:
        del conversation
        assert [each() for each in gone] == [None] * 3
    finally:
        gc.enable()


CALL = {"id": "c1", "name": "look", "arguments": '{"at": 1}'}
OPTIONAL = ("reasoning_content", "thinking_blocks", "tool_calls")
OWN = ("finish_reason", "is_truncated", "tokens")


@pytest.mark.parametrize(("cls", "names"), [(vf.AssistantMessage, OPTIONAL), (vf.ResponseMessage, (*OPTIONAL, *OWN))])
def test_a_documented_field_that_was_not_given_reads_none_by_item_too(cls: Any, names: tuple[str, ...]) -> None:
    message = cls(content="hi")
    assert [message[name] for name in names] == [getattr(message, name) for name in names] == [None] * len(names)
    assert all(name in message for name in names)
    assert isinstance(message, vf.AssistantMessage)
    for name in ("name", "refusal"):
        assert name not in message
        with pytest.raises(KeyError):
            message[name]


def test_fields_that_were_not_given_are_no_data_and_can_be_written() -> None:
    message = vf.AssistantMessage(content="hi")
    assert message["tool_calls"] is None
    assert json.loads(json.dumps(message)) == dict(message) == {**message} == message == {"role": "assistant", "content": "hi"}
    assert chat_format.native_message(message) == {"role": "assistant", "content": "hi"}
    assert message.get("tool_calls", []) == []
    message = vf.AssistantMessage(content="hi")
    assert message.setdefault("reasoning_content", "hm") == message["reasoning_content"] == "hm"
    del message.reasoning_content
    assert message["reasoning_content"] is None
    with pytest.raises(AttributeError):
        del message.reasoning_content


def test_calls_and_messages_dumped_have_all_fields_and_can_be_made_of_them() -> None:
    call = vf.ToolCall(**CALL, cache=True)
    assert call.model_dump() == {**CALL, "cache": True}
    assert (call.cache, hasattr(call, "nothing")) == (True, False)
    assert json.loads(call.model_dump_json(exclude={"cache"})) == CALL
    assert [name in call for name in ("id", "name", "arguments", "cache", "nothing")] == [True, True, True, True, False]
    other = call.model_copy(update={"name": "see", "id": "c2"})
    assert (other.id, other.name, call.id, call.name) == ("c2", "see", "c1", "look")
    message = vf.AssistantMessage(content=None, tool_calls=[CALL], notes=[{"deep": None}])
    dumped = message.model_dump()
    assert dumped == {
        **{"role": "assistant", "content": None, "reasoning_content": None, "thinking_blocks": None},
        **{"tool_calls": [CALL], "notes": [{"deep": None}]},
    }
    assert message.model_dump(exclude_none=True, exclude={"notes"}) == {"role": "assistant", "tool_calls": [CALL]}
    assert message.model_dump(include={"role"}) == {"role": "assistant"}
    assert json.loads(message.model_dump_json()) == dumped
    for twin in (vf.AssistantMessage.model_validate(dumped), vf.AssistantMessage.model_validate_json(message.model_dump_json())):
        assert (twin, type(twin.tool_calls[0])) == (message, vf.ToolCall)
    dumped["notes"][0]["deep"] = 1
    assert message["notes"] == [{"deep": None}]


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (vf.TextContentPart(text="a"), "TextContentPart"),
        (vf.ImageUrlContentPart(image_url={"url": "data:,"}), "ImageUrlContentPart"),
        (vf.InputAudioContentPart(input_audio={"data": "AA", "format": "wav"}), "InputAudioContentPart"),
    ],
)
def test_content_parts_are_dicts_of_their_documented_classes(part: Any, kind: str) -> None:
    for given in (part, dict(part)):
        [held] = vf.UserMessage([given]).content
        for each in (held, copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
            assert (type(each).__name__, each, each.type) == (kind, part, part["type"])
    with pytest.raises(AttributeError, match="has no field 'cotnent'"):
        part.cotnent  # noqa: B018


def test_content_parts_are_written_to_hold_sources_and_have_the_methods_of_models() -> None:
    message = vf.UserMessage([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:,"}}])
    sent = json.dumps(chat_format.native_message(message))
    text, image = message.content
    text.text = "b"
    image.image_url.detail = "low"
    text.note = [1]
    assert message.content == [
        {"type": "text", "text": "b", "note": [1]},
        {"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}},
    ]
    assert json.dumps(chat_format.native_message(message)) != sent
    del text.note
    assert text == {"type": "text", "text": "b"}
    with pytest.raises(AttributeError):
        del text.note
    part = vf.ImageUrlContentPart(image_url={"url": "data:,", "detail": None})
    fields = {"type": "image_url", "image_url": {"url": "data:,", "detail": None}}
    assert part.model_dump() == json.loads(part.model_dump_json()) == fields
    assert part.model_dump(exclude={"image_url": {"detail"}}) == {"type": "image_url", "image_url": {"url": "data:,"}}
    other = part.model_copy(update={"image_url": {"url": "data:,x"}})
    assert (other.image_url.url, part, type(other)) == ("data:,x", fields, vf.ImageUrlContentPart)
    for given in (fields, {"image_url": fields["image_url"]}, part):
        twin = vf.ImageUrlContentPart.model_validate(given)
        assert (twin, type(twin)) == (part, vf.ImageUrlContentPart)
    assert vf.ImageUrlContentPart.model_validate_json(part.model_dump_json()).image_url.url == "data:,"
    for wrong in ({"type": "text", "text": "x"}, {}, 5):
        with pytest.raises(ValueError, match="ImageUrlContentPart"):
            vf.ImageUrlContentPart.model_validate(wrong)
    from verifiers_compat.types import ImageUrlContentPart, ImageUrlSource, InputAudioContentPart, InputAudioSource

    image = ImageUrlContentPart(image_url=ImageUrlSource(url="https://example.org/a.png"))
    audio = InputAudioContentPart(input_audio=InputAudioSource(data="UklG", format="wav"))
    assert (image.image_url.url, audio.input_audio.data, audio.input_audio.format) == ("https://example.org/a.png", "UklG", "wav")
    assert image.model_dump() == {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    plain = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "input_audio", "input_audio": {"data": "y", "format": "mp3"}}]
    content = vf.UserMessage(content=plain).content
    assert (type(content[0].image_url), type(content[1].input_audio)) == (ImageUrlSource, InputAudioSource)
    assert vf.UserMessage(content=[image, audio]).content == [image, audio]
    assert ImageUrlSource.model_validate({"url": "x"}) == content[0].image_url
    with pytest.raises(ValueError, match="expected the fields of a InputAudioSource"):
        InputAudioSource.model_validate({"data": "y"})


FIELDS: list[tuple[Any, dict[str, Any]]] = [
    (vf.UserMessage, {"role": "user", "content": [{"type": "text", "text": "a"}], "name": "ann"}),
    (vf.SystemMessage, {"role": "system", "content": ""}),
    (vf.ToolMessage, {"role": "tool", "content": "x", "tool_call_id": "c1"}),
    (vf.TextMessage, {"role": "text", "content": "x"}),
    (vf.AssistantMessage, {"role": "assistant", "content": None, "tool_calls": [CALL]}),
    (vf.ResponseMessage, {"role": "assistant", "content": "x", "finish_reason": "stop", "is_truncated": False}),
    (vf.ToolCall, {**CALL, "type": "custom"}),
    (vf.TextContentPart, {"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}),
    (vf.InputAudioContentPart, AUDIO),
    (messages.ImageUrlSource, {"url": "x", "detail": "low"}),
    (messages.InputAudioSource, AUDIO["input_audio"]),
]


@pytest.mark.parametrize(("cls", "fields"), FIELDS)
def test_a_model_is_returned_itself_and_else_made_of_the_fields_of_a_dict_or_an_object(cls: Any, fields: dict[str, Any]) -> None:
    made = cls.model_validate(fields)
    assert cls.model_validate(made) is made
    sdk_object = SimpleNamespace(model_dump=lambda exclude_none: fields)
    assert (cls.model_validate(sdk_object), type(made)) == (made, cls)
    assert {name: made[name] for name in fields if name != "tool_calls"} == {name: fields[name] for name in fields if name != "tool_calls"}
    dumped = made.model_dump()
    assert {name: dumped[name] for name in fields} == fields
    optional = (*OPTIONAL, *OWN) if cls is vf.ResponseMessage else OPTIONAL if cls is vf.AssistantMessage else ()
    assert {name: value for name, value in dumped.items() if name not in fields} == dict.fromkeys({*optional} - {*fields})


@pytest.mark.parametrize(
    ("cls", "value", "told"),
    [
        (vf.UserMessage, 5, "expected the fields of a UserMessage, got int: 5"),
        (vf.UserMessage, {"role": "tool", "content": ""}, "UserMessage has the role user, got 'tool'"),
        (vf.TextContentPart, ["x"], "expected the fields of a TextContentPart, got list: ['x']"),
        (vf.TextContentPart, IMAGE, f"expected the fields of a TextContentPart, got dict: {IMAGE!r}"),
    ],
)
def test_what_makes_no_model_is_refused(cls: Any, value: Any, told: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        cls.model_validate(value)
    assert str(caught.value) == told


def test_what_is_put_into_a_message_is_writable_whatever_it_was() -> None:
    """Calls and parts become those of this package; of a part whose type nobody knows only the dict does."""
    call = FrozenCall(id="c1", name="look", arguments="{}")
    message: Any = vf.AssistantMessage("x", tool_calls=[call])
    message.tool_calls[0].arguments = '{"at": 2}'
    assert (type(message.tool_calls[0]), message.tool_calls[0].arguments, call.arguments) == (vf.ToolCall, '{"at": 2}', "{}")
    message["deep"] = ({"call": call}, {"type": ["text"]}, {"type": "image_url", "image_url": "x"}, {"type": "input_audio"})
    kinds = [type(message.deep[0].call), *map(type, message.deep[1:])]
    assert kinds == [vf.ToolCall, messages.PartDict, vf.ImageUrlContentPart, messages.PartDict]
    assert message.deep == [{"call": call}, {"type": ["text"]}, {"type": "image_url", "image_url": "x"}, {"type": "input_audio"}]
    source = messages.ImageUrlSource("x")
    assert vf.ImageUrlContentPart(source).image_url is source


def test_an_item_that_is_none_or_empty_is_there() -> None:
    message: Any = vf.AssistantMessage(None, notes="")
    assert (message.setdefault("content", "x"), message.setdefault("notes", "x"), message.setdefault("name", "ann")) == (None, "", "ann")
    same = message
    message |= {"content": "so", "notes": None}
    assert message is same
    assert dict(message) == {"role": "assistant", "content": "so", "notes": None, "name": "ann"}
    with pytest.raises(InvalidMessage, match="tool_calls must be a list of tool calls, got str"):
        message.tool_calls = "look"
    assert "tool_calls" not in dict(message)
