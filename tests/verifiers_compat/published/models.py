"""The models that the packages are played with: functions of what they are asked, so that every run gives the same."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vfgym.messages import ToolCall
from vfgym.model_server import ModelRequest, ModelServer, Reply

STORIES = {"lighthouse": "<think>hm</think>The light went out, and she lit it again.", "snails": "Two snails raced. Both won."}
NUMBER = r"\d+(?:\.\d+)?"


def write_story(request: ModelRequest) -> Reply:
    """Thinks in one of the stories, so that a judge that saw the thoughts would be noticed."""
    topic = request.messages[-1]["content"]
    return Reply(next((story for word, story in STORIES.items() if word in topic), "Nothing."))


def rate_story(request: ModelRequest) -> Reply:
    """Gives a point for each word of the story, as JSON."""
    story = request.messages[-1]["content"].partition("Story: ")[2]
    return Reply(json.dumps({"score": min(10, len(story.split())), "why": f"{len(story)} letters"}))


def convert_units(request: ModelRequest) -> Reply:
    """Calls the tool and repeats what it says; of miles it knows better, and says no unit."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return Reply(f"It is {last['content']}.")
    found = re.search(rf"much is ({NUMBER}) (\w+) in (\w+)", last["content"])
    assert found is not None
    value, unit, to = found.groups()
    if unit == "mi":
        return Reply('{"value": 3.2187}')
    return Reply(None, tool_calls=[ToolCall(id="c1", name="convert", arguments=json.dumps({"value": value, "unit": unit, "to": to}))])


def sell(request: ModelRequest) -> Reply:
    """Mumbles first, then begins at 80 and goes down by 20."""
    turn = sum(message["role"] == "assistant" for message in request.messages)
    return Reply("Hello!" if turn == 0 else f"<price>\n{100 - 20 * turn}\n</price>")


def buy(request: ModelRequest) -> Reply:
    """Buys at most at the price that the system message names."""
    budget = re.search(rf"at most ({NUMBER})", request.messages[0]["content"])
    price = re.search(NUMBER, request.messages[-1]["content"])
    assert budget is not None
    assert price is not None
    return Reply("DEAL" if float(price[0]) <= float(budget[1]) else f"No, I would pay {budget[1]} at most.")


class Capitals:
    """Answers in turn at length, wrongly, briefly, and briefly again."""

    def __init__(self) -> None:
        self._asked: dict[str, int] = {}
        self._lock = threading.Lock()

    def __call__(self, request: ModelRequest) -> Reply:
        question = request.messages[-1]["content"]
        with self._lock:
            number = self._asked[question] = self._asked.get(question, -1) + 1
        right = "Paris" if "France" in question else "Tokyo"
        return Reply([f"The capital is {right}, of course.", "London.", right, right][number % 4])


def know_cities(request: ModelRequest) -> Reply:
    """Looks a fact up and says it; of Rome it believes to know it."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return Reply(f"It is {last['content']}.")
    found = re.search(r"the (\w+) of (\w+)", last["content"])
    assert found is not None
    field, city = found.groups()
    if city == "Rome":
        return Reply("It is Italy.")
    return Reply(None, tool_calls=[ToolCall(id="c1", name="look_up", arguments=json.dumps({"city": city, "field": field}))])


def calculate(request: ModelRequest) -> Reply:
    """Says at first more than the result."""
    question = request.messages[0]["content"]
    result = {"6 * 7": "42", "9 - 4": "6"}[question]
    return Reply(result if len(request.messages) > 1 else f"{question} = {result}")


@contextmanager
def served() -> Iterator[ModelServer]:
    """Serve all of them on this machine."""
    models: dict[str, Any] = {
        "writer": write_story,
        "editor": rate_story,
        "converter": convert_units,
        "seller": sell,
        "buyer": buy,
        "capitals": Capitals(),
        "guide": know_cities,
        "calculator": calculate,
    }
    with ModelServer(models) as server:
        yield server
