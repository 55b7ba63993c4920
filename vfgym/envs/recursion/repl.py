"""`Repl`: the REPL of one episode, from the host's side."""

from __future__ import annotations

import dataclasses
import functools
import json
import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vfgym.bounded_json import parse_json
from vfgym.envs.python import describe_cell, end_text
from vfgym.errors import SandboxError
from vfgym.sandboxes import CellResult, Sandbox

_FOLDER = "/rlm"
"""Where in a sandbox the session's module and settings are."""
_OWN = "__import__('rlm_session')"
_ANSWERS_WITHIN = 30.0


@functools.cache
def _source() -> str:
    return Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


@dataclasses.dataclass
class Repl:
    """The REPL of an episode: code that is run in it, one piece after the other, and the answer that it holds."""

    sandbox: Sandbox
    language: str
    """``bash`` or ``python``."""
    code_execution_timeout: float
    """Seconds after which code is interrupted."""
    max_output_length: int
    """Characters of what it printed, at most."""
    count: int = 0
    """How often code was run."""
    answer: str = ""
    """What the answer is so far."""
    is_ready: bool = False
    """Whether the answer was said to be ready."""

    async def open(self, *, port: int, path: str, functions: Sequence[str], context: str | None) -> None:
        """Prepare the session.

        Args:
            port: Where inside the functions of the host are served.
            path: The path at which they are.
            functions: Their names.
            context: The file or folder of the working directory that the context is; None for none.

        Raises:
            SandboxError: If the sandbox can't take it.
        """
        settings = {"language": self.language, "port": port, "path": path, "functions": list(functions), "context": context}
        await self.sandbox.write_file(f"{_FOLDER}/rlm_session.py", _source())
        await self.sandbox.write_file(f"{_FOLDER}/session.json", json.dumps(settings))
        begun = await self._begin()
        if begun.traceback is not None:
            raise SandboxError(f"the REPL could not be opened: {begun.traceback}")

    async def _begin(self) -> CellResult:
        folder = posixpath.relpath(_FOLDER, self.sandbox.spec.working_dir)
        return await self.sandbox.python(
            f"__import__('sys').path.append(__import__('os').path.abspath({folder!r}))\n{_OWN}.open_session()", timeout=_ANSWERS_WITHIN
        )

    async def run(self, code: str) -> str:
        """Run code, and return what came of it, as the model reads it."""
        self.count += 1
        cell = f"{_OWN}.run_command({code!r})" if self.language == "bash" else code
        result = await self.sandbox.python(cell, timeout=self.code_execution_timeout)
        if result.state_is_lost:
            await self._begin()
        await self._read_answer()
        if self.language == "python":
            return describe_cell(dataclasses.replace(result, count=self.count), self.code_execution_timeout, self.max_output_length)
        return end_text(result.stdout.rstrip(), result, self.code_execution_timeout, self.max_output_length, "Command")

    async def _read_answer(self) -> None:
        """Take the answer of the session. What runs there can say what it likes: what is not an answer is none."""
        said = await self.sandbox.python(f"{_OWN}.print_answer()", timeout=_ANSWERS_WITHIN)
        try:
            answer: Any = parse_json(said.stdout)
            self.answer, self.is_ready = str(answer["content"]), answer["ready"] is True
        except (ValueError, TypeError, LookupError):
            self.is_ready = False
