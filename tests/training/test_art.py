"""`play_trajectory`, with the published interface of ART stood in for (`pytest -m peers` gathers groups with ART itself)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.training.trainers import environments
from tests.training.trainers.stand_ins import install
from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer
from vfgym.training.counting import RolloutMissing


class Trajectory(SimpleNamespace):
    def finish(self) -> Trajectory:
        self.is_finished = True
        return self


@pytest.fixture
def art(monkeypatch: pytest.MonkeyPatch) -> Any:
    return install(monkeypatch, "art", art={"Trajectory": Trajectory}, art__trajectories={"History": SimpleNamespace})


def model_at(url: str | None) -> Any:
    return SimpleNamespace(name="across", inference_base_url=url, inference_api_key=None, get_inference_name=lambda: "across")


def across(request: Any) -> str:
    return f"<action>{environments.ACROSS[sum(message['role'] == 'assistant' for message in request.messages)]}</action>"


@pytest.mark.parametrize(("history", "choices"), [(None, [6]), (1, [1, 1, 1, 1, 1, 1])])
async def test_a_trajectory_has_the_servers_own_choices(art: Any, history: int | None, choices: list[int]) -> None:
    with ModelServer({"across": across if history is None else lambda request: next(moves)}) as server:
        moves = iter([f"<action>{move}</action>" for move in environments.ACROSS])
        played = await art.play_trajectory(model_at(server.openai_url), environments.make_lake(history=history), example_id=0)
    assert (played.reward, played.metadata, played.is_finished) == (1.0, {"example_id": 0, "ending": "terminated"}, True)
    histories = [played.messages_and_choices, *(each.messages_and_choices for each in played.additional_histories)]
    found = [[each for each in told if not isinstance(each, dict)] for told in histories]
    assert (sum(map(len, found)), len(histories) == 1) == (sum(choices), history is None)
    assert all(choice.logprobs.content for each in found for choice in each)
    assert (played.tools, played.metrics["num_turns"]) == (None, 6.0)


async def test_what_cannot_be_a_trajectory_is_raised(art: Any) -> None:
    with pytest.raises(ConfigurationError, match="the model across has no inference_base_url"):
        await art.play_trajectory(model_at(None), environments.make_lake(), example_id=0)
    with ModelServer({"across": lambda request: "hello"}) as server, pytest.raises(RolloutMissing):
        await art.play_trajectory(model_at(server.openai_url), environments.make_broken(), example_id=0)
