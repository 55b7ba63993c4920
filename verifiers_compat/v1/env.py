"""`Env`: a taskset and a harness as an environment, to evaluate, to train on, and to step."""

from __future__ import annotations

import asyncio
import copy
import functools
import time
import uuid
from collections import deque
from typing import Any, ClassVar

from verifiers_compat.envs.environment import Environment
from verifiers_compat.v1.episode_state import RolloutState
from verifiers_compat.v1.first_error import keep_first_error
from verifiers_compat.v1.harness import Harness
from verifiers_compat.v1.participant import Participant
from verifiers_compat.v1.plain import system_messages
from verifiers_compat.v1.runtime import GROUP_KEY
from verifiers_compat.v1.state import Handles, State
from verifiers_compat.v1.task import Task
from verifiers_compat.v1.taskset import Taskset
from vfgym.aio.steps import Steps
from vfgym.calls import rollout_failure
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import teardown
from vfgym.messages import as_messages, content_text
from vfgym.rubrics import Rubric
from vfgym.rubrics.scoring import Score
from vfgym.runs.inputs import Example, Inputs
from vfgym.tasks import Row, Tasks

_OWN_TO_EPISODE = frozenset(
    {
        *("task", "timing", "trajectory", "trajectory_id", "example_id", "info", "error", "prompt", "completion"),
        *("input", "client", "model", "sampling_args", "tool_defs", "usage", "usage_tracker", "final_env_response"),
    }
)
"""Items that the environment's state has in its own form."""


class HarnessRubric(Rubric):
    """Shows what the signals of taskset and harness found."""

    def __init__(self, harness: Harness) -> None:
        super().__init__()
        self.harness = harness

    @property
    def metric_names(self) -> list[str]:
        """Names of the signals that measure something."""
        return self.harness.all_handlers.signal_names

    @property
    def has_group_rewards(self) -> bool:
        """Whether something has to see whole groups."""
        return self.harness.requires_group_rollouts

    @property
    def group_function_names(self) -> list[str]:
        """Names of what has to see whole groups."""
        handlers = self.harness.all_handlers
        names = [handler.name for kind in ("update", "cleanup") for handler in handlers.of(kind, "group")]
        names += [handler.name for handler in handlers.signals("group")]
        return names or ["init_group"]

    @property
    def provides_advantages(self) -> bool:
        """Whether advantages come from a function of their own."""
        return self.harness.provides_advantages

    def scoring_steps(self, state: Any) -> Steps[Score]:
        """Return what the signals found of one rollout: the harness called them at its end."""
        return _score_of(state)
        yield  # makes this a generator, as the machine expects

    def group_scoring_steps(self, states: list[Any]) -> Steps[list[Score]]:
        """Call the signals that see the group, and return what all of them found."""
        begun = [state for state in states if _has_begun(state)]
        if begun and self.harness.requires_group_rollouts:
            yield self._score_group(begun)
        return [_score_of(state) for state in states]

    async def _score_group(self, states: list[Any]) -> None:
        """Score and clean up a group; what a signal raises is the error of each of its rollouts that has none yet."""
        tasks = [state.rollout_task for state in states]
        inner: list[State] = [state.rollout_state for state in states]
        failure: Exception | None = None
        try:
            await self.harness.score_group(tasks, inner)
        except BaseException as error:
            failure = rollout_failure(error)
        finally:
            await self.harness.cleanup_group(tasks, inner)
        for episode, state in zip(states, inner, strict=True):
            episode.scoring_failure = _end_group_member(state, failure)
            show(state, episode)


def _end_group_member(state: State, failure: Exception | None) -> Exception | None:
    """Finalize the state of a group's rollout. Return what failed, where that is its first error; else note it."""
    try:
        with keep_first_error(state, "score_group", "metrics_errors"):
            if failure is not None:
                raise failure
        with keep_first_error(state, "finalize", "cleanup_errors"):
            state.finalize()
    except Exception as error:
        return error
    return None


class GroupSlots:
    """What the rollouts of one group start from; each takes one, and gives it back if it failed and may be repeated."""

    def __init__(self, size: int) -> None:
        self.key = uuid.uuid4().hex
        self.size = size
        self._begun: asyncio.Task[None] | None = None
        self._free: deque[tuple[Task, State]] = deque()

    async def take(self, taskset: Taskset, task: Task) -> tuple[Task, State]:
        """Return the task and the state that the next rollout starts from."""
        if self._begun is None:
            self._begun = asyncio.ensure_future(self._begin(taskset, task))
        await asyncio.shield(self._begun)
        return self._free.popleft() if self._free else (task, State.for_task(task))

    async def _begin(self, taskset: Taskset, task: Task) -> None:
        try:
            tasks, states = await taskset.init_group(task, self.size)
        except SystemExit as error:  # out of this task it would go through the loop
            raise rollout_failure(error) from error
        if len(tasks) != self.size or len(states) != self.size:
            raise ConfigurationError(f"init_group must return {self.size} tasks and states, got {len(tasks)} and {len(states)}")
        self._free.extend(zip((each.freeze() for each in tasks), states, strict=True))

    def give_back(self, task: Task, state: State) -> None:
        """Let another rollout start from what was taken."""
        self._free.appendleft((task, state))


class GroupInputs:
    """The inputs of a run, each task with what its group shares."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.slots = {example.example_id: GroupSlots(example.num_rollouts) for example in inputs.examples()}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inputs, name)

    def task(self, example: Example, number: int) -> dict[str, Any]:
        """Return the task of one rollout, as its own."""
        task = GroupTask(self._inputs.task(example, number))
        task.slots = self.slots[example.example_id]
        return task


class GroupTask(dict[str, Any]):
    """The task of a group's rollout. A copy is a plain dict."""

    slots: GroupSlots

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class Env(Environment):
    """A taskset and a harness as an environment.

    Each episode is a run of the harness; stepped as a Gymnasium environment, the model calls of the run are answered by
    whoever steps.
    """

    state_type: ClassVar[Any] = RolloutState

    def __init__(self, taskset: Taskset, harness: Harness | None = None, **kwargs: Any) -> None:
        """Make an environment.

        Args:
            taskset: The tasks.
            harness: What plays them; the base loop by default.
            **kwargs: Passed to `Environment` (``env_id``, ``sampling_args``, ``score_rollouts``, ...).

        Raises:
            ConfigurationError: If taskset and harness do not go together.
        """
        if not isinstance(taskset, Taskset):
            raise ConfigurationError(f"Env takes a Taskset, got {type(taskset).__name__}")
        if not isinstance(harness, Harness | None):
            raise ConfigurationError(f"Env takes a Harness as its second argument, got {type(harness).__name__}")
        for name in ("dataset", "eval_dataset", "rubric", "system_prompt", "few_shot", "parser"):
            if name in kwargs:
                raise ConfigurationError(f"Env takes no {name!r}: tasks, prompts and rewards are the taskset's and the harness's")
        self.taskset = taskset
        self.harness = Harness() if harness is None else harness
        self.harness.attach(taskset)
        splits = {split: functools.partial(_rows_of, taskset, split) for split in ("train", "eval") if taskset.has_rows(split)}
        if not splits:
            raise ConfigurationError(
                f"{type(taskset).__name__} has no tasks to make an environment of: give it source= or eval_source= (rows, or a function"
                " that returns them), or override rows()"
            )
        super().__init__(
            dataset=splits.get("train"),
            eval_dataset=splits.get("eval"),
            rubric=HarnessRubric(self.harness),
            **kwargs,
        )
        prompts = [message for source in self._prompt_sources for message in source.system_prompt]
        self.system_prompt = "\n\n".join(content_text(message["content"]) for message in prompts) or None

    @property
    def _prompt_sources(self) -> list[Participant]:
        """What may have the system prompt of all tasks: harness and taskset, or the one that ``system_prompt_merge`` names."""
        merge = self.harness.config.system_prompt_merge
        sources: dict[str, Participant] = {"harness": self.harness, "taskset": self.taskset}
        return [source for name, source in sources.items() if merge in ("reject", "concat", name)]

    @functools.cached_property
    def _prompted(self) -> Participant | None:
        """The one that has the system prompt of all tasks, or gets it; None where that would not be all that the model is told."""
        given = [source for source in self._prompt_sources if source.system_prompt]
        splits = {"train": self.taskset.rows, "eval": self.taskset.eval_rows}
        is_merged = len(self._prompt_sources) > 1
        has_own = is_merged and any(row.get("system_prompt") for split in splits if self.has_tasks(split) for row in splits[split]())
        return None if has_own or len(given) > 1 else next(iter(given or self._prompt_sources), None)

    def set_system_prompt(self, system_prompt: str | None) -> None:
        """Replace the system prompt where it is: in the taskset or in the harness, which gets it where neither has one.

        Raises:
            ConfigurationError: If there are several, as where tasks bring their own.
        """
        if self._prompted is None:
            raise ConfigurationError(
                "the system prompt cannot be replaced, since there are several (of the taskset, the harness, the tasks): leave one, or name"
                " the 'taskset' or the 'harness' in system_prompt_merge"
            )
        self._prompted.system_prompt = system_messages(system_prompt or None)
        self.system_prompt = system_prompt

    def _tasks_of_rows(self, rows: Any) -> Tasks:
        return Tasks(rows, types=self.message_types, dropped=self.dropped_columns)  # the harness puts the system prompt before a prompt

    async def rollout(self, input: Row, client: Any, model: str, sampling_args: dict[str, Any] | None = None) -> Any:
        """Run the harness on one task, and return the state of the episode."""
        episode: Any = await self.init_state(input, client, model, sampling_args)
        task = self.taskset.to_task(input)
        slots = input.slots if isinstance(input, GroupTask) else GroupSlots(1)
        task, state = await slots.take(self.taskset, task)
        as_it_was = copy.deepcopy(state)
        generation = episode["timing"].generation
        generation.start = time.time()
        state.handles = Handles(
            client=episode["client"],
            model=model or None,
            sampling_args=episode["sampling_args"],
            outer=episode,
            max_seq_len=self.max_seq_len,
        )
        controls: dict[str, Any] = {"score_rollout": self.score_rollouts}
        if self.requires_group_rollouts:
            controls[GROUP_KEY] = slots.key
        state["runtime"] = {**state.get("runtime", {}), **controls}
        episode.rollout_task, episode.rollout_state = task, state
        has_gone_well = False
        try:
            await self.harness.run(task, state)
            has_gone_well = state.failure is None
        finally:
            if not has_gone_well:
                slots.give_back(task, as_it_was)
            generation.end = generation.start + state["timing"]["generation_ms"] / 1e3
            show(state, episode)
        return episode

    async def _generate_outputs(self, inputs: Any, client: Any, settings: Any, **how: Any) -> Any:
        in_groups = GroupInputs(inputs)
        try:
            return await super()._generate_outputs(in_groups, client, settings, **how)
        finally:
            for slots in in_groups.slots.values():  # of a group none of whose rollouts could be scored
                await self.harness.release_group(slots.key)

    @teardown
    async def tear_down_harness(self) -> None:
        """Call the teardown handlers of taskset and harness."""
        await self.harness.teardown()


def _rows_of(taskset: Taskset, split: str) -> list[dict[str, Any]]:
    rows = taskset.dataset_rows(split)
    if not rows:
        name = "source" if split == "train" else "eval_source"
        raise ConfigurationError(f"the {name} of {type(taskset).__name__} has no rows: an environment needs at least one task")
    return rows


def show(state: State, episode: Any) -> None:
    """Bring the state of an episode to what the rollout's own state says."""
    types = Env.message_types
    for key, value in state.items():
        if key not in _OWN_TO_EPISODE:
            episode[key] = value
    episode["prompt"] = as_messages(state.get("prompt") or [], types, name="prompt")
    episode["completion"] = as_messages(state["completion"] or [], types, name="completion")
    episode["error"] = state.failure
    for step, own in zip(episode["trajectory"], state["trajectory"], strict=False):
        step["reward"], step["advantage"] = own["reward"], own["advantage"]


def _has_begun(episode: Any) -> bool:
    """Say whether the harness got to play: its task may be none, or the group's tasks not what they should be."""
    return hasattr(episode, "rollout_state")


def _score_of(episode: Any) -> Score:
    if not _has_begun(episode):
        return Score()
    state: State = episode.rollout_state
    return Score(float(state["reward"]), dict(state["metrics"]), getattr(episode, "scoring_failure", None))
