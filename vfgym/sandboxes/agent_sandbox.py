"""`AgentSandbox`: a sandbox whose agent does everything that is asked for."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import transfer
from vfgym.sandboxes.agent_client import AgentClient, decode, encode
from vfgym.sandboxes.base import Sandbox
from vfgym.sandboxes.spec import CellResult, Entry, ExecResult, TreeSnapshot, check_env

_ANSWERS_WITHIN = 60.0
"""Seconds within which a file operation is answered, and beyond a time limit a command or a cell, by an agent that is not hindered."""
CHUNK = 1 << 20


class AgentSandbox(Sandbox):
    """A sandbox whose agent does everything; backends say how it is started and ended."""

    agent: AgentClient
    snapshots_have_all_files = False
    """As its `Backend` says."""
    most_bytes: int
    """How much is copied out of it at once, at most."""

    @property
    def is_alive(self) -> bool:
        """Whether anything can still be done in it."""
        return self.agent.end_reason is None

    async def _wait_for_start(self, start: Coroutine[Any, Any, None], within: float) -> None:
        """Start it and wait for its agent; close it where that fails or is cancelled.

        Raises:
            SandboxError: If it can't be started.
        """
        starting = asyncio.ensure_future(start)
        try:
            await asyncio.shield(starting)
            await self.agent.ready(within)
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(self._give_up(starting)))  # however often this is cancelled
            raise

    async def _give_up(self, starting: asyncio.Future[None]) -> None:
        await asyncio.gather(starting, return_exceptions=True)  # what it has started meanwhile is to be closed
        await self.close()

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        input: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        working_dir: str | None = None,
    ) -> ExecResult:
        """Run a command: see `Sandbox.exec`."""
        _check_timeout(timeout)
        check_env("env", env or {})
        data = input.encode() if isinstance(input, str) else input or b""
        said = await self.agent.ask(
            "exec",
            within=None if timeout is None else timeout + _ANSWERS_WITHIN,
            command=_check_command(command),
            timeout=timeout,
            input=encode(data),
            env=dict(env or {}),
            working_dir=working_dir,
        )
        return ExecResult(
            exit_code=int(said["exit_code"]),
            stdout=_text(said["stdout"]),
            stderr=_text(said["stderr"]),
            timed_out=bool(said["timed_out"]),
            truncated=bool(said["truncated"]),
        )

    async def python(self, code: str, *, timeout: float | None = None) -> CellResult:
        """Run a cell: see `Sandbox.python`."""
        _check_timeout(timeout)
        if not isinstance(code, str):
            raise ConfigurationError(f"a cell must be a text, got {type(code).__name__}")
        said = await self.agent.ask("cell", within=None, code=code, timeout=timeout)
        value, trace = said["value"], said["traceback"]
        return CellResult(
            stdout=_text(said["stdout"]),
            stderr=_text(said["stderr"]),
            value=None if value is None else str(value),
            traceback=None if trace is None else str(trace),
            timed_out=bool(said["timed_out"]),
            state_is_lost=bool(said["state_is_lost"]),
            truncated=bool(said["truncated"]),
            count=int(said["count"]),
        )

    async def read_file(self, path: str) -> bytes:
        """Return what is in a file: see `Sandbox.read_file`."""
        data = bytearray()
        while True:
            said = await self._ask("read", path=path, offset=len(data), size=CHUNK)
            if int(said["size"]) > self.most_bytes:
                raise _policy_error(
                    f"{path} has {said['size']} bytes, more than the {self.most_bytes} that a copy from this sandbox may have"
                )
            part = decode(said["data"])
            data += part
            if not part or len(data) >= int(said["size"]):
                return bytes(data)

    async def write_file(self, path: str, data: bytes | str) -> None:
        """Write a file: see `Sandbox.write_file`."""
        if not isinstance(data, bytes | bytearray | str):
            raise ConfigurationError(f"a file is written from bytes or a text, got {type(data).__name__}")
        await self._write(path, data.encode() if isinstance(data, str) else bytes(data), None)

    async def upload(self, local: str | os.PathLike[str], inside: str) -> list[str]:
        """Copy something into the sandbox: see `Sandbox.upload`."""
        base = Path(local).absolute()
        entries, dropped = transfer.resolve_links(transfer.walk(base))
        if entries and entries[0].path:
            await self._ask("make_folder", path=inside, mode=None)
        for entry in entries:
            path = os.path.join(inside, entry.path) if entry.path else inside
            if entry.kind == "folder":
                await self._ask("make_folder", path=path, mode=entry.mode | 0o700)
            else:
                await self._write(path, transfer.read(base, entry), entry.mode)
        return dropped

    async def download(self, inside: str, local: str | os.PathLike[str]) -> list[str]:
        """Copy something out of the sandbox: see `Sandbox.download`."""
        with _left_by_programs(inside):
            entries, dropped = transfer.resolve_links(await self._walk(inside))
        base, left = Path(local).absolute(), self.most_bytes
        for entry in entries:
            if entry.kind == "folder":
                transfer.make_folder(base, entry)
                continue
            with _left_by_programs(inside):
                data = await self.read_file(os.path.join(inside, entry.file or entry.path) if entry.path else inside)
            left -= len(data)
            if left < 0:
                raise _policy_error(f"{inside} has more than the {self.most_bytes} bytes that a copy from this sandbox may have")
            transfer.write(base, entry, data)
        return dropped

    async def snapshot(self) -> TreeSnapshot:
        """Return the files: see `Sandbox.snapshot`."""
        try:
            found, left_out = await self._find_files()
            left, entries = self.most_bytes, []
            for entry in found:
                data = await self.read_file(entry.path) if entry.kind == "file" else b""
                left -= len(data)
                if left < 0:
                    raise _policy_error(f"the files of the sandbox have more than the {self.most_bytes} bytes that a snapshot may have")
                entries.append((entry, data))
        except OSError as error:
            raise _policy_error(f"the files of the sandbox can't be kept: {error}") from error
        return TreeSnapshot(tuple(entries), left_out)

    async def _find_files(self) -> tuple[list[Entry], str | None]:
        """Return what a snapshot has, and what it leaves out."""
        if not self.snapshots_have_all_files:
            return await self._walk("."), "files that are not in its working directory"
        said = await self._ask("walk_new")
        return [Entry(*fields) for fields in said["entries"]], "the interpreter of its cells" if said["has_interpreter"] else None

    async def restore(self, snapshot: TreeSnapshot) -> None:
        """Make the files what they were: see `Sandbox.restore`."""
        try:
            if self.snapshots_have_all_files:
                problem = (await self._ask("remove_new"))["problem"]
                if problem is not None:
                    raise SandboxError(f"the files of the sandbox can't be made again: {problem}")
            else:
                await self._ask("clear", path=".")
            for entry, data in snapshot.entries:
                if entry.kind == "folder":
                    await self._ask("make_folder", path=entry.path, mode=entry.mode | 0o700)
                elif entry.kind == "link":
                    await self._ask("make_link", path=entry.path, target=entry.target)
                else:
                    await self._write(entry.path, data, entry.mode)
            for entry, _ in reversed(snapshot.entries):  # folders that can't be written to, after what is in them
                if entry.kind == "folder" and entry.mode & 0o700 != 0o700:
                    await self._ask("make_folder", path=entry.path, mode=entry.mode)
        except OSError as error:
            raise SandboxError(f"the files of the sandbox can't be made again: {error}") from error

    async def copy_to(self, other: Sandbox, path: str) -> None:
        """Copy a file or folder to another sandbox: see `Sandbox.copy_to`."""
        if not isinstance(other, AgentSandbox):
            raise SandboxError(f"files can't be copied into a sandbox of the backend {other.backend}")
        place = os.path.join(self.spec.working_dir, path)
        entries = await self._entries_to_copy(place)
        await other._ask("clear", path=place)
        if entries is None:
            return
        if not entries or entries[0].path:
            await other._ask("make_folder", path=place, mode=None)
        for entry in entries:
            await self._copy_entry(other, os.path.join(place, entry.path) if entry.path else place, entry)
        for entry in reversed(entries):  # folders that can't be written to, after what is in them
            if entry.kind == "folder" and entry.mode & 0o700 != 0o700:
                await other._ask("make_folder", path=os.path.join(place, entry.path), mode=entry.mode)

    async def _entries_to_copy(self, place: str) -> list[Entry] | None:
        """Return what is at a path; None where nothing is.

        Raises:
            SandboxError: If it can't be copied, which is the doing of what ran there.
        """
        try:
            with _left_by_programs(place):
                entries = transfer.check_tree(await self._walk(place))
        except (FileNotFoundError, NotADirectoryError):
            return None
        if sum(entry.size for entry in entries) > self.most_bytes:
            raise _policy_error(f"{place} has more than the {self.most_bytes} bytes that a copy from this sandbox may have")
        return entries

    async def _copy_entry(self, other: AgentSandbox, path: str, entry: Entry) -> None:
        if entry.kind == "folder":
            await other._ask("make_folder", path=path, mode=entry.mode | 0o700)
        elif entry.kind == "link":
            await other._ask("make_link", path=path, target=entry.target)
        else:
            try:
                data = await self.read_file(path)
            except OSError as error:
                raise _policy_error(f"{path} can't be copied out of the sandbox: {error}") from error
            await other._write(path, data, entry.mode)

    async def end_interpreter(self) -> None:
        """End the interpreter of the cells: see `Sandbox.end_interpreter`."""
        await self._ask("end_interpreter")

    async def _ask(self, do: str, **fields: Any) -> dict[str, Any]:
        return await self.agent.ask(do, within=_ANSWERS_WITHIN, **fields)

    async def _walk(self, path: str) -> list[Entry]:
        said = await self._ask("walk", path=path)
        return [transfer.check(Entry(*fields)) for fields in said["entries"]]

    async def _write(self, path: str, data: bytes, mode: int | None) -> None:
        for start in range(0, max(len(data), 1), CHUNK):
            part, is_last = encode(data[start : start + CHUNK]), start + CHUNK >= len(data)
            await self._ask("write", path=path, data=part, append=start > 0, mode=mode if is_last else None)  # which may forbid to write


@contextlib.contextmanager
def _left_by_programs(path: str) -> Iterator[None]:
    """Have it be the doing of what ran in a sandbox that something is there which can't be read."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise _policy_error(f"{path} can't be copied out of the sandbox: {str(error)[:500]}") from error


def _policy_error(text: str) -> SandboxError:
    """Return the error of a sandbox that its programs have brought about."""
    error = SandboxError(text)
    error.failure_cause = "policy"
    return error


def _check_timeout(timeout: float | None) -> None:
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0):
        raise ConfigurationError(f"timeout must be a number of seconds above 0, or None for no limit, got {timeout!r}")


def _check_command(command: str | Sequence[str]) -> str | list[str]:
    if isinstance(command, str):
        return command
    parts = list(command)
    if not parts or not all(isinstance(part, str) and "\0" not in part for part in parts):
        raise ConfigurationError(f"a command must be a line for the shell, or a list of texts that is not empty, got {command!r}")
    return parts


def _text(data: str) -> str:
    return decode(data).decode("utf-8", "replace")
