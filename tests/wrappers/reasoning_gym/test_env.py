"""reasoning-gym's datasets as environments: the split, answers and scores, composites, and what is done about their traps."""

from __future__ import annotations

import importlib.util
import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.sampling import SEED
from tests.wrappers.reasoning_gym.making import small
from vfgym import MaybeThinkParser, Parser, XMLParser
from vfgym.data import reasoning_gym_datasets
from vfgym.errors import ConfigurationError, MissingExtra, UnknownArgument
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.reasoning_gym.env import DEFAULT_COMPOSITE
from vfgym.wrappers.reasoning_gym.package import borrow_random_numbers

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")


def reward_of(env: ReasoningGymEnv, answer: str, example_id: int = 0) -> float:
    """Return what an answer to a training task earns."""
    env.reset(options={"example_id": example_id})
    return env.step(answer).reward


# Tasks


def test_an_episode_is_one_question_and_one_answer() -> None:
    env = small("leg_counting")
    conversation, info = env.reset(seed=0)
    assert [message["role"] for message in conversation] == ["system", "user"]
    assert "<answer>" in conversation[0].content
    assert "how many legs" in conversation[1].content
    outcome = env.step(env.oracle(env.state))
    assert (outcome.reward, outcome.terminated, outcome.truncated) == (1.0, True, False)
    assert outcome.info["metrics"] == {"check_answer_reward_func": 1.0, "format_reward_func": 1.0, "num_turns": 1.0}
    assert info["example_id"] == outcome.info["example_id"]
    assert env.state["answer"] not in json.dumps(info)


@pytest.mark.parametrize(("train", "evaluation"), [(4, 0), (0, 4)])
def test_one_split_serves_for_both(train: int, evaluation: int) -> None:
    """Where one has no tasks, the other is used."""
    env = small("leg_counting", num_train_examples=train, num_eval_examples=evaluation)
    assert len(env.tasks) == len(env.eval_tasks) == 4


def test_another_task_is_refused() -> None:
    """A row from elsewhere has no item to be scored by; the error says so."""
    env = small("leg_counting")
    env.reset(options={"task": {"question": "6 * 7?", "answer": "42"}})
    outcome = env.step("42")
    assert outcome.reward == 0.0
    assert "info['index']" in env.state["metrics_errors"]["check_answer_reward_func"]


# Answers


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        *(("<answer>{}</answer>", 1.0), ("So:\n<answer>\n{}\n</answer>\nDone.", 1.0), ("{}", 1.0), ("  {}\n", 1.0)),
        *(("<answer>-1</answer> No: <answer>{}</answer>", 1.0), ("<answer>{}</answer> <answer>-1</answer>", 0.0)),
        *(("<answer>{}", 0.0), ("<answer></answer>{}", 0.0)),
    ],
)
def test_where_the_answer_stands(text: str, reward: float) -> None:
    """In the last tags, or alone; tags that are used are used rightly."""
    env = small("leg_counting")
    assert reward_of(env, text.format(env.items.entry(0)["answer"])) == reward


@pytest.mark.parametrize("parser", [Parser(), MaybeThinkParser(), XMLParser(["think", "result"], answer_field="result")])
def test_other_parsers(parser: Parser) -> None:
    """The oracle answers so that the environment's parser reads it."""
    env = small("leg_counting", parser=parser)
    env.reset(seed=0)
    assert env.step(env.oracle(env.state)).reward == 1.0


REPAIRED = ("coin_flip", "game_of_life_halting", "puzzle24", "spell_backward")
"""Datasets in which some of the answers below score less than their own scorers say. (Tests further down say which, and why.)"""


def check_scores(name: str, seed: int, items: int) -> None:
    """Compare what an environment gives with the scorer of a dataset made without this library, entry by entry."""
    import reasoning_gym
    from reasoning_gym import composite

    config = {"datasets": [composite.DatasetSpec(part, 1.0, {}) for part in DEFAULT_COMPOSITE]} if name == "composite" else {}
    dataset = reasoning_gym.create_dataset(name, size=items + 1, seed=seed, **config)
    env = ReasoningGymEnv(name, num_train_examples=items, num_eval_examples=1, seed=seed)
    scorers = [dataset.score_answer] if name == "composite" else [dataset.score_answer, reasoning_gym.get_score_answer_fn(name)]

    def original(scorer: Callable[[str, Any], float], answer: str, entry: Any) -> float:
        try:
            return float(scorer(answer, entry))
        except Exception:
            return 0.0

    oracles = []
    for index in range(items):
        env.reset(options={"example_id": index})
        oracles.append(re.fullmatch(r"<answer>(.*)</answer>", env.oracle(env.state), re.DOTALL)[1])
    for index, right in enumerate(oracles):
        with borrow_random_numbers(seed + index):
            entry = dataset[index]
        assert env.items.entry(index) == entry
        for answer in (right, oracles[index - 1], f"{right} x", "", "zzz", "0", "[1, 2]", "None"):
            reward = reward_of(env, f"<answer>{answer}</answer>" if answer else "", index)
            assert 0.0 <= reward <= 1.0
            assert reward == 1.0 or answer != right
            for scorer in scorers:
                expected = original(scorer, answer, entry)
                is_repaired = env.items.source(entry) in REPAIRED and reward < expected
                assert is_repaired or reward == pytest.approx(expected, abs=1e-12), (answer, reward, expected)


SLOW = {"arc_agi", "group_anagrams", "intermediate_integration", "knight_swap", "quantum_lock", "rearc"}
"""Datasets that take seconds; played with the whole family only."""

DRAWN = random.Random(SEED).sample(sorted(reasoning_gym_datasets().keys() - {"composite", "rush_hour", *REPAIRED, *SLOW}), 6)


@pytest.mark.parametrize("name", ["composite", "rush_hour", *REPAIRED, *DRAWN])
def test_the_reward_is_the_original_score(name: str) -> None:
    """Of right, wrong, empty and unreadable answers."""
    check_scores(name, SEED, items=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [SEED + 1, SEED + 1000])
@pytest.mark.parametrize("name", sorted(reasoning_gym_datasets()))
def test_the_reward_is_the_original_score_in_many_items(name: str, seed: int) -> None:
    """Several items and seeds of all datasets."""
    check_scores(name, seed, items=6)


# Datasets with traps


@pytest.mark.parametrize("name", ["boxnet", "graph_color", "rubiks_cube", "propositional_logic", "rush_hour"])
def test_no_single_answer(name: str) -> None:
    """Many answers are right, so the row has none; the oracle knows one."""
    env = small(name)
    env.reset(seed=0)
    assert env.state["answer"] is None
    assert env.step(env.oracle(env.state)).reward == 1.0


def test_an_integral_that_the_row_leaves_unsolved_is_solved() -> None:
    """There, and where the score is that of an entry with tuples, which JSON would turn into lists."""
    for name, config in (("intermediate_integration", {}), ("rearc", {})):
        env = small(name, num_train_examples=200, dataset_config=config)
        index = next(index for index in range(200) if name == "rearc" or "Integral(" in env.items.entry(index)["answer"])
        env.reset(options={"example_id": index})
        assert "Integral" not in env.oracle(env.state)
        assert env.step(env.oracle(env.state)).reward == 1.0


def test_composites_mix_datasets() -> None:
    """Of names, or of dicts with a weight and a configuration; each answer is scored by the dataset of its item."""
    env = small(["leg_counting", {"name": "graph_color", "weight": 2.0, "config": {"min_num_vertices": 5}}], num_train_examples=12)
    assert {row["info"]["source_dataset"] for row in env.tasks.rows} == {"leg_counting", "graph_color"}
    for example_id in range(12):
        env.reset(options={"example_id": example_id})
        assert env.step(env.oracle(env.state)).reward == 1.0
    default = small("composite", num_train_examples=60)
    assert {row["info"]["source_dataset"] for row in default.tasks.rows} == set(DEFAULT_COMPOSITE)
    assert env.env_id == default.env_id == "reasoning-gym/composite-v0"


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gym": "leg_countin"}, "Did you mean `leg_counting`"),
        ({"gym": []}, "at least one dataset"),
        ({"gym": 3}, "a dataset's name, a list of names, or a dataset of reasoning-gym, got int"),
        ({"gym": ["chain_sum", {"name": "chain_sum"}]}, "each once"),
        ({"gym": "chain_sum", "dataset_config": {"size": 3}}, "must not set 'size'"),
        ({"gym": ["chain_sum"], "dataset_config": {"min_terms": 3}}, "give each part its own"),
        *[({"gym": "chain_sum", "num_train_examples": number}, "num_train_examples must be") for number in (-1, 1.0, None)],
        ({"gym": "chain_sum", "num_eval_examples": -1}, "^num_eval_examples must be a whole number from 0, got -1$"),
        ({"gym": "chain_sum", "num_train_examples": 0, "num_eval_examples": 0}, "no task"),
        *[({"gym": gym, "seed": seed}, "seed") for gym in ("gcd", ["gcd"]) for seed in (None, "a", 1.5, True)],
    ],
)
def test_mistakes_are_told_at_construction(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ReasoningGymEnv(**arguments)


@pytest.mark.parametrize("name", ["dataset", "eval_dataset", "rubric", "max_turns"])
def test_arguments_that_the_environment_sets_itself(name: str) -> None:
    with pytest.raises(UnknownArgument, match=f"sets '{name}' itself"):
        small("chain_sum", **{name: None})


def test_a_dataset_of_ones_own() -> None:
    """What was registered with reasoning-gym can be played, although this library does not know it."""
    from reasoning_gym.arithmetic.chain_sum import ChainSumConfig, ChainSumCurriculum, ChainSumDataset
    from reasoning_gym.factory import CURRICULA, DATASETS, register_dataset

    register_dataset("my_sums", ChainSumDataset, ChainSumConfig, ChainSumCurriculum)
    try:
        for curriculum in (False, True):
            env = small("my_sums", curriculum=curriculum)
            assert env.env_id == "reasoning-gym/my_sums-v0"
            env.reset(seed=0)
            assert env.step(env.oracle(env.state)).reward == 1.0
    finally:
        del DATASETS["my_sums"], CURRICULA["my_sums"]


def test_a_dataset_that_is_there() -> None:
    """Its own seed, configuration and scorer; the first items are for training, the next for evaluation."""
    import reasoning_gym

    config = {"max_terms": 2, "min_terms": 2}
    dataset = reasoning_gym.create_dataset("chain_sum", size=8, seed=42, **config)
    env = small(dataset)
    for each in (env, small("chain_sum", seed=42, dataset_config=config)):
        assert [row["question"] for row in each.tasks.rows] == [dataset[index]["question"] for index in range(5)]
    assert [row["example_id"] for row in env.eval_tasks.rows] == [5, 6, 7]
    assert env.env_id == "reasoning-gym/chain_sum-v0"
    env.reset(seed=0)
    assert env.step(env.oracle(env.state)).reward == 1.0


def test_a_composite_that_is_there() -> None:
    """The sound checks hold for its parts too."""
    import reasoning_gym
    from reasoning_gym.composite import DatasetSpec

    specs = [DatasetSpec("game_of_life_halting", 1.0, {}), DatasetSpec("graph_color", 1.0, {})]
    env = small(reasoning_gym.create_dataset("composite", size=12, seed=0, datasets=specs), num_train_examples=9)
    halting = {row["example_id"]: row["info"]["source_dataset"] == "game_of_life_halting" for row in env.tasks.rows}
    assert {*halting.values()} == {True, False}
    for index, is_halting in halting.items():
        env.reset(options={"example_id": index})
        assert env.step(env.oracle(env.state)).reward == 1.0
        assert not is_halting or reward_of(env, "zzz", index) == 0.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_train_examples": 6}, r"has 8 items, too few for num_train_examples \+ num_eval_examples = 9"),
        ({"seed": 1}, "its own seed and configuration"),
        ({"dataset_config": {"min_terms": 2}}, "its own seed and configuration"),
        ({"curriculum": True}, "its own seed and configuration"),
    ],
)
def test_what_a_dataset_that_is_there_does_not_go_with(arguments: dict[str, Any], message: str) -> None:
    import reasoning_gym

    with pytest.raises(ConfigurationError, match=message):
        small(reasoning_gym.create_dataset("chain_sum", size=8, seed=42), **arguments)


def test_without_reasoning_gym(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constructor says what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"ReasoningGymEnv .* pip install 'vfgym\[reasoning-gym\]'"):
        small("leg_counting")


@pytest.mark.parametrize("index", [-1, 8, 0.0, "0", None])
def test_an_index_that_no_item_has_is_refused(index: Any) -> None:
    env = small("leg_counting")
    with pytest.raises(ConfigurationError, match=rf"must name its item in info\['index'\], from 0 to 7, got {index!r}$"):
        env.check_answer_reward_func([{"role": "assistant", "content": "1"}], {"index": index})
    for level in (-1, 1, None):
        with pytest.raises(ConfigurationError, match=f"must be a level of 'leg_counting', got {level}$"):
            env.check_answer_reward_func([{"role": "assistant", "content": "1"}], {"index": 7, "level": level})
    for last in (0, 7):
        assert env.check_answer_reward_func([{"role": "assistant", "content": "zzz"}], {"index": last}) == 0.0


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        *(
            ("", ""),
            ("  ", ""),
            (" 0 ", "0"),
            ("<answer>0</answer>", "0"),
            ("<answer> </answer>", None),
            ("<answer>1", None),
            ("1</answer>", "1</answer>"),
        ),
        ("<answer>1</answer><answer>2</answer>", "2"),
    ],
)
def test_the_answer_in_a_text(text: str, answer: str | None) -> None:
    found = small("leg_counting").answer_in(text)
    assert (found or None) == (answer or None)
    if "<answer>" not in text:
        assert found == answer


SIX_TERMS = {"min_terms": 6, "max_terms": 6}


@pytest.mark.parametrize("prompt", [None, "", "Be brief."])
def test_system_prompt_seed_and_configuration_arrive(prompt: str | None) -> None:
    env = small("chain_sum", system_prompt=prompt, seed=7, dataset_config=SIX_TERMS)
    conversation, info = env.reset(options={"example_id": 0})
    assert [message["role"] for message in conversation] == (["system", "user"] if prompt else ["user"])
    assert conversation[0].content == (prompt or conversation[-1].content)
    assert (
        info["native_observation"]
        == conversation[-1].content
        == small("chain_sum", seed=7, dataset_config=SIX_TERMS).tasks.rows[0]["question"]
    )
    assert len(re.findall(r"[+-]", conversation[-1].content)) >= 5
