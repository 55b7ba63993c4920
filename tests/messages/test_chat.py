"""Messages: every raw form becomes one immutable representation, which JSON, pickle, datasets and SDKs take as it is."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vfgym import AssistantMessage, SystemMessage, TextMessage, ToolCall, ToolMessage, UserMessage, plain
from vfgym.errors import InvalidMessage
from vfgym.messages import MESSAGE_TYPES, Message, MessageTypes, as_message, as_messages, as_tool_call, content_text
from vfgym.messages.chat import convert_all, join_contents

NESTED = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
TEXT_PART = {"type": "text", "text": "look"}
IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
AUDIO_PART = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
THINKING = [{"type": "thinking", "thinking": "hm", "signature": "s1"}]

RAW = [
    *[{"role": "system", "content": "be brief"}, {"role": "developer", "content": "be brief"}, {"role": "user", "content": "hi"}],
    {"role": "user", "content": [TEXT_PART, IMAGE_PART, AUDIO_PART]},
    {"role": "user", "content": [{"type": "provider_part", "anything": [1, {"deep": None}]}]},
    {"role": "user", "content": "hi", "name": "ann"},
    {"role": "text", "content": "once upon"},
    {"role": "assistant", "content": "hello"},
    {"role": "assistant", "content": None, "tool_calls": [NESTED]},
    {"role": "assistant", "content": "", "reasoning_content": "because", "thinking_blocks": THINKING, "tool_calls": [NESTED]},
    {"role": "assistant", "content": [TEXT_PART], "audio": {"id": "a1"}, "provider_field": {"x": [1, 2]}},
    {"role": "tool", "content": "3", "tool_call_id": "c1"},
    {"role": "tool", "content": [TEXT_PART, IMAGE_PART], "tool_call_id": "c1", "name": "add"},
]
"""Messages as the OpenAI chat API, providers and dataset rows spell them."""


# Raw forms


@pytest.mark.parametrize("raw", RAW)
def test_a_dict_with_a_role_becomes_the_message_of_that_role_and_loses_nothing(raw: dict[str, Any]) -> None:
    message = as_message(raw)
    classes = {"system": SystemMessage, "developer": SystemMessage, "user": UserMessage, "text": TextMessage}
    assert type(message) is {**classes, "assistant": AssistantMessage, "tool": ToolMessage}[raw["role"]]
    assert (message, raw) == (raw, message)


def test_a_conversation_may_mix_forms_and_is_a_fresh_list() -> None:
    message = UserMessage("a")
    given_list = [message, {"role": "assistant", "content": "b"}]
    conversation = as_messages(given_list)
    assert conversation == [UserMessage("a"), AssistantMessage("b")]
    assert conversation[0] is message, "what is a message already is shared"
    conversation.append(UserMessage("c"))
    assert len(given_list) == 2
    assert as_messages(iter(given_list)) == as_messages(tuple(given_list)) == given_list


def test_the_objects_of_the_openai_sdk_are_messages() -> None:
    from openai.types.chat import ChatCompletionMessage

    said = ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [NESTED], "reasoning_content": "hm"})
    expected = AssistantMessage(None, tool_calls=[NESTED], reasoning_content="hm")
    assert (as_message(said), as_messages([said])) == (expected, [expected])
    assert as_messages(said) == [expected], "a single one, too"
    assert as_tool_call(said.tool_calls[0]) == NESTED


def test_fields_that_are_none_count_as_absent() -> None:
    """Arrow fills missing keys of a dataset's rows with None."""
    filled = {"role": "user", "content": "hi", "tool_calls": None, "tool_call_id": None, "name": None, "anything": None}
    assert as_message(filled) == {"role": "user", "content": "hi"}
    nested = {**NESTED, "index": None, "function": {**NESTED["function"], "strict": None}}
    assert as_message({"role": "assistant", "content": None, "tool_calls": [nested]}).tool_calls == [NESTED]


def test_fields_of_content_parts_that_are_none_count_as_absent() -> None:
    """Arrow gives every part of a dataset the keys of all parts, and no API takes a text part with an image_url."""
    parts = [{**TEXT_PART, "image_url": None}, {**IMAGE_PART, "text": None}]
    assert UserMessage(parts).content == [TEXT_PART, IMAGE_PART]


# Errors


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"role": "narrator", "content": "x"}, ["narrator", "system", "user", "assistant", "tool"]),
        *[({"content": "x"}, ["role=None"]), ({"role": 3, "content": "x"}, ["role=3"]), ({"role": "user"}, ["user message", "content"])],
        ({"role": "user", "content": None}, ["user message", "content"]),
        ({"role": "user", "content": 5}, ["content", "int", "5"]),
        ({"role": "user", "content": ["x"]}, ["content part 0", "'x'"]),
        ({"role": "user", "content": [TEXT_PART, {"type": "text"}]}, ["content part 1", "'text'"]),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "http://x"}]}, ["content part 0", "image_url"]),
        ({"role": "user", "content": [{"type": "input_audio"}]}, ["content part 0", "input_audio"]),
        ({"role": "tool", "content": "3"}, ["tool_call_id"]),
        ({"role": "tool", "content": "3", "tool_call_id": 7}, ["tool_call_id", "7"]),
        ({"role": "assistant", "content": "x", "tool_calls": "add"}, ["tool_calls", "str"]),
        ({"role": "assistant", "content": "x", "tool_calls": [5]}, ["tool call", "5"]),
        ({"role": "assistant", "content": "x", "tool_calls": ["{"]}, ["JSON"]),
        ({"role": "assistant", "content": "x", "tool_calls": [{"id": "1"}]}, ["name"]),
        ({"role": "assistant", "content": "x", "tool_calls": [{"function": "add"}]}, ["function", "'add'"]),
        ({"role": "assistant", "content": "x", "tool_calls": [{"name": "add", "arguments": [1]}]}, ["'add'", "[1]"]),
        ({"role": "assistant", "content": "x", "tool_calls": [{"name": 3, "arguments": "{}"}]}, ["name=3"]),
        ({"role": "user", "content": [{"type": "text", "text": 5}]}, ["content part 0", "'text' (str)"]),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": "AA=="}]}, ["content part 0", "'input_audio' (Mapping)"]),
        ({"role": "user", "content": [{"text": "x"}]}, ["content part 0", "with a type"]),
        ({"role": "user", "content": "x", "self": 1}, ["none is called 'self'; got 'self'"]),
        ({"role": "user", "content": "x", 3: 1}, ["have names", "got 3"]),
        *[(5, ["int", "5"]), (None, ["NoneType"]), ("x", ["str"])],
    ],
)
def test_what_is_no_message_is_refused_naming_it(raw: Any, says: list[str]) -> None:
    """The error is a ValueError that says what came, and where in the conversation."""
    with pytest.raises(InvalidMessage) as raised:
        as_message(raw)
    assert all(words in str(raised.value) for words in says), str(raised.value)
    assert isinstance(raised.value, ValueError)
    with pytest.raises(InvalidMessage, match=r"^few_shot\[1\]: "):
        as_messages([UserMessage("fine"), raw], name="few_shot")


@pytest.mark.parametrize("raw", [None, 5, object()])
def test_what_is_no_conversation_is_refused_naming_it(raw: Any) -> None:
    with pytest.raises(InvalidMessage, match=r"^prompt(: | must be a list of messages)"):
        as_messages(raw, name="prompt")


def test_a_role_that_is_not_the_classes_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="UserMessage has the role user, got 'assistant'"):
        UserMessage("x", role="assistant")
    with pytest.raises(InvalidMessage, match="SystemMessage has the role system or developer, got 'user'"):
        SystemMessage("x", role="user")
    assert [SystemMessage("x", role=role).role for role in (None, "", "developer")] == ["system", "system", "developer"]
    with pytest.raises(InvalidMessage, match="a tool message needs tool_call_id"):
        ToolMessage("x")


# Attributes and items


def test_a_known_field_that_is_absent_is_none_as_an_attribute_and_missing_as_an_item() -> None:
    message = AssistantMessage("x")
    for name in ("tool_calls", "reasoning_content", "thinking_blocks", "name"):
        assert getattr(message, name) is None
        assert name not in message
        assert message.get(name, "default") == "default"
        with pytest.raises(KeyError):
            message[name]
    assert AssistantMessage(None).content is None
    assert "content" in AssistantMessage(None)


def test_an_unknown_field_is_an_attribute_where_it_is_there_and_an_error_that_names_the_others_where_not() -> None:
    message = as_message({"role": "assistant", "content": "x", "refusal": "no"})
    assert message.refusal == message["refusal"] == "no"
    with pytest.raises(AttributeError, match=r"AssistantMessage has no field 'cotnent' .*role, content, refusal"):
        message.cotnent  # noqa: B018
    assert not hasattr(message, "model_dump")


def test_the_representation_is_short_and_tells_everything() -> None:
    assert repr(UserMessage("hi", name="ann")) == "UserMessage(content='hi', name='ann')"


# Immutability


def everything() -> AssistantMessage:
    return AssistantMessage(
        [TEXT_PART, IMAGE_PART], tool_calls=[NESTED], thinking_blocks=THINKING, extra={"deep": [{"er": [1, 2]}], "tuple": ([1],)}
    )


WRITES: list[Callable[[Any], Any]] = [  # what else is refused to a frozen dict or list is tested where they are
    *[lambda m: m.__setitem__("content", "x"), lambda m: setattr(m, "content", "x"), lambda m: setattr(m, "new", "x")],
    *[lambda m: m["content"].append(TEXT_PART), lambda m: m["content"][0].__setitem__("text", "x")],
    *[lambda m: m["content"][1]["image_url"].__setitem__("url", "x"), lambda m: setattr(m["tool_calls"][0], "name", "x")],
    *[lambda m: m["tool_calls"][0].__setitem__("id", "x"), lambda m: m["tool_calls"][0]["function"].__setitem__("arguments", "x")],
    *[lambda m: m["thinking_blocks"][0].__setitem__("signature", "x"), lambda m: m["extra"]["tuple"][0].append(3)],
]


@pytest.mark.parametrize("write", WRITES)
def test_nothing_of_a_message_can_be_changed_at_any_depth(write: Callable[[Any], Any]) -> None:
    message = everything()
    with pytest.raises(TypeError, match=r"immutable.*\.replace\("):
        write(message)
    assert message == everything()


def test_a_message_shares_nothing_with_what_it_was_made_of() -> None:
    parts = [{"type": "text", "text": "a"}]
    call = {"id": "c1", "function": {"name": "f", "arguments": "{}"}}
    message = AssistantMessage(parts, tool_calls=[call])
    parts[0]["text"] = "b"
    parts.append(TEXT_PART)
    call["function"]["name"] = "g"
    assert (message.content, message.tool_calls[0].name) == ([{"type": "text", "text": "a"}], "f")


def test_replace_makes_a_changed_copy() -> None:
    message = everything()
    changed = message.replace(content="short", tool_calls=None)
    assert (changed.content, changed.tool_calls, changed.thinking_blocks) == ("short", None, THINKING)
    assert "tool_calls" not in changed
    assert type(changed) is AssistantMessage
    assert message == everything()
    with pytest.raises(InvalidMessage):
        ToolMessage("x", tool_call_id="c1").replace(tool_call_id=None)


def test_plain_copies_may_be_changed() -> None:
    message = everything()
    for made in (dict(message), message.copy(), message | {"new": 1}, {**message}):
        assert type(made) is dict
        made["content"] = "x"
    assert message == everything()


# Equality, JSON, copies


@pytest.mark.parametrize("raw", RAW)
def test_a_message_equals_the_data_it_holds_and_survives_json_pickle_and_copies(raw: dict[str, Any]) -> None:
    message = as_message(raw)
    assert (json.loads(json.dumps(message)), as_message(json.loads(json.dumps(message)))) == (raw, message)
    assert message != {**raw, "content": "something else"}
    assert copy.copy(message) is message
    assert copy.deepcopy(message) is message
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(message, protocol))
        assert twin == message
        assert type(twin) is type(message)
        with pytest.raises(TypeError):
            twin["content"] = "x"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.text(max_size=20)
CONTENT = TEXT | st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, TEXT) | st.just(IMAGE_PART) | st.just(AUDIO_PART), max_size=3
)
CALLS = st.builds(
    lambda id, name, arguments: {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}, TEXT, TEXT, TEXT
)
NAMES = st.text("abcxyz_", min_size=1, max_size=4)
"""Names of provider fields: none of them is a known field."""
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "developer", "user", "text"]), "content": CONTENT}),
    st.fixed_dictionaries({"role": st.just("tool"), "content": CONTENT, "tool_call_id": TEXT}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.none() | CONTENT},
        optional={
            "tool_calls": st.lists(CALLS, max_size=2),
            "reasoning_content": TEXT,
            "thinking_blocks": st.lists(st.dictionaries(NAMES, JSON), max_size=2),
        },
    ),
)


@settings(max_examples=30)
@given(
    messages=st.lists(
        st.builds(
            lambda message, extra: {**extra, **message}, MESSAGES, st.dictionaries(NAMES, JSON.filter(lambda v: v is not None), max_size=2)
        ),
        max_size=4,
    )
)
def test_any_conversation_goes_through_json_and_pickle_and_comes_back_the_same(messages: list[dict[str, Any]]) -> None:
    conversation = as_messages(messages)
    assert (conversation, as_messages(json.loads(json.dumps(conversation)))) == (messages, conversation)
    assert pickle.loads(pickle.dumps(conversation)) == conversation
    assert [type(message) for message in as_messages(messages)] == [type(message) for message in conversation]


# What else takes them


def test_hf_datasets_take_messages_as_they_are() -> None:
    from datasets import Dataset

    rows = [
        {"prompt": [UserMessage("a")], "completion": [AssistantMessage(None, tool_calls=[NESTED]), ToolMessage("3", tool_call_id="c1")]},
        {"prompt": [SystemMessage("b"), UserMessage("c")], "completion": [AssistantMessage("d")]},
    ]
    table = Dataset.from_list(rows)
    assert [as_messages(row["prompt"]) for row in table] == [row["prompt"] for row in rows]
    assert [as_messages(row["completion"]) for row in table] == [row["completion"] for row in rows]


def test_the_openai_sdk_takes_messages_as_they_are() -> None:
    from openai.types.chat import ChatCompletionMessageParam
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
    conversation = [
        *[SystemMessage("be brief"), SystemMessage("be brief", role="developer"), UserMessage([TEXT_PART, IMAGE_PART, AUDIO_PART])],
        AssistantMessage(None, tool_calls=[ToolCall("c1", "add", '{"a": 1}')]),
        ToolMessage("3", tool_call_id="c1"),
        AssistantMessage("three"),
    ]
    adapter.validate_python(conversation, strict=False)
    adapter.validate_json(json.dumps(conversation))


def test_plain_parses_the_arguments_for_chat_templates() -> None:
    """A template tests whether `tool_calls` is defined, and would encode textual arguments twice."""
    [said, wrong, text] = plain(
        [AssistantMessage(None, tool_calls=[NESTED]), AssistantMessage(tool_calls=[ToolCall("c2", "add", "{a")]), UserMessage("hi")]
    )
    assert said["tool_calls"][0]["function"] == {"name": "add", "arguments": {"a": 1}}
    assert (wrong["tool_calls"][0]["function"]["arguments"], text) == ("{a", {"role": "user", "content": "hi"})
    assert type(text) is dict
    assert "tool_calls" not in text
    parts = plain([UserMessage([TEXT_PART, IMAGE_PART])])[0]["content"]
    assert parts == [TEXT_PART, IMAGE_PART]
    assert {type(parts), type(parts[0]), type(parts[1]["image_url"])} == {list, dict}


def test_content_text_reads_every_kind_of_content() -> None:
    assert [content_text(content) for content in ("a", None, [TEXT_PART, IMAGE_PART, TEXT_PART], [])] == ["a", "", "look look", ""]
    contents = (" a ", (TEXT_PART,), [{"type": "text", "text": " b "}], [TEXT_PART, {"text": None}], 5)
    assert [content_text(content) for content in contents] == [" a ", "look", "b", "look", ""]
    assert content_text([SimpleNamespace(text="an object"), SimpleNamespace(text=3), SimpleNamespace()]) == "an object"


def test_contents_of_several_messages_are_joined() -> None:
    assert [join_contents(contents) for contents in ([], ["a"], ["a", "", "b"])] == ["", "a", "a\n\n\n\nb"]
    two = [{"type": "text", "text": "a"}, IMAGE_PART, TEXT_PART, {"type": "text", "text": "b"}]
    assert join_contents(["a", [IMAGE_PART, TEXT_PART], [], "b"]) == two


def test_what_a_client_makes_of_a_message_is_kept_until_another_asks() -> None:
    calls: list[Message] = []

    def convert(message: Message) -> list[Any]:
        calls.append(message)
        return [message.content]

    one, two = UserMessage("1"), UserMessage("2")
    first = convert_all([one], convert)
    assert convert_all([one, two, one], convert) == [["1"], ["2"], ["1"]]
    assert convert_all([one], convert)[0] is first[0]
    assert calls == [one, two]
    assert convert_all(iter([one]), len) == [2]
    assert (convert_all([one], convert), calls) == ([["1"]], [one, two, one])
    one.forget_converted()
    assert (convert_all([one, two], convert), calls) == ([["1"], ["2"]], [one, two, one, one])
    assert convert_all([], convert) == []


def test_messages_of_subclasses_are_taken_as_they_are_and_others_made_anew() -> None:
    class Loud(UserMessage):
        __slots__ = ()

    class LoudSystem(SystemMessage):
        __slots__ = ()

    types = MessageTypes(LoudSystem, Loud)
    assert types == {"system": LoudSystem, "developer": LoudSystem, "user": Loud}
    loud = Loud("x")
    assert as_messages([loud])[0] is as_message(loud) is loud
    assert [type(each) for each in as_messages([UserMessage("x"), loud, SystemMessage("y", role="developer")], types)] == [
        *(Loud, Loud, LoudSystem)
    ]
    assert as_message(SystemMessage("y", role="developer"), types) == {"role": "developer", "content": "y"}
    assert not types.take([loud, 5])
    assert pickle.loads(pickle.dumps(MESSAGE_TYPES)) == MESSAGE_TYPES


def test_a_notebook_shows_each_field_and_pictures() -> None:
    shown = UserMessage([{"type": "text", "text": "<a>"}, IMAGE_PART, AUDIO_PART], name="ann")._repr_html_()
    parts = ("<strong>user</strong>", "&lt;a&gt;", f'src="{IMAGE_PART["image_url"]["url"]}"', "input_audio", "name: ann")  # type: ignore[index]
    assert [part for part in parts if part not in shown] == []
    assert UserMessage("")._repr_html_() == "<div><strong>user</strong></div>"


def test_a_system_prompt_is_read_from_a_file_verbatim(tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    text = "première ligne\r\nsecond line\n\n  indented \t"
    path.write_bytes(text.encode("utf-8"))
    for source in (path, str(path)):
        message = SystemMessage.from_path(source)
        assert (message.content, type(message)) == (text, SystemMessage)
