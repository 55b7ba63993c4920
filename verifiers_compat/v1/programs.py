"""Programs: what plays a rollout instead of the base loop, or beside a sandbox, as data.

A program is the base loop, a Python function of ``task`` and ``state``, or a command; `verifiers_compat.v1.program_run` runs them.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verifiers_compat.v1.bindings import ROOTS
from verifiers_compat.v1.config import SandboxConfig, resolve_function
from verifiers_compat.v1.config_base import merge_values
from verifiers_compat.v1.handlers import required_names
from verifiers_compat.v1.sandboxed_functions import SandboxedFunction, find_function
from verifiers_compat.v1.sandboxes import as_sandbox
from vfgym.calls import CallPlan
from vfgym.errors import ConfigurationError, did_you_mean

_FORMS = ("base", "fn", "command")
_MAPPINGS = ("files", "dirs", "bindings", "env", "artifacts")
_LISTS = ("setup", "args")
_OF_TASKS = ("files", "dirs", "setup", "bindings", "env", "artifacts", "args")
_KEYS = (*_FORMS, "sandbox", *_OF_TASKS, "tools")
_NEED_SANDBOX = ("files", "dirs", "setup", "artifacts")
_ARGUMENTS = frozenset({"task", "state"})
_ARTIFACT_KEYS = frozenset({"path", "format", "key", "optional"})
ARTIFACT_FORMATS = ("text", "json")


@dataclass(frozen=True)
class Program:
    """What plays: the base loop, where it is neither a function nor a command."""

    plan: CallPlan | None = None
    """A function of this process."""
    function: SandboxedFunction | None = None
    """A function that is called in the sandbox."""
    command: tuple[Any, ...] | None = None
    sandbox: SandboxConfig | None = None
    """Where it runs; this machine itself without it."""
    tools: Any = None
    """How a command reaches the tools of the rollout: None, ``"mcp"``, or ``{"mcp": what sets that up}``."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """All else by its key: mappings of names to sources of values (``files``, ...), or lists of sources (``setup``, ``args``)."""

    def options_with(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options together with those of a task.

        Raises:
            ConfigurationError: If the task has one that the program has no use for, or both give a value of one name.
        """
        for key in own:
            if key not in _OF_TASKS:
                raise ConfigurationError(f"a task's program has no {key!r}; it has {', '.join(_OF_TASKS)}.{did_you_mean(key, _OF_TASKS)}")
        theirs = self._check_options(own, "a task's program")
        options: dict[str, Any] = {key: [*self.options[key], *theirs[key]] for key in _LISTS}
        for key in _MAPPINGS:
            if both := self.options[key].keys() & theirs[key].keys():
                raise ConfigurationError(f"both the harness and the task give the program {key} for {min(both)!r}")
            options[key] = {**self.options[key], **theirs[key]}
        return options

    def _check_options(self, given: Mapping[str, Any], what: str) -> dict[str, Any]:
        """Return all options, those that are not given empty.

        Raises:
            ConfigurationError: If the program has no use for one, or it is not of its type.
        """
        uses = {
            "bindings": self.plan is not None or self.function is not None,
            "args": self.command is not None,
            "env": self.command is not None or self.sandbox is not None,
            **dict.fromkeys(_NEED_SANDBOX, self.sandbox is not None),
        }
        for key, has_use in uses.items():
            if given.get(key) and not has_use:
                needs = "it needs a sandbox: sandbox=True" if key in _NEED_SANDBOX else "this program has no use for that"
                raise ConfigurationError(f"{what} has {key!r}, and {needs}")
        options: dict[str, Any] = {}
        for key in _MAPPINGS:
            value = given.get(key) or {}
            if not isinstance(value, Mapping):
                raise ConfigurationError(f"{key} of {what} must be a mapping, got {type(value).__name__}")
            options[key] = dict(value)
        for key in _LISTS:
            value = given.get(key) or ()
            options[key] = list(value) if isinstance(value, list | tuple) else [value]
        _check_artifacts(options["artifacts"], what)
        for inside, local in options["dirs"].items():
            is_literal = isinstance(local, str) and local.partition(".")[0] not in ROOTS
            if is_literal and not os.path.exists(local):
                raise ConfigurationError(f"dirs of {what}: there is no {local!r} to copy to {inside}")
        return options


def as_program(value: Any, harness_sandbox: SandboxConfig | None = None) -> Program:
    """Return a program in any of its forms.

    Args:
        value: None or ``{"base": True}`` for the base loop; a function of ``task`` and ``state``; ``{"fn": function}``, where
            the function may be a ``"module:object"`` reference; ``{"command": [...]}`` or the command as text. Mappings may have
            ``bindings`` (``{"argument": source}``), for commands ``env`` and ``args``, and with ``sandbox`` (true, or a mapping with
            fields of `SandboxConfig`) ``files``, ``dirs``, ``setup`` and ``artifacts``, too.
        harness_sandbox: What the sandboxes of programs are like, where the program does not say otherwise.

    Raises:
        ConfigurationError: If it is none of these, or no such sandbox can be made here.
    """
    if value is None:
        value = {"base": True}
    if callable(value) or isinstance(value, str):
        value = {"fn": value}
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"a program is None, a function, or a mapping with base, fn or command; got {type(value).__name__}")
    for key in value:
        if key not in _KEYS:
            raise ConfigurationError(f"a program has no {key!r}; it has {', '.join(_KEYS)}.{did_you_mean(str(key), _KEYS)}")
    sandbox = _sandbox_of(value.get("sandbox"), harness_sandbox)
    forms = [form for form in _FORMS if value.get(form)] or (["base"] if sandbox is not None else [])
    if len(forms) != 1:
        raise ConfigurationError(
            f"a program is exactly one of {', '.join(_FORMS)}; got {' and '.join(forms) or 'none of them'}. Options alone need a sandbox"
        )
    program = _form(value, forms[0], sandbox)
    options = program._check_options(value, "a program")
    if (plan := program.plan) is not None:
        bound = {key.rpartition(".")[2] for key in options["bindings"]}
        if missing := required_names(plan) - _ARGUMENTS - bound:
            raise ConfigurationError(
                f"the program {plan.name} asks for {', '.join(sorted(missing))}; it can have state, task and what is bound"
            )
    return Program(program.plan, program.function, program.command, sandbox, program.tools, options)


def _form(value: Mapping[str, Any], form: str, sandbox: SandboxConfig | None) -> Program:
    tools = _tools_of(value.get("tools"), form, sandbox)
    if form == "base":
        return Program(sandbox=sandbox, tools=tools)
    if form == "fn" and sandbox is not None:
        return Program(function=find_function(value["fn"], sandbox), sandbox=sandbox, tools=tools)
    if form == "fn":
        return Program(plan=CallPlan(resolve_function(value["fn"], "a program")), tools=tools)
    command = shlex.split(value["command"]) if isinstance(value["command"], str) else list(value["command"])
    if not command:
        raise ConfigurationError("the command of a program is empty")
    return Program(command=tuple(command), sandbox=sandbox, tools=tools)


def _sandbox_of(value: Any, harness_sandbox: SandboxConfig | None) -> SandboxConfig | None:
    """Return what the sandbox of a program is like: what it says itself, over what its harness does."""
    if value == "program":
        raise ConfigurationError("sandbox='program' is for toolsets and users; the sandbox of a program must be true, false or a mapping")
    own = as_sandbox(value, "a program")
    if own is None or harness_sandbox is None:
        return own
    return as_sandbox(merge_values(harness_sandbox, own), "a program")


def _tools_of(tools: Any, form: str, sandbox: SandboxConfig | None) -> Any:
    kind = next(iter(tools)) if isinstance(tools, Mapping) and len(tools) == 1 else tools
    offered = (None, "mcp") if form == "command" and sandbox is not None else (None, "callable")
    if kind not in offered[: 1 if form == "command" and sandbox is None else 2] or (kind == "callable" and kind is not tools):
        raise ConfigurationError(
            f"a program with {form} cannot have tools={tools!r}: functions and the base loop call theirs by state.get_tools() ('callable'),"
            " commands in a sandbox by MCP ('mcp'), and commands without a sandbox have none"
        )
    return None if kind == "callable" else tools


def _check_artifacts(artifacts: Mapping[str, Any], what: str) -> None:
    for name, value in artifacts.items():
        if not isinstance(value, Mapping) or (len(value) == 1 and value.keys() <= set(ROOTS)):
            continue
        if unknown := value.keys() - _ARTIFACT_KEYS:
            raise ConfigurationError(f"the artifact {name!r} of {what} has no {min(unknown)!r}; it has {', '.join(sorted(_ARTIFACT_KEYS))}")
        if not isinstance(value.get("path"), str):
            raise ConfigurationError(f"the artifact {name!r} of {what} must have a path, got {value!r:.100}")
        if "key" in value and value.get("format") != "json":
            raise ConfigurationError(f"the artifact {name!r} of {what} has a key, which needs format='json'")
        if value.get("format", "text") not in ARTIFACT_FORMATS:
            raise ConfigurationError(f"the format of the artifact {name!r} must be text or json, got {value['format']!r}")
