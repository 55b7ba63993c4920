"""`EnvGroup`: several environments as one. Each task goes to the environment that it came from, which plays and scores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from vfgym.aio.steps import Steps, run_each
from vfgym.bounded_json import parse_json
from vfgym.envs.chat import ChatEnv, check_split
from vfgym.episode import BaseEpisode
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.lifecycle import Kind, discover_marks
from vfgym.overrides import items_of
from vfgym.reseeding import SeededNumbers
from vfgym.rubrics import Rubric
from vfgym.rubrics.rubric import call_author_scoring, clean_up_after
from vfgym.rubrics.scoring import UNKNOWN_BOUNDS, Bounds, RewardFunc, Score
from vfgym.state import State
from vfgym.tasks import Row, Tasks

ROUTE = "env_id"
"""Key of a task's ``info`` that names the environment it belongs to; a list of names, outermost first, where groups are nested."""


_HOOKS_OF_ENVIRONMENTS = (
    "rollout",
    "init_state",
    "setup_state",
    "env_response",
    "get_prompt_messages",
    "render_completion",
    "is_completed",
)
_MARKS_OF_ENVIRONMENTS: tuple[Kind, ...] = ("stop", "setup", "cleanup", "update", "reward", "metric")


class GroupRows:
    """The rows of several environments, one after another, each with the route to its environment.

    Nothing is copied or read before it is asked for.
    """

    def __init__(self, names: Sequence[str], sources: Sequence[Tasks]) -> None:
        """Join `sources`.

        Args:
            names: Names of the environments.
            sources: Their tasks, in the same order.
        """
        self._names = names
        self._sources = sources
        self.example_ids = range(len(self))
        """Rows are numbered anew, whatever ids the sources give them."""

    def __len__(self) -> int:
        """Number of rows of all sources."""
        return sum(len(source) for source in self._sources)

    def __getitem__(self, index: int) -> Row:
        """Return a row of one of the sources as its environment would play it, with the route in its ``info``."""
        position = index
        for name, source in zip(self._names, self._sources, strict=True):
            if position < len(source):
                task = source.input(position)
                return {**with_route(task, [name, *route_of(task)]), "example_id": index}
            position -= len(source)
        raise IndexError(index)


def route_of(task: Mapping[str, Any]) -> list[str]:
    """Return the names of the environments through which a task is routed, outermost first; none where it has no route."""
    info = task.get("info")
    if isinstance(info, str):
        info = parse_json(info)
    route = info.get(ROUTE) if isinstance(info, Mapping) else None
    if route is None:
        return []
    return [route] if isinstance(route, str) else list(route)


def with_route(task: Row, route: Sequence[str]) -> dict[str, Any]:
    """Return a task whose ``info`` names this route; an empty one is left out."""
    info = task.get("info")
    fields = parse_json(info) if isinstance(info, str) else dict(info or {})
    fields.pop(ROUTE, None)
    if route:
        fields[ROUTE] = route[0] if len(route) == 1 else list(route)
    elif not fields:
        return {key: value for key, value in task.items() if key != "info"}
    return {**task, "info": fields}


def routed_to(env_map: Mapping[str, ChatEnv], task: dict[str, Any]) -> tuple[ChatEnv, dict[str, Any]]:
    """Return which of the environments of a group plays a task, and the task as it knows it (see `EnvGroup.routed`)."""
    route = route_of(task)
    if not route and len(env_map) == 1:
        return next(iter(env_map.values())).routed(task)
    name = route[0] if route else task.get("task")
    if not isinstance(name, str) or name not in env_map:
        known = ", ".join(env_map)
        hint = did_you_mean(str(name), list(env_map)) if name is not None else ""
        raise ConfigurationError(f"info[{ROUTE!r}] of a task must name an environment of the group ({known}), got {name!r}.{hint}")
    return env_map[name].routed(with_route(task, route[1:]))


class EnvGroupRubric(Rubric):
    """Scores an episode with the rubric of the environment that its task belongs to."""

    def __init__(self, env_map: Mapping[str, ChatEnv]) -> None:
        """Score with the rubrics of these environments."""
        self._env_map = env_map
        super().__init__()

    def add_reward_func(self, func: RewardFunc, weight: float = 1.0, range: Sequence[float] | None = None) -> None:
        """Add a reward function to the rubric of every environment."""
        for env in self._env_map.values():
            env.rubric.add_reward_func(func, weight, range)

    def add_metric(self, func: RewardFunc, weight: float = 0.0) -> None:
        """Add a metric to the rubric of every environment."""
        for env in self._env_map.values():
            env.rubric.add_metric(func, weight)

    def add_step_reward_func(self, func: RewardFunc, weight: float = 1.0) -> None:
        """Add a function for single turns to the rubric of every environment."""
        for env in self._env_map.values():
            env.rubric.add_step_reward_func(func, weight)

    def add_class_object(self, name: str, obj: Any) -> None:
        """Offer `obj` to the reward functions of every environment."""
        for env in self._env_map.values():
            env.rubric.add_class_object(name, obj)

    def _rubric_of(self, state: State) -> Rubric:
        task = state["input"]
        label = task.get("task")  # names an environment only where there is one of that name: it may be a column of the data
        is_routed = route_of(task) or (isinstance(label, str) and label in self._env_map)
        if not (is_routed or len(self._env_map) == 1):
            raise ConfigurationError(
                f"the state does not say which environment of the group ({', '.join(self._env_map)}) played it, as after step(): score it"
                " with the rubric of that environment"
            )
        return routed_to(self._env_map, task)[0].rubric

    @property
    def metric_names(self) -> list[str]:
        """Names of the metrics of all environments, each once."""
        return list(dict.fromkeys(name for env in self._env_map.values() for name in env.rubric.metric_names))

    @property
    def timing_names(self) -> list[str]:
        """Names of the metrics of all environments that measure seconds."""
        return [name for env in self._env_map.values() for name in env.rubric.timing_names]

    @property
    def has_group_rewards(self) -> bool:
        """Whether an environment's rubric needs whole groups."""
        return any(env.rubric.has_group_rewards for env in self._env_map.values())

    @property
    def group_function_names(self) -> list[str]:
        """Names of the functions that need a whole group."""
        return [name for env in self._env_map.values() for name in env.rubric.group_function_names]

    @property
    def has_teardown(self) -> bool:
        """Whether there is anything to tear down: each environment does that itself."""
        return False

    def scoring_steps(self, state: State) -> Steps[Score]:
        """Return what the rubric of the episode's environment finds, as steps. The functions of the others have 0.0."""
        rubric = self._rubric_of(state)
        by_author = call_author_scoring(rubric, [state], as_group=False)
        score = (yield from rubric.scoring_steps(state)) if by_author is None else (yield from by_author)[0]
        return self._with_all_metrics(score)

    def group_scoring_steps(self, states: list[State]) -> Steps[list[Score]]:
        """Return what the rubric of the group's environment finds, as steps. The functions of the others have 0.0."""
        routes = {tuple(route_of(state["input"])) for state in states}
        if len(routes) > 1:
            raise ConfigurationError(f"the episodes of a group must belong to one environment, got {', '.join(map(str, sorted(routes)))}")
        rubric = self._rubric_of(states[0])
        scores = yield from (call_author_scoring(rubric, states, as_group=True) or rubric.group_scoring_steps(states))
        return [self._with_all_metrics(score) for score in scores]

    def _with_all_metrics(self, score: Score) -> Score:
        score.metrics = {**dict.fromkeys(self.metric_names, 0.0), **score.metrics}
        return score

    def cleanup_steps(self, state: State) -> Steps[None]:
        """Have the rubric of the episode's environment clean up, as steps."""
        return clean_up_after(self._rubric_of(state), state)


class EnvGroup(ChatEnv):
    """Several environments as one, each with its own tasks, rubric and tools.

    A task's ``info["env_id"]`` names the environment it belongs to. Metrics are those of the environment that played.

    >>> from vfgym import SingleTurnEnv
    >>> group = EnvGroup(
    ...     [SingleTurnEnv([{"question": "1 + 1?"}]), SingleTurnEnv([{"question": "Say hi."}, {"question": "Say bye."}])],
    ...     env_names=["math", "talk"],
    ... )
    >>> len(group.tasks), group.tasks.input(2)["info"]
    (3, {'env_id': 'talk'})
    """

    _refused_arguments: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("dataset", "eval_dataset", "rubric", "tool_defs", "few_shot", "system_prompt", "parser"),
        "a group has what its environments have: give it to them",
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        hooks = [name for name in _HOOKS_OF_ENVIRONMENTS if name in vars(cls)]
        marked = [each.name for kind in _MARKS_OF_ENVIRONMENTS for each in discover_marks(cls, kind)]
        for name in (*hooks, *marked):
            raise ConfigurationError(f"{cls.__name__}.{name} would never run: a group's environments play and score, so write it in theirs")
        super().__init_subclass__(**kwargs)

    def __init__(
        self,
        envs: Sequence[ChatEnv],
        env_names: Sequence[str] | None = None,
        *,
        names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        """Join environments.

        Args:
            envs: The environments; groups, too.
            env_names: A name for each; ``env_0``, ``env_1``, ... without.
            names: Older spelling of `env_names`.
            **kwargs: Passed to `ChatEnv`.

        Raises:
            ConfigurationError: If there are no environments, or their names are not as many, or not all different.
        """
        envs = items_of(envs, "envs", "environments")
        if not envs:
            raise ConfigurationError("an EnvGroup needs at least one environment, got none")
        for env in envs:
            if not isinstance(env, ChatEnv):
                raise ConfigurationError(f"an EnvGroup joins chat environments, got {type(env).__name__}: unwrap it, or see vfgym.to_chat")
        if env_names is not None and names is not None:
            raise ConfigurationError("give env_names or names, which mean the same, not both")
        given = env_names if env_names is not None else names
        env_names = [f"env_{number}" for number in range(len(envs))] if given is None else list(given)
        if len(env_names) != len(envs):
            raise ConfigurationError(f"an EnvGroup needs a name for each environment: got {len(env_names)} for {len(envs)}")
        if len(set(env_names)) != len(env_names):
            raise ConfigurationError(f"the environments of a group need different names, got {', '.join(env_names)}")
        self._refuse(kwargs)
        self.envs = envs
        self.env_names = env_names
        self.env_map = dict(zip(env_names, envs, strict=True))
        forwarded = {name: kwargs[name] for name in ("max_seq_len", "score_rollouts") if name in kwargs}
        super().__init__(rubric=EnvGroupRubric(self.env_map), **kwargs)
        for name, value in forwarded.items():
            self._set(name, value)
        self._joined: dict[str, tuple[list[Tasks], Tasks]] = {}
        self._is_defined = True
        self.check_failure_reward()

    # Tasks

    def tasks_of(self, split: Any) -> Tasks:
        """Return the tasks of all environments, one environment after another.

        Raises:
            ConfigurationError: If the tasks of an environment have no end.
        """
        check_split(split)
        sources = [env.tasks_of(split) for env in self.envs]
        joined = self._joined.get(split)
        if joined is None or joined[0] != sources:  # an environment's may have been replaced
            endless = [name for name, source in zip(self.env_names, sources, strict=True) if source.is_endless]
            if endless:
                raise ConfigurationError(f"the tasks of {', '.join(endless)} have no end, so a group cannot join them with others")
            joined = (sources, Tasks(GroupRows(self.env_names, sources), types=self.message_types))
            self._joined[split] = joined
        return joined[1]

    def has_tasks(self, split: str) -> bool:
        """Say whether some environment has tasks of this split itself."""
        return any(env.has_tasks(split) for env in self.envs)

    def set_tasks(self, split: str, rows: Any) -> None:
        """A group has no tasks of its own: replace those of its environments, and the group has them."""
        raise ConfigurationError("an EnvGroup has the tasks of its environments: replace theirs, with env_map[name].set_tasks(...)")

    # Routing

    def routed(self, task: dict[str, Any]) -> tuple[ChatEnv, dict[str, Any]]:
        """Return the environment that plays a task, and the task as it knows it.

        Raises:
            ConfigurationError: If the task names no environment of the group.
        """
        return routed_to(self.env_map, task)

    async def rollout(self, input: Row, client: Any, model: str, sampling_args: dict[str, Any] | None = None) -> State:
        """Play one episode in the environment that the task belongs to."""
        env, task = self.routed(dict(input))
        state = await env.rollout(task, client, model, sampling_args)
        return restore_route(state, route_of(input))

    async def init_state(self, input: Row, client: Any = None, model: str = "", sampling_args: dict[str, Any] | None = None) -> State:
        """Return the state that an episode of the environment that the task belongs to starts from."""
        env, task = self.routed(dict(input))
        return await env.init_state(task, client, model, sampling_args)

    @property
    def can_go_back(self) -> bool:
        """Whether the episodes of every environment can be copied in the middle."""
        return all(env.can_go_back for env in self.envs)

    def state_dict(self) -> dict[str, Any]:
        """Return what each environment has learned from its episodes, by its name."""
        return {name: env.state_dict() for name, env in self.env_map.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on with what `state_dict` returned.

        Raises:
            ConfigurationError: If it is of other environments.
        """
        if state.keys() != self.env_map.keys():
            raise ConfigurationError(f"this state does not fit: expected {', '.join(self.env_map)}, got {', '.join(map(str, state))}")
        for name, env in self.env_map.items():
            env.load_state_dict(state[name])

    def shared_parts(self) -> dict[str, Any]:
        """Return what the episodes of its environments share, those of each under its name."""
        own = {f"{name}: {part}": value for name, env in self.env_map.items() for part, value in env.shared_parts().items()}
        return {**super().shared_parts(), **own}

    def new_episode(self, session: Any = None, numbers: SeededNumbers | None = None) -> BaseEpisode:
        """A group plays none itself: the environment that a task is `routed` to does."""
        raise ConfigurationError("an EnvGroup plays no episode itself: ask the environment that routed(task) gives")

    # Configuration, which goes to the environments

    def add_rubric(self, rubric: Rubric) -> None:
        """Add a rubric to every environment."""
        for env in self.envs:
            env.add_rubric(rubric)

    def set_system_prompt(self, system_prompt: str | None) -> None:
        """Replace the system prompt, in every environment."""
        self._set("system_prompt", system_prompt)

    def set_max_seq_len(self, max_seq_len: int | None) -> None:
        """Set the most tokens of a turn's token data, in every environment."""
        self._set("max_seq_len", max_seq_len)

    def set_score_rollouts(self, score_rollouts: bool) -> None:
        """Say whether episodes are scored, in every environment."""
        self._set("score_rollouts", score_rollouts)

    def set_max_total_completion_tokens(self, max_total_completion_tokens: int) -> None:
        """End episodes once the model wrote this many tokens, in every environment that has turns."""
        self._set("max_total_completion_tokens", max_total_completion_tokens)

    def _set(self, name: str, value: Any) -> None:
        setattr(self, name, value)
        for env in self.envs:
            setter = getattr(env, f"set_{name}", None)
            if setter is None:
                setattr(env, name, value)
            else:
                setter(value)

    def check_failure_reward(self) -> None:
        """Refuse a `failure_reward`, of the group or of an environment, that is above all that an episode can earn."""
        super().check_failure_reward()
        for env in self.envs:
            env.check_failure_reward()

    def _reward_bounds(self) -> Bounds:
        each = [env.reward_range for env in self.envs]
        known = [bounds for bounds in each if bounds is not None]
        return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(each) else UNKNOWN_BOUNDS

    @property
    def requires_group_rollouts(self) -> bool:
        """Whether the rubric of some environment scores whole groups."""
        return any(env.requires_group_rollouts for env in self.envs)

    def _close(self) -> Steps[None]:
        yield from run_each([super()._close(), *(env._close() for env in self.envs)])


def restore_route(state: State, route: Sequence[str]) -> State:
    """Return a state whose input has its whole route again, as the group knows it."""
    if route:
        state["input"] = with_route(state["input"], route)
    return state
