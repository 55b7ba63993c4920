"""verl's agent loop, with the published interface of verl stood in for (`pytest -m peers` plays it in verl's own worker)."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.training.trainers import environments
from tests.training.trainers.stand_ins import TokenOutput, install_verl
from vfgym.errors import ConfigurationError
from vfgym.training.counting import RolloutMissing

END = 256


@pytest.fixture
def verl(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    install_verl(monkeypatch)
    yield importlib.import_module("vfgym.training.verl")
    del sys.modules["vfgym.training.verl"]


class Tokenizer:
    """A tokenizer of bytes, whose template ends each message with one special token."""

    chat_template = "bytes"
    eos_token_id = END
    all_special_ids = (END,)

    def apply_chat_template(self, messages: Any, *, tools: Any, tokenize: bool, add_generation_prompt: bool = False, **told: Any) -> str:
        texts = [f"{message['role']}: {message['content']}\x00" for message in messages]
        return f"{told.get('greeting', '')}{''.join(texts)}{'assistant: ' if add_generation_prompt else ''}"

    def __call__(self, text: str, add_special_tokens: bool = False) -> dict[str, list[int]]:
        return {"input_ids": [END if byte == 0 else byte for byte in text.encode()]}

    def decode(self, ids: Any) -> str:
        return bytes([0 if each == END else each for each in ids]).decode(errors="replace")


class Server:
    def __init__(self, answer: Callable[[int], TokenOutput]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, list[int], dict[str, Any]]] = []

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> TokenOutput:
        self.asked.append((request_id, prompt_ids, sampling_params))
        return self.answer(len(self.asked) - 1)


def write(text: str, *, ended: bool = True, **facts: Any) -> TokenOutput:
    ids = [*text.encode(), *([END] if ended else [])]
    return TokenOutput(ids, [-0.5] * len(ids), **facts)


def across(turn: int) -> TokenOutput:
    move = environments.ACROSS[turn % 6]
    return write(f"<action>{move}</action>", num_preempted=1, extra_fields={"min_global_steps": turn, "max_global_steps": turn})


def run(verl: Any, env: Any, server: Server, *, prompt_length: int = 4096, response_length: int = 4096, **row: Any) -> Any:
    rollout = SimpleNamespace(prompt_length=prompt_length, response_length=response_length)
    loop = verl.ChatAgentLoop(
        env=env,
        trainer_config=SimpleNamespace(config=SimpleNamespace(actor_rollout_ref=SimpleNamespace(rollout=rollout))),
        server_manager=server,
        tokenizer=Tokenizer(),
        processor=None,
        dataset_cls=None,
        data_config=SimpleNamespace(config={"apply_chat_template_kwargs": {"greeting": "Hi. "}}),
    )
    return asyncio.run(loop.run({"temperature": 1.0}, **{"extra_info": {"example_id": 0, "split": "train"}, **row}))


def test_a_rollout_is_one_sequence_of_the_very_ids(verl: Any) -> None:
    server = Server(across)
    output = run(verl, environments.make_lake(), server)
    assert output.reward_score == 1.0
    assert len({request_id for request_id, _, _ in server.asked}) == 1, "one server answers all of it"
    last = server.asked[-1][1]
    assert [*output.prompt_ids, *output.response_ids][: len(last)] == last
    assert output.prompt_ids == server.asked[0][1]
    assert bytes(output.prompt_ids[:4]) == b"Hi. ", "what the template is told"
    written = [each for each, kept in zip(output.response_ids, output.response_mask, strict=True) if kept]
    assert written == [each for turn in range(6) for each in across(turn).token_ids]
    assert {logprob for logprob, kept in zip(output.response_logprobs, output.response_mask, strict=True) if kept} == {-0.5}
    assert (output.num_turns, output.metrics["num_preempted"]) == (12, 6)
    assert (output.extra_fields["min_global_steps"], output.extra_fields["max_global_steps"]) == (0, 5)


def test_answers_share_the_room_of_a_response(verl: Any) -> None:
    """The last one is cut there, and the rollout counts with the lower of its return and the failure_reward."""

    def long(turn: int) -> TokenOutput:
        return write("<action>down</action>" + "!" * 500, ended=False)

    server = Server(long)
    output = run(verl, environments.make_lake(failure_reward=-1.0), server, response_length=300)
    assert server.asked[0][2] == {"temperature": 1.0, "max_tokens": 300}
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs) == 300
    assert output.reward_score == -1.0


def test_a_prompt_that_is_too_long_is_asked_of_nobody(verl: Any) -> None:
    server = Server(across)
    output = run(verl, environments.make_lake(failure_reward=-1.0), server, prompt_length=10)
    assert not server.asked
    assert (output.prompt_ids, output.response_ids, output.response_mask, output.reward_score) == ([END], [END], [0], -1.0)


def test_a_history_that_is_rewritten_is_several_outputs(verl: Any) -> None:
    """Which the trainer of version 1 takes; it is known by its session_id."""
    outputs = run(verl, environments.make_lake(history=1), Server(across), session_id=0)
    assert len(outputs) > 1
    assert {output.reward_score for output in outputs} == {1.0}
    assert all("reward_extra_info" in output.extra_fields for output in outputs)
    with pytest.raises(ConfigurationError, match=r"one sequence of tokens a rollout, and this one is 5: .*use_v1=True"):
        run(verl, environments.make_lake(history=1), Server(across))


@pytest.mark.parametrize(
    ("make", "ending"), [(environments.make_broken, "environment_failed"), (environments.make_unreachable, "infrastructure_failed")]
)
def test_a_rollout_that_says_nothing_of_the_policy_is_raised(verl: Any, make: Any, ending: str) -> None:
    with pytest.raises(RolloutMissing, match=ending):
        run(verl, make(), Server(across))


def test_a_server_that_is_stopped_is_no_answer(verl: Any) -> None:
    with pytest.raises(RolloutMissing, match="verl's server was stopped"):
        run(verl, environments.make_lake(), Server(lambda turn: TokenOutput([], [], stop_reason="aborted")))


def test_rows_say_their_loop_and_their_task(verl: Any) -> None:
    rows = list(verl.dataset(environments.make_guess(), num_examples=2))
    assert [row["agent_name"] for row in rows] == ["vfgym", "vfgym"]
    assert rows[1]["extra_info"] == {"index": 1, "example_id": 1, "split": "train"}
    assert rows[1]["prompt"][-1]["content"] == "1 + 2?"
    with pytest.raises(ConfigurationError, match="must say which task"):
        run(verl, environments.make_guess(), Server(across), extra_info=None)
