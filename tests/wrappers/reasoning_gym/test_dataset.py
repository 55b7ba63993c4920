"""Chat environments as datasets of reasoning-gym: entries, and what answers to them are worth."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vfgym
from tests.wrappers.reasoning_gym.making import ROWS, is_right, sums
from vfgym import Rubric, SingleTurnEnv, State
from vfgym.errors import ConfigurationError, InvalidAction
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.reasoning_gym.dataset import ChatDatasetConfig, EpisodeDataset, ItemDataset
from vfgym.wrappers.to_reasoning_gym import to_reasoning_gym

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")

import reasoning_gym
from reasoning_gym.composite import DatasetSpec
from reasoning_gym.dataset import ProceduralDataset
from reasoning_gym.utils import extract_answer


@pytest.mark.parametrize("name", ["chain_sum", "graph_color", "rush_hour", "pool_matrix", "list_functions"])
def test_entries_and_scores_are_those_of_the_environment_and_the_original_dataset(name: str) -> None:
    """Question, answer and metadata, bit by bit, in both splits; right, wrong and unreadable answers, as they are and in tags."""
    original = reasoning_gym.create_dataset(name, size=4, seed=3)
    env = ReasoningGymEnv(name, num_train_examples=3, num_eval_examples=1, seed=3)
    train, evaluation = to_reasoning_gym(env), to_reasoning_gym(env, split="eval")
    assert isinstance(train, ProceduralDataset)
    assert (len(train), len(evaluation), train.size, train.seed, train.category) == (3, 1, 3, 3, original.category)
    if name != "list_functions":  # some of whose items depend on the process's random numbers
        assert [*train, *evaluation] == [original[index] for index in range(4)]
    for index, entry in enumerate(train):
        env.reset(options={"example_id": index})
        right = env.oracle(env.state)
        for text in (right, extract_answer(right), "zzz", "0", "", "<answer></answer>", " [1, 2]\n"):
            env.reset(options={"example_id": index})
            assert train.score_answer(text, entry) == env.step(text).reward
        assert train.score_answer(right, entry) == train.score_answer(extract_answer(right), original[index]) == 1.0
        assert train.score_answer(None, entry) == 0.0


def test_a_composite() -> None:
    names = ["leg_counting", "game_of_life_halting"]
    original = reasoning_gym.create_dataset("composite", size=12, seed=1, datasets=[DatasetSpec(name, 1.0, {}) for name in names])
    dataset = to_reasoning_gym(ReasoningGymEnv(names, num_train_examples=10, num_eval_examples=2, seed=1))
    assert list(dataset) == [original[index] for index in range(10)]
    assert [dataset.score_answer(entry["answer"], entry) for entry in dataset] == [1.0] * 10
    assert max(dataset.score_answer("zzz", entry) for entry in dataset) < 0.1, "the sound checks hold"


def test_entries_are_ones_own_in_pickles_too() -> None:
    """Writing to one changes neither the next nor the environment."""
    dataset = to_reasoning_gym(ReasoningGymEnv("chain_sum", num_train_examples=3, num_eval_examples=1))
    before = copy.deepcopy(dataset[0])
    dataset[0]["metadata"].clear()
    assert dataset[0] == before
    twin = pickle.loads(pickle.dumps(dataset))
    assert list(twin) == list(dataset)
    assert twin.score_answer(twin[0]["answer"], twin[0]) == 1.0


def test_another_reward_function_counts_too() -> None:
    """The score is the environment's reward, so the tasks are played then."""
    env = ReasoningGymEnv("leg_counting", num_train_examples=2, num_eval_examples=1)
    env.add_rubric(Rubric(lambda completion: 0.25))
    dataset = to_reasoning_gym(env)
    assert dataset.score_answer(dataset[1]["answer"], dataset[1]) == 1.25
    assert dataset[1]["metadata"]["info"] == {"source_dataset": "leg_counting", "index": 1}


def test_entries_of_tasks() -> None:
    """The question is what is asked last; the metadata name the task, and have all else."""
    dataset = to_reasoning_gym(sums(system_prompt="Add.", env_id="sums-v0"))
    assert isinstance(dataset, ProceduralDataset)
    assert (len(dataset), dataset.category) == (9, "other")
    prompt = [{"role": "system", "content": "Add."}, {"role": "user", "content": "1 + 1?"}]
    metadata = {"source_dataset": "sums-v0", "source_index": 4, "example_id": 4, "prompt": prompt, "kind": ["sum"]}
    assert dataset[4] == {"question": "1 + 1?", "answer": "2", "metadata": metadata}
    assert [entry["question"] for entry in dataset] == [row["question"] for row in ROWS]
    assert dataset[-1] == dataset[8]
    for index in (9, -10):
        with pytest.raises(IndexError):
            dataset[index]


@given(index=st.integers(0, 8), answer=st.one_of(st.text(max_size=5), st.integers(0, 5).map(str)))
def test_scores_are_rewards(index: int, answer: str) -> None:
    """Of plain and async reward functions together."""
    env = sums()
    dataset = to_reasoning_gym(env)
    env.reset(options={"example_id": index})
    assert dataset.score_answer(answer, dataset[index]) == env.step(answer).reward


async def test_scores_in_an_event_loop() -> None:
    """Where trainers run, async reward functions too. No answer is an empty one."""
    dataset = to_reasoning_gym(sums())
    assert [dataset.score_answer(entry["answer"], entry) for entry in dataset] == [1.5] * 9
    assert dataset.score_answer(None, dataset[0]) == 0.5


def test_splits_and_ids_of_ones_own() -> None:
    """Each split has its tasks, which keep their ids."""
    env = SingleTurnEnv(ROWS, [{"question": "9 + 9?", "answer": "18", "example_id": 70}], rubric=Rubric(is_right))
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
    with pytest.raises(InvalidAction):
        dataset.score_answer(5, dataset[0])  # type: ignore[arg-type]
    assert seen[3:] == ["setup", "cleanup"]
    assert env.step("4").reward == 1.0


def test_endless_tasks_are_made_when_they_are_asked_for() -> None:
    squares = vfgym.ProceduralTasks(lambda i: {"question": f"{i}²?", "answer": str(i * i)})
    dataset = to_reasoning_gym(SingleTurnEnv(squares, rubric=Rubric(is_right)))
    assert [entry["answer"] for entry in itertools.islice(dataset, 4)] == ["0", "1", "4", "9"]
    assert dataset.score_answer("10000", dataset[100]) == 1.0


def test_what_is_no_entry() -> None:
    with pytest.raises(ConfigurationError, match=r"must name its task in metadata\['example_id'\]"):
        to_reasoning_gym(sums()).score_answer("1", reasoning_gym.create_dataset("chain_sum", seed=0)[0])
    env = SingleTurnEnv([{"prompt": [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]}])
    with pytest.raises(ConfigurationError, match="task 0 of SingleTurnEnv asks nothing"):
        to_reasoning_gym(env)[0]


def test_a_dataset_knows_what_it_was_made_of() -> None:
    env = ReasoningGymEnv("leg_counting", num_train_examples=2, num_eval_examples=1, seed=3, env_id="legs")
    for split, size in (("train", 2), ("eval", 1)):
        dataset = to_reasoning_gym(env, split=split)
        assert (type(dataset), dataset.config) == (ItemDataset, ChatDatasetConfig(env.env_id, split, 3, size))
    dataset = to_reasoning_gym(sums(), split="train")
    assert (type(dataset), dataset.config) == (EpisodeDataset, ChatDatasetConfig("SingleTurnEnv", "train", 0, 9))


@pytest.mark.parametrize(("row", "answer"), [({"answer": 0}, "0"), ({"answer": ""}, ""), ({"answer": None}, None), ({}, None)], ids=str)
def test_the_answer_of_a_task_is_text_or_none(row: dict[str, Any], answer: str | None) -> None:
    entry = to_reasoning_gym(SingleTurnEnv([{"question": "?", **row}]))[0]
    assert entry["question"] == "?"
    assert entry["answer"] in ((answer,) if answer is not None else (None, ""))
    assert {"question", "answer", "prompt"} & entry["metadata"].keys() == {"prompt"}


class Several(vfgym.MultiTurnEnv):
    def env_response(self, messages: Any, state: Any) -> Any:
        return []


class Rolled(SingleTurnEnv):
    async def rollout(self, *args: Any, **kwargs: Any) -> Any:
        return await super().rollout(*args, **kwargs)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Several(dataset=ROWS, max_turns=2), "Several may have several turns"),
        (lambda: Rolled(ROWS), "Rolled may have several turns"),
        (lambda: sums(rubric=Rubric(lambda states: [0.0 for _ in states])), "the rubric of SingleTurnEnv scores whole groups"),
        (
            lambda: ReasoningGymEnv("leg_counting", curriculum=True),
            "ReasoningGymEnv has a curriculum, and a dataset has one level",
        ),
    ],
)
def test_what_is_not_one_question_with_one_answer_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        to_reasoning_gym(make())


def test_a_check_of_ones_own_counts_instead_of_the_datasets() -> None:
    class Strict(ReasoningGymEnv):
        def check_answer_reward_func(self, completion: Any, **columns: Any) -> float:
            return 0.125

    dataset = to_reasoning_gym(Strict("leg_counting", num_train_examples=1, num_eval_examples=1))
    assert type(dataset) is EpisodeDataset
    assert dataset.score_answer("zzz", dataset[0]) == 0.125
