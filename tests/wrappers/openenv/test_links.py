"""Links: what goes wrong on the way to a server is the error of one episode, whose session is ended."""

from __future__ import annotations

import pytest

import vfgym
from tests.openenv_servers import StandIn, serving
from vfgym.errors import InfraError

WORDS = {
    "gone": "closed the connection|broke off",
    "garbage": "not a JSON object",
    "nonsense": "without an observation",
    "error": "it broke",
    "slow": "did not answer .* in time",
}


@pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
@pytest.mark.parametrize("fault", WORDS)
def test_a_server_that_fails_in_a_step_is_the_error_of_its_episode(fault: str, websockets: bool) -> None:
    """The episode ends, its session too, and the next one is played."""
    with serving(StandIn(websockets=websockets)) as server:
        env = vfgym.from_openenv(server.url, request_timeout=0.3 if fault == "slow" else 20)
        env.reset(seed=0)
        env.step("1")
        server.faults["step"] = fault
        outcome = env.step("1")
        assert (outcome.reward, outcome.terminated, outcome.truncated) == (0.0, True, False)
        assert env.state is not None
        error = env.state["error"]
        assert isinstance(error, InfraError)
        assert server.url in str(error)
        with pytest.raises(InfraError, match=WORDS[fault]):
            raise error
        server.wait_until_all_ended()
        del server.faults["step"]
        env.reset(seed=0)
        assert env.step("1").reward == 0.1
        env.close()


@pytest.mark.parametrize("websockets", [True, False], ids=["websockets", "http"])
@pytest.mark.parametrize("fault", WORDS)
def test_a_server_that_fails_as_an_episode_begins(fault: str, websockets: bool) -> None:
    """`reset` raises, a run notes it as the error of the rollout, and no session is left."""
    with serving(StandIn(websockets=websockets, faults={"reset": fault})) as server:
        env = vfgym.from_openenv(server.url, request_timeout=0.3 if fault == "slow" else 20)
        with pytest.raises(InfraError, match=WORDS[fault]):
            env.reset(seed=0)
        results = vfgym.evaluate(env, lambda observation, info: "1", num_examples=1, progress=False)
        assert results["outputs"][0]["error"]["error"] == "ServerError" or "Status" in results["outputs"][0]["error"]["error"]
        server.wait_until_all_ended()
