"""`RolloutAPI`: the documented methods that roll an environment out, built on the episode machine.

They work on ``self.definition``: the environment itself, or the one that `as_environment` was given.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from verifiers_compat.envs.dataset_access import DatasetAccess
from verifiers_compat.envs.loaded import loaded_as
from verifiers_compat.generation import GenerateSettings, Inputs, ListedInputs, Players, RunReporter, TaskInputs, generate
from verifiers_compat.types import GenerateOutputs, LogCallback, ProgressCallback, SamplingArgs, StartCallback
from vfgym.aio import threads
from vfgym.aio.background import run_to_end
from vfgym.clients import Client, ClientConfig, ClientType, ProviderClient, resolve_client
from vfgym.clients.config import EndpointClientConfig
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import with_secrets
from vfgym.overrides import is_replaced
from vfgym.results import RolloutOutput, Run, push_to_hub
from vfgym.results.files import default_results_path
from vfgym.runs.client_player import ClientPlayerConfig
from vfgym.runs.engine import GroupJob
from vfgym.runs.inputs import Seeds
from vfgym.runs.playing import executor_of, plan_run, take_executor
from vfgym.runs.preparing import scores_in_groups
from vfgym.tasks import Row

logger = logging.getLogger("verifiers_compat")

T = TypeVar("T")


def sync_twin(method: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Return the synchronous twin of an async method, which works with and without a running event loop."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> T:
        return cast(T, run_to_end(getattr(self, name)(*args, **kwargs)))

    call.__name__ = f"{name}_sync"
    call.__qualname__ = f"{method.__qualname__}_sync"
    call.__doc__ = f"{(method.__doc__ or '').partition('.')[0]}, from synchronous code (see `{name}`)."
    return call


class RolloutAPI(DatasetAccess):
    """The documented methods that roll an environment out."""

    definition: ChatEnv
    client_type: ClientType | None = None
    """The API that is spoken with a bare OpenAI SDK client; None for chat completions."""

    _env_client: Any = None

    @property
    def env_client(self) -> Any:
        """Who plays the rollouts instead of this process; None for nobody.

        An object of your own with the async methods ``run_rollout`` and ``run_group``. They are given what those of the environment are:
        input(s), client (as it was given: a `ClientConfig` can be sent elsewhere), model, sampling arguments, number of retries and state
        columns; and return rows.
        """
        return self._env_client

    @env_client.setter
    def env_client(self, env_client: Any) -> None:
        self._env_client = check_env_client(env_client)

    # One rollout, one group

    async def run_rollout(
        self,
        input: Any,
        client: Any = None,
        model: Any = "",
        sampling_args: Any = None,
        max_retries: Any = 0,
        state_columns: Sequence[str] | None = None,
        env_client: Any = None,
        *,
        sem: contextlib.AbstractAsyncContextManager[Any] | None = None,
    ) -> RolloutOutput:
        """Play and score one rollout.

        As in older versions, a semaphore may stand before the other arguments.

        Args:
            input: A dataset row.
            client: Who is asked (see `vfgym.clients.resolve_client`).
            model: Name of the model.
            sampling_args: Generation parameters; they win over the environment's.
            max_retries: How often it is repeated where an `InfraError` or an unusable response of the model ended it.
            state_columns: Further items of the state to keep.
            env_client: Who plays instead of this process (see the attribute `env_client`).
            sem: Held while the rollout runs.

        Returns:
            The rollout as data. An error is in it.
        """
        remote = self.env_client if env_client is None else check_env_client(env_client)
        if not isinstance(input, Mapping) and isinstance(client, Mapping):
            older_args = None if max_retries == 0 else max_retries
            sem, input, client, model, sampling_args, max_retries = input, client, model, sampling_args, older_args, 0
        async with sem or contextlib.nullcontext():
            if remote is not None:
                row: RolloutOutput = await remote.run_rollout(input, client, model, sampling_args, max_retries, state_columns)
                return row
            rows = await self._roll_out_rows([input], client, model, sampling_args, max_retries, state_columns, as_group=False)
        return rows[0]

    async def run_group(
        self,
        group_inputs: Sequence[Row],
        client: Any,
        model: str,
        sampling_args: SamplingArgs | None = None,
        max_retries: int = 0,
        state_columns: Sequence[str] | None = None,
        env_client: Any = None,
        *,
        sem: contextlib.AbstractAsyncContextManager[Any] | None = None,
    ) -> list[RolloutOutput]:
        """Play the rollouts of one example, all at once, and score them together.

        `group_inputs` has a dataset row for each rollout, all with the same ``example_id``. The other arguments are those of
        `run_rollout`; `max_retries` is of each rollout.

        Returns:
            The rollouts as data, in the order of the inputs.
        """
        remote = self.env_client if env_client is None else check_env_client(env_client)
        async with sem or contextlib.nullcontext():
            if remote is not None:
                return list(await remote.run_group(group_inputs, client, model, sampling_args, max_retries, state_columns))
            return await self._roll_out_rows(list(group_inputs), client, model, sampling_args, max_retries, state_columns, as_group=True)

    async def _roll_out_rows(
        self,
        rows: list[Row],
        client: Any,
        model: str,
        sampling_args: SamplingArgs | None,
        max_retries: int,
        state_columns: Sequence[str] | None,
        *,
        as_group: bool,
    ) -> list[RolloutOutput]:
        inputs = ListedInputs(self.definition.tasks_of("train"), rows)
        if inputs.num_examples > 1:
            raise ConfigurationError("the inputs of a group are rollouts of one example, so they need the same example_id")
        settings = GenerateSettings(
            model=model,
            sampling_args=self._merge_sampling_args(sampling_args),
            state_columns=list(state_columns or ()),
            max_retries=max_retries,
            independent_scoring=not as_group,
            shows_progress=False,
        )
        return (await self._generate_outputs(inputs, client, settings, calls_author=False)).outputs

    # Many

    async def generate(
        self,
        inputs: Any,
        client: Any,
        model: str,
        sampling_args: SamplingArgs | None = None,
        max_concurrent: int = -1,
        results_path: Path | str | None = None,
        state_columns: list[str] | None = None,
        save_results: bool = False,
        push_to_hf_hub: bool = False,
        hf_hub_dataset_name: str | None = None,
        independent_scoring: bool = False,
        max_retries: int = 0,
        on_start: StartCallback | None = None,
        on_progress: ProgressCallback | list[ProgressCallback] | None = None,
        on_log: LogCallback | None = None,
        **settings: Any,
    ) -> GenerateOutputs:
        """Roll out every input and score the rollouts: those with the same ``example_id`` together.

        A rollout that fails is recorded with its error and does not stop the others; a refused API key does.

        Args:
            inputs: Dataset rows (a Dataset or a list).
            client: Who is asked: a `Client`, a `ClientConfig` or an SDK's client.
            model: Name of the model.
            sampling_args: Generation parameters; they win over the environment's.
            max_concurrent: Most rollouts at once; -1 for no limit.
            results_path: Directory of ``results.jsonl`` and ``metadata.json``. Where it holds those of an earlier run with the
                same settings, that run is resumed: only what is missing is played.
            state_columns: Further items of each state to keep.
            save_results: Write results, to a new directory below ``./outputs/evals`` where no `results_path` is given.
            push_to_hf_hub: Push the results to the Hugging Face hub, too. A failure is logged.
            hf_hub_dataset_name: Name of the data set there; made of environment, model and numbers by default.
            independent_scoring: Score each rollout alone, without advantages.
            max_retries: How often a rollout is repeated where an `InfraError` or an unusable response of the model ended it.
            on_start: Called once with all inputs and those that are to be played (lists of them, where groups are scored).
            on_progress: Called after each finished group (or rollout) with all outputs, the new ones and the metadata so far.
                One callback takes the place of the progress bar; a list comes beside it.
            on_log: Called with messages about saving and resuming; the log by default.
            **settings: The other fields of `GenerateSettings`, such as ``seed``, ``limits``, ``cache``, ``redo_errors`` and ``strict``
                (see `vfgym.evaluate`). And arguments of older versions: ``max_concurrent_generation``, ``use_tqdm``,
                ``save_every`` (rows are written as they finish) and ``interleave_scoring`` (groups are scored as they finish).

        Returns:
            The outputs by example and rollout, and the run's metadata.

        Raises:
            ConfigurationError: If the inputs, the client or an argument cannot work.
        """
        is_one_callback = on_progress is not None and not isinstance(on_progress, list | tuple)
        asked = {
            "model": model,
            "sampling_args": self._merge_sampling_args(sampling_args),
            "max_concurrent": max_concurrent,
            "results_path": results_path,
            "state_columns": state_columns or [],
            "save_results": save_results,
            "push_to_hf_hub": push_to_hf_hub,
            "hf_hub_dataset_name": hf_hub_dataset_name,
            "independent_scoring": independent_scoring,
            "max_retries": max_retries,
            "on_start": on_start,
            "on_progress": (on_progress,) if is_one_callback else tuple(on_progress or ()),  # type: ignore[arg-type]
            "on_log": on_log,
            "shows_progress": not is_one_callback and settings.get("use_tqdm") is not False,
        }
        executor = take_executor(settings)
        how = GenerateSettings.of(_without_older({**settings, **asked}), "generate")
        planned = inputs if isinstance(inputs, TaskInputs) else ListedInputs(self.definition.tasks_of("train"), _rows(inputs))
        return await self._generate_outputs(planned, client, how, executor=executor)

    async def evaluate(
        self,
        client: Any,
        model: str,
        sampling_args: SamplingArgs | None = None,
        num_examples: int = -1,
        rollouts_per_example: int = 1,
        max_concurrent: int = -1,
        results_path: Path | str | None = None,
        state_columns: list[str] | None = None,
        save_results: bool = False,
        push_to_hf_hub: bool = False,
        hf_hub_dataset_name: str | None = None,
        independent_scoring: bool = False,
        max_retries: int = 0,
        on_start: StartCallback | None = None,
        on_progress: ProgressCallback | list[ProgressCallback] | None = None,
        on_log: LogCallback | None = None,
        *,
        split: Literal["train", "eval"] = "eval",
        example_ids: Iterable[int] | None = None,
        **kwargs: Any,
    ) -> GenerateOutputs:
        """Roll out and score the evaluation tasks; the training tasks where there are no others.

        The first `num_examples` tasks of `split` are played (-1 for all), or those with the ids in `example_ids`; each of them
        `rollouts_per_example` times. These rollouts are scored together. All other arguments are those of `generate`.

        Returns:
            The outputs by example and rollout, and the run's metadata.
        """
        return await self.generate(
            self._choose_inputs(num_examples, rollouts_per_example, split, example_ids),
            client,
            model,
            sampling_args,
            max_concurrent,
            results_path,
            state_columns,
            save_results,
            push_to_hf_hub,
            hf_hub_dataset_name,
            independent_scoring,
            max_retries,
            on_start,
            on_progress,
            on_log,
            **kwargs,
        )

    generate_sync = sync_twin(generate)
    evaluate_sync = sync_twin(evaluate)

    def _choose_inputs(
        self, num_examples: int, rollouts_per_example: int, split: Literal["train", "eval"], example_ids: Iterable[int] | None
    ) -> Any:
        tasks = self.definition.tasks_of(split)
        if split != "eval" or example_ids is not None:
            return TaskInputs(tasks, num_examples, rollouts_per_example, None if example_ids is None else list(example_ids))
        own = _AUTHORS_CHOICE if self.definition.has_tasks("eval") else (*_AUTHORS_CHOICE, "get_dataset", "build_dataset")
        if any(is_replaced(self, name, getattr(RolloutAPI, name)) for name in own):
            rows = list(self.get_eval_dataset(n=num_examples))
        elif tasks.has_repeated_ids:  # rows with one example_id are one example
            count = len(tasks) if num_examples <= 0 else min(num_examples, len(tasks))
            rows = [tasks.input(position) for position in range(count)]
        else:
            return TaskInputs(tasks, num_examples, rollouts_per_example)
        return [row for _ in range(rollouts_per_example) for row in rows]

    # Configuration

    def set_kwargs(self, **kwargs: Any) -> None:
        """Set attributes: by the method ``set_<name>`` where there is one."""
        loaded = loaded_as(self)
        with contextlib.nullcontext() if loaded is None else loaded.setting(self, kwargs):
            for name, value in kwargs.items():
                setter = getattr(self, f"set_{name}", None)
                if setter is None:
                    setattr(self.definition, name, value)
                else:
                    setter(value)

    def set_concurrency(self, concurrency: int) -> None:
        """Say how many rollouts will run at once: registered thread pools grow to it."""
        from verifiers_compat.utils.thread_utils import scale_executors

        self.concurrency = concurrency
        threads.allow_workers(concurrency)
        scale_executors(concurrency)

    def set_interleaved_rollouts(self, interleaved_rollouts: bool) -> None:
        """Say whether later turns reuse the token ids of earlier ones: the token client is asked then."""
        self.interleaved_rollouts = interleaved_rollouts
        if interleaved_rollouts:
            self.client_type = "openai_chat_completions_token"
        elif self.client_type == "openai_chat_completions_token":
            self.client_type = None

    @property
    def provides_advantages(self) -> bool:
        """Whether the rubric brings advantages of its own, beyond the reward minus the group's mean."""
        return self.definition.rubric.provides_advantages

    async def start_server(self, address: str | None = None, **options: Any) -> None:
        """There is no server process here: rollouts run in this one.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError("there is no server process: generate() and evaluate() run the rollouts in this process")

    async def stop_server(self) -> None:
        """There is no server process to stop, so nothing is done."""

    async def _generate_outputs(
        self,
        inputs: Inputs,
        client: Any,
        settings: GenerateSettings,
        *,
        calls_author: bool = True,
        executor: concurrent.futures.Executor | None = None,
    ) -> GenerateOutputs:
        """Carry a run out, through the author's own `run_group` or `run_rollout` where there is one."""
        where = executor_of(settings, executor)
        scores_in_groups(self.definition, settings.independent_scoring)
        run, groups = self._plan(inputs, client, settings)
        is_saved, travelling = run.path_to_save is not None, None
        if where != "local":
            from verifiers_compat.envs.elsewhere import run_for_workers

            travelling = run_for_workers(self, inputs, client, settings, is_saved=is_saved)
        async with open_players(self, inputs, client, settings, is_saved=is_saved, calls_author=calls_author) as players:
            outputs = await generate(players, settings, run, groups, RunReporter(settings), where, travelling)
        if settings.push_to_hf_hub:
            await threads.on_thread(_push, outputs, settings.hf_hub_dataset_name)
        return GenerateOutputs(outputs)

    def _resolve_clients(self, client: Any) -> tuple[list[Client], list[Client]]:
        """Return who is asked, in turn; and those among them that were made here, to be closed here."""
        if isinstance(client, EndpointClientConfig):
            configs = client.endpoints() if isinstance(client, ClientConfig) else [client]
            made = [self._resolve_one_client(config) for config in configs]
            for each in made:
                if len(made) > 1 and isinstance(each, ProviderClient):
                    each.taking_turns = client.base_urls
            return made, made
        resolved = self._resolve_one_client(client)
        is_twin = resolved is not client and isinstance(resolved, ProviderClient) and resolved.client is not client
        return [resolved], [resolved] if is_twin else []

    def _resolve_one_client(self, client: Any) -> Client:
        """Return who is asked, by the API that the environment asks for where `client` does not say which one it speaks."""
        if isinstance(client, EndpointClientConfig) and self.client_type is not None:
            client = _with_client_type(client, self.client_type)
        return resolve_client(client, self.client_type)

    def _merge_sampling_args(self, sampling_args: SamplingArgs | None) -> SamplingArgs:
        return with_secrets({**self.definition.sampling_args, **(sampling_args or {})})  # type: ignore[no-any-return]

    def _plan(self, inputs: Inputs, client: Any, settings: GenerateSettings) -> tuple[Run, list[GroupJob]]:
        definition = self.definition
        name = definition.env_id or type(definition).__name__
        path = settings.results_path
        if path is None and settings.save_results:
            path = default_results_path(name, settings.model)
        config = client if isinstance(client, EndpointClientConfig) else getattr(client, "config", None)
        return plan_run(
            definition,
            inputs,
            settings,
            in_groups=not settings.independent_scoring,
            env_id=name,
            env_args=dict(definition.env_args),
            model=settings.model,
            mean_of="reward",
            path_to_save=path,
            base_url=config.base_urls if isinstance(config, EndpointClientConfig) else str(getattr(client, "base_url", "")),
            sampling_args=settings.sampling_args,
        )


@contextlib.asynccontextmanager
async def open_players(
    env: RolloutAPI, inputs: Inputs, client: Any, settings: GenerateSettings, *, is_saved: bool, calls_author: bool = True
) -> AsyncIterator[Players]:
    """Make who plays rollouts of an environment, for an ``async with``; clients that are made for it are closed afterwards.

    Args:
        env: The environment.
        inputs: What is played.
        client: Who is asked.
        settings: How the run goes.
        is_saved: Whether results are saved.
        calls_author: Whether the author's own `run_group` or `run_rollout` plays, where there is one.
    """
    method = "run_rollout" if settings.independent_scoring else "run_group"
    is_authored = calls_author and is_replaced(env, method, getattr(RolloutAPI, method))
    is_remote = calls_author and env.env_client is not None
    clients, own = ([client], []) if is_remote else env._resolve_clients(client)
    config = ClientPlayerConfig(
        env.definition,
        inputs,
        clients,
        settings.model,
        settings.sampling_args,
        in_groups=not settings.independent_scoring,
        max_retries=settings.max_retries,
        strict=settings.strict,
        is_saved=is_saved,
        seeds=None if settings.seed is None else Seeds(settings.seed),
    )
    try:
        yield Players(config, settings.state_columns, getattr(env, method) if is_authored or is_remote else None)
    finally:
        for each in own:
            await each.close()


def _with_client_type(config: EndpointClientConfig, client_type: ClientType) -> EndpointClientConfig:
    """Return a configuration that speaks an API, where it does not say itself which one."""
    return config if "client_type" in config.model_fields_set else config.model_copy(update={"client_type": client_type})


def _push(outputs: Any, name: str | None) -> None:
    """Push results to the hub. What goes wrong there is logged: the run itself is done, and its results are returned."""
    try:
        logger.info("pushed the results to %s", push_to_hub(outputs, name))
    except Exception:
        logger.exception("the results could not be pushed to the Hugging Face hub")


def check_env_client(env_client: Any) -> Any:
    """Return what plays rollouts elsewhere; None for nobody.

    Raises:
        ConfigurationError: If it cannot.
    """
    if env_client is not None and not all(callable(getattr(env_client, name, None)) for name in ("run_rollout", "run_group")):
        raise ConfigurationError(
            f"env_client must be an object with the async methods run_rollout and run_group, got {type(env_client).__name__}: there is no"
            " environment server here; leave it out, and the rollouts run in this process"
        )
    return env_client


def _rows(inputs: Any) -> Iterable[Row]:
    if isinstance(inputs, str | bytes | Mapping) or not isinstance(inputs, Iterable):
        raise ConfigurationError(f"inputs must be dataset rows (a Dataset or a list of dicts), got {type(inputs).__name__}")
    return inputs


_AUTHORS_CHOICE = ("get_eval_dataset", "build_eval_dataset")
"""Methods by which an author chooses the rows of an evaluation."""


def _without_older(given: dict[str, Any]) -> dict[str, Any]:
    """Return settings by the names that they have now; what says nothing any more is left out."""
    settings = {name: value for name, value in given.items() if name not in ("use_tqdm", "save_every", "interleave_scoring")}
    generation = settings.pop("max_concurrent_generation", None)
    if generation is not None and settings["max_concurrent"] <= 0:
        settings["max_concurrent"] = generation
    if settings.get("max_concurrent_scoring", -1) is None:
        del settings["max_concurrent_scoring"]
    return settings
