"""How hooks of tasks are called: with what they ask for, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vfgym.calls import CallPlan, maybe_await

DEFAULT_SECONDS = 900
"""How long tests may take of which nothing else is said."""


async def call_hook(hook: Callable[..., Any], state: Any, **more: Any) -> Any:
    """Call a hook of a task set with what it asks for, and return what it gives. It may be plain or async.

    It may name ``state``, ``info``, ``sandbox_client``, ``sandbox_id``, ``timeout`` or ``test_timeout`` (seconds), ``output`` or
    ``test_output`` (what the tests printed).
    """
    seconds = more.get("timeout") or state.get("test_timeout") or DEFAULT_SECONDS
    output = state.get("test_output")
    named = {name: state.get(name) for name in ("info", "sandbox_client", "sandbox_id")}
    named |= {"state": state, "timeout": seconds, "test_timeout": seconds, "output": output, "test_output": output}
    return await maybe_await(CallPlan(hook), {**named, **more})
