"""Which tasks are for training and which for validation."""

from __future__ import annotations

import pytest

import verifiers_compat as vf
from verifiers_compat.gepa.examples import Example, choose_examples
from vfgym.errors import ConfigurationError


def numbered(count: int) -> list[dict[str, str]]:
    return [{"question": str(number)} for number in range(count)]


@pytest.mark.parametrize(
    ("num_rows", "num_eval_rows", "train", "val"),
    [
        (20, 9, range(6), range(4)),
        (3, 2, range(3), range(2)),
        (20, 0, range(6), range(6, 10)),
        (5, 0, range(3), range(3, 5)),
        (2, 0, range(1), range(1, 2)),
        (1, 0, range(1), range(1)),
    ],
)
def test_examples_are_for_training_or_for_validation(num_rows: int, num_eval_rows: int, train: range, val: range) -> None:
    """Where there is one split, they are not the same ones; but for a single one."""
    env = vf.SingleTurnEnv(dataset=numbered(num_rows), eval_dataset=numbered(num_eval_rows) if num_eval_rows else None)
    split = "eval" if num_eval_rows else "train"
    assert choose_examples(env, 6, 4) == ([Example("train", place) for place in train], [Example(split, place) for place in val])


def test_an_environment_without_tasks_is_refused() -> None:
    env = vf.SingleTurnEnv(dataset=numbered(1))
    with pytest.raises(ConfigurationError, match="no tasks for training or for validation"):
        choose_examples(env, 0, 1)
    assert Example("train", 0).task_of(env)["prompt"][-1]["content"] == "0"
