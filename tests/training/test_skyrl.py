"""`TextEnv`, with the published interface of SkyRL stood in for (`pytest -m peers` plays it by SkyRL's own registry)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.training.trainers import environments
from tests.training.trainers.stand_ins import install
from vfgym.errors import ConfigurationError
from vfgym.training.counting import RolloutMissing

ACROSS = [f"<action>{move}</action>" for move in environments.ACROSS]


class BaseTextEnv:
    def __init__(self) -> None:
        self.turns, self.max_turns = 0, 1


@pytest.fixture
def skyrl(monkeypatch: pytest.MonkeyPatch) -> Any:
    base = {"BaseTextEnv": BaseTextEnv, "BaseTextEnvStepOutput": dict}
    return install(monkeypatch, "skyrl", skyrl_gym={}, skyrl_gym__envs={}, skyrl_gym__envs__base_text_env=base)


def begun(skyrl: Any, env: Any, **extras: Any) -> tuple[Any, Any]:
    made = skyrl.TextEnv({"env": env}, {"seed": 0, **extras})
    conversation, _ = made.init([{"role": "user", "content": "not used"}])
    return made, conversation


def test_an_episode_is_played_until_it_is_done(skyrl: Any) -> None:
    env, conversation = begun(skyrl, environments.make_lake())
    assert [message["role"] for message in conversation] == ["user"]
    outputs = [env.step(answer) for answer in ACROSS]
    assert [message["role"] for output in outputs for message in output["observations"]] == ["user"] * 6
    assert ([output["done"] for output in outputs], sum(output["reward"] for output in outputs)) == ([False] * 5 + [True], 1.0)
    assert (outputs[-1]["metadata"], env.get_metrics()["num_turns"]) == ({"terminated": True, "truncated": False}, 6.0)
    env.close()


def test_the_row_says_which_episode_and_skyrl_how_long(skyrl: Any) -> None:
    env, conversation = begun(skyrl, environments.make_sums(), options={"example_id": 1}, max_turns=2)
    assert conversation[-1]["content"] == "1 + 2?"
    first, second = (env.step(environments.call("add", a=1, b=2)) for _ in range(2))
    assert (first["done"], second["done"], second["metadata"]) == (False, True, {"terminated": False, "truncated": True})
    assert first["reward"] + second["reward"] == 0.25


def test_the_seed_says_how_an_episode_begins_and_goes_on(skyrl: Any) -> None:
    """A seed of 0 is one."""
    played = []
    for seed in (0, 0, 1):
        env, _ = begun(skyrl, environments.make_lake(is_slippery=True), seed=seed)
        played.append([env.step(answer)["observations"] for answer in ACROSS[:2] * 3 if not env._env.unwrapped.episode.is_over])
        env.close()
    assert played[0] == played[1] != played[2]


@pytest.mark.parametrize(("max_turns", "done"), [(None, 6), (6, 6), (7, 6), (1, 1), (0, 6)])
def test_skyrl_says_how_long_an_episode_lasts_at_most(skyrl: Any, max_turns: int | None, done: int) -> None:
    """An episode that ends by itself in its last turn is not ended twice."""
    env, _ = begun(skyrl, environments.make_lake(), max_turns=max_turns)
    outputs = []
    while not outputs or not outputs[-1]["done"]:
        outputs.append(env.step(ACROSS[len(outputs)]))
    assert (len(outputs), sum(output["reward"] for output in outputs)) == (done, float(done == 6))
    assert outputs[-1]["metadata"] == {"terminated": done == 6, "truncated": done != 6}
    env.close()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"env_config": {"env": "gymnasium/FrozenLake-v1"}}, "must have a seed"),
        ({"extras": {"seed": 0}}, "needs to know what to play"),
        ({"env_config": {}, "extras": {"seed": 0}}, "needs to know what to play"),
    ],
)
def test_a_row_that_says_too_little(skyrl: Any, arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        skyrl.TextEnv(**arguments)
    with pytest.raises(ConfigurationError, match="SkyRL puts what an environment answers"):
        begun(skyrl, environments.make_lake(history=2))


def test_what_says_nothing_of_the_policy_is_raised(skyrl: Any) -> None:
    env, _ = begun(skyrl, environments.make_unreachable())
    with pytest.raises(RolloutMissing):
        env.step("hello")
