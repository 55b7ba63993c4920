"""`optimize_prompt`: one run of GEPA over an environment."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from verifiers_compat.envs.adapted import as_environment
from verifiers_compat.envs.api import RolloutAPI
from verifiers_compat.gepa.environment_adapter import COMPONENT, EnvironmentAdapter
from verifiers_compat.gepa.examples import Example, choose_examples
from verifiers_compat.gepa.progress import GepaLog, Progress
from verifiers_compat.gepa.prompts import current_prompt
from verifiers_compat.gepa.reflection import Reflection, ReflectionFailed
from verifiers_compat.gepa.report import write_report
from verifiers_compat.gepa.result import OptimizedPrompt
from verifiers_compat.gepa.run_directory import RunDirectory
from verifiers_compat.gepa.settings import GepaSettings
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError, MissingExtra


def optimize_prompt(
    env: Any,
    client: Any,
    model: str,
    *,
    reflection_client: Any = None,
    reflection_model: str | None = None,
    system_prompt: str | None = None,
    sampling_args: dict[str, Any] | None = None,
    state_columns: Sequence[str] = (),
    num_train: int = 100,
    num_val: int = 50,
    max_calls: int = 500,
    minibatch_size: int = 3,
    perfect_score: float | None = None,
    max_concurrent: int = 32,
    seed: int = 0,
    run_dir: str | Path | None = None,
    on_candidate: Callable[[OptimizedPrompt], None] | None = None,
) -> OptimizedPrompt:
    """Improve the system prompt of an environment, by the rewards that a model earns with it.

    A rollout that fails counts with the environment's ``failure_reward``, or 0. The environment has its own system prompt again
    afterwards. This is synchronous: from async code, call it in a thread (`asyncio.to_thread`).

    Args:
        env: An environment with the rollout API, or what `as_environment` takes.
        client: Who plays (see `Environment.generate`).
        model: Name of the model that plays.
        reflection_client: Who reflects and writes prompts; `client` by default.
        reflection_model: Name of that model; `model` by default.
        system_prompt: The prompt to begin with; by default the one that the environment has, or none.
        sampling_args: Generation parameters of the rollouts.
        state_columns: Items of the state that the reflecting model is shown too, such as a text in which a reward function says what was
            wrong (``state["feedback"]``).
        num_train: Training examples, of which the reflecting model sees some in each round.
        num_val: Validation examples, by whose mean score candidates are compared.
        max_calls: Rollouts after which no new round begins; the one that is going on is played to its end.
        minibatch_size: Training examples of a round.
        perfect_score: Score that cannot be exceeded: a round in which all examples have it is not reflected on, and the run ends when
            the mean of the validation examples reaches it.
        max_concurrent: Most rollouts at once; -1 for no limit.
        seed: Seed of GEPA's choices and of the environment's random numbers.
        run_dir: Directory of the run (see `verifiers_compat.gepa.run_directory`). One that is there and was stopped goes on: what models
            answered before is not asked again. Nothing is written without it.
        on_candidate: Called with what came of the run so far whenever a candidate has been played on the validation examples.

    Returns:
        The candidates and their scores.

    Raises:
        MissingExtra: If `gepa` is not installed.
        ConfigurationError: If an argument or the environment does not fit, or `run_dir` holds another run.
        vfgym.errors.Error: If no model answers. With `run_dir`, the same call goes on with the run.
    """
    if importlib.util.find_spec("gepa") is None:
        raise MissingExtra("gepa", "improving a prompt (vf-gepa)")
    settings = GepaSettings(
        model=model,
        reflection_model=model if reflection_model is None else reflection_model,
        sampling_args=sampling_args or {},
        state_columns=state_columns,
        num_train=num_train,
        num_val=num_val,
        max_calls=max_calls,
        minibatch_size=minibatch_size,
        perfect_score=perfect_score,
        max_concurrent=max_concurrent,
        seed=seed,
    )
    env = env if isinstance(env, RolloutAPI) else as_environment(env)
    definition: ChatEnv = env.definition
    train, val = choose_examples(definition, num_train, num_val)
    if max_calls <= len(val):
        raise ConfigurationError(
            f"max_calls must be more than the {len(val)} validation examples, which the first prompt is played on; got {max_calls}."
            " Raise it, or lower num_val"
        )
    own_prompt = current_prompt(definition, [*train, *val])
    start = own_prompt if system_prompt is None else system_prompt
    about_env = {"env_id": definition.env_id or type(definition).__name__, "env_args": dict(definition.env_args)}
    description = {**about_env, **settings.describe(), "num_train": len(train), "num_val": len(val), "system_prompt": start}
    directory = None if run_dir is None else RunDirectory(run_dir, description)

    def report(result: OptimizedPrompt) -> None:
        if directory is not None:
            write_report(directory, description, max_calls, result)

    def take_candidate(result: OptimizedPrompt) -> None:
        report(result)
        if on_candidate is not None:
            on_candidate(result)

    progress = Progress(take_candidate)
    adapter = EnvironmentAdapter(env, client, settings, directory, progress.result)
    reflection = Reflection(client if reflection_client is None else reflection_client, settings.reflection_model, directory)
    with directory or contextlib.nullcontext(), _with_prompt_of_its_own(env, train[0]):
        _call_gepa(settings, start, train, val, adapter, reflection, progress)
        progress.result.is_finished = True
        report(progress.result)
    return progress.result


@contextlib.contextmanager
def _with_prompt_of_its_own(env: Any, example: Example) -> Iterator[None]:
    """Give the environment the system prompt back, at the end of a ``with``, that it has now."""
    definition: ChatEnv = env.definition
    before = definition.routed(example.task_of(definition))[0].system_prompt
    try:
        yield
    finally:
        env.set_system_prompt(before)


def _call_gepa(
    settings: GepaSettings,
    start: str,
    train: list[Example],
    val: list[Example],
    adapter: EnvironmentAdapter,
    reflection: Reflection,
    progress: Progress,
) -> None:
    """Run GEPA to its end.

    Raises:
        Exception: What ended it, also where that was raised by the reflecting model's client.
    """
    from gepa.api import optimize
    from gepa.utils.stop_condition import ScoreThresholdStopper

    perfect = settings.perfect_score
    try:
        optimize(
            seed_candidate={COMPONENT: start},
            trainset=train,
            valset=val,
            adapter=cast(Any, adapter),
            reflection_lm=cast(Any, reflection),
            reflection_minibatch_size=settings.minibatch_size,
            skip_perfect_score=perfect is not None,
            perfect_score=1.0 if perfect is None else perfect,
            max_metric_calls=settings.max_calls,
            stop_callbacks=None if perfect is None else [ScoreThresholdStopper(perfect)],
            logger=GepaLog(),
            callbacks=[cast(Any, progress)],
            track_best_outputs=False,
            seed=settings.seed,
        )
    except ReflectionFailed as failure:
        raise failure.reason from failure.reason.__cause__
