"""`GymEnv`: the same games, played bare and through the rollout API, give the same; and a model is asked once for each move."""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

import verifiers_compat as vf
from tests.verifiers_compat.environments import Countdown, Score
from tests.verifiers_compat.models import Model, evaluated, rolled_out, texts
from tests.verifiers_compat.test_two_faces import comparable
from verifiers_compat.envs.experimental.gym_env import EpisodicSumRubric, sum_step_rewards
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.testing import ScriptedClient, check_environment


class Dice:
    """A game of the older API, and no `gymnasium.Env`: throw until the sum passes 12, or stop before."""

    def __init__(self, faces: int = 6) -> None:
        self.faces, self.closed = faces, 0
        self.resets: list[int] = []

    def reset(self, seed: int) -> int:
        self.resets.append(seed)
        self.random = np.random.default_rng(seed)
        self.sum = int(self.random.integers(1, self.faces + 1))
        return self.sum

    def step(self, action: str) -> tuple[int, float, bool, dict[str, Any]]:
        thrown = 0 if action == "stop" else int(self.random.integers(1, self.faces + 1))
        self.sum += thrown
        return self.sum, -1.0 if self.sum > 12 else thrown / 4, action == "stop" or self.sum > 12, {"thrown": thrown}

    def close(self) -> None:
        self.closed += 1


class Counted(Dice):
    """Remembers every game that was made."""

    made: list[Counted]

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)


@pytest.fixture
def dice() -> type[Counted]:
    return type("Counted", (Counted,), {"made": []})


def played_once(env: vf.GymEnv, row: dict[str, Any], client: Any, **options: Any) -> Any:
    """Generate one rollout of a row and return its output."""
    return env.generate_sync([row], client, "m", **options)["outputs"][0]


class Game(NamedTuple):
    make: Callable[..., Any]
    kwargs: dict[str, Any]
    parser: Callable[[str], Any] | None
    answers: tuple[str, ...]
    limit: int | None = None


GAMES = {
    "CartPole": Game(gymnasium.make, {"id": "CartPole-v1"}, int, ("0", "1")),
    "FrozenLake": Game(gymnasium.make, {"id": "FrozenLake-v1", "is_slippery": True}, int, ("0", "1", "2", "3")),
    "MountainCar, which a limit of its own ends": Game(gymnasium.make, {"id": "MountainCar-v0", "max_episode_steps": 8}, int, ("0", "2")),
    "Pendulum, with actions that are arrays": Game(
        gymnasium.make, {"id": "Pendulum-v1"}, lambda text: np.array([float(text)]), ("1.5",), 6
    ),
    "an older class": Game(Dice, {"faces": 4}, None, ("throw", "throw", "throw", "stop")),
    "CartPole, limited": Game(gymnasium.make, {"id": "CartPole-v1"}, int, ("0", "1"), 5),
}


def native(game: Game, seed: int, answers: list[str]) -> tuple[list[str], list[float], list[Any], tuple[bool, bool]]:
    """Play an episode without this library; return its observations, rewards, infos and how it ended."""
    env = game.make(**game.kwargs)
    started = env.reset(seed=seed)
    observations, rewards, infos, ended = [str(started if isinstance(env, Dice) else started[0])], [], [], (False, False)
    for answer in answers[: game.limit]:
        result = env.step(answer if game.parser is None else game.parser(answer))
        observations.append(str(result[0]))
        rewards.append(float(result[1]))
        infos.append(result[-1])
        ended = bool(result[2]), bool(len(result) == 5 and result[3])
        if any(ended):
            break
    env.close()
    return observations, rewards, infos, ended


@pytest.mark.parametrize("name", GAMES)
def test_a_game_gives_the_same_bare_rolled_out_and_stepped(name: str) -> None:
    game, seen = GAMES[name], []
    env = vf.GymEnv(game.make, game.kwargs, game.parser, max_episode_steps=game.limit, num_train_episodes=4)
    env.add_rubric(vf.Rubric(lambda state: seen.append(state) or 0.0))
    for seed in range(4):
        answers = np.random.default_rng(seed).choice(game.answers, 250).tolist()
        observations, rewards, infos, ended = native(game, seed, answers)
        client = ScriptedClient(answers)
        row = {"answer": str(seed), "example_id": seed}
        output = played_once(env, row, client, state_columns=["trajectory"], independent_scoring=bool(seed % 2))
        assert client.calls == len(output["trajectory"]) == len(rewards)
        assert [(step["reward"], step["extras"]["gym_info"]) for step in output["trajectory"]] == list(zip(rewards, infos, strict=True))
        # From left to right, as steps emit them; `sum` compensates for rounding from Python 3.12 on.
        assert output["reward"] == output["metrics"]["sum_step_rewards"] == functools.reduce(operator.add, rewards, 0.0)
        assert [*texts(output["prompt"], "user"), *texts(output["completion"], "user")] == observations
        assert (output["stop_condition"], output["error"]) == ("is_done" if any(ended) else "max_turns_reached", None)

        env.reset(seed=seed)
        stepped = [env.step(answer) for answer in answers[: len(rewards)]]
        assert [(step.reward, step.info["gym_info"]) for step in stepped] == list(zip(rewards, infos, strict=True))
        assert (stepped[-1].terminated, stepped[-1].truncated) == (ended if any(ended) else (False, True))
        generated, stepped_state = (comparable(state) for state in (seen.pop(0), seen.pop(0)))
        assert generated == stepped_state
    env.close()


def test_nothing_is_made_or_reset_before_somebody_asks(dice: type[Counted]) -> None:
    env = vf.GymEnv(dice, num_train_episodes=10**9, num_eval_episodes=10**9)
    assert dice.made == []
    env.evaluate_sync(ScriptedClient(["stop"]), "m", num_examples=3, max_concurrent=1)
    assert [game.resets for game in dice.made] == [[10**9, 10**9 + 1, 10**9 + 2]]
    assert [row["answer"] for row in env.get_dataset(n=2)] == ["0", "1"]
    assert (dice.made[1].resets, [game.closed for game in dice.made]) == ([0, 1], [1, 1])


def test_rows_are_first_observations_and_their_seeds(dice: type[Counted]) -> None:
    env = vf.GymEnv(dice, num_train_episodes=4, num_eval_episodes=2, seed=5, system_prompt="Throw.", obs_to_text=lambda sum: f"sum {sum}")
    train, evaluation = list(env.get_dataset()), list(env.get_eval_dataset())
    assert [[row["answer"] for row in rows] for rows in (train, evaluation)] == [["5", "6", "7", "8"], ["9", "10"]]
    for row in (*train, *evaluation):
        question = f"sum {Dice().reset(int(row['answer']))}"
        assert (row["question"], [message["content"] for message in row["prompt"]]) == (question, ["Throw.", question])
    assert (list(env.get_dataset(n=2)), len(env.dataset)) == (train[:2], 4)
    assert sum(len(game.resets) for game in dice.made) == 6, "datasets are made once"


def test_the_dataset_can_be_replaced() -> None:
    env = vf.GymEnv(Dice, num_eval_episodes=0, few_shot=[{"role": "user", "content": "3"}, {"role": "assistant", "content": "throw"}])
    env.reset()
    env.dataset = [{"question": "stop!", "answer": "3"}, {"answer": "4"}]
    model = Model(lambda number, state: "stop")
    outputs = env.evaluate_sync(model, "m", max_concurrent=1)["outputs"]
    assert [output["answer"] for output in outputs] == ["3", "4"]
    shown = [["3", "throw", "stop!"], ["3", "throw", str(Dice().reset(4))]]
    assert [[message["content"] for message in prompt] for prompt in model.prompts] == shown
    assert sorted(env.reset()[0][-1]["content"] for _ in range(2)) == sorted(prompt[-1] for prompt in shown)


def test_reset_options_reach_a_game_that_takes_them() -> None:
    env = vf.GymEnv(gymnasium.make, {"id": "MountainCar-v0"}, obs_to_text=lambda observation: f"{observation[0]:.1f}")
    conversation, _ = env.reset(seed=0, options={"game_options": {"low": -1.02, "high": -0.98}})
    assert conversation[0].content == "-1.0"
    for options in ({"game_options": {"low": -1.0}}, {"game_options": "low", "example_id": 0}):
        with pytest.raises(ConfigurationError, match="game_options"):
            env.reset(options=options)
    env.close()


def test_an_answer_that_is_no_action_ends_the_episode_without_a_reward() -> None:
    env = vf.GymEnv(gymnasium.make, {"id": "CartPole-v1"}, int)
    output = played_once(env, {"answer": "0"}, ScriptedClient(["1", "left"]), state_columns=["trajectory"])
    assert [step["reward"] for step in output["trajectory"]] == [1.0, 0.0]
    assert output["completion"][-1]["content"] == "Action Parsing Error: invalid literal for int() with base 10: 'left'"
    assert (output["reward"], output["stop_condition"], output["error"]) == (1.0, "is_done", None)
    env.reset(seed=0)
    assert env.step("left")[1:4] == (0.0, True, False)
    env.close()


def test_the_parser_finds_the_answer_in_the_last_message_only() -> None:
    env = vf.GymEnv(Dice, {"faces": 1}, parser=vf.XMLParser(["think", "act"], answer_field="act"))
    client = ScriptedClient(["<think>stop</think><act>throw</act>", "stop"])  # without tags: the text itself
    assert texts(played_once(env, {"answer": "0"}, client)["completion"], "user") == ["2", "2"]


def test_the_last_move_of_a_limited_game_counts() -> None:
    for limit in ({"max_episode_steps": 3}, {"max_turns": 3}):
        output = played_once(
            vf.GymEnv(gymnasium.make, {"id": "CartPole-v1"}, int, **limit), {"answer": "0"}, ScriptedClient(["0", "1", "0"])
        )
        assert (output["reward"], output["stop_condition"], len(output["completion"])) == (3.0, "max_turns_reached", 6)
    assert [vf.GymEnv(Dice).max_turns, vf.GymEnv(Dice, max_episode_steps=0).max_turns] == [1000, 0]


@pytest.mark.parametrize(("action", "told"), [("throw", "fell off the table"), ("stop", "must return (observation")])
def test_a_game_that_breaks_is_an_error_of_its_own_rollout(action: str, told: str) -> None:
    class Broken(Dice):
        def step(self, action: str) -> Any:
            if action == "throw":
                raise RuntimeError("the dice fell off the table")

    output = played_once(vf.GymEnv(Broken), {"answer": "0"}, ScriptedClient([action]))
    assert (told in output["error"]["error_chain_repr"], output["reward"]) == (True, 0.0)


def test_games_that_block_run_at_once_each_with_its_own_state() -> None:
    barrier = threading.Barrier(4)

    class Meeting(Dice):
        """Every move waits for the moves of three other games."""

        def step(self, action: str) -> tuple[int, float, bool, dict[str, Any]]:
            barrier.wait(timeout=30)
            return super().step(action)

    outputs = vf.GymEnv(Meeting, num_eval_episodes=4).evaluate_sync(ScriptedClient(["stop"]), "m", max_concurrent=4)["outputs"]
    assert [texts(output["completion"], "user") for output in outputs] == [[str(Dice().reset(seed))] for seed in range(1000, 1004)]


def test_completion_style_prompts_are_text() -> None:
    env = vf.GymEnv(Dice, message_type="completion")
    conversation, _ = env.reset(seed=0)
    assert [message["role"] for message in conversation] == ["text"]
    assert env.step("stop").observation[-1]["role"] == "text"
    assert env.get_dataset(n=1)[0]["prompt"] == conversation[0]["content"]
    env.close()


def make_lake() -> vf.GymEnv:
    """Return a game that takes any number, since a sample of the action space may be one that it does not have."""
    return vf.GymEnv(gymnasium.make, {"id": "FrozenLake-v1"}, lambda text: int(text) % 4, num_train_episodes=5)


@pytest.mark.parametrize("make", [make_lake, lambda: vf.GymEnv(Dice, max_episode_steps=4), lambda: vf.GymEnv(Dice, history=1)])
def test_every_promise_of_a_chat_environment_holds(make: Callable[[], vf.GymEnv]) -> None:
    assert [check for check in check_environment(make) if not check.passed] == []


@pytest.mark.parametrize("independent", [False, True])
async def test_the_sum_counts_rewards_that_are_known_late(independent: bool) -> None:
    class Late(vf.MultiTurnEnv):
        """Rewards a step when it answers it, as environments of the documented API do."""

        def env_response(self, messages: vf.Messages, state: vf.State) -> vf.Messages:
            state["trajectory"][-1]["reward"] = 0.25 * len(state["trajectory"])
            return [vf.UserMessage("go on")]

    env = Late(dataset=[{"question": "?"}], rubric=EpisodicSumRubric(weight=2.0), max_turns=3)
    (output,) = await evaluated(env, "a", "b", "c", independent_scoring=independent)
    assert (output["reward"], output["metrics"]["sum_step_rewards"]) == (1.5, 0.75)


@pytest.mark.parametrize(
    ("kwargs", "told"),
    [
        ({"env_cls": "CartPole-v1"}, r"gymnasium.make with env_kwargs"),
        ({"env_cls": None}, "env_cls must be a class or a function"),
        ({"num_train_episodes": 0, "num_eval_episodes": 0}, "no task"),
        ({"max_episode_steps": 3, "max_turns": 4}, "give one of them"),
        ({"message_type": "poem"}, "message_type must be"),
        ({"dataset": [{"question": "?"}]}, "takes no 'dataset': its tasks are seeds"),
    ],
)
def test_arguments_that_cannot_work_are_refused(kwargs: dict[str, Any], told: str) -> None:
    with pytest.raises((ConfigurationError, UnknownArgument), match=told):
        vf.GymEnv(**{"env_cls": Dice, **kwargs})


async def test_obs_to_text_is_a_hook_and_gym_done_is_in_the_state() -> None:
    seen: list[bool] = []

    class Bracketed(vf.GymEnv):
        def obs_to_text(self, obs: Any) -> str:
            return f"<{obs}>"

        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            seen.append(state["gym_done"])
            return await super().env_response(messages, state)

    state = await rolled_out(Bracketed(Score, num_train_episodes=1), "a", "b")
    assert (texts(state["prompt"], "user"), texts(state["completion"], "user")) == (["<0>"], ["<1>", "<2>"])
    assert (seen, state["gym_done"], state["stop_condition"]) == ([False], True, "is_done")
    assert texts((await rolled_out(vf.GymEnv(Score, obs_to_text="no. {}".format), "a", "b"))["prompt"], "user") == ["no. 0"]
    replaced = vf.GymEnv(Score)
    replaced.obs_to_text = lambda obs: "put on"
    assert texts((await rolled_out(replaced, "a", "b"))["prompt"], "user") == ["put on"]


async def test_a_hook_that_writes_gym_done_ends_the_game() -> None:
    class Short(vf.GymEnv):
        @vf.stop(priority=70)
        async def gave_up(self, state: Any) -> bool:
            if state["trajectory"] and state["trajectory"][-1]["completion"][-1]["content"] == "give up":
                state["gym_done"] = True
            return False

    env = Short(Score)
    state = await rolled_out(env, "give up", "b")
    assert (len(state["trajectory"]), state["stop_condition"]) == (1, "is_done")
    env.reset(seed=0)
    assert env.step("give up")[2:4] == (True, False)


async def test_an_overridden_env_response_of_a_game_is_what_the_model_is_shown() -> None:
    class Polite(vf.GymEnv):
        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            return [*await super().env_response(messages, state), {"role": "user", "content": "Your move, please."}]

    (output,) = await evaluated(Polite(Countdown, action_parser=int, num_train_episodes=1, num_eval_episodes=0), "0", "0", "0")
    assert texts(output["completion"], "user") == ["2", "Your move, please.", "1", "Your move, please.", "0"]


def test_an_empty_answer_is_an_answer() -> None:
    class Empty(vf.Parser):
        def parse_answer(self, completion: Any) -> str | None:
            return None if completion[-1]["content"] == "?" else ""

    played: list[str] = []
    env = vf.GymEnv(Dice, {"faces": 1}, lambda text: played.append(text) or "throw", parser=Empty())
    env.reset(seed=0)
    for answer in ("throw", "?"):
        env.step(answer)
    assert played == ["", "?"]
    env.close()


async def test_what_is_no_exception_of_an_action_parser_gets_out() -> None:
    def interrupted(text: str) -> Any:
        raise KeyboardInterrupt

    env = vf.GymEnv(Dice, action_parser=interrupted)
    env.reset(seed=0)
    with pytest.raises(KeyboardInterrupt):
        env.step("throw")
    env.close()


def test_what_is_given_and_told_belongs_to_whoever_has_it() -> None:
    """Arguments that change later change no game, and a changed info does not change the state."""
    arguments = {"faces": 1}
    env = vf.GymEnv(Dice, arguments)
    arguments["faces"] = 6
    assert env.reset(seed=0)[0][-1]["content"] == "1"
    env.step("throw").info["gym_info"]["thrown"] = 9
    assert env.step("throw").info["gym_info"] == {"thrown": 1}
    env.close()


@pytest.mark.parametrize(
    ("maker", "kwargs", "blocking"),
    [
        (gymnasium.make, {"env_kwargs": {"id": "FrozenLake-v1"}}, False),
        (gymnasium.make, {"env_kwargs": {"id": gymnasium.spec("CartPole-v1")}}, False),
        (gymnasium.make, {"env_kwargs": {"id": "CartPole-v1"}, "blocking": True}, True),
        (CartPoleEnv, {}, False),
        (Dice, {}, True),
        (Dice, {"blocking": False}, False),
        (gymnasium.make, {}, True),
    ],
)
def test_games_that_take_no_time_do_not_block(maker: Any, kwargs: dict[str, Any], blocking: bool) -> None:
    assert vf.GymEnv(maker, **kwargs).blocking is blocking


@pytest.mark.parametrize(("rewards", "total"), [([], 0.0), ([None, 0, 1], 1.0), ([0.1] * 10, 0.9999999999999999)])
def test_rewards_of_steps_are_added_from_left_to_right(rewards: list[Any], total: float) -> None:
    assert sum_step_rewards(vf.State(trajectory=[{"reward": reward} for reward in rewards])) == total
