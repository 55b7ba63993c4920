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
from vfgym.sandboxes.stand_ins import has_engine, with_stand_in

logger = logging.getLogger("verifiers_compat")

DEFAULT_IMAGE = "python:3.11-slim"
_START_COMMAND = "tail -f /dev/null"
_DEFAULTS: Mapping[str, Any] = {"docker_image": DEFAULT_IMAGE, "start_command": _START_COMMAND, "cpu_cores": 1}
"""Documented values that ask for nothing."""


class AdvancedConfigs(BaseModel):
    """What the hosted service is told beside all else, by any name; here it changes nothing."""

    model_config = ConfigDict(extra="allow")


def spec_of_arguments(spec: SandboxSpec, backend: str | None, *, strict_image: bool = False, **arguments: Any) -> SandboxSpec:
    """Return a spec with what documented arguments say.

    ``memory_gb`` and ``disk_size_gb`` are limits. The default of ``docker_image`` asks for nothing, unless `strict_image`; any other image
    is run by a container engine, or this machine stands for it (see `with_stand_in`). An engine keeps ``cpu_cores``, and runs a
    ``start_command`` other than the default beside all else; without one, commands use the CPUs that are there. Others change nothing.

    Args:
        spec: What else the sandbox is asked for.
        backend: What makes the sandboxes.
        strict_image: Whether nothing is to stand for an image.
        **arguments: The arguments.

    Raises:
        ConfigurationError: If one asks for what sandboxes do not offer.
    """
    asked = {name: value for name, value in arguments.items() if value is not None and value != _DEFAULTS.get(name)}
    if asked.get("gpu_count"):
        raise ConfigurationError(f"gpu_count must be 0, since sandboxes have no GPUs; got {asked['gpu_count']!r}")
    changes: dict[str, Any] = {}
    for name, field in (("memory_gb", "memory_mb"), ("disk_size_gb", "disk_mb")):
        if arguments.get(name) is not None:
            changes[field] = int(arguments[name] * 1024)
    image = arguments.get("docker_image")
    is_wanted = "docker_image" in asked or strict_image or backend == "container"
    if image is not None and is_wanted and spec.dockerfile is None and (spec.image is None or "docker_image" in asked):
        changes["image"] = image
    spec = with_stand_in(dataclasses.replace(spec, **changes), backend, strict_image=strict_image)
    has_image = spec.image is not None or spec.dockerfile is not None
    if has_image and not (has_engine() if backend is None else backend == "container"):
        raise ConfigurationError(
            f"docker_image={spec.image!r} needs backend='container', and an engine that answers; without one this machine stands for"
            f" python:*, debian:*, ubuntu:*, and node:* where Node is here{', but for strict_image=True' if strict_image else ''}"
        )
    kept = {field: asked[name] for name, field in (("cpu_cores", "cpus"), ("start_command", "start_command")) if name in asked}
    if has_image or backend == "container":
        return dataclasses.replace(spec, **kept)
    if "start_command" in kept:
        raise ConfigurationError(
            f"start_command={kept['start_command']!r} needs backend='container'; only {_START_COMMAND!r} goes without an engine"
        )
    if "cpus" in kept:
        _tell_of_cpus()
    return spec


@functools.cache
def _tell_of_cpus() -> None:
    logger.warning("cpu_cores is not limited without a container engine: commands use the CPUs that are there")


def spec_of_request(spec: SandboxSpec, backend: str | None, request: Any, *, strict_image: bool = False) -> SandboxSpec:
    """Return a spec with what a documented request says (`CreateSandboxRequest`, or the hosted service's own).

    Args:
        spec: What else the sandbox is asked for.
        backend: What makes the sandboxes.
        request: Has ``docker_image``, ``memory_gb``, ``environment_vars``, ... as attributes, each of which may be None or missing;
            ``working_dir``, too, where commands run.
        strict_image: Whether nothing is to stand for an image.

    Raises:
        ConfigurationError: As of `spec_of_arguments`.
    """
    names = ("memory_gb", "disk_size_gb", "gpu_count", *_DEFAULTS)
    given = {name: getattr(request, name, None) for name in names}
    spec = spec_of_arguments(spec, backend, strict_image=strict_image, **given)
    working_dir = getattr(request, "working_dir", None) or spec.working_dir
    return dataclasses.replace(spec, working_dir=working_dir, env={**spec.env, **(getattr(request, "environment_vars", None) or {})})
