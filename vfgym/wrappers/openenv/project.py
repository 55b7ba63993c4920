"""Projects of OpenEnv: a folder with a ``.build.json``, of which servers are started."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.sandboxes import SandboxSpec, check_spec
from vfgym.wrappers.openenv.rendering import Contract
from vfgym.wrappers.openenv.sandboxed import start_sandboxed
from vfgym.wrappers.openenv.servers import ServerSource, check_seconds
from vfgym.wrappers.openenv.starting import StartedServers, start_process

MANIFEST = ".build.json"

_DEFAULT_PORT = 8000

_CONTAINER = "container"
"""The backend that runs images."""


@dataclass(frozen=True)
class Project:
    """What a project's manifest says."""

    folder: Path
    image: str | None
    """The container image in which a server runs."""
    port: int
    """The port that a server listens at."""
    start_command: str | None
    """Starts a server, in a shell."""
    contract: Contract | None
    """How a server is played; None to go by its schema of actions."""


def read_project(folder: str | Path) -> Project:
    """Read the manifest of a project.

    Args:
        folder: The project's folder.

    Raises:
        ConfigurationError: If there is no manifest, or it is malformed.
    """
    path = Path(folder).expanduser() / MANIFEST
    try:
        data = parse_json(path.read_text())
    except OSError as error:
        raise ConfigurationError(
            f"an OpenEnv project is a folder with a {MANIFEST} (image, port, start_command, contract);"
            f" {path} cannot be read: {error.strerror}"
        ) from None
    except ValueError as error:
        raise ConfigurationError(f"{path} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ConfigurationError(f"{path} must be an object with image, port, start_command and contract, got {type(data).__name__}")
    contract = _field(path, data, "contract", str)
    if contract is not None and contract not in get_args(Contract):
        raise ConfigurationError(f"{path}: contract must be 'gym' or 'mcp', got {contract!r}.{did_you_mean(contract, get_args(Contract))}")
    port = _field(path, data, "port", int)
    if port is not None and not 0 < port < 2**16:
        raise ConfigurationError(f"{path}: port must be from 1 to 65535, got {port}")
    return Project(
        path.parent,
        _field(path, data, "image", str),
        _DEFAULT_PORT if port is None else port,
        _field(path, data, "start_command", str),
        contract,
    )


def servers_of(project: Project, backend: str | None, *, start_timeout: float, request_timeout: float) -> ServerSource:
    """Return what starts the servers of a project.

    Args:
        project: The project.
        backend: The backend of sandboxes in which its servers run: ``"container"`` without it, which takes its image. ``"unsafe"`` runs
            them as processes of this machine, in the project's folder.
        start_timeout: Seconds that a server has until it answers.
        request_timeout: Seconds that it has for each answer.

    Raises:
        ConfigurationError: If a number of seconds is none, or nothing can start them here; the text says what can.
    """
    check_seconds("start_timeout", start_timeout)
    check_seconds("request_timeout", request_timeout)
    if project.start_command is None:
        raise ConfigurationError(f"{project.folder / MANIFEST} has no start_command, which starts a server: add it, or give url=")
    common = {"start_timeout": start_timeout, "request_timeout": request_timeout}
    if backend == "unsafe":
        return StartedServers(functools.partial(start_process, project.start_command, project.folder, project.port, **common))
    backend = _CONTAINER if backend is None else backend
    image = project.image if backend == _CONTAINER else None
    try:
        check_spec(SandboxSpec(image=image), backend)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"the servers of the OpenEnv project {project.folder} can't be started: {error}. Or start one yourself (docker run -p"
            f" {project.port}:{project.port} {project.image or 'IMAGE'}) and give url='http://127.0.0.1:{project.port}', or give"
            " backend='unsafe', which runs the project's start_command as a process of this machine that nothing holds back"
        ) from None
    start = functools.partial(start_sandboxed, project.start_command, project.folder, project.port, image=image, backend=backend, **common)
    return StartedServers(start)


def _field(path: Path, data: dict[str, Any], name: str, kind: type) -> Any:
    value = data.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise ConfigurationError(f"{path}: {name} must be {'text' if kind is str else 'a whole number'}, got {value!r}")
    return value
