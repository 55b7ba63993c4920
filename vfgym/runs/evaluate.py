"""`evaluate`: an agent plays the tasks of an environment, many episodes at once, and every one of them is kept."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vfgym.agents.base import Agent, per_episode
from vfgym.agents.human import HumanAgent
from vfgym.agents.loading import agent_name, as_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import run_to_end
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
from vfgym.runs.spending import Budget, CacheLike, LimitsLike, PricesLike, RolloutLimitsLike, RunSpending
from vfgym.runs.step_player import StepPlayer, StepPlayerConfig

logger = logging.getLogger(__name__)


def evaluate(
    env: EnvLike,
    agent: Agent | str,
    *,
    num_examples: int = -1,
    rollouts_per_example: int = 1,
    max_concurrent: int = 64,
    seed: int = 0,
    results_path: str | Path | None = None,
    save_results: bool = False,
    resume: bool = False,
    redo_errors: bool = False,
    state_columns: Iterable[str] = (),
    tags: Iterable[str] = (),
    split: Literal["train", "eval"] = "eval",
    example_ids: Iterable[int] | None = None,
    independent_scoring: bool | None = None,
    both_seats: bool = False,
    max_retries: int = 0,
    strict: bool = False,
    pass_threshold: float | None = None,
    env_id: str | None = None,
    model: str | None = None,
    env_args: dict[str, Any] | None = None,
    limits: LimitsLike = None,
    limits_each: RolloutLimitsLike = None,
    prices: PricesLike = None,
    cache: CacheLike = None,
    progress: bool = True,
    on_start: StartCallback | None = None,
    on_progress: ProgressCallback | None = None,
) -> GenerateOutputs:
    """Let an agent play the evaluation tasks of an environment.

    Works in a script, in threads, and inside a running event loop (a notebook cell). Ctrl-C stops it, closes what it made,
    and leaves the rollouts that were finished on disk.

    Args:
        env: A registered id, a spec, a chat environment (as it is, or inside wrappers as `gymnasium.make` returns it), or a
            function that makes one. An environment is played on forks of it, inside wrappers rebuilt like its own, and is
            not closed; a function is called once for each worker.
        agent: A function ``(observation, info) -> message``, plain or async, an object with ``for_episode(env)``, or a name
            (see `vfgym.agents.load_agent`).
        num_examples: Play the first so many evaluation tasks; -1 for all of them.
        rollouts_per_example: Episodes of each task.
        max_concurrent: Most episodes at once; -1 for no limit. A human is asked in one after the other.
        seed: Seed of the run. Each rollout's random numbers follow from it, whatever runs beside it.
        results_path: Write ``results.jsonl`` and ``metadata.json`` to this directory.
        save_results: Write them to a new directory below ``./outputs/evals``, where no `results_path` is given.
        resume: Go on with the run whose results `results_path` holds, if there are any: play only what is missing, by the
            fingerprints of the tasks. The settings must agree; `num_examples` may have grown. An example whose group is
            scored together is played again as a whole where a rollout of it is missing.
        redo_errors: Play rollouts of that run that have an error again; they count as done otherwise.
        state_columns: Items of each episode's state to keep in its row.
        tags: Words by which the run is found again: the metadata have them, with those that a run that is resumed had.
        split: Play these tasks: ``"eval"``, or ``"train"``.
        example_ids: Play the tasks with these ids, in this order; instead of `num_examples`.
        independent_scoring: False scores the rollouts of each example together, so that they have advantages (the reward minus the
            group's mean), and keeps them together. None does so where a reward function needs it; True never does.
        both_seats: Play each game for two players twice, once from either seat and with the same seed. A rollout is then a pair of
            rows, with ``player`` and ``pair``, and there are twice as many of each task.
        max_retries: How often a rollout is repeated where the infrastructure or an unusable response of the model ended it. An attempt
            that is repeated is not scored.
        strict: Raise the first exception that is not a `vfgym.errors.Error`, instead of recording it as its rollout's
            error.
        pass_threshold: Reward from which a rollout passes, in pass@k; the environment's own by default.
        env_id: Name of the environment in the results; its registered id by default.
        model: Name of the agent in the results; its own by default.
        env_args: Arguments to make the environment with, where an id, a spec or a function is given.
        limits: What the run may spend, such as ``{"tokens": 100_000, "cost": 2.5, "time": 600, "errors": 10, "requests": 500}`` (time in
            seconds; judges count). No request and no rollout begins where one is used up: then rollouts that are running are given up,
            what was finished is returned, and ``metadata["stopped_by"]`` says which limit it was. A run that is resumed counts on.
        limits_each: What each rollout may spend, such as ``{"tokens": 2000, "turns": 8, "time": 60}``. It cuts an episode, with
            the stop condition ``limit_reached``. What was cut is scored, and counts with at most the environment's ``failure_reward``.
        prices: What models cost: a TOML file or a dict with a table for each model, ``input`` and ``output`` for a million tokens.
        cache: Whether answers of models are kept and not asked for twice (see `vfgym.clients.cache`); or the file.
        progress: Whether progress is shown: a bar on a terminal, else a line now and then. A human is shown none.
        on_start: Called before the first rollout, with how far the run is: not at all, or as far as an earlier run went.
        on_progress: Called with each row as it is finished, and with how far the run is.

    Returns:
        ``{"outputs": rows, "metadata": ...}``, the rows by example and rollout.

    Raises:
        ConfigurationError: If the environment, the agent or an argument cannot work, or a run cannot be resumed with it.
        ResultsError: If results cannot be written; its ``outputs`` are what was finished.
        vfgym.agents.EndOfInput: If a human ended the input.
    """
    run = aevaluate(
        env,
        agent,
        num_examples=num_examples,
        rollouts_per_example=rollouts_per_example,
        max_concurrent=max_concurrent,
        seed=seed,
        results_path=results_path,
        save_results=save_results,
        resume=resume,
        redo_errors=redo_errors,
        state_columns=state_columns,
        tags=tags,
        split=split,
        example_ids=example_ids,
        independent_scoring=independent_scoring,
        both_seats=both_seats,
        max_retries=max_retries,
        strict=strict,
        pass_threshold=pass_threshold,
        env_id=env_id,
        model=model,
        env_args=env_args,
        limits=limits,
        limits_each=limits_each,
        prices=prices,
        cache=cache,
        progress=progress,
        on_start=on_start,
        on_progress=on_progress,
    )
    return run_to_end(run)


async def aevaluate(
    env: EnvLike,
    agent: Agent | str,
    *,
    num_examples: int = -1,
    rollouts_per_example: int = 1,
    max_concurrent: int = 64,
    seed: int = 0,
    results_path: str | Path | None = None,
    save_results: bool = False,
    resume: bool = False,
    redo_errors: bool = False,
    state_columns: Iterable[str] = (),
    tags: Iterable[str] = (),
    split: Literal["train", "eval"] = "eval",
    example_ids: Iterable[int] | None = None,
    independent_scoring: bool | None = None,
    both_seats: bool = False,
    max_retries: int = 0,
    strict: bool = False,
    pass_threshold: float | None = None,
    env_id: str | None = None,
    model: str | None = None,
    env_args: dict[str, Any] | None = None,
    limits: LimitsLike = None,
    limits_each: RolloutLimitsLike = None,
    prices: PricesLike = None,
    cache: CacheLike = None,
    progress: bool = True,
    on_start: StartCallback | None = None,
    on_progress: ProgressCallback | None = None,
) -> GenerateOutputs:
    """Let an agent play the evaluation tasks of an environment, on the running event loop (see `evaluate`)."""
    num_examples, rollouts_per_example, max_concurrent, max_retries, seed = check_counts(
        num_examples, rollouts_per_example, max_concurrent, max_retries, seed
    )
    columns, tag_names = _names("state_columns", state_columns), _names("tags", tags)
    _check_resume(resume, redo_errors, results_path)
    given, agent = agent, as_agent(agent)
    asked = [agent.name] if isinstance(agent, ModelAgent) else []
    budget = Budget.of(limits, limits_each, prices, cache, asked)
    if isinstance(agent, HumanAgent):
        max_concurrent, progress = 1, False
    replicas = Replicas()
    try:
        definition = await bridge(replicas.open, env, dict(env_args or {}))
        in_groups = _scores_in_groups(definition, independent_scoring)
        pairs = await bridge(find_pairs, definition, rollouts_per_example) if both_seats else None
        rollouts_per_example *= 1 if pairs is None else 2
        inputs = await bridge(find_inputs, definition, split, num_examples, rollouts_per_example, example_ids)
        if num_examples > inputs.num_examples:
            logger.warning("num_examples is %d, and there are %d examples: all of them are played", num_examples, inputs.num_examples)
        identity = _identity(definition, agent, env_id, env_args, model or agent_name(given))
        declared = FailureRewards(definition, split)
        path = _path_to_save(results_path, save_results, identity)
        begun = earlier_metadata(path if resume else None)
        run = Run(
            **identity,
            num_examples=inputs.num_examples,
            rollouts_per_example=rollouts_per_example,
            pass_threshold=definition.pass_threshold if pass_threshold is None else pass_threshold,
            seed=seed,
            state_columns=columns,
            max_concurrent=max_concurrent,
            path_to_save=path,
            reward_range=declared.counted_range,
            limits_each=budget.limits_each.given(),
            both_seats=pairs is not None,
            tags=list(dict.fromkeys([*begun.get("tags", ()), *tag_names])),
        )
        fingerprint = functools.cache(functools.partial(task_fingerprint, inputs))
        groups = [GroupJob(example, range(example.num_rollouts)) for example in inputs.examples()]
        earlier = None
        if resume and run.path_to_save is not None:
            load = functools.partial(find_remaining, run.path_to_save, run, groups, lambda example, number: fingerprint(example))
            types = definition.message_types
            groups, earlier = await bridge(load, in_groups=in_groups, redo_errors=redo_errors, types=types, declared=declared)
            if earlier is not None:
                run = dataclasses.replace(run, earlier_seconds=earlier.seconds)
        seed_of = Seeds(seed).of if pairs is None else pairs.seed_of(Seeds(seed).of)
        config = StepPlayerConfig(per_episode(agent), split, seed_of, declared, fingerprint, max_retries, policy=agent, pairs=pairs)
        defers_scoring = definition.requires_group_rollouts or (in_groups and definition.rubric.provides_advantages)

        async def new_player() -> StepPlayer:
            return StepPlayer(config, await bridge(replicas.take, defers_scoring=defers_scoring))

        done = [] if earlier is None else earlier.rows
        num_workers = min(n for n in (inputs.num_rollouts - len(done), replicas.limit_workers(max_concurrent)) if n != -1)
        recorded = recorded_spending(begun)
        spending = RunSpending(budget, num_workers, done, run.earlier_seconds, *asked, recorded=recorded)
        run = dataclasses.replace(run, spent=spending.spent)
        progress_report = report_progress(
            inputs.num_rollouts, run.title, is_displayed=progress, callback=on_progress, on_start=on_start, done=done
        )
        with spending.in_force(), Recorder(run, earlier, declared=declared) as recorder, progress_report as on_row:

            def report(rows: list[RolloutOutput]) -> None:
                spending.note_errors(rows)
                for row in rows:
                    on_row(row)

            recorder.on_rows = report
            engine = Engine(new_player, in_groups=in_groups, strict=strict, spending=spending)
            return recorder.finish(await spending.play(engine.play(groups, num_workers, recorder.add)))
    finally:
        await bridge(replicas.close)


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


def _scores_in_groups(definition: ChatEnv, independent_scoring: bool | None) -> bool:
    """Say whether the rollouts of an example are scored together."""
    if independent_scoring and definition.requires_group_rollouts:
        names = ", ".join(definition.rubric.group_function_names)
        raise ConfigurationError(f"{names} scores whole groups, so rollouts cannot be scored alone: leave out independent_scoring")
    return definition.requires_group_rollouts if independent_scoring is None else not independent_scoring


def check_counts(
    num_examples: Any, rollouts_per_example: Any, max_concurrent: Any, max_retries: Any, seed: Any
) -> tuple[int, int, int, int, int]:
    """Return the arguments of a run that count something, as ``int``.

    Raises:
        ConfigurationError: If one of them is not what it may be.
    """
    return (
        check_integer("num_examples", num_examples, "a positive integer, or -1 for no limit", least=1, or_all=True),
        check_integer("rollouts_per_example", rollouts_per_example, "a positive integer", least=1),
        check_integer("max_concurrent", max_concurrent, "a positive integer, or -1 for no limit", least=1, or_all=True),
        check_integer("max_retries", max_retries, "an integer from 0", least=0),
        check_integer("seed", seed, "an integer from 0", least=0),
    )


def check_integer(name: str, value: Any, allowed: str, *, least: int, or_all: bool = False) -> int:
    """Return an argument that counts something as an ``int``, which NumPy's integers are not.

    Args:
        name: Name of the argument.
        value: What was given for it.
        allowed: What may be given, in words.
        least: The least that it may be.
        or_all: Whether it may be -1 as well.
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or (value < least and not (or_all and value == -1)):
        raise ConfigurationError(f"{name} must be {allowed}, got {value!r}")
    return int(value)


_EXAMPLES = {"state_columns": "trajectory", "tags": "baseline"}


def _names(name: str, value: Any) -> list[str]:
    """Return an argument that lists names as a list; it may be given as anything that can be gone over, once."""
    names = None if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if names is None or not all(isinstance(each, str) and each for each in names):
        given = value if names is None else names
        raise ConfigurationError(f"{name} must be a list of names, such as ['{_EXAMPLES[name]}'], got {given!r}")
    return names


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
