"""`OracleAgent`: the right answers, where the environment knows them."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

import gymnasium as gym

from vfgym.agents.base import Answering, seat_of
from vfgym.aio.background import wait
from vfgym.aio.bridge import in_bridge
from vfgym.calls import is_awaitable
from vfgym.errors import ConfigurationError, ModelError
from vfgym.messages import Message


class OracleAgent:
    """Gives the right answer, as the environment knows it."""

    name = "oracle"

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode.

        Raises:
            ConfigurationError: If the environment knows no right answer.
        """
        seat = seat_of(env)
        definition = seat.definition

        def right_answer() -> Any:
            return definition.oracle(cast(Any, seat.state))

        first = right_answer()
        if (wait(first) if is_awaitable(first) else first) is None:
            name = definition.env_id or (env.spec.id if env.spec is not None else type(definition).__name__)
            raise ConfigurationError(f"{name} knows no right answer to its tasks, so the oracle cannot play it: take another agent")

        def check_known(known: Any) -> Any:
            if known is None:
                raise ModelError(f"the environment knows no right answer to turn {len(cast(Any, seat.state)['trajectory']) + 1}")
            return known

        async def check_known_later(known: Awaitable[Any]) -> Any:
            return check_known(await known)

        def answer(observation: list[Message], info: dict[str, Any]) -> Any:
            known = right_answer()
            return keep_awaitable(check_known_later(known)) if is_awaitable(known) else check_known(known)

        return answer


def keep_awaitable(answer: Awaitable[Any]) -> Any:
    """Return an answer to come as it is where an evaluation awaits it, and what comes of it anywhere else."""
    return answer if in_bridge() else wait(answer)
