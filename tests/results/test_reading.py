"""Reading results back: those that were cut off, those of other writers, and what is not a run."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from vfgym.messages import MESSAGE_TYPES, AssistantMessage, ToolCall, UserMessage
from vfgym.results import ErrorInfo, ResultsError, RolloutOutput, load_results, summarize
from vfgym.results.reading import read_rows, take_messages

GOOD = {"example_id": 0, "prompt": [], "completion": [{"role": "assistant", "content": "4"}], "reward": 1.0}


def read(tmp_path: Path, *rows: dict[str, Any], **metadata: Any) -> list[RolloutOutput]:
    (tmp_path / "metadata.json").write_text(json.dumps({"env_id": "e", **metadata}))
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return load_results(tmp_path)["outputs"]


@pytest.mark.parametrize("fields", [{"reward": "high"}, {"reward": []}, {"return": []}, {"metrics": {"m": "x"}}, {"metrics": {"m": []}}])
def test_a_row_whose_numbers_are_none_is_named(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(ResultsError, match=r"line 1 of .*results.jsonl is not a rollout: its .* must be a number, got"):
        read(tmp_path, {"example_id": 0, **fields}, {"example_id": 1})


@pytest.mark.parametrize("is_last", [False, True])
def test_null_among_the_numbers_of_an_older_row_is_read_as_nan(tmp_path: Path, is_last: bool) -> None:
    """So they were written before such a number had a spelling of its own."""
    old = {"example_id": 0, "reward": None, "return": None, "metrics": {"m": None, "n": 1.0}, "m": None, "n": 1.0, "answer": None}
    rows = read(tmp_path, *sorted([old, {"example_id": 1}], key=lambda row: row["example_id"], reverse=is_last))
    assert len(rows) == 2
    row = rows[0]
    assert all(math.isnan(number) for number in (row["reward"], row["return"], row["metrics"]["m"], row["m"]))
    assert (row["metrics"]["n"], row["n"], row["answer"]) == (1.0, 1.0, None)


def test_tool_calls_may_be_json_text(tmp_path: Path) -> None:
    called = {"role": "assistant", "content": "", "tool_calls": ['{"id": "c1", "name": "add", "arguments": "{\\"a\\": 1}"}']}
    flat = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "add", "arguments": '{"a": 1}'}]}
    steps = [{"prompt": [called], "completion": [called]}]
    (found,) = read(tmp_path, {"example_id": 0, "prompt": [flat], "completion": [called], "trajectory": steps})
    step = found["trajectory"][0]
    for messages in (found["prompt"], found["completion"], list(step["prompt"]), step["completion"]):
        assert messages[0]["tool_calls"] == [ToolCall("c1", "add", '{"a": 1}')]


def test_an_error_may_be_text(tmp_path: Path) -> None:
    chain = {"error_chain": "ModelError('x')", "long_error_chain": "ModelError"}
    first, second, third = read(
        tmp_path,
        {"example_id": 0, "error": "went wrong"},
        {"example_id": 1, "error": "went wrong", **chain},
        {"example_id": 2, "error": {"error": "E", "error_chain_repr": "E()", "error_chain_str": "E"}},
    )
    assert str(first["error"]) == "went wrong"
    assert second["error"] == {"error": "went wrong", "error_chain_repr": "ModelError('x')", "error_chain_str": "ModelError"}
    assert type(third["error"]) is ErrorInfo
    assert summarize([first, second, third], 1, 0.5)["avg_error"] == 1.0


def test_metrics_may_stand_beside_the_other_keys_only(tmp_path: Path) -> None:
    (found,) = read(tmp_path, {"example_id": 0, "exact": 1, "num_turns": 2.0, "note": "x", "budget": 3}, state_columns=["budget"])
    assert found["metrics"] == {"exact": 1, "num_turns": 2.0}
    assert found["reward"] == 0.0


@pytest.mark.parametrize("line", ["3", '"text"', "{}", '{"example_id": "a"}', '{"example_id": true}', ""])
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / "results.jsonl").write_text(f'{{"example_id": 0}}\n{line}\n{{"example_id": 1}}\n')
    with pytest.raises(ResultsError, match=r"line 2 of .*results.jsonl is not a rollout"):
        load_results(tmp_path)


DEEP = "[" * 100_000 + "]" * 100_000
"""JSON, but nested deeper than Python's reader goes."""


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("number", [1, 2])
def test_a_row_that_is_nested_too_deep_is_named(tmp_path: Path, number: int, ends: bool) -> None:
    """Also as the last line: it is whole, and leaving it out as one that a killed run left would lose a rollout."""
    lines = ['{"example_id": 0}', '{"example_id": 1}']
    lines[number - 1] = f'{{"example_id": 7, "info": {DEEP}}}'
    (tmp_path / "metadata.json").write_text("{}")
    (tmp_path / "results.jsonl").write_text("\n".join(lines) + "\n" * ends)
    with pytest.raises(ResultsError, match=rf"line {number} of .*results.jsonl is not a rollout: the JSON is nested more than 200 levels"):
        load_results(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"a": ', DEEP])
def test_metadata_that_are_no_object_are_an_error(tmp_path: Path, text: str) -> None:
    read(tmp_path)
    (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(ResultsError, match="cannot read results"):
        load_results(tmp_path)


def write(tmp_path: Path, text: str) -> Path:
    read(tmp_path)
    (tmp_path / "results.jsonl").write_text(text)
    return tmp_path


def test_a_broken_last_line_is_left_out_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, '{"example_id": 0}\n{"example_id": 1, "rew')
    assert [output["example_id"] for output in load_results(path)["outputs"]] == [0]
    assert "the last line" in caplog.text


def test_any_other_broken_line_and_missing_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="it is not the directory of a run"):
        load_results(tmp_path)
    path = write(tmp_path, 'nonsense\n{"example_id": 1}\n')
    with pytest.raises(ResultsError, match="line 1 of"):
        load_results(path)
    (path / "results.jsonl").unlink()
    with pytest.raises(ResultsError, match="cannot read results"):
        load_results(path)


@pytest.mark.parametrize(
    ("text", "places", "is_whole", "is_cut"),
    [
        ("", [], True, False),
        ('{"example_id": 0}\n{"example_id": 12}\n', [(0, 18), (18, 37)], True, False),
        ('{"example_id": 0}\n{"example_id": 12}', [(0, 18), (18, 36)], False, False),
        ('{"example_id": 0}\n{"exam', [(0, 18)], False, True),
        ('{"example_id": 0}\n{"exam\n', [(0, 18)], False, True),
    ],
)
def test_lines_say_where_they_stand(text: str, places: list[tuple[int, int]], is_whole: bool, is_cut: bool, tmp_path: Path) -> None:
    file = read_rows(write(tmp_path, text), {})
    assert [(line.start, line.stop) for line in file.lines] == places
    assert (file.is_whole, file.is_cut, file.identity[1]) == (is_whole, is_cut, len(text))


def test_rows_are_by_example_and_rollout(tmp_path: Path) -> None:
    numbers = [(1, 1), (0, 2), (1, 0), (0, 10), (0, 0)]
    rows = read(tmp_path, *({"example_id": example, "rollout": rollout} for example, rollout in numbers))
    assert [(row["example_id"], row["rollout"]) for row in rows] == sorted(numbers)


def test_numbers_that_stand_as_text_are_numbers_again(tmp_path: Path) -> None:
    metrics = {"m": "-inf", "info": "nan"}
    kept = {"reward": "inf", "return": "-inf", "metrics": metrics, "m": "-inf", "info": {}, "failed": False, "counted_reward": "inf"}
    (row,) = read(tmp_path, {"example_id": 0, **kept}, avg_reward="inf", std_error="nan", avg_metrics={"m": "-inf"})
    assert (row["reward"], row["return"], row["m"], row["counted_reward"], row["info"]) == (math.inf, -math.inf, -math.inf, math.inf, {})
    assert math.isnan(row["metrics"]["info"])
    metadata = load_results(tmp_path)["metadata"]
    assert (metadata["avg_reward"], metadata["avg_metrics"], metadata["path_to_save"]) == (math.inf, {"m": -math.inf}, tmp_path)
    assert metadata["std_error"] != metadata["std_error"]


@pytest.mark.parametrize(
    ("fields", "failed", "counted"),
    [
        ({}, False, None),
        ({"error": "E", "counted_reward": 1.0}, True, None),
        ({"failed": 1.0, "counted_reward": 1.0}, False, None),
        ({"failed": True, "counted_reward": 0.0}, True, 0.0),
        ({"failed": False, "error": "E", "counted_reward": -1.0}, False, -1.0),
    ],
)
def test_rows_of_older_versions_failed_where_they_have_an_error(fields: dict[str, Any], failed: bool, counted: Any, tmp_path: Path) -> None:
    (row,) = read(tmp_path, {"example_id": 0, **fields})
    assert (row["failed"], row.get("counted_reward")) == (failed, counted)


@pytest.mark.parametrize("place", [1, 2, 3], ids=["first", "in between", "last"])
@pytest.mark.parametrize("row", [[], 5, {**GOOD, "completion": ["a\nb"]}, {**GOOD, "ending": "over"}, {**GOOD, "reward": 10**400}])
def test_a_row_of_another_kind_is_one_line_that_names_its_place(row: Any, place: int, tmp_path: Path) -> None:
    rows: list[Any] = [{**GOOD, "example_id": number} for number in range(2)]
    rows.insert(place - 1, row)
    with pytest.raises(ResultsError) as caught:
        read(tmp_path, *rows)
    assert str(caught.value).startswith(f"line {place} of {tmp_path / 'results.jsonl'} is not a rollout: it")
    assert "\n" not in str(caught.value)


def test_messages_become_objects_where_all_are_well_formed(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "?"}
    steps = [{"prompt": {"shared": 1, "new": []}, "completion": GOOD["completion"], "response": None}]
    (row,) = read(tmp_path, {**GOOD, "prompt": [asked], "trajectory": steps})
    assert take_messages(row, MESSAGE_TYPES)
    assert [type(each) for each in (*row["prompt"], *row["completion"])] == [UserMessage, AssistantMessage]
    (step,) = row["trajectory"]
    assert [type(each) for each in (*step["prompt"], *step["completion"])] == [UserMessage, AssistantMessage]
    (faulty,) = read(tmp_path, {**GOOD, "prompt": [asked], "completion": [{"content": "no role"}]})
    assert not take_messages(faulty, MESSAGE_TYPES)
    assert type(faulty["prompt"][0]) is dict


def test_a_last_line_that_is_cut_within_a_letter_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, "")
    for rest, cut in ((b'{"example_id": 1, "answer": "\xc3', True), (b"", False)):
        (path / "results.jsonl").write_bytes(b'{"example_id": 0}\n' + rest)
        file = read_rows(path, {"state_columns": None})
        assert (len(file.lines), file.is_cut, file.is_whole) == (1, cut, not cut)
        assert file.identity == ((path / "results.jsonl").stat().st_ino, 18 + len(rest))
    assert len(load_results(str(path))["outputs"]) == 1


def test_calls_are_read_where_any_is_in_another_form(tmp_path: Path) -> None:
    whole = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    flat = {"id": "c2", "name": "mul", "arguments": "{}"}
    said = [{"role": "assistant", "content": "", "tool_calls": calls} for calls in ([whole, flat], [whole, whole], [], None)]
    (found,) = read(tmp_path, {"example_id": 0, "completion": said, "prompt": "text"})
    calls = [message["tool_calls"] for message in found["completion"]]
    assert calls == [[ToolCall("c1", "add", "{}"), ToolCall("c2", "mul", "{}")], [whole, whole], [], None]
    assert found["prompt"] == "text"


def test_a_metric_may_be_true_and_one_that_was_asked_for_as_a_column_is_not_read_again(tmp_path: Path) -> None:
    metrics = {"m": True, "column": 1.0, "reward": 3}
    (found,) = read(tmp_path, {"example_id": 0, "metrics": metrics, "m": True, "column": "inf", "reward": "nan"}, state_columns=["column"])
    assert (found["metrics"], found["m"], found["column"]) == (metrics, True, "inf")
    assert math.isnan(found["reward"])
    (found,) = read(tmp_path, {"example_id": 0, "exact": 1, "is_good": True, "note": None, "reward": 2, "e": 0}, state_columns="exact")
    assert (found["metrics"], found["reward"]) == ({"exact": 1, "e": 0}, 2)


def test_turns_share_their_messages_and_responses_hold_them(tmp_path: Path) -> None:
    answer = GOOD["completion"][0]  # type: ignore[index]
    response = {"id": "r", "message_fields": {"finish_reason": "stop"}}
    steps = [
        {"prompt": {"shared": 1, "new": []}, "completion": [answer], "response": response},
        {"prompt": {"shared": 2, "new": [{"role": "user", "content": "!"}]}, "completion": [answer], "response": None},
    ]
    (row,) = read(tmp_path, {**GOOD, "prompt": [{"role": "user", "content": "?"}], "trajectory": steps})
    assert take_messages(row, MESSAGE_TYPES)
    first, second = row["trajectory"]
    assert first["prompt"][0] is second["prompt"][0] is row["prompt"][0]
    assert [message["content"] for message in second["prompt"]] == ["?", "4", "!"]
    assert first["response"]["message"].finish_reason == "stop"
    assert second["response"] is None


def test_where_there_is_no_run_the_error_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file", tmp_path / "none"):
        with pytest.raises(ResultsError) as caught:
            load_results(path)
        assert str(caught.value) == f"cannot read results from {path}: it is not the directory of a run, which has a metadata.json"
    (tmp_path / "metadata.json").write_text("[]")
    with pytest.raises(ResultsError, match=r"metadata\.json is not a JSON object$"):
        load_results(tmp_path)
