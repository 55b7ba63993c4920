"""reasoning-gym's datasets as environments: the split, answers and scores, composites, and what is done about their traps."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import random
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import vfgym
from tests.programs import run_python
from tests.sampling import SEED
from tests.workers.processes import descendants, peak_mb
from vfgym import MaybeThinkParser, Parser, State, XMLParser
from vfgym.data import reasoning_gym_datasets
from vfgym.errors import ConfigurationError, MissingExtra, UnknownArgument
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.reasoning_gym.env import DEFAULT_COMPOSITE
from vfgym.wrappers.reasoning_gym.formulas import is_formula
from vfgym.wrappers.reasoning_gym.package import borrow_random_numbers
from vfgym.wrappers.reasoning_gym.scoring import is_symbolic
from vfgym.wrappers.reasoning_gym.solvers import solve_boxnet, solve_rubiks_cube, solve_rush_hour

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")


def small(gym: Any, **arguments: Any) -> ReasoningGymEnv:
    """Return an environment with a few tasks."""
    return ReasoningGymEnv(gym, **{"num_train_examples": 5, "num_eval_examples": 3, **arguments})


def score(env: ReasoningGymEnv, answer: str, example_id: int = 0) -> float:
    """Return what an answer to a training task is worth."""
    env.reset(options={"example_id": example_id})
    return env.step(answer).reward


def original_score(env: ReasoningGymEnv, answer: str, example_id: int = 0) -> float:
    """Return what the dataset's own scorer says."""
    return float(env.items.dataset().score_answer(answer, env.items.entry(example_id)))


def index_with_answer(env: ReasoningGymEnv, answer: str) -> int:
    """Return the index of an item with this answer."""
    return next(index for index in range(env.items.size) if env.items.entry(index)["answer"] == answer)


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


def test_splits_are_ranges_of_one_dataset() -> None:
    """Ids are indices, so that no id is in both, and no question either."""
    env = small("leg_counting", num_train_examples=30, num_eval_examples=10)
    train, evaluation = (list(tasks.rows) for tasks in (env.tasks, env.eval_tasks))
    assert [row["example_id"] for row in train] == list(range(30))
    assert [row["example_id"] for row in evaluation] == list(range(30, 40))
    assert {row["question"] for row in train}.isdisjoint(row["question"] for row in evaluation)


def test_rows_are_plain_data() -> None:
    """A row can be written to a file, and names its item."""
    row = small("leg_counting").tasks.rows[2]
    assert row.keys() == {"question", "answer", "info", "example_id"}
    assert row["info"] == {"source_dataset": "leg_counting", "index": 2}
    assert json.loads(json.dumps(row)) == row


@pytest.mark.parametrize(("train", "evaluation"), [(4, 0), (0, 4)])
def test_one_split_serves_for_both(train: int, evaluation: int) -> None:
    """Where one has no tasks, the other is used."""
    env = small("leg_counting", num_train_examples=train, num_eval_examples=evaluation)
    assert len(env.tasks) == len(env.eval_tasks) == 4


def test_an_episode_makes_its_own_item_only() -> None:
    """Items take up to seconds each; a million of them cost nothing until they are played."""
    env = small("leg_counting", num_train_examples=1_000_000, num_eval_examples=1_000_000)
    assert not env.items._datasets
    env.reset(seed=0)
    env.step("1")
    env.reset(options={"split": "eval", "example_id": 1_999_999})
    assert len(env.items._kept) == 2


def test_the_answer_is_not_in_info() -> None:
    env = small("leg_counting")
    _, info = env.reset(seed=0)
    assert env.state["answer"] not in json.dumps(info)


def test_the_seed_of_an_environment_chooses_its_items() -> None:
    """Two environments with one seed have the same items, with another seed others."""
    first, again, other = (small("chain_sum", seed=seed).tasks.rows[0]["question"] for seed in (1, 1, 2))
    assert first == again != other


def test_a_configuration_reaches_the_dataset() -> None:
    env = small("chain_sum", dataset_config={"min_terms": 2, "max_terms": 2})
    assert all(row["question"].count("+") + row["question"].count(" - ") == 1 for row in env.tasks.rows)


def test_items_that_depend_on_the_size_or_end_there() -> None:
    """The dataset is as large as both splits, so its last item is that of the evaluation tasks."""
    for name in ("acre", "list_functions", "word_ladder"):
        env = small(name)
        assert env.items.dataset().size == 8
        env.reset(options={"split": "eval", "example_id": 7})
        assert env.step(env.oracle(env.state)).reward == 1.0


def test_another_task_is_refused() -> None:
    """A row from elsewhere has no item to be scored by; the error says so."""
    env = small("leg_counting")
    env.reset(options={"task": {"question": "6 * 7?", "answer": "42"}})
    outcome = env.step("42")
    assert outcome.reward == 0.0
    assert "info['index']" in env.state["metrics_errors"]["check_answer_reward_func"]


# Answers


@pytest.mark.parametrize(
    "text",
    ["<answer>{}</answer>", "So:\n<answer>\n{}\n</answer>\nDone.", "<answer>-1</answer> No: <answer>{}</answer>", "{}", "  {}\n"],
)
def test_where_the_answer_stands(text: str) -> None:
    """In the last tags, or alone."""
    env = small("leg_counting")
    assert score(env, text.format(env.items.entry(0)["answer"])) == 1.0


@pytest.mark.parametrize("text", ["<answer>{}</answer> <answer>-1</answer>", "<answer>{}", "<answer></answer>{}"])
def test_where_it_does_not(text: str) -> None:
    """An earlier answer was taken back, and tags that are used are used rightly."""
    env = small("leg_counting")
    assert score(env, text.format(env.items.entry(0)["answer"])) == 0.0


@pytest.mark.parametrize("parser", [Parser(), MaybeThinkParser(), XMLParser(["think", "result"], answer_field="result")])
def test_other_parsers(parser: Parser) -> None:
    """The oracle answers so that the environment's parser reads it."""
    env = small("leg_counting", parser=parser)
    env.reset(seed=0)
    assert env.step(env.oracle(env.state)).reward == 1.0


@pytest.mark.parametrize("name", ["leg_counting", "number_format", "spell_backward", "graph_color", "n_queens", "countdown", "puzzle24"])
@pytest.mark.parametrize("answer", ["", "zzz", "0", "[1, 2]", "the answer is 7"])
def test_scores_are_those_of_the_dataset(name: str, answer: str) -> None:
    """Right, wrong, empty and unreadable answers, partial credit included."""
    env = small(name)
    assert score(env, answer) == original_score(env, answer)


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
            env.reset(options={"example_id": index})
            reward = env.step(f"<answer>{answer}</answer>" if answer else "").reward
            assert 0.0 <= reward <= 1.0
            assert reward == 1.0 or answer != right
            for scorer in scorers:
                expected = original(scorer, answer, entry)
                assert reward == pytest.approx(expected, abs=1e-12) or (env.items.source(entry) in REPAIRED and reward < expected), (
                    answer,
                    reward,
                    expected,
                )


@pytest.mark.parametrize("name", sorted(reasoning_gym_datasets()))
def test_the_reward_is_the_original_score(name: str) -> None:
    """In all datasets; of right, wrong, empty and unreadable answers."""
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


def test_rush_hour_is_solved_in_the_fewest_moves() -> None:
    """The dataset knows how many they are, but not which."""
    env = small("rush_hour", num_train_examples=10)
    for index in range(10):
        metadata = env.items.entry(index)["metadata"]
        moves = solve_rush_hour(metadata)
        assert len(moves.split()) == metadata["min_moves"]
        assert original_score(env, moves, index) == 1.0


@pytest.mark.parametrize("config", [{}, {"min_box_num": 2, "max_box_num": 4}])
def test_boxnet_is_solved(config: dict[str, int]) -> None:
    """Several boxes of a colour, too."""
    env = small("boxnet", num_train_examples=50, dataset_config=config)
    for index in range(50):
        assert original_score(env, solve_boxnet(env.items.entry(index)["metadata"]), index) == 1.0


@pytest.mark.parametrize("name", ["arc_agi", "rearc"])
def test_entries_with_tuples(name: str) -> None:
    """The right answer is compared with tuples, which would be lists after JSON."""
    env = small(name)
    for example_id in range(3):
        env.reset(options={"example_id": example_id})
        assert env.step(env.oracle(env.state)).reward == 1.0


@pytest.mark.parametrize(("name", "answer"), [("prime_factorization", "zzz"), ("boxnet", "0")])
def test_a_scorer_that_raises(name: str, answer: str, caplog: pytest.LogCaptureFixture) -> None:
    """Unreadable answers are ordinary: they score 0.0, and nobody is alarmed."""
    env = small(name)
    with pytest.raises((ValueError, TypeError)):
        original_score(env, answer)
    with caplog.at_level(logging.INFO):
        assert score(env, answer) == 0.0
    assert not caplog.records
    assert "metrics_errors" not in env.state


def test_a_score_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    env = small("leg_counting")
    monkeypatch.setattr(env.items.dataset(), "score_answer", lambda answer, entry: float("nan"))
    assert score(env, "1") == 0.0


def test_game_of_life_halting() -> None:
    """The wrong word is wrong, although the dataset's scorer says 1.0."""
    env = small("game_of_life_halting", num_train_examples=20)
    for right, wrong in (("True", "False"), ("False", "True")):
        index = index_with_answer(env, right)
        assert original_score(env, wrong, index) == 1.0
        assert [score(env, answer, index) for answer in (right, right.lower(), wrong, "zzz", "")] == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_coin_flip() -> None:
    """A small probability is not zero; decimals, fractions and a few digits are understood."""
    env = small("coin_flip", num_train_examples=300)
    index = next(index for index in range(300) if 0.0 < float(env.items.entry(index)["answer"]) < 2e-4)
    entry = env.items.entry(index)
    fraction = "{numerator}/{denominator}".format(**entry["metadata"]["rational"])
    assert original_score(env, "0", index) == 1.0
    for right in (entry["answer"], fraction, f"{float(entry['answer']):.4g}", f"{float(entry['answer']):.6e}"):
        assert score(env, right, index) == 1.0
    for wrong in ("0", "0.0", "0.0002", "1", "-1", "1/0", "nan", "inf", "1e999999999", "half", ""):
        assert score(env, wrong, index) == 0.0
    almost_certain = next(index for index in range(300) if 0.999 < float(env.items.entry(index)["answer"]) < 0.9998)
    assert score(env, "1", almost_certain) == 0.0


@pytest.mark.parametrize(("name", "move"), [("rush_hour", "A+1"), ("rubiks_cube", "F2")])
def test_long_moves_do_not_keep_a_scorer_busy(name: str, move: str) -> None:
    """A thousand million steps would take hours, or all memory; short moves are scored as ever."""
    env = small(name)
    assert score(env, "F+999999999") == 0.0
    assert score(env, move) == original_score(env, move) > 0.0


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_cubes_of_every_size_can_be_solved(size: int) -> None:
    """With moves of inner layers, which the dataset's scorer would leave out."""
    env = small("rubiks_cube", dataset_config={"cube_size": size})
    for index in range(5):
        moves = solve_rubiks_cube(env.items.entry(index)["metadata"])
        assert score(env, moves, index) == 1.0
        assert score(env, f"{moves} R2 R R", index) == 1.0
        assert score(env, f"{moves} 1R", index) < 1.0
        assert score(env, f"{moves} {size + 1}R", index) < 0.1


def test_an_unsolved_integral_is_no_answer() -> None:
    """Its derivative is the integrand, so the scorer takes it, and rows have it as their answer; the oracle solves it."""
    env = small("intermediate_integration", num_train_examples=200)
    index = next(index for index in range(200) if "Integral(" in env.items.entry(index)["answer"])
    answer = env.items.entry(index)["answer"]
    assert original_score(env, answer, index) == 1.0
    assert score(env, answer, index) == 0.0
    env.reset(options={"example_id": index})
    assert "Integral" not in env.oracle(env.state)
    assert env.step(env.oracle(env.state)).reward == 1.0


def test_puzzle24_wants_the_numbers_of_the_puzzle() -> None:
    env = small("puzzle24", num_train_examples=20)
    for index in range(5):
        numbers = env.items.entry(index)["metadata"]["numbers"]
        assert score(env, env.items.entry(index)["answer"], index) == 1.0
        other = "6 * 4 * 1 * 1" if sorted(numbers) != [1, 1, 4, 6] else "8 * 3 * 1 * 1"
        assert original_score(env, other, index) == 1.0
        assert score(env, other, index) < 0.1


def test_puzzle24_does_not_run_answers_with_the_right_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    env = small("puzzle24")
    numbers = ", ".join(map(str, env.items.entry(0)["metadata"]["numbers"]))
    assert score(env, f"print({numbers})") < 0.1
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    "name",
    [
        "binary_matrix",
        "countdown",
        "intermediate_integration",
        "n_queens",
        "polynomial_multiplication",
        "simple_integration",
        "spiral_matrix",
        "string_insertion",
    ],
)
def test_answers_are_not_run_as_code(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The scorers of these evaluate the answer."""
    env = small(name)
    for code in ("print(1)", "print(1)!", "[print(1)]", "(lambda: print(1))()", "__import__('builtins').print(1)"):
        assert score(env, code) < 0.1
    assert capfd.readouterr().out == ""


SYMBOLIC = ("countdown", "intermediate_integration", "polynomial_multiplication", "puzzle24", "simple_integration")
HOPELESS = "(x+1)**99*(x+2)**99*(x+3)**99"


def right_answer(env: ReasoningGymEnv, index: int) -> str:
    return str(env.oracle(State({"info": {"index": index}})))


def test_which_scorers_are_symbolic() -> None:
    """It follows from their code, so those of a newer reasoning-gym, or of a user's dataset, are seen too."""
    datasets = {name: small(name).items.dataset() for name in reasoning_gym_datasets() if name != "composite"}
    assert tuple(name for name, dataset in sorted(datasets.items()) if is_symbolic(dataset)) == SYMBOLIC


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        *((name, "1<<2**33") for name in SYMBOLIC),
        ("intermediate_integration", HOPELESS),
        *(pytest.param(name, "9**9**9", marks=pytest.mark.exhaustive) for name in SYMBOLIC),
        *(pytest.param(name, HOPELESS, marks=pytest.mark.exhaustive) for name in SYMBOLIC),
        pytest.param("simple_integration", "1/(x+1)**99999999", marks=pytest.mark.exhaustive),
        pytest.param("countdown", "1e999999999", marks=pytest.mark.exhaustive),
        pytest.param("polynomial_multiplication", "sqrt(" * 60 + "x" + ")" * 60, marks=pytest.mark.exhaustive),
    ],
)
def test_formulas_that_would_take_all_time_or_memory(name: str, answer: str) -> None:
    """They are worth what no answer is, the processes stay small, and right answers are right afterwards."""
    env = small(name)
    right = right_answer(env, 0)
    assert score(env, right) == 1.0  # the workers run
    own = peak_mb(os.getpid())  # of all tests so far
    started = time.monotonic()
    assert score(env, answer) == original_score(env, None) <= 0.1  # type: ignore[arg-type]
    assert time.monotonic() - started < 20  # its own limit is 14 s
    if sys.platform == "linux":
        assert peak_mb(os.getpid()) - own < 100
        assert all(peak_mb(pid) < 900 for pid in descendants(os.getpid()))
    assert score(env, right) == 1.0


def test_a_hopeless_formula_holds_up_no_other() -> None:
    """Other rollouts of an evaluation are finished meanwhile."""
    env = small("intermediate_integration")
    finished: list[int] = []

    async def agent(observation: Any, info: dict[str, Any]) -> str:
        return HOPELESS if info["example_id"] == 5 else right_answer(env, info["example_id"])

    results = vfgym.evaluate(env, agent, progress=False, on_progress=lambda row, progress: finished.append(row["example_id"]))
    assert [row["reward"] for row in results["outputs"]] == [0.0, 1.0, 1.0]
    assert finished[-1] == 5


@pytest.mark.parametrize("name", ["string_insertion", "spiral_matrix", "n_queens"])
def test_the_scorer_cannot_be_asked_for_the_answer(name: str) -> None:
    """Evaluated, these texts would be the scorer's own variables."""
    env = small(name)
    assert [score(env, text) for text in ("oracle_answer", "valid_solutions[0]", "entry['answer']")] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "text", ["42", "-1.5", "x**2/2 + 3*x + C", "(8 - 2)*(3 + 1)", "(x + 1)**3", "(x**2 + 1)**10", "sqrt(x)*exp(-x**2) - log(x, 2)"]
)
def test_formulas(text: str) -> None:
    assert is_formula(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "6 * 4 = 24",
        "'a'",
        "x.y",
        "x[0]",
        "f(x)",
        "exp(x)(y)",
        "exp(x=1)",
        "x if y else z",
        "(" * 10_000,
        "\x00",
    ],
)
def test_texts_that_are_no_formulas(text: str) -> None:
    assert not is_formula(text)


def test_complex_arithmetic() -> None:
    """Not-a-number is as far from the right answer as can be, although the dataset's scorer says 1.0."""
    env = small("complex_arithmetic")
    for answer in ("nan", "NaN", "nan + nani", "1 + nani"):
        assert original_score(env, answer) == 1.0
        assert score(env, answer) == 0.0


def test_gsm_symbolic() -> None:
    """The wrong sign is wrong, although the dataset's scorer says 1.0, and worth what any wrong number is."""
    env = small("gsm_symbolic")
    for index in range(5):
        right = env.items.entry(index)["answer"]
        assert original_score(env, f"-{right}", index) == 1.0
        answers = (right, f"It is ${right}.", f"-{right}", f"It is -{right}.", f"{right}/7", f"{right},000", "zzz")
        assert [score(env, answer, index) for answer in answers] == [1.0, 1.0, 0.01, 0.01, 0.01, 0.01, 0.0]


def test_an_answer_of_gsm_symbolic_that_is_below_0() -> None:
    """The dataset's own scorer never sees the minus sign of an answer that begins with one, the right one included."""
    env = small("gsm_symbolic", seed=2484630416)
    assert env.items.entry(2)["answer"] == "-1"
    assert original_score(env, "-1", 2) == 0.01
    answers = ("-1", "\u22121", "-1.0", "$-1$", "-1 years", "He was -1 years old.", "1", "-2", "-1/2")
    assert [score(env, answer, 2) for answer in answers] == [1.0] * 6 + [0.01] * 3
    env.reset(options={"example_id": 2})
    assert env.step(env.oracle(env.state)).reward == 1.0


@pytest.mark.parametrize("dataset", ["chain_sum", "decimal_chain_sum", "number_sequence", "rotten_oranges"])
def test_a_typographic_minus_sign_is_a_minus_sign(dataset: str) -> None:
    env = small(dataset, num_train_examples=30)
    below_0 = [index for index in range(30) if str(env.items.entry(index)["answer"]).startswith("-")]
    assert below_0
    for index in below_0[:2]:
        right = env.items.entry(index)["answer"]
        assert [score(env, answer, index) for answer in (right, right.replace("-", "\u2212"))] == [1.0, 1.0]
        assert score(env, right.removeprefix("-"), index) < 1.0


def test_spell_backward() -> None:
    """A right answer with more after it is worth 0.8, whatever the fractions add up to."""
    env = small("spell_backward", num_train_examples=200, dataset_config={"min_word_len": 5})
    originals = set()
    for index in range(200):
        right = env.items.entry(index)["answer"]
        originals.add(original_score(env, f"{right} x", index))
        assert [score(env, answer, index) for answer in (right, right.upper(), f"{right} x", "?")] == [1.0, 1.0, 0.8, 0.0]
        assert score(env, f"?{right[1:]}", index) == pytest.approx(original_score(env, f"?{right[1:]}", index))
    assert max(originals) > 1.0


@pytest.mark.parametrize("answer", ["", " \n", "# 1 2", "[]"])
def test_scoring_warns_of_nothing(answer: str) -> None:
    """NumPy warns of a matrix without numbers, which pool_matrix reads."""
    env = small("pool_matrix")
    assert score(env, answer) == 0.0


def test_a_number_sequence_ends_with_its_first_large_term() -> None:
    """Items are the same as if all terms had been computed, which takes minutes and more memory than there is at higher levels."""
    from reasoning_gym.cognition.number_sequences import PatternRule

    env = small("number_sequence", num_train_examples=30)
    questions = [row["question"] for row in env.tasks.rows]
    stopping = PatternRule.apply
    PatternRule.apply = stopping.__wrapped__
    try:
        assert [env.items.dataset()[index]["question"] for index in range(30)] == questions
    finally:
        PatternRule.apply = stopping
    hardest = ReasoningGymEnv("number_sequence", seed=7, curriculum={"level": 3})
    assert len(hardest.tasks.rows[16]["question"]) < 200


def test_global_random_numbers_are_left_alone() -> None:
    """Those of list_functions come from Python's global generator, and pool_matrix seeds NumPy's."""
    for name in ("list_functions", "pool_matrix"):
        random.seed(1)
        np.random.seed(1)
        expected = random.random(), np.random.rand()
        random.seed(1)
        np.random.seed(1)
        env = small(name)
        env.reset(seed=0)
        env.step("1")
        assert (random.random(), np.random.rand()) == expected


def test_global_random_numbers_do_not_matter() -> None:
    """All 250 tasks of list_functions; some are made with numbers of Python's global generator."""
    questions = []
    for seed in (1, 2):
        random.seed(seed)
        questions.append([row["question"] for row in small("list_functions", num_train_examples=250).tasks.rows])
    assert questions[0] == questions[1]


@pytest.mark.parametrize("name", ["bf", "codeio", "tower_of_hanoi"])
def test_nothing_is_printed(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The compiler behind bf prints its progress, some programs of codeio print, and so does what checks moves of discs."""
    env = small(name, num_train_examples=100 if name == "codeio" else 5, seed=7)
    list(env.tasks.rows)
    assert score(env, "Move disk 1 from Peg 9 to Peg 8") < 0.1
    assert capfd.readouterr().out == ""


def test_numpys_random_numbers_do_not_matter() -> None:
    """Some programs of codeio draw from NumPy's global generator."""
    questions = []
    for seed in (1, 2):
        np.random.seed(seed)
        questions.append([row["question"] for row in small("codeio", num_train_examples=100).tasks.rows])
    assert questions[0] == questions[1]


# Composites


def test_a_composite_mixes_datasets() -> None:
    """Of names, or of dicts with a weight and a configuration; each answer is scored by the dataset of its item."""
    env = small(["leg_counting", {"name": "graph_color", "weight": 2.0, "config": {"min_num_vertices": 5}}], num_train_examples=20)
    assert {row["info"]["source_dataset"] for row in env.tasks.rows} == {"leg_counting", "graph_color"}
    for example_id in range(20):
        env.reset(options={"example_id": example_id})
        assert env.step(env.oracle(env.state)).reward == 1.0


def test_a_composite_keeps_the_sound_checks() -> None:
    env = small(["game_of_life_halting"])
    wrong = {"True": "False", "False": "True"}[env.items.entry(0)["answer"]]
    assert score(env, wrong) == 0.0


def test_the_default_composite() -> None:
    env = small("composite", num_train_examples=60)
    assert {row["info"]["source_dataset"] for row in env.tasks.rows} == set(DEFAULT_COMPOSITE)
    assert env.env_id == small(["chain_sum"]).env_id == "reasoning-gym/composite-v0"


# Mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"gym": "leg_countin"}, "Did you mean `leg_counting`"),
        ({"gym": ["chain_sum", "leg_countin"]}, "Did you mean `leg_counting`"),
        ({"gym": []}, "at least one dataset"),
        ({"gym": 3}, "a dataset's name, a list of names, or a dataset of reasoning-gym, got int"),
        ({"gym": ["chain_sum", {"name": "chain_sum"}]}, "each once"),
        ({"gym": ["composite"]}, "cannot be a part"),
        ({"gym": [3]}, "a dataset's name, or a dict"),
        ({"gym": [{"weight": 1.0}]}, "a dataset's name, or a dict"),
        ({"gym": [{"name": "chain_sum", "wheight": 1.0}]}, "'wheight'"),
        ({"gym": [{"name": "chain_sum", "weight": 0}]}, "positive number"),
        ({"gym": [{"name": "chain_sum", "config": {"seed": 3}}]}, "must not set 'seed'"),
        ({"gym": "chain_sum", "dataset_config": {"size": 3}}, "must not set 'size'"),
        ({"gym": "chain_sum", "dataset_config": [1]}, "must be a dict"),
        ({"gym": ["chain_sum"], "dataset_config": {"min_terms": 3}}, "give each part its own"),
        ({"gym": "chain_sum", "num_train_examples": -1}, "num_train_examples must be"),
        ({"gym": "chain_sum", "num_train_examples": 0, "num_eval_examples": 0}, "no task"),
        *[({"gym": gym, "seed": seed}, "seed") for gym in ("gcd", ["gcd"]) for seed in (None, "a", 1.5, True)],
    ],
)
def test_mistakes_are_told_at_construction(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ReasoningGymEnv(**arguments)


@pytest.mark.parametrize("config", [{"no_such_key": 1}, {"min_terms": -1}])
def test_mistakes_that_reasoning_gym_finds(config: dict[str, Any]) -> None:
    """They show when the dataset is made."""
    env = small("chain_sum", dataset_config=config)
    with pytest.raises(ConfigurationError, match="refuses the configuration of 'chain_sum'"):
        env.reset(seed=0)


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

    dataset = reasoning_gym.create_dataset("chain_sum", size=8, seed=42, max_terms=2, min_terms=2)
    env = small(dataset)
    assert [row["question"] for row in env.tasks.rows] == [dataset[index]["question"] for index in range(5)]
    assert [row["example_id"] for row in env.eval_tasks.rows] == [5, 6, 7]
    assert env.env_id == "reasoning-gym/chain_sum-v0"
    env.reset(seed=0)
    assert env.step(env.oracle(env.state)).reward == 1.0


def test_a_composite_that_is_there() -> None:
    """The sound checks hold for its parts too."""
    import reasoning_gym
    from reasoning_gym.composite import DatasetSpec

    specs = [DatasetSpec("game_of_life_halting", 1.0, {}), DatasetSpec("graph_color", 1.0, {})]
    env = small(reasoning_gym.create_dataset("composite", size=20, seed=0, datasets=specs), num_train_examples=17)
    assert {row["info"]["source_dataset"] for row in env.tasks.rows} == {"game_of_life_halting", "graph_color"}
    for index in range(17):
        env.reset(options={"example_id": index})
        assert env.step(env.oracle(env.state)).reward == 1.0
    halting = next(row["example_id"] for row in env.tasks.rows if row["info"]["source_dataset"] == "game_of_life_halting")
    assert score(env, "zzz", halting) == 0.0


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


def test_reasoning_gym_is_imported_with_the_first_task() -> None:
    """It takes a second, or many on a loaded machine."""
    program = (
        "import sys\n"
        "from vfgym.wrappers.reasoning_gym import ReasoningGymEnv\n"
        "env = ReasoningGymEnv('leg_counting')\n"
        "print('reasoning_gym' in sys.modules)\n"
        "env.reset(seed=0)\n"
        "print('reasoning_gym' in sys.modules)\n"
    )
    result = run_python(program, check=True)
    assert result.stdout.split() == ["False", "True"]
