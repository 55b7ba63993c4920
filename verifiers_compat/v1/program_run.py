"""`ProgramRun`: one rollout's program, from the preparation of its sandbox to what it leaves behind.

Functions and commands find the rollout's model over HTTP, at an address of this machine or at a port of their sandbox that leads to it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from verifiers_compat.v1.base_loop import run_base_loop
from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.local_programs import run_command, run_function
from verifiers_compat.v1.sandboxed_functions import run_sandboxed_function
from verifiers_compat.v1.sandboxes import run_setup, with_task
from verifiers_compat.v1.tool_server import offer_tools
from vfgym.bounded_json import parse_json
from vfgym.calls import CallPlan, maybe_await
from vfgym.errors import Error, InfraError, SandboxError
from vfgym.interception.wire import plain_data
from vfgym.sandboxes import ExecResult, Sandbox

if TYPE_CHECKING:
    from verifiers_compat.v1.config import SandboxConfig
    from verifiers_compat.v1.programs import Program
    from verifiers_compat.v1.runtime import Runtime
    from verifiers_compat.v1.state import State

logger = logging.getLogger(__name__)

_MOST_QUOTED = 2000
"""Characters of a command's last words that an error has."""


class ProgramRun:
    """The program of one rollout."""

    def __init__(self, program: Program, running: Runtime) -> None:
        """Join the options of harness and task.

        Raises:
            ConfigurationError: If they do not go together.
        """
        self._program, self._running = program, running
        self._options = program.options_with(running.task.get("program") or {})
        self._bindings = Bindings(running.harness)
        self._config: SandboxConfig | None = None

    async def prepare(self) -> None:
        """Open the sandbox of the program, if it has one: copy in files and folders, then run what sets it up.

        Raises:
            SandboxError: If that fails.
        """
        program, running = self._program, self._running
        if program.sandbox is None:
            return
        self._config = config = with_task(program.sandbox, running.task.get("sandbox"))
        changes = {} if program.function is None else program.function.spec_fields()
        sandbox = await running.open_program_sandbox(config, **changes)
        files, dirs = await self._values("files"), await self._values("dirs")
        try:
            for inside, content in files.items():
                await sandbox.write_file(inside, content if isinstance(content, str | bytes) else json.dumps(content))
            for inside, local in dirs.items():
                await sandbox.upload(str(local), inside)
        except OSError as error:
            raise SandboxError(f"a file of the program cannot be put into its sandbox: {error}") from error
        env = await self._variables()
        for command in self._options["setup"]:
            await self._set_up(sandbox, command, config.setup_timeout, env)
        if program.command is not None and program.tools is not None:
            await offer_tools(running, sandbox)
            if isinstance(program.tools, Mapping):
                await self._set_up(sandbox, program.tools["mcp"], config.setup_timeout, env)

    async def _set_up(self, sandbox: Sandbox, command: Any, timeout: float, env: Mapping[str, str]) -> None:
        task, state = self._running.task, self._running.state
        if callable(command):
            command = await maybe_await(CallPlan(command), {"task": task, "state": state, "sandbox": sandbox})
        else:
            command = await self._bindings.value_of(command, "setup", task, state)
        if command is not None:
            await run_setup(sandbox, command if isinstance(command, list) else str(command), timeout, env)

    async def play(self) -> None:
        """Play the rollout, and keep the artifacts, also those of a program that failed.

        Raises:
            vfgym.errors.Error: What the model failed with, where the program broke off for it.
            InfraError: If the command failed.
        """
        try:
            await self._play()
        except Exception as error:
            await self._keep_artifacts(has_failed=True)
            # An SDK wraps what the endpoint answered; the rollout ends with what really happened.
            failure = self._running.failure
            if failure is None or failure is error:
                raise
            raise failure from failure.__cause__
        await self._keep_artifacts()
        if self._program.command is not None:
            self._running.state.complete("command_completed")

    async def _play(self) -> None:
        program, running = self._program, self._running
        if program.command is not None:
            await running.open_endpoint()
            await self._run_command(program.command)
        elif program.function is not None:
            await running.open_endpoint()
            await run_sandboxed_function(program.function, running, await self._values("bindings"), await self._variables(), self._seconds)
        elif program.plan is not None:
            await running.open_endpoint()
            await run_function(program.plan, self._options["bindings"], running)
        else:
            await run_base_loop(running)

    async def _values(self, key: str) -> dict[str, Any]:
        """Return the values of one option, by name."""
        task, state = self._running.task, self._running.state
        return {
            name: await self._bindings.value_of(source, f"{key} of {name!r}", task, state) for name, source in self._options[key].items()
        }

    async def _variables(self) -> dict[str, str]:
        await self._running.open_endpoint()
        own = await self._values("env")
        return {**self._running.program_variables(), **{name: str(value) for name, value in own.items()}}

    @property
    def _seconds(self) -> float | None:
        """How long the program may run."""
        config = self._config
        return None if config is None else float(config.command_timeout or config.timeout_minutes * 60)

    async def _run_command(self, command: tuple[Any, ...]) -> None:
        """Run a command until it ends. Its conversation with the model is the completion; what it prints, where it has asked nothing.

        Cancelling us kills it, and all that it started.
        """
        running, sandbox = self._running, self._running.sandbox
        state, owner = running.state, f"of {type(running.harness).__name__}"
        parts = [await self._bindings.value_of(part, "command", running.task, state) for part in (*command, *self._options["args"])]
        argv, env = [str(part) for part in parts], await self._variables()
        if self._program.sandbox is None or sandbox is None:
            done = await run_command(argv, env, owner)
        else:
            done = await sandbox.exec(argv, env=env, timeout=self._seconds)
        state["command"] = {"argv": argv, "returncode": done.exit_code, "stdout": done.stdout, "stderr": done.stderr}
        if done.timed_out:
            raise InfraError(f"the command {argv[0]!r} {owner} was ended, as it took longer than {self._seconds:g} s")
        _check_end(state, f"the command {argv[0]!r} {owner}", done)

    async def _keep_artifacts(self, has_failed: bool = False) -> None:
        """Keep the artifacts in the state; of a program that has failed those that are there, since its error is the rollout's."""
        sandbox = self._running.sandbox
        if self._program.sandbox is None or sandbox is None or not sandbox.is_alive:
            return
        for name, source in self._options["artifacts"].items():
            try:
                await self._keep_artifact(sandbox, name, source)
            except Exception as error:
                if not has_failed:
                    raise
                logger.debug("the artifact %r of a program that failed is not kept: %r", name, error)

    async def _keep_artifact(self, sandbox: Sandbox, name: str, source: Any) -> None:
        """Keep one artifact.

        Raises:
            SandboxError: If it cannot be read, unless it is optional.
        """
        running = self._running
        given = await self._bindings.value_of(source, f"artifacts of {name!r}", running.task, running.state)
        artifact = given if isinstance(given, Mapping) else {"path": given}
        path = str(artifact["path"])
        try:
            text = (await sandbox.read_file(await _find_file(sandbox, path))).decode("utf-8", "replace")
            kept = parse_json(text) if artifact.get("format") == "json" else text
            running.state["artifacts"][name] = kept[artifact["key"]] if "key" in artifact else kept
        except (OSError, ValueError, TypeError, LookupError, RecursionError, Error) as error:
            if not artifact.get("optional"):
                raise SandboxError(f"the artifact {name!r} of the program, {path}, cannot be read: {error}") from error


async def _find_file(sandbox: Sandbox, path: str) -> str:
    """Return a path as it is, or, where it has wildcards, the file that was written last of those that match."""
    if not set(path) & set("*?["):
        return path
    script = "import glob, os, sys; print(max(glob.glob(sys.argv[1]), key=os.path.getmtime, default=sys.argv[1]), end='')"
    return (await sandbox.exec(["python3", "-c", script, path])).stdout or path


def _check_end(state: State, what: str, done: ExecResult) -> None:
    """Raise where a command failed, or gave no answer; what it printed is the completion where it asked nothing."""
    stdout, stderr = done.stdout.strip(), done.stderr.strip()
    if done.exit_code:
        said = stderr[-_MOST_QUOTED:] or stdout[-_MOST_QUOTED:] or "it printed nothing"
        raise InfraError(f"{what} ended with code {done.exit_code}: {said}")
    if state["trajectory"]:
        return
    if not (stdout or state["num_model_requests"]):
        raise InfraError(
            f"{what} ended without an answer: it must print one, or ask the model at OPENAI_BASE_URL or ANTHROPIC_BASE_URL."
            f" Its standard error: {stderr[-_MOST_QUOTED:] or '(nothing)'}"
        )
    state["completion"] = [{"role": "assistant", "content": stdout}]
    state["prompt"] = plain_data(state.get("prompt") or [])
