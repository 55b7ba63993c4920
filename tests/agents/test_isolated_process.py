"""What is called where an isolated agent runs: an agent is loaded once, and what it answers comes back as JSON data."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from vfgym.agents import isolated_process
from vfgym.agents.isolated_process import Beginning, Source, answer, begin, check, read_answer
from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.messages import AssistantMessage, Message, Response, ResponseMessage, ResponseTokens, UserMessage

AGENT = """
import asyncio
print("loaded")

class Seated:
    def for_episode(self, env):
        drawn = int(env.np_random.integers(100))
        return lambda observation, info: [drawn, env.action_space.n, env.observation_space.n, observation[-1].content, info]

async def later(observation, info):
    await asyncio.sleep(0)
    return info["answer"]

def given(observation, info):
    return info["answer"]
"""
TOKENS = ResponseTokens([1], [0], [2], [1], [-0.5])
RESPONSE = Response("r", 5, "m", {"prompt_tokens": 3}, ResponseMessage("hi", finish_reason="length", tokens=TOKENS))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    name = f"agent_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(AGENT, encoding="utf-8")
    monkeypatch.chdir(tmp_path.parent)
    monkeypatch.setattr(sys, "path", [*sys.path])
    isolated_process._load_agent.cache_clear()
    yield Source(f"{name}:", str(tmp_path), (str(tmp_path), *sys.path))
    sys.modules.pop(name, None)
    isolated_process._answering.clear()


def beginning(source: Source, agent: str) -> Beginning:
    spaces = gym.spaces.Discrete(3), gym.spaces.Discrete(5)
    return Beginning(source._replace(name=source.name + agent), *spaces, np.random.default_rng(7))


def test_an_agent_is_given_what_its_environment_has(source: Source, capsys: pytest.CaptureFixture[str]) -> None:
    drawn = int(np.random.default_rng(7).integers(100))
    for _ in range(2):
        begin(beginning(source, "Seated"))
        assert answer([UserMessage("a"), UserMessage("b")], {"x": 0}) == {"value": [drawn, 3, 5, "b", {"x": 0}]}
    assert capsys.readouterr().out == "loaded\n"
    assert (str(Path.cwd()), tuple(sys.path)) == source[1:]
    with pytest.raises(ConfigurationError, match="nobody"):
        check(source._replace(name=source.name + "nobody"))


@pytest.mark.parametrize("agent", ["given", "later"])
@pytest.mark.parametrize(
    ("given", "read"),
    [
        *((value, value) for value in ("", "text", None, 0, 1.5, True, [], {}, {"role": "assistant", "content": "hi"}, [{"a": [None]}])),
        (AssistantMessage("hi", reasoning_content="hm"), AssistantMessage("hi", reasoning_content="hm")),
        (RESPONSE, RESPONSE),
        *(((1, (2,)), [1, [2]]), (np.arange(2), [0, 1]), (np.float32(0.5), 0.5), ({"a": np.int64(3)}, {"a": 3})),
        (MappingProxyType({"a": (np.ones(1),)}), {"a": [[1.0]]}),
    ],
    ids=repr,
)
def test_an_answer_comes_back_as_it_was_given(source: Source, agent: str, given: Any, read: Any) -> None:
    begin(beginning(source, agent))
    data = json.loads(json.dumps(answer([], {"answer": given})))
    again = read_answer(data)
    assert (again, type(again)) == (read, type(read))
    if isinstance(given, Response):
        assert (again.usage, again.is_truncated, again.tokens, type(again.tokens)) == (RESPONSE.usage, True, TOKENS, ResponseTokens)
    assert [*data] == ["response" if isinstance(given, Response) else "message" if isinstance(given, Message) else "value"]


@pytest.mark.parametrize("given", [object(), {1: "a"}, b"x", [{2}], {"a": object()}])
def test_what_has_no_form_in_json_is_refused(source: Source, given: Any) -> None:
    begin(beginning(source, "given"))
    with pytest.raises(TypeError, match="answers with text, a message, a Response or JSON data; got"):
        answer([], {"answer": given})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        *((data, "no answer") for data in (None, [], {}, "text", {"message": "hi"}, {"response": None}, {"response": {"message": "hi"}})),
        ({"response": {"message": {"content": "hi"}}}, "no Response: .*'id'"),
        ({"response": {**RESPONSE.model_dump(), "more": 1}}, "no Response: .*'more'"),
        (
            {"response": {**RESPONSE.model_dump(), "message": {"content": "hi", "tokens": {"prompt_ids": []}}}},
            "no Response: .*'prompt_mask'",
        ),
    ],
)
def test_what_another_process_says_may_be_anything(data: Any, says: str) -> None:
    with pytest.raises(InvalidMessage, match=says):
        read_answer(data)
