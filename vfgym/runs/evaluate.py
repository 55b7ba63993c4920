"""`evaluate`: an agent plays the tasks of an environment, many episodes at once, and every one of them is kept."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

from vfgym.agents.base import Agent, per_episode
from vfgym.agents.human import HumanAgent
from vfgym.agents.loading import agent_name, as_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import blocking
from vfgym.aio.bridge import bridge
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs, RolloutOutput, Run
from vfgym.results.files import default_results_path
from vfgym.results.metadata import version_info
from vfgym.results.resume import earlier_metadata, recorded_spending
from vfgym.runs.engine import Engine, GroupJob
from vfgym.runs.failure_rewards import FailureRewards
from vfgym.runs.inputs import Seeds, TaskInputs
from vfgym.runs.pairs import find_pairs
from vfgym.runs.progress import ProgressCallback, StartCallback, report_progress
from vfgym.runs.recorder import Recorder
from vfgym.runs.remaining import find_remaining, task_fingerprint
from vfgym.runs.replicas import EnvLike, Replicas
from vfgym.runs.spec import RunArguments, RunSettings, RunSpec, close_agent, describe, takes_settings
from vfgym.runs.spending import Budget, RunSpending
from vfgym.runs.step_player import StepPlayer, StepPlayerConfig

logger = logging.getLogger(__name__)


@takes_settings
async def aevaluate(
    env: EnvLike | RunSpec,
    agent: Agent | str | None = None,
    *,
    env_id: str | None = None,
    model: str | None = None,
    env_args: dict[str, Any] | None = None,
    results_path: str | Path | None = None,
    save_results: bool = False,
    resume: bool = False,
    redo_errors: bool = False,
    progress: bool = True,
    on_start: StartCallback | None = None,
    on_progress: ProgressCallback | None = None,
    **settings: Unpack[RunArguments],
) -> GenerateOutputs:
    """Let an agent play the evaluation tasks of an environment; `evaluate` does so in code that is not async.

    `evaluate` works in a script, in threads, and inside a running event loop (a notebook cell). Ctrl-C stops it, closes what it made,
    and leaves the rollouts that were finished on disk.

    Args:
        env: A registered id, a spec, a chat environment (as it is, or inside wrappers as `gymnasium.make` returns it), or a
            function that makes one. An environment is played on forks of it, inside wrappers rebuilt like its own, and is
            not closed; a function is called once for each worker. Or a `RunSpec`, which says who plays, and how.
        agent: A function ``(observation, info) -> message``, plain or async, an object with ``for_episode(env)``, or a name
            (see `vfgym.agents.load_agent`). With a `RunSpec`: the agent that it names, if that is made already.
        env_id: Name of the environment in the results; its registered id by default.
        model: Name of the agent in the results; its own by default.
        env_args: Arguments to make the environment with, where an id, a spec or a function is given.
        results_path: Write ``results.jsonl`` and ``metadata.json`` to this directory.
        save_results: Write them to a new directory below ``./outputs/evals``, where no `results_path` is given.
        resume: Go on with the run whose results `results_path` holds, if there are any: play only what is missing, by the
            fingerprints of the tasks. The settings must agree; `num_examples` may have grown. An example whose group is
            scored together is played again as a whole where a rollout of it is missing.
        redo_errors: Play rollouts of that run that have an error again; they count as done otherwise.
        progress: Whether progress is shown: a bar on a terminal, else a line now and then. A human is shown none.
        on_start: Called before the first rollout, with how far the run is: not at all, or as far as an earlier run went.
        on_progress: Called with each row as it is finished, and with how far the run is.
        **settings: The fields of `RunSettings`: ``num_examples``, ``rollouts_per_example``, ``max_concurrent``, ``seed``, ``split``,
            ``limits``, ``cache`` and so on.

    Returns:
        ``{"outputs": rows, "metadata": ...}``, the rows by example and rollout.

    Raises:
        ConfigurationError: If the environment, the agent or an argument cannot work, or a run cannot be resumed with it.
        UnknownArgument: If there is no such argument.
        ResultsError: If results cannot be written; its ``outputs`` are what was finished.
        vfgym.agents.EndOfInput: If a human ended the input.
    """
    _check_resume(resume, redo_errors, results_path)
    if isinstance(env, RunSpec) and agent is None:
        made = env.make_agent()
        try:
            return await aevaluate(
                env,
                made,
                env_id=env_id,
                model=model,
                env_args=env_args,
                results_path=results_path,
                save_results=save_results,
                resume=resume,
                redo_errors=redo_errors,
                progress=progress,
                on_start=on_start,
                on_progress=on_progress,
                **settings,
            )
        finally:
            await close_agent(made)
    if agent is None:
        raise ConfigurationError("say who plays: give an agent, such as 'random', or a function (observation, info) -> message")
    spec: RunSpec | None = None
    if isinstance(env, RunSpec):
        how: RunSettings = (spec := _without_others(env, {"env_id": env_id, "model": model, "env_args": env_args, **settings}))
        env, env_args, model = spec.env_id, spec.env_args, spec.name
    else:
        how = RunSettings.of({**settings}, "evaluate()")
    given, agent = agent, as_agent(agent)
    asked = [agent.name] if isinstance(agent, ModelAgent) else []
    budget = Budget.of(how.limits, how.limits_each, how.prices, how.cache, asked)
    max_concurrent, rollouts_per_example = how.max_concurrent, how.rollouts_per_example
    if isinstance(agent, HumanAgent):
        max_concurrent, progress = 1, False
    replicas = Replicas()
    try:
        spec = spec or describe(env, given, agent, env_args, model, how)
        definition = await bridge(replicas.open, env, dict(env_args or {}))
        in_groups = scores_in_groups(definition, how.independent_scoring)
        pairs = await bridge(find_pairs, definition, rollouts_per_example) if how.both_seats else None
        rollouts_per_example *= 1 if pairs is None else 2
        inputs = await bridge(find_inputs, definition, how.split, how.num_examples, rollouts_per_example, how.example_ids)
        if how.num_examples > inputs.num_examples:
            logger.warning("num_examples is %d, and there are %d examples: all of them are played", how.num_examples, inputs.num_examples)
        identity = _identity(definition, agent, env_id, env_args, model or agent_name(given))
        declared = FailureRewards(definition, how.split)
        path = _path_to_save(results_path, save_results, identity)
        begun = earlier_metadata(path if resume else None)
        run = Run(
            **identity,
            num_examples=inputs.num_examples,
            rollouts_per_example=rollouts_per_example,
            pass_threshold=definition.pass_threshold if how.pass_threshold is None else how.pass_threshold,
            seed=how.seed,
            state_columns=how.state_columns,
            max_concurrent=max_concurrent,
            path_to_save=path,
            reward_range=declared.counted_range,
            limits_each=budget.limits_each.given(),
            both_seats=pairs is not None,
            tags=list(dict.fromkeys([*begun.get("tags", ()), *how.tags])),
            spec=None if spec is None else spec.to_json(),
        )
        fingerprint = functools.cache(functools.partial(task_fingerprint, inputs))
        groups = groups_of(inputs, how, in_groups=in_groups)
        num_rollouts = sum(len(group.numbers) for group in groups)
        run = dataclasses.replace(run, shard=how.shard, num_rollouts=num_rollouts)
        earlier = None
        if resume and run.path_to_save is not None:
            load = functools.partial(find_remaining, run.path_to_save, run, groups, lambda example, number: fingerprint(example))
            types = definition.message_types
            groups, earlier = await bridge(load, in_groups=in_groups, redo_errors=redo_errors, types=types, declared=declared)
            if earlier is not None:
                run = dataclasses.replace(run, earlier_seconds=earlier.seconds)
        seed_of = Seeds(how.seed).of if pairs is None else pairs.seed_of(Seeds(how.seed).of)
        config = StepPlayerConfig(per_episode(agent), how.split, seed_of, declared, fingerprint, how.max_retries, policy=agent, pairs=pairs)
        defers_scoring = definition.requires_group_rollouts or (in_groups and definition.rubric.provides_advantages)

        async def new_player() -> StepPlayer:
            return StepPlayer(config, await bridge(replicas.take, defers_scoring=defers_scoring))

        done = [] if earlier is None else earlier.rows
        num_workers = min(n for n in (num_rollouts - len(done), replicas.limit_workers(max_concurrent)) if n != -1)
        recorded = recorded_spending(begun)
        spending = RunSpending(budget, num_workers, done, run.earlier_seconds, *asked, recorded=recorded)
        run = dataclasses.replace(run, spent=spending.spent)
        progress_report = report_progress(
            num_rollouts, run.title, is_displayed=progress, callback=on_progress, on_start=on_start, done=done
        )
        with spending.in_force(), Recorder(run, earlier, declared=declared) as recorder, progress_report as on_row:

            def report(rows: list[RolloutOutput]) -> None:
                spending.note_errors(rows)
                for row in rows:
                    on_row(row)

            recorder.on_rows = report
            engine = Engine(new_player, in_groups=in_groups, strict=how.strict, spending=spending)
            return recorder.finish(await spending.play(engine.play(groups, num_workers, recorder.add)))
    finally:
        await bridge(replicas.close)


evaluate = blocking(aevaluate, "evaluate")


def _without_others(spec: RunSpec, others: Mapping[str, Any]) -> RunSpec:
    """Return a spec, which is all that is said of a run."""
    twice = [name for name, value in others.items() if value is not None]
    if twice:
        raise ConfigurationError(
            f"the spec says {twice[0]} itself: write spec.model_copy(update={{{twice[0]!r}: ...}}), or RunSpec.of, for another one"
        )
    return spec


def _path_to_save(results_path: str | Path | None, save_results: bool, identity: dict[str, Any]) -> Path | None:
    if results_path is not None:
        return Path(results_path)
    return default_results_path(identity["env_id"], identity["model"], is_model=identity["is_model"]) if save_results else None


def _check_resume(resume: bool, redo_errors: bool, results_path: object) -> None:
    if resume and results_path is None:
        raise ConfigurationError("resume needs results_path: the directory of the run that is to be resumed")
    if redo_errors and not resume:
        raise ConfigurationError("redo_errors says what a resumed run plays again: give resume=True too")


def _identity(definition: ChatEnv, agent: Agent, env_id: str | None, env_args: dict[str, Any] | None, model: str) -> dict[str, Any]:
    """Return what a run's metadata say of the environment and of who answers."""
    spec = definition.spec
    asked = agent if isinstance(agent, ModelAgent) else None
    return {
        "env_id": env_id or (spec.id if spec is not None else definition.env_id) or type(definition).__name__,
        "env_args": dict(env_args or (spec.kwargs if spec is not None else definition.env_args)),
        "model": model,
        "version_info": version_info(definition),
        "is_model": asked is not None,
        "base_url": "" if asked is None else asked.base_urls,
        "sampling_args": {} if asked is None else dict(asked.sampling_args),
    }


def groups_of(inputs: TaskInputs, how: RunSettings, *, in_groups: bool) -> list[GroupJob]:
    """Return what a run plays, or a part of it.

    Raises:
        ConfigurationError: If there is nothing in the part.
    """
    groups = [GroupJob(example, range(example.num_rollouts)) for example in inputs.examples()]
    if how.shard is None:
        return groups
    return part_of(groups, how.shard, together=inputs.rollouts_per_example if in_groups else 2 if how.both_seats else 1)


def part_of(groups: list[GroupJob], shard: tuple[int, int], together: int) -> list[GroupJob]:
    """Return the groups of one part of a run, each with the numbers that belong to it.

    Args:
        groups: All groups, in order.
        shard: ``(i, n)``: the part has what stands at the places which, divided by n, leave i.
        together: How many rollouts of a group, one after the other, have one place.

    Raises:
        ConfigurationError: If there is nothing in it.
    """
    part, place = [], 0
    for group in groups:
        numbers = [number for number in group.numbers if (place + number // together) % shard[1] == shard[0]]
        place += -(-len(group.numbers) // together)
        if numbers:
            part.append(GroupJob(group.example, numbers))
    if not part:
        raise ConfigurationError(f"there is nothing to play in shard {shard[0]} of {shard[1]}: the run can be divided into {place} parts")
    return part


def scores_in_groups(definition: ChatEnv, independent_scoring: bool | None) -> bool:
    """Say whether the rollouts of an example are scored together."""
    if independent_scoring and definition.requires_group_rollouts:
        names = ", ".join(definition.rubric.group_function_names)
        raise ConfigurationError(f"{names} scores whole groups, so rollouts cannot be scored alone: leave out independent_scoring")
    return definition.requires_group_rollouts if independent_scoring is None else not independent_scoring


def find_inputs(
    definition: ChatEnv, split: Any, num_examples: int, rollouts_per_example: int, example_ids: Iterable[int] | None
) -> TaskInputs:
    """Return what is played.

    Raises:
        ConfigurationError: If there is nothing to play, or no end of it, or ids do not fit.
    """
    tasks = definition.tasks_of(split)
    if example_ids is not None:
        return TaskInputs(tasks, num_examples, rollouts_per_example, list(example_ids))
    if tasks.is_endless and num_examples == -1:
        raise ConfigurationError(f"the tasks of {type(definition).__name__} have no end: say how many to play with num_examples")
    available = len(tasks)
    if available == 0:
        raise ConfigurationError(f"{type(definition).__name__} has no tasks to evaluate: its dataset is empty")
    inputs = TaskInputs(tasks, num_examples, rollouts_per_example)
    twice = next((id for id, times in Counter(example.example_id for example in inputs.examples()).items() if times > 1), None)
    if twice is not None:
        raise ConfigurationError(
            f"several tasks have the same example_id, {twice!r} among them: give each its own, or leave the ids out to count from 0"
        )
    return inputs
