"""The model that is shown rollouts and writes prompts, as GEPA calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
from verifiers_compat.gepa.reflection import Reflection, ReflectionFailed
from verifiers_compat.gepa.run_directory import RunDirectory
from vfgym.clients import Client
from vfgym.errors import ModelError
from vfgym.messages import AssistantMessage, Response
from vfgym.model_server import ModelServer, RequestRefused, scripted


class Closing(Client):
    """Answers, knows what it was asked, and whether it was closed."""

    def __init__(self, answer: str) -> None:
        self.answer, self.is_closed = answer, False
        self.asked: list[Any] = []

    async def get_response(self, prompt: Any, model: str, *args: Any, **kwargs: Any) -> Response:
        self.asked.append((model, [(message["role"], message["content"]) for message in prompt]))
        return Response("r", 0, model, None, AssistantMessage(self.answer))

    async def close(self) -> None:
        self.is_closed = True


def test_a_client_is_asked_by_the_name_of_the_model_and_stays_open(tmp_path: Path) -> None:
    client = Closing("answer")
    assert Reflection(client, "writer", None)("question") == "answer"
    assert (client.asked.pop(), client.is_closed) == (("writer", [("user", "question")]), False)
    for _ in range(2):
        with RunDirectory(tmp_path, {}) as directory:
            assert Reflection(client, "writer", directory)("question") == "answer"
    assert (len(client.asked), client.is_closed) == (1, False)


@pytest.mark.parametrize("answer", ["", " \n"])
def test_a_model_without_an_answer_has_failed(answer: str, tmp_path: Path) -> None:
    """GEPA would go on after an exception, so it is something else; nothing is kept of it."""
    with RunDirectory(tmp_path, {}) as directory, pytest.raises(ReflectionFailed) as failed:
        Reflection(Closing(answer), "writer", directory)("question")
    assert isinstance(failed.value.reason, ModelError)
    assert "writer answered with no text" in str(failed.value.reason)
    assert not isinstance(failed.value, Exception)
    assert not (tmp_path / "reflections").exists()


def test_one_place_of_a_configuration_is_asked() -> None:
    """What is refused is the reason."""

    def refuse(request: Any) -> str:
        raise RequestRefused(401, "no such key")

    with ModelServer({"writer": scripted(["answer"]), "shut": refuse}) as server, ModelServer() as other:
        endpoints = [{"api_base_url": server.openai_url}, {"api_base_url": other.openai_url}]
        config = vf.ClientConfig(api_key="k", max_retries=0, endpoint_configs=endpoints)
        for _ in range(2):
            assert Reflection(config, "writer", None)("question") == "answer"
        with pytest.raises(ReflectionFailed) as failed:
            Reflection(config, "shut", None)("question")
        assert (server.num_requests, other.num_requests) == (3, 0)
    assert type(failed.value.reason).__name__ == "AuthenticationError"
