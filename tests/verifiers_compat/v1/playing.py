"""What tests of tasksets and harnesses share: tools, a harness with a scripted model, and objects that know whether they were closed."""

from __future__ import annotations

from typing import Any

import verifiers_compat.v1 as vf
from tests.agent_programs import LIBRARY
from tests.models import calling
from vfgym.testing import ScriptedClient

OFFLINE = {"network_access": False}
ROWS = [{"question": f"{number} + {number}?", "answer": str(2 * number)} for number in range(3)]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def sub(a: int, b: int) -> int:
    """Subtract a number."""
    return a - b


def get(key: str) -> str:
    """Return a value."""
    return f"value of {key}"


class Counter:
    """Counts, and knows whether it was closed."""

    made: list[Counter] = []

    def __init__(self) -> None:
        self.count, self.is_closed = 0, False
        Counter.made.append(self)

    async def aclose(self) -> None:
        self.is_closed = True


def count(counter: Counter) -> int:
    """Count."""
    counter.count += 1
    return counter.count


def counting(scope: Any, **kwargs: Any) -> vf.Toolset:
    """Return a toolset whose tool counts with an object of a scope, and forget the objects of earlier ones."""
    Counter.made.clear()
    return vf.Toolset([count], bindings={"count.counter": "objects.counter"}, objects={"counter": Counter}, scope=scope, **kwargs)


def harness(*answers: Any, **kwargs: Any) -> vf.Harness:
    """Return a harness whose model gives these answers."""
    return vf.Harness(client=ScriptedClient(answers), model="m", **kwargs)


def contents(state: Any, role: str = "tool") -> list[Any]:
    """Return what one role said of a state or a row."""
    return [message["content"] for message in state["completion"] if message["role"] == role]


async def read_of(toolsets: Any, *calls: tuple[str, dict[str, Any]], task: dict[str, Any] | None = None) -> list[Any]:
    """Make the calls in one message and return what the model reads."""
    player = harness(calling(*calls), "done", toolsets=toolsets)
    state = await player.run({"prompt": "go", **(task or {})})
    await player.teardown()
    return contents(state)


def command(program: str, **options: Any) -> dict[str, Any]:
    """Return a program that runs Python code in a sandbox, beside a client of the model."""
    return {"command": ["python3", "agent.py"], "sandbox": OFFLINE, "files": {"agent.py": LIBRARY + program}, **options}


def noting(log: list[Any], name: str, value: Any = None) -> Any:
    """Return a handler that notes its name, and returns a value."""

    def handler(task: Any, state: Any) -> Any:
        log.append(name)
        return value

    handler.__name__ = name
    return handler


def noting_groups(log: list[Any], name: str, value: Any = None) -> Any:
    """Return a handler of groups that notes its name and how many rollouts there are, and gives each of them a value."""

    def handler(tasks: Any, states: Any) -> Any:
        log.append((name, len(states)))
        return [value] * len(states)

    handler.__name__ = name
    return handler


def best(tasks: Any, states: Any) -> list[float]:
    """Give each rollout of a group the same."""
    return [1.0] * len(states)
