"""`Sandbox`, what can be done in one, and `Backend`, what makes them."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from vfgym.errors import SandboxError
from vfgym.sandboxes.registry import Record
from vfgym.sandboxes.spec import CellResult, ExecResult, SandboxSpec, TreeSnapshot

logger = logging.getLogger(__name__)


class Sandbox(ABC):
    """A place where commands and Python cells run without harm to anything outside, as far as its backend goes.

    Paths are relative to the working directory. Methods may be called from any event loop of the process that created the sandbox. After
    `close`, and where the sandbox has died, they raise `SandboxError`.
    """

    backend: str
    """The name of the backend that made it."""

    def __init__(self, spec: SandboxSpec) -> None:
        """Give it an id."""
        self.id = f"vfgym-{secrets.token_hex(8)}"
        self.spec = spec

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse.

        Raises:
            TypeError: It says that a running sandbox can be neither pickled nor copied.
        """
        raise TypeError(f"a running sandbox ({self.id}) can be neither pickled nor copied; snapshot() and restore() are for its files")

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether anything can still be done in it."""

    @abstractmethod
    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        input: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        working_dir: str | None = None,
    ) -> ExecResult:
        """Run a command, and end whatever it leaves behind. Up to 128 may run at once. Cancelling this kills it.

        Args:
            command: A line for the shell (bash, or sh where there is none), or a program with its arguments.
            timeout: Seconds after which it is killed; None for no limit.
            input: What it reads from standard input; nothing by default.
            env: Environment variables, beside those of the sandbox.
            working_dir: Where it runs, relative to the sandbox's working directory.

        Raises:
            ConfigurationError: If an argument can't be used. A working directory that is not there is the command's failure, 127.
            SandboxError: If the sandbox has ended.
        """

    @abstractmethod
    async def python(self, code: str, *, timeout: float | None = None) -> CellResult:
        """Run a cell in the sandbox's one Python interpreter, which keeps what cells define. Cells wait for those before them.

        Args:
            code: Statements; the value of an expression at the end is given.
            timeout: Seconds after which it is interrupted, and killed soon after; None for no limit.

        Raises:
            SandboxError: If the sandbox has ended.
        """

    @abstractmethod
    async def read_file(self, path: str) -> bytes:
        """Return what is in a file.

        Raises:
            FileNotFoundError: If there is no such file; another `OSError` if it can't be read.
            SandboxError: If the sandbox has ended, or the file is larger than its disk.
        """

    @abstractmethod
    async def write_file(self, path: str, data: bytes | str) -> None:
        """Write a file; parents are made.

        Raises:
            OSError: If it can't be written.
            SandboxError: If the sandbox has ended.
        """

    @abstractmethod
    async def upload(self, local: str | os.PathLike[str], inside: str) -> list[str]:
        """Copy a file, or what is in a folder, of the host into the sandbox.

        A link in a folder is copied as the file of the same folder that it leads to.

        Returns:
            Paths of links that were not copied, since they lead to no file of that folder.

        Raises:
            FileNotFoundError: If there is no such file or folder.
            SandboxError: If the sandbox has ended.
        """

    @abstractmethod
    async def download(self, inside: str, local: str | os.PathLike[str]) -> list[str]:
        """Copy a file, or what is in a folder, of the sandbox to the host, as `upload` does in the other direction.

        Raises:
            FileNotFoundError: If there is no such file or folder.
            SandboxError: If the sandbox has ended, or there is more than its disk has room for.
        """

    async def snapshot(self) -> TreeSnapshot:
        """Return the files: all that were made where the backend ``bwrap`` made the sandbox, else those of the working directory.

        Raises:
            SandboxError: If the backend can't; or if there is something that can't be kept, such as a socket.
        """
        raise SandboxError(f"sandboxes of the backend {self.backend} can't be snapshotted")

    async def restore(self, snapshot: TreeSnapshot) -> None:
        """Make the files what they were in this, or an equal, sandbox at the snapshot.

        Raises:
            SandboxError: If the backend can't.
        """
        raise SandboxError(f"sandboxes of the backend {self.backend} can't be restored")

    async def copy_to(self, other: Sandbox, path: str) -> None:
        """Copy a file, or a folder with all that is in it, to the same place of another sandbox, in place of what is there.

        Modes and links are copied, as links, wherever they lead; owners, times and attributes are not, nor are pipes and sockets. A path
        that is not there is removed in the other sandbox, where a folder is emptied.

        Raises:
            SandboxError: If either has ended, there is more than a copy may have, or the backend can't.
        """
        raise SandboxError(f"files can't be copied out of sandboxes of the backend {self.backend} into others")

    async def end_interpreter(self) -> None:
        """End the interpreter of the cells with all that it has started: what whoever wrote them says no more is asked of it.

        The next cell gets a new one. While it starts, it loads nothing that programs may have left for it: no module of the working
        directory, and nothing of the home folder. Modules of the working directory can be imported; installed ones win over them.

        Raises:
            SandboxError: If the sandbox has ended, or the backend can't.
        """
        raise SandboxError(f"sandboxes of the backend {self.backend} can't end the interpreter of their cells")

    @abstractmethod
    async def close(self) -> None:
        """End it with everything in it. A second call does nothing."""

    async def __aenter__(self) -> Sandbox:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


@dataclass(frozen=True)
class Probe:
    """What a backend can do on this machine."""

    works: bool
    protects: Mapping[str, str]
    """What of the host it protects, by name (files, network, processes, memory, disk, kernel), and how."""
    problem: str | None = None
    """Why it does not work."""
    install: str | None = None
    """What makes it work."""


class Backend(ABC):
    """Makes sandboxes of one kind. Others register theirs as entry points of the group ``vfgym.sandboxes``."""

    name: str
    snapshots_have_all_files = False
    """Whether a snapshot has the files of the whole sandbox, and not only those of its working directory."""

    @abstractmethod
    def probe(self) -> Probe:
        """Say what works on this machine; the answer is kept, and quick where nothing works."""

    @abstractmethod
    def check(self, spec: SandboxSpec) -> None:
        """Refuse a spec that asks for what this backend can't keep.

        Raises:
            ConfigurationError: If it does; the text names it.
        """

    @abstractmethod
    def remove(self, record: Record) -> None:
        """Remove what there still is of a sandbox that was closed, or whose owner has ended."""

    @abstractmethod
    async def create(self, spec: SandboxSpec) -> Sandbox:
        """Create a sandbox of a spec that was checked.

        Raises:
            SandboxError: If it can't be started.
        """


async def close_quietly(sandbox: Sandbox) -> None:
    """Close a sandbox that is not needed any more, also while this is cancelled; what goes wrong is logged."""
    try:
        await asyncio.shield(sandbox.close())
    except Exception:
        logger.exception("%s could not be closed", sandbox.id)
