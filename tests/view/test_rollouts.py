"""What viewers say of one rollout, by what its row has and by what it lacks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.view.runs import row
from vfgym.view.rollouts import (
    answers_of,
    asked_words,
    ended_by,
    failure_reason,
    messages_of,
    said_words,
    seconds_of,
    step_rewards_of,
    task_and_rollout,
    tokens_of,
)

SAID = [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}]


def test_a_rollout_is_named_by_its_task_and_its_number() -> None:
    assert (task_and_rollout({"example_id": 7, "rollout": 1}), task_and_rollout({"example_id": 0})) == ("7/1", "0/0")


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        *[({"timing": {"total": 2}}, 2.0), ({"timing": {"total": 0.5}}, 0.5), ({"timing": {"total": "2"}}, 0.0)],
        *[({"timing": {}}, 0.0), ({"timing": None}, 0.0), ({"timing": 3.0}, 0.0), ({}, 0.0)],
    ],
)
def test_how_long_a_rollout_took(fields: dict[str, Any], seconds: float) -> None:
    assert seconds_of(fields) == seconds


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        *[({"input_tokens": 3, "output_tokens": 4, "total": 9}, 7), ({"input_tokens": 3}, 3), ({"output_tokens": 4}, 4)],
        *[({"input_tokens": 0, "output_tokens": 0}, 0), ({"reasoning_tokens": 5}, None), ({}, None), (None, None)],
    ],
)
def test_how_many_tokens_a_rollout_took(usage: Any, tokens: float | None) -> None:
    assert tokens_of({"token_usage": usage}) == tokens


def test_a_text_is_one_message_and_answers_are_the_models() -> None:
    assert messages_of({"prompt": "?"}, "prompt") == [{"role": "user", "content": "?"}]
    assert messages_of({"completion": "!"}, "completion") == [{"role": "assistant", "content": "!"}]
    assert messages_of({"prompt": SAID, "completion": None}, "prompt") == SAID
    assert [messages_of(each, "completion") for each in ({"completion": None}, {"completion": ""}, {})] == [[]] * 3
    assert [answers_of({"completion": each}) for each in (SAID, "!", [])] == [[0, 2], [0], []]


@pytest.mark.parametrize(
    ("earned", "by_place"),
    [
        *[([0.5, 0], {0: 0.5, 2: 0}), ([0.5], None), ([0.5, 1.0, 2.0], None), ([0.5, None], None), ([None, 0.5], None)],
        *[([], None), (None, None), ({"0": 1.0, "1": 2.0}, None)],
    ],
)
def test_what_turns_earned_stands_at_their_answers(earned: Any, by_place: Any) -> None:
    assert step_rewards_of(row(completion=SAID, step_rewards=earned)) == by_place


def test_without_an_answer_nothing_was_earned_by_turns() -> None:
    assert step_rewards_of(row(completion=[], step_rewards=[])) == {}


def test_how_a_rollout_ended() -> None:
    assert ended_by(row(ending="cut", stop_condition="limit_reached")) == "cut (limit_reached)"
    assert [ended_by(row(ending="terminated", stop_condition=each)) for each in (None, "")] == ["terminated"] * 2


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"error": {"error": "ModelError", "error_chain_repr": "503"}, "metrics_errors": {"exact": "x"}}, ("ModelError", "503")),
        ({"error": {"error": "ModelError"}}, ("ModelError", "{'error': 'ModelError'}")),
        ({"error": {}}, ("error", "{}")),
        ({"metrics_errors": {"exact": "KeyError('x')", "other": "y"}}, ("reward function exact", "KeyError('x')")),
        ({"metrics_errors": {}, "stop_condition": "odd"}, ("odd", "its answers could not be read")),
        ({"stop_condition": None}, ("no reason given", "its answers could not be read")),
    ],
)
def test_why_a_rollout_failed(fields: dict[str, Any], reason: tuple[str, str]) -> None:
    assert failure_reason(row(**fields)) == reason


def test_first_words_tell_rollouts_apart() -> None:
    said = [
        {"role": "assistant", "content": "down"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "  up\n\nnow "},
    ]
    assert said_words(row(completion=said)) == "down · up now"
    call = {"function": {"name": "look", "arguments": '{"at": 1}'}}
    assert said_words(row(completion=[{"role": "assistant", "content": None, "tool_calls": [call]}])) == 'look({"at": 1})'
    calls = [call, {"name": "act", "arguments": "{}"}]  # of which the other has a form of its own
    assert said_words(row(completion=[{"role": "assistant", "content": "So", "tool_calls": calls}])) == 'So look({"at": 1}) act({})'
    assert said_words(row(completion=[{"role": "assistant", "content": ""}])) == "(no text)"
    assert said_words(row(completion=[{"role": "assistant", "content": "x" * 120}])) == "x" * 120
    assert said_words(row(completion=[{"role": "assistant", "content": "x" * 121}])) == "x" * 120 + "…"
    assert said_words(row(completion=[{"role": "assistant", "content": "x" * 41}] * 2)) == " · ".join(["x" * 40 + "…"] * 2)
    assert (said_words(row(completion=" 4")), said_words(row(completion="<think>Shall I?</think>down"))) == ("4", "down")
    assert len(said_words(row(completion="word " * 1000))) <= 121
    assert said_words(row(completion=[{"role": "assistant", "content": "down"}] * 99)).endswith("down · …")
    assert (
        asked_words(row(prompt=[{"role": "system", "content": "rules"}, {"role": "user", "content": [{"type": "text", "text": "2 + 2"}]}]))
        == "2 + 2"
    )
    assert (asked_words(row(prompt=[])), said_words(row(completion=[]))) == ("", "")
