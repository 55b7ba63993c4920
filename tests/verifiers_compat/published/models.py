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


def serve_bank(request: ModelRequest) -> Reply:
    """Makes every mistake first: a tool that is not there, text that is no JSON; then transfers, and says what is left."""
    amount = re.search(rf"Give bob ({NUMBER})", request.messages[1]["content"])
    assert amount is not None
    turn = sum(message["role"] == "assistant" for message in request.messages)
    calls: list[list[tuple[str, str]]] = [
        [("withdraw", "{}"), ("balance", "{account: anna}")],
        [("transfer", json.dumps({"source": "anna", "target": "bob", "amount": float(amount[1])})), ("balance", '{"account": "anna"}')],
        [("close_day", "{}")],
    ]
    if turn < len(calls):
        return Reply(None, tool_calls=[ToolCall(id=f"c{turn}{i}", name=name, arguments=a) for i, (name, a) in enumerate(calls[turn])])
    return Reply(f"Anna has {100 - float(amount[1]):g}.")


def guess_thing(request: ModelRequest) -> Reply:
    """Asks its way to the lamp, says nothing of what has five letters, and asks of the oak twice the same."""
    letters = re.search(r"with (\d)", request.messages[1]["content"])
    assert letters is not None
    turn = sum(message["role"] == "assistant" for message in request.messages)
    lines = {
        "4": ["<ask>\nalive\n</ask>", "<ask>bright</ask>", "I know: <guess>\nlamp\n</guess>"],
        "5": ["Hm.", "Hm?", "Hm!", "Never."],
        "3": ["<ask>green</ask>", "<ask>big</ask>", "<ask>green</ask>"],
    }[letters[1]]
    return Reply(lines[turn])


def mix(request: ModelRequest) -> Reply:
    """Adds, the first time with thoughts; spells backwards, one word without saying so in tags."""
    question = request.messages[-1]["content"]
    terms = re.fullmatch(r"(\d) \+ (\d)", question)
    if terms:
        total = int(terms[1]) + int(terms[2])
        return Reply(f"<think>no \\boxed{{0}}</think>\\boxed{{{total}}}" if total % 2 else f"It is {total}.")
    word = question.split()[1]
    return Reply(f"<think>\n{', '.join(word)}\n</think>\n<word>\n{word[::-1]}\n</word>" if word == "stone" else word)


def find_books(request: ModelRequest) -> Reply:
    """Asks the shelf, also for what it does not have and with a tool that it does not have."""
    last = request.messages[-1]
    if last["role"] == "tool":
        content = last["content"]
        return Reply(" ".join(part["text"] for part in content) if isinstance(content, list) else content)
    title = re.search(r"has (\w+)", last["content"])
    if title is None:
        return Reply(None, tool_calls=[ToolCall(id="c1", name="search", arguments='{"prefix": "E"}')])
    return Reply(None, tool_calls=[ToolCall(id="c1", name="pages", arguments=json.dumps({"title": title[1]}))])


def climb(request: ModelRequest) -> Reply:
    """Climbs by two where that is safe; at the lowest hill too far."""
    found = re.search(r"at (\d+), and the top is at (\d+)", request.messages[-1]["content"])
    if found is None:
        return Reply("Done.")
    left = int(found[2]) - int(found[1])
    return Reply("three" if found[1] == "4" else "I climb 2" if left > 1 or found[2] == "3" else "1")


def play_wordle(request: ModelRequest) -> Reply:
    """Guesses the same words whatever it is told."""
    turn = sum(message["role"] == "assistant" for message in request.messages)
    words = ["crane", "slate", "light", "mount", "pudgy", "vivid"]
    word = words[turn % len(words)]
    return Reply(f"<guess>\n[{word}]\n</guess>" if turn != 1 else f"[{word}]")


def write_answer(request: ModelRequest) -> Reply:
    """Knows the capital, and adds wrongly."""
    return Reply("Paris" if "France" in request.messages[-1]["content"] else "41")


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
        "clerk": serve_bank,
        "asker": guess_thing,
        "mixer": mix,
        "reader": find_books,
        "climber": climb,
        "wordler": play_wordle,
        "scribe": write_answer,
    }
    with ModelServer(models) as server:
        yield server
