"""A client that answers each turn from a script."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models import answer
from vfgym.clients.scripted import ScriptedClient
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, UserMessage

HELLO = [UserMessage("hello")]


def turn(number: int) -> Any:
    return {"trajectory": [None] * number}


async def test_each_turn_has_its_answer_which_names_the_model_and_its_number() -> None:
    made = answer("whole")
    client = ScriptedClient(iter(["a", {"role": "assistant", "content": "b"}, AssistantMessage("c"), made]))
    said = [(await client.get_response(HELLO, "m", state=turn(number))).message.content for number in (0, 1, 1, 2)]
    assert said == ["a", "b", "b", "c"]
    assert await client.get_response(HELLO, "m", state=turn(3)) is made
    assert client.calls == 5
    client = ScriptedClient(["a"])
    await client.get_response(HELLO, "m", state=turn(0))
    response = await client.get_response(HELLO, "m2", state=turn(0))
    assert (response.id, response.model, response.usage) == ("scripted-2", "m2", None)


@pytest.mark.parametrize(("script", "asked", "says"), [([], 0, r"0 answer\(s\)"), (["a"], 1, r"1 answer\(s\)"), (["a"], 5, "one more")])
async def test_a_script_that_is_too_short(script: list[str], asked: int, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        await ScriptedClient(script).get_response(HELLO, "m", state=turn(asked))


@pytest.mark.parametrize("text", ["yes", ""])
def test_one_text_is_no_script(text: str) -> None:
    with pytest.raises(ConfigurationError, match="must be a list"):
        ScriptedClient(text)
