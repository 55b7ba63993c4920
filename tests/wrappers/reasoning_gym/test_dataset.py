"""Chat environments as datasets of reasoning-gym: entries, and what answers to them are worth."""

from __future__ import annotations

import asyncio
import copy
import itertools
import pickle
from typing import Any

import pytest
import reasoning_gym
from hypothesis import given
from hypothesis import strategies as st
from reasoning_gym.composite import DatasetSpec
from reasoning_gym.dataset import ProceduralDataset
from reasoning_gym.utils import extract_answer

import vfgym
from vfgym import Rubric, SingleTurnEnv, State
from vfgym.errors import ConfigurationError
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.to_reasoning_gym import to_reasoning_gym

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")


ROWS = [{"question": f"{a} + {b}?", "answer": str(a + b), "kind": ["sum"]} for a in range(3) for b in range(3)]


SOME = ["chain_sum", "graph_color", "rush_hour", "pool_matrix", "list_functions"]


def is_right(completion: Any, answer: str) -> float:
    """Reward the right number."""
    return float(completion[-1].content.strip() == answer)


async def is_short(completion: Any) -> float:
    """Reward a short answer, after a while."""
    await asyncio.sleep(0)
    return 0.5 * (len(completion[-1].content) < 3)


def sums(**arguments: Any) -> SingleTurnEnv:
    """Return an environment of nine sums."""
    return SingleTurnEnv(ROWS, **{"rubric": Rubric([is_right, is_short]), **arguments})


@pytest.mark.parametrize("name", SOME)
def test_entries_are_those_of_the_original_dataset(name: str) -> None:
    """Question, answer and metadata, bit by bit, in both splits."""
    original = reasoning_gym.create_dataset(name, size=7, seed=3)
    env = ReasoningGymEnv(name, num_train_examples=4, num_eval_examples=3, seed=3)
    train, evaluation = to_reasoning_gym(env), to_reasoning_gym(env, split="eval")
    assert isinstance(train, ProceduralDataset)
    assert (len(train), len(evaluation), train.size, train.seed, train.category) == (4, 3, 4, 3, original.category)
    entries = [*train, *evaluation]
    assert len(entries) == 7
    if name != "list_functions":  # some of whose items depend on the process's random numbers
        assert entries == [original[index] for index in range(7)]


@pytest.mark.parametrize("name", SOME)
def test_scores_agree_with_the_environment_and_the_original(name: str) -> None:
    """Right, wrong and unreadable answers, as they are and in tags."""
    original = reasoning_gym.create_dataset(name, size=4, seed=3)
    env = ReasoningGymEnv(name, num_train_examples=3, num_eval_examples=1, seed=3)
    dataset = to_reasoning_gym(env)
    for index, entry in enumerate(dataset):
        env.reset(options={"example_id": index})
        right = env.oracle(env.state)
        for text in (right, extract_answer(right), "zzz", "0", "", "<answer></answer>", " [1, 2]\n"):
            env.reset(options={"example_id": index})
            assert dataset.score_answer(text, entry) == env.step(text).reward
        assert dataset.score_answer(right, entry) == dataset.score_answer(extract_answer(right), original[index]) == 1.0
        assert dataset.score_answer(None, entry) == 0.0


def test_the_sound_checks_hold() -> None:
    env = ReasoningGymEnv("game_of_life_halting", num_train_examples=1, num_eval_examples=1)
    dataset = to_reasoning_gym(env)
    assert dataset.score_answer("zzz", dataset[0]) == 0.0


def test_a_composite() -> None:
    names = ["leg_counting", "spell_backward"]
    original = reasoning_gym.create_dataset("composite", size=12, seed=1, datasets=[DatasetSpec(name, 1.0, {}) for name in names])
    dataset = to_reasoning_gym(ReasoningGymEnv(names, num_train_examples=10, num_eval_examples=2, seed=1))
    assert list(dataset) == [original[index] for index in range(10)]
    assert [dataset.score_answer(entry["answer"], entry) for entry in dataset] == [1.0] * 10


def test_entries_are_ones_own() -> None:
    """Writing to one changes neither the next nor the environment."""
    dataset = to_reasoning_gym(ReasoningGymEnv("chain_sum", num_train_examples=2, num_eval_examples=1))
    before = copy.deepcopy(dataset[0])
    dataset[0]["metadata"].clear()
    assert dataset[0] == before


def test_another_reward_function_counts_too() -> None:
    """The score is the environment's reward, so the tasks are played then."""
    env = ReasoningGymEnv("leg_counting", num_train_examples=2, num_eval_examples=1)
    env.add_rubric(Rubric(lambda completion: 0.25))
    dataset = to_reasoning_gym(env)
    entry = dataset[1]
    assert dataset.score_answer(entry["answer"], entry) == 1.25
    assert entry["metadata"]["info"] == {"source_dataset": "leg_counting", "index": 1}


def test_entries_of_tasks() -> None:
    """The question is what is asked last; the metadata name the task, and have all else."""
    env = sums(system_prompt="Add.", env_id="sums-v0")
    dataset = to_reasoning_gym(env)
    assert isinstance(dataset, ProceduralDataset)
    assert (len(dataset), dataset.category) == (9, "other")
    assert dataset[4] == {
        "question": "1 + 1?",
        "answer": "2",
        "metadata": {
            "source_dataset": "sums-v0",
            "source_index": 4,
            "example_id": 4,
            "prompt": [{"role": "system", "content": "Add."}, {"role": "user", "content": "1 + 1?"}],
            "kind": ["sum"],
        },
    }
    assert [entry["question"] for entry in dataset] == [row["question"] for row in ROWS]


@given(index=st.integers(0, 8), answer=st.one_of(st.text(max_size=5), st.integers(0, 5).map(str)))
def test_scores_are_rewards(index: int, answer: str) -> None:
    """Of plain and async reward functions together."""
    env = sums()
    dataset = to_reasoning_gym(env)
    env.reset(options={"example_id": index})
    assert dataset.score_answer(answer, dataset[index]) == env.step(answer).reward


def test_no_answer_is_an_empty_one() -> None:
    dataset = to_reasoning_gym(sums())
    assert dataset.score_answer(None, dataset[0]) == 0.5


async def test_scores_in_an_event_loop() -> None:
    """Where trainers run, async reward functions too."""
    dataset = to_reasoning_gym(sums())
    assert [dataset.score_answer(entry["answer"], entry) for entry in dataset] == [1.5] * 9


def test_splits_and_ids_of_ones_own() -> None:
    """Each split has its tasks, which keep their ids."""
    evaluation = [{"question": "9 + 9?", "answer": "18", "example_id": 70}]
    env = SingleTurnEnv(ROWS, evaluation, rubric=Rubric(is_right))
    dataset = to_reasoning_gym(env, split="eval")
    assert (len(dataset), dataset[0]["metadata"]["example_id"]) == (1, 70)
    assert dataset.score_answer("18", dataset[0]) == 1.0
    assert to_reasoning_gym(env).score_answer("0", to_reasoning_gym(env)[0]) == 1.0


def test_hooks_are_run() -> None:
    """An episode is played, from setup to cleanup, and the environment's own goes on."""
    seen: list[str] = []

    class Hooked(SingleTurnEnv):
        def setup_state(self, state: State) -> Any:
            seen.append("setup")
            return super().setup_state(state)

        @vfgym.cleanup
        def tidy(self, state: State) -> None:
            seen.append("cleanup")

    env = Hooked(ROWS, rubric=Rubric(is_right))
    env.reset(options={"example_id": 8})
    dataset = to_reasoning_gym(env)
    assert dataset.score_answer("0", dataset[0]) == 1.0
    assert seen == ["setup", "setup", "cleanup"]
    assert env.step("4").reward == 1.0


def test_endless_tasks() -> None:
    """They are made when they are asked for."""
    squares = vfgym.ProceduralTasks(lambda i: {"question": f"{i}²?", "answer": str(i * i)})
    dataset = to_reasoning_gym(SingleTurnEnv(squares, rubric=Rubric(is_right)))
    assert [entry["answer"] for entry in itertools.islice(dataset, 4)] == ["0", "1", "4", "9"]
    assert dataset.score_answer("10000", dataset[100]) == 1.0


def test_a_dataset_can_be_pickled() -> None:
    dataset = to_reasoning_gym(ReasoningGymEnv("chain_sum", num_train_examples=3, num_eval_examples=1))
    twin = pickle.loads(pickle.dumps(dataset))
    assert list(twin) == list(dataset)
    assert twin.score_answer(twin[0]["answer"], twin[0]) == 1.0


@pytest.mark.parametrize("index", [9, -10])
def test_there_is_no_entry_beyond_the_last(index: int) -> None:
    with pytest.raises(IndexError):
        to_reasoning_gym(sums())[index]
    assert to_reasoning_gym(sums())[-1] == to_reasoning_gym(sums())[8]


def test_an_entry_from_elsewhere() -> None:
    with pytest.raises(ConfigurationError, match=r"must name its task in metadata\['example_id'\]"):
        to_reasoning_gym(sums()).score_answer("1", reasoning_gym.create_dataset("chain_sum", seed=0)[0])


def test_a_task_that_asks_nothing() -> None:
    env = SingleTurnEnv([{"prompt": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}])
    with pytest.raises(ConfigurationError, match="task 0 of SingleTurnEnv asks nothing"):
        to_reasoning_gym(env)[0]
