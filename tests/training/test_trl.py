"""What `GRPOTrainer` is given, without TRL, of which the adapter imports nothing (`pytest -m peers` trains with TRL itself)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.environments import Talk
from tests.models import InOrder
from tests.training.trainers import environments
from tests.training.trainers.stand_ins import install
from vfgym.errors import ConfigurationError
from vfgym.messages import Response, ResponseMessage, ResponseTokens, Usage


@pytest.fixture
def trl(monkeypatch: pytest.MonkeyPatch) -> Any:
    return install(monkeypatch, "trl", trl={})


def test_rows_have_their_prompt_and_say_which_task_they_are_of(trl: Any) -> None:
    rows = list(trl.dataset(environments.make_guess(), num_examples=2))
    assert [(row["example_id"], row["split"], row["prompt"][-1]["content"]) for row in rows] == [
        (0, "train", "0 + 2?"),
        (1, "train", "1 + 2?"),
    ]
    assert trl._task_of(rows[1]["prompt"]) == (1, "train")
    for wrong in ("text", [{"role": "user", "content": "?"}]):
        with pytest.raises(ConfigurationError, match="which say which task they are of"):
            trl._task_of(wrong)
    assert [row["example_id"] for row in trl.dataset(environments.make_guess(), num_examples=4)] == [0, 1, 2]
    for number in (0, True, 1.5):
        with pytest.raises(ConfigurationError, match="num_examples must be"):
            trl.dataset(environments.make_guess(), num_examples=number)


def test_a_factory_makes_episodes_and_can_be_sent_to_another_process(trl: Any) -> None:
    factory = trl.environment_factory(environments.make_sums())
    first, second = factory(), factory()
    assert type(first) is type(second)
    first.reset(example_id=1, split="train")
    assert first.add(1, 2) == "3"
    assert "+ 2?" in second.reset()
    assert trl.environment_factory(environments.make_sums()).__reduce__()[0] is type(factory)
    with pytest.raises(ConfigurationError, match="TRL puts what an environment answers"):
        trl.environment_factory(environments.make_lake(as_tool=True, history=1))
    with pytest.raises(ConfigurationError, match="TRL takes the actions of an environment from its methods"):
        trl.environment_factory(environments.make_guess())


def test_one_answer_is_played_and_earns_what_it_earns(trl: Any) -> None:
    [reward] = trl.reward_funcs(environments.make_guess())
    columns = {"example_id": [0, 1, 2], "split": ["train"] * 3}
    completions = ["2", [{"role": "assistant", "content": "3"}], [{"role": "assistant", "content": None}]]
    assert reward(completions=completions, **columns) == [1.0, 1.0, 0.0]
    with pytest.raises(ConfigurationError, match="their tasks must be known"):
        reward(completions=["2"])
    [talk] = trl.reward_funcs(Talk(max_turns=2))
    with pytest.raises(ConfigurationError, match="Talk goes on after one answer"):
        talk(completions=["2"], example_id=[0], split=["train"])


def test_rewards_of_rollouts_are_passed_on_and_what_failed_is_none(trl: Any) -> None:
    [reward] = trl.reward_funcs(environments.make_sums())
    assert reward(completions=["a", "b"], episode_reward=[0.0, None]) == [0.0, None]
    played = [trl.environment_factory(environments.make_sums())() for _ in range(2)]
    for each in played:
        each.reset(example_id=0, split="train")
    played[1]._is_over = played[1]._is_missing = True
    answers = [[{"role": "assistant", "content": "2"}]] * 2
    assert reward(completions=answers, environments=played) == [0.0, None]
    assert played[0].get_reward() == 1.0, "the last answer is played"
    [broken] = trl.reward_funcs(environments.make_broken(max_turns=2))
    assert broken(completions=["x"], example_id=[0], split=["train"]) == [None]


def test_a_rollout_that_is_not_one_sequence_counts_and_teaches_nothing(trl: Any) -> None:
    assert trl._row_of([], -1.0, 9) == {
        "prompt_ids": [9],
        "completion_ids": [9],
        "logprobs": [0.0],
        "env_mask": [0],
        "episode_reward": -1.0,
    }
    sample = SimpleNamespace(num_prompt_ids=2, ids=[1, 2, 3, 4], logprobs=[0.0, 0.0, -1.0, 0.0], mask=[0, 0, 1, 0])
    row = trl._row_of([sample], None, 9)
    assert (row["prompt_ids"], row["completion_ids"], row["logprobs"], row["env_mask"]) == ([1, 2], [3, 4], [-1.0, 0.0], [1, 0])
    assert trl._row_of([sample, sample], 1.0, 9)["env_mask"] == [0]
    with pytest.raises(ConfigurationError, match="set use_vllm=False"):
        trl.rollout_func(environments.make_guess(), None)([], SimpleNamespace(use_vllm=True))


class Policy(InOrder):
    """Writes answers whose only token is their number."""

    made: list[Any] = []

    def __init__(self, model: Any, tokenizer: Any, *, max_batch: int) -> None:
        super().__init__()
        self.made.append((self, model, tokenizer, max_batch))

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        number = len(self.asked) + 1
        tokens = ResponseTokens([7, 8], [0, 0], [number], [1], [-float(number)])
        self.answers.append(Response("id", 0, "m", Usage(2, 0, 1, 3), ResponseMessage(str(number), tokens=tokens)))
        return await super().get_response(*args, **kwargs)


class Trainer:
    use_vllm = False
    model = "wrapped model"
    accelerator = SimpleNamespace(unwrap_model={"wrapped model": "model"}.get)
    temperature, top_p, top_k, max_completion_length = 0.5, 0.25, 3, 11
    state = SimpleNamespace(global_step=4)


@pytest.mark.parametrize(("top_k", "told"), [(3, 3), (None, 0), (0, 0)])
def test_rollouts_are_sampled_as_the_trainer_says_and_each_is_a_row(
    trl: Any, monkeypatch: pytest.MonkeyPatch, top_k: int | None, told: int
) -> None:
    """Prompts of one task that follow each other are a group; rows are in the order of the prompts."""
    monkeypatch.setattr(trl, "LocalPolicy", Policy)
    monkeypatch.setattr(Trainer, "top_k", top_k)
    env = environments.make_guess()
    prompts = [row["prompt"] for row in trl.dataset(env)]
    tokenizer = SimpleNamespace(eos_token_id=9)
    played = trl.rollout_func(env, tokenizer)([prompts[2], prompts[2], prompts[1]], Trainer())
    policy, *made = Policy.made[-1]
    assert made == ["model", tokenizer, 3]
    sampling = {"temperature": 0.5, "top_p": 0.25, "top_k": told, "max_tokens": 11}
    assert [asked["sampling_args"] for asked in policy.asked] == [sampling] * 3
    questions = [asked["prompt"][-1].content for asked in policy.asked]
    assert sorted(questions) == ["1 + 2?", "2 + 2?", "2 + 2?"]
    sampled = [ids[0] for ids in played["completion_ids"]]
    assert [questions[number - 1] for number in sampled] == ["2 + 2?", "2 + 2?", "1 + 2?"]
    assert played == {
        "prompt_ids": [[7, 8]] * 3,
        "completion_ids": [[number] for number in sampled],
        "logprobs": [[-float(number)] for number in sampled],
        "env_mask": [[1]] * 3,
        "episode_reward": [float(questions[number - 1] == f"{number - 2} + 2?") for number in sampled],
    }


def test_where_no_rollout_is_one_sequence_the_trainer_hears_why(trl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unknowing(Policy):
        async def get_response(self, *args: Any, **kwargs: Any) -> Response:
            response = await super().get_response(*args, **kwargs)
            response.message.tokens = None
            return response

    monkeypatch.setattr(trl, "LocalPolicy", Unknowing)
    env = environments.make_guess()
    prompts = [row["prompt"] for row in trl.dataset(env, num_examples=1)]
    with pytest.raises(ConfigurationError, match="one sequence of tokens a rollout, and none of 1 is one: "):
        trl.rollout_func(env, SimpleNamespace(eos_token_id=9))(prompts, Trainer())
