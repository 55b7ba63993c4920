"""Trajectories: whole and shared in memory, without repetition on disk, and the same when they are read back."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym import MultiTurnEnv, Response, Rubric, Usage
from vfgym.messages import Message, ResponseMessage, ResponseTokens, UserMessage
from vfgym.messages.chat import convert_all
from vfgym.results import ResultsWriter, RolloutOutput, load_results, rollout_output
from vfgym.results.rows import row_line
from vfgym.results.trajectory import KeptStep, decode_steps, encode_steps
from vfgym.state import MessagesView, State


class Letters(MultiTurnEnv):
    """Answers each message with one of a hundred letters."""

    def __init__(self, turns: int) -> None:
        super().__init__(dataset=[{"question": "begin", "answer": "é😀"}], max_turns=turns, rubric=Rubric(lambda completion: 1.0))

    def env_response(self, messages: list[Message], state: State) -> list[Message]:
        return [UserMessage("w" * 100)]


class Forgetting(Letters):
    """Shows the model nothing but the last answer, from the third turn on."""

    def get_prompt_messages(self, state: State) -> Any:
        steps = state["trajectory"]
        if len(steps) < 2:
            return super().get_prompt_messages(state)
        return [UserMessage("You said:"), *steps[-1]["completion"]]


def answer(number: int) -> Response:
    """Return an answer as a client gives it, with token ids that go on from those of the answer before."""
    prompt = list(range(3 * number + 2))
    tokens = ResponseTokens(prompt, [0] * len(prompt), [len(prompt)], [1], [-0.5])
    message = ResponseMessage(f"answer {number}", finish_reason="stop", tokens=tokens)
    return Response(f"r{number}", 7, "m", Usage(len(prompt), 0, 1, len(prompt) + 1), message)


def played(env: MultiTurnEnv, turns: int) -> State:
    env.reset(seed=0)
    for number in range(turns):
        env.step(answer(number))
    assert env.state is not None
    return env.state


def row_of(env: MultiTurnEnv, turns: int) -> RolloutOutput:
    return rollout_output(played(env, turns), state_columns=["trajectory"])


def saved_and_loaded(row: RolloutOutput, path: Path) -> RolloutOutput:
    with ResultsWriter(path, {"env_id": "e", "state_columns": ["trajectory"]}) as writer:
        writer.append(row)
    return load_results(path)["outputs"][0]


@pytest.mark.parametrize("env", [Letters(6), Forgetting(6)])
def test_what_is_read_back_is_what_was_kept(env: MultiTurnEnv, tmp_path: Path) -> None:
    row = row_of(env, 6)
    assert len(row["trajectory"]) == 6
    loaded = saved_and_loaded(row, tmp_path)
    assert loaded == row
    assert json.loads(json.dumps(loaded)) == json.loads(json.dumps(row))
    step = loaded["trajectory"][3]
    assert step["response"] == {
        "id": "r3",
        "created": 7,
        "model": "m",
        "usage": {"prompt_tokens": 11, "reasoning_tokens": 0, "completion_tokens": 1, "total_tokens": 12},
        "message": {"role": "assistant", "content": "answer 3", "finish_reason": "stop"},
    }
    assert step["tokens"]["prompt_ids"] == list(range(11))
    assert step["tokens"]["prompt_mask"] == [0] * 11
    assert step["completion"] == [{"role": "assistant", "content": "answer 3"}]


def test_a_step_on_disk_has_only_what_is_new_and_a_rewritten_history_is_whole() -> None:
    row = row_of(Letters(4), 4)
    first, second, *_ = json.loads(row_line(row))["trajectory"]
    assert first["prompt"] == {"shared": 1, "new": []}
    assert second["prompt"] == {"shared": 2, "new": [{"role": "user", "content": "w" * 100}]}
    assert "message" not in second["response"]
    assert second["response"]["message_fields"] == {"finish_reason": "stop"}
    assert second["tokens"]["prompt_ids"] == {"shared": 3, "new": [3, 4]}
    assert second["tokens"]["prompt_mask"] == {"value": 0, "count": 5}
    row = row_of(Forgetting(4), 4)
    third = json.loads(row_line(row))["trajectory"][2]
    assert [message["content"] for message in third["prompt"]] == ["You said:", "answer 1"]


@pytest.mark.parametrize("mask", [[], [1], [1, 1], [1, 0, 1], [0, 1, 0, 0]])
def test_any_mask_is_read_back(mask: list[int], tmp_path: Path) -> None:
    row = row_of(Letters(1), 1)
    row["trajectory"][0]["tokens"]["completion_mask"] = mask
    assert saved_and_loaded(row, tmp_path)["trajectory"][0]["tokens"]["completion_mask"] == mask


def test_a_response_whose_message_is_something_else_is_kept_as_it_is(tmp_path: Path) -> None:
    row = row_of(Letters(1), 1)
    row["trajectory"][0]["response"] = {"id": "r0", "message": "as text"}
    assert saved_and_loaded(row, tmp_path)["trajectory"][0]["response"] == {"id": "r0", "message": "as text"}


def test_a_step_on_disk_may_go_on_from_a_part_of_what_came_before() -> None:
    """As another writer may have it: of token ids that are shorter than those before, and of a history that was cut back."""
    answer = [{"role": "assistant", "content": "a"}]
    again = {"role": "user", "content": "again"}
    ids = {"prompt_ids": [1, 2, 3], "completion_ids": [4]}
    first = {"prompt": {"shared": 1, "new": []}, "completion": answer, "tokens": ids}
    second = {"prompt": {"shared": 1, "new": [again]}, "completion": answer, "tokens": {**ids, "prompt_ids": {"shared": 2, "new": [9]}}}
    prompt = [{"role": "user", "content": "go"}]
    one, two = decode_steps([first, second], prompt)
    assert (list(one["prompt"]), list(two["prompt"])) == (prompt, [*prompt, again])
    assert two["tokens"]["prompt_ids"] == [1, 2, 9]


def test_prompts_share_their_storage_in_memory_and_when_read_back(tmp_path: Path) -> None:
    row = row_of(Letters(30), 30)
    copies = (row, saved_and_loaded(row, tmp_path), pickle.loads(pickle.dumps(row)))
    for each in copies:
        prompts = [step["prompt"] for step in each["trajectory"]]
        assert all(type(prompt) is MessagesView for prompt in prompts)
        assert len({id(prompt._messages) for prompt in prompts}) == 1
        assert [len(prompt) for prompt in prompts] == list(range(1, 61, 2))
        assert each == row


def test_a_row_does_not_keep_the_live_state_or_what_clients_converted() -> None:
    state = played(Letters(2), 2)
    made = []

    def convert(message: Message) -> dict[str, Any]:
        made.append(message)
        return {"native": message["content"]}

    message = state["completion"][0]
    assert convert_all([message], convert)[0] is convert_all([message], convert)[0]
    row = rollout_output(state, state_columns=["trajectory"])
    convert_all([message], convert)
    assert len(made) == 2, "what was converted was let go"
    kept, step = row["trajectory"][0], state["trajectory"][0]
    assert kept["completion"][0] is step["completion"][0], "messages are shared"
    assert kept["tokens"]["prompt_ids"] is step["tokens"]["prompt_ids"], "and so are token ids"
    row["trajectory"][0]["reward"] = 5.0
    row["completion"].clear()
    assert state["trajectory"][0]["reward"] is None
    assert len(state["completion"]) == 3


def test_whatever_an_author_puts_into_a_step_is_kept_or_marked(caplog: pytest.LogCaptureFixture) -> None:
    class Sdk:
        def model_dump(self, **options: Any) -> dict[str, Any]:
            return {"choices": [1]}

    state = played(Letters(1), 1)
    step = state["trajectory"][0]
    step["response"], step["extras"]["seen"], step["own"] = Sdk(), {"b", "a"}, Path("x")
    kept = rollout_output(state, state_columns=["trajectory"])["trajectory"][0]
    assert (kept["response"], kept["extras"]["seen"], kept["own"]) == ({"choices": [1]}, ["a", "b"], "x")
    step["extras"]["socket"] = object()
    kept = rollout_output(state, state_columns=["trajectory"])["trajectory"][0]
    assert kept["extras"] == {"seen": ["a", "b"], "socket": "<not kept: object has no form in JSON>"} | kept["extras"]
    assert "leaves out trajectory[0].extras.socket: object has no form in JSON" in caplog.text


MESSAGES = st.lists(st.sampled_from([{"role": "user", "content": letter} for letter in "abc"]), max_size=4)
STEPS = st.lists(st.tuples(st.one_of(st.none(), MESSAGES), MESSAGES), max_size=6)


@given(MESSAGES, STEPS, st.booleans())
def test_any_sequence_of_prompts_survives(prompt: list[Any], drawn: list[Any], as_views: bool) -> None:
    """Each step goes on from the one before (with new messages), or has a prompt of its own."""
    steps = []
    log = list(prompt)
    for own, new in drawn:
        log = [*log, *new] if own is None else list(own)
        completion = [{"role": "assistant", "content": str(len(steps))}]
        steps.append({"prompt": MessagesView(log, len(log)) if as_views else log, "completion": completion, "response": None})
        log = [*log, *completion]
    stored = json.loads(json.dumps(encode_steps(steps, prompt)))
    assert decode_steps(stored, prompt) == [KeptStep(step) for step in steps]


def test_a_delta_that_refers_to_more_than_there_is_is_refused() -> None:
    with pytest.raises(ValueError, match="shares 3 messages with what came before, which has 1"):
        decode_steps([{"prompt": {"shared": 3, "new": []}, "completion": []}], [{"role": "user", "content": "a"}])
