"""`Toolset`: tools that belong together, with what they are bound to and the handlers they need; and `MCPTool`."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verifiers_compat.v1.bindings import Bindings, ScopeName
from verifiers_compat.v1.config import MCPToolConfig, ToolsetConfig, resolve_function, resolve_reference
from verifiers_compat.v1.config_base import as_list, none_unless_given
from verifiers_compat.v1.handlers import Handler, collect_handlers
from verifiers_compat.v1.sandboxes import as_sandbox
from verifiers_compat.v1.tools import RolloutTool, merge_tools, server_function, tool_function
from vfgym.calls import function_name, is_awaitable
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.tools import ToolFunction
from vfgym.tools.mcp import MCPServerConfig, MCPSession

if TYPE_CHECKING:
    from verifiers_compat.v1.runtime import Runtime


class MCPTool:
    """A tool server that is started for a toolset: all of its tools become tools of the rollout."""

    def __init__(
        self,
        command: str | MCPToolConfig | Mapping[str, Any],
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        """Describe a server; it is started when a rollout first needs it.

        Args:
            command: Program to start, or the whole description.
            args: Its arguments.
            env: Environment variables.
            cwd: Directory to start it in.
        """
        fields = {"command": command} if isinstance(command, str) else command
        self.config = MCPToolConfig.from_config(
            fields, args=None if args is None else list(args), env=None if env is None else dict(env), cwd=cwd
        )

    def new_session(self) -> MCPSession:
        """Return a session with a server of its own, which is not started yet."""
        given = self.config.model_dump(exclude_unset=True)
        return MCPSession(MCPServerConfig.of(given))


class Toolset:
    """Tools that belong together.

    Mark methods of a subclass (``@vf.setup``, ``@vf.cleanup``, ...), or give functions, for what the tools need around a
    rollout.
    """

    @none_unless_given
    def __init__(
        self,
        tools: Iterable[Any] = (),
        show: Iterable[str] | None = None,
        hide: Iterable[str] | None = None,
        bindings: Mapping[str, Any] | None = None,
        objects: Mapping[str, Any] | None = None,
        write: bool = False,
        scope: ScopeName = "rollout",
        sandbox: object | None = None,
        stops: Iterable[Any] = (),
        setups: Iterable[Any] = (),
        updates: Iterable[Any] = (),
        metrics: Iterable[Any] = (),
        rewards: Iterable[Any] = (),
        advantages: Iterable[Any] = (),
        cleanups: Iterable[Any] = (),
        teardowns: Iterable[Any] = (),
        config: ToolsetConfig | Mapping[str, object] | None = None,
    ) -> None:
        """Make a toolset.

        Args:
            tools: Functions, `MCPTool` objects, other toolsets, ``"module:object"`` references to them, or tables
                ``{"fn": ..., ...}`` (see `collect_toolsets`).
            show: The only tools that the model is shown; all by default.
            hide: Tools that it is not shown.
            bindings: ``{"function.argument": source}``: hidden arguments of tools and handlers (see
                `verifiers_compat.v1.bindings`).
            objects: Functions without arguments that make what ``objects.*`` bindings refer to.
            write: Whether the tools change something, for whoever asks the toolset.
            scope: How long objects and tool servers live: as long as one rollout, one group, or until
                `Harness.teardown` (``"global"``).
            sandbox: What the sandbox is like that tools and handlers are given as their hidden argument ``sandbox``: a mapping with
                fields of `SandboxConfig`, or ``"program"`` for that of the program where it has one. It is opened when it is first needed.
            stops: Stop conditions.
            setups: Called before the program runs.
            updates: Called after it.
            metrics: Measures.
            rewards: Reward functions.
            advantages: Functions that compute a group's advantages.
            cleanups: Called at the end of every rollout.
            teardowns: Called by `Harness.teardown`.
            config: Configuration; lists are added to it, other arguments win over it.

        Raises:
            ConfigurationError: If something does not fit.
        """
        config = ToolsetConfig.from_config(config).with_arguments(
            **{"show": show, "hide": hide, "bindings": bindings, "objects": objects, "write": write, "scope": scope, "sandbox": sandbox}
        )
        self.config = config
        """The configuration, with the arguments in place of its own fields."""
        own_sandbox = as_sandbox(config.sandbox, "a toolset")
        self.bindings = Bindings(self, config.bindings, config.objects, config.scope or "rollout", own_sandbox)
        self._functions: list[ToolFunction] = []
        self._servers: list[MCPTool] = []
        self._nested: list[Toolset] = []
        for tool in (*as_list(tools), *config.tools):
            self._add(tool)
        lists = {"stops": stops, "setups": setups, "updates": updates, "metrics": metrics, "rewards": rewards}
        lists |= {"advantages": advantages, "cleanups": cleanups, "teardowns": teardowns}
        own = {name: [*as_list(given), *getattr(config, name)] for name, given in lists.items()}
        self._handlers = collect_handlers(self, own, self.bindings)
        self.bindings.check([*(function.name for function in self._functions), *(handler.name for handler in self._handlers)])
        for handler in self._handlers:
            handler.check_arguments()
        if not self._servers:  # which tools they have is known when they run
            visible(dict.fromkeys(self.tool_names), self._choice)

    @property
    def show(self) -> list[str] | None:
        """The only tools that the model is shown; all where it is None."""
        return self.config.show

    @property
    def hide(self) -> list[str] | None:
        """Tools that the model is not shown."""
        return self.config.hide

    @property
    def write(self) -> bool:
        """Whether the tools change something."""
        return self.config.write

    @property
    def _choice(self) -> dict[str, Sequence[str] | None]:
        return {"show": self.show, "hide": self.hide}

    @property
    def scope(self) -> ScopeName:
        """How long objects and tool servers live."""
        return self.bindings.scope

    @property
    def handlers(self) -> list[Handler]:
        """The handlers of the toolset, and of those inside it."""
        return [*self._handlers, *(handler for nested in self._nested for handler in nested.handlers)]

    def _add(self, tool: Any) -> None:
        tool = resolve_reference(tool)
        if isinstance(tool, Toolset):
            self._nested.append(tool)
        elif isinstance(tool, MCPTool):
            self._servers.append(tool)
        elif isinstance(tool, Mapping) and "fn" in tool:
            self._nested.append(_made_toolset(tool))
        elif isinstance(tool, MCPToolConfig | Mapping):
            self._servers.append(MCPTool(tool))
        else:
            self._functions.append(tool_function(tool, self.bindings))

    @property
    def tool_names(self) -> list[str]:
        """Names of the functions, hidden ones included, in this toolset and those inside it."""
        return [*(function.name for function in self._functions), *(name for nested in self._nested for name in nested.tool_names)]

    async def tools_for(self, running: Runtime) -> dict[str, RolloutTool]:
        """Return the tools of one rollout, by name; servers are connected.

        Raises:
            ConfigurationError: If two have the same name, or one is shown or hidden that there is not.
        """
        tools: dict[str, RolloutTool] = {}
        for function in self._functions:
            tools = merge_tools(tools, {function.name: RolloutTool(function, self.bindings, running)})
        for nested in self._nested:
            tools = merge_tools(tools, await nested.tools_for(running))
        for number, server in enumerate(self._servers):
            session: MCPSession = await running.scope(self.scope).object(self, f"server {number}", server.new_session)
            functions = [server_function(definition, session) for definition in await session.list_tools()]
            tools = merge_tools(tools, {function.name: RolloutTool(function, Bindings(self), running) for function in functions})
        return visible(tools, self._choice)


def visible(tools: Mapping[str, Any], choice: Mapping[str, Sequence[str] | None], kind: str = "tool") -> dict[str, Any]:
    """Return the tools that are shown, or not hidden.

    Args:
        tools: Tools or toolsets, by name.
        choice: The names to ``show`` or to ``hide``; all are shown where there are neither.
        kind: What they are, for the message.

    Raises:
        ConfigurationError: If one is named that there is not.
    """
    show, hide = choice.get("show"), choice.get("hide") or ()
    for name in (*(show or ()), *hide):
        if name not in tools:
            raise ConfigurationError(f"there is no {kind} {name!r}; there are: {', '.join(tools) or 'none'}.{did_you_mean(name, tools)}")
    return {name: tools[name] for name in (tools if show is None else show) if name not in hide}


def as_toolset(value: Any) -> Toolset:
    """Return a toolset: one as it is, a configuration of one, a table that makes one, a reference to one, or a single tool.

    Raises:
        ConfigurationError: If it is none of these.
    """
    value = resolve_reference(value)
    if isinstance(value, Toolset):
        return value
    if isinstance(value, Mapping) and "fn" in value:
        return _made_toolset(value)
    if isinstance(value, ToolsetConfig) or (isinstance(value, Mapping) and "command" not in value):
        return Toolset(config=value)
    if not (callable(value) or isinstance(value, MCPTool | MCPToolConfig | list | tuple | Mapping)):
        raise ConfigurationError(
            f"a toolset is a Toolset, its configuration, a list of tools or one tool, got {type(value).__name__}: {value!r:.100}"
        )
    return Toolset(tools=value if isinstance(value, list | tuple) else [value])


def as_named_toolset(name: str, value: Any) -> Toolset:
    """Return what stands under a name as a toolset. A function is no tool there: it makes the toolset, without arguments.

    Raises:
        ConfigurationError: If there is no toolset in it.
    """
    value = resolve_reference(value)
    if callable(value):
        value = {"fn": value}
    return _made_toolset(value, name) if isinstance(value, Mapping) and "fn" in value else as_toolset(value)


def collect_toolsets(source: Any) -> tuple[list[Toolset], dict[str, Toolset]]:
    """Return toolsets in any of their forms, first those without a name, then those that a task can show or hide by name.

    Args:
        source: A toolset, a tool, or a list of them; or a mapping of toolsets by name. A table ``{"fn": "module:factory", ...}``
            is the toolset that the factory returns, which is called with all else that stands in the table.

    Raises:
        ConfigurationError: If it is none of these.
    """
    source = resolve_reference(source)
    if isinstance(source, Mapping):
        return [], {name: as_named_toolset(name, value) for name, value in source.items()}
    return [as_toolset(value) for value in as_list(source)], {}


def _made_toolset(table: Mapping[str, Any], name: str = "") -> Toolset:
    what = f"the toolset {name!r}" if name else "a toolset"
    factory = resolve_function(table["fn"], f"fn of {what}")
    arguments = {key: value for key, value in table.items() if key != "fn"}
    called = f"{what} is made by {function_name(factory)}"
    try:
        inspect.signature(factory).bind(**arguments)
    except TypeError as error:
        raise ConfigurationError(
            f"{called}, which cannot be called with {', '.join(arguments) or 'no arguments'}: {error}. What it needs stands in the table,"
            " beside fn; a tool by itself stands in a list"
        ) from None
    made = factory(**arguments)
    if is_awaitable(made) or made is None:
        if inspect.iscoroutine(made):
            made.close()
        raise ConfigurationError(f"{called}, which must return a toolset and not be async, got {type(made).__name__}")
    return as_toolset(made)
