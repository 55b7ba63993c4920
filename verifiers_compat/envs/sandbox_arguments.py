"""The documented arguments about sandboxes, as what a sandbox of this machine is asked for."""

from __future__ import annotations

import dataclasses
import functools
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from vfgym.errors import ConfigurationError
from vfgym.sandboxes import SandboxSpec

logger = logging.getLogger("verifiers_compat")

DEFAULT_IMAGE = "python:3.11-slim"
_OF_CONTAINERS: Mapping[str, Any] = {
    "docker_image": DEFAULT_IMAGE,
    "start_command": "tail -f /dev/null",
    "cpu_cores": 1,
    "team_id": None,
    "advanced_configs": None,
}
"""Arguments that mean nothing without a container engine, with the documented values at which they are taken all the same."""


class AdvancedConfigs(BaseModel):
    """What the hosted service is told beside all else, by any name; here it changes nothing."""

    model_config = ConfigDict(extra="allow")


def spec_of_arguments(spec: SandboxSpec, backend: str | None, **arguments: Any) -> SandboxSpec:
    """Return a spec with what documented arguments say.

    Args:
        spec: What else the sandbox is asked for.
        backend: What makes the sandboxes.
        **arguments: ``memory_gb`` and ``disk_size_gb`` are limits. Any other value than the documented default of ``docker_image``,
            ``cpu_cores`` (a limit), ``start_command`` (which runs beside all else), ``team_id`` and ``advanced_configs`` (which change
            nothing) needs the backend ``container``. Others change nothing.

    Raises:
        ConfigurationError: If one asks for what sandboxes do not offer.
    """
    if arguments.get("gpu_count"):
        raise ConfigurationError(f"gpu_count must be 0, since sandboxes have no GPUs; got {arguments['gpu_count']!r}")
    for name, default in _OF_CONTAINERS.items():
        if backend != "container" and arguments.get(name, default) != default:
            raise ConfigurationError(
                f"{name}={arguments[name]!r} needs backend='container'; only {name}={default!r} goes without an engine"
            )
    changes: dict[str, Any] = {}
    for name, field in (("memory_gb", "memory_mb"), ("disk_size_gb", "disk_mb")):
        if arguments.get(name) is not None:
            changes[field] = int(arguments[name] * 1024)
    if backend == "container":
        changes |= _changes_of_container(spec, arguments)
    else:
        _tell_what_is_not_used()
    return dataclasses.replace(spec, **changes)


def _changes_of_container(spec: SandboxSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an engine does of the arguments. What is at its default asks for nothing that a spec says otherwise."""
    asked = {name: value for name, value in arguments.items() if value is not None and value != _OF_CONTAINERS.get(name)}
    changes = {field: asked[name] for name, field in (("cpu_cores", "cpus"), ("start_command", "start_command")) if name in asked}
    if spec.dockerfile is None and (spec.image is None or "docker_image" in asked):
        changes["image"] = arguments.get("docker_image")
    return changes


@functools.cache
def _tell_what_is_not_used() -> None:
    logger.info("sandboxes without an image do not use %s", ", ".join(_OF_CONTAINERS))


def spec_of_request(spec: SandboxSpec, backend: str | None, request: Any) -> SandboxSpec:
    """Return a spec with what a documented request says (`CreateSandboxRequest`, or the hosted service's own).

    Args:
        spec: What else the sandbox is asked for.
        backend: What makes the sandboxes.
        request: Has ``docker_image``, ``memory_gb``, ``environment_vars``, ... as attributes, each of which may be None or missing;
            ``working_dir``, too, where commands run.

    Raises:
        ConfigurationError: As of `spec_of_arguments`.
    """
    names = ("memory_gb", "disk_size_gb", "gpu_count", *_OF_CONTAINERS)
    given = {name: getattr(request, name, None) for name in names}
    spec = spec_of_arguments(spec, backend, **{name: value for name, value in given.items() if value is not None})
    working_dir = getattr(request, "working_dir", None) or spec.working_dir
    return dataclasses.replace(spec, working_dir=working_dir, env={**spec.env, **(getattr(request, "environment_vars", None) or {})})
