"""Environments for workers: what can be replicated, that no two share one, and that what was made is closed."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit, TransformReward

from vfgym import SingleTurnEnv
from vfgym.errors import ConfigurationError
from vfgym.runs.replicas import Replicas, as_env, make_env, maker_named, replicate, why_not_replicable


class Quiz(SingleTurnEnv):
    """Notes that it was closed."""

    closed: list[Quiz] = []

    def __init__(self, size: int = 2) -> None:
        super().__init__([{"question": f"{number}?", "answer": str(number)} for number in range(size)])

    def close(self) -> None:
        self.closed.append(self)
        super().close()


class Louder(gymnasium.RewardWrapper[Any, Any]):
    def reward(self, reward: Any) -> float:
        return float(reward) + 100.0


class Forgetful(Louder):
    def __init__(self, env: Any, bonus: float) -> None:
        super().__init__(env)
        self.bonus = bonus


class Scaled(TransformReward[Any, Any]):
    """What is recorded are the arguments of its base class."""

    def __init__(self, env: Any, factor: float) -> None:
        super().__init__(env, lambda reward: factor * reward)


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> list[Quiz]:
    monkeypatch.setattr(Quiz, "closed", [])
    return Quiz.closed


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        (Quiz(), None),
        (Louder(Quiz()), None),
        (TimeLimit(Quiz(), 3), None),
        (Forgetful(Quiz(), 1.0), "the wrapper Forgetful does not record its arguments"),
        (Louder(Forgetful(Quiz(), 1.0)), "the wrapper Forgetful does not record its arguments"),
        (Scaled(Quiz(), 2.0), "the wrapper Scaled recorded arguments that are not its own"),
    ],
)
def test_what_cannot_be_rebuilt_is_named_and_plays_one_episode_at_a_time(
    env: Any, reason: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    found = why_not_replicable(env)
    assert found == reason if reason is None else found is not None and found.startswith(reason)
    replicas = Replicas()
    replicas.open(env, {})
    assert [replicas.limit_workers(count) for count in (5, -1)] == ([5, -1] if reason is None else [1, 1])
    assert ("episodes are played one at a time: the wrapper " in caplog.text) is (reason is not None)
    first = replicas.take(defers_scoring=False)
    assert (first.env is env) is (reason is not None)
    if reason is None:
        assert replicas.take(defers_scoring=False).seat is not first.seat
    else:
        with pytest.raises(ConfigurationError, match="there can be one of this environment only"):
            replicas.take(defers_scoring=False)


def test_wrappers_are_rebuilt_in_order_around_a_fork() -> None:
    env = Louder(TimeLimit(Quiz(), 7))
    copy = replicate(env)
    assert [type(copy), type(copy.env), copy.env._max_episode_steps] == [Louder, TimeLimit, 7]
    assert copy.unwrapped is not env.unwrapped
    assert copy.unwrapped.definition is env.unwrapped


def test_what_was_given_is_left_open_and_what_was_made_is_closed_the_newest_first(closed: list[Quiz]) -> None:
    given, made = Replicas(), Replicas()
    given.open(env := Quiz(), {})
    given.take(defers_scoring=True)
    given.close()
    assert env not in closed
    closed.clear()
    definition = made.open(Quiz, {"size": 3})
    taken = [made.take(defers_scoring=True) for _ in range(3)]
    assert taken[0].env is definition
    assert len(definition.tasks_of("train")) == 3
    made.close()
    assert closed == [replica.env for replica in reversed(taken)]
    made.close()
    assert len(closed) == 3


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("no-module", None),
        (f"{__name__}:Quiz", Quiz),
        (f"{__name__}:Quiz.close", Quiz.close),
        (f"{__name__}:Quiz.closed", None),
        (f"{__name__}:Quiz.no.such", None),
        ("vfgym:gymnasium/FrozenLake-v1", None),
    ],
)
def test_a_function_that_makes_an_environment_has_a_name(source: str, found: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert maker_named(source) is found
    monkeypatch.setitem(gymnasium.registry, "Quiz", gymnasium.spec("CartPole-v1"))
    assert maker_named(f"{__name__}:Quiz") is None, "what is registered by that name comes first"


def test_arguments_reach_the_constructor_whatever_is_given_and_its_own_error_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(size: int) -> Any:
        raise TypeError("of the constructor itself")

    for name, entry in (("Quiz", Quiz), ("Fails", fails)):
        monkeypatch.setitem(gymnasium.registry, f"t/{name}-v0", EnvSpec(f"t/{name}-v0", entry_point=entry, disable_env_checker=True))
    for source in ("t/Quiz-v0", gymnasium.spec("t/Quiz-v0"), Quiz, f"{__name__}:Quiz"):
        replicas = Replicas()
        arguments = {"size": 4}
        assert len(replicas.open(source, arguments).tasks_of("train")) == 4
        arguments["size"] = 9  # a worker's environment is that of the run
        replicas.take(defers_scoring=False)
        assert len(replicas.take(defers_scoring=False).seat.definition.tasks_of("train")) == 4
        replicas.close()
    with pytest.raises(TypeError, match=r"^of the constructor itself$"):
        make_env("t/Fails-v0", {"size": 1})
    with pytest.raises(ConfigurationError, match=r"cannot be made with these arguments: .*unexpected keyword argument 'sise'"):
        make_env("t/Quiz-v0", {"sise": 1})


@pytest.mark.parametrize("defers", [True, False])
def test_seats_score_as_before_when_a_run_is_over(defers: bool) -> None:
    replicas = Replicas()
    replicas.open(Forgetful(env := Quiz(), 1.0), {})
    assert replicas.take(defers_scoring=defers).seat is env
    assert env.defers_scoring is defers
    env.throws_away = lambda state: True
    replicas.close()
    assert (env.defers_scoring, env.throws_away) == (False, None)


def test_one_that_fails_to_close_keeps_no_other_open(closed: list[Quiz], caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(Quiz):
        def close(self) -> None:
            super().close()
            raise OSError("stuck")

    replicas = Replicas()
    replicas.open(Stuck, {})
    for _ in range(2):
        replicas.take(defers_scoring=False)
    replicas.take(defers_scoring=False)
    replicas.close()
    assert len(closed) == 3
    assert caplog.text.count("OSError: stuck") == 3


def test_closing_passes_on_interruptions_and_a_function_must_make_new_environments() -> None:
    class Interrupted(Quiz):
        def close(self) -> None:
            raise KeyboardInterrupt

    replicas = Replicas()
    replicas.open(Interrupted, {})
    with pytest.raises(KeyboardInterrupt):
        replicas.close()
    replicas, env = Replicas(), Quiz()
    replicas.open(lambda: env, {})
    replicas.take(defers_scoring=False)
    with pytest.raises(ConfigurationError, match="the same one twice"):
        replicas.take(defers_scoring=False)
    assert as_env(env) is env


@pytest.mark.parametrize(
    ("source", "arguments", "text"),
    [
        (7, {}, "got int"),
        (lambda: 7, {}, "returned int"),
        (Quiz(), {"size": 2}, r"env_args \(size\) are for making an environment"),
        ("replica-tests/None-v0", {}, "replica-tests"),
        ("CartPole-v1", {}, "is not a chat environment"),
        ("gymnasium/FrozenLak-v1", {}, "Did you mean"),
        ("reasoning-gym-leg_counting-v0", {}, "Did you mean `reasoning-gym/leg_counting-v0`"),
    ],
)
def test_what_cannot_be_played_is_refused(source: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        Replicas().open(source, arguments)
