"""What of a run can be sent to other processes: what has a name there, and what has a form in JSON. What has neither is refused by name."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.agents.human import HumanAgent
from vfgym.agents.model import ModelAgent
from vfgym.bounded_json import dump_json
from vfgym.calls import function_name
from vfgym.clients import ClientConfig, EndpointClientConfig
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import with_secrets
from vfgym.runs.spec import RunSpec

_KNOWN_EVERYWHERE = ("vfgym", "gymnasium")
"""Packages whose ids are registered in each process that plays."""
_ELSEWHERE = "workers play in other processes, so"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TravellingRun:
    """A run as its workers are told it."""

    opened_by: str
    """What makes the environment and the players of a worker, as ``module:function`` (see `opened.OpenRun`)."""
    data: Mapping[str, Any]
    """What that reads of the run, as JSON data."""
    has_secrets: bool
    """Whether there are secrets in it, which do not leave this machine."""
    made_as: str
    """By what name the environment is made."""
    env_module: str | None
    """The module that it is made by, if workers have to import it."""


def check_can_travel(spec: RunSpec | None, env: Any, agent: Any) -> RunSpec:
    """Return the spec of a run that workers can play.

    Args:
        spec: The spec, if the run has one.
        env: The environment, as it was given.
        agent: Who plays.

    Raises:
        ConfigurationError: If they cannot: which argument it is that has no name elsewhere.
    """
    if isinstance(agent, HumanAgent):
        raise ConfigurationError(f"{_ELSEWHERE} agent must not be a human, who sits at this one: leave out executor")
    if spec is not None:
        for name in ("env_args", "sampling_args"):
            check_data(name, getattr(spec, name))
        registered = gym.registry.get(spec.env_id)
        made_by = None if registered is None else registered.entry_point
        if made_by is not None and _module_of(made_by) == "__main__":
            name = f"{made_by!r} of the script itself" if isinstance(made_by, str) else _describe(made_by)
            raise ConfigurationError(
                f"{_ELSEWHERE} {spec.env_id!r} must be registered with an entry point that they can import, got {name}"
            )
        return spec
    if not isinstance(env, str) and _is_unnamed(env):
        raise ConfigurationError(
            f"{_ELSEWHERE} env must be an id, 'module:function', or a function of a module that makes one, got {_describe(env)}"
        )
    if isinstance(agent, ModelAgent):
        raise ConfigurationError(f"{_ELSEWHERE} agent must ask a model by a ClientConfig, got a ModelAgent with a client of its own")
    raise ConfigurationError(
        f"{_ELSEWHERE} agent must be a name ('random', 'module:callable') or a function of a module, got {_describe(agent)}"
    )


def _is_unnamed(env: Any) -> bool:
    from vfgym.runs.spec import name_of_env

    return name_of_env(env) is None


def _describe(value: Any) -> str:
    if not callable(value) or not hasattr(value, "__qualname__"):
        return f"an object of {type(value).__name__}"
    name = function_name(value)
    return f"{name} of __main__, which is the script itself" if value.__module__ == "__main__" else name


def check_data(name: str, data: Mapping[str, Any]) -> None:
    """Refuse arguments that would be something else after they were sent."""
    for key, value in data.items():
        reason = _why_not_json(value)
        if reason is not None:
            raise ConfigurationError(f"{_ELSEWHERE} {name} must have a form in JSON, and {key!r} {reason}")


def _why_not_json(value: Any) -> str | None:
    if isinstance(value, Mapping):
        other = next((key for key in value if not isinstance(key, str)), None)
        if other is not None:
            return f"has the key {other!r}, which is not text"
        return next((reason for each in value.values() if (reason := _why_not_json(each)) is not None), None)
    if isinstance(value, list | tuple):
        return next((reason for each in value if (reason := _why_not_json(each)) is not None), None)
    try:
        dump_json(value)
    except (TypeError, ValueError):
        return f"is, or has in it, an object of {type(value).__name__}"
    return None


def stepped_run(spec: RunSpec) -> TravellingRun:
    """Return a run of `vfgym.evaluate` as its workers are told it."""
    data, has_secrets = spec_as_data(spec)
    opened_by = "vfgym.runs.executors.opened:open_stepped"
    module = module_of_id(spec.env_id)
    return TravellingRun(opened_by=opened_by, data=data, has_secrets=has_secrets, made_as=spec.env_id, env_module=module)


def spec_as_data(spec: RunSpec) -> tuple[dict[str, Any], bool]:
    """Return a run as its workers are told it, and whether there are secrets in it.

    The cache is left out: the coordinator has it.
    """
    spec = spec.model_copy(update={"cache": None, "executor": "local", "workers": None})
    public = spec.to_json()
    data = {**public, "env_args": spec.env_args, "sampling_args": spec.sampling_args}
    if spec.client is not None:
        data["client"] = client_as_data(spec.client)
    return data, has_secrets(spec.env_id, *({name: data[name]} for name in ("env_args", "sampling_args", "client")))


def has_secrets(env_id: str, *parts: Mapping[str, Any]) -> bool:
    """Say whether there are secrets in parts of a run, or in what its environment was registered with."""
    registered = gym.registry.get(env_id)
    own = {} if registered is None else dict(registered.kwargs)
    return any(map(_has_secrets, (own, *parts)))


def registered_here() -> list[tuple[str, bool]]:
    """Return the ids that neither Gymnasium nor this library registers, as JSON, each with whether there are secrets in it.

    What cannot be named elsewhere (an entry point of the script itself, arguments that are objects) is left out.
    """
    found = []
    for spec in list(gym.registry.values()):
        entry_point = _name_of_entry_point(spec)
        if entry_point is not None and entry_point.partition(":")[0].partition(".")[0] not in _KNOWN_EVERYWHERE:
            with contextlib.suppress(TypeError, ValueError):  # what is raised of arguments without a form in JSON
                text = dataclasses.replace(spec, entry_point=entry_point, vector_entry_point=None).to_json()
                found.append((text, _has_secrets(dict(spec.kwargs))))
    return found


def register(specs: Iterable[str]) -> None:
    """Register what another process has registered, but for ids that are known here.

    Modules that register ids themselves are imported before, since Gymnasium warns of whoever registers an id again.
    """
    for text in specs:
        spec = EnvSpec.from_json(text)
        gym.registry.setdefault(spec.id, spec)


def module_of_id(env_id: str) -> str | None:
    """Return the module that makes the environment of an id; None for ids of this library and of Gymnasium, and unknown ones."""
    spec = gym.registry.get(env_id)
    made_by: Any = env_id if ":" in env_id else spec and spec.entry_point
    module = None if made_by is None else _module_of(made_by)
    return None if module is None or module.partition(".")[0] in ("__main__", *_KNOWN_EVERYWHERE) else module


def _module_of(made_by: Any) -> str | None:
    return made_by.partition(":")[0] if isinstance(made_by, str) else getattr(made_by, "__module__", None)


def _name_of_entry_point(spec: EnvSpec) -> str | None:
    """Return ``module:name`` of what makes an environment; None for what has no such name, or none elsewhere."""
    made_by = spec.entry_point
    name = made_by if made_by is None or isinstance(made_by, str) else f"{made_by.__module__}:{getattr(made_by, '__qualname__', '<')}"
    return None if name is None or "<" in name or name.startswith("__main__:") else name


def client_as_data(config: EndpointClientConfig) -> dict[str, Any]:
    """Return where models are, with its key, as the configuration's class takes it."""
    data = config.model_dump(exclude_unset=True, exclude={"endpoint_configs"})
    if config.api_key is not None:
        data["api_key"] = config.api_key
    if isinstance(config, ClientConfig) and config.endpoint_configs:
        data["endpoint_configs"] = [client_as_data(each) for each in config.endpoint_configs]
    return data


def _has_secrets(data: Any) -> bool:
    from vfgym.output.redaction import redact_data

    return bool(dump_json(redact_data(data)) != dump_json(with_secrets(data)))
