"""Curricula of reasoning-gym: levels that rise with success, where they show, and what stays as it is."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from tests.wrappers.reasoning_gym.making import play
from vfgym import AssistantMessage, Client, OracleAgent, Response, Rubric
from vfgym.errors import ConfigurationError, ModelError
from vfgym.wrappers.reasoning_gym import CurriculumConfig, ReasoningGymEnv

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")

COMPOSITE = ["chain_sum", {"name": "leg_counting", "weight": 2.0}]


def graded(gym: Any = "chain_sum", **settings: Any) -> ReasoningGymEnv:
    """Return an environment with a few tasks whose level changes after three episodes, where `settings` say nothing else."""
    return ReasoningGymEnv(gym, num_train_examples=20, num_eval_examples=12, curriculum={"window": 3, **settings})


# Rise and fall


@pytest.mark.parametrize(
    ("gym", "settings", "answers", "levels"),
    [
        ("chain_sum", {}, "1111111", [0, 0, 1, 1, 1, 2, 2]),
        ("chain_sum", {}, "00000111", [*[0] * 7, 1]),  # the last three count, whatever came before them
        ("chain_sum", {"window": 4, "threshold": 0.75}, "0111", [0, 0, 0, 1]),
        ("chain_sum", {"lower_threshold": 0.2, "level": 2}, "000000000", [2, 2, 1, 1, 1, 0, 0, 0, 0]),
        ("chain_sum", {"level": 2}, "000000", [2] * 6),  # without a lower threshold none falls
        ("chain_sum", {"window": 4, "lower_threshold": 0.25, "level": 1}, "0001", [1] * 4),  # the threshold is enough to stay
        ("spiral_matrix", {"window": 1}, "11111", [1, 2, 3, 3, 3]),
        ("modulo_grid", {"window": 1}, "11111", [2, 3, 4, 5, 5]),  # a level that is left out is passed over
    ],
)
def test_the_level_follows_the_mean_of_the_last_scores(gym: str, settings: dict[str, Any], answers: str, levels: list[int]) -> None:
    """It tells each episode its own level, and changes with the next one."""
    env = graded(gym, **settings)
    before = [env.level, *levels[:-1]]
    for answer, level, reached in zip(answers, before, levels, strict=True):
        [info] = play(env, rightly=answer == "1")
        assert (info["level"], info["metrics"]["level"], env.level) == (level, float(level), reached)


def test_the_window_slides_on_where_a_state_was_loaded() -> None:
    """Only the last three scores count there too, be they of before or after, and of a longer window the latest."""
    env = graded()
    env.curriculum.load_state_dict({"levels": {"chain_sum": 0}, "scores": {"chain_sum": [0.0] * 5}})
    assert env.curriculum.state_dict()["scores"] == {"chain_sum": [0.0] * 3}
    play(env, episodes=2)
    assert env.level == 0
    play(env)
    assert env.level == 1


def test_what_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation, errors, what could not be scored, episodes of another level: begun before it changed, or chosen; other rubrics."""
    env = graded(window=1, lower_threshold=0.5, level=1)
    play(env, episodes=5, split="eval")
    assert env.level == 1
    env.reset(seed=0)
    env.fail(ModelError("no connection"))
    assert env.level == 1
    with monkeypatch.context() as patched:
        patched.setattr(env.items, "score_later", lambda answer, example_id: 1 / 0)
        assert (play(env)[0]["metrics"]["check_answer_reward_func"], env.level) == (0.0, 1)
    late = env.fork()
    late.reset(seed=0)
    answer = env.oracle(late.state)
    env.add_rubric(Rubric(lambda completion: -1.0))
    play(env)
    assert env.level == 2
    late.step(answer)
    play(env, example_id=5 * 32)
    assert env.level == 2


# Tasks


def test_ids_name_level_and_index() -> None:
    """So that each names one task for good, at every level."""
    env = graded(window=1)
    seen: dict[int, str] = {}
    for _ in range(8):
        conversation, info = env.reset(seed=3 if not seen else None)
        level, index = divmod(info["example_id"], 32)
        assert (info["level"], env.state["info"]) == (level, {"source_dataset": "chain_sum", "index": index, "level": level})
        assert index < 20
        seen[info["example_id"]] = conversation[-1].content
        env.step(env.oracle(env.state))
    assert len({example_id // 32 for example_id in seen}) == 8
    for example_id, question in seen.items():
        conversation, info = env.reset(options={"example_id": example_id})
        assert (conversation[-1].content, info["example_id"]) == (question, example_id)


@pytest.mark.parametrize("example_id", [20, 31, 32 * 11, -1, "0", True, None])
def test_ids_that_are_no_training_tasks(example_id: Any) -> None:
    """Those of evaluation, of levels that there are not, and what is not a number."""
    with pytest.raises(ConfigurationError, match="no training task with example_id"):
        graded().reset(options={"example_id": example_id})


def test_tasks_follow_the_level() -> None:
    """Sums of level 10 have more and longer terms than those of level 0."""
    env = graded()
    easy = [row["question"] for row in env.tasks.rows]
    assert env.tasks.index_of(7) == 7
    env.set_level(10)
    assert sum(len(row["question"]) for row in env.tasks.rows) > 1.5 * sum(map(len, easy))
    assert (env.tasks.index_of(10 * 32 + 7), env.tasks.input(7)["example_id"]) == (7, 10 * 32 + 7)
    with pytest.raises(ConfigurationError, match="no task with example_id 7 among the 20 tasks at their levels"):
        env.tasks.index_of(7)


@pytest.mark.parametrize("gym", ["chain_sum", COMPOSITE])
def test_the_evaluation_split_is_spread_over_all_levels_fixed_and_apart_from_training(gym: Any) -> None:
    env = graded(gym)
    before = list(env.eval_tasks.rows)
    assert len({row["info"]["level"] for row in before}) >= 8
    evaluation = {row["info"]["index"]: row["example_id"] for row in before}
    assert len({*evaluation.values()}) == 12
    play(env, episodes=4)
    for level in range(5):
        env.set_level(level)
        training = {row["info"]["index"]: row["example_id"] for row in env.tasks.rows}
        assert training.keys().isdisjoint(evaluation)
        assert set(training.values()).isdisjoint(evaluation.values())
    assert list(env.eval_tasks.rows) == before
    example_id = before[4]["example_id"]
    assert env.reset(options={"split": "eval", "example_id": example_id})[1]["example_id"] == example_id


def test_the_evaluation_split_can_have_one_level() -> None:
    for level in (0, 3):
        env = graded(eval_level=level, level=0)
        play(env, episodes=4)
        assert ({row["info"]["level"] for row in env.eval_tasks.rows}, env.level) == ({level}, 1)


def test_a_task_of_a_level_that_there_is_not() -> None:
    """It cannot be scored, which is told, and counts nothing."""
    env = graded(window=1)
    env.reset(options={"task": {"question": "?", "info": {"index": 0, "level": 99, "source_dataset": "chain_sum"}}})
    env.step("1")
    assert "must be a level of 'chain_sum', got 99" in env.state["metrics_errors"]["check_answer_reward_func"]
    assert env.level == 0


# Where the level is kept


def test_the_level_belongs_to_the_environment() -> None:
    """Its forks share it; copies have their own."""
    env = graded()
    forks, twin = [env.fork() for _ in range(3)], copy.deepcopy(env)
    for fork in forks:
        play(fork)
    assert [fork.reset(seed=0)[1]["level"] for fork in forks] == [1, 1, 1]
    assert (env.level, twin.level, pickle.loads(pickle.dumps(env)).level) == (1, 0, 1)


def test_the_state_is_plain_data() -> None:
    """With the scores of the window that has begun, so that a run goes on where it was."""
    env, other = graded(), graded()
    play(env, episodes=5)
    state = json.loads(json.dumps(env.curriculum.state_dict()))
    assert state == {"levels": {"chain_sum": 1}, "scores": {"chain_sum": [1.0, 1.0]}}
    other.curriculum.load_state_dict(state)
    assert other.level == 1
    play(other)
    assert other.level == 2
    assert state["scores"] == {"chain_sum": [1.0, 1.0]}


def test_what_is_returned_or_was_loaded_may_be_changed() -> None:
    env, state = graded(), {"levels": {"chain_sum": 1}, "scores": {"chain_sum": [1.0]}}
    env.load_state_dict({"curriculum": state})
    state["levels"]["chain_sum"] = 5
    state["scores"]["chain_sum"].append(0.0)
    kept = env.state_dict()
    assert kept == {"curriculum": {"levels": {"chain_sum": 1}, "scores": {"chain_sum": [1.0]}}}
    kept["curriculum"]["levels"]["chain_sum"] = 5
    kept["curriculum"]["scores"]["chain_sum"].clear()
    env.curriculum.levels["chain_sum"] = 5
    assert env.state_dict() == {"curriculum": {"levels": {"chain_sum": 1}, "scores": {"chain_sum": [1.0]}}}
    plain = ReasoningGymEnv("chain_sum", num_train_examples=1, num_eval_examples=1)
    assert plain.state_dict() == {}
    plain.load_state_dict({})


@pytest.mark.parametrize(
    ("given", "config"),
    [
        (False, None),
        (True, CurriculumConfig()),
        ({}, CurriculumConfig()),
        ({"threshold": 1, "lower_threshold": 0, "window": 1, "level": 0, "eval_level": 0}, CurriculumConfig(1, 0, 1, 0, 0)),
        (CurriculumConfig(window=2), CurriculumConfig(window=2)),
    ],
)
def test_what_a_curriculum_may_be_given_as(given: Any, config: CurriculumConfig | None) -> None:
    assert CurriculumConfig.of(given) == config


@pytest.mark.parametrize(
    "state",
    [
        *({}, None, {"levels": {"chain_sum": 1}}, {"levels": {"leg_counting": 1}, "scores": {"leg_counting": []}}),
        {"levels": {"chain_sum": 99}, "scores": {"chain_sum": []}},
    ],
)
def test_a_state_that_does_not_fit(state: Any) -> None:
    env = graded()
    with pytest.raises(ConfigurationError, match=r"the state of this curriculum|no level 99"):
        env.curriculum.load_state_dict(state)
    assert env.level == 0


def test_setting_the_level() -> None:
    """It counts from the next episode on, and the window begins anew."""
    env = graded()
    play(env, episodes=2)
    env.set_level(4)
    assert [info["level"] for info in play(env, episodes=3)] == [4, 4, 4]
    assert env.level == 5
    for level in (-1, 11, 1.5, "1", True):
        with pytest.raises(ConfigurationError, match="'chain_sum' has no level"):
            env.set_level(level)  # type: ignore[arg-type]


def test_without_a_curriculum() -> None:
    """Nothing is told of levels, and there is none to set."""
    env = ReasoningGymEnv("chain_sum", num_train_examples=3, num_eval_examples=1)
    _, info = env.reset(seed=0)
    assert not {"level"} & {*info, *info["metrics"]}
    assert (env.level, env.curriculum) == (0, None)
    with pytest.raises(ConfigurationError, match="curriculum=True"):
        env.set_level(1)


# Composites


def test_each_dataset_of_a_composite_has_its_level() -> None:
    env = graded(COMPOSITE, window=2)
    of_sums = [row["example_id"] for row in env.tasks.rows if row["info"]["source_dataset"] == "chain_sum"]
    for example_id in of_sums[:2]:
        play(env, example_id=example_id)
    assert env.curriculum.levels == {"chain_sum": 1, "leg_counting": 0}
    for row in env.tasks.rows:
        assert row["info"]["level"] == (1 if row["info"]["source_dataset"] == "chain_sum" else 0)
        assert row["example_id"] == row["info"]["level"] * 32 + row["info"]["index"]
    with pytest.raises(ConfigurationError, match=r"env\.curriculum\.levels"):
        _ = env.level
    env.curriculum.set_levels({"leg_counting": 7})
    assert env.curriculum.levels == {"chain_sum": 1, "leg_counting": 7}
    with pytest.raises(ConfigurationError, match="Did you mean `chain_sum`"):
        env.curriculum.set_levels({"chain_sums": 1})


def test_levels_of_a_composite_need_not_be_equally_many() -> None:
    env = graded(["spiral_matrix", "chain_sum"], window=1)
    play(env, episodes=40)
    assert env.curriculum.levels == {"spiral_matrix": 3, "chain_sum": 10}
    with pytest.raises(ConfigurationError, match="'spiral_matrix' has no level 7: its levels are 0, 1, 2, 3"):
        env.set_level(7)


# Elsewhere


def test_an_evaluation_leaves_the_level_alone_and_is_resumed_at_another(tmp_path: Any) -> None:
    """It tells the level of each task. Its tasks are the same, so nothing is played again."""
    env, played = graded(window=1), list[int]()
    vfgym.evaluate(env, OracleAgent(), num_examples=6, results_path=tmp_path, progress=False)
    env.set_level(5)
    listen = {"progress": False, "on_progress": lambda row, *rest: played.append(row["example_id"])}
    results = vfgym.evaluate(env, OracleAgent(), results_path=tmp_path, resume=True, **listen)
    assert (env.level, len(played)) == (5, 6)
    levels = {row["example_id"]: row["info"]["level"] for row in env.eval_tasks.rows}
    assert {row["example_id"]: row["metrics"]["level"] for row in results["outputs"]} == levels
    assert {row["reward"] for row in results["outputs"]} == {1.0}


class Knowing(Client):
    """A model that knows the right answers."""

    def __init__(self, env: ReasoningGymEnv) -> None:
        self.env = env

    async def get_response(self, prompt: Any, model: str, sampling_args: Any = None, tools: Any = None, **kwargs: Any) -> Response:
        return Response("", 0, "", None, AssistantMessage(self.env.oracle(kwargs["state"])))

    async def close(self) -> None:
        """Close nothing."""


@pytest.mark.parametrize("independent_scoring", [False, True])
async def test_in_the_rollout_api(independent_scoring: bool) -> None:
    """Rollouts of training rows count, alone or in groups, and the dataset is that of the levels at the moment."""
    env = vf.ReasoningGymEnv("chain_sum", 6, 4, seed=1, curriculum={"window": 4})
    client = Knowing(env)
    for level in range(2):
        rows = env.get_dataset()
        assert [row["info"]["level"] for row in rows] == [level] * 6
        assert env.get_dataset() is rows
        results = await env.generate(list(rows)[:2] * 2, client, "model", independent_scoring=independent_scoring)
        assert [(row["metrics"]["level"], row["reward"]) for row in results["outputs"]] == [(float(level), 1.0)] * 4
    evaluation = await env.evaluate(client, "model")
    assert len({row["metrics"]["level"] for row in evaluation["outputs"]}) == 4
    assert env.level == 2


def test_the_signature_of_the_rollout_api() -> None:
    """As it is documented, with what is new at its end."""
    parameters = inspect.signature(vf.ReasoningGymEnv).parameters
    assert list(parameters)[:6] == ["gym", "num_train_examples", "num_eval_examples", "system_prompt", "parser", "seed"]
    assert [parameters[name].default for name in ("num_train_examples", "num_eval_examples", "seed", "curriculum")] == [1000, 100, 0, False]


# Mistakes


@pytest.mark.parametrize(
    ("curriculum", "message"),
    [
        ({"treshold": 0.5}, "Did you mean `threshold`"),
        *(({"threshold": threshold}, "above 0 and up to 1") for threshold in (0, 1.5, "0.5", True)),
        *(({"lower_threshold": threshold}, "below its threshold 0.8") for threshold in (0.8, -1, False, "0")),
        *(({"window": window}, "positive whole number") for window in (0, 2.5, True, -1)),
        ({"level": "hard"}, "level of a curriculum"),
        ({"eval_level": True}, "eval_level of a curriculum"),
        (CurriculumConfig(level=11), "'chain_sum' has no level 11: its levels are 0, 1"),
        ({"level": -1}, "'chain_sum' has no level -1"),
        ({"eval_level": 99}, "'chain_sum' has no level 99"),
        *((wrong, "must be True, False, a CurriculumConfig or a dict") for wrong in ("yes", None)),
    ],
)
def test_mistakes_are_told_at_construction(curriculum: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ReasoningGymEnv("chain_sum", curriculum=curriculum)
    with pytest.raises(ConfigurationError, match="'gcd' has no level 4"):
        ReasoningGymEnv(["chain_sum", "gcd"], curriculum={"eval_level": 4})
    assert CurriculumConfig(threshold=1, lower_threshold=0).lower_threshold == 0


@pytest.mark.parametrize(("train", "evaluation"), [(0, 5), (5, 0)])
def test_both_splits_are_needed(train: int, evaluation: int) -> None:
    """Evaluation would play training tasks, whose level changes, or training those of evaluation."""
    with pytest.raises(ConfigurationError, match="training tasks and evaluation tasks"):
        ReasoningGymEnv("chain_sum", num_train_examples=train, num_eval_examples=evaluation, curriculum=True)
