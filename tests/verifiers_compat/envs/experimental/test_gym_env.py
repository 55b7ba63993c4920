"""`GymEnv`: the same games, played bare and through the rollout API, give the same; and a model is asked once for each move."""

from __future__ import annotations

import asyncio
import functools
import operator
import pickle
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest

import verifiers_compat as vf
from tests.verifiers_compat.environments import Countdown
from tests.verifiers_compat.models import Model, evaluated, rolled_out, texts
from tests.verifiers_compat.test_two_faces import comparable
from verifiers_compat.envs.experimental.gym_env import EpisodicSumRubric, normalize_reset, normalize_step, sum_step_rewards
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.testing import ScriptedClient, check_environment


class Dice:
    """A game of the older API, and no `gymnasium.Env`: throw until the sum passes 12, or stop before."""

    def __init__(self, faces: int = 6) -> None:
        self.faces = faces
        self.resets: list[int] = []
        self.closed = 0

    def reset(self, seed: int) -> int:
        self.resets.append(seed)
        self.random = np.random.default_rng(seed)
        self.sum = int(self.random.integers(1, self.faces + 1))
        return self.sum

    def step(self, action: str) -> tuple[int, float, bool, dict[str, Any]]:
        thrown = 0 if action == "stop" else int(self.random.integers(1, self.faces + 1))
        self.sum += thrown
        is_over = action == "stop" or self.sum > 12
        return self.sum, -1.0 if self.sum > 12 else thrown / 4, is_over, {"thrown": thrown}

    def close(self) -> None:
        self.closed += 1


class OldDice(Dice):
    """The same game with the whole older API: seeded by a method of its own, its `reset` takes nothing."""

    def seed(self, seed: int) -> None:
        self.given = seed

    def reset(self) -> int:  # type: ignore[override]
        return super().reset(self.given)


class OldWrapper:
    """What the older Gym puts around a game: it hands on whatever it is given."""

    def __init__(self, game: Any) -> None:
        self.game = game

    @property
    def unwrapped(self) -> Any:
        return self.game

    def seed(self, seed: int) -> None:
        self.game.seed(seed)

    def reset(self, **kwargs: Any) -> Any:
        return self.game.reset(**kwargs)

    def step(self, action: Any) -> Any:
        return self.game.step(action)


class Counted(Dice):
    """Remembers every game that was made."""

    made: list[Counted]

    def __init__(self) -> None:
        super().__init__()
        self.made.append(self)


@pytest.fixture
def dice() -> type[Counted]:
    return type("Counted", (Counted,), {"made": []})


class Game(NamedTuple):
    make: Callable[..., Any]
    kwargs: dict[str, Any]
    parser: Callable[[str], Any] | None
    answers: tuple[str, ...]
    limit: int | None = None


GAMES = {
    "CartPole": Game(gymnasium.make, {"id": "CartPole-v1"}, int, ("0", "1")),
    "FrozenLake": Game(gymnasium.make, {"id": "FrozenLake-v1", "is_slippery": True}, int, ("0", "1", "2", "3")),
    "Blackjack": Game(lambda: gymnasium.make("Blackjack-v1"), {}, int, ("0", "1")),
    "MountainCar, which a limit of its own ends": Game(gymnasium.make, {"id": "MountainCar-v0", "max_episode_steps": 8}, int, ("0", "2")),
    "Pendulum, with actions that are arrays": Game(
        gymnasium.make, {"id": "Pendulum-v1"}, lambda text: np.array([float(text)]), ("1.5",), 6
    ),
    "an older class": Game(Dice, {"faces": 4}, None, ("throw", "throw", "throw", "stop")),
    "CartPole, limited": Game(gymnasium.make, {"id": "CartPole-v1"}, int, ("0", "1"), 5),
}


class Played(NamedTuple):
    """An episode as the game itself tells it."""

    observations: list[str]
    rewards: list[float]
    infos: list[dict[str, Any]]
    terminated: bool
    truncated: bool


def native(game: Game, seed: int, answers: list[str]) -> Played:
    """Play an episode without this library."""
    env = game.make(**game.kwargs)
    started = env.reset(seed=seed)
    observations, rewards, infos = [str(started if isinstance(env, Dice) else started[0])], [], []
    terminated = truncated = False
    for answer in answers[: game.limit]:
        result = env.step(answer if game.parser is None else game.parser(answer))
        observation, reward, terminated, *rest = result
        truncated = rest[0] if len(result) == 5 else False
        observations.append(str(observation))
        rewards.append(float(reward))
        infos.append(result[-1])
        if terminated or truncated:
            break
    env.close()
    return Played(observations, rewards, infos, terminated, truncated)


def wrapped(game: Game, **kwargs: Any) -> vf.GymEnv:
    return vf.GymEnv(game.make, game.kwargs, game.parser, max_episode_steps=game.limit, **kwargs)


def answers_of(game: Game, seed: int) -> list[str]:
    return np.random.default_rng(seed).choice(game.answers, 250).tolist()


@pytest.mark.parametrize("name", GAMES)
def test_a_game_gives_the_same_bare_rolled_out_and_stepped(name: str) -> None:
    game = GAMES[name]
    env = wrapped(game, num_train_episodes=6)
    for seed in range(6):
        answers = answers_of(game, seed)
        bare = native(game, seed, answers)
        client = ScriptedClient(answers)
        rows = [{"answer": str(seed), "example_id": seed}]
        output = env.generate_sync(rows, client, "m", state_columns=["trajectory"])["outputs"][0]

        assert client.calls == len(output["trajectory"]) == len(bare.rewards)
        assert [step["reward"] for step in output["trajectory"]] == bare.rewards
        assert [step["extras"]["gym_info"] for step in output["trajectory"]] == bare.infos
        # From left to right, as steps emit them; `sum` compensates for rounding from Python 3.12 on.
        assert output["reward"] == output["metrics"]["sum_step_rewards"] == functools.reduce(operator.add, bare.rewards, 0.0)
        assert texts(output["prompt"], "user") == bare.observations[:1]
        is_over = bare.terminated or bare.truncated
        assert texts(output["completion"], "user") == bare.observations[1:]
        assert output["stop_condition"] == ("is_done" if is_over else "max_turns_reached")
        assert output["error"] is None

        env.reset(seed=seed)
        stepped = [env.step(answer) for answer in answers[: len(bare.rewards)]]
        assert [step.reward for step in stepped] == bare.rewards
        assert [step.info["gym_info"] for step in stepped] == bare.infos
        assert (stepped[-1].terminated, stepped[-1].truncated) == ((bare.terminated, bare.truncated) if is_over else (False, True))
    env.close()


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("independent", [False, True])
def test_a_stepped_and_a_generated_episode_have_equal_states(name: str, independent: bool) -> None:
    game, seen = GAMES[name], []
    env = wrapped(game, num_train_episodes=3, system_prompt="Play.", few_shot=[{"role": "user", "content": "0"}])
    env.add_rubric(vf.Rubric(lambda state: seen.append(state) or 0.0))
    answers = answers_of(game, 2)
    env.reset(seed=2)
    for answer in answers:
        outcome = env.step(answer)
        if outcome.terminated or outcome.truncated:
            break
    stepped = comparable(seen.pop())
    env.generate_sync([env.get_dataset()[2]], ScriptedClient(answers), "m", independent_scoring=independent)
    assert comparable(seen.pop()) == stepped
    env.close()


# Tasks


def test_nothing_is_made_or_reset_before_somebody_asks(dice: type[Counted]) -> None:
    env = vf.GymEnv(dice, num_train_episodes=10**9, num_eval_episodes=10**9)
    assert dice.made == []
    env.evaluate_sync(ScriptedClient(["stop"]), "m", num_examples=3, max_concurrent=1)
    assert [game.resets for game in dice.made] == [[10**9, 10**9 + 1, 10**9 + 2]]
    assert [row["answer"] for row in env.get_dataset(n=2)] == ["0", "1"]
    assert dice.made[1].resets == [0, 1]
    assert [game.closed for game in dice.made] == [1, 1]


def test_rows_are_first_observations_and_their_seeds(dice: type[Counted]) -> None:
    env = vf.GymEnv(dice, num_train_episodes=4, num_eval_episodes=2, seed=5, system_prompt="Throw.", obs_to_text=lambda sum: f"sum {sum}")
    train, evaluation = list(env.get_dataset()), list(env.get_eval_dataset())
    assert [row["answer"] for row in train] == ["5", "6", "7", "8"]
    assert [row["answer"] for row in evaluation] == ["9", "10"]
    for row in (*train, *evaluation):
        question = f"sum {Dice().reset(int(row['answer']))}"
        assert row["question"] == question
        assert row["prompt"] == [{"role": "system", "content": "Throw."}, {"role": "user", "content": question}]
    assert list(env.get_dataset(n=2)) == train[:2]
    assert sorted(row["answer"] for row in env.get_dataset(seed=1)) == ["5", "6", "7", "8"]
    assert len(env.dataset) == 4
    resets = sum(len(game.resets) for game in dice.made)
    assert resets == 6, "datasets are made once"


class Chosen(vf.GymEnv):
    """Its author chooses the rows of an evaluation."""

    def get_eval_dataset(self, n: int = -1, seed: int | None = None) -> Any:
        return super().get_eval_dataset(n, seed).filter(lambda row: int(row["answer"]) % 2)


async def test_datasets_can_be_asked_for_on_a_running_loop() -> None:
    env = Chosen(Dice, num_train_episodes=2, num_eval_episodes=4)
    assert list(env.get_dataset()["answer"]) == ["0", "1"]
    outputs = (await env.evaluate(ScriptedClient(["stop"]), "m"))["outputs"]
    assert [output["answer"] for output in outputs] == ["3", "5"]


def test_the_dataset_can_be_replaced() -> None:
    env = vf.GymEnv(Dice, num_eval_episodes=0, few_shot=[{"role": "user", "content": "3"}, {"role": "assistant", "content": "throw"}])
    env.dataset = [{"question": "stop!", "answer": "3"}, {"answer": "4"}]
    model = Model(lambda number, state: "stop")
    outputs = env.evaluate_sync(model, "m", max_concurrent=1)["outputs"]
    assert [output["answer"] for output in outputs] == ["3", "4"]
    assert [[message["content"] for message in prompt] for prompt in model.prompts] == [
        ["3", "throw", "stop!"],
        ["3", "throw", str(Dice().reset(4))],
    ]


def test_a_seat_meets_the_tasks_that_replace_others() -> None:
    env = vf.GymEnv(Dice, num_train_episodes=3, num_eval_episodes=0)
    env.reset()
    env.dataset = [{"question": "stop!", "answer": "3"}]
    assert [env.reset()[0][-1]["content"] for _ in range(2)] == ["stop!", "stop!"]


def test_a_row_of_ones_own_keeps_its_prompt(dice: type[Counted]) -> None:
    env = vf.GymEnv(dice, system_prompt="Throw.")
    model = Model(lambda number, state: "stop")
    row = {"question": "Throw or stop?", "answer": "17"}
    output = env.generate_sync([row], model, "m")["outputs"][0]
    assert dice.made[0].resets == [17]
    assert [message["content"] for message in model.prompts[0]] == ["Throw.", "Throw or stop?"]
    assert texts(output["completion"], "user") == [str(Dice().reset(17))]
    env.reset(options={"task": row})
    assert env.step("stop").observation[1].content == "Throw or stop?"
    env.close()


def test_resets_without_a_seed_play_the_tasks_in_an_order_that_a_seed_replays(dice: type[Counted]) -> None:
    env = vf.GymEnv(dice, num_train_episodes=4, num_eval_episodes=2)
    for _ in range(2):
        env.reset(seed=99)
        for _ in range(4):
            env.reset()
        env.reset(options={"split": "eval"})
    resets = dice.made[0].resets
    assert resets[:6] == resets[6:]
    assert resets[0] == 99
    assert sorted(resets[1:5]) == [0, 1, 2, 3]
    assert resets[5] in (4, 5)
    env.close()


def test_reset_options_reach_a_game_that_takes_them() -> None:
    env = vf.GymEnv(gymnasium.make, {"id": "MountainCar-v0"}, obs_to_text=lambda observation: f"{observation[0]:.1f}")
    conversation, _ = env.reset(seed=0, options={"game_options": {"low": -1.02, "high": -0.98}})
    assert conversation[0].content == "-1.0"
    for options in ({"game_options": {"low": -1.0}}, {"game_options": "low", "example_id": 0}):
        with pytest.raises(ConfigurationError, match="game_options"):
            env.reset(options=options)
    env.close()


def test_a_group_plays_it_beside_others() -> None:
    ask = vf.SingleTurnEnv(dataset=[{"question": "?", "answer": "!"}])
    group = vf.EnvGroup([ask, vf.GymEnv(Dice, num_train_episodes=2, num_eval_episodes=0)], env_names=["ask", "dice"])
    for inputs in (group.get_dataset(), [group.tasks_of("train").input(index) for index in range(3)]):
        outputs = group.generate_sync(inputs, ScriptedClient(["stop"]), "m")["outputs"]
        assert [(output["info"]["env_id"], output["answer"]) for output in outputs] == [("ask", "!"), ("dice", "0"), ("dice", "1")]
        assert [output["stop_condition"] for output in outputs[1:]] == ["is_done"] * 2
        assert [texts(output["prompt"], "user") for output in outputs[1:]] == [[str(Dice().reset(seed))] for seed in (0, 1)]


# Moves and ends


def test_an_answer_that_is_no_action_ends_the_episode_without_a_reward() -> None:
    env = vf.GymEnv(gymnasium.make, {"id": "CartPole-v1"}, int)
    client = ScriptedClient(["1", "left"])
    output = env.generate_sync([{"answer": "0"}], client, "m", state_columns=["trajectory"])["outputs"][0]
    assert client.calls == 2
    assert [step["reward"] for step in output["trajectory"]] == [1.0, 0.0]
    assert output["completion"][-1]["content"] == "Action Parsing Error: invalid literal for int() with base 10: 'left'"
    assert (output["reward"], output["stop_condition"], output["error"]) == (1.0, "is_done", None)
    env.reset(seed=0)
    outcome = env.step("left")
    assert (outcome.reward, outcome.terminated, outcome.truncated) == (0.0, True, False)
    env.close()


def test_the_parser_finds_the_answer_in_the_last_message_only() -> None:
    env = vf.GymEnv(Dice, {"faces": 1}, parser=vf.XMLParser(["think", "act"], answer_field="act"))
    client = ScriptedClient(["<think>stop</think><act>throw</act>", "stop"])  # without tags: the text itself
    output = env.generate_sync([{"answer": "0"}], client, "m")["outputs"][0]
    assert texts(output["completion"], "user") == ["2", "2"]


def test_the_last_move_of_a_limited_game_counts() -> None:
    for limit in ({"max_episode_steps": 3}, {"max_turns": 3}):
        env = vf.GymEnv(gymnasium.make, {"id": "CartPole-v1"}, int, **limit)
        client = ScriptedClient(["0", "1", "0"])
        output = env.generate_sync([{"answer": "0"}], client, "m")["outputs"][0]
        assert (client.calls, output["reward"], output["stop_condition"]) == (3, 3.0, "max_turns_reached")
        assert [message["role"] for message in output["completion"]] == ["assistant", "user"] * 3
    assert [vf.GymEnv(Dice).max_turns, vf.GymEnv(Dice, max_episode_steps=0).max_turns] == [1000, 0]


class Broken(Dice):
    def step(self, action: str) -> Any:
        if action == "throw":
            raise RuntimeError("the dice fell off the table")


@pytest.mark.parametrize(("action", "told"), [("throw", "fell off the table"), ("stop", "must return (observation")])
def test_a_game_that_breaks_is_an_error_of_its_own_rollout(action: str, told: str) -> None:
    env = vf.GymEnv(Broken)
    output = env.generate_sync([{"answer": "0"}], ScriptedClient([action]), "m")["outputs"][0]
    assert told in output["error"]["error_chain_repr"]
    assert output["reward"] == 0.0


class Meeting(Dice):
    """Every move waits for the moves of three other games."""

    barrier = threading.Barrier(4)

    def step(self, action: str) -> tuple[int, float, bool, dict[str, Any]]:
        self.barrier.wait(timeout=30)
        return super().step(action)


def test_games_that_block_run_at_once_each_with_its_own_state() -> None:
    env = vf.GymEnv(Meeting, num_eval_episodes=4)
    outputs = env.evaluate_sync(ScriptedClient(["stop"]), "m", max_concurrent=4)["outputs"]
    assert [output["stop_condition"] for output in outputs] == ["is_done"] * 4
    assert [texts(output["completion"], "user") for output in outputs] == [[str(Dice().reset(seed))] for seed in range(1000, 1004)]


@pytest.mark.parametrize("make", [OldDice, lambda: OldWrapper(OldDice()), lambda: OldWrapper(Dice())])
def test_a_reset_that_takes_no_seed_is_seeded_before(make: Callable[[], Any]) -> None:
    env, newer = vf.GymEnv(make, num_train_episodes=3), vf.GymEnv(Dice, num_train_episodes=3)
    assert list(env.get_dataset()) == list(newer.get_dataset())
    outputs, expected = (
        one.evaluate_sync(ScriptedClient(["throw", "stop"] * 3), "m", num_examples=3, max_concurrent=1)["outputs"] for one in (env, newer)
    )
    assert [(output["reward"], output["error"]) for output in outputs] == [(output["reward"], None) for output in expected]


def test_completion_style_prompts_are_text() -> None:
    env = vf.GymEnv(Dice, message_type="completion")
    conversation, _ = env.reset(seed=0)
    assert [message["role"] for message in conversation] == ["text"]
    assert env.step("stop").observation[-1]["role"] == "text"
    assert env.get_dataset(n=1)[0]["prompt"] == conversation[0]["content"]
    env.close()


# The two APIs


def direction(text: str) -> int:
    """Take any number, of which a sample of the action space may be one that the game does not have."""
    return int(text) % 4


def make_lake() -> vf.GymEnv:
    return vf.GymEnv(gymnasium.make, {"id": "FrozenLake-v1"}, direction, num_train_episodes=5)


@pytest.mark.parametrize("make", [make_lake, lambda: vf.GymEnv(Dice, max_episode_steps=4), lambda: vf.GymEnv(Dice, history=1)])
def test_every_promise_of_a_chat_environment_holds(make: Callable[[], vf.GymEnv]) -> None:
    broken = [check for check in check_environment(make) if not check.passed]
    assert broken == []


def test_an_episode_goes_on_in_a_pickled_copy() -> None:
    env = make_lake()
    env.reset(seed=3)
    env.step("1")
    copied = pickle.loads(pickle.dumps(env))
    for action in ("1", "2", "0"):
        assert copied.step(action)[:4] == env.step(action)[:4]
    env.close()
    copied.close()


# Rewards


def test_a_rubric_of_ones_own_takes_the_place_of_the_sum() -> None:
    def length(state: vf.State, answer: str, question: str) -> float:
        return len(state["trajectory"]) + int(answer) / 10 + (question == str(Dice().reset(3)))

    env = vf.GymEnv(Dice, rubric=vf.Rubric([sum_step_rewards, length], weights=[0.0, 1.0]))
    output = env.generate_sync([{"answer": "3"}], ScriptedClient(["stop"]), "m")["outputs"][0]
    assert output["reward"] == pytest.approx(2.3)
    assert output["metrics"]["sum_step_rewards"] == 0.0


class Late(vf.MultiTurnEnv):
    """Rewards a step when it answers it, as environments of the documented API do."""

    def env_response(self, messages: vf.Messages, state: vf.State) -> vf.Messages:
        state["trajectory"][-1]["reward"] = 0.25 * len(state["trajectory"])
        return [vf.UserMessage("go on")]


def test_the_sum_counts_rewards_that_are_known_late() -> None:
    env = Late(dataset=[{"question": "?"}], rubric=EpisodicSumRubric(weight=2.0), max_turns=3)
    for independent in (False, True):
        options: dict[str, Any] = {"independent_scoring": independent}
        output = env.evaluate_sync(ScriptedClient(["a", "b", "c"]), "m", **options)["outputs"][0]
        assert (output["reward"], output["metrics"]["sum_step_rewards"]) == (1.5, 0.75)


def test_the_rubric_scores_a_state_that_nobody_played() -> None:
    state = vf.State(trajectory=[{"reward": 1.5, "extras": {}}, {"reward": None, "extras": {}}, {"reward": 2.0, "extras": {}}])
    asyncio.run(EpisodicSumRubric().score_rollout(state))
    assert state["reward"] == state["metrics"]["sum_step_rewards"] == sum_step_rewards(state) == 3.5


@pytest.mark.parametrize("out", [(), (1, 2.0, True), None, "abcd", {"observation": 1}, (1, 2, 3, 4, 5, 6)])
def test_what_step_must_not_give(out: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"step\(\) must return"):
        normalize_step(out)


@pytest.mark.parametrize(
    ("kwargs", "told"),
    [
        ({"env_cls": "CartPole-v1"}, r"gymnasium.make with env_kwargs"),
        ({"env_cls": None}, "env_cls must be a class or a function"),
        ({"num_train_episodes": 0, "num_eval_episodes": 0}, "no task"),
        ({"max_episode_steps": 3, "max_turns": 4}, "give one of them"),
        ({"message_type": "poem"}, "message_type must be"),
    ],
)
def test_arguments_that_cannot_work_are_refused(kwargs: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        vf.GymEnv(**{"env_cls": Dice, **kwargs})


def test_its_tasks_are_seeds_and_no_dataset() -> None:
    with pytest.raises(UnknownArgument, match="takes no 'dataset': its tasks are seeds"):
        vf.GymEnv(Dice, dataset=[{"question": "?"}])


class Score:
    """A game that ends with its second move and shows what was scored."""

    def reset(self, seed: int) -> Any:
        self.moves, self.seed = 0, seed
        return seed, {}

    def step(self, action: str) -> Any:
        self.moves += 1
        return self.moves, 1.0, self.moves == 2, False, {}


async def test_obs_to_text_is_a_hook_and_gym_done_is_in_the_state() -> None:
    class Bracketed(vf.GymEnv):
        def obs_to_text(self, obs: Any) -> str:
            return f"<{obs}>"

        async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
            seen.append(state["gym_done"])
            return await super().env_response(messages, state)

    seen: list[bool] = []
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
            shown = await super().env_response(messages, state)
            return [*shown, {"role": "user", "content": "Your move, please."}]

    (output,) = await evaluated(Polite(Countdown, action_parser=int, num_train_episodes=1, num_eval_episodes=0), "0", "0", "0")
    assert texts(output["completion"], "user") == ["2", "Your move, please.", "1", "Your move, please.", "0"]


@pytest.mark.parametrize(
    ("given", "five"),
    [
        (("seen", 1, True, False, {}), ("seen", 1.0, True, False, {})),
        (("seen", True, 0, 1, {"a": 1}), ("seen", 1.0, False, True, {"a": 1})),
        (("seen", 1, True, {}), ("seen", 1.0, True, False, {})),
        (("seen", 1, True, {"TimeLimit.truncated": True}), ("seen", 1.0, False, True, {"TimeLimit.truncated": True})),
        (("seen", 1, False, {"TimeLimit.truncated": False}), ("seen", 1.0, False, False, {"TimeLimit.truncated": False})),
    ],
)
def test_what_step_gives_is_five_values(given: Any, five: Any) -> None:
    assert normalize_step(given) == five
    assert [type(value) for value in normalize_step(given)] == [str, float, bool, bool, dict]


@pytest.mark.parametrize("observation", [0, "seen", (1, 2), (1, {}, 3), None])
def test_what_reset_gives_is_an_observation_and_an_info(observation: Any) -> None:
    assert normalize_reset(observation) == (observation, {})
    assert normalize_reset((observation, {"a": 1})) == (observation, {"a": 1})
