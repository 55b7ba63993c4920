"""`evaluate`: an agent plays the tasks of an environment, many episodes at once, and every one of them is kept."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from vfgym.agents.base import Agent
from vfgym.agents.human import HumanAgent
from vfgym.agents.loading import agent_name, as_agent
from vfgym.agents.model import ModelAgent
from vfgym.aio.background import blocking
from vfgym.aio.bridge import bridge
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs
from vfgym.results.files import default_results_path
from vfgym.runs.engine import Engine, GroupJob
from vfgym.runs.playing import executor_of, plan_run, play_run, take_executor
from vfgym.runs.preparing import prepare
from vfgym.runs.progress import ProgressCallback, StartCallback, report_progress
from vfgym.runs.recorder import Recorder
from vfgym.runs.replicas import EnvLike, Replicas
from vfgym.runs.spec import RunArguments, RunSettings, RunSpec, close_agent, describe, takes_settings
from vfgym.runs.spending import Budget, RunSpending

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
    elsewhere = take_executor(settings)
    async with contextlib.AsyncExitStack() as stack:
        spec: RunSpec | None = None
        if isinstance(env, RunSpec):
            how: RunSettings = (spec := _without_others(env, {"env_id": env_id, "model": model, "env_args": env_args, **settings}))
            if agent is None:
                agent = spec.make_agent()
                stack.push_async_callback(close_agent, agent)
            env, env_args, model = spec.env_id, spec.env_args, spec.name
        elif agent is None:
            raise ConfigurationError("say who plays: give an agent, such as 'random', or a function (observation, info) -> message")
        else:
            how = RunSettings.of({**settings}, "evaluate()")
        given, agent = agent, as_agent(agent)
        asked = [agent.name] if isinstance(agent, ModelAgent) else []
        budget = Budget.of(how.limits, how.limits_each, how.prices, how.cache, asked)
        max_concurrent = how.max_concurrent
        if isinstance(agent, HumanAgent):
            max_concurrent, progress = 1, False
        replicas = Replicas()
        stack.push_async_callback(bridge, replicas.close)
        executor = executor_of(how, elsewhere)
        spec = spec or describe(env, given, agent, env_args, model, how)
        travelling = None
        if executor != "local":
            from vfgym.runs.executors.travelling import check_can_travel, stepped_run

            travelling = stepped_run(check_can_travel(spec, env, agent))
        prepared = await prepare(replicas, env, env_args, agent, how)
        definition, inputs, in_groups, declared = prepared.definition, prepared.inputs, prepared.in_groups, prepared.declared
        if how.num_examples > inputs.num_examples:
            logger.warning("num_examples is %d, and there are %d examples: all of them are played", how.num_examples, inputs.num_examples)
        identity = _identity(definition, agent, env_id, env_args, model or agent_name(given))
        run, groups = plan_run(
            definition,
            inputs,
            how,
            in_groups=in_groups,
            max_concurrent=max_concurrent,
            path_to_save=_path_to_save(results_path, save_results, identity),
            reward_range=declared.counted_range,
            spec=None if spec is None else spec.to_json(),
            **identity,
        )

        async def play(groups: list[GroupJob], at_once: int, recorder: Recorder, spending: RunSpending) -> None:
            if travelling is None:
                engine = Engine(prepared.new_player, in_groups=in_groups, strict=how.strict, spending=spending)
                await engine.play(groups, at_once, recorder.add)
            else:
                from vfgym.runs.executors.playing import one_by_one, play_on_workers

                jobs = groups if in_groups else one_by_one(groups)
                told = {"env_id": run.env_id, "types": definition.message_types, "most_at_once": at_once}
                await play_on_workers(executor, travelling, how, jobs, recorder, spending, unplayed=prepared.unplayed, **told)  # type: ignore[arg-type]

        return await play_run(
            run,
            groups,
            play,
            lambda run, groups, outputs: report_progress(
                run.num_rollouts or 0, run.title, is_displayed=progress, callback=on_progress, on_start=on_start, done=outputs
            ),
            budget=budget,
            most_at_once=replicas.limit_workers(max_concurrent) if travelling is None else max_concurrent,  # workers have their own
            in_groups=in_groups,
            fingerprint=lambda example, number: prepared.fingerprint(example),
            types=definition.message_types,
            model=asked[0] if asked else "",
            resume=resume,
            redo_errors=redo_errors,
            declared=declared,
        )


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
        "is_model": asked is not None,
        "base_url": "" if asked is None else asked.base_urls,
        "sampling_args": {} if asked is None else dict(asked.sampling_args),
    }
