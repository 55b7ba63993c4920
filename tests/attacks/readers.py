"""Everything in the packages that reads or writes text of others, collected by rule: what `ROOMS` hold, and what is registered.

A public function of a room that takes text first and needs nothing else is called with the text. What is called in another way is in
`CALLED`, what reads no text of others in `LEFT_OUT`, with the reason. A function with a parameter that is text, or may be anything, and
that is in neither is reported by `uncollected`, and so is a kind of spaces without an example.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import pkgutil
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np

import vfgym.parsers
from vfgym import AssistantMessage
from vfgym.codecs import Codec, codec_for, registry
from vfgym.messages import ToolCall
from vfgym.output.redaction import redact_error
from vfgym.parsers import Parser, XMLParser, extract_boxed_answer
from vfgym.tools.function import ToolFunction
from vfgym.wrappers.games.action_lists import ActionLists
from vfgym.wrappers.games.answers import Answers
from vfgym.wrappers.openenv.actions import ActionReader

Read = Callable[[str], Any]

ROOMS = (
    *("vfgym.codecs", "vfgym.parsers", "vfgym.output", "vfgym.view", "vfgym.play.lines", "vfgym.play.forms", "vfgym.messages"),
    *("vfgym.wrappers.textarena.answers", "vfgym.wrappers.textarena.observations", "vfgym.wrappers.games.history"),
    *("vfgym.tools.arguments", "vfgym.tools.json_numbers", "vfgym.tools.results", "vfgym.clients.formats", "vfgym.clients.faults"),
    *("vfgym.interception.wire", "vfgym.model_server.tokenizer", "vfgym.model_server.wire", "vfgym.model_server.parsed_request"),
    *("vfgym.results.plain_json", "vfgym.results.reading", "vfgym.rubrics.code_rubric", "vfgym.rubrics.code_tests"),
    *("vfgym.rubrics.judge_rubric", "vfgym.training.local_policy", "verifiers_compat.parsers", "verifiers_compat.utils.data_utils"),
)
"""Packages and modules in which text of others is read."""

_TEXT = frozenset({"str", "bytes", "object", "Any", "Messages", "str | bytes"})
"""Types of a parameter that takes text."""

AWKWARD_SECRETS = ("sk-0123456789abcdef", "a" * 24, "\\" * 12, "/a\\\\b/\\/c", "%25" * 5, "&amp;" * 4, " " * 20 + "b", '"\\"\\"\\"\\"\\"')
"""Secrets whose spellings have much in common with runs of characters."""


class _Words(gym.Space[Any]):
    """A space of strings of a user's own kind."""

    def __init__(self) -> None:
        super().__init__((), np.dtype("U8"))

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return "word"

    def contains(self, x: Any) -> bool:
        return x == "word"


class _Small(gym.spaces.Discrete):
    """A user's subclass of a known space."""

    def contains(self, x: Any) -> bool:
        return bool(super().contains(x)) and x < 2


class _Own(gym.Space[Any]):
    """A space of which nothing is known but its own JSON."""

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        return 1

    def contains(self, x: Any) -> bool:
        return bool(x == 1)


NAMES = ["left", "right", "no op (stay)", "go up-left 1.5"]
SPACES: dict[type[gym.Space[Any]], list[tuple[gym.Space[Any], Any]]] = {
    gym.spaces.Discrete: [
        (gym.spaces.Discrete(5), None),
        (gym.spaces.Discrete(4), NAMES),
        (gym.spaces.Discrete(300), [f"move {number} to a{number}" for number in range(300)]),
        (_Small(3), None),
    ],
    gym.spaces.Box: [
        (gym.spaces.Box(-1, 1, (3,)), None),
        (gym.spaces.Box(-1, 1, (1,)), None),
        (gym.spaces.Box(0, 9, (2, 2), np.int32), None),
    ],
    gym.spaces.MultiBinary: [(gym.spaces.MultiBinary(3), ["a", "b", "c"])],
    gym.spaces.MultiDiscrete: [
        (gym.spaces.MultiDiscrete([2, 3]), None),
        (gym.spaces.MultiDiscrete([2, 2]), [["a", "b"], ["left", "right"]]),
    ],
    gym.spaces.Text: [(gym.spaces.Text(100), None), (gym.spaces.Text(10**6), None)],
    gym.spaces.Tuple: [(gym.spaces.Tuple([gym.spaces.Discrete(3), gym.spaces.Box(0, 1, (2,))]), None)],
    gym.spaces.Dict: [(gym.spaces.Dict(a=gym.spaces.Discrete(3), action=gym.spaces.Box(0, 1, (2,))), None)],
    gym.spaces.Sequence: [(gym.spaces.Sequence(gym.spaces.Discrete(3)), None)],
    gym.spaces.OneOf: [(gym.spaces.OneOf([gym.spaces.Discrete(3), gym.spaces.Text(10)]), None)],
    gym.spaces.Graph: [(gym.spaces.Graph(gym.spaces.Discrete(3), gym.spaces.Discrete(2)), None)],
    gym.Space: [(_Words(), None), (_Own(), None)],
}
"""Spaces and names for each kind of space that has codecs of its own."""

PARSERS: dict[type[Parser], Callable[[], Parser]] = {XMLParser: lambda: XMLParser(["think", ("code", "answer")])}
"""How parsers are made that need something."""


def _row(text: str) -> dict[str, Any]:
    """Return a row of results that has a text in every place."""
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": text}}
    return {
        "example_id": 0,
        "prompt": [{"role": "user", "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": text}}]}],
        "completion": [{"role": "assistant", "content": text, "reasoning_content": text, "tool_calls": [call]}],
        "reward": 1.0,
        "metrics": {},
        "metrics_errors": {"a": text},
        "error": {"error": "ValueError", "error_chain_repr": text, "error_chain_str": text},
        "failed": True,
        "stop_condition": text,
        "is_truncated": False,
        "answer": text,
        "info": {"a": [text]},
        "tool_defs": [{"name": text, "description": text, "parameters": {}}],
    }


def _page(text: str) -> Any:
    from vfgym.view.page import build_page

    outputs: Any = {"outputs": [_row(text)], "metadata": {"env_id": text, "model": text, "num_examples": 1, "rollouts_per_example": 1}}
    return build_page(outputs)


async def _chunks(text: str) -> AsyncIterator[Any]:
    for start in range(0, len(text), 8):
        piece = text[start : start + 8]
        call = {"index": 0, "id": "a", "function": {"name": "a", "arguments": piece}}
        delta = {"content": piece, "reasoning": piece, "tool_calls": [call]}
        yield {"choices": [{"index": 0, "delta": delta, "token_ids": [1, 2]}]}


def _collect(text: str) -> Any:
    from vfgym.clients.formats.openai_chat_stream import collect_stream

    return asyncio.run(collect_stream(_chunks(text)))


def _message_with(**fields: Any) -> AssistantMessage:
    return AssistantMessage(**{"content": None, **fields})


def _of(module: str, name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found


def _native_prompt(text: str) -> Any:
    message = _message_with(content=text, tool_calls=[ToolCall("c", "a", text)])
    return _of("vfgym.clients.formats.anthropic_messages", "native_prompt")([message])


def _completion(text: str) -> Any:
    message = {"content": text, "reasoning": text, "tool_calls": [{"id": "a", "function": {"name": "a", "arguments": text}}]}
    body = {"choices": [{"message": message, "finish_reason": text}], "model": text, "id": text}
    _of("vfgym.clients.formats.openai_chat", "check_completion")(body)
    return _of("vfgym.clients.formats.openai_chat", "read_completion")(body)


def _bind(text: str) -> Any:
    def tool(items: list[int], point: dict[str, float], note: str = "") -> str:
        return note

    function = ToolFunction(tool)
    return function.bind(function.decode(text) if text[:1] == "{" else {"items": text, "point": text, "note": text})


_SCHEMA = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}

CALLED: dict[str, Read] = {
    "vfgym.codecs.observations.observation_text": lambda text: _of("vfgym.codecs", "observation_text")(None, {"a": [text, (text,)]}, ["a"]),
    "vfgym.output.html.html_image": lambda text: _of("vfgym.output.html", "html_image")(f"data:image/{text}", text),
    "vfgym.output.html.html_table": lambda text: _of("vfgym.output.html", "html_table")(text, [text], [[text]]),
    "vfgym.output.redaction.excerpt": lambda text: _of("vfgym.output.redaction", "excerpt")(text, 300),
    "vfgym.output.redaction.redact_error": lambda text: redact_error(ValueError(text, {"headers": {"a": text}})),
    "vfgym.output.terminal.echo_traceback": lambda text: _of("vfgym.output.terminal", "display_text")(text),
    "vfgym.view.page.build_page": _page,
    "vfgym.view.terminal.conversation_text": lambda text: _of("vfgym.view.terminal", "conversation_text")(_row(text)),
    "vfgym.view.terminal.message_text": lambda text: _of("vfgym.view.terminal", "message_text")(_row(text)["completion"][0]),
    **{
        f"vfgym.view.rollouts.{name}": lambda text, name=name: _of("vfgym.view.rollouts", name)(_row(text))
        for name in ("failure_reason", "asked_words", "said_words")
    },
    "vfgym.view.concerns.concerns_of": lambda text: _of("vfgym.view.concerns", "concerns_of")([_row(text)]),
    "vfgym.view.findings.labels_of": lambda text: _of("vfgym.view.findings", "labels_of")(
        [{"model": text}, {"model": text, "env_args": {text: text}}]
    ),
    "vfgym.play.forms.read_value": lambda text: _of("vfgym.play.forms", "read_value")(text, _SCHEMA["properties"]["a"], _SCHEMA),  # type: ignore[index]
    "vfgym.play.forms.read_arguments": lambda text: _of("vfgym.play.forms", "read_arguments")({"name": "f", "parameters": _SCHEMA}, text),
    "vfgym.tools.arguments.parse_arguments": lambda text: _of("vfgym.tools.arguments", "parse_arguments")("f", text),
    "vfgym.tools.arguments.decode_embedded": lambda text: _of("vfgym.tools.arguments", "decode_embedded")({"a": text}, ["a"]),
    "vfgym.tools.arguments.describe_problems": _bind,
    "vfgym.tools.arguments.describe_unknown": lambda text: _of("vfgym.tools.arguments", "describe_unknown")([text], ["a", "b"]),
    "vfgym.tools.json_numbers.no_json_numbers": lambda text: _of("vfgym.tools.json_numbers", "no_json_numbers")({"a": [text]}, _SCHEMA),
    "vfgym.codecs.calls.find_data": lambda text: list(_of("vfgym.codecs.calls", "find_data")(text, (), {"action"})),
    "vfgym.codecs.labels.find_labelled": lambda text: [
        list(_of("vfgym.codecs.labels", "find_labelled")(text, "act", is_spaced=is_spaced)) for is_spaced in (False, True)
    ],
    "vfgym.codecs.sentences.is_doubtful": lambda text: _of("vfgym.codecs.sentences", "is_doubtful")(text + text, len(text), len(text)),
    "vfgym.codecs.sentences.without_corrected": lambda text: _of("vfgym.codecs.sentences", "without_corrected")(
        text, _of("vfgym.codecs.marks", "marks_of")(text, with_brackets=True)
    ),
    "vfgym.clients.faults.says_overlong": lambda text: _of("vfgym.clients.faults", "says_overlong")(
        400, text, {"error": {"message": text}}
    ),
    "vfgym.clients.faults.is_authentication_error": lambda text: _of("vfgym.clients.faults", "is_authentication_error")(ValueError(text)),
    "vfgym.clients.formats.anthropic_messages.native_prompt": _native_prompt,
    "vfgym.clients.formats.openai_chat.read_completion": _completion,
    "vfgym.clients.formats.usage.read_usage": lambda text: _of("vfgym.clients.formats.usage", "read_usage")(
        {"prompt_tokens": text, "completion_tokens": text}, lambda field, value: _of("vfgym.output.redaction", "excerpt")(value, 99)
    ),
    "vfgym.clients.formats.usage.warn_of_unusable": lambda text: _of("vfgym.clients.formats.usage", "warn_of_unusable")(
        text, text, "prompt_tokens", text
    ),
    "vfgym.clients.formats.openai_chat_stream.collect_stream": _collect,
    "vfgym.interception.wire.split_into_pieces": lambda text: list(_of("vfgym.interception.wire", "split_into_pieces")(text)),
    "vfgym.model_server.wire.parse_body": lambda text: _of("vfgym.model_server.wire", "parse_body")(text.encode("utf-8", "surrogatepass")),
    "vfgym.results.reading.read_row": lambda text: _of("vfgym.results.reading", "read_row")(_row(text), ()),
    "vfgym.results.plain_json.line_of": lambda text: _of("vfgym.results.plain_json", "line_of")(_row(text), []),
    "vfgym.rubrics.judge_rubric.fill_template": lambda text: _of("vfgym.rubrics.judge_rubric", "fill_template")(
        "{question}", {"question": text}
    ),
    "vfgym.wrappers.textarena.observations.join_texts": lambda text: _of("vfgym.wrappers.textarena.observations", "join_texts")(
        [text, text]
    ),
}
"""How functions of the rooms are called that need more than a text."""

_AUTHORS = "takes what the author of an environment wrote, or the user of the library"
_PART = "is called by another function, which is called here"
LEFT_OUT: dict[str, str] = {
    "vfgym.codecs.data.elements_of": _PART,
    "vfgym.codecs.reading.read_answer": _PART,
    "vfgym.codecs.reading.tail_of": _PART,
    "vfgym.codecs.registry.codec_for": _AUTHORS,
    "vfgym.output.terminal.echo": "prints what display_text returns",
    "vfgym.output.pictures.as_picture": "takes what a game drew",
    "vfgym.parsers.parser.format_reward_func": "looks at nothing",
    "vfgym.play.forms.explain": _AUTHORS,
    "vfgym.view.page.write_page": "writes what build_page returns",
    "vfgym.wrappers.games.history.make_limits": _AUTHORS,
    "vfgym.tools.json_numbers.resolve_reference": _AUTHORS,
    "vfgym.clients.formats.native_output.native_output": _PART,
    "vfgym.clients.formats.native_output.replayable": _PART,
    "vfgym.clients.formats.openai_chat.require_choice": _PART,
    "vfgym.clients.formats.openai_chat.check_completion": _PART,
    "vfgym.clients.formats.openai_chat.response_of": _PART,
    "vfgym.clients.formats.sampling.check_sampling_args": _AUTHORS,
    "vfgym.clients.formats.renderer.renderer_config": _AUTHORS,
    "vfgym.model_server.wire.check_method": "takes one word of HTTP",
    "vfgym.model_server.wire.json_response": "writes what dumps returns",
    "vfgym.model_server.tokenizer.answer_pieces": _PART,
    "vfgym.model_server.tokenizer.prompt_pieces": _PART,
    "vfgym.model_server.parsed_request.conversation_tokens": _PART,
    "vfgym.model_server.parsed_request.read_toolbox": _PART,
    "vfgym.model_server.parsed_request.parse_tool_choice": _PART,
    "vfgym.model_server.parsed_request.read_integer": _PART,
    "vfgym.model_server.parsed_request.read_object": _PART,
    "vfgym.model_server.parsed_request.read_stops": _PART,
    "vfgym.model_server.parsed_request.without": _PART,
    "vfgym.rubrics.code_tests.share_of_passed": "runs programs",
    "vfgym.wrappers.textarena.observations.render_training_view": "joins what a game says, as join_texts does",
    "vfgym.tools.json_numbers.admitted_types": _AUTHORS,
    "vfgym.model_server.wire.send_half": "sends what dumps returns",
    "verifiers_compat.utils.data_utils.format_dataset": _AUTHORS,
}
"""Functions of the rooms that are not called, and why."""


def readers() -> dict[str, Read]:
    """Return all readers and writers by name."""
    return {**_functions(), **CALLED, **_codecs(), **_parsers(), **_games()}


def uncollected() -> list[str]:
    """Return the public functions of the rooms, and the kinds of spaces and parsers, that nothing here calls or leaves out."""
    called = readers()
    functions = [name for name, each in _public_functions() if _may_take_text(each) and name not in called and name not in LEFT_OUT]
    return [*functions, *(kind.__name__ for kind in registry._factories if kind not in SPACES and kind.__module__.startswith("gymnasium"))]


def _functions() -> dict[str, Read]:
    found: dict[str, Read] = {}
    for name, function in _public_functions():
        if name not in LEFT_OUT and name not in CALLED and _takes_text(function):
            found[name] = function
    return found


def _takes_text(function: Callable[..., Any]) -> bool:
    first, *others = inspect.signature(function).parameters.values() or [None]
    are_optional = all(other.default is not other.empty or other.kind in (other.VAR_POSITIONAL, other.VAR_KEYWORD) for other in others)
    return first is not None and str(first.annotation) in _TEXT and are_optional


def _may_take_text(function: Callable[..., Any]) -> bool:
    return any(str(parameter.annotation) in _TEXT for parameter in inspect.signature(function).parameters.values())


def _public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for module in _modules():
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                yield f"{module.__name__}.{name}", value


def _modules() -> Iterator[ModuleType]:
    for room in ROOMS:
        module = importlib.import_module(room)
        yield module
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{room}."):
            yield importlib.import_module(found.name)


def _codecs() -> dict[str, Read]:
    found: dict[str, Read] = {}
    for kind, spaces in SPACES.items():
        for number, (space, names) in enumerate(spaces):
            codec = codec_for(space, names)
            for method in (codec.decode, codec.decode_cut_off, codec.decode_mark, codec.from_json, codec.read_exactly):
                found[f"{kind.__name__} {number}.{method.__name__}"] = method
            if isinstance(space, gym.spaces.Text):
                found[f"{kind.__name__} {number}.encode"] = functools.partial(_written, codec)
    return found


def _written(codec: Codec, text: str) -> str:
    return codec.encode(text)


def _parsers() -> dict[str, Read]:
    found: dict[str, Read] = {}
    for name in vfgym.parsers.__all__:
        kind = getattr(vfgym.parsers, name)
        if not isinstance(kind, type):
            continue
        parser = PARSERS[kind]() if kind in PARSERS else kind(extract_fn=extract_boxed_answer)
        found |= {
            f"{name}.parse": parser.parse,
            f"{name}.parse_answer": parser.parse_answer,
            f"{name}.format": parser.get_format_reward_func(),
        }
        found[f"{name}.parse_answer of messages"] = lambda text, parser=parser: parser.parse_answer(
            [{"role": "assistant", "content": text}]
        )
    found["XMLParser.parse, last"] = lambda text: XMLParser(["action"]).parse(text, last=True)
    return found


def _games() -> dict[str, Read]:
    codec = codec_for(gym.spaces.Discrete(4), NAMES)
    lists, tool = ActionLists(codec, 3), Answers(codec, as_tool=True)
    return {
        "ActionLists.read_all": lambda text: lists.read_all(AssistantMessage(text)),
        "ActionLists.read_all, cut off": lambda text: lists.read_all(AssistantMessage(text), is_cut_off=True),
        "ActionReader.read": ActionReader(
            {"properties": {"move": {"type": "integer"}, "note": {"type": "string"}}, "required": ["move"]}
        ).read,
        "ActionReader.read of a lone text": ActionReader({"properties": {"note": {"type": "string"}}}).read,
        "Answers.read of a call": lambda text: tool.read(_message_with(tool_calls=[ToolCall("c", "act", text)])),
    }
