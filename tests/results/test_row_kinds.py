"""What each key of a row may hold."""

from __future__ import annotations

import re
from typing import Any

import pytest

from vfgym.endings import Ending
from vfgym.results.row_kinds import check_kinds, is_number

NOT_ROWS: list[tuple[Any, str]] = [
    ({"completion": 5}, "its completion must be a list of messages, got 5"),
    ({"prompt": {"role": "user"}}, "its prompt must be a list of messages, got {'role': 'user'}"),
    ({"completion": [None]}, "its completion must be a list of messages, each an object; got None"),
    ({"completion": ["a\nb"]}, "each an object; got 'a"),
    ({"completion": [{"role": "assistant", "tool_calls": 5}]}, "has a message whose tool_calls are not a list of calls: 5"),
    ({"metrics": []}, "its metrics must be an object, got []"),
    ({"timing": 5}, "its timing must be an object, got 5"),
    ({"rollout": "1"}, "its rollout must be an integer, got '1'"),
    ({"rollout": True}, "its rollout must be an integer, got True"),
    ({"fingerprint": [5]}, "its fingerprint must be text, got [5]"),
    ({"error": {}}, "its error must be text, or an object with the text `error`, got {}"),
    ({"error": 5}, "its error must be text"),
    ({"ending": "over"}, "its ending must be one of terminated, truncated, cut"),
    ({"token_usage": {"input_tokens": "7"}}, "its token_usage must be an object of numbers"),
    ({"spent": {"requests": 1}}, "its spent must be an object with the numbers requests"),
    ({"human": {"hints": None}}, "its human must be an object of numbers"),
    ({"tool_defs": [{"role": "x"}]}, "its tool_defs must be a list of tools, each with a name"),
    ({"metrics_errors": 5}, "its metrics_errors must be an object of texts, got 5"),
    ({"trajectory": [{}]}, "its trajectory must be a list of steps, each with prompt and completion, got [{}]"),
    ({"trajectory": [{"prompt": [], "completion": 5}]}, "step 0 of its trajectory: the completion must be a list of messages, got 5"),
    ({"trajectory": [{"prompt": [], "completion": [], "extras": 5}]}, "step 0 of its trajectory: extras must be an object, got 5"),
]


@pytest.mark.parametrize(("row", "problem"), NOT_ROWS, ids=[problem for _, problem in NOT_ROWS])
def test_a_key_of_another_kind_is_named(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)) as caught:
        check_kinds(row)
    assert "\n" not in str(caught.value)


OF_KIND: dict[str, list[Any]] = {
    **{key: [{}, {"a": []}] for key in ("metrics", "timing", "info")},
    **{key: [{}, {"a": 0, "b": float("nan")}] for key in ("token_usage", "human")},
    **{key: [{}, {"a": ""}] for key in ("metrics_errors", "cleanup_errors")},
    **{key: ["", "x"] for key in ("stop_condition", "fingerprint", "env_id", "error_chain", "long_error_chain", "task")},
    **{key: [0, -1, 2**70] for key in ("rollout", "seed")},
    "ending": [str(ending) for ending in Ending],
    "error": ["", "x", {"error": ""}],
    "spent": [{"requests": 0, "input_tokens": 0.0, "output_tokens": 0, "cost": cost} for cost in (None, 0, 0.5)],
    "tool_defs": [[], [{"name": "a"}, {"function": {"name": "b"}}]],
    "trajectory": [[], [{"prompt": [], "completion": None, "extras": None}, {"prompt": {"shared": 0, "new": []}, "completion": []}]],
    "prompt": ["text", [], [{"role": "assistant", "tool_calls": [{}, "{}"]}]],
    "completion": ["", [{"tool_calls": None}]],
}
OTHERS: list[Any] = [3.5, [3], {"a": b""}, {"a": "1", "b": 1}]


@pytest.mark.parametrize("key", OF_KIND)
def test_each_key_takes_its_kind_and_none(key: str) -> None:
    for value in (None, *OF_KIND[key]):
        check_kinds({key: value})
    others = [each for each in OTHERS if not (key in ("metrics", "timing", "info") and isinstance(each, dict))]
    for value in others:
        with pytest.raises(ValueError, match=f"^its {key} must be "):
            check_kinds({key: value})


@pytest.mark.parametrize("key", ["requests", "input_tokens", "output_tokens", "cost"])
def test_all_of_what_was_spent_are_numbers(key: str) -> None:
    for spent in ({**OF_KIND["spent"][0], key: "1"}, {name: 0 for name in OF_KIND["spent"][0] if name != key}):
        with pytest.raises(ValueError, match="its spent must be"):
            check_kinds({"spent": spent})


@pytest.mark.parametrize("key", ["extras", "response", "tokens"])
def test_the_second_step_is_checked_too(key: str) -> None:
    good: dict[str, Any] = {"prompt": [], "completion": []}
    with pytest.raises(ValueError, match=f"step 1 of its trajectory: {key} must be an object, got \\[\\]"):
        check_kinds({"trajectory": [good, {**good, key: []}]})
    with pytest.raises(ValueError, match="step 1 of its trajectory: the prompt must be a list of messages, got 'text'"):
        check_kinds({"trajectory": [good, {**good, "prompt": "text"}]})


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ValueError, match=r"got 'x{59}\.\.\.$"):
        check_kinds({"metrics": "x" * 1000})


@pytest.mark.parametrize("value", [0, 0.0, -5, 2**1023 - 1, 1e308, float("inf"), float("nan")])
def test_numbers(value: Any) -> None:
    assert is_number(value)


@pytest.mark.parametrize("value", [True, False, None, "1", 2**1023, -(2**1023), 1j, []])
def test_what_cannot_be_reckoned_with(value: Any) -> None:
    assert not is_number(value)
