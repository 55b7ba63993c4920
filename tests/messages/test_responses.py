"""What a model answers: its fields as attributes, items and plain data, and what of its message goes into the conversation."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pydantic
import pytest

from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Response, ResponseMessage, ResponseTokens, Usage
from vfgym.messages.chat import MESSAGE_TYPES
from vfgym.messages.responses import ItemAccess, Model, as_plain, for_conversation

COUNTS = {"prompt_tokens": 1, "reasoning_tokens": 2, "completion_tokens": 3, "total_tokens": 6}
NONE_COUNTED = dict.fromkeys(COUNTS, 0)
TOKENS = {"prompt_ids": [1], "prompt_mask": [0], "completion_ids": [2], "completion_mask": [1], "completion_logprobs": [-0.5]}


def answered(**message: Any) -> Response:
    return Response("r", 5, "m", {"prompt_tokens": 1}, {"content": "hi", **message})


def test_fields_are_attributes_and_items() -> None:
    usage = Usage(**COUNTS)
    usage["total_tokens"] = 7
    assert dict(usage) == {**COUNTS, "total_tokens": 7}
    assert (usage.total_tokens, usage["reasoning_tokens"], "prompt_tokens" in usage, "tokens" in usage) == (7, 2, True, False)
    assert (usage.get("prompt_tokens", 9), usage.get("__class__"), usage.get("tokens", 9)) == (1, None, 9)
    with pytest.raises(KeyError, match="model_dump"):
        _ = usage["model_dump"]


@pytest.mark.parametrize(
    ("options", "dumped"),
    [
        ({}, {**TOKENS, "routed_experts": None}),
        *(({option: True}, TOKENS) for option in ("exclude_none", "exclude_unset", "exclude_defaults")),
        ({"include": {"prompt_ids", "routed_experts"}}, {"prompt_ids": [1], "routed_experts": None}),
        ({"include": set()}, {}),
        ({"exclude": {"prompt_ids", "prompt_mask", "routed_experts"}}, {name: TOKENS[name] for name in [*TOKENS][2:]}),
        ({"exclude": set()}, {**TOKENS, "routed_experts": None}),
        ({"include": {"prompt_ids"}, "mode": "json"}, {"prompt_ids": [1]}),
    ],
)
def test_plain_data(options: dict[str, Any], dumped: dict[str, Any]) -> None:
    tokens = ResponseTokens(**TOKENS)  # type: ignore[arg-type]
    assert tokens.model_dump(**options) == dumped
    assert pydantic.TypeAdapter(ResponseTokens).dump_python(tokens, **options) == dumped


def test_what_is_left_out_is_left_out_at_any_depth() -> None:
    usage = {**NONE_COUNTED, "prompt_tokens": 1}
    message = {"role": "assistant", "content": "hi"}
    whole = {"id": "r", "created": 5, "model": "m", "usage": usage, "message": message}
    assert answered().model_dump(exclude_none=True) == answered().model_dump(exclude_unset=True) == whole
    assert answered().model_dump(exclude_defaults=True) == {**whole, "usage": {"prompt_tokens": 1}}
    assert Response("r", 0, "", None, "hi").model_dump() == {"id": "r", "created": 0, "model": "", "usage": None, "message": message}
    for option in ("exclude_none", "exclude_unset", "exclude_defaults"):
        assert "usage" not in Response("r", 0, "", None, "hi").model_dump(**{option: True})
    assert Usage(0, 0, 3, 0).model_dump(exclude_defaults=True) == {"completion_tokens": 3}
    experts = np.zeros(2)
    assert ResponseTokens(**TOKENS, routed_experts=experts).model_dump(exclude_defaults=True)["routed_experts"] is experts  # type: ignore[arg-type]


def test_json() -> None:
    usage = Usage(**COUNTS)
    assert usage.model_dump_json(include={"prompt_tokens"}) == '{"prompt_tokens":1}'
    assert usage.model_dump_json(include={"prompt_tokens"}, indent=1) == '{\n "prompt_tokens": 1\n}'
    assert Usage.model_validate_json(usage.model_dump_json()) == Usage.model_validate_json(usage.model_dump_json().encode()) == usage
    unknown = ResponseTokens(**TOKENS, routed_experts=object)  # type: ignore[arg-type]
    assert "object" in unknown.model_dump_json(include={"routed_experts"})


def test_plain_all_the_way_down_and_fresh() -> None:
    usage, numbers = Usage(**COUNTS), [0]
    plain = as_plain({"a": [usage, numbers, {"b": usage}], "c": (1,), "d": {"e": Usage()}}, exclude_defaults=True)
    assert plain == {"a": [COUNTS, [0], {"b": COUNTS}], "c": (1,), "d": {"e": {}}}
    assert plain["a"][1] is not numbers
    assert as_plain([Usage()], exclude_defaults=True) == [{}]
    whole = answered(tokens=ResponseTokens(**TOKENS))  # type: ignore[arg-type]
    assert "None" in str(whole.model_dump()["message"])
    assert "None" not in str(whole.model_dump(exclude_none=True))


def test_a_part_of_what_is_in_a_field_can_be_named() -> None:
    response = answered(name="ann")
    assert response.model_dump(include={"usage": {"prompt_tokens", "total_tokens"}}) == {"usage": {"prompt_tokens": 1, "total_tokens": 0}}
    assert response.model_dump(include={"message": True, "id": True}, exclude={"message": {"role", "name"}}) == {
        **{"id": "r", "message": {"content": "hi"}}
    }
    assert Response.model_validate(response.model_dump()) == response
    assert Response.model_validate_json(response.model_dump_json()) == response
    assert [answered().model_copy(), answered().model_copy(update={})] == [answered()] * 2
    assert response.model_copy(update={"id": "", "created": 0}).model_dump(include={"id", "created"}) == {"id": "", "created": 0}


def test_copies_and_changed_copies() -> None:
    tokens = ResponseTokens(**TOKENS)  # type: ignore[arg-type]
    shallow, deep = tokens.model_copy(update={"prompt_mask": [1]}), tokens.model_copy(deep=True)
    assert (tokens.prompt_mask, shallow.prompt_mask) == ([0], [1])
    assert shallow.prompt_ids is tokens.prompt_ids
    assert deep.prompt_ids is not tokens.prompt_ids
    response = answered(tokens=tokens)
    for twin in (deep, copy.copy(tokens), pickle.loads(pickle.dumps(tokens))):
        assert twin == tokens
    assert pickle.loads(pickle.dumps(response)) == copy.deepcopy(response) == response


def test_equal_are_records_and_mappings_of_the_same_fields() -> None:
    assert Usage(**COUNTS) == Usage(**COUNTS) == COUNTS
    assert Usage(**COUNTS) != Usage(1)
    assert Usage() != [*NONE_COUNTED.items()]
    with pytest.raises(TypeError, match="unhashable"):
        hash(Usage())


def test_made_of_data() -> None:
    usage = Usage(**COUNTS)
    assert Usage.model_validate(usage) is usage
    assert Usage.model_validate({}) == NONE_COUNTED
    adapter = pydantic.TypeAdapter(Usage)
    assert adapter.validate_python(COUNTS) == usage
    assert adapter.json_schema() == {"title": "Usage", "type": "object"}
    with pytest.raises(ConfigurationError, match=r"expected the fields of a Usage, got int: 5"):
        Usage.model_validate(5)
    with pytest.raises(ConfigurationError, match=r"these fields make no Usage: .*'tokens'; got \{'tokens': 1\}"):
        Usage.model_validate({"tokens": 1})


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("value", [0, 1, 2**53 - 1, np.int64(3), -1, 2**53, True, False, 1.0, "1", None])
def test_tokens_are_counted_in_integers(name: str, value: Any) -> None:
    if isinstance(value, int | np.int64) and not isinstance(value, bool) and 0 <= value < 2**53:
        count = getattr(Usage(**{name: value}), name)
        assert (count, type(count)) == (value, int)
    else:
        with pytest.raises(ConfigurationError, match=f"{name} of a Usage must be an integer from 0 below 2"):
            Usage(**{name: value})


@pytest.mark.parametrize("given", ["hi", {"content": "hi"}, {"role": "assistant", "content": "hi"}, AssistantMessage("hi")])
def test_a_message_may_be_given_as_text_or_by_its_fields(given: Any) -> None:
    response = Response("r", 5, "m", message=given)
    assert response.message == {"role": "assistant", "content": "hi"}
    assert type(response.message) is (AssistantMessage if isinstance(given, AssistantMessage) else ResponseMessage)
    assert response.message is given or not isinstance(given, AssistantMessage)
    assert (response.usage, response.tokens, response.is_truncated) == (None, None, False)


def test_a_response_needs_a_message() -> None:
    with pytest.raises(TypeError, match="needs the message"):
        Response("r", 5, "m")
    assert Response("r", 5, "m", {}, "").usage == NONE_COUNTED


@pytest.mark.parametrize(
    ("message", "is_truncated"),
    [
        *(({"is_truncated": value}, value) for value in (True, False)),
        *(({"finish_reason": reason}, reason == "length") for reason in ("stop", "length", "tool_calls")),
        ({"finish_reason": "length", "is_truncated": False}, True),
        ({"finish_reason": "stop", "is_truncated": True}, True),
    ],
)
def test_an_answer_is_truncated_where_a_token_limit_cut_it(message: dict[str, Any], is_truncated: bool) -> None:
    assert answered(**message).is_truncated is is_truncated


def test_what_belongs_to_the_answer_stays_out_of_the_conversation() -> None:
    tokens = ResponseTokens(**TOKENS)  # type: ignore[arg-type]
    answer = answered(finish_reason="stop", is_truncated=False, tokens=tokens, reasoning_content="hm", extra=0)
    assert answer.tokens == TOKENS | {"routed_experts": None}
    parts = [{"type": "text", "text": "a"}]
    for content in (None, parts, ""):
        assert for_conversation(ResponseMessage(content), MESSAGE_TYPES) == {"role": "assistant", "content": content}
    for response, kept in ((answer, {"reasoning_content": "hm", "extra": 0}), (answered(), {})):
        message = for_conversation(response.message, MESSAGE_TYPES)
        assert (message, type(message)) == ({"role": "assistant", "content": "hi", **kept}, AssistantMessage)


@pytest.mark.parametrize("use", [lambda: Model().model_dump(), lambda: Model.model_validate({}), lambda: "x" in ItemAccess()])
def test_a_subclass_says_which_fields_there_are(use: Any) -> None:
    with pytest.raises(NotImplementedError):
        use()


def test_a_field_without_a_default_stays() -> None:
    class Bare(Model):
        def _fields(self) -> dict[str, Any]:
            return {"a": None, "b": 0}

    for option in ("exclude_unset", "exclude_defaults"):
        assert Bare().model_dump(**{option: True}) == {"a": None, "b": 0}
