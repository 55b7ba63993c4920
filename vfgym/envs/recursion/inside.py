"""The session of a recursive model, inside its sandbox: names of the Python REPL, the shell of the Bash REPL, and calls of the host.

It is written into the sandbox as ``rlm_session.py``, with ``session.json`` beside it, and needs nothing but Python's own library. The
interpreter of the cells imports it; the shell's commands run it as a program (``rlm_session.py NAME``, arguments on standard input).
"""

from __future__ import annotations

import codecs
import functools
import http.client
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_PRINTED = 1 << 20
"""Bytes of what a command prints that are read, at most."""
_LOOKS_EVERY = 0.1
"""Seconds after which it is looked whether a shell that says nothing has ended."""
_FOLDER = Path(__file__).resolve().parent
_SHELL: list[Bash] = []
"""The shell of the Bash REPL, once a command has run."""


@functools.cache
def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = json.loads((_FOLDER / "session.json").read_text(encoding="utf-8"))
    return settings


def call_host(name: str, args: Any, kwargs: Any) -> Any:
    """Call a function of the host, and return what it returns.

    Raises:
        RuntimeError: If it fails there.
    """
    settings = _settings()
    connection = http.client.HTTPConnection("127.0.0.1", settings["port"])
    try:
        body = json.dumps({"args": args, "kwargs": kwargs}).encode()
        connection.request("POST", f"{settings['path']}/{name}", body, {"Content-Type": "application/json"})
        said = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    if "error" in said:
        raise RuntimeError(said["error"])
    return said["result"]


def _host_function(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return call_host(name, list(args), kwargs)

    call.__name__ = call.__qualname__ = name
    return call


# The Python REPL


def open_session() -> None:
    """Define what cells begin with."""
    settings, names = _settings(), sys.modules["__main__"].__dict__
    names["answer"] = {"content": "", "ready": False}
    for name in settings["functions"]:
        names[name] = _host_function(name)
    if settings["context"] is not None:
        names["context"] = _read_context(settings["context"])


def _read_context(file: str) -> Any:
    path = Path.cwd() / file
    if path.is_dir():
        return path
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


def print_answer() -> None:
    """Print the answer that the REPL has, as JSON."""
    if _settings()["language"] == "bash":
        answer: Any = _SHELL[0].answer if _SHELL else {}
    else:
        answer = sys.modules["__main__"].__dict__.get("answer")
    answer = answer if isinstance(answer, dict) else {}
    content = answer.get("content", "")
    said = {"content": content if isinstance(content, str) else str(content), "ready": bool(answer.get("ready"))}
    print(json.dumps(said), file=sys.__stdout__, flush=True)


# The Bash REPL


class Bash:
    """A shell that keeps its variables, functions and folder from command to command."""

    def __init__(self, functions: list[str]) -> None:
        """Start it, with a function for each function of the host."""
        self.answer: dict[str, Any] = {}
        input, self._input = os.pipe()
        self._output, output = os.pipe()
        self._ended, ended = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=input,
            stdout=output,
            stderr=output,
            pass_fds=(ended,),
            start_new_session=True,  # an interrupt of the cell is ours: we end the shell
        )
        for each in (input, output, ended):
            os.close(each)
        # Several arguments are too much for a program's command line where each is a long prompt: they go through a pipe.
        call = f'"{sys.executable}" -I "{_FOLDER}/rlm_session.py"'
        for name in functions:
            self._write(f"{name}() {{ if (($#)); then printf '%s\\0' \"$@\" | {call} {name}; else {call} {name} --stdin; fi; }}")
            self._write(f"export -f {name}")
        self._report = f'printf "%s\\0" "$?" "${{ANSWER_READY-}}" "${{ANSWER_CONTENT-}}" >&{ended}'

    def _write(self, line: str) -> None:
        left = memoryview(line.encode() + b"\n")
        while left:
            left = left[os.write(self._input, left) :]

    def run(self, command: str) -> bool:
        """Run a command, print what it prints, and say whether the shell goes on."""
        path = _FOLDER / "command.sh"
        path.write_text(command + "\n", encoding="utf-8")
        self._write(f'source "{path}" < /dev/null; {self._report}')
        decoder, room = codecs.getincrementaldecoder("utf-8")("replace"), _MOST_PRINTED
        report, is_over = b"", False
        while not is_over:
            ready, _, _ = select.select([self._output, self._ended], [], [], _LOOKS_EVERY)
            if self._ended in ready:
                part = os.read(self._ended, 1 << 16)
                report += part
                is_over = not part or report.count(b"\0") == 3
            if self._output in ready:
                room = self._show(decoder, room)
            if not ready:  # what the shell has left running may hold our pipes open
                is_over = self._process.poll() is not None
        if select.select([self._output], [], [], 0)[0]:  # what was printed before the report: a pipe holds no more than one read takes
            self._show(decoder, room)
        sys.stdout.write(decoder.decode(b"", final=True))
        if report.count(b"\0") < 3:
            return False
        _, is_ready, content = (part.decode("utf-8", "replace") for part in report.split(b"\0")[:3])
        self.answer = {"content": content, "ready": is_ready == "1"}
        return True

    def _show(self, decoder: codecs.IncrementalDecoder, room: int) -> int:
        """Print what there is to read, as much of it as there is room for, and return how many bytes there is room for then."""
        part = os.read(self._output, 1 << 16)[:room]
        sys.stdout.write(decoder.decode(part))
        return room - len(part)

    def kill(self) -> None:
        """End the shell with what runs in it."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except OSError:
            pass
        self._process.wait()
        for each in (self._input, self._output, self._ended):
            os.close(each)


def run_command(command: str) -> None:
    """Run a command in the shell. One that ends the shell, or is interrupted, ends with it what the shell knew."""
    if not _SHELL:
        _SHELL.append(Bash(_settings()["functions"]))
    shell, goes_on = _SHELL[0], False
    try:
        goes_on = shell.run(command)
    finally:
        if not goes_on:
            _SHELL.clear()
            shell.kill()
            sys.stdout.write("\nError: The shell has ended: the next command gets a new one, without what earlier ones set\n")


def main(name: str, *options: str) -> None:
    """Call a function of the host as a command: with arguments, or ``--json OBJECT``, or an object on standard input."""
    data = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    given = data.split("\0")[:-1]
    try:
        if options or given[:1] == ["--json"]:
            args, kwargs = _named("".join(given[1:2]) if given else data)
        elif name == "llm_batch":
            args, kwargs = [given], {}
        else:
            args, kwargs = [_value(text) for text in given], {}
        result = call_host(name, args, kwargs)
    except (RuntimeError, ValueError, OSError) as error:
        sys.exit(f"{name}: {error}")
    sys.stdout.write((result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)) + "\n")


def _named(text: str) -> tuple[Any, dict[str, Any]]:
    """Return positional and named arguments of a JSON object: those that ``args`` and ``kwargs`` say, or all of it by name."""
    value = json.loads(text or "{}")
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {text[:100]}")
    if value.keys() <= {"args", "kwargs"}:
        return value.get("args", []), value.get("kwargs", {})
    return [], value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main(*sys.argv[1:])
