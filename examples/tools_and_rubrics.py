"""An environment of one's own: async tools, a rubric with several functions, and an agent that uses the tools."""

import asyncio
import json
import re
from typing import Any

import vfgym

PRICES = {"apple": 3, "pear": 4, "plum": 1}


async def price(fruit: str) -> int:
    """Ask what a fruit costs.

    Args:
        fruit: Name of the fruit.
    """
    await asyncio.sleep(0.01)  # a database, say
    return PRICES[fruit]


def correct(completion: list[vfgym.Message], answer: str, parser: vfgym.Parser) -> float:
    """Return whether the answer is the last number that was said."""
    numbers = re.findall(r"\d+", parser.parse_answer(completion) or "")
    return float(bool(numbers) and numbers[-1] == answer)


def asked_once(completion: list[vfgym.Message]) -> float:
    """Return whether all prices were asked for in one message."""
    return float(sum(message.role == "assistant" for message in completion) == 2)


def shopper(observation: list[vfgym.Message], info: dict[str, Any]) -> vfgym.AssistantMessage:
    """Ask for the price of every fruit in the question, then add them up."""
    last = observation[-1]
    if last.role == "user":
        fruits = [fruit for fruit in PRICES if fruit in last.content]
        calls = [vfgym.ToolCall(f"call_{fruit}", "price", json.dumps({"fruit": fruit})) for fruit in fruits]
        return vfgym.AssistantMessage(tool_calls=calls)
    total = sum(int(message.content) for message in observation if message.role == "tool")
    return vfgym.AssistantMessage(f"Together they cost {total}.")


env = vfgym.ToolEnv(
    tools=[price],
    dataset=[
        {"question": "What do an apple and a pear cost?", "answer": "7"},
        {"question": "What do a plum, an apple and a pear cost?", "answer": "8"},
    ],
    rubric=vfgym.Rubric([correct, asked_once], weights=[1.0, 0.1]),
)
results = vfgym.evaluate(env, shopper, rollouts_per_example=50, progress=False)
print("mean reward:", results["metadata"]["avg_reward"])
print("metrics:", results["metadata"]["avg_metrics"])
print("one conversation:")
for message in results["outputs"][0]["prompt"] + results["outputs"][0]["completion"]:
    print(" ", json.dumps(message))
