"""What the reflecting model is shown of a rollout."""

from __future__ import annotations

from verifiers_compat.gepa.feedback import conversation_text, reflective_record


def test_a_record_shows_a_conversation_and_what_it_was_scored_with() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"key": "a"}'}}
    row = {
        "prompt": [
            {"role": "system", "content": "Look."},
            {"role": "user", "content": [{"type": "text", "text": "Where?"}, {"type": "image_url"}]},
        ],
        "completion": [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "here"}],
        **{"metrics": {"found": 0.5}, "metrics_errors": {"kind": "KeyError('b')"}, "answer": ["here", "there"], "error": None},
        **{"is_truncated": True, "stop_condition": "max_turns_reached", "hints": {"a": 1}},
    }
    assert reflective_record(row, 0.5, ["hints", "unknown"]) == {
        "Inputs": "Where?\n[image_url]",
        "Generated Outputs": '[assistant]\ncalls look({"key": "a"})\n\n[tool]\nhere',
        "Feedback": 'Score: 0.5\nfound: 0.5\nExpected answer: ["here", "there"]\nThe rollout was cut off (max_turns_reached).\n'
        "kind could not be computed: KeyError('b')",
        "hints": '{"a": 1}',
    }
    failed = {**row, "is_truncated": False, "metrics_errors": {}, "error": {"error_chain_repr": "ModelError('gone')"}}
    assert reflective_record(failed, 0.0, [])["Feedback"].endswith("The rollout failed: ModelError('gone')")
    assert conversation_text([]) == ""


def test_an_answer_of_0_and_an_empty_completion_are_shown() -> None:
    row = {"prompt": [{"role": "developer", "content": "Look."}, {"role": "user", "content": "?"}], "completion": [], "metrics": {"m": 0.0}}
    row |= {"answer": "0", "error": None, "is_truncated": False, "stop_condition": "done", "zero": 0, "empty": "", "none": None}
    record = reflective_record(row, 0.0, ["zero", "empty", "none"])
    assert record == {
        "Inputs": "?",
        "Generated Outputs": "(nothing)",
        "Feedback": "Score: 0\nm: 0\nExpected answer: 0",
        "zero": "0",
        "empty": "",
    }
