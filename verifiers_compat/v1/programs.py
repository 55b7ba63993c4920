"""Programs: what plays a rollout instead of the base loop, and reaches its model over HTTP.

A program is a Python function of ``task`` and ``state`` (a plain one runs on a thread of its own), or a command. Both find
the rollout's model at an address on this machine (see `vfgym.interception`).
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verifiers_compat.v1.base_loop import run_base_loop
from verifiers_compat.v1.bindings import Bindings
from verifiers_compat.v1.config import refuse_sandbox, resolve_function
from verifiers_compat.v1.handlers import required_names
from verifiers_compat.v1.state import PROTECTED, State
from vfgym.aio.threads import on_thread
from vfgym.calls import CallPlan, is_async, is_awaitable
from vfgym.errors import ConfigurationError, InfraError, did_you_mean
from vfgym.interception.wire import plain_data

if TYPE_CHECKING:
    from verifiers_compat.v1.runtime import Runtime

_FORMS = ("base", "fn", "command")
_KEYS = (*_FORMS, "sandbox", "files", "dirs", "setup", "bindings", "env", "artifacts", "tools", "args")
_NEED_SANDBOX = ("files", "dirs", "setup", "artifacts")
_OF_TASKS = ("files", "dirs", "setup", "bindings", "env", "artifacts", "args")
_ARGUMENTS = frozenset({"task", "state"})


class WrongProgramResult(ConfigurationError, TypeError):
    """A program returned something that is neither a state nor a mapping."""


@dataclass(frozen=True)
class Program:
    """The base loop (`plan` and `command` are None), a function, or a command."""

    plan: CallPlan | None = None
    command: tuple[Any, ...] | None = None
    bindings: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the function by name, or of the command (see `args`), and where their values come from."""
    env: Mapping[str, Any] = field(default_factory=dict)
    args: tuple[Any, ...] = ()

    async def run(self, running: Runtime) -> None:
        """Play a rollout.

        Raises:
            vfgym.errors.Error: What the model failed with, where the program broke off for it.
            InfraError: If the command failed.
        """
        options = self._with_task(running.task.get("program") or {})
        if self.plan is None and self.command is None:
            await run_base_loop(running)
            return
        await running.open_endpoint()
        try:
            if self.plan is not None:
                await _run_function(self.plan, options, running)
            else:
                await _run_command(self.command or (), options, running)
        except Exception:
            # An SDK wraps what the endpoint answered; the rollout ends with what really happened.
            if running.failure is None:
                raise
            raise running.failure from running.failure.__cause__

    def _with_task(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options together with those of the task."""
        for key in own:
            if key not in _OF_TASKS:
                raise ConfigurationError(f"a task's program has no {key!r}; it has {', '.join(_OF_TASKS)}.{did_you_mean(key, _OF_TASKS)}")
            if key in _NEED_SANDBOX:
                refuse_sandbox(own[key], f"a task's program with {key!r}")
        for key in ("args", "env"):
            if own.get(key) and self.command is None:
                raise ConfigurationError(f"a task's program has {key}, and the harness runs no command that has a use for that")
        options: dict[str, Any] = {"args": [*self.args, *(own.get("args") or ())]}
        for key, mine in (("bindings", self.bindings), ("env", self.env)):
            theirs = own.get(key) or {}
            if both := mine.keys() & theirs.keys():
                raise ConfigurationError(f"both the harness and the task give the program {key} for {min(both)!r}")
            options[key] = {**mine, **theirs}
        return options


def as_program(value: Any) -> Program:
    """Return a program in any of its forms.

    Args:
        value: None or ``{"base": True}`` for the base loop; a function of ``task`` and ``state``; ``{"fn": function}``, where
            the function may be a ``"module:object"`` reference; ``{"command": [...]}`` or the command as text. Mappings may have
            ``bindings`` (``{"argument": source}``), and for commands ``env`` and ``args``.

    Raises:
        ConfigurationError: If it is none of these.
    """
    if value is None:
        return Program()
    if callable(value) or isinstance(value, str):
        value = {"fn": value}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"a program is None, a function, or a mapping with base, fn or command; got {type(value).__name__}")
    for key in value:
        if key not in _KEYS:
            raise ConfigurationError(f"a program has no {key!r}; it has {', '.join(_KEYS)}.{did_you_mean(str(key), _KEYS)}")
    refuse_sandbox(value.get("sandbox"), "a program")
    for key in _NEED_SANDBOX:
        refuse_sandbox(value.get(key), f"a program with {key!r}")
    forms = [form for form in _FORMS if value.get(form)]
    if len(forms) != 1:
        raise ConfigurationError(f"a program is exactly one of {', '.join(_FORMS)}; got {' and '.join(forms) or 'none of them'}")
    [form] = forms
    _check_options(value, form)
    bindings = dict(value.get("bindings") or {})
    if form == "base":
        return Program()
    if form == "fn":
        plan = CallPlan(resolve_function(value["fn"], "a program"))
        if missing := required_names(plan) - _ARGUMENTS - {key.rpartition(".")[2] for key in bindings}:
            raise ConfigurationError(
                f"the program {plan.name} asks for {', '.join(sorted(missing))}; it can have state, task and what is bound"
            )
        return Program(plan=plan, bindings=bindings)
    command = shlex.split(value["command"]) if isinstance(value["command"], str) else list(value["command"])
    if not command:
        raise ConfigurationError("the command of a program is empty")
    return Program(command=tuple(command), env=dict(value.get("env") or {}), args=tuple(value.get("args") or ()))


def _check_options(value: Mapping[str, Any], form: str) -> None:
    useless = {"base": ("bindings", "env", "args"), "fn": ("env", "args"), "command": ("bindings",)}[form]
    for key in useless:
        if value.get(key):
            raise ConfigurationError(f"a program with {form} has no use for {key!r}")
    tools = value.get("tools")
    if tools is not None and tools != ("callable" if form != "command" else None):
        raise ConfigurationError(
            f"a program with {form} cannot have tools={tools!r}: functions and the base loop call theirs by state.get_tools() ('callable');"
            " commands would need a sandbox, a hosted service that this package does not offer"
        )


async def _run_function(plan: CallPlan, options: Mapping[str, Any], running: Runtime) -> None:
    state = running.state
    qualified = {key if "." in key else f"{plan.name}.{key}": source for key, source in options["bindings"].items()}
    bindings = Bindings(running.harness, qualified)
    bindings.check([plan.name])
    names = {"task": running.task, "state": state, **await bindings.values(plan.name, running.task, state)}
    if is_async(plan.func):
        result = await plan(names)
    else:
        # It holds its thread for as long as the rollout takes, and may use a synchronous client.
        result = await on_thread(plan, names)
        result = await result if is_awaitable(result) else result
    if result is None or result is state:
        return
    if not isinstance(result, Mapping):
        raise WrongProgramResult(
            f"the program {plan.name} of {type(running.harness).__name__} must return None, its state, or a mapping to merge into it;"
            f" got {type(result).__name__}"
        )
    state.update({key: value for key, value in result.items() if not (isinstance(result, State) and key in PROTECTED)})


async def _run_command(command: Sequence[Any], options: Mapping[str, Any], running: Runtime) -> None:
    """Run a command until it ends. Its conversation with the model is the completion; what it prints, where it has asked nothing.

    Cancelling us kills it, and all that it started.
    """
    state, owner = running.state, f"of {type(running.harness).__name__}"
    sources = {f"argv.{number}": part for number, part in enumerate([*command, *options["args"]])}
    argv = [str(part) for part in (await Bindings(running.harness, sources).values("argv", running.task, state)).values()]
    given = {f"env.{name}": source for name, source in options["env"].items()}
    own = {name: str(value) for name, value in (await Bindings(running.harness, given).values("env", running.task, state)).items()}
    env = {**os.environ, **running.program_variables(), **own}
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise InfraError(f"the command {argv[0]!r} {owner} could not be started: {error}. Is it installed, and on the PATH?") from error
    try:
        output = await process.communicate()
    except BaseException:
        _kill_group(process)
        await process.communicate()
        raise
    stdout, stderr = (text.decode("utf-8", "replace") for text in output)
    code = process.returncode
    state["command"] = {"argv": argv, "returncode": code, "stdout": stdout, "stderr": stderr}
    if code:
        said = stderr.strip()[-2000:] or stdout.strip()[-2000:] or "it printed nothing"
        raise InfraError(f"the command {argv[0]!r} {owner} ended with code {code}: {said}")
    if not state["trajectory"]:
        if not (stdout.strip() or state["num_model_requests"]):
            raise InfraError(
                f"the command {argv[0]!r} {owner} ended without an answer: it must print one, or ask the model at OPENAI_BASE_URL or"
                f" ANTHROPIC_BASE_URL. Its standard error: {stderr.strip()[-2000:] or '(nothing)'}"
            )
        state["completion"] = [{"role": "assistant", "content": stdout.strip()}]
        state["prompt"] = plain_data(state.get("prompt") or [])
    state.complete("command_completed")


def _kill_group(process: asyncio.subprocess.Process) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
