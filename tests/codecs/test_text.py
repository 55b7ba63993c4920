"""`TextCodec` and `OwnJsonCodec`: texts are read as they are meant, and travel unchanged."""

from __future__ import annotations

import re
import string
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces as gs

from tests.codecs.spaces import TRAPS, Point
from vfgym.codecs import ActionNotFound, codec_for
from vfgym.codecs.reading import Where
from vfgym.errors import ConfigurationError, InvalidAction


@pytest.mark.parametrize("text", TRAPS)
def test_texts_that_look_like_something_else_come_through(text: str) -> None:
    codec = codec_for(gs.Text(30, min_length=0, charset="".join({*"".join(TRAPS), *"0123456789abc\\"})))
    assert codec.decode(codec.encode(text)) == text
    assert codec.decode(f"<action>{codec.encode(text)}</action>") == text
    assert codec.from_json(codec.to_json(text)) == text


class Mission(gym.Space[str]):
    """A direct subclass whose members are strings, like MiniGrid's MissionSpace."""

    def __init__(self) -> None:
        super().__init__(dtype=str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return f"get the {self.np_random.choice(['red', 'blue'])} ball"

    def contains(self, x: Any) -> bool:
        return x in ("get the red ball", "get the blue ball")


def test_a_space_of_strings_is_read_as_text() -> None:
    space = Mission()
    codec = codec_for(space)
    assert codec.encode("get the red ball") == "get the red ball"
    assert codec.decode("<action>get the blue ball</action>") == "get the blue ball"
    assert codec.from_json(codec.to_json("get the red ball")) == "get the red ball"
    assert codec.decode(codec.example()) in space
    with pytest.raises(ActionNotFound, match="must be another text"):
        codec.decode("get the green ball")


def test_an_unknown_kind_is_read_by_its_own_json() -> None:
    codec = codec_for(gs.Tuple((Point(), gs.Discrete(2))))
    assert codec.encode((3 + 1j, np.int64(0))) == "[[3, 1], 0]"
    assert codec.decode("[[3, 1], 0]") == (3 + 1j, 0)
    assert codec.decode(codec.example()) in codec.space
    for text in ("[[3, 2], 0]", "[[3], [0]]", "[{}, 0]", "[null, 0]"):
        with pytest.raises(ActionNotFound):
            codec.decode(text)


def test_minigrids_missions_are_texts() -> None:
    mission = pytest.importorskip("minigrid.core.mission")
    space = mission.MissionSpace(lambda color: f"get the {color} ball", ordered_placeholders=[["red", "blue"]])
    codec = codec_for(space)
    assert codec.decode(codec.encode("get the red ball")) == "get the red ball"


WORDS = codec_for(gs.Text(12, min_length=2, charset=string.ascii_lowercase + " .>*'\"0123456789"))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        *(("open door", "open door"), ("> **open door.**", "open door"), ("'open door'", "open door"), ("wait. go.", "wait. go.")),
        *(("wait...", "wait..."), ("*'\"wait\"'*", "wait"), ("*", None), ("Wait", None), ("> > go", "go")),
    ],
)
def test_form_is_set_aside_where_the_rest_is_a_text_of_the_space(text: str, read: str | None) -> None:
    if read is None:
        with pytest.raises(ActionNotFound):
            WORDS.match(text, Where.MARK)
    else:
        assert WORDS.match(text, Where.MARK) == WORDS.match(text, Where.WHOLE_ANSWER) == read
    assert WORDS.match(text, Where.LAST_LINE) is None


def test_an_answer_of_several_lines_or_with_marks_is_no_text_as_a_whole() -> None:
    for answer in ("go\nstop", "action: go", "<action></action>"):
        assert WORDS.match(answer, Where.WHOLE_ANSWER) is None


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("x", 'must be a text of 2 to 12 characters, got "x", which has 1'),
        ("x" * 13, "which has 13"),
        ("Go", 'must be a text without the character "G", got "Go"'),
        (None, "must be a text, got null"),
        (1.5, "must be a text, got 1.5"),
        (True, "must be a text, got true"),
        (10**31, "must be a text, got 1000"),
    ],
)
def test_what_is_no_text_of_the_space_is_told(data: Any, problem: str) -> None:
    with pytest.raises(ActionNotFound, match=re.escape(problem)):
        WORDS.from_json(data)


def test_whole_numbers_are_texts_of_their_digits() -> None:
    assert WORDS.from_json(42) == "42"
    assert WORDS.read_exactly('"go"') == "go"
    assert [WORDS.read_exactly(text) for text in ("go", '"G"', '"go', '""')] == [None] * 4


@pytest.mark.parametrize("text", ["", " go", "go ", '"go"', "<action>", "Action: go", "go.", "'go'", "[THINK]", "a\nb"])
def test_a_text_that_would_be_read_as_something_else_is_written_as_a_json_string(text: str) -> None:
    codec = codec_for(gs.Text(20, min_length=0, charset=string.printable))
    assert codec.encode(text).startswith('"')
    assert codec.decode(codec.encode(text)) == text
    assert codec.encode("go") == "go"


@pytest.mark.parametrize(
    ("space", "listing"),
    [
        (gs.Text(3, min_length=3, charset="ab"), 'a text of 3 characters (any of "ab")'),
        (gs.Text(3, charset="abcdxyz"), 'a text of 1 to 3 characters (any of "a-dxyz")'),
        (gs.Text(3, charset=string.ascii_letters), "a text of 1 to 3 characters (letters)"),
        (gs.Text(3, charset=string.ascii_uppercase + "\n"), "a text of 1 to 3 characters (capital letters, line breaks)"),
        (gs.Text(3, charset="acegikmoqsuwy"), "a text of 1 to 3 characters"),
        (gs.Text(3, charset=" \t"), "a text of 1 to 3 characters (spaces)"),
    ],
    ids=str,
)
def test_length_and_characters_are_said_in_words(space: gs.Text, listing: str) -> None:
    assert codec_for(space).listing() == listing


@pytest.mark.parametrize(
    ("space", "example"),
    [
        (gs.Text(9), "look"),
        (gs.Text(5, min_length=5), "hello"),
        (gs.Text(9, charset="ab"), "ababa"),
        (gs.Text(9, min_length=7, charset="0a1"), "aaaaaaa"),
        (gs.Text(2, charset="01"), "01"),
    ],
    ids=str,
)
def test_the_example_is_a_short_text_of_the_space(space: gs.Text, example: str) -> None:
    assert codec_for(space).representative() == example
    assert example in space


def test_the_schema_bounds_length_and_characters() -> None:
    schema = codec_for(gs.Text(3, min_length=0, charset="ab]^-\U0001f600")).schema
    assert (schema["minLength"], schema["maxLength"]) == (0, 3)
    assert [bool(re.fullmatch(schema["pattern"], text)) for text in ("", "ab", "]^-", "\U0001f600", "c", "[")] == [True] * 4 + [False] * 2


@pytest.mark.parametrize(
    ("kind", "characters"),
    [
        *(("letters", string.ascii_letters), ("lower-case letters", string.ascii_lowercase), ("capital letters", string.ascii_uppercase)),
        *(("digits", string.digits), ("punctuation", string.punctuation), ("spaces", " "), ("line breaks", "\n")),
    ],
)
def test_each_kind_of_characters_has_its_name(kind: str, characters: str) -> None:
    assert codec_for(gs.Text(3, charset=characters)).listing() == f"a text of 1 to 3 characters ({kind})"
    if len(characters) > 1:
        assert f"({kind}" not in codec_for(gs.Text(3, charset=characters[:-1])).listing()


def test_twelve_runs_of_characters_are_listed() -> None:
    assert codec_for(gs.Text(3, charset="acegikmoqsuw")).listing().endswith('(any of "acegikmoqsuw")')
    assert codec_for(gs.Text(3, charset="abcefgh")).listing().endswith('(any of "abce-h")')


@pytest.mark.parametrize("pair", ["**", "__", "*", "_", "`", '"', "'", "\u201c\u201d", "\u2018\u2019", "\u00ab\u00bb", ">"])
def test_emphasis_and_quotes_are_set_aside_around_all_of_a_text_only(pair: str) -> None:
    opening, closing = (pair[0], pair[1]) if pair[0] != pair[-1] else (pair, "" if pair == ">" else pair)
    codec = codec_for(gs.Text(12, charset=string.ascii_lowercase + " "))
    assert codec.match(f"{opening}go on{closing}", Where.MARK) == "go on"
    assert codec.match(f"{opening * 2} go on {closing * 2}" if pair == ">" else f"{opening}go on{closing}.", Where.MARK) == "go on"
    if pair != ">":
        for text in (f"{opening}go{closing} {opening}on{closing}", f"go {opening}on{closing}"):
            if pair not in "\"'`":
                with pytest.raises(ActionNotFound, match="must be a text"):
                    codec.match(text, Where.MARK)


@pytest.mark.parametrize(("depth", "read"), [(6, True), (7, False)])
def test_six_forms_around_each_other_are_set_aside(depth: int, read: bool) -> None:
    signs = ["**", "__", "`", '"', "'", "\u201c\u201d", "\u00ab\u00bb"][:depth]
    text = "".join(sign[0] if sign[0] != sign[-1] else sign for sign in signs)
    text += "go" + "".join(sign[-1] if sign[0] != sign[-1] else sign for sign in reversed(signs))
    codec = codec_for(gs.Text(12, charset=string.ascii_lowercase))
    if read:
        assert codec.match(text, Where.MARK) == "go"
    else:
        with pytest.raises(ActionNotFound):
            codec.match(text, Where.MARK)


def test_numbers_of_thirty_digits_are_texts() -> None:
    codec = codec_for(gs.Text(40, charset="0123456789-"))
    assert [codec.from_json(number) for number in (0, -7, 10**30 - 1)] == ["0", "-7", "9" * 30]
    with pytest.raises(ActionNotFound, match="must be a text, got 1000"):
        codec.from_json(10**30)


@pytest.mark.parametrize(("space", "kind"), [(gs.Text(3), "whose actions are texts"), (Point(), "a space of an unknown kind")])
@pytest.mark.parametrize("names", [["a"], [], {}])
def test_names_are_refused(space: gym.Space[Any], kind: str, names: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^expected no names for .*, {kind}, got {re.escape(repr(names))}$"):
        codec_for(space, names)


@pytest.mark.parametrize("action", [None, 0, b"go", ["go"]])
def test_what_is_not_a_text_is_not_written(action: Any) -> None:
    with pytest.raises(InvalidAction, match=f"^expected a text for Text.*, got {type(action).__name__}$"):
        WORDS.to_json(action)
    assert type(WORDS.to_json(np.str_("go"))) is str


class Raising(gym.Space[Any]):
    """Raises what it was made with for all data but 0, of which it contains what is not None."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error
        super().__init__()

    def contains(self, x: Any) -> bool:
        return x is not None

    def from_jsonable(self, sample_n: list[Any]) -> list[Any]:
        if sample_n != [0]:
            raise self.error
        return [0]

    def to_jsonable(self, sample_n: Any) -> Any:
        return {"all": sample_n} if sample_n == [1] else list(sample_n)


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError])
def test_a_space_that_cannot_read_data_does_not_contain_it_and_other_errors_get_out(error: type[Exception]) -> None:
    codec = codec_for(Raising(error))
    assert codec.from_json(0) == 0
    with pytest.raises(RuntimeError if error is RuntimeError else ActionNotFound) as caught:
        codec.from_json(5)
    assert error is RuntimeError or "must be a member of" in str(caught.value)
    assert (codec.to_json(0), codec.to_json(1)) == (0, {"all": [1]})
