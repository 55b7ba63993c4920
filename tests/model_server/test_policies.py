"""Policies that need no model, and how they are found."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.model_server.asked import CALLS, CHAT_TOOL, HELLO, SCHEMA, post, says
from vfgym import AssistantMessage, SingleTurnEnv, UserMessage
from vfgym.errors import ConfigurationError
from vfgym.model_server import (
    ModelRequest,
    ModelServer,
    Reply,
    RequestRefused,
    echo,
    environment_oracle,
    load_policy,
    load_script,
    oracle,
    random_policy,
    scripted,
)


def request_of(
    *messages: Any, number: int = 1, choice: int = 0, tools: Any = (), tool_choice: str = "auto", **sampling: Any
) -> ModelRequest:
    from vfgym.messages import as_messages
    from vfgym.tools import as_tool

    offered = [as_tool(tool) for tool in tools]
    return ModelRequest("chat", number, "m", as_messages(list(messages)), offered, tool_choice, sampling, {}, choice)


def test_scripts_follow_the_turn() -> None:
    policy: Callable[[ModelRequest], Any] = scripted(["one", {"tool_calls": [dict(CALLS[0])]}])
    talk = [UserMessage("go"), AssistantMessage("one"), UserMessage("on")]
    assert policy(request_of(talk[0])).text == "one"
    assert list(policy(request_of(*talk)).tool_calls) == [CALLS[0]]
    with pytest.raises(RequestRefused, match=r"2 answer\(s\), and the conversation asks for number 3") as error:
        policy(request_of(*talk, AssistantMessage("two"), UserMessage("on")))
    assert error.value.status == 400


def test_scripts_may_depend_on_the_question() -> None:
    policy: Callable[[ModelRequest], Any] = scripted({"sum": "3", "sum of squares": ["5", "really 5"]})
    assert policy(request_of(UserMessage("the sum?"))).text == "3"
    assert policy(request_of(UserMessage("the sum of squares?"))).text == "5"
    with pytest.raises(RequestRefused, match="no answers to 'product'"):
        policy(request_of(UserMessage("product")))


@pytest.mark.parametrize("answer", ["3", {"content": "3"}, Reply("3"), ["3"], ("3", "4"), iter(["3"])])
def test_one_answer_stands_for_a_script_of_it(answer: Any) -> None:
    policy: Callable[[ModelRequest], Any] = scripted({"sum": answer})
    for _ in range(2):
        assert policy(request_of({"role": "text", "content": "the sum"}, UserMessage("other"))).text == "3"


def test_a_script_without_answers_has_none() -> None:
    for script in ([], {"go": []}):
        policy: Callable[[ModelRequest], Any] = scripted(script)
        with pytest.raises(RequestRefused, match=r"^the script has 0 answer\(s\), and the conversation asks for number 1$"):
            policy(request_of(UserMessage("go")))
    with pytest.raises(ConfigurationError, match=r"^answer 1 of the script: "):
        scripted(["a", 3])  # type: ignore[list-item]


@pytest.mark.parametrize("script", ["text", 3, [3], {"a": 3}, {3: ["a"]}])
def test_what_is_no_script_is_refused(script: Any) -> None:
    with pytest.raises(ConfigurationError, match="script"):
        scripted(script)


def test_scripts_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"go": ["é", {"content": "two"}]}', "utf-8")
    (tmp_path / "b.jsonl").write_text('"one"\n\n{"content": "two\u2028"}\n', "utf-8")
    (tmp_path / "c.json").write_text("{", "utf-8")
    policy: Callable[[ModelRequest], Any] = load_script(tmp_path / "a.json")
    assert policy(request_of(UserMessage("go"))).text == "é"
    policy = load_script(tmp_path / "b.jsonl")
    assert policy(request_of(UserMessage("go"), AssistantMessage("one"), UserMessage("on"))).text == "two\u2028"
    for name in ("c.json", "missing.json"):
        with pytest.raises(ConfigurationError, match="cannot be read"):
            load_script(tmp_path / name)


def test_the_random_policy_calls_tools_that_are_offered() -> None:
    policy: Callable[[ModelRequest], Any] = random_policy(seed=5)
    answers = [policy(request_of(*HELLO, number=number, tools=[CHAT_TOOL])) for number in range(60)]
    calls = [answer for answer in answers if isinstance(answer, Reply)]
    assert 15 < len(calls) < 45
    assert {len(reply.tool_calls) for reply in calls} == {1, 2}
    for call in (call for reply in calls for call in reply.tool_calls):
        jsonschema.validate(json.loads(call.arguments), SCHEMA)
    for number in range(20):
        assert isinstance(policy(request_of(*HELLO, number=number, tools=[CHAT_TOOL], tool_choice="none")), AssistantMessage)
        for choice in ("required", "add"):
            asked = request_of(*HELLO, number=number, tools=[CHAT_TOOL], tool_choice=choice, parallel_tool_calls=False)
            assert [call.name for call in policy(asked).tool_calls] == ["add"]
        assert isinstance(policy(request_of(*HELLO, number=number)), AssistantMessage)


def test_the_random_policy_replays_under_the_seed_of_the_request() -> None:
    policy: Callable[[ModelRequest], Any] = random_policy(seed=5)
    seeded = [policy(request_of(*HELLO, number=number, seed=11)).content for number in range(5)]
    assert len(set(seeded)) == 1
    assert len({policy(request_of(*HELLO, number=number)).content for number in range(20)}) > 5
    assert len({policy(request_of(*HELLO, choice=choice, seed=11)).content for choice in range(20)}) > 5
    other: Callable[[ModelRequest], Any] = random_policy(seed=6)
    assert [other(request_of(*HELLO, number=number)).content for number in range(5)] != [
        policy(request_of(*HELLO, number=number)).content for number in range(5)
    ]


def test_the_random_policy_calls_one_tool_at_a_time_where_it_is_told_so() -> None:
    policy: Callable[[ModelRequest], Any] = random_policy()

    def num_calls(sampling: dict[str, Any]) -> set[int]:
        tools = request_of(*HELLO, tools=[CHAT_TOOL]).tools
        asked = [ModelRequest("chat", number, "m", [UserMessage("?")], tools, "required", sampling, {}) for number in range(60)]
        return {len(policy(each).tool_calls) for each in asked}

    refused: list[dict[str, Any]] = [{"parallel_tool_calls": False}, {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}]
    allowed: list[dict[str, Any]] = [{}, {"parallel_tool_calls": None}, {"tool_choice": {"type": "any"}}, {"tool_choice": "required"}]
    assert ([num_calls(way) for way in refused], [num_calls(way) for way in allowed]) == ([{1}] * 2, [{1, 2}] * 4)


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (["  one \n"], "1"),
        (["one and two three"], "23"),
        (["one", "two"], "2"),
        (["two", "nothing known"], "2"),
        (["one two three", "one"], "1"),
        (["empty"], ""),
    ],
)
def test_an_oracle_knows_the_newest_question(asked: list[str], answer: str) -> None:
    policy: Callable[[ModelRequest], Any] = oracle({"one": "1", " two ": "2", "two three": "23", "empty": "", " ": "blank"})
    assert policy(request_of(*map(UserMessage, asked), AssistantMessage("three"))) == answer
    with pytest.raises(RequestRefused, match=r"^the oracle knows no answer to 'new'; it knows 4 question\(s\)$"):
        policy(request_of(UserMessage("old"), UserMessage("new")))
    with pytest.raises(ConfigurationError, match="an oracle needs answers by question"):
        oracle({3: "x"})  # type: ignore[dict-item]


async def test_oracles_know_answers() -> None:
    async def later(question: str) -> str | None:
        return "7" if question == "héllo 😀" else None

    models = {"dict": oracle({"llo": "short", "héllo": "long"}), "function": oracle(later), "none": oracle({"other": "x"})}
    async with ModelServer(models) as server:
        for name, expected in (("dict", "long"), ("function", "7")):
            _, answer = await post(server, "/v1/chat/completions", {"model": name, "messages": HELLO})
            assert says(answer) == expected
        for name, question in (("none", "héllo"), ("function", "what?")):
            body = {"model": name, "messages": [{"role": "user", "content": question}]}
            status, answer = await post(server, "/v1/chat/completions", body)
            assert status == 400
            assert "the oracle knows no answer" in answer["error"]["message"]
    with pytest.raises(ConfigurationError, match="answers by question"):
        oracle(3)  # type: ignore[arg-type]


async def test_an_environments_oracle_answers_its_tasks() -> None:
    rows = [{"question": f"{index} squared?", "answer": str(index * index)} for index in range(30)]
    env = SingleTurnEnv(rows, system_prompt="Answer with a number.")
    async with ModelServer({"oracle": environment_oracle(env)}) as server:
        for index in (2, 12):
            observation, _ = env.reset(options={"example_id": index})
            body = {"model": "oracle", "messages": observation}
            _, answer = await post(server, "/v1/chat/completions", body)
            assert says(answer) == str(index * index)
        assert (await post(server, "/v1/chat/completions", {"model": "oracle", "messages": HELLO}))[0] == 400


def test_an_environment_with_no_answers_has_no_oracle() -> None:
    from vfgym import ProceduralTasks

    with pytest.raises(ConfigurationError, match="without end"):
        environment_oracle(SingleTurnEnv(ProceduralTasks(lambda index: {"question": str(index)})))


def test_policies_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "served_policies.py").write_text(
        "def shout(request):\n    return 'HI'\n\nclass Made:\n    __call__ = shout\n\ntext = 'x'\n"
    )
    assert load_policy("echo") is echo
    for given, seed in (({}, 0), ({"seed": 3}, 3)):
        assert load_policy("random", **given)(request_of(*HELLO)) == random_policy(seed)(request_of(*HELLO))
    assert echo(request_of(*HELLO, {"role": "assistant", "content": "x"})) == HELLO[0]["content"]
    assert echo(request_of({"role": "system", "content": "a"}, {"role": "assistant", "content": "b"})) == "b"
    assert load_policy("served_policies:shout")(request_of(*HELLO)) == "HI"
    made: Any = load_policy("served_policies:Made")
    assert type(made).__name__ == "Made"
    for name, problem in (
        ("ecko", "Did you mean `echo`"),
        ("served_policies:shoot", "Did you mean `shout`"),
        ("served_policies:text", "must be a function"),
        ("no_such_module_at_all:x", "there is no module"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            load_policy(name)
