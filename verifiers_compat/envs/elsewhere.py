"""Runs of `generate` in other processes: what their workers are told, and what a worker makes of it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

import gymnasium as gym

from verifiers_compat.alias import AliasFinder, install
from verifiers_compat.envs.api import RolloutAPI, open_players
from verifiers_compat.envs.loaded import loaded_as
from verifiers_compat.generation import GenerateSettings, Inputs, TaskInputs
from vfgym.aio.bridge import bridge
from vfgym.clients import EndpointClientConfig
from vfgym.clients.config import ClientConfig
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.runs.executors.opened import OpenRun
from vfgym.runs.executors.travelling import TravellingRun, check_data, client_as_data, has_secrets, module_of_id
from vfgym.runs.inputs import Example, task_of_row
from vfgym.tasks import Tasks

_SETTINGS = {
    *("model", "sampling_args", "max_retries", "strict", "independent_scoring", "state_columns", "seed", "max_concurrent_scoring"),
    *("limits", "limits_each", "prices"),
}
"""What a worker is told of the settings; the coordinator keeps to the others."""


def run_for_workers(env: RolloutAPI, inputs: Inputs, client: Any, settings: GenerateSettings, *, is_saved: bool) -> TravellingRun:
    """Return a run of `generate` as its workers are told it.

    Raises:
        ConfigurationError: If it cannot be told: the environment was not loaded by an id, or changed since; the client is an object; or
            an argument has no form in JSON.
    """
    made = loaded_as(env)
    if made is None:
        kind = type(env.definition).__name__
        raise ConfigurationError(
            f"workers play in other processes, so the environment must be loaded by its id (vf.load_environment), got an object of {kind}"
        )
    made.check_unchanged(env)
    if not isinstance(client, EndpointClientConfig):
        raise ConfigurationError(
            f"workers play in other processes, so client must be a ClientConfig, got an object of {type(client).__name__}"
        )
    if env.env_client is not None:
        raise ConfigurationError("an env_client plays the rollouts elsewhere, and so does an executor: leave one of them out")
    data: dict[str, Any] = {
        "env_id": made.env_id,
        "env_args": made.env_args,
        "attributes": made.attributes,
        "client": client_as_data(client),
        "settings": settings.model_dump(mode="json", include=_SETTINGS) | {"sampling_args": settings.sampling_args},
        "split": next(split for split in ("train", "eval") if env.definition.tasks_of(split) is inputs.tasks),
        "is_saved": is_saved,
        "has_alias": any(isinstance(finder, AliasFinder) for finder in sys.meta_path),
    }
    for name in ("env_args", "attributes"):
        check_data(name, data[name])
    check_data("sampling_args", settings.sampling_args)
    if not isinstance(inputs, TaskInputs):
        for example in inputs.examples():
            for row in example.rows:  # type: ignore[union-attr]
                check_data(f"the input with example_id {example.example_id}", row)
    return TravellingRun(
        opened_by=f"{__name__}:open_generated",
        data=data,
        has_secrets=has_secrets(made.env_id, *({name: data[name]} for name in ("env_args", "attributes", "client", "settings"))),
        made_as=made.env_id,
        env_module=module_of_id(made.env_id) if made.env_id in gym.registry else None,
    )


class _SentInputs:
    """The tasks of rollouts that a coordinator sends: it sends their rows, or the places of these in the environment's tasks."""

    num_examples = num_rollouts = rollouts_per_example = 1

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks

    def examples(self) -> Any:
        """A worker is told of one after the other."""
        raise NotImplementedError

    def task(self, example: Example, number: int) -> dict[str, Any]:
        """Return the task of one rollout, as its own."""
        return self.tasks.input(example.rows) if isinstance(example.rows, int) else task_of_row(self.tasks, example, number)


@contextlib.asynccontextmanager
async def open_generated(data: Mapping[str, Any], slots: int) -> AsyncIterator[OpenRun]:
    """Open a run of `generate` on a worker (see `OpenRun`)."""
    from verifiers_compat.utils.env_utils import load_environment

    if data["has_alias"]:
        install()
    env = await bridge(load_environment, data["env_id"], **data["env_args"])
    try:
        env.set_kwargs(**data["attributes"])
        settings = GenerateSettings.of(data["settings"], "a run")
        inputs = _SentInputs(env.definition.tasks_of(data["split"]))
        client, scoring = ClientConfig.model_validate(data["client"]), settings.max_concurrent_scoring
        async with open_players(env, inputs, client, settings, is_saved=data["is_saved"]) as players:
            yield OpenRun(
                how=settings,
                new_player=players.new,
                in_groups=players.config.in_groups,
                most_at_once=slots,
                max_concurrent_scoring=max(1, scoring * slots // data["most_at_once"]) if scoring > 0 else scoring,
            )
    finally:
        await ChatEnv.aclose(env.definition)
