"""What `GRPOTrainer` is given, without TRL, of which the adapter imports nothing (`pytest -m peers` trains with TRL itself)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.environments import Talk
from tests.training.trainers import environments
from tests.training.trainers.stand_ins import install
from vfgym.errors import ConfigurationError


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
