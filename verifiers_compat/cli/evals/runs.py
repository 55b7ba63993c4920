"""Carrying evaluations out: environments are loaded one after the other, their rollouts run at the same time."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from verifiers_compat.alias import ALIAS, AliasFinder, install
from verifiers_compat.cli.evals.report import print_results
from verifiers_compat.envs.api import RolloutAPI
from verifiers_compat.generation.settings import OF_THE_INPUTS, GenerateSettings
from verifiers_compat.types import EvalConfig, EvalRunConfig, GenerateOutputs, LogCallback, ProgressCallback, StartCallback
from verifiers_compat.utils.async_utils import EventLoopLagMonitor, EventLoopLagStats
from verifiers_compat.utils.env_utils import load_environment
from verifiers_compat.utils.load_failures import EnvironmentLoadError, describe_failure
from verifiers_compat.utils.path_utils import get_eval_results_path
from vfgym.clients.http.reachable import check_reachable
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError, Error

logger = logging.getLogger("verifiers_compat")

_GIVEN_APART = {"model", "save_results", "hf_hub_dataset_name"}
_DOCUMENTED = {
    name
    for name, parameter in inspect.signature(RolloutAPI.evaluate).parameters.items()
    if name in EvalConfig.model_fields.keys() - _GIVEN_APART and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
}
"""Fields of an `EvalConfig` that `Environment.evaluate` is documented to take."""
_OTHERS = EvalConfig.model_fields.keys() & {*GenerateSettings.model_fields, *OF_THE_INPUTS} - _DOCUMENTED - _GIVEN_APART
"""Further ones that it takes. An author's own may not know them, so they are passed where they differ from the defaults."""
_SECONDS_BETWEEN_HEARTBEATS = 60.0
_LONGEST_HEARTBEAT = 10.0
"""Seconds that a heartbeat may take."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation whose environment is loaded."""

    config: EvalConfig
    env: Any
    results_path: Path | None
    """Where its results go; None where they are not saved."""


Outcome: TypeAlias = GenerateOutputs | BaseException
"""What came of an evaluation: its results, or what kept it from having any."""


def use_alias(*, wins: bool) -> None:
    """Let ``import verifiers`` mean this library, for environments that are written for it.

    Args:
        wins: Whether it does so even where `verifiers` itself is installed, which comes first otherwise.
    """
    if wins or not is_peer_installed():
        install()


def is_peer_installed() -> bool:
    """Say whether `verifiers` itself can be imported."""
    found = (finder.find_spec(ALIAS, None) for finder in sys.meta_path if not isinstance(finder, AliasFinder))
    return any(spec is not None and spec.origin is not None for spec in found)  # a mere directory of that name has no origin


def load_evaluation(config: EvalConfig) -> Evaluation:
    """Load the environment of an evaluation, set what is to be set on it, and choose where results go.

    Raises:
        ConfigurationError: If the environment cannot be loaded, or does not belong to this library.
        EnvironmentLoadError: If its code raised an error.
    """
    env = load_env(config.env_id, config.env_args, config.extra_env_kwargs)
    path = config.resume_path or (get_eval_results_path(config) if config.save_results else None)
    return Evaluation(config, env, path)


def load_env(env_id: str, env_args: Mapping[str, Any], attributes: Mapping[str, Any]) -> Any:
    """Load an environment, set attributes on it, and make its first task.

    Raises:
        ConfigurationError: If the environment cannot be loaded, or does not belong to this library.
        EnvironmentLoadError: If its code raised an error.
    """
    env = load_environment(env_id, **env_args)
    if not isinstance(env, RolloutAPI):
        kind = f"{type(env).__module__}.{type(env).__qualname__}"
        raise ConfigurationError(
            f"the environment {env_id!r} is a {kind}, made with another library: where verifiers itself is installed, an environment"
            " gets that. Run the command with --alias, which lets `import verifiers` mean this one"
        )
    for name in attributes:
        if not hasattr(env, name) and not hasattr(env, f"set_{name}"):
            logger.warning("%s has no attribute %r so far: extra_env_kwargs adds it, and perhaps nobody reads it", env_id, name)
    env.set_kwargs(**attributes)
    _begin_tasks(env.definition, env_id)
    # Results name what was loaded, and so find the run again that is resumed; games have other names for themselves.
    env.definition.env_id, env.definition.env_args = env_id, dict(env_args)
    return env


def _begin_tasks(definition: ChatEnv, env_id: str) -> None:
    """Make the first task: what datasets import and build is done now, while no rollout has to wait for it."""
    tasks = definition.tasks_of("eval")
    try:
        if tasks.is_endless or len(tasks):
            tasks.input(0)
    except Error:
        raise
    except Exception as error:
        raise EnvironmentLoadError(f"the dataset of {env_id!r} cannot be built: {describe_failure(error, env_id)}") from error


async def play(
    evaluation: Evaluation,
    on_start: StartCallback | None = None,
    on_progress: ProgressCallback | list[ProgressCallback] | None = None,
    on_log: LogCallback | None = None,
) -> GenerateOutputs:
    """Carry one evaluation out.

    Raises:
        ConfigurationError: If nobody listens where the model is said to be, before any rollout finds out for itself.
    """
    config = evaluation.config
    await check_reachable(config.client_config)
    outputs: GenerateOutputs = await evaluation.env.evaluate(
        config.client_config,
        config.model,
        **{name: getattr(config, name) for name in _DOCUMENTED},
        **{name: value for name in _OTHERS if (value := getattr(config, name)) != EvalConfig.model_fields[name].default},
        results_path=evaluation.results_path,
        save_results=evaluation.results_path is not None,
        push_to_hf_hub=config.save_to_hf_hub,
        hf_hub_dataset_name=config.hf_hub_dataset_name,
        on_start=on_start,
        on_progress=on_progress,
        on_log=on_log,
    )
    return outputs


async def run_evaluation(
    config: EvalConfig,
    on_start: StartCallback | None = None,
    on_log_file: Callable[[Path], None] | None = None,
    on_progress: ProgressCallback | list[ProgressCallback] | None = None,
    on_log: LogCallback | None = None,
) -> GenerateOutputs:
    """Load the environment of an evaluation and carry the evaluation out.

    Args:
        config: The evaluation.
        on_start: See `Environment.generate`.
        on_log_file: Only None: no server process logs to a file here.
        on_progress: See `Environment.generate`.
        on_log: See `Environment.generate`.

    Raises:
        ConfigurationError: If the environment cannot be loaded, or `on_log_file` is given.
    """
    if on_log_file is not None:
        raise ConfigurationError("on_log_file names the log of a server process, and there is none: everything is logged in this process")
    evaluation = load_evaluation(config)
    try:
        return await play(evaluation, on_start, on_progress, on_log)
    finally:
        await _tear_down([evaluation])


async def run_evaluations(config: EvalRunConfig) -> list[GenerateOutputs]:
    """Carry several evaluations out at the same time, and print their results.

    Returns:
        The results, in the order of the evaluations.

    Raises:
        Exception: What kept the first of those that broke off from going on, when all others are done.
    """
    outcomes, lag = await play_all([load_evaluation(each) for each in config.evals])
    results = [each for each in outcomes if isinstance(each, GenerateOutputs)]
    for each in results:
        print_results(each, event_loop_lag=lag)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return results


async def play_all(evaluations: Sequence[Evaluation], *, heartbeat_url: str | None = None) -> tuple[list[Outcome], EventLoopLagStats]:
    """Carry several evaluations out at the same time. One that breaks off does not stop the others.

    Args:
        evaluations: The evaluations.
        heartbeat_url: A URL that is asked for now and every minute, so that a monitor sees the run alive.

    Returns:
        What came of each, in order; and how late the event loop was.
    """
    monitor = EventLoopLagMonitor()
    try:
        async with monitor, _heartbeat(heartbeat_url):
            outcomes = await asyncio.gather(*map(play, evaluations), return_exceptions=True)
    finally:
        await _tear_down(evaluations)
    return outcomes, monitor.get_stats()


async def _tear_down(evaluations: Sequence[Evaluation]) -> None:
    for evaluation in evaluations:
        # Called on the class: an author's code may use the name for something of its own.
        await ChatEnv.aclose(evaluation.env.definition)


@contextlib.asynccontextmanager
async def _heartbeat(url: str | None) -> AsyncIterator[None]:
    if url is None:
        yield
        return
    beating = asyncio.create_task(_beat(url))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def _beat(url: str) -> None:
    import aiohttp

    has_failed = False
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_LONGEST_HEARTBEAT)) as session:
        while True:
            try:
                async with session.get(url) as answer:
                    answer.raise_for_status()
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                if not has_failed:
                    logger.warning("the heartbeat to %s fails: %s", url, error)
                has_failed = True
            await asyncio.sleep(_SECONDS_BETWEEN_HEARTBEATS)
