"""Levels: the configurations of reasoning-gym's own curricula, without those that cannot be played."""

from __future__ import annotations

import pytest

from tests.wrappers.reasoning_gym.making import play
from vfgym.data import reasoning_gym_datasets
from vfgym.errors import ConfigurationError
from vfgym.wrappers.reasoning_gym.env import ReasoningGymEnv
from vfgym.wrappers.reasoning_gym.levels import Share, configurations_by_level

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")

WITHOUT_CURRICULUM = {"acre", "composite", "gsm_symbolic", "knight_swap", "list_functions"}


def test_all_attributes_of_the_curriculum_rise_together() -> None:
    from reasoning_gym.factory import create_curriculum

    curriculum, found = create_curriculum("chain_sum"), configurations_by_level(Share("chain_sum", config={"allow_negation": True}))
    assert list(found) == list(range(11))
    for level, values in found.items():
        config = curriculum.generate_configuration()
        expected = {name: getattr(config, name) for name in ("min_terms", "max_terms", "min_digits", "max_digits")}
        assert values == {**values, **expected, "allow_negation": True}
        assert not {"seed", "size"} & values.keys()
        assert curriculum.increment_global_level() == (level < 10)


LEVELS = {
    "modulo_grid": [0, 2, 3, 4, 5],
    "caesar_cipher": [0, 1],
    "rubiks_cube": [0, 1, 2, 3],
    "jugs": [0, 1, 2],
    "sokoban": [*range(1, 14)],
}


@pytest.mark.parametrize("name", LEVELS)
def test_levels_that_cannot_be_played_are_left_out(name: str) -> None:
    """Those whose configuration the dataset refuses, or cannot make items of, or that change nothing."""
    assert list(configurations_by_level(Share(name))) == LEVELS[name]


@pytest.mark.parametrize("name", sorted(WITHOUT_CURRICULUM - {"composite"}))
def test_datasets_without_levels(name: str) -> None:
    """The curriculum of knight_swap has no level that its dataset takes; the others have none."""
    with pytest.raises(ConfigurationError, match=f"curriculum for (the dataset )?'{name}'"):
        configurations_by_level(Share(name))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"min_terms": 2}, "must not set 'min_terms': its curriculum does"),
        ({"max_digits": 2}, "must not set 'max_digits': its curriculum does"),
        ({"no_such_key": 2}, "refuses the configuration of 'chain_sum'"),
    ],
)
def test_a_configuration_that_does_not_go_with_a_curriculum(config: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        configurations_by_level(Share("chain_sum", config=config))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(reasoning_gym_datasets().keys() - WITHOUT_CURRICULUM))
def test_every_level_of_every_dataset(name: str) -> None:
    """Items can be made, and their right answers score 1.0."""
    env = ReasoningGymEnv(name, num_train_examples=3, num_eval_examples=1, curriculum=True)
    for level in env.curriculum.usable_levels[name]:
        env.set_level(level)
        for info in play(env, episodes=3):
            assert (info["level"], info["metrics"]["check_answer_reward_func"]) == (level, 1.0)
