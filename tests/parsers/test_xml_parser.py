"""Fields between tags: parsing, formatting and the format reward."""

from __future__ import annotations

import logging
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfgym.errors import ConfigurationError
from vfgym.parsers import XMLParser, extract_boxed_answer

FIELDS: list[str | tuple[str, ...]] = ["reasoning", ("code", "answer")]
PERFECT = "<reasoning>\nthink\n</reasoning>\n<answer>\n42\n</answer>"


def assistant(content: Any) -> dict[str, Any]:
    """Make an assistant message."""
    return {"role": "assistant", "content": content}


@pytest.mark.parametrize(
    ("text", "reasoning", "code", "answer"),
    [
        (PERFECT, "think", None, "42"),
        ("<reasoning>a</reasoning><code> x = 1\ny = 2 </code>", "a", "x = 1\ny = 2", None),
        ("<code>c</code><answer>a</answer>", None, "c", "a"),
        ("<answer>first</answer><answer>last</answer>", None, None, "first"),
        ("<answer></answer>", None, None, ""),
        ("<answer> \n </answer>", None, None, ""),
        ("<reasoning>never closed", None, None, None),
        ("</answer><answer>", None, None, None),
        ("<reasoning>a <answer>42</answer> b</reasoning>", "a <answer>42</answer> b", None, "42"),
        ("<answer>a<answer>b</answer>c</answer>", None, None, "a<answer>b"),
        ("<Answer>42</Answer><answer x='1'>42</answer>", None, None, None),
        ("", None, None, None),
    ],
)
def test_parse_gives_every_tag_an_attribute(text: str, reasoning: str | None, code: str | None, answer: str | None) -> None:
    """Each tag is searched for by itself: its first element, stripped, or None."""
    assert XMLParser(FIELDS).parse(text) == SimpleNamespace(reasoning=reasoning, code=code, answer=answer)


def test_parse_can_take_the_last_element() -> None:
    """``last=True`` takes the last complete element of each tag."""
    text = "<answer>1</answer> <answer> 2 </answer> <answer>cut off"
    assert XMLParser(["answer"]).parse(text, last=True).answer == "2"


def test_whitespace_is_left_out_even_without_strip() -> None:
    """``strip=False`` is accepted and has no effect."""
    assert XMLParser(["answer"]).parse("<answer> 42\n</answer>", strip=False).answer == "42"


def test_tags_are_literal_text() -> None:
    """A tag with characters of a regular expression stands for itself."""
    parser = XMLParser(["a.b", "c+"])
    assert vars(parser.parse("<axb>no</axb><a.b>yes</a.b><cc>no</cc><c+>yes</c+>")) == {"a.b": "yes", "c+": "yes"}


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("<answer>1</answer><answer>2</answer>", "2"),
        ([assistant("<answer>1</answer><answer>2</answer>")], "1"),
        (assistant("<answer>1</answer><answer>2</answer>"), "1"),
        ([assistant("<answer>old</answer>"), assistant("<answer>new</answer>")], "new"),
        ([assistant("<answer>old</answer>"), assistant("no tag")], "old"),
        ([assistant("<answer>old</answer>"), assistant(None)], "old"),
        ([assistant("<answer>old</answer>"), assistant("<answer></answer>")], ""),
        ([assistant("<code>c</code>")], None),
        ([assistant([{"type": "text", "text": "<answer>42</answer>"}])], "42"),
        ([{"role": "user", "content": "<answer>42</answer>"}], None),
        ([SimpleNamespace(role="assistant", content="<answer>42</answer>")], "42"),
        ([], None),
        ("", None),
    ],
)
def test_parse_answer(completion: Any, answer: str | None) -> None:
    """The last answer of a text; of messages, the first answer of the newest assistant message that has one."""
    assert XMLParser(FIELDS).parse_answer(completion) == answer


def test_an_answer_field_that_is_no_field_gives_no_answer() -> None:
    """The default ``answer_field`` may be left standing where a parser is used for its fields only."""
    parser = XMLParser(["plan", "guess"])
    assert parser.parse_answer("<guess>crane</guess><answer>crane</answer>") is None
    assert XMLParser(["plan", "guess"], answer_field="guess").parse_answer("<guess>crane</guess>") == "crane"


def test_extract_fn_is_applied_to_the_answer_only() -> None:
    """`parse_answer` applies `extract_fn`, `parse` does not, and it is not asked where there is no answer."""
    parser = XMLParser(["answer"], extract_fn=extract_boxed_answer)
    text = r"<answer>\boxed{42}</answer>"
    assert parser.parse(text).answer == r"\boxed{42}"
    assert parser.parse_answer(text) == parser.parse_answer([assistant(text)]) == "42"
    assert parser.parse_answer("no answer") is None


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ([()], ConfigurationError, "empty tuple"),
        ([], ConfigurationError, "at least one field"),
        (["answer", "answer"], ConfigurationError, "'answer'"),
        (["answer", ("answer", "code")], ConfigurationError, "'answer'"),
        (["answer", ("code", "answer")], ConfigurationError, "'answer'"),
        ([("code", "answer"), ("guess", "answer")], ConfigurationError, "'answer'"),
        ([("answer", "answer")], ConfigurationError, "'answer'"),
        (["a", "b", "c", ("b", "c")], ConfigurationError, "these occur more often: 'b', 'c'$"),
        ([("answer", 1)], TypeError, "tuple of alternative strings"),
        ([1], TypeError, "got 1"),
        ([["code", "answer"]], TypeError, "tuple of alternative strings"),
        ("answer", TypeError, re.escape("Did you mean ['answer']?")),
    ],
)
def test_wrong_fields_are_refused(fields: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        XMLParser(fields)


@pytest.mark.parametrize(("fields", "warnings"), [(["think", "guess"], 1), ([("thought", "think")], 0), (["guess"], 0)])
def test_a_think_field_is_warned_of(fields: Any, warnings: int, caplog: pytest.LogCaptureFixture) -> None:
    """A canonical ``think`` field logs a warning, since reasoning is often parsed out of the text."""
    with caplog.at_level(logging.WARNING):
        XMLParser(fields)
    assert [record.name for record in caplog.records] == ["vfgym.parsers.xml_parser"] * warnings


def test_the_format_is_described() -> None:
    """`get_fields` names the canonical tags; `get_format_str` shows alternatives in brackets."""
    parser = XMLParser(FIELDS)
    assert parser.get_fields() == ["reasoning", "code"]
    assert parser.get_format_str() == "<reasoning>\n...\n</reasoning>\n<[ code | answer ]>\n...\n</[ code | answer ]>"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"reasoning": "r", "code": "c"}, "<reasoning>\nr\n</reasoning>\n<code>\nc\n</code>"),
        ({"reasoning": "r", "answer": 42}, "<reasoning>\nr\n</reasoning>\n<code>\n42\n</code>"),
        ({"answer": "a", "code": "c", "reasoning": "r", "other": "o"}, "<reasoning>\nr\n</reasoning>\n<code>\nc\n</code>"),
        ({"reasoning": "", "code": ""}, "<reasoning>\n\n</reasoning>\n<code>\n\n</code>"),
    ],
)
def test_format_writes_canonical_tags(values: dict[str, Any], text: str) -> None:
    """Content may be given by the canonical tag or an alternative; the canonical one wins and is written."""
    assert XMLParser(FIELDS).format(**values) == text


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"code": "c"}, "needs the content of `reasoning`.$"),
        ({"reasoning": None, "code": "c"}, "needs the content of `reasoning`.$"),
        ({"reasoning": "r"}, "needs the content of `code` or `answer`.$"),
        ({"reasoning": "r", "code": None, "answer": "a"}, "needs the content of `code` or `answer`.$"),
        ({"reasonning": "r", "code": "c"}, re.escape("Did you mean `reasonning`?")),
    ],
)
def test_format_needs_every_field(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        XMLParser(FIELDS).format(**values)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (PERFECT, 1.0),
        ("<reasoning>think</reasoning><code>42</code>", 1.0),
        ("  \n<reasoning>think</reasoning><answer>42</answer>\n ", 1.0),
        ("<reasoning></reasoning><answer></answer>", 1.0),
        ("<answer>42</answer>", 0.6),
        ("<answer>42</answer><reasoning>think</reasoning>", 0.6),
        ("<reasoning>think</reasoning><answer>42</answer> Done.", 0.8),
        ("<reasoning>think</reasoning>", 0.6),
        *[("<reasoning>think</reasoning><answer>42", 0.8), ("<reasoning>x", 0.4), ("plain text", 0.2), ("", 0.2), (None, 0.2)],
        *[("<answer>42</answer></reasoning>", 0.6), ("</answer></reasoning>", 0.2)],
        ([{"type": "text", "text": PERFECT}], 1.0),
    ],
)
def test_format_reward_of_one_message(text: Any, score: float) -> None:
    assert XMLParser(FIELDS).get_format_reward_func()([assistant(text)], answer="ignored", state={}) == score


@pytest.mark.parametrize("text", ["<code>42</code>", "<answer>42</answer>"])
def test_any_tag_of_the_first_and_the_last_field_begins_and_ends_the_format(text: str) -> None:
    assert XMLParser([("code", "answer")]).get_format_reward_func()(text) == 1.0


@pytest.mark.parametrize(
    ("text", "score"),
    [("<a>1</a>", 0.4 + 0.4 / 3), ("<b>2</b>", 0.2 + 0.4 / 3), ("<b>2</b><c>3</c>", 0.4 + 0.8 / 3), ("<a>1</a><b>2</b><c>3</c>", 1.0)],
)
def test_format_reward_counts_the_share_of_the_fields(text: str, score: float) -> None:
    """The tags of fields in between neither begin nor end the format."""
    assert XMLParser(["a", "b", "c"]).get_format_reward_func()(text) == pytest.approx(score)


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ([assistant(PERFECT), {"role": "user", "content": "plain"}, assistant("plain")], 0.6),
        ([{"role": "user", "content": PERFECT}], 0.0),
        ([], 0.0),
        (PERFECT, 1.0),
        (assistant(PERFECT), 1.0),
    ],
)
def test_format_reward_is_the_mean_over_assistant_messages(completion: Any, score: float) -> None:
    """Only assistant messages count; without one the reward is 0.0."""
    assert XMLParser(FIELDS).get_format_reward_func()(completion=completion) == score


UNTAGGED = st.text().filter(lambda text: "<" not in text)


@given(reasoning=UNTAGGED, answer=UNTAGGED)
def test_what_is_formatted_is_parsed(reasoning: str, answer: str) -> None:
    """Text without tags comes back from `format` and `parse` stripped, and is in the format."""
    parser = XMLParser(["reasoning", "answer"])
    text = parser.format(reasoning=reasoning, answer=answer)
    assert parser.parse(text) == SimpleNamespace(reasoning=reasoning.strip(), answer=answer.strip())
    assert parser.parse_answer(text) == parser.parse_answer([assistant(text)]) == answer.strip()
    assert parser.get_format_reward_func()(text) == 1.0


@given(pieces=st.lists(st.sampled_from(["<a>", "</a>", "<b>", "</b>", " ", "\n", "\x1c", "x"]), max_size=30), last=st.booleans())
def test_fields_are_what_a_regular_expression_finds(pieces: list[str], last: bool) -> None:
    text = "".join(pieces)
    for tag, content in vars(XMLParser(["a", "b"]).parse(text, last=last)).items():
        found = re.findall(rf"<{tag}>\s*(.*?)\s*</{tag}>", text, re.DOTALL) or [None]
        assert content == found[-1 if last else 0]


@given(st.text(alphabet="<>/abanswer \n"))
def test_no_text_breaks_the_parser(text: str) -> None:
    """Whatever a model writes, the fields are strings or None and the reward is between 0 and 1."""
    parser = XMLParser(["a", ("b", "answer")])
    assert all(value is None or value == value.strip() for value in vars(parser.parse(text)).values())
    assert 0.2 <= parser.get_format_reward_func()(text) <= 1.0
