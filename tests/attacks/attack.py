"""What an attack on a sandbox is, and how programs tell of harm: shared by the modules of attacks, each of which registers its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from vfgym.sandboxes import Sandbox

LIMITS: dict[str, Any] = {"memory_mb": 256, "processes": 64, "disk_mb": 64}
MOST_FILES = 16384


@dataclass(frozen=True)
class Attack:
    """What is attempted, and what must come of it."""

    what: str
    must: str
    run: Callable[[Sandbox], Awaitable[str | None]]
    """Attacks, and returns the harm that was done."""
    is_quick: bool = False
    """Whether it is tried in each run of the tests."""
    backends: tuple[str, ...] = ("bwrap", "container")


ATTACKS: list[Attack] = []


def attack(must: str, *, quick: bool = False, backends: tuple[str, ...] = ("bwrap", "container")) -> Callable[..., Any]:
    """Register an attack, whose name says what is attempted."""

    def register(run: Callable[[Sandbox], Awaitable[str | None]]) -> Callable[[Sandbox], Awaitable[str | None]]:
        ATTACKS.append(Attack(run.__name__.replace("_", " "), must, run, quick, backends))
        return run

    return register


async def harm_of_command(sandbox: Sandbox, command: str, timeout: float = 60) -> str | None:
    """Return what a command printed that says that it did harm."""
    result = await sandbox.exec(command, timeout=timeout)
    said = result.stdout + result.stderr
    return said[-500:] if "HARM" in result.stdout else None


async def harm_of_program(sandbox: Sandbox, program: str, timeout: float = 60) -> str | None:
    """Return what a program in Python printed that says that it did harm."""
    result = await sandbox.exec(["python3", "-c", program], timeout=timeout)
    return result.stdout[-500:] if "HARM" in result.stdout else None


KEY = "sk-rollout-0123456789abcdef"
"""A key of a provider, which must be nowhere."""


def quick_or_exhaustive(values: list[str], *quick: str) -> list[Any]:
    """Return the values of a family, of which a fixed part always runs."""
    return [value if value in quick else pytest.param(value, marks=pytest.mark.exhaustive) for value in values]
