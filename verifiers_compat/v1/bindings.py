"""Bindings: arguments that a function is given without the model (or the caller) knowing of them.

A binding names the function's argument and where its value comes from: a path into the task, the state or the running
rollout, another tool, a private object, what a function returns, or a constant.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from verifiers_compat.v1.config import SandboxConfig, resolve_function
from vfgym.calls import CallPlan, ends_run, maybe_await
from vfgym.errors import ConfigurationError, did_you_mean

if TYPE_CHECKING:
    from verifiers_compat.v1.state import State
    from verifiers_compat.v1.task import Task
    from vfgym.sandboxes import Sandbox

logger = logging.getLogger(__name__)

ScopeName: TypeAlias = Literal["rollout", "group", "global"]
"""How long something lives: as long as one rollout, as the rollouts of one group, or until teardown."""

SCOPES: tuple[ScopeName, ...] = get_args(ScopeName)

ROOTS = ("task", "state", "runtime", "tools", "objects")
"""What a path may begin with."""

_CLOSERS = ("aclose", "close", "delete", "teardown")


class Scope:
    """The private objects of one rollout, one group, or the whole process: made when they are first needed, then closed."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, str], asyncio.Future[Any]] = {}
        self._owners: list[object] = []

    async def object(self, owner: object, name: str, factory: Callable[[], Any]) -> Any:
        """Return the object of `owner` that is called `name`; make it with `factory` the first time."""
        key = (id(owner), name)
        made = self._made.get(key)
        if made is not None:
            return await asyncio.shield(made)
        self._owners.append(owner)  # keeps the id from being given to another
        self._made[key] = made = asyncio.get_running_loop().create_future()
        try:
            value = await maybe_await(factory)
        except BaseException as error:
            del self._made[key]
            if isinstance(error, Exception):
                made.set_exception(error)
                made.exception()  # nobody else may be waiting
            else:
                made.cancel()
            raise
        made.set_result(value)
        return value

    async def release(self) -> None:
        """Close what was made, the newest first: by ``aclose``, ``close``, ``delete`` or ``teardown``, whichever it has."""
        while self._made:
            (_, name), made = self._made.popitem()
            if not made.done() or made.cancelled() or made.exception() is not None:
                continue
            value = made.result()
            closer = next((getattr(value, closer) for closer in _CLOSERS if callable(getattr(value, closer, None))), None)
            try:
                if closer is not None:
                    await maybe_await(closer)
            except BaseException as error:
                if ends_run(error):
                    raise
                logger.exception("the object %s could not be closed", name)
        self._owners.clear()


class Source(NamedTuple):
    """Where the value of one argument comes from."""

    root: str
    """One of `ROOTS`, ``"call"`` for a function, or ``"constant"``."""
    path: tuple[str, ...] = ()
    value: Any = None


def as_source(value: Any, where: str) -> Source:
    """Return what a binding was given as, understood.

    Raises:
        ConfigurationError: If it is a mapping, or a reference, that cannot be understood.
    """
    if isinstance(value, Mapping) and len(value) == 1:
        [(root, path)] = value.items()
        if root == "fn":
            return Source("call", value=CallPlan(resolve_function(path, where)))
        if root in ROOTS:
            return Source(root, tuple(str(path).split(".")) if path else ())
    if isinstance(value, str):
        root, _, path = value.partition(".")
        if root in ROOTS and path:
            return Source(root, tuple(path.split(".")))
        return Source("constant", value=value)
    if callable(value) and not inspect.isclass(value):
        return Source("call", value=CallPlan(value))
    return Source("constant", value=value)


class Bindings:
    """What one owner (a toolset, a user, a program) binds to the arguments of its functions."""

    def __init__(
        self,
        owner: object,
        bindings: Mapping[str, Any] | None = None,
        objects: Mapping[str, Any] | None = None,
        scope: ScopeName = "rollout",
        sandbox: SandboxConfig | None = None,
    ) -> None:
        """Understand bindings.

        Args:
            owner: Whose they are; objects belong to it.
            bindings: ``{"function.argument": source}``.
            objects: Functions without arguments that make what ``objects.*`` refers to, by name.
            scope: How long an object lives.
            sandbox: What the sandbox of the owner is like, if it has one; it lives as long as an object, unless it says otherwise.

        Raises:
            ConfigurationError: If one cannot be understood, or refers to an object that there is not.
        """
        self.owner = owner
        self.scope = scope
        has_own_scope = sandbox is None or "scope" in sandbox.model_fields_set
        self.sandbox = sandbox if sandbox is None or has_own_scope else sandbox.model_copy(update={"scope": scope})
        self._factories = {name: resolve_function(factory, f"the object {name!r}") for name, factory in (objects or {}).items()}
        self._sources: dict[str, dict[str, Source]] = {}
        for key, value in (bindings or {}).items():
            function, _, argument = key.rpartition(".")
            if not function or not argument:
                raise ConfigurationError(f"a binding is named 'function.argument', got {key!r}")
            source = as_source(value, f"the binding {key!r}")
            if source.root == "objects" and (not source.path or source.path[0] not in self._factories):
                name = source.path[0] if source.path else ""
                known = ", ".join(self._factories) or "none"
                raise ConfigurationError(
                    f"{key!r} is bound to the object {name!r}; there are: {known}.{did_you_mean(name, self._factories)}"
                )
            self._sources.setdefault(function, {})[argument] = source

    def bound_arguments(self, function: str) -> frozenset[str]:
        """Return the arguments of a function that are bound."""
        return frozenset(self._sources.get(function, ()))

    def check(self, functions: Iterable[str]) -> None:
        """Raise if something is bound to a function that is none of these.

        Raises:
            ConfigurationError: The text names it.
        """
        known = list(functions)
        for name in self._sources:
            if name not in known:
                raise ConfigurationError(
                    f"there is a binding for {name!r}, and no such function; there are: {', '.join(known) or 'none'}."
                    f"{did_you_mean(name, known)}"
                )

    async def sandbox_for(self, state: State) -> Sandbox:
        """Return the sandbox of the owner in a running rollout; that of the program where it is preferred, and there is one."""
        running, config = state.live("open a sandbox"), self.sandbox
        if config is None:
            raise ConfigurationError("there is no sandbox, since none was asked for")
        if config.prefer == "program" and running.sandbox is not None:
            return running.sandbox
        return await running.open_sandbox(self.owner, config)

    async def values(self, function: str, task: Task, state: State) -> dict[str, Any]:
        """Return the values of a function's bound arguments, in a running rollout."""
        return {argument: await self._value(source, task, state) for argument, source in self._sources.get(function, {}).items()}

    async def value_of(self, value: Any, where: str, task: Task, state: State) -> Any:
        """Return what a source stands for that is bound to no argument.

        Args:
            value: The source, in any form that a binding may have.
            where: Where it stands, for messages.
            task: The task.
            state: The state of the running rollout.
        """
        return await self._value(as_source(value, where), task, state)

    async def _value(self, source: Source, task: Task, state: State) -> Any:
        root, path, constant = source
        if root == "constant":
            return constant
        if root == "call":
            return await maybe_await(constant, {"task": task, "state": state})
        if root == "task":
            return follow(task, path, "task")
        if root == "state":
            return follow(state, path, "state")
        if root == "runtime":
            return follow(state["runtime"], path, "runtime")
        running = state.live("bind to what belongs to it")
        if root == "tools":
            return running.tool(path[0]).call_with if path else state.get_tools()
        made = await running.scope(self.scope).object(self.owner, path[0], self._factories[path[0]])
        return follow(made, path[1:], f"objects.{path[0]}")


def follow(value: Any, path: tuple[str, ...], name: str) -> Any:
    """Return what a path leads to: keys of mappings, numbers into lists, attributes of anything else.

    Raises:
        ConfigurationError: If there is nothing.
    """
    whole = ".".join((name, *path))
    for key in path:
        try:
            if isinstance(value, Mapping):
                value = value[key]
            elif isinstance(value, list | tuple):
                value = value[int(key)]
            else:
                value = getattr(value, key)
        except (KeyError, IndexError, AttributeError, ValueError):
            raise ConfigurationError(f"there is no {key!r} in {name}, which {whole!r} is bound to") from None
        name = f"{name}.{key}"
    return value
