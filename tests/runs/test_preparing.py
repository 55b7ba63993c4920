"""What is made before a run plays: what is played, in which parts, and by whom."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.wrappers.games.nim import NimEnv
from vfgym import Rubric, SingleTurnEnv
from vfgym.agents import RandomAgent
from vfgym.errors import ConfigurationError, InfraError
from vfgym.results import fingerprint_of
from vfgym.runs import RunSettings
from vfgym.runs.engine import GroupJob
from vfgym.runs.inputs import Example, ListedInputs, Seeds, TaskInputs
from vfgym.runs.preparing import PreparedRun, groups_of, part_of, prepare, scores_in_groups
from vfgym.runs.replicas import Replicas
from vfgym.tasks import ProceduralTasks

ROWS = [{"question": f"{number}?", "answer": str(number)} for number in range(4)]


def paid(completion: Any) -> float:
    return 1.0


def best(completions: list[Any]) -> list[float]:
    return [1.0] * len(completions)


class Advantages(Rubric):
    """Gives advantages of its own, and looks at no whole group."""

    provides_advantages = property(lambda self: True)


def prepared(env: Any, *, checks_tasks: bool = True, **settings: Any) -> PreparedRun:
    return asyncio.run(prepare(Replicas(), env, None, RandomAgent(), RunSettings(**settings), checks_tasks=checks_tasks))


def numbers(groups: list[GroupJob]) -> list[tuple[int, list[int]]]:
    return [(group.example.example_id, list(group.numbers)) for group in groups]


@pytest.mark.parametrize(
    ("shard", "together", "expected"),
    [
        ((0, 1), 1, [(7, [0, 1, 2]), (8, [0, 1, 2])]),
        ((0, 2), 1, [(7, [0, 2]), (8, [1])]),
        ((1, 2), 1, [(7, [1]), (8, [0, 2])]),
        ((0, 2), 2, [(7, [0, 1]), (8, [0, 1])]),
        ((1, 2), 2, [(7, [2]), (8, [2])]),
        ((1, 2), 3, [(8, [0, 1, 2])]),
    ],
)
def test_a_part_has_each_place_that_is_its_own(shard: tuple[int, int], together: int, expected: list[Any]) -> None:
    groups = [GroupJob(Example(id, place, 3, place), range(3)) for place, id in enumerate((7, 8))]
    assert numbers(part_of(groups, shard, together)) == expected


def test_a_part_without_anything_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"nothing to play in shard 4 of 5: the run can be divided into 4 parts"):
        part_of([GroupJob(Example(id, id, 3, id), range(3)) for id in range(2)], (4, 5), 2)


@pytest.mark.parametrize(
    ("in_groups", "settings", "expected"),
    [
        (False, {}, [(0, [0, 1, 2, 3]), (1, [0, 1, 2, 3])]),
        (False, {"shard": (1, 2)}, [(0, [1, 3]), (1, [1, 3])]),
        (False, {"shard": (1, 2), "both_seats": True}, [(0, [2, 3]), (1, [2, 3])]),
        (True, {"shard": (1, 2), "both_seats": True}, [(1, [0, 1, 2, 3])]),
    ],
)
def test_pairs_and_groups_are_not_divided(in_groups: bool, settings: dict[str, Any], expected: list[Any]) -> None:
    inputs = TaskInputs(SingleTurnEnv(ROWS[:2]).tasks_of("train"), -1, 4)
    assert numbers(groups_of(inputs, RunSettings(**settings), in_groups=in_groups)) == expected


@pytest.mark.parametrize(("function", "by_default"), [(paid, False), (best, True)])
def test_rollouts_are_scored_together_where_the_rubric_or_the_settings_ask_for_it(function: Any, by_default: bool) -> None:
    env = SingleTurnEnv(ROWS, rubric=Rubric(function))
    assert [scores_in_groups(env, alone) for alone in (None, False)] == [by_default, True]
    if by_default:
        with pytest.raises(ConfigurationError, match="best scores whole groups"):
            scores_in_groups(env, True)
    else:
        assert not scores_in_groups(env, True)


def test_inputs_with_different_numbers_of_rollouts_are_whole_or_not_at_all() -> None:
    rows = [{"question": "?", "example_id": id} for id in (4, 4, 6)]
    inputs = ListedInputs(SingleTurnEnv(ROWS).tasks_of("train"), rows)
    assert numbers(groups_of(inputs, RunSettings(), in_groups=False)) == [(4, [0, 1]), (6, [0])]
    with pytest.raises(ConfigurationError, match="these inputs have different ones"):
        groups_of(inputs, RunSettings(shard=(0, 1)), in_groups=False)


ENDLESS = ProceduralTasks(lambda index: {"question": f"{index}?"})


@pytest.mark.parametrize(
    ("rows", "settings", "why"),
    [
        (ENDLESS, {}, "SingleTurnEnv have no end: say how many to play with num_examples"),
        ([], {}, "SingleTurnEnv has no tasks to evaluate"),
        ([{"question": "a", "example_id": 1}, {"question": "b", "example_id": 1}], {}, "same example_id, 1 among them"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(rows: Any, settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        prepared(SingleTurnEnv(rows), **settings)


@pytest.mark.parametrize("checks_tasks", [True, False])
@pytest.mark.parametrize(
    ("rows", "settings", "ids"),
    [
        (ROWS, {"split": "train"}, [0, 1, 2, 3]),
        (ROWS, {}, [0, 1]),
        (ROWS, {"split": "train", "num_examples": 3}, [0, 1, 2]),
        (ROWS, {"split": "train", "example_ids": (3, 0)}, [3, 0]),
        (ENDLESS, {"split": "train", "num_examples": 2}, [0, 1]),
    ],
)
def test_a_run_has_the_inputs_that_its_settings_say(rows: Any, settings: dict[str, Any], ids: list[int], checks_tasks: bool) -> None:
    run = prepared(SingleTurnEnv(rows, eval_dataset=ROWS[:2]), checks_tasks=checks_tasks, rollouts_per_example=2, **settings)
    assert [(example.example_id, example.num_rollouts) for example in run.inputs.examples()] == [(id, 2) for id in ids]
    assert (run.config.split, run.pairs) == (settings.get("split", "eval"), None)


@pytest.mark.parametrize(
    ("rubric", "alone", "is_scored"),
    [
        (Rubric(paid), None, True),
        (Rubric(paid), False, True),
        (Rubric(best), None, False),
        (Advantages(paid), None, True),
        (Advantages(paid), False, False),
    ],
)
async def test_episodes_are_left_to_the_group_only_where_its_rubric_asks_for_it(
    rubric: Rubric, alone: bool | None, is_scored: bool
) -> None:
    run = await prepare(Replicas(), SingleTurnEnv(ROWS, rubric=rubric), None, RandomAgent(), RunSettings(independent_scoring=alone))
    example = next(iter(run.inputs.examples()))
    played = await (await run.new_player()).play(GroupJob(example, range(1)), 0)
    run.replicas.close()
    assert played.is_scored is is_scored


def test_a_rollout_that_was_not_played_says_which_one_it_is() -> None:
    run = prepared(NimEnv(), num_examples=2, rollouts_per_example=2, both_seats=True, seed=5, max_retries=3)
    example = [*run.inputs.examples()][1]
    failure = InfraError("gone")
    other, found = run.unplayed(GroupJob(example, [0, 3]), failure)
    assert (other.number, other.pair) == (0, {"player": 0, "pair": 2})
    task = run.inputs.task(example, 3)
    assert (found.number, found.env, found.failure, found.seen_return) == (3, run.definition, failure, 0.0)
    assert (found.seed, found.pair) == (Seeds(5).of(example, 1), {"player": 1, "pair": 3})
    assert (found.route, found.fingerprint) == ([], fingerprint_of(task))
    assert (found.state["example_id"], run.fingerprint(example)) == (1, fingerprint_of(task))
    assert (run.config.max_retries, run.in_groups, example.num_rollouts) == (3, False, 4)
