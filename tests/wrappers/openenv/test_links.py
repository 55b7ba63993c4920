"""Links: what goes wrong on the way to a server is the error of one episode, whose session is ended."""

from __future__ import annotations

import pytest

import vfgym
from tests.openenv_servers import StandIn, serving
from tests.wrappers.openenv.playing import over_both
from vfgym.errors import InfraError
from vfgym.wrappers.openenv.protocol import ServerFull

WORDS = {
    "gone": "closed the connection|broke off",
    "garbage": "not a JSON object",
    "nonsense": "without an observation",
    "error": "it broke",
    "slow": "did not answer .* in time",
}


@over_both
@pytest.mark.parametrize("fault", WORDS)
def test_a_server_that_fails_as_an_episode_begins_or_in_a_step(fault: str, websockets: bool) -> None:
    """`reset` raises, or the episode ends with the error; its session ends, too, and the next one is played."""
    with serving(StandIn(websockets=websockets, faults={"reset": fault})) as server:
        env = vfgym.from_openenv(server.url, request_timeout=0.2 if fault == "slow" else 20)
        with pytest.raises(InfraError, match=WORDS[fault]):
            env.reset(seed=0)
        server.wait_until_all_ended()
        server.faults = {}
        env.reset(seed=0)
        env.step("1")
        server.faults = {"step": fault}
        outcome = env.step("1")
        assert (outcome.reward, outcome.terminated, outcome.truncated) == (0.0, True, False)
        assert env.state is not None
        with pytest.raises(InfraError, match=WORDS[fault]) as caught:
            raise env.state["error"]
        assert server.url in str(caught.value)
        assert not isinstance(caught.value, ServerFull)
        server.wait_until_all_ended()
        server.faults = {}
        env.reset(seed=0)
        assert env.step("1").reward == 0.1
        env.close()
    with pytest.raises(InfraError, match="cannot be reached"):
        env.reset(seed=0)
