"""`AgentClient`: the host's side of the pipe to an agent. Many requests at once, from any event loop or thread."""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import functools
import itertools
import json
import marshal
import os
import threading
from collections import deque
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any, Protocol

from vfgym.aio.background import background_loop
from vfgym.bounded_json import parse_json
from vfgym.errors import FailureCause, SandboxError
from vfgym.sandboxes.forwarding import Forwarding

_MOST_FRAME = 64 << 20
_INSIDE = "vfgym.sandboxes.inside."
_MODULES = ("wire", "processes", "bounds", "files", "pristine", "jobs", "agent")
"""In the order in which they import each other; ``forwarding`` goes before the last where ports are forwarded."""
_MARSHAL = 4
"""The version of its format that all interpreters read which the agent runs on."""

BOOTSTRAP = """
import marshal, os, sys, types
from _frozen_importlib_external import MAGIC_NUMBER
def take(size):
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            os._exit(1)
        data += part
    return data
first = marshal.loads(take(int.from_bytes(take(4), "big")))
is_ours = first["magic"] == MAGIC_NUMBER
for name, source, compiled in first["modules"]:
    module = sys.modules[name] = types.ModuleType(name)
    code = marshal.loads(compiled) if is_ours else compile(source, name, "exec")
    exec(code, module.__dict__)
module.main(first["settings"])
"""
"""What an interpreter is started with (``python -I -S -c``): it reads the agent's modules, and becomes the agent.

They are sent as source and compiled, which saves 10 ms in an interpreter of our version. What is imported here, or by the agent, is what
each sandbox takes time for."""


class Pipe(Protocol):
    """The way to a process inside a sandbox."""

    reading: int
    """A descriptor that is read, which does not block."""
    writing: int
    """A descriptor that is written to, which does not block."""

    def decode(self, data: bytes) -> bytes:
        """Return what the process wrote, of what was read."""
        ...

    def explain_end(self) -> tuple[str, FailureCause | None]:
        """Say why the process has ended, and by whose doing, where that is known."""
        ...

    def close(self) -> None:
        """Close both ends."""
        ...


@functools.cache
def _read_module(name: str) -> tuple[str, str, bytes]:
    """Return a module of the agent: its name, source and code."""
    source = Path(__file__).with_name("inside").joinpath(f"{name}.py").read_text(encoding="utf-8")
    return _INSIDE + name, source, marshal.dumps(compile(source, _INSIDE + name, "exec"))


class AgentClient:
    """Requests to one agent, and its answers."""

    def __init__(self, pipe: Pipe, settings: dict[str, Any], forwards: dict[int, str]) -> None:
        """Begin to talk to an interpreter that was started with `BOOTSTRAP`. The pipe is closed with this, or where this raises.

        Raises:
            SandboxError: If the settings are too much for one request.
        """
        self._pipe = pipe
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._unsent: deque[memoryview] = deque()
        self._received = bytearray()
        self._waiting: dict[int, concurrent.futures.Future[Any]] = {}
        self._ids = itertools.count(1)
        self._forwarding = Forwarding(forwards, self._send)
        self._loop = background_loop()
        self.end_reason: str | None = None
        """Why nothing more can be asked for; None while it can."""
        self.end_cause: FailureCause | None = None
        """By whose doing; None where that is not known."""
        self._ready: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._waiting[0] = self._ready
        try:
            modules = [_read_module(name) for name in (*_MODULES[:-1], *(["forwarding"] if forwards else []), _MODULES[-1])]
            own = {**settings, "cells_source": _read_module("cells")[1], "ports": sorted(forwards)}
            self._send_frame(marshal.dumps({"magic": MAGIC_NUMBER, "modules": modules, "settings": own}, _MARSHAL))
        except BaseException:
            pipe.close()
            raise
        self._loop.call_soon_threadsafe(self._loop.add_reader, pipe.reading, self._read)

    async def ready(self, seconds: float) -> dict[str, Any]:
        """Wait until the agent is there; return what it says of itself.

        Raises:
            SandboxError: If it can't be started.
        """
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(self._ready)
        except TimeoutError:
            raise SandboxError(f"the agent in the sandbox did not start within {seconds:g} s") from None

    async def ask(self, do: str, *, within: float | None, **fields: Any) -> dict[str, Any]:
        """Have something done, and return the result. Cancelling this ends it.

        Args:
            do: What is asked for: a method ``do_...`` of the agent.
            within: Seconds within which an agent that works answers; None for no limit.
            **fields: What it is asked with.

        Raises:
            OSError: What the operation raised, such as `FileNotFoundError`.
            SandboxError: If the agent does not answer, or any more.
        """
        if self._pid != os.getpid():
            raise SandboxError("a sandbox belongs to the process that created it, and this is a fork of that")
        number, future = next(self._ids), concurrent.futures.Future[Any]()
        self._waiting[number] = future
        try:
            if self.end_reason is not None:
                raise self._end_error()
            self._send({"id": number, "do": do, **fields})
            async with asyncio.timeout(within) as limit:
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if not limit.expired():
                raise
            self.end(f"the sandbox did not answer within {within:g} s")
            raise self._end_error() from None
        except asyncio.CancelledError:
            self._send({"cancelled": number})
            raise
        finally:
            self._waiting.pop(number, None)

    # Writing, from any thread

    def _send(self, message: dict[str, Any]) -> None:
        self._send_frame(json.dumps(message).encode())

    def _send_frame(self, data: bytes) -> None:
        if len(data) > _MOST_FRAME:
            raise SandboxError(f"{len(data) >> 20} MB are too much for one request to a sandbox, which may have {_MOST_FRAME >> 20}")
        with self._lock:
            self._unsent.append(memoryview(len(data).to_bytes(4, "big") + data))
            if len(self._unsent) == 1:
                self._write()

    def _write(self) -> None:
        """Write what can be written now; the rest when there is room. The lock is held."""
        try:
            while self._unsent and self.end_reason is None:
                written = os.write(self._pipe.writing, self._unsent[0])
                self._unsent[0] = self._unsent[0][written:]
                if not self._unsent[0]:
                    self._unsent.popleft()
        except BlockingIOError:
            self._loop.call_soon_threadsafe(self._wait_for_room)
        except OSError:  # it has ended, which the end of what it writes says
            self._unsent.clear()

    def _wait_for_room(self) -> None:
        if self.end_reason is None:
            self._loop.add_writer(self._pipe.writing, self._go_on_writing)

    def _go_on_writing(self) -> None:
        self._loop.remove_writer(self._pipe.writing)
        with self._lock:
            self._write()

    # Reading, on the background loop

    def _read(self) -> None:
        try:
            data = os.read(self._pipe.reading, 1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            reason, cause = self._pipe.explain_end()
            self._end_here(f"the sandbox has ended: {reason}", cause if self._ready.done() else None)
            return
        try:
            self._received += self._pipe.decode(data)
            self._take_frames()
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:  # of an agent that is not ours any more
            self._end_here(f"the sandbox sent what can't be read: {error!r}", "policy" if self._ready.done() else None)

    def _take_frames(self) -> None:
        received = self._received
        while len(received) >= 4:
            size = int.from_bytes(received[:4], "big")
            if size > _MOST_FRAME:
                raise ValueError(f"a message of {size} bytes")
            if len(received) < 4 + size:
                return
            message = parse_json(bytes(received[4 : 4 + size]))
            del received[: 4 + size]
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        if "stream" in message:
            self._forwarding.receive(message)
            return
        if "ended" in message:
            self._end_here(f"the sandbox has ended: {message['ended']}", "policy")
        elif "failed" in message:
            self._settle(0, error=SandboxError(f"the sandbox could not be set up: {message['failed']}"))
        elif "ready" in message:
            self._settle(0, message["ready"])
        elif "error" in message:
            number, text, path = message["error"]
            self._settle(message["id"], error=OSError(int(number), str(text), path))
        else:
            self._settle(message["id"], dict(message["result"]))

    def _settle(self, number: int, result: Any = None, error: Exception | None = None) -> None:
        future = self._waiting.pop(number, None)
        if future is None or not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    # The end

    def end(self, reason: str) -> None:
        """Let nothing more be asked for, and close the pipe, at whose end the agent ends."""
        if self._pid == os.getpid():
            self._loop.call_soon_threadsafe(self._end_here, reason)
            self.end_reason = self.end_reason or reason

    def _end_error(self) -> SandboxError:
        error = SandboxError(self.end_reason)
        if self.end_cause is not None:
            error.failure_cause = self.end_cause
        return error

    def _end_here(self, reason: str, cause: FailureCause | None = None) -> None:
        if self._loop.is_closed() or self._received is _ENDED:
            return
        if self.end_reason is None:
            self.end_cause, self.end_reason = cause, reason
        self._received = _ENDED
        self._loop.remove_reader(self._pipe.reading)
        with self._lock:
            self._unsent.clear()
            self._loop.remove_writer(self._pipe.writing)
            self._pipe.close()
        self._forwarding.close()
        for number in list(self._waiting):
            self._settle(number, error=self._end_error())


_ENDED = bytearray()


def encode(data: bytes) -> str:
    """Return bytes as they are sent."""
    return base64.b64encode(data).decode()


def decode(data: str) -> bytes:
    """Return bytes that were sent."""
    return base64.b64decode(data)
