"""What of a run can be sent to other processes: what has a name there, and what has a form in JSON. What has neither is refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from vfgym.agents.human import HumanAgent
from vfgym.agents.model import ModelAgent
from vfgym.bounded_json import dump_json
from vfgym.calls import function_name
from vfgym.clients import ClientConfig, EndpointClientConfig
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import with_secrets
from vfgym.runs.spec import RunSpec

_ELSEWHERE = "workers play in other processes, so"


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
            _check_data(name, getattr(spec, name))
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


def _check_data(name: str, data: Mapping[str, Any]) -> None:
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


def spec_as_data(spec: RunSpec) -> tuple[dict[str, Any], bool]:
    """Return a run as its workers are told it, and whether there are secrets in it.

    The cache is left out: the coordinator has it.
    """
    spec = spec.model_copy(update={"cache": None, "executor": "local", "workers": None})
    public = spec.to_json()
    data = {**public, "env_args": spec.env_args, "sampling_args": spec.sampling_args}
    if spec.client is not None:
        data["client"] = _client_as_data(spec.client)
    hidden = any(_has_secrets({name: data[name]}) for name in ("env_args", "sampling_args", "client"))
    return data, hidden


def module_of_id(env_id: str) -> str | None:
    """Return the module to import for an id that is registered here and may not be elsewhere; None where it is not known, or needs none."""
    spec = gym.registry.get(env_id)
    if spec is None or spec.entry_point is None:
        return None
    module = spec.entry_point.partition(":")[0] if isinstance(spec.entry_point, str) else getattr(spec.entry_point, "__module__", None)
    return module if isinstance(module, str) and module != "__main__" and module.partition(".")[0] not in ("vfgym", "gymnasium") else None


def _client_as_data(config: EndpointClientConfig) -> dict[str, Any]:
    data = config.model_dump(exclude_unset=True, exclude={"endpoint_configs"})
    if config.api_key is not None:
        data["api_key"] = config.api_key
    if isinstance(config, ClientConfig) and config.endpoint_configs:
        data["endpoint_configs"] = [_client_as_data(each) for each in config.endpoint_configs]
    return data


def _has_secrets(data: Any) -> bool:
    from vfgym.output.redaction import redact_data

    return bool(dump_json(redact_data(data)) != dump_json(with_secrets(data)))
