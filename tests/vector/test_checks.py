"""What is given to a vector environment: taken in every form that it may have, or refused with a word about what came."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from vfgym.errors import ConfigurationError, InvalidAction
from vfgym.spaces import MessageSpace
from vfgym.vector.checks import (
    as_actions,
    as_autoreset_mode,
    as_ids,
    as_options,
    as_seeds,
    check_factories,
    check_group_size,
    refuse_action,
)


@pytest.mark.parametrize("mode", AutoresetMode)
def test_modes_are_given_by_name_too(mode: AutoresetMode) -> None:
    assert as_autoreset_mode(mode) is as_autoreset_mode(mode.value) is mode
    with pytest.raises(ConfigurationError, match=r"autoreset_mode must be one of .*SameStep.*; got 'Never'"):
        as_autoreset_mode("Never")


@pytest.mark.parametrize("mode", AutoresetMode)
def test_only_groups_need_a_mode(mode: AutoresetMode) -> None:
    check_group_size(1, 3, mode)
    if mode is AutoresetMode.SAME_STEP:
        check_group_size(3, 6, mode)
    else:
        with pytest.raises(ConfigurationError, match=r"group_size=3 needs autoreset_mode=AutoresetMode\.SAME_STEP"):
            check_group_size(3, 6, mode)
    with pytest.raises(ConfigurationError, match="multiple of group_size: 5 is not one of 2"):
        check_group_size(2, 5, mode)


def test_functions_make_as_many_environments_as_there_are() -> None:
    check_factories([int], None)
    check_factories([int, int], 2)
    for factories, number, says in (
        ([], None, "not be empty"),
        ([int, 3], None, "got int in it"),
        ([int], 2, "num_envs=2, and there are 1"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            check_factories(factories, number)


@pytest.mark.parametrize("actions", [["a", "b"], ("a", "b"), iter(["a", "b"]), np.array(["a", "b"])])
def test_actions_are_one_for_each(actions: Any) -> None:
    assert as_actions(actions, MessageSpace(), 2) == ["a", "b"]
    numbers = gym.spaces.MultiDiscrete([3, 3])
    assert as_actions(np.array([1, 2]), numbers, 2) == [1, 2]
    pairs = gym.spaces.Tuple([gym.spaces.MultiDiscrete([2, 2])] * 2)
    assert as_actions((np.array([0, 1]), np.array([1, 0])), pairs, 2) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("actions", ["hello", b"hello", {"role": "assistant"}, 7, None])
def test_one_action_is_not_a_list_of_them(actions: Any) -> None:
    with pytest.raises(InvalidAction, match=f"one for each of 3 environments, got one {type(actions).__name__}"):
        as_actions(actions, MessageSpace(), 3)
    with pytest.raises(InvalidAction, match="expected 3, got 2"):
        as_actions(["a", "b"], MessageSpace(), 3)


def test_what_is_wrong_with_an_action_is_said_of_its_environment() -> None:
    refuse_action(4, None, MessageSpace(), is_played=False)
    for action, space, is_played, says in (
        (None, MessageSpace(), True, "environment 4: "),
        ({"role": "user", "content": "b"}, MessageSpace(), True, "environment 4: .*role 'user'"),
        (9, gym.spaces.Discrete(2), False, "environment 4: the action must be a member of Discrete.2., got 9"),
    ):
        with pytest.raises(InvalidAction, match=says):
            refuse_action(4, action, space, is_played=is_played)


@pytest.mark.parametrize("ids", [[3, 0], (3, 0), np.array([3, 0]), [np.int32(3), np.int64(0)]])
def test_ids_are_numbers_from_0(ids: Any) -> None:
    found = as_ids(ids, 4)
    assert (found, {type(index) for index in found}) == ([3, 0], {int})


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        *[([wrong], f"no environment {wrong!r}: ids are integers from 0 to 3") for wrong in (4, -1, True, 1.5, "0", None)],
        ([0, 0], "each environment once"),
        ([], "got none"),
        *[(wrong, "ids must be a list") for wrong in (0, None, "01", b"01", {0})],
    ],
)
def test_ids_that_are_not(ids: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        as_ids(ids, 4)


@pytest.mark.parametrize(
    ("seed", "group_size", "seeds"),
    [
        *[(None, 1, [None] * 4), (0, 1, [0, 1, 2, 3]), (5, 2, [5, 5, 6, 6]), (np.int64(5), 4, [5] * 4)],
        ([1, None, 0, 1], 1, [1, None, 0, 1]),
        (np.array([1, 1, 0, 0]), 2, [1, 1, 0, 0]),
    ],
)
def test_seeds_are_those_of_each_environment(seed: Any, group_size: int, seeds: list[Any]) -> None:
    assert as_seeds(seed, 4, group_size) == seeds


@pytest.mark.parametrize(
    ("seed", "says"),
    [
        *[(wrong, "seed must be an integer") for wrong in ("1", 1.5, True, {1})],
        ([1, 2, 3], "expected 4, got 3"),
        ([1, 2, 3, 0.5], "seeds must be integers"),
        ([1, 2, 3, 3], "environments 0 to 1 are a group"),
        ([1, 1, 3, None], r"^seed: environments 2 to 3 are a group, and it must be the same for them; got .3, None.$"),
        ([0, None, 1, 1], "environments 0 to 1 are a group"),
        ([1, 1, True, True], "seeds must be integers or None"),
        ([], "expected 4, got 0"),
        (b"1234", "seed must be an integer, a list with one for each environment, or None; got b'1234'"),
    ],
)
def test_seeds_that_are_not(seed: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        as_seeds(seed, 4, 2)


def test_options_are_those_of_each_environment_or_of_all() -> None:
    assert (as_options(None, 2, 1), as_options({"a": 1}, 2, 1)) == (([None, None], None), ([{"a": 1}] * 2, None))
    assert as_options(({}, None), 2, 1) == ([{}, None], None)
    whole = [{"a": 1}, None]
    options, _ = as_options(whole, 2, 1)
    whole.clear()
    assert (options, as_options({}, 2, 2)) == ([{"a": 1}, None], ([{}, {}], None))
    given = {"reset_mask": np.array([False, True]), "a": 1}
    options, mask = as_options(given, 2, 1)
    assert (options, mask is given["reset_mask"], list(given)) == ([{"a": 1}] * 2, True, ["reset_mask", "a"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([None], "expected 4, got 1"),
        ("a", "options must be a dict, or a list"),
        ([None, None, 1, None], "environment 2: reset options must be a dict or None, got int"),
        ([{"reset_mask": np.ones(4, bool)}, None, None, None], "one dict of options"),
        *[({"reset_mask": mask}, "4 booleans, got list") for mask in ([True] * 4,)],
        ({"reset_mask": None}, "got NoneType"),
        ({"reset_mask": np.ones(4)}, "got float64"),
        ({"reset_mask": np.ones(2, bool)}, "got bool of shape"),
        ({"reset_mask": np.zeros(4, bool)}, "all of it is False"),
        ({"reset_mask": np.array([True, True, True, False])}, "environments 2 to 3 are a group"),
        ([{"a": 1}, None, None, None], "environments 0 to 1 are a group"),
        ([None, None, {}, None], "reset options: environments 2 to 3 are a group"),
        ([None, None, None, {"reset_mask": None}], "reset_mask is for the whole vector"),
        ([], "expected 4, got 0"),
        ("", "options must be a dict, or a list"),
        (0, "options must be a dict, or a list with one for each environment; got int"),
        ({"reset_mask": np.array([False, False, False, True])}, "environments 2 to 3 are a group"),
    ],
)
def test_options_that_are_not(options: Any, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        as_options(options, 4, 2)
