"""Lengths in other units: the model has a converter, and answers in JSON."""

import json

import verifiers as vf
from datasets import Dataset

METRES = {"m": 1.0, "km": 1000.0, "ft": 0.3048, "mi": 1609.344}

SYSTEM_PROMPT = """Use the tool to convert. When you know the result, answer with JSON only: {"value": <number>, "unit": "<unit>"}."""


async def convert(value: float, unit: str, to: str) -> str:
    """Convert a length.

    Args:
        value: How much.
        unit: The unit of the value: m, km, ft or mi.
        to: The unit of the result.
    """
    return json.dumps({"value": round(float(value) * METRES[unit] / METRES[to], 4), "unit": to})


class JSONParser(vf.Parser):
    """The JSON object in the last message."""

    def parse(self, text: str):
        try:
            found = json.loads(text[text.index("{") : text.rindex("}") + 1])
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


def load_environment(max_turns: int = 4) -> vf.Environment:
    tasks = [(3.0, "km", "mi"), (10.0, "ft", "m"), (2.0, "mi", "km")]
    rows = [
        {
            "question": f"How much is {value} {unit} in {to}?",
            "answer": json.dumps({"value": round(value * METRES[unit] / METRES[to], 4), "unit": to}),
        }
        for value, unit, to in tasks
    ]
    parser = JSONParser()

    def right_value(parser, completion, answer, **kwargs) -> float:
        found = parser.parse_answer(completion)
        return float(found is not None and abs(found.get("value", 0.0) - json.loads(answer)["value"]) < 0.01)

    def right_unit(parser, completion, answer, **kwargs) -> float:
        found = parser.parse_answer(completion)
        return float(found is not None and found.get("unit") == json.loads(answer)["unit"])

    def is_json(parser, completion, **kwargs) -> float:
        return float(parser.parse_answer(completion) is not None)

    rubric = vf.Rubric(funcs=[right_value, right_unit, is_json], weights=[0.8, 0.2, 0.0], parser=parser)
    return vf.ToolEnv(
        dataset=Dataset.from_list(rows), tools=[convert], max_turns=max_turns, system_prompt=SYSTEM_PROMPT, parser=parser, rubric=rubric
    )
