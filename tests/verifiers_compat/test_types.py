"""Messages, responses and tools are used as the documented models are: by items, with fields that were not given, as parts of models."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import numpy
import pydantic
import pytest

import verifiers_compat as vf
from tests.verifiers_compat.models import Model

CALL = {"id": "c1", "name": "look", "arguments": '{"at": 1}'}
TOKENS = {name: [1] for name in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "completion_logprobs")}


def answer(**fields: Any) -> vf.Response:
    return vf.Response(id="r", created=1, model="m", message=vf.ResponseMessage(content="x", finish_reason="stop"), **fields)


# Messages


async def test_reward_functions_and_hooks_read_tool_calls_by_item() -> None:
    def num_calls(completion: list[Any]) -> float:
        return float(sum(len(message["tool_calls"] or []) for message in completion if message["role"] == "assistant"))

    class UsesATool(vf.MultiTurnEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return [] if messages[-1]["tool_calls"] else [{"role": "user", "content": "use a tool"}]

    said = [vf.AssistantMessage(content="x"), vf.AssistantMessage(content="y", tool_calls=[CALL]), vf.AssistantMessage(content="z")]
    env = UsesATool(dataset=[{"question": "q"}], rubric=vf.Rubric(num_calls), max_turns=3)
    [output] = (await env.evaluate(Model(lambda number, state: said[len(state["trajectory"])]), "m"))["outputs"]
    assert (output["error"], output["reward"]) == (None, 1.0)
    assert [message["role"] for message in output["completion"]] == ["assistant", "user", "assistant", "assistant"]


@pytest.mark.parametrize(
    "choice",
    [
        {"exclude": {"message": {"tokens", "content"}}},
        {"include": {"message": {"content", "tool_calls"}, "id": True}},
        {"exclude": {"message": {"tool_calls": {"__all__": {"arguments"}}}, "usage": True}},
        {"include": {"message": {"tool_calls": {0: {"name"}}}, "usage": {"prompt_tokens"}}},
        {"include": {"id", "usage"}, "exclude": {"usage": {"total_tokens"}}},
        {"include": set()},
        {"exclude": set()},
    ],
)
def test_what_is_included_and_excluded_is_said_as_to_pydantic(choice: dict[str, Any]) -> None:
    message = vf.ResponseMessage(content="x", tool_calls=[CALL, CALL], tokens=vf.ResponseTokens(**TOKENS))
    response = vf.Response(id="r", created=1, model="m", usage={"prompt_tokens": 1}, message=message)
    whole = response.model_dump()
    as_pydantic_has_it = pydantic.create_model("Twin", **{name: (Any, ...) for name in whole})(**whole).model_dump(**choice)
    assert response.model_dump(**choice) == json.loads(response.model_dump_json(**choice)) == as_pydantic_has_it
    holder = pydantic.create_model("Holder", held=vf.Response)(held=response)
    nested = {how: {"held": value} for how, value in choice.items() if value}
    assert not nested or holder.model_dump(**nested) == {"held": as_pydantic_has_it}


def test_fields_that_were_not_given_or_are_defaults_are_left_out() -> None:
    message = vf.AssistantMessage(content=None, name=None)
    message["tool_calls"] = None
    assert message.model_dump(exclude_unset=True) == {"role": "assistant", "content": None, "tool_calls": None}
    assert vf.Response(id="r", created=1, model="m", message=message, cost=None).model_dump(exclude_unset=True) == {
        **{"id": "r", "created": 1, "model": "m", "cost": None},
        "message": {"role": "assistant", "content": None, "tool_calls": None},
    }
    assert vf.ResponseTokens(**TOKENS).model_dump(exclude_unset=True) == TOKENS
    assert vf.Usage(prompt_tokens=0).model_dump(exclude_unset=True)["prompt_tokens"] == 0
    assert Kept(said=message).model_dump(exclude_unset=True)["said"] == {"role": "assistant", "content": None, "tool_calls": None}
    assert vf.Usage().model_dump(exclude_defaults=True) == {}
    assert vf.Usage(total_tokens=2, cached=0).model_dump(exclude_defaults=True) == {"total_tokens": 2, "cached": 0}
    assert vf.Usage().model_dump(exclude_none=True) == vf.Usage().model_dump()
    assert answer(usage={"prompt_tokens": 1}).model_dump(exclude_defaults=True) == {
        **{"id": "r", "created": 1, "model": "m", "usage": {"prompt_tokens": 1}},
        "message": {"role": "assistant", "content": "x", "finish_reason": "stop"},
    }
    assert "usage" not in answer().model_dump(exclude_defaults=True)
    experts = numpy.zeros((2, 2))
    assert vf.ResponseTokens(**TOKENS, routed_experts=experts).model_dump(exclude_defaults=True)["routed_experts"] is experts
    assert Kept(said=vf.AssistantMessage(content=None)).model_dump(exclude_defaults=True) == {"said": {"role": "assistant"}}


class Kept(pydantic.BaseModel):
    """A model with messages in it."""

    said: vf.AssistantMessage
    before: vf.Messages = "q"
    call: vf.ToolCall | None = None
    response: vf.Response | None = None
    tool: vf.Tool | None = None


def test_messages_are_fields_of_models() -> None:
    message = vf.AssistantMessage(content="hi")
    before = [{"role": "user", "content": "u"}, {"role": "tool", "content": "4", "tool_call_id": "c1"}]
    tool = vf.Tool(name="look", description="", parameters={})
    kept = Kept(said=message, before=before, call=CALL, response=answer(), tool=tool)
    assert (kept.said is message, list(map(type, kept.before))) == (True, [vf.UserMessage, vf.ToolMessage])
    again = Kept.model_validate_json(kept.model_dump_json())
    assert again == kept
    assert (type(again.call), type(again.response.message)) == (vf.ToolCall, vf.ResponseMessage)  # type: ignore[union-attr]
    assert kept.model_dump(exclude_none=True, include={"said"}) == {"said": {"role": "assistant", "content": "hi"}}
    assert pydantic.TypeAdapter(list[vf.UserMessage]).validate_python(before[:1]) == [vf.UserMessage("u")]


@pytest.mark.parametrize("mode", ["validation", "serialization"])
def test_a_model_with_messages_tells_a_json_schema(mode: Any) -> None:
    parts = pydantic.create_model("Parts", base=(vf.TextContentPart, ...))
    properties = Kept.model_json_schema(mode=mode)["properties"] | parts.model_json_schema(mode=mode)["properties"]
    assert properties["said"] == {"title": "AssistantMessage", "type": "object"}
    assert properties["response"]["anyOf"][0] == {"title": "Response", "type": "object"}
    assert properties["base"] == {"title": "TextContentPart", "type": "object"}


@pytest.mark.parametrize("wrong", [{"said": {"role": "user", "content": "x"}}, {"said": 5}, {"said": vf.UserMessage("x")}])
def test_what_is_no_such_message_is_refused_by_a_model(wrong: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError, match="AssistantMessage"):
        Kept.model_validate(wrong)


# Responses


def test_a_response_needs_no_usage_keeps_further_fields_and_comes_back_from_json() -> None:
    response = answer(cost=0.5)
    assert (response.usage, response.cost, response["cost"], response["id"], response.get("nothing", 1)) == (None, 0.5, 0.5, "r", 1)  # type: ignore[attr-defined]
    response["model"] = "other"
    response.region = "eu"  # type: ignore[attr-defined]
    assert ("region" in response, "nothing" in response, response.model) == (True, False, "other")
    assert {name: response.model_dump()[name] for name in ("model", "usage", "cost", "region")} == {
        **{"model": "other", "usage": None},
        **{"cost": 0.5, "region": "eu"},
    }
    with pytest.raises(KeyError):
        response["nothing"]
    with pytest.raises(TypeError, match="message"):
        vf.Response(id="r", created=1, model="m")
    response = answer(usage={"prompt_tokens": 1})
    twin = vf.Response.model_validate_json(response.model_dump_json())
    assert twin == response
    assert (type(twin.usage), type(twin.message), twin.message.finish_reason) == (vf.Usage, vf.ResponseMessage, "stop")  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="Response"):
        vf.Response.model_validate({"id": "r"})


@pytest.mark.parametrize(
    ("cls", "fields"),
    [
        (vf.Usage, {"prompt_tokens": 1, "reasoning_tokens": 0, "completion_tokens": 2, "total_tokens": 3}),
        (vf.ResponseTokens, {**TOKENS, "routed_experts": None}),
    ],
)
def test_numbers_of_a_response_are_read_by_item_too(cls: Any, fields: dict[str, Any]) -> None:
    record = cls(**fields, cached=4)
    assert {name: record[name] for name in fields} == fields
    assert (record.cached, record.get("cached"), "cached" in record, "nothing" in record) == (4, 4, True, False)
    assert record.model_dump() == record == {**fields, "cached": 4}
    for twin in (cls.model_validate(record.model_dump()), copy.deepcopy(record), pickle.loads(pickle.dumps(record)), record.model_copy()):
        assert (twin, type(twin)) == (record, cls)
    assert record.model_copy(update={"cached": 5}) != record
    with pytest.raises(ValueError, match=cls.__name__):
        cls.model_validate(5)


def test_items_are_the_fields_and_nothing_else() -> None:
    usage = vf.Usage(prompt_tokens=1, cached=4)
    assert dict(usage) == dict(list(usage)) == usage.model_dump()
    tool = vf.Tool(name="look", description="", parameters={}, origin="mine")
    assert dict(tool) == tool.model_dump()
    response, timing = answer(cost=0.5), vf.RolloutTiming(1.0)
    assert dict(response)["message"] is response.message
    assert [*dict(timing)] == [*timing.model_dump()]
    assert [*dict(timing.setup)] == [*timing.setup.model_dump()]
    assert [*dict(timing.model)] == [*timing.model.model_dump()]
    assert ("total_ms" in timing, "generation_ms" in timing, timing.get("total_ms")) == (True, True, 0.0)
    for record in (usage, response, tool, timing, timing.setup, timing.model):
        for name in (0, "model_dump", "__class__", "_names"):
            assert (name in record, record.get(name, "none")) == (False, "none")
            with pytest.raises(KeyError):
                record[name]


def test_timings_are_read_by_item_written_to_and_have_older_names() -> None:
    timing = vf.RolloutTiming(start_time=1.0)
    timing.generation["start"], timing.generation["end"] = 1.0, 3.0  # type: ignore[index]
    timing.model.add(1.0, 2.0)
    assert timing["generation"]["duration"] == timing.generation.get("duration") == 2.0  # type: ignore[attr-defined]
    assert timing["model"]["spans"][0]["end"] == 2.0
    assert all(isinstance(span, vf.TimeSpan) for span in (timing.setup, timing.scoring, *timing.model.spans))
    timing = vf.RolloutTiming(start_time=1.0)
    timing.model.add(1.0, 2.0)
    timing.model.add(3.0, 0.0)
    timing.model.pack()
    first, last = timing.model.spans
    first.start, last["end"] = 0.5, 5.0  # type: ignore[index]
    assert [(span.start, span.end, span.duration) for span in timing.model.spans] == [(0.5, 2.0, 1.5), (3.0, 5.0, 2.0)]
    assert (timing.model.duration, timing.model.model_dump()["spans"][1]["end"]) == (3.5, 5.0)
    assert [copied.end for copied in copy.deepcopy(timing).model.spans] == [2.0, 5.0]
    with pytest.raises(AttributeError, match="append"):
        timing.model.spans.append(first)  # type: ignore[attr-defined]
    timing = vf.RolloutTiming(start_time=1.0)
    timing.generation.start, timing.generation.end, timing.scoring.start, timing.scoring.end = 1.0, 3.0, 3.0, 3.5
    assert (timing["generation_ms"], timing["scoring_ms"], timing["total_ms"]) == (2000.0, 500.0, timing.total * 1000)
    assert timing.total == 2.5


# Tools


def test_tools_are_written_to_and_read_as_the_chat_api_takes_them() -> None:
    tool = vf.Tool(name="look", description="Look.", parameters={"type": "object", "properties": {}}, origin="mine")
    assert (tool["name"], tool.get("nothing"), "strict" in tool, tool.origin) == ("look", None, True, "mine")  # type: ignore[attr-defined]
    shown = tool.openai
    tool["description"] = "See."
    tool.strict = True
    assert (tool, tool.openai, shown["function"]["description"]) == (tool.model_dump(), tool.to_openai(), "Look.")
    assert tool.to_openai()["function"] == {
        **{"name": "look", "description": "See.", "parameters": {"type": "object", "properties": {}}},
        "strict": True,
    }
    tool = vf.Tool(name="look", description="", parameters={})
    assert vf.State(tool_defs=[tool])["oai_tools"] == [tool.to_openai()]
    assert vf.State(tool_defs=None)["oai_tools"] == vf.State(tool_defs=[])["oai_tools"] == []
    for key in ("oai_tools", "nothing"):
        with pytest.raises(KeyError):
            vf.State()[key]


# Names


def test_names_that_are_left_out_say_why() -> None:
    import verifiers_compat.types as types

    with pytest.raises(ImportError, match="CustomBaseModel is not offered"):
        types.CustomBaseModel  # noqa: B018
    assert types.Message == (vf.SystemMessage | vf.UserMessage | vf.AssistantMessage | vf.ToolMessage | vf.TextMessage)


# Settings of runs


def look(at: int) -> str:
    """Look."""
    return "seen"


def test_older_columns_of_results_are_in_the_order_of_the_outputs() -> None:
    rows = [
        {"reward": 1.0, "answer": "a", "metrics": {"a": 1.0}, "stop_condition": "x"},
        {"reward": 0.0, "metrics": {"b": 2.0}, "info": {"k": 1}, "prompt": [1]},
    ]
    results = vf.GenerateOutputs(outputs=rows, metadata={"model": "m", "avg_reward": 0.0})
    assert (results["reward"], results.answer, results["task"], results["info"]) == ([1.0, 0.0], ["a", ""], ["default"] * 2, [{}, {"k": 1}])
    assert results["prompt"] == [None, [1]]
    assert (results["stop_conditions"], results["metrics"]) == (["x", None], {"a": [1.0, 0.0], "b": [0.0, 2.0]})
    assert repr(results) == "<GenerateOutputs: 2 outputs, model='m', avg_reward=0.0>"
    assert vf.GenerateOutputs(outputs=[], metadata={})["metrics"] == {}
    with pytest.raises(KeyError):
        results["nothing"]
    with pytest.raises(AttributeError):
        results.nothing  # noqa: B018


OLDER = {"env_id": "x", "model": "m", "client_config": {}, "num_examples": 1, "rollouts_per_example": 1}


@pytest.mark.parametrize(
    ("fields", "most", "scoring"),
    [
        ({"max_concurrent": 1, "max_concurrent_generation": None, "max_concurrent_scoring": None}, 1, -1),
        ({"max_concurrent": -1, "max_concurrent_generation": 4, "max_concurrent_scoring": 2}, 4, 2),
        ({"max_concurrent_generation": 4, "print_results": True, "save_every": 5}, 4, -1),
        ({"max_concurrent": 0, "max_concurrent_generation": 4}, 4, -1),
        ({"max_concurrent": 3, "max_concurrent_generation": 4}, 3, -1),
    ],
)
def test_older_fields_of_an_evaluation_are_understood(fields: dict[str, Any], most: int, scoring: int) -> None:
    config = vf.EvalConfig(**OLDER, **fields)
    assert (config.max_concurrent, config.max_concurrent_scoring) == (most, scoring)
    with pytest.raises(pydantic.ValidationError, match="max_concurent"):
        vf.EvalConfig(**OLDER, **fields, max_concurent=1)


def test_an_evaluation_that_was_made_already_is_taken_as_it_is() -> None:
    sizes = {"num_examples": 1, "rollouts_per_example": 1, "max_concurrent": 1}
    config = vf.EvalConfig(env_id="a", env_args={}, model="m", client_config=vf.ClientConfig(), **sizes)
    assert vf.EvalConfig.model_validate(config) is config
