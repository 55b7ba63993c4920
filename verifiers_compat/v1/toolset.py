"""`Toolset`: tools that belong together, with what they are bound to and the handlers they need; and `MCPTool`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from verifiers_compat.v1.bindings import SCOPES, Bindings, ScopeName
from verifiers_compat.v1.config import MCPToolConfig, ToolsetConfig, refuse_sandbox, resolve_reference
from verifiers_compat.v1.handlers import Handler, collect_handlers
from verifiers_compat.v1.tools import RolloutTool, merge_tools, server_function, tool_function
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

    def __init__(
        self,
        tools: Iterable[Any] = (),
        show: Iterable[str] | None = None,
        hide: Iterable[str] | None = None,
        bindings: Mapping[str, Any] | None = None,
        objects: Mapping[str, Any] | None = None,
        write: bool = False,
        scope: ScopeName | None = None,
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
            tools: Functions, `MCPTool` objects, other toolsets, or ``"module:object"`` references to them.
            show: The only tools that the model is shown; all by default.
            hide: Tools that it is not shown.
            bindings: ``{"function.argument": source}``: hidden arguments of tools and handlers (see
                `verifiers_compat.v1.bindings`).
            objects: Functions without arguments that make what ``objects.*`` bindings refer to.
            write: Whether the tools change something, for whoever asks the toolset.
            scope: How long objects and tool servers live: as long as one rollout (the default), one group, or until
                `Harness.teardown` (``"global"``).
            sandbox: Refused: there are no sandboxes here.
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
        config = ToolsetConfig.from_config(config)
        lists = {"stops": stops, "setups": setups, "updates": updates, "metrics": metrics, "rewards": rewards}
        lists |= {"advantages": advantages, "cleanups": cleanups, "teardowns": teardowns}
        refuse_sandbox(sandbox if sandbox is not None else config.sandbox, "a toolset")
        show = config.show if show is None else show
        hide = config.hide if hide is None else hide
        if show is not None and hide is not None:
            raise ConfigurationError("a toolset has show or hide, not both")
        scope = scope or config.scope or "rollout"
        if scope not in SCOPES:
            raise ConfigurationError(f"scope must be one of {', '.join(SCOPES)}, got {scope!r}")
        self.write = write or config.write
        self.show = None if show is None else _names(show, "show")
        self.hide = None if hide is None else _names(hide, "hide")
        self.bindings = Bindings(self, {**config.bindings, **(bindings or {})}, {**config.objects, **(objects or {})}, scope)
        self._functions: list[ToolFunction] = []
        self._servers: list[MCPTool] = []
        self._nested: list[Toolset] = []
        for tool in (*_as_list(tools), *config.tools):
            self._add(tool)
        own = {name: [*_as_list(given), *getattr(config, name)] for name, given in lists.items()}
        self._handlers = collect_handlers(self, own, self.bindings)
        self.bindings.check([*(function.name for function in self._functions), *(handler.name for handler in self._handlers)])
        if not self._servers:  # which tools they have is known when they run
            visible(dict.fromkeys(self.tool_names), {"show": self.show, "hide": self.hide})

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
        elif isinstance(tool, MCPToolConfig | Mapping):
            if isinstance(tool, Mapping) and "fn" in tool:
                self._add(tool["fn"])
            else:
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
        return visible(tools, {"show": self.show, "hide": self.hide})


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
    """Return a toolset: one as it is, a configuration of one, a reference to one, or a single tool.

    Raises:
        ConfigurationError: If it is none of these.
    """
    value = resolve_reference(value)
    if isinstance(value, Toolset):
        return value
    if isinstance(value, ToolsetConfig) or (isinstance(value, Mapping) and "command" not in value):
        return Toolset(config=value)
    if isinstance(value, list | tuple):
        return Toolset(tools=value)
    return Toolset(tools=[value])


def _names(value: Iterable[str], what: str) -> list[str]:
    names = [value] if isinstance(value, str) else list(value)
    if not all(isinstance(name, str) for name in names):
        raise ConfigurationError(f"{what} must be a list of names of tools, got {names!r}")
    return names


def _as_list(value: Any) -> list[Any]:
    """Return a list of what was given, of which one alone stands for itself."""
    if value is None:
        return []
    return (
        list(value)
        if isinstance(value, list | tuple | set | frozenset) or (isinstance(value, Iterable) and not isinstance(value, str | Mapping))
        else [value]
    )
