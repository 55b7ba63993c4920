"""Hooks of task sets are called with what they ask for, by name."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.envs.experimental.composable.hooks import DEFAULT_SECONDS, call_hook

STATE = {"info": {"n": 1}, "sandbox_client": "client", "sandbox_id": "id", "test_output": "printed"}


@pytest.mark.parametrize(
    ("hook", "given"),
    [
        (lambda state: state is STATE, True),
        (lambda info, sandbox_client, sandbox_id: (info, sandbox_client, sandbox_id), ({"n": 1}, "client", "id")),
        (lambda output, test_output: (output, test_output), ("printed", "printed")),
        (lambda timeout, test_timeout: (timeout, test_timeout), (DEFAULT_SECONDS, DEFAULT_SECONDS)),
        (lambda: None, None),
    ],
)
async def test_a_hook_gets_what_it_names(hook: Any, given: Any) -> None:
    async def awaited(**kwargs: Any) -> Any:
        return hook(**{name: kwargs[name] for name in hook.__code__.co_varnames})

    assert await call_hook(hook, STATE) == given
    assert await call_hook(awaited, STATE) == given


async def test_what_is_said_beside_the_state_wins() -> None:
    def seconds(timeout: int, test_timeout: int) -> tuple[int, int]:
        return timeout, test_timeout

    assert await call_hook(seconds, {**STATE, "test_timeout": 5}) == (5, 5)
    assert await call_hook(seconds, {**STATE, "test_timeout": 5}, timeout=7) == (7, 7)
    assert await call_hook(lambda output, test_output: (output, test_output), STATE, output="other") == ("other", "printed")
    assert await call_hook(lambda info, output: (info, output), {}) == (None, None)
