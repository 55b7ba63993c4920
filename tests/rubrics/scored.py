"""States that were played, and what rubrics make of them."""

from __future__ import annotations

import asyncio
from typing import Any

from vfgym import Rubric, State, UserMessage
from vfgym.messages import AssistantMessage
from vfgym.state import RolloutTiming

PROMPT = [UserMessage("6 * 7?")]


def played(completion: str = "42", **columns: Any) -> State:
    """Return the state of an episode that was played and not scored."""
    row = {"prompt": PROMPT, "answer": "42", "info": {"level": 3}, "example_id": 5, **columns}
    step = {"prompt": PROMPT, "completion": [AssistantMessage(completion)], "reward": None, "advantage": None, "extras": {}}
    return State(
        input=row,
        task=row,
        completion=[AssistantMessage(completion)],
        trajectory=[step],
        reward=None,
        metrics=None,
        error=None,
        timing=RolloutTiming(),
    )


def scored(rubric: Rubric, state: State | None = None) -> State:
    state = played() if state is None else state
    asyncio.run(finished(rubric.score_rollout(state)))
    return state


def scored_group(rubric: Rubric, states: list[State]) -> list[State]:
    asyncio.run(finished(rubric.score_group(states)))
    return states


async def finished(awaitable: Any) -> Any:
    return await awaitable
