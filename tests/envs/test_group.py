"""`EnvGroup`: several environments as one, and what closing it does to them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from vfgym import (
    EnvGroup,
    MultiTurnEnv,
    ProceduralTasks,
    Rubric,
    SingleTurnEnv,
    State,
    cleanup,
    metric,
    reward,
    setup,
    stop,
    teardown,
    update,
)
from vfgym.errors import ConfigurationError
from vfgym.messages import Message
from vfgym.testing import ScriptedClient


class Holding(SingleTurnEnv):
    """Holds something until it is torn down, and a session for its player."""

    def __init__(self, name: str, log: list[str]) -> None:
        super().__init__([{"question": f"{name}?"}])
        self.name, self.log = name, log

    def setup_state(self, state: Any) -> Any:
        state.session = self.name
        return super().setup_state(state)

    def close_session(self, session: Any) -> None:
        self.log.append(f"{session} closed")

    @cleanup
    def leave(self, state: Any) -> None:
        self.log.append(f"{self.name} left")

    @teardown
    async def release(self) -> None:
        self.log.append(f"{self.name} torn down")


@pytest.mark.parametrize("is_nested", [False, True])
def test_closing_a_group_closes_its_environments_once(is_nested: bool) -> None:
    """The episode that is played ends, the session is closed, and every member runs its `@teardown`."""
    log: list[str] = []
    group = EnvGroup([Holding("a", log), Holding("b", log)])
    env = EnvGroup([group]) if is_nested else group
    env.reset(options={"example_id": 1})
    env.close()
    assert log == ["b left", "b closed", "a torn down", "b torn down"]
    env.close()
    assert len(log) == 4


def test_a_member_that_cannot_be_closed_keeps_no_other_from_it() -> None:
    """What it raises is raised when all are closed."""
    log: list[str] = []

    class Stuck(Holding):
        def close_session(self, session: Any) -> None:
            raise OSError("the network is gone")

    members = [Stuck("a", log), Holding("b", log)]
    for member in members:
        member.reset(seed=0)
    with pytest.raises(OSError, match="the network is gone"):
        EnvGroup(members).close()
    assert log == ["a left", "a torn down", "b left", "b closed", "b torn down"]


# What is added to a group, and asked of its rubric


class Turns(MultiTurnEnv):
    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(dataset=[{"question": f"{name}?"}], max_turns=2, **kwargs)

    def env_response(self, messages: list[Message], state: State) -> Any:
        return "on"


def two(**kwargs: Any) -> EnvGroup:
    return EnvGroup([Turns("a", rubric=Rubric(length)), Turns("b", **kwargs)], env_names=["a", "b"])


def length(completion: list[Message]) -> float:
    return float(len(completion))


def test_what_is_added_to_the_rubric_of_a_group_scores_the_episodes_of_every_environment() -> None:
    group = two()
    group.rubric.add_metric(lambda level: level, weight=0.5)
    group.rubric.add_step_reward_func(lambda step, level: 10 * level, weight=2.0)
    group.rubric.add_class_object("level", 4.0)
    rewards = []
    for example_id in (0, 1):
        group.reset(options={"example_id": example_id})
        rewards.append([group.step("x").reward for _ in range(2)])
    assert rewards == [[80.0, 80.0 + 0.5 * 4.0 + 3.0], [80.0, 80.0 + 0.5 * 4.0]]
    own = [env.rubric.metric_names for env in group.envs]
    assert group.rubric.metric_names == list(dict.fromkeys([*own[0], *own[1]]))
    assert "length" in group.rubric.metric_names


def test_the_functions_of_a_group_that_need_a_whole_group_of_rollouts_are_those_of_its_environments() -> None:
    def ranks(states: list[State]) -> list[float]:
        return [float(place) for place, _ in enumerate(states)]

    group = two(rubric=Rubric(ranks))
    assert group.rubric.has_group_rewards
    assert group.requires_group_rollouts
    assert group.rubric.group_function_names == ["ranks"]
    assert not two().requires_group_rollouts
    group.set_score_rollouts(False)
    assert not group.requires_group_rollouts


async def test_the_rubric_of_a_group_scores_and_cleans_up_by_the_environment_that_played() -> None:
    """Also where whoever scores knows of the group's rubric alone."""
    left: list[Any] = []

    class Leaving(Rubric):
        @cleanup
        def leave(self, state: State) -> None:
            left.append(state["reward"])

    group = two(rubric=Leaving(lambda: 7.0))
    states = [await group.rollout(group.tasks.input(number), ScriptedClient(["x", "y"]), "m") for number in (0, 1)]
    for state in states:
        await group.rubric.score_rollout(state)
        await group.rubric.cleanup(state)
    assert ([state["reward"] for state in states], left) == ([3.0, 7.0], [7.0])
    with pytest.raises(ConfigurationError, match="must belong to one environment"):
        await group.rubric.score_group(states)
    await group.rubric.score_group([states[1], states[1]])
    assert states[1]["advantage"] == 0.0


async def test_a_state_of_a_group_starts_as_that_of_the_environment_that_plays() -> None:
    group = two(sampling_args={"temperature": 0.5})
    state = await group.init_state(group.tasks.input(1), None, "m", {"seed": 3})
    assert (state["prompt"][0].content, state["model"], state["sampling_args"]) == ("b?", "m", {"temperature": 0.5, "seed": 3})
    with pytest.raises(ConfigurationError, match="plays no episode itself"):
        group.new_episode()


def test_a_route_may_be_text_as_a_dataset_has_it() -> None:
    group = two()
    row = {"question": "c?", "info": '{"env_id": "b", "more": 1}'}
    env, task = group.routed(dict(row))
    assert (env, task["info"]) == (group.env_map["b"], {"more": 1})


def test_settings_reach_environments_with_and_without_a_setter() -> None:
    group = two()
    group.set_max_seq_len(5)
    group.set_max_total_completion_tokens(9)
    group.set_system_prompt("be brief")
    group.set_score_rollouts(False)
    names = ("max_seq_len", "max_total_completion_tokens", "system_prompt", "score_rollouts")
    assert [[getattr(env, name) for name in names] for env in (group, *group.envs)] == [[5, 9, "be brief", False]] * 3
    given = EnvGroup([Turns("a"), Turns("b")], max_seq_len=0, score_rollouts=False)
    assert [(env.max_seq_len, env.score_rollouts) for env in (given, *given.envs)] == [(0, False)] * 3
    untouched = EnvGroup([Turns("a", max_seq_len=3, score_rollouts=False)])
    assert (untouched.envs[0].max_seq_len, untouched.envs[0].score_rollouts) == (3, False), "what the group is not given stays"


def test_the_rows_of_a_group_have_an_end() -> None:
    rows = two().tasks.rows
    assert [rows[number]["example_id"] for number in (0, 1)] == [0, 1]
    with pytest.raises(IndexError):
        rows[2]


@pytest.mark.parametrize(
    ("envs", "arguments", "message"),
    [
        ([], {}, "at least one environment"),
        ([3], {}, "joins chat environments, got int"),
        ([Turns("a")], {"env_names": ["a"], "names": ["a"]}, "not both"),
        ([Turns("a")], {"env_names": ["a", "b"]}, "got 2 for 1"),
        ([Turns("a"), Turns("b")], {"env_names": ["a", "a"]}, "different names"),
        *(
            ([Turns("a")], {name: None}, f"takes no '{name}'")
            for name in ("dataset", "eval_dataset", "rubric", "tool_defs", "few_shot", "system_prompt", "parser")
        ),
    ],
)
def test_what_is_no_group_is_refused(envs: list[Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigurationError, TypeError), match=message):
        EnvGroup(envs, **arguments)


@pytest.mark.parametrize(
    ("row", "played", "known"),
    [
        ({"info": {"env_id": "b"}}, "b", {}),
        ({"info": {"env_id": ["b"], "more": 0}}, "b", {"info": {"more": 0}}),
        ({"info": {"env_id": ["nested", "inner"]}}, "c", {}),
        ({"info": {"env_id": "a"}, "task": "b"}, "a", {"task": "b"}),
        ({"task": "b", "info": {}}, "b", {"task": "b"}),
        ({"task": "b"}, "b", {"task": "b"}),
    ],
)
def test_a_task_goes_where_its_route_leads_and_else_to_the_environment_that_its_task_names(
    row: dict[str, Any], played: str, known: dict[str, Any]
) -> None:
    """The environment is given the task without the route."""
    members = {name: Turns(name) for name in "abc"}
    nested = EnvGroup([members["c"], Turns("d")], names=["inner", "other"])
    group = EnvGroup([members["a"], members["b"], nested], names=["a", "b", "nested"])
    task = {"question": "?", **row}
    asked = copy.deepcopy(task)
    assert group.routed(task) == (members[played], {"question": "?", **known})
    assert task == asked


def test_a_task_that_names_no_environment_is_refused_where_there_are_several() -> None:
    known = r"info\['env_id'\] of a task must name an environment of the group \(first, b\), got "
    group = EnvGroup([Turns("a"), Turns("b")], ["first", "b"])
    for task, rest in (({"info": {"env_id": "frist"}}, r"'frist'\..*`first`"), ({}, r"None\.$"), ({"task": 3}, "3")):
        with pytest.raises(ConfigurationError, match=known + rest):
            group.routed(task)
    with pytest.raises(ConfigurationError, match=r"got 0\. Did you mean `0`\?$"):
        EnvGroup([Turns("a"), Turns("b")], ["0", "b"]).routed({"task": 0})
    only = EnvGroup([Turns("a")])
    assert only.routed({"task": "maths"}) == (only.envs[0], {"task": "maths"})


def test_the_tasks_of_a_group_follow_those_of_its_environments() -> None:
    group = two()
    assert group.tasks is group.tasks
    group.env_map["b"].set_tasks("train", [{"question": "c?"}, {"question": "d?"}])
    rows = [group.tasks.input(number) for number in range(3)]
    assert [(row["prompt"][0]["content"], row["info"], row["example_id"]) for row in rows] == [
        ("a?", {"env_id": "a"}, 0),
        ("c?", {"env_id": "b"}, 1),
        ("d?", {"env_id": "b"}, 2),
    ]
    assert not group.has_tasks("eval")
    group.env_map["b"].set_tasks("eval", [{"question": "e?"}])
    assert group.has_tasks("eval")
    with pytest.raises(ConfigurationError, match=r"replace theirs, with env_map\[name\]\.set_tasks"):
        group.set_tasks("train", [])


async def test_a_rollout_of_nested_groups_has_its_whole_route_again() -> None:
    outer = EnvGroup([Turns("z"), two()], names=["z", "inner"])
    given = outer.tasks.input(2)
    state = await outer.rollout(given, ScriptedClient(["x", "y"]), "m", {"seed": 3})
    assert (state["input"]["info"], state["model"], state["sampling_args"]) == ({"env_id": ["inner", "b"]}, "m", {"seed": 3})


@pytest.mark.parametrize(
    ("first", "second", "bounds"),
    [((0.0, 1.0), (-2.0, 0.5), (-2.0, 1.0)), ((-1.0, 3.0), (0.0, 1.0), (-1.0, 3.0)), ((0.0, 1.0), None, None), (None, None, None)],
)
def test_the_bounds_of_a_group_hold_for_each_environment(first: Any, second: Any, bounds: Any) -> None:
    rubrics = [Rubric() for _ in range(2)]
    for rubric, known in zip(rubrics, (first, second), strict=True):
        rubric.add_reward_func(lambda: 0.0, range=known)
    group = EnvGroup([Turns("a", rubric=rubrics[0]), Turns("b", rubric=rubrics[1])])
    assert group.reward_range == bounds
    if bounds is None:
        return
    group.rubric.add_reward_func(lambda: 1.0, 2.0, (0.0, 10.0))
    assert group.reward_range == (bounds[0], bounds[1] + 20.0), "a function goes to each with its weight and range"


def test_a_group_can_go_back_where_all_its_environments_can() -> None:
    class Forward(Turns):
        can_go_back = False

    assert EnvGroup([Turns("a"), Turns("b")]).can_go_back
    assert not EnvGroup([Turns("a"), Forward("b")]).can_go_back
    assert not EnvGroup([Forward("a"), Turns("b")]).can_go_back


@pytest.mark.parametrize(
    "name", ["rollout", "init_state", "setup_state", "env_response", "get_prompt_messages", "render_completion", "is_completed"]
)
def test_a_hook_that_would_never_run_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"Mine\.{name} would never run: a group's environments play and score"):
        type("Mine", (EnvGroup,), {name: EnvGroup.rollout})


@pytest.mark.parametrize("mark", [stop, setup, cleanup, update, reward, metric])
def test_a_marked_function_that_would_never_run_is_refused(mark: Any) -> None:
    async def mine(self: Any, state: State) -> Any: ...

    with pytest.raises(ConfigurationError, match=r"Mine\.mine would never run"):
        type("Mine", (EnvGroup,), {"mine": mark(mine)})


def test_tasks_without_an_end_cannot_be_joined() -> None:
    endless = SingleTurnEnv(ProceduralTasks(lambda number: {"question": str(number)}))
    with pytest.raises(ConfigurationError, match="the tasks of env_1 have no end"):
        _ = EnvGroup([Turns("a"), endless]).tasks


class Learns(SingleTurnEnv):
    """Has learned a number."""

    learned = 0

    def state_dict(self) -> dict[str, Any]:
        return {"learned": self.learned}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.learned = state["learned"]


def test_what_its_environments_have_learned_is_kept_by_their_names() -> None:
    rows = [{"question": "1?"}]
    first, second = Learns(rows), Learns(rows)
    group = EnvGroup([first, second], env_names=["first", "second"])
    second.learned = 3
    state = group.state_dict()
    assert state == {"first": {"learned": 0}, "second": {"learned": 3}}
    second.learned = 0
    group.load_state_dict(state)
    assert (first.learned, second.learned) == (0, 3)
    with pytest.raises(ConfigurationError, match="expected first, second, got third"):
        group.load_state_dict({"third": {}})
