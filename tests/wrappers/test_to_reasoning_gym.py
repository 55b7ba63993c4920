"""Chat environments as datasets of reasoning-gym: entries and scores, and round trips both ways."""

from __future__ import annotations

import importlib.util
from typing import Any

import gymnasium
import pytest

import vfgym
from tests.environments import Talk
from tests.wrappers.reasoning_gym.making import ROWS, sums
from vfgym import EnvGroup, Parser, Rubric, XMLParser
from vfgym.errors import ConfigurationError, MissingExtra
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.to_reasoning_gym import to_reasoning_gym

reasoning_gym = pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")


def test_an_id_a_seat_and_wrappers_do_as_well_as_an_environment() -> None:
    env, env_id = sums(), "reasoning-gym/chain_sum-v0"
    assert to_reasoning_gym(env.fork())[3] == to_reasoning_gym(gymnasium.wrappers.TimeLimit(env, 5))[3] == to_reasoning_gym(env)[3]
    assert to_reasoning_gym(env_id)[3] == to_reasoning_gym(gymnasium.make(env_id))[3]


@pytest.mark.parametrize("name", ["chain_sum", "graph_color", "kakurasu"])
def test_from_a_dataset_and_back(name: str) -> None:
    dataset = reasoning_gym.create_dataset(name, size=6, seed=9)
    back = to_reasoning_gym(ReasoningGymEnv(dataset, num_train_examples=6, num_eval_examples=0))
    assert list(back) == list(dataset)
    for entry in dataset:
        for answer in (str(entry["answer"]), "zzz", "1"):
            assert back.score_answer(answer, entry) == dataset.score_answer(answer, entry)


@pytest.mark.parametrize("parser", [Parser(), XMLParser(["answer"])])
def test_from_an_environment_and_back(parser: Parser) -> None:
    """Questions and rewards are the same; the parser says where the answer stands in what the model says."""
    env = sums()
    back = ReasoningGymEnv(to_reasoning_gym(env), num_train_examples=6, num_eval_examples=3, system_prompt=None, parser=parser)
    assert back.env_id == "reasoning-gym/EpisodeDataset-v0"
    for index, split in ((0, "train"), (5, "train"), (7, "eval")):
        for text in ("2", "0", "zzz", ""):
            conversation, _ = env.reset(options={"example_id": index})
            again, _ = back.reset(options={"example_id": index, "split": split})
            assert [message.content for message in again] == [message.content for message in conversation]
            assert back.step(text).reward == env.step(text).reward
    assert {row["reward"] for row in vfgym.evaluate(back, vfgym.OracleAgent(), progress=False)["outputs"]} == {1.5}


def grouped(completions: Any) -> list[float]:
    return [0.0] * len(completions)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Talk(dataset=ROWS), "Talk may have several turns"),
        (lambda: Talk(dataset=ROWS, max_turns=2), "Talk may have several turns"),
        (lambda: EnvGroup([sums()]), "EnvGroup may have several turns"),
        (lambda: "gymnasium/FrozenLake-v1", "may have several turns"),
        (lambda: sums(rubric=Rubric(grouped)), "scores whole groups"),
        (lambda: ReasoningGymEnv("chain_sum", curriculum=True), "has a curriculum"),
        (lambda: gymnasium.make("CartPole-v1"), "'CartPole-v1' is not a chat environment"),
        (lambda: ROWS, "a chat environment is needed, or the id of one, got list"),
    ],
)
def test_what_cannot_be_a_dataset(make: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        to_reasoning_gym(make())


def test_a_split_or_a_package_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="'train' or 'eval', got 'test'"):
        to_reasoning_gym(sums(), split="test")  # type: ignore[arg-type]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"to_reasoning_gym .* pip install 'vfgym\[reasoning-gym\]'"):
        to_reasoning_gym(sums())
