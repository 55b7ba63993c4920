"""`EnvGroup`: several environments as one, and what closing it does to them."""

from __future__ import annotations

from typing import Any

import pytest

from vfgym import EnvGroup, SingleTurnEnv, cleanup, teardown


class Holding(SingleTurnEnv):
    """Holds something until it is torn down, and a session for its player."""

    def __init__(self, name: str, log: list[str]) -> None:
        super().__init__([{"question": f"{name}?"}])
        self.name, self.log = name, log

    def setup_state(self, state: Any) -> Any:
        state.session = self.name
        return super().setup_state(state)

    def close_session(self, session: Any) -> None:
        self.log.append(f"{session} closed")

    @cleanup
    def leave(self, state: Any) -> None:
        self.log.append(f"{self.name} left")

    @teardown
    async def release(self) -> None:
        self.log.append(f"{self.name} torn down")


@pytest.mark.parametrize("is_nested", [False, True])
def test_closing_a_group_closes_its_environments_once(is_nested: bool) -> None:
    """The episode that is played ends, the session is closed, and every member runs its `@teardown`."""
    log: list[str] = []
    group = EnvGroup([Holding("a", log), Holding("b", log)])
    env = EnvGroup([group]) if is_nested else group
    env.reset(options={"example_id": 1})
    env.close()
    assert log == ["b left", "b closed", "a torn down", "b torn down"]
    env.close()
    assert len(log) == 4


def test_a_member_that_cannot_be_closed_keeps_no_other_from_it() -> None:
    """What it raises is raised when all are closed."""
    log: list[str] = []

    class Stuck(Holding):
        def close_session(self, session: Any) -> None:
            raise OSError("the network is gone")

    members = [Stuck("a", log), Holding("b", log)]
    for member in members:
        member.reset(seed=0)
    with pytest.raises(OSError, match="the network is gone"):
        EnvGroup(members).close()
    assert log == ["a left", "a torn down", "b left", "b closed", "b torn down"]
