"""`plan_tasks`: what would be played, and that the environment which was made for it is closed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wrappers.games.nim import NimEnv
from vfgym import SingleTurnEnv
from vfgym.errors import ConfigurationError
from vfgym.runs import RunSettings
from vfgym.runs.planning import plan_tasks

ROWS = [{"question": f"{number}?", "answer": str(number)} for number in range(4)]


@pytest.mark.parametrize(
    ("settings", "ids", "rollouts"),
    [
        ({}, [0, 1], 1),
        ({"split": "train"}, [0, 1, 2, 3], 1),
        ({"split": "train", "num_examples": 3, "rollouts_per_example": 2}, [0, 1, 2], 2),
        ({"split": "train", "example_ids": [3, 0]}, [3, 0], 1),
    ],
)
def test_the_settings_say_what_is_played(settings: dict[str, Any], ids: list[int], rollouts: int) -> None:
    env = SingleTurnEnv(ROWS, eval_dataset=ROWS[:2])
    planned = plan_tasks(env, RunSettings(**settings))
    assert [group.example.example_id for group in planned.groups] == ids
    assert [len(group.numbers) for group in planned.groups] == [rollouts] * len(ids)
    assert (planned.num_examples, planned.num_rollouts) == (len(ids), rollouts * len(ids))


def test_of_a_part_only_what_is_in_it_is_planned() -> None:
    env = SingleTurnEnv(ROWS)
    parts = [plan_tasks(env, RunSettings(rollouts_per_example=3, shard=(number, 5))) for number in range(5)]
    assert [part.num_rollouts for part in parts] == [3, 3, 2, 2, 2]
    together = plan_tasks(env, RunSettings(rollouts_per_example=3, shard=(1, 3), independent_scoring=False))
    assert [list(group.numbers) for group in together.groups] == [[0, 1, 2]]
    with pytest.raises(ConfigurationError, match="nothing to play in shard 4 of 5"):
        plan_tasks(env, RunSettings(rollouts_per_example=3, shard=(4, 5), independent_scoring=False))


def test_each_game_from_both_seats_is_two_rollouts() -> None:
    planned = plan_tasks(NimEnv(), RunSettings(num_examples=3, rollouts_per_example=2, both_seats=True))
    assert [len(group.numbers) for group in planned.groups] == [4, 4, 4]
    with pytest.raises(ConfigurationError, match="not a game for several"):
        plan_tasks(SingleTurnEnv(ROWS), RunSettings(both_seats=True))


@pytest.mark.parametrize("settings", [{}, {"example_ids": [9]}, {"both_seats": True}])
def test_what_was_made_is_closed_also_where_it_cannot_be_played(settings: dict[str, Any]) -> None:
    closed: list[int] = []

    class Closing(SingleTurnEnv):
        def close(self) -> None:
            closed.append(len(self.tasks_of("train")))
            super().close()

    try:
        plan_tasks(lambda size: Closing(ROWS[:size]), RunSettings(**settings), {"size": 2})
    except ConfigurationError:
        assert settings
    assert closed == [2]
