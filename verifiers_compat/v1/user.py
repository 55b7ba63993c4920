"""`User`: a simulated user, who speaks when the model has called no tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verifiers_compat.v1.bindings import Bindings, ScopeName
from verifiers_compat.v1.config import UserConfig, resolve_function, resolve_reference
from verifiers_compat.v1.config_base import none_unless_given
from verifiers_compat.v1.handlers import required_names
from verifiers_compat.v1.plain import plain_messages
from verifiers_compat.v1.sandboxes import as_sandbox
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task
from verifiers_compat.v1.tools import SANDBOX
from vfgym.aio.threads import on_thread
from vfgym.calls import CallPlan, maybe_await
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import is_blocking

_NAMES = frozenset({"task", "state", "transcript"})


class User:
    """A function that answers in the user's place: messages to go on with, or None to end the rollout."""

    @none_unless_given
    def __init__(
        self,
        fn: Any = None,
        scope: ScopeName = "rollout",
        bindings: Mapping[str, Any] | None = None,
        objects: Mapping[str, Any] | None = None,
        sandbox: object | None = None,
        config: UserConfig | Mapping[str, object] | None = None,
    ) -> None:
        """Make a user.

        Args:
            fn: Plain or async; asks for ``task``, ``state``, ``transcript`` (the conversation so far) by name, and for what
                is bound. Returns messages, text, or None.
            scope: How long its objects live.
            bindings: ``{"argument": source}`` or ``{"function.argument": source}`` (see `verifiers_compat.v1.bindings`).
            objects: Functions without arguments that make what ``objects.*`` bindings refer to.
            sandbox: What the sandbox is like that the function is given as ``sandbox`` (see `Toolset`).
            config: Configuration; arguments win over it.

        Raises:
            ConfigurationError: If the function asks for something that it cannot have.
        """
        config = UserConfig.from_config(config, fn=fn, scope=scope)
        self._plan = CallPlan(resolve_function(config.fn, "a user"))
        name = self._plan.name
        given = {**config.bindings, **(bindings or {})}
        qualified = {key if "." in key else f"{name}.{key}": source for key, source in given.items()}
        own_sandbox = as_sandbox(config.sandbox if sandbox is None else sandbox, "a user")
        self.bindings = Bindings(self, qualified, {**config.objects, **(objects or {})}, config.scope, own_sandbox)
        self.bindings.check([name])
        self._takes_sandbox = own_sandbox is not None and SANDBOX in self._plan.names
        known = _NAMES | {SANDBOX} if self._takes_sandbox else _NAMES
        if missing := required_names(self._plan) - known - self.bindings.bound_arguments(name):
            raise ConfigurationError(f"the user {name} asks for {', '.join(sorted(missing))}; it can have {', '.join(sorted(known))}")

    async def answer(self, task: Task, state: State, transcript: list[Any]) -> list[dict[str, Any]]:
        """Return what the user says next; nothing to end the rollout."""
        names: dict[str, Any] = {"task": task, "state": state, "transcript": transcript}
        names.update(await self.bindings.values(self._plan.name, task, state))
        if self._takes_sandbox:
            names[SANDBOX] = await self.bindings.sandbox_for(state)
        call = on_thread if is_blocking(self._plan.func) else maybe_await
        said: Any = await call(self._plan, names)
        return [] if said is None else plain_messages(said, "what the user says")


def as_user(value: Any) -> User | None:
    """Return a user: one as it is, a configuration of one, a reference to one, or a function.

    Raises:
        ConfigurationError: If it is none of these.
    """
    value = resolve_reference(value)
    if value is None or isinstance(value, User):
        return value
    return User(config=value) if isinstance(value, UserConfig | Mapping) else User(value)
