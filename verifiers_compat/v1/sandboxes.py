"""What configurations of sandboxes ask for, and the sandboxes that are made of them.

A configuration means what it says. A sandbox needs a container engine for an image that this machine can't stand for, and for a
``start_command``. The network is there unless ``network_access`` is false; the model of a rollout is reached either way.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from verifiers_compat.envs.sandbox_arguments import spec_of_arguments
from verifiers_compat.v1.config import SandboxConfig
from verifiers_compat.v1.config_base import merge_values
from vfgym import sandboxes
from vfgym.aio.shielding import await_shielded
from vfgym.aio.threads import on_thread
from vfgym.envs.agent_program import free_port
from vfgym.envs.python_packages import find_packages
from vfgym.envs.sandboxed import backend_for
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import Sandbox, SandboxSpec

_NOT_COPIED = (".*", "__pycache__", "*.pyc", "*.egg-info", "outputs")
DEFAULT_WORKDIR = "/workspace"
_MOST_QUOTED = 2000
"""Characters of a command's last words that an error has."""


def as_sandbox(value: Any, what: str) -> SandboxConfig | None:
    """Return what a sandbox is asked for; None where there is to be none (None, False).

    Args:
        value: A configuration, a mapping with its fields, True for the defaults, or ``"program"`` to use the sandbox of the program.
        what: Who asks, for the message.

    Raises:
        ConfigurationError: If it is none of these, or no such sandbox can be made here: the text says what to install.
    """
    if value is None or value is False:
        return None
    if value == "program":
        return SandboxConfig(prefer="program")
    if value is not True and not isinstance(value, SandboxConfig | Mapping):
        raise ConfigurationError(f"the sandbox of {what} must be true, false, 'program' or a mapping, got {value!r:.100}")
    try:
        config = SandboxConfig.from_config({} if value is True else value)
    except ValidationError as error:
        raise ConfigurationError(f"the sandbox of {what}: {error}") from None
    sandboxes.check_spec(*_spec_of(config))
    return config


def with_task(config: SandboxConfig, own: Mapping[str, Any] | None) -> SandboxConfig:
    """Return a configuration with what a task says other than the defaults, which a frozen task has filled in."""
    if not own:
        return config
    changes = SandboxConfig.from_config(own).model_dump(exclude_defaults=True)
    merged: SandboxConfig = SandboxConfig.from_config(merge_values(config.model_dump(exclude_unset=True), changes))
    return merged


def _spec_of(config: SandboxConfig) -> tuple[SandboxSpec, str | None]:
    """Return what a sandbox of this library is asked for, and what makes it."""
    spec = SandboxSpec(
        dockerfile=config.dockerfile,
        network=config.network_access,
        env=config.environment_vars,
        working_dir=config.workdir or DEFAULT_WORKDIR,
    )
    arguments = {name: getattr(config, name) for name in ("start_command", "cpu_cores", "gpu_count", "memory_gb", "disk_size_gb")}
    spec = spec_of_arguments(spec, config.backend, strict_image=config.strict_image, docker_image=config.image, **arguments)
    backend = backend_for(spec, config.backend)
    if backend == "container":  # a limit would hide what the image has in the working directory
        spec = dataclasses.replace(spec, disk_mb=None)
    return spec, backend


async def open_sandbox(config: SandboxConfig, model_socket: str, **changes: Any) -> Sandbox:
    """Return a new sandbox, with its packages, in which the setup commands were run.

    Args:
        config: What it is asked for.
        model_socket: The unix socket that `port_of` leads to.
        **changes: Fields of its `SandboxSpec`.

    Raises:
        SandboxError: If it cannot be started, packages cannot be installed, or a setup command fails.
    """
    try:
        spec, backend = _spec_of(config)
        sandboxes.check_spec(spec, backend)
    except ConfigurationError as error:  # of a task: the others can be played
        raise SandboxError(str(error)) from None
    if config.packages and backend != "container":
        changes["python"] = await find_packages(" ".join(config.packages))
    spec = dataclasses.replace(spec, forwards={free_port(): model_socket}, **changes)
    sandbox = await sandboxes.create(spec, backend=backend)
    try:
        if config.packages and backend == "container":
            await run_setup(sandbox, ["python3", "-m", "pip", "install", "--quiet", *config.packages], config.install_timeout)
        for command in config.setup_commands:
            await run_setup(sandbox, command, config.setup_timeout)
    except BaseException:
        await sandbox.close()
        raise
    return sandbox


def port_of(sandbox: Sandbox) -> int:
    """Return the port of loopback at which models are reached from a sandbox that `open_sandbox` made."""
    return next(iter(sandbox.spec.forwards))


async def run_setup(sandbox: Sandbox, command: str | list[str], timeout: float, env: Mapping[str, str] | None = None) -> None:
    """Run a command that prepares a sandbox.

    Raises:
        SandboxError: If it fails, or takes longer than `timeout` seconds.
    """
    done = await sandbox.exec(command, timeout=timeout, env=env)
    if done.exit_code or done.timed_out:
        how = f"took longer than {timeout} s" if done.timed_out else f"ended with code {done.exit_code}"
        said = (done.stderr.strip() or done.stdout.strip())[-_MOST_QUOTED:] or "it printed nothing"
        raise SandboxError(f"the setup command {command!r:.200} {how}: {said}")


async def upload_package(folder: str | os.PathLike[str], inside: str, sandbox: Sandbox, what: str) -> None:
    """Copy the folder of a Python package into a sandbox, without what is not of the package.

    Raises:
        SandboxError: If it cannot be copied.
    """
    ignored = shutil.ignore_patterns(*_NOT_COPIED)
    with tempfile.TemporaryDirectory() as staged:
        package = Path(staged, "package")
        copy = functools.partial(shutil.copytree, ignore=ignored, ignore_dangling_symlinks=True)
        try:
            # Whoever gives the thread up must not remove the folder that it still writes to.
            await await_shielded(on_thread(copy, folder, package))
            await sandbox.upload(package, inside)
        except OSError as error:
            raise SandboxError(f"{what} cannot be copied into its sandbox: {error}") from error
