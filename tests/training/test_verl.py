"""verl's agent loop, with the published interface of verl stood in for (`pytest -m peers` plays it in verl's own worker)."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import vfgym
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


@pytest.mark.parametrize(("prompt_length", "response_length", "is_asked"), [(0, 1, True), (-1, 1, False), (0, 0, False)])
def test_a_prompt_may_be_as_long_as_it_may_be_and_an_answer_needs_room(
    verl: Any, prompt_length: int, response_length: int, is_asked: bool
) -> None:
    """The first number is how much longer than the prompt its limit is."""
    known, server = Server(across), Server(lambda turn: write("3", ended=False))
    run(verl, environments.make_guess(), known)
    length = len(known.asked[0][1])
    output = run(verl, environments.make_guess(), server, prompt_length=length + prompt_length, response_length=response_length)
    assert len(server.asked) == is_asked
    assert sum(output.response_mask) == is_asked


@pytest.mark.parametrize(
    ("own", "asked"),
    [
        ({"temperature": 0.3, "max_tokens": 5}, 5),
        ({"max_completion_tokens": 6}, 6),
        ({"max_tokens": 5000}, 4096),
        ({}, 4096),
    ],
)
def test_verl_samples_as_it_says_and_an_environment_may_ask_for_less(verl: Any, own: dict[str, Any], asked: int) -> None:
    server = Server(lambda turn: write("3"))
    run(verl, environments.make_guess(sampling_args=own), server)
    assert [parameters for _, _, parameters in server.asked] == [{"temperature": 1.0, "max_tokens": asked}]


def test_a_server_need_not_say_more_than_its_tokens(verl: Any) -> None:
    output = run(verl, environments.make_guess(), Server(lambda turn: TokenOutput([*b"2", END], None)))
    assert (output.response_ids, output.response_mask, output.response_logprobs) == ([*b"2", END], [1, 1], None)
    assert (output.reward_score, output.num_turns, output.metrics["num_preempted"]) == (1.0, 2, -1)
    assert output.extra_fields == {"turn_scores": [], "tool_rewards": [], "reward_extra_info": {}}


def test_the_row_says_task_split_and_seed(verl: Any) -> None:
    tasks = {name: [{"question": f"{name} {number}", "answer": "x"} for number in range(2)] for name in ("dataset", "eval_dataset")}
    server = Server(lambda turn: write("x"))
    run(verl, vfgym.SingleTurnEnv(**tasks), server, extra_info={"example_id": 1, "split": "eval"})  # type: ignore[arg-type]
    assert b"eval_dataset 1" in bytes(each % END for each in server.asked[0][1])
    rows = list(verl.dataset(vfgym.SingleTurnEnv(**tasks), split="eval", num_examples=1, agent_name="mine"))  # type: ignore[arg-type]
    assert rows == [
        {
            "prompt": [{"role": "user", "content": "eval_dataset 0"}],
            "agent_name": "mine",
            "data_source": "mine",
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"index": 0, "example_id": 0, "split": "eval"},
        }
    ]


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


@pytest.mark.parametrize("stop_reason", ["aborted", "abort"])
def test_a_server_that_is_stopped_is_no_answer(verl: Any, stop_reason: str) -> None:
    with pytest.raises(RolloutMissing, match="verl's server was stopped"):
        run(verl, environments.make_lake(), Server(lambda turn: TokenOutput([], [], stop_reason=stop_reason)))


def test_rows_say_their_loop_and_their_task(verl: Any) -> None:
    rows = list(verl.dataset(environments.make_guess(), num_examples=2))
    assert [row["agent_name"] for row in rows] == ["vfgym", "vfgym"]
    assert rows[1]["extra_info"] == {"index": 1, "example_id": 1, "split": "train"}
    assert rows[1]["prompt"][-1]["content"] == "1 + 2?"
    with pytest.raises(ConfigurationError, match="must say which task"):
        run(verl, environments.make_guess(), Server(across), extra_info=None)
