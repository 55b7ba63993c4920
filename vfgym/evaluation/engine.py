"""The engine: a fixed number of workers takes rollouts from one iterator and plays each to its end."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vfgym.agents.base import Agent, per_episode
from vfgym.agents.human import HumanAgent
from vfgym.agents.loading import agent_name, as_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import run_to_end, wait
from vfgym.aio.bridge import bridge
from vfgym.aio.loop_watch import watched_loop
from vfgym.aio.steps import all_of
from vfgym.clients import is_permanent_refusal
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.evaluation.counting import Declared
from vfgym.evaluation.play import Begin, Rollout, play
from vfgym.evaluation.progress import ProgressCallback, reporting
from vfgym.evaluation.recorder import Recorder
from vfgym.evaluation.replicas import EnvLike, Replicas
from vfgym.results import Earlier, GenerateOutputs, ResultsError, ResultsWriter, Run, Slot, fingerprint_of
from vfgym.results.files import default_results_path
from vfgym.results.metadata import version_info

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
    strict: bool = False,
    pass_threshold: float | None = None,
    env_id: str | None = None,
    model: str | None = None,
    env_args: dict[str, Any] | None = None,
    progress: bool = True,
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
        strict: Raise the first exception that is not a `vfgym.errors.Error`, instead of recording it as its rollout's
            error.
        pass_threshold: Reward from which a rollout passes, in pass@k; the environment's own by default.
        env_id: Name of the environment in the results; its registered id by default.
        model: Name of the agent in the results; its own by default.
        env_args: Arguments to make the environment with, where an id, a spec or a function is given.
        progress: Whether progress is shown: a bar on a terminal, else a line now and then. A human is shown none.
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
        strict=strict,
        pass_threshold=pass_threshold,
        env_id=env_id,
        model=model,
        env_args=env_args,
        progress=progress,
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
    strict: bool = False,
    pass_threshold: float | None = None,
    env_id: str | None = None,
    model: str | None = None,
    env_args: dict[str, Any] | None = None,
    progress: bool = True,
    on_progress: ProgressCallback | None = None,
) -> GenerateOutputs:
    """Let an agent play the evaluation tasks of an environment, on the running event loop (see `evaluate`)."""
    num_examples = _integer("num_examples", num_examples, "a positive integer, or -1 for no limit", least=1, or_all=True)
    rollouts_per_example = _integer("rollouts_per_example", rollouts_per_example, "a positive integer", least=1)
    max_concurrent = _integer("max_concurrent", max_concurrent, "a positive integer, or -1 for no limit", least=1, or_all=True)
    seed = _integer("seed", seed, "an integer from 0", least=0)
    columns = _names("state_columns", state_columns)
    if resume and results_path is None:
        raise ConfigurationError("resume needs results_path: the directory of the run that is to be resumed")
    if redo_errors and not resume:
        raise ConfigurationError("redo_errors says what a resumed run plays again: give resume=True too")
    model = model or agent_name(agent)
    agent = as_agent(agent)
    if isinstance(agent, HumanAgent):
        max_concurrent, progress = 1, False
    begin = per_episode(agent)
    replicas = Replicas()
    try:
        definition = await bridge(replicas.open, env, dict(env_args or {}))
        spec = definition.spec
        example_ids = await bridge(_example_ids, definition, num_examples)
        name = env_id or (spec.id if spec is not None else definition.env_id) or type(definition).__name__
        is_model = isinstance(agent, ModelAgent)
        path = (
            Path(results_path)
            if results_path is not None
            else default_results_path(name, model, is_model=is_model)
            if save_results
            else None
        )
        run = Run(
            env_id=name,
            env_args=dict(env_args or (spec.kwargs if spec is not None else definition.env_args)),
            model=model,
            num_examples=len(example_ids),
            rollouts_per_example=rollouts_per_example,
            pass_threshold=definition.pass_threshold if pass_threshold is None else pass_threshold,
            version_info=version_info(definition),
            seed=seed,
            state_columns=columns,
            max_concurrent=max_concurrent,
            path_to_save=path,
            is_model=is_model,
            base_url=agent.base_urls if isinstance(agent, ModelAgent) else "",
            sampling_args=dict(agent.sampling_args) if isinstance(agent, ModelAgent) else {},
        )
        declared = Declared(definition)
        fingerprint = _fingerprints(definition)
        earlier = None
        if resume and path is not None:
            slots = (
                Slot(rollout.example_id, rollout.number, fingerprint(rollout.example_id))
                for rollout in _rollouts(seed, rollouts_per_example, example_ids)
            )
            whole_groups = definition.requires_group_rollouts
            types = definition.message_types
            earlier = await bridge(
                Earlier.load,
                path,
                run,
                slots,
                redo_errors=redo_errors,
                whole_groups=whole_groups,
                types=types,
                failure_reward=declared.failure_reward,
            )
            if earlier is not None:
                run = dataclasses.replace(run, earlier_seconds=earlier.seconds)
        rollouts = _rollouts(seed, rollouts_per_example, example_ids)
        return await _carry_out(
            run,
            definition,
            declared,
            replicas,
            rollouts,
            begin,
            fingerprint,
            earlier,
            strict=strict,
            progress=progress,
            on_progress=on_progress,
        )
    finally:
        await bridge(replicas.close)


async def _carry_out(
    run: Run,
    definition: ChatEnv,
    declared: Declared,
    replicas: Replicas,
    rollouts: Iterator[Rollout],
    begin: Begin,
    fingerprint: Callable[[int], str | None],
    earlier: Earlier | None,
    *,
    strict: bool,
    progress: bool,
    on_progress: ProgressCallback | None,
) -> GenerateOutputs:
    """Play and record all rollouts that are not done yet, and return what came of them."""
    total = run.num_examples * run.rollouts_per_example
    done = [] if earlier is None else earlier.rows
    to_play = (rollout for rollout in rollouts if earlier is None or earlier.row_of(rollout.example_id, rollout.number) is None)
    with contextlib.ExitStack() as stack:
        writer = None
        if run.path_to_save is not None:
            writer = stack.enter_context(ResultsWriter(run.path_to_save, run.metadata(done), earlier=earlier))
        title = f"{run.env_id} {run.model}"
        on_row = stack.enter_context(reporting(total, title, is_shown=progress, callback=on_progress, done=done))
        recorder = Recorder(definition, declared, run, writer, on_row, done)

        def work() -> None:
            replica = replicas.take()
            for rollout in to_play:
                # Taken before the episode, whose hooks may write to what it starts from.
                played = play(replica, begin, rollout._replace(fingerprint=fingerprint(rollout.example_id)))
                if played.error is not None and (strict or is_permanent_refusal(played.error)):
                    raise played.error
                recorder.add(played)
                wait(asyncio.sleep(0))  # where nothing else waits, other workers and a cancellation still get their turn

        num_workers = min(n for n in (total - len(done), run.max_concurrent, replicas.most) if n != -1)
        try:
            with watched_loop():
                await all_of([bridge(work) for _ in range(num_workers)])
            recorder.end()
            outputs = run.outputs(recorder.outputs)
            if writer is not None:
                writer.finish(outputs["metadata"], outputs["outputs"])
            return outputs
        except BaseException as error:
            _save_what_is_finished(run, recorder, writer, error)
            raise


def _save_what_is_finished(run: Run, recorder: Recorder, writer: ResultsWriter | None, error: BaseException) -> None:
    """Hand on what a run that broke off has given, in the error that says that results cannot be written, and on disk."""
    outputs = run.outputs(recorder.outputs)
    if isinstance(error, ResultsError):
        error.outputs = outputs
    elif writer is not None:
        try:
            writer.write_metadata(outputs["metadata"])
        except ResultsError:
            logger.exception("the metadata of the run that broke off could not be written")


def _integer(name: str, value: Any, allowed: str, *, least: int, or_all: bool = False) -> int:
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


def _names(name: str, value: Any) -> list[str]:
    """Return an argument that lists names as a list; it may be given as anything that can be gone over, once."""
    names = None if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if names is None or not all(isinstance(each, str) for each in names):
        given = value if names is None else names
        raise ConfigurationError(f"{name} must be a list of names, such as ['trajectory'], got {given!r}")
    return names


def _example_ids(definition: ChatEnv, num_examples: int) -> list[int]:
    """Return the ids of the examples to play."""
    tasks = definition.eval_tasks
    if tasks.is_endless and num_examples == -1:
        raise ConfigurationError(f"the tasks of {type(definition).__name__} have no end: say how many to play with num_examples")
    available = len(tasks)
    if available == 0:
        raise ConfigurationError(f"{type(definition).__name__} has no tasks to evaluate: its dataset is empty")
    if num_examples > available:
        logger.warning("num_examples is %d, and there are %d examples: all of them are played", num_examples, available)
    count = available if num_examples == -1 else min(num_examples, available)
    example_ids = [tasks.example_id_of(position) for position in range(count)]
    twice = next((example_id for example_id, times in Counter(example_ids).items() if times > 1), None)
    if twice is not None:
        raise ConfigurationError(
            f"several tasks have the same example_id, {twice!r} among them: give each its own, or leave the ids out to count from 0"
        )
    return example_ids


def _rollouts(seed: int, rollouts_per_example: int, example_ids: Sequence[int]) -> Iterator[Rollout]:
    """Give each rollout of each example, one example after the other.

    A rollout's seed follows from its example's place, its number and the run's seed alone, whatever else is played.
    """
    numbers = range(rollouts_per_example)
    seeds = [np.random.SeedSequence([seed, number]).generate_state(len(example_ids)).tolist() for number in numbers]
    for position, example_id in enumerate(example_ids):
        for number in numbers:
            yield Rollout(example_id, number, seeds[number][position])


def _fingerprints(definition: ChatEnv) -> Callable[[int], str | None]:
    """Return the function that gives the fingerprint of an example's task; None for one that cannot be read."""
    tasks = definition.eval_tasks

    @functools.cache
    def fingerprint(example_id: int) -> str | None:
        try:
            return fingerprint_of(tasks.input(tasks.index_of(example_id)))
        except Exception:  # the episode that begins with it records what is wrong
            return None

    return fingerprint
