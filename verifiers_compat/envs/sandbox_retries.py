"""`Retries`: what is tried again where it fails, and after which pauses."""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from vfgym.errors import ConfigurationError, SandboxError

T = TypeVar("T")


@dataclass(frozen=True)
class Retries:
    """Makes an async function of one that is called again where it fails: ``retries(func)(...)``."""

    max_retries: int = 5
    """Attempts, the first one too."""
    base_delay: float = 0.5
    """Seconds before the second attempt."""
    backoff_factor: float = 2.0
    """How much longer each further pause is."""
    max_backoff_seconds: float = 30.0
    jitter: float = 1e-3
    """Most seconds that a pause is longer by chance."""

    def __post_init__(self) -> None:
        number = self.max_retries
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ConfigurationError(f"max_retries must be the number of attempts, 1 or more, got {number!r}")

    def __call__(self, func: Callable[..., Awaitable[T]], errors: type[Exception] = Exception) -> Callable[..., Awaitable[T]]:
        """Return the function.

        Args:
            func: What is called.
            errors: After which errors it is called again.
        """

        @functools.wraps(func)
        async def call(*args: object, **kwargs: object) -> T:
            for number in range(self.max_retries - 1):
                try:
                    return await func(*args, **kwargs)
                except errors:
                    pause = min(self.base_delay * self.backoff_factor**number, self.max_backoff_seconds)
                    await asyncio.sleep(pause + random.uniform(0, self.jitter))
            return await func(*args, **kwargs)

        return call


def is_retryable_sandbox_api_error(exception: BaseException) -> bool:
    """Say whether a sandbox operation that failed so may work when it is tried again.

    Sandboxes of this machine fail for good where they have ended; what can pass is that one can't be started just now, or doesn't answer.
    """
    return isinstance(exception, SandboxError) and exception.failure_cause != "policy"


def is_retryable_sandbox_read_error(exception: BaseException) -> bool:
    """Say whether something that is read of a sandbox, or a command, may come when it is tried again: after a time-out, too."""
    from verifiers_compat.utils.threaded_sandbox_client import CommandTimeoutError

    return isinstance(exception, CommandTimeoutError | TimeoutError) or is_retryable_sandbox_api_error(exception)
