"""The base parser: which text of a completion it reads, in every form that a completion has."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.messages import AssistantMessage, UserMessage
from vfgym.parsers import MaybeThinkParser, Parser, ThinkParser, XMLParser

CONVERSATION = [
    *[{"role": "system", "content": "be brief"}, {"role": "user", "content": "question"}, {"role": "assistant", "content": "first"}],
    {"role": "tool", "tool_call_id": "c1", "content": "result"},
    {"role": "assistant", "content": "second"},
    {"role": "user", "content": "thanks"},
]
PARTS = [{"type": "text", "text": " a"}, {"type": "image_url", "image_url": {"url": "u"}}, {"type": "text", "text": "b "}]


@dataclass
class ChoiceParser(Parser):
    choices: str = "ABCD"

    def parse(self, text: str) -> str:
        """Return the choices that the text names."""
        return "".join(choice for choice in self.choices if choice in text)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        *[("text", "text"), ("", ""), (CONVERSATION, "second"), (tuple(CONVERSATION), "second"), (CONVERSATION[:3], "first")],
        *[(CONVERSATION[:2], None), ([], None), ({"role": "assistant", "content": "one"}, "one")],
        ({"role": "user", "content": "one"}, None),
        ([{"role": "assistant", "content": None}], ""),
        ([{"role": "assistant", "tool_calls": []}], ""),
        ([{"role": "assistant", "content": PARTS}], "a b"),
        ([AssistantMessage("frozen"), UserMessage("x")], "frozen"),
        (AssistantMessage("frozen"), "frozen"),
        ([SimpleNamespace(role="assistant", content="object")], "object"),
        (SimpleNamespace(role="assistant", content=None), ""),
    ],
)
def test_parse_answer_reads_the_last_assistant_message(completion: Any, answer: str | None) -> None:
    """A text is read whole; content of None is empty; without an assistant message there is no answer."""
    assert Parser().parse_answer(completion) == answer


@pytest.mark.parametrize(
    ("parser", "parsed"),
    [
        (Parser(), "<think>x</think> <answer>second</answer>"),
        (ThinkParser(), "<answer>second</answer>"),
        (MaybeThinkParser(), "<answer>second</answer>"),
        (XMLParser(["answer"]), SimpleNamespace(answer="second")),
    ],
)
def test_parse_accepts_messages_and_reads_the_last_assistant_text(parser: Parser, parsed: Any) -> None:
    """``parse(messages)`` is ``parse`` of the newest assistant text, for every parser."""
    text = "<think>x</think> <answer>second</answer>"
    messages = [{"role": "assistant", "content": "<answer>first</answer>"}, {"role": "assistant", "content": text}]
    assert parser.parse(text) == parser.parse(messages) == parser.parse(messages[-1]) == parsed
    assert parser.parse([]) == parser.parse("")


def test_extract_fn_is_applied_to_the_text() -> None:
    """`extract_fn` reads the answer out of the text, in `parse` and so in `parse_answer`."""
    parser = Parser(extract_fn=lambda text: text.upper())
    assert (parser.parse("yes"), parser.parse_answer([{"role": "assistant", "content": "yes"}])) == ("YES", "YES")


@pytest.mark.parametrize("value", [None, 5, [None], ["text"], [{"content": "no role"}], {"content": "no role"}, b"text"])
def test_what_is_not_a_completion_is_refused(value: Any) -> None:
    """A value that is neither a text nor messages is an error that says so, not a missing answer."""
    for read in (Parser().parse, Parser().parse_answer, XMLParser(["answer"]).parse_answer, XMLParser(["answer"]).get_format_reward_func()):
        with pytest.raises(InvalidMessage, match="expected a text, or chat messages"):
            read(value)


def test_the_error_says_what_came_shortened() -> None:
    with pytest.raises(InvalidMessage) as refused:
        Parser().parse([{"role": "user", "content": "?"}, "x" * 1000])
    assert str(refused.value) == f"expected a text, or chat messages with a role and content, got str: '{'x' * 119}"


def test_messages_are_filtered_by_role() -> None:
    parser = Parser()
    assert parser.get_assistant_messages(CONVERSATION) == [CONVERSATION[2], CONVERSATION[4]]
    assert parser.get_system_messages(CONVERSATION) == [CONVERSATION[0]]
    assert parser.get_user_messages(CONVERSATION) == [CONVERSATION[1], CONVERSATION[5]]
    assert parser.get_tool_messages(CONVERSATION) == [CONVERSATION[3]]


def test_the_developer_role_is_a_system_role() -> None:
    """``developer`` is the newer name of ``system``; both come in the order of the conversation."""
    messages = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "?"}, {"role": "system", "content": "be kind"}]
    assert Parser().get_system_messages(messages) == [messages[0], messages[2]]
    assert Parser().get_system_messages("be brief") == Parser().get_user_messages("?") == Parser().get_tool_messages("42") == []


def test_the_log_of_a_parser_is_named_after_its_class() -> None:
    """A log belongs to the parser's author, also where the class runs no ``Parser.__init__``."""
    assert (Parser().logger.name, ChoiceParser("AB").logger.name) == ("vfgym.parsers.parser.Parser", f"{__name__}.ChoiceParser")


@pytest.mark.parametrize("name", ["parse", "parse_answer"])
def test_a_method_that_takes_no_text_is_refused_where_its_class_is_written(name: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^Blind must have {name}\(self, "):
        type("Blind", (Parser,), {name: lambda self: ""})


@pytest.mark.parametrize("parser", [Parser(), ThinkParser(), MaybeThinkParser(), XMLParser(["answer"])])
def test_format_reward_functions_share_their_name(parser: Parser) -> None:
    assert parser.get_format_reward_func().__name__ == "format_reward_func"


def test_a_subclass_may_be_a_dataclass() -> None:
    """The base behaviour needs nothing that ``Parser.__init__`` sets."""
    parser = ChoiceParser("AB")
    assert parser.parse_answer([{"role": "assistant", "content": "B, not C"}]) == "B"
    assert (Parser.parse(parser, "B, not C"), parser.get_format_reward_func()("B")) == ("B, not C", 1.0)


def test_a_parser_can_be_pickled() -> None:
    parser = pickle.loads(pickle.dumps(XMLParser(["reasoning", "answer"])))
    assert parser.parse_answer("<answer>42</answer>") == "42"
