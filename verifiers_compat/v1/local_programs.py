"""Programs of this machine: a function of this process (a plain one runs on a thread of its own), or a command."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.state import PROTECTED, State
from vfgym.aio.threads import on_thread
from vfgym.calls import CallPlan, is_async, is_awaitable
from vfgym.errors import ConfigurationError, InfraError
from vfgym.sandboxes import ExecResult

if TYPE_CHECKING:
    from verifiers_compat.v1.runtime import Runtime


class WrongProgramResult(ConfigurationError, TypeError):
    """A program returned something that is neither a state nor a mapping."""


async def run_function(plan: CallPlan, bound: Mapping[str, Any], running: Runtime) -> None:
    """Call a function, and merge what it returns into the state."""
    state = running.state
    qualified = {key if "." in key else f"{plan.name}.{key}": source for key, source in bound.items()}
    bindings = Bindings(running.harness, qualified)
    bindings.check([plan.name])
    names = {"task": running.task, "state": state, **await bindings.values(plan.name, running.task, state)}
    if is_async(plan.func):
        result = await plan(names)
    else:
        # It holds its thread for as long as the rollout takes, and may use a synchronous client.
        result = await on_thread(plan, names)
        result = await result if is_awaitable(result) else result
    merge_result(result, plan.name, running)


def merge_result(result: Any, name: str, running: Runtime) -> None:
    """Merge what a program returned into the state.

    Raises:
        WrongProgramResult: If it is something else than None, the state, or a mapping.
    """
    state = running.state
    if result is None or result is state:
        return
    if not isinstance(result, Mapping):
        raise WrongProgramResult(
            f"the program {name} of {type(running.harness).__name__} must return None, its state, or a mapping to merge into it;"
            f" got {type(result).__name__}"
        )
    state.update({key: value for key, value in result.items() if not (isinstance(result, State) and key in PROTECTED)})


async def run_command(argv: Sequence[str], env: Mapping[str, str], owner: str) -> ExecResult:
    """Run a command until it ends. What it has left running in its process group is killed then, or where we are cancelled.

    Args:
        argv: The program and its arguments.
        env: Environment variables, beside those of this process.
        owner: Whose it is, for the message.

    Raises:
        InfraError: If it could not be started.
    """
    # Not pipes: whatever the command leaves running could hold those open, and we would wait for it.
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                env={**os.environ, **env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise InfraError(f"the command {argv[0]!r} {owner} could not be started: {error}. Is it installed, and on the PATH?") from error
        try:
            exit_code = await process.wait()
        finally:
            _kill_group(process)
            await process.wait()
        return ExecResult(exit_code, _text_of(stdout), _text_of(stderr))


def _text_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _kill_group(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
