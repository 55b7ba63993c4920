"""Whoever sends JSON that is nested deeply (a program, a server, a model, a file) is told so in one line, and no stack ends."""

from __future__ import annotations

import ast
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vfgym
from vfgym.bounded_json import MOST_LEVELS, parse_json
from vfgym.errors import ConfigurationError, InvalidMessage, ToolParseError, WorkerDied
from vfgym.messages import AssistantMessage, ToolCall, as_tool_call, plain
from vfgym.model_server import ModelServer
from vfgym.results import ResultsError
from vfgym.results.plain_json import json_text, line_of
from vfgym.tools.arguments import parse_arguments
from vfgym.workers import read_json_outcome

ROOT = Path(__file__).parents[2]
DEPTHS = (MOST_LEVELS + 10, 900, 100_000)
"""Beyond our bound, near that of Python, and far beyond it."""


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_json_is_parsed_in_one_place() -> None:
    """Nothing that runs in this process calls `json.loads` but the two readers with a bound, and the one of our own data files."""
    parsing = {
        str(path.relative_to(ROOT))
        for package in ("vfgym", "verifiers_compat")
        for path in (ROOT / package).rglob("*.py")
        if "inside" not in path.parts and path.stem != "inside"
        if "json.load" in (text := path.read_text(encoding="utf-8")) or "JSONDecoder" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("json.loads", "json.load", "json.JSONDecoder")
    }
    assert parsing == {"vfgym/bounded_json.py", "vfgym/codecs/relaxed.py", "vfgym/data/__init__.py"}


def _isolated(text: str) -> Any:
    return read_json_outcome(f'{{"result": {text}}}'.encode())


def _row(text: str) -> Any:
    return vfgym.SingleTurnEnv(dataset=[{"question": "a", "info": f'{{"a": {text}}}'}], rubric=vfgym.Rubric()).reset(seed=0)


TEXTS: dict[str, tuple[Callable[[str], Any], type[Exception]]] = {
    "a tool's arguments": (lambda text: parse_arguments("f", f'{{"a": {text}}}'), ToolParseError),
    "a tool call as text": (lambda text: as_tool_call(f'{{"id": "a", "x": {text}}}'), InvalidMessage),
    "what an isolated agent says": (_isolated, WorkerDied),
    "the info of a row": (_row, ConfigurationError),
}


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", TEXTS)
def test_who_takes_text_refuses_it_in_a_line(name: str, depth: int) -> None:
    read, error = TEXTS[name]
    with pytest.raises(error) as raised:
        read(nested(depth))
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("depth", DEPTHS)
def test_arguments_that_are_nested_too_deeply_stay_text_for_templates(depth: int) -> None:
    (message,) = plain([AssistantMessage(tool_calls=[ToolCall("c", "f", f'{{"a": {nested(depth)}}}')])])
    assert isinstance(message["tool_calls"][0]["function"]["arguments"], str)


ASKED = {"model": "echo", "max_tokens": 5000, "messages": [{"role": "user", "content": "a"}]}


def _post(url: str, body: str) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json", "anthropic-version": "2023-06-01"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_a_model_of_the_server_that_answers_with_them_is_one_error() -> None:
    """Arguments of 900 levels, which a policy gives, ended in a RecursionError while the answer was written."""

    def model(request: Any) -> AssistantMessage:
        return AssistantMessage(None, tool_calls=[ToolCall("c", "f", f'{{"a": {nested(900)}}}')])

    tool = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
    with ModelServer({"echo": model}) as server:
        status, said = _post(f"{server.openai_url}/messages", json.dumps({**ASKED, "tools": [tool]}))
    assert status == 500
    assert "must be a JSON object" in said["error"]["message"]


def _run(path: Path) -> list[str]:
    env = vfgym.SingleTurnEnv(dataset=[{"question": "a", "answer": "b"}] * 2, rubric=vfgym.Rubric(lambda completion: 1.0))
    vfgym.evaluate(env, lambda observation, info: "b", results_path=path, progress=False)
    return (path / "results.jsonl").read_text().splitlines()


@pytest.mark.parametrize("place", [0, 1])
def test_a_row_and_metadata_that_are_nested_too_deeply_are_named(tmp_path: Path, place: int) -> None:
    lines = _run(tmp_path)
    for depth in DEPTHS:
        deep = [*lines]
        deep[place] = lines[place][:-1] + f', "x": {nested(depth)}}}'
        (tmp_path / "results.jsonl").write_text("\n".join(deep))
        with pytest.raises(ResultsError, match=rf"line {place + 1} of .* is not a rollout: the JSON is nested more than 200 levels deep"):
            vfgym.results.load_results(tmp_path)
    (tmp_path / "metadata.json").write_text(nested(900))
    with pytest.raises(ResultsError, match="nested more than 200 levels deep"):
        vfgym.results.load_results(tmp_path)


def test_a_row_is_written_so_that_it_can_be_read() -> None:
    """What an environment keeps may be nested deeper than what is read: then its `repr` stands there, and the row is whole."""
    value: Any = 1
    for _ in range(MOST_LEVELS + 1):
        value = [value]
    places: list[Any] = []
    row = parse_json(line_of({"reward": 0.5, "info": value}, places))
    assert row == {"reward": 0.5, "info": repr(value)}
    assert [place.path for place in places] == ["info"]
    with pytest.raises(TypeError, match="nested more than 100 levels deep"):
        json_text(value)
