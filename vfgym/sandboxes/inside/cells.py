"""The process that runs cells: one namespace, kept from cell to cell; the value of a trailing expression is shown.

It is started with a socket as descriptor 3 (`BOOTSTRAP` of `jobs`): frames of a length and JSON, a cell in, what came of it out, with the
word that came with the cell. What a cell prints goes to descriptors 1 and 2, also what its child processes print; the agent reads them.

A cell can do in this process what it likes, and so say what it likes of itself and of later cells. Nothing that is known here is a secret.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import signal
import socket
import sys
import traceback
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_is_running = False


def _interrupt(number: int, frame: Any) -> None:
    if _is_running:
        raise KeyboardInterrupt


def _receive(channel: socket.socket) -> Any:
    size = int.from_bytes(_take(channel, 4), "big")
    return json.loads(_take(channel, size))


def _take(channel: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        try:
            part = channel.recv(min(size, 1 << 20))
        except OSError:  # the agent has ended
            part = b""
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _printable(text: str) -> str:
    """Return a text with escapes for what is not Unicode (lone surrogates), which nobody could write or send."""
    return text.encode("utf-8", "backslashreplace").decode()


def _send(channel: socket.socket, value: Any) -> None:
    data = json.dumps(value).encode()
    channel.sendall(len(data).to_bytes(4, "big") + data)


def _parse(code: str, name: str) -> tuple[Any, Any]:
    """Return the code of the statements of a cell, and of the expression that ends it."""
    tree = ast.parse(code, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = compile(ast.Expression(tree.body.pop().value), name, "eval")  # type: ignore[attr-defined]
    return compile(tree, name, "exec"), last


def _run(code: str, number: int, namespace: dict[str, Any], most: int) -> dict[str, Any]:
    """Run a cell; return the text of its value and of its traceback, whichever there is, at most so long."""
    global _is_running
    name = f"<cell {number}>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    signal.signal(signal.SIGINT, _interrupt)  # a cell may have set another
    text = None
    try:
        _is_running = True
        statements, last = _parse(code, name)
        exec(statements, namespace)
        if last is not None:
            value = eval(last, namespace)
            if value is not None:
                namespace["_"] = value
                text = _printable(repr(value))
        _is_running = False
    except BaseException as error:
        _is_running = False
        return {"value": None, "traceback": _printable(_render(error))[-most:], "is_cut": False}
    finally:
        _is_running = False
        _flush()
    return {"value": None if text is None else text[:most], "traceback": None, "is_cut": text is not None and len(text) > most}


def _render(error: BaseException) -> str:
    """Return the traceback of an error, without our frames."""
    try:
        described = traceback.TracebackException(type(error), error, error.__traceback__)
        described.stack[:] = [frame for frame in described.stack if frame.filename != __name__]
        return "".join(described.format()).rstrip("\n")
    except BaseException as failure:  # an error whose text cannot be made
        return f"{type(error).__name__} (its traceback cannot be shown: {type(failure).__name__})"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # a cell may have put something else there, or closed it
            pass


def main(channel: socket.socket) -> None:
    """Run cells, one after the other, until nobody sends any more."""
    signal.signal(signal.SIGINT, _interrupt)
    own = os.getpid()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module  # so that what cells define can be pickled
    sys.argv = [""]
    channel.set_inheritable(False)
    os.register_at_fork(after_in_child=channel.close)  # a fork is not the interpreter that is asked
    for stream in (sys.stdout, sys.stderr):  # what was printed before a cell is killed is not to be lost
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    while True:
        cell = _receive(channel)
        result = _run(cell["code"], cell["count"], module.__dict__, cell["most"])
        if os.getpid() != own:  # a fork that went on with the cell to its end
            os._exit(0)
        _send(channel, {**result, "token": cell["token"]})
