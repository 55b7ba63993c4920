"""The backend ``container``: a container of Docker, or of Podman's service, whose first process is the agent. Its image needs a Python.

The engine is asked over its socket, with the package ``docker``. The agent reads from the connection that attaches to its container, so the
container ends with the process that created it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import logging
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from vfgym.aio.background import background_loop
from vfgym.aio.threads import on_thread
from vfgym.errors import FailureCause, MissingExtra, SandboxError
from vfgym.sandboxes import registry
from vfgym.sandboxes.agent_client import BOOTSTRAP, AgentClient, encode
from vfgym.sandboxes.agent_sandbox import AgentSandbox
from vfgym.sandboxes.base import Backend, Probe
from vfgym.sandboxes.local import MOST_TERMINALS, agent_settings, parts_of_environment
from vfgym.sandboxes.seccomp import write_socket_filters
from vfgym.sandboxes.spec import DEFAULT_DISK_MB, DEFAULT_PROCESSES, SandboxSpec, most_files

logger = logging.getLogger(__name__)

DEFAULT_IMAGE = "python:3.12-slim"
_STARTS_WITHIN = 120.0
_OWN_MEMORY_MB = 64
"""For the agent, so that it is not what the kernel ends when a command has too much."""
_DROPPED = ["AUDIT_WRITE", "MKNOD", "NET_RAW", "SETFCAP", "SYS_CHROOT"]
_MOST_LOG = 2000
_REMOVALS = 10

_PROTECTS = {
    "files": "the image's own",
    "network": "none, not even the host's loopback",
    "processes": "a namespace of their own, and a limit of their number",
    "memory": "limited by the kernel, all together",
    "disk": "a tmpfs of a limited size, where disk_mb is given",
    "kernel": "the engine's filter of system calls; the kernel is the host's",
}


class ContainerBackend(Backend):
    """Makes sandboxes that are containers."""

    name = "container"

    def probe(self) -> Probe:
        """Ask the engine whether it is there."""
        try:
            _engine()
        except MissingExtra:
            return Probe(works=False, protects=_PROTECTS, problem="the package docker is not installed", install=_INSTALL_PACKAGE)
        except SandboxError as error:
            return Probe(works=False, protects=_PROTECTS, problem=str(error), install=_INSTALL_ENGINE)
        return Probe(works=True, protects=_PROTECTS)

    def check(self, spec: SandboxSpec) -> None:
        """Accept any spec: an engine can keep them all."""

    def remove(self, record: registry.Record) -> None:
        """Remove the container."""
        import docker.errors

        for attempt in range(1, _REMOVALS + 1):
            try:
                _engine().api.remove_container(record.container, force=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError:  # it is ending, or removing itself, at the same time
                if attempt == _REMOVALS:
                    raise
                time.sleep(0.1 * attempt)
            else:
                return

    async def create(self, spec: SandboxSpec) -> ContainerSandbox:
        """Start a container."""
        sandbox = ContainerSandbox(spec, self)
        await sandbox.start()
        if spec.start_command is not None:
            sandbox.begin(spec.start_command)
        return sandbox


_INSTALL_PACKAGE = "pip install 'vfgym[sandboxes]'"
_INSTALL_ENGINE = "start Docker, or Podman's service (systemctl --user start podman.socket), or set DOCKER_HOST"


@functools.cache
def _engine() -> Any:
    """Return a client of the engine that answers.

    Raises:
        MissingExtra: If the package ``docker`` is not installed.
        SandboxError: If no engine answers.
    """
    try:
        import docker
        import docker.errors
    except ImportError:
        raise MissingExtra("sandboxes", "the backend container") from None
    runtime = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.geteuid()}")
    sockets = ["/var/run/docker.sock", f"{runtime}/docker.sock", f"{runtime}/podman/podman.sock", "/run/podman/podman.sock"]
    places = [os.environ["DOCKER_HOST"]] if "DOCKER_HOST" in os.environ else [f"unix://{path}" for path in sockets if os.path.exists(path)]
    problem = "there is no socket of Docker or Podman"
    for place in places:
        try:
            _check_socket(place)  # the package leaves a socket open that it can't connect
            client = docker.DockerClient(base_url=place, timeout=300, version="auto")
            client.ping()
        except (docker.errors.DockerException, OSError) as error:
            problem = f"{place} does not answer ({error})"
        else:
            return client
    raise SandboxError(f"no container engine answers: {problem}")


def _check_socket(place: str) -> None:
    if place.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as tried:
            tried.connect(place.removeprefix("unix://"))


class ContainerSandbox(AgentSandbox):
    """A sandbox that is a container."""

    def __init__(self, spec: SandboxSpec, backend: ContainerBackend) -> None:
        """Make one that was not started."""
        super().__init__(spec)
        self.backend = backend.name
        self.most_bytes = (spec.disk_mb or DEFAULT_DISK_MB) << 20
        self._remover = backend
        self._record = registry.Record(self.id, backend.name, registry.identify(os.getpid()), container=self.id)
        self._has_started = self._is_closed = False

    async def start(self) -> None:
        """Start the container, and wait for its agent.

        Raises:
            SandboxError: If it can't be started; the text says why.
        """
        await self._wait_for_start(on_thread(self._start), _STARTS_WITHIN)

    def _start(self) -> None:
        import docker.errors

        api = _engine().api
        image = find_image(self.spec)
        try:
            registry.add(self._record, self._remover)
            self._has_started = True
            api.create_container(
                image,
                ["-I", "-S", "-c", BOOTSTRAP],
                name=self.id,
                entrypoint=["python3"],
                stdin_open=True,
                working_dir="/",
                labels={"vfgym": "sandbox"},
                host_config=api.create_host_config(**_host_options(self.spec)),
            )
            stream = api.attach_socket(self.id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
            with contextlib.ExitStack() as ends:
                pipe = SocketPipe(stream)
                ends.callback(pipe.close)
                api.start(self.id)
                ends.pop_all()
        except docker.errors.DockerException as error:
            raise SandboxError(f"a container of the image {image} could not be started: {error}") from error
        # Where users of the container are root, the limit of processes is the engine's.
        filters = {machine: encode(program) for machine, program in write_socket_filters().items()}
        settings = agent_settings(self.spec, processes=None, disk_mb=self.spec.disk_mb, filters=filters, most_terminals=MOST_TERMINALS)
        if self.spec.disk_mb is not None:
            settings |= {"most_files": most_files(self.spec.disk_mb), "counted": ["/tmp", self.spec.working_dir, "/dev/shm"]}
        self.agent = AgentClient(pipe, settings, {port: os.fspath(path) for port, path in self.spec.forwards.items()})

    def begin(self, command: str) -> None:
        """Start a command that may run as long as the container, whichever loop made it."""
        self._beginning = asyncio.run_coroutine_threadsafe(self._run_to_end(command), background_loop())

    async def _run_to_end(self, command: str) -> None:
        try:
            done = await self.exec(command)
        except SandboxError:  # the sandbox has ended, and the command with it
            return
        if done.exit_code:
            said = done.stderr.strip()[-_MOST_LOG:]
            logger.warning("the start command %r of the sandbox %s ended with code %d: %s", command, self.id, done.exit_code, said)

    async def close(self) -> None:
        """Remove the container: see `Sandbox.close`."""
        if self._is_closed or self._record.owner[0] != os.getpid():  # a fork does not own it
            return
        self._is_closed = True
        if hasattr(self, "agent"):
            self.agent.end("the sandbox is closed")
        if self._has_started:
            await asyncio.shield(on_thread(registry.remove, self._record, self._remover))  # whoever is cancelled meanwhile


def _host_options(spec: SandboxSpec) -> dict[str, Any]:
    memory = spec.memory_mb + _OWN_MEMORY_MB + (spec.disk_mb or 0)
    readable = [str(path) for path in spec.readable_paths]
    if spec.python is not None:
        readable += parts_of_environment(str(spec.python))
    options: dict[str, Any] = {
        "auto_remove": True,
        "mem_limit": f"{memory}m",
        "memswap_limit": f"{memory}m",
        "pids_limit": spec.processes or DEFAULT_PROCESSES,
        "security_opt": ["no-new-privileges"],
        "cap_drop": _DROPPED,
        "binds": {path: {"bind": path, "mode": "ro"} for path in readable},
    }
    if spec.cpus is not None:
        options["nano_cpus"] = round(spec.cpus * 1e9)
    if not spec.network:
        options["network_mode"] = "none"
    if spec.disk_mb is not None:
        size = f"size={spec.disk_mb}m,mode=1777,exec"
        options |= {"read_only": True, "tmpfs": {"/tmp": size, spec.working_dir: size}, "shm_size": f"{spec.disk_mb}m"}
    return options


class SocketPipe:
    """The connection that is attached to a container: what it writes comes in frames that name the stream."""

    def __init__(self, stream: Any) -> None:
        """Take over what the package ``docker`` returns, which keeps more of the connection than it closes."""
        self.reading = self.writing = os.dup(stream.fileno())
        os.set_blocking(self.reading, False)
        stream._response.close()
        self._received = bytearray()
        self._errors = b""

    def decode(self, data: bytes) -> bytes:
        """Return what was written to standard output."""
        self._received += data
        output = bytearray()
        while len(self._received) >= 8:
            size = int.from_bytes(self._received[4:8], "big")
            if len(self._received) < 8 + size:
                break
            body = self._received[8 : 8 + size]
            if self._received[0] == 2:
                self._errors = (self._errors + body)[-_MOST_LOG:]
            else:
                output += body
            del self._received[: 8 + size]
        return bytes(output)

    def explain_end(self) -> tuple[str, FailureCause | None]:
        """Return what was written to standard error, or that the container was ended."""
        text = self._errors.decode("utf-8", "replace").strip()
        return (text, "policy") if text else ("its container was ended", None)

    def close(self) -> None:
        """Close the connection."""
        os.close(self.reading)


# Images

_builds: dict[str, str] = {}
_build_lock = threading.Lock()


def find_image(spec: SandboxSpec) -> str:
    """Return the image of a spec, which is built or pulled where it is not there.

    Raises:
        SandboxError: If it can't be.
    """
    import docker.errors

    if spec.dockerfile is not None:
        with _build_lock:
            return _build(Path(spec.dockerfile))
    image = spec.image or DEFAULT_IMAGE
    engine = _engine()
    try:
        engine.images.get(image)
    except docker.errors.ImageNotFound:
        try:
            engine.images.pull(image)
        except docker.errors.DockerException as error:
            raise SandboxError(f"the image {image} is not there, and can't be pulled: {error}") from error
    return image


def _build(folder: Path) -> str:
    """Build the image of a folder, if this was not done for the same files."""
    import docker.errors

    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            digest.update(f"{path.relative_to(folder)}\0{path.stat().st_mode}\0".encode())
            digest.update(path.read_bytes())
    key = digest.hexdigest()
    if key in _builds:
        return _builds[key]
    try:
        image, _ = _engine().images.build(path=str(folder), tag=f"localhost/vfgym-built:{key[:16]}", rm=True, forcerm=True)
    except docker.errors.BuildError as error:
        log = "".join(str(line.get("stream") or line.get("error") or "") for line in error.build_log)
        raise SandboxError(f"the image of {folder / 'Dockerfile'} can't be built: {error.msg}\n{log.strip()[-_MOST_LOG:]}") from error
    except (docker.errors.DockerException, TypeError) as error:
        raise SandboxError(f"the image of {folder / 'Dockerfile'} can't be built: {error}") from error
    _builds[key] = str(image.id)
    return _builds[key]
