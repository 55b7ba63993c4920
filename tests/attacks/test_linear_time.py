"""Whoever reads, parses, hides or writes text that others wrote takes time in proportion to its length.

Degenerate models write 40,000 line ends, unclosed fences or one word a thousand times, and files and servers may do so on purpose. No test
here looks at a clock; every reader that `readers` collects is looked at in two ways:

- the steps of Python and of the matcher of regular expressions are counted (`steps`), for texts (`texts`) of four lengths (`sweep`);
- every regular expression of the packages is analysed (`patterns`), since some of its loops are seen by no count inside of Python.

Copies of a whole text inside of a loop are seen by the bytes that C moves, which the exhaustive family counts beside the steps,
and by the form of the loop (`loops`), as are searches that begin at the beginning each time.

In the quick suite each reader gets a fixed share of the texts, and more of those with which readers were slow once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest

from tests.attacks import sweep
from tests.attacks.collect_patterns import Use, patterns
from tests.attacks.loops import wasteful_in, wasteful_loops
from tests.attacks.patterns import superlinear_part
from tests.attacks.readers import AWKWARD_SECRETS, LEFT_OUT, readers, uncollected
from tests.attacks.steps import count_steps
from vfgym.clients.faults import OVERLONG_RULES, says_overlong
from vfgym.codecs import ActionNotFound, codec_for
from vfgym.codecs.data import quote_data
from vfgym.codecs.observations import value_text
from vfgym.codecs.reading import LONGEST_TAIL
from vfgym.interception.wire import plain_data
from vfgym.messages import as_message
from vfgym.output import redaction
from vfgym.results.plain_json import NotPlain, as_json, json_text, line_of
from vfgym.tools.json_numbers import no_json_numbers
from vfgym.tools.results import compact_json
from vfgym.view.page import build_page

ONCE_SLOW = (
    *("'\\n' repeated", "' ' repeated, then x", "'\\\\' repeated", "'?' repeated", "'9' repeated, then x", "'```a\\n' repeated"),
    *("'\\x1b[1m' repeated", "'*' repeated", "'[]' repeated", "'+/ ' repeated"),
)
"""Texts for which readers took quadratic time."""

QUICK_SHARE, QUICK_SHARE_ONCE_SLOW = 2000, 12
"""One in so many texts is read by a reader in the quick suite."""


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process know some secrets that are hard to look for, and nothing be logged."""
    redaction._forget_all()
    for secret in AWKWARD_SECRETS:
        redaction.Secret(secret)
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)


def test_every_reader_takes_part() -> None:
    """A new codec, parser or function of a room is read with by rule, or somebody says why not."""
    assert uncollected() == []
    assert not LEFT_OUT.keys() & readers().keys()
    assert set(ONCE_SLOW) <= sweep.texts_of(250).keys()


@pytest.mark.parametrize("name", readers())
def test_steps_grow_as_the_text_does(name: str) -> None:
    shares = {text: QUICK_SHARE_ONCE_SLOW if text in ONCE_SLOW else QUICK_SHARE for text in sweep.texts_of(250)}
    chosen = [text for text, share in shares.items() if sweep.in_share(name, text, share)]
    assert list(sweep.slow_texts(readers()[name], chosen)) == []


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sweep.Sweep]:
    reading = sweep.Sweep(tmp_path_factory.mktemp("counted"), ONCE_SLOW)
    yield reading
    reading.close()


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", readers())
def test_steps_and_bytes_grow_as_every_text_does(name: str, reading: sweep.Sweep) -> None:
    """Copies are looked for where a C compiler and the GNU libc are, and the test says so elsewhere."""
    found = reading.read_all(name)
    assert found["problems"] == []
    if not found["sees_copies"]:
        pytest.skip("steps grow as texts do; bytes are not counted here, which takes `cc` and the GNU libc")


def test_no_loop_copies_or_searches_a_whole_text_each_time() -> None:
    assert [found for found in wasteful_loops() if not any(found.startswith(known) for known in NOT_WASTEFUL)] == []


NOT_WASTEFUL = {
    "vfgym/model_server/generation.py: text.find(": "for each text that ends an answer, of which there are 64 at most",
    "vfgym/wrappers/games/turns.py: limits.count(": "counts the tokens of what a game says at its beginning, which is kept",
}
"""Loops that search a whole text, or seem to, and why they take linear time."""

WASTEFUL = (
    *("while text: text = text[1:]", "while text: text = text[:-1]", "for each in y: text = text[each:]"),
    *("while text.startswith(x): text = text.removeprefix(x)", "while text.endswith(x): text = text.removesuffix(x)"),
    *("for each in range(len(text)): text = text.removesuffix(x)", "for each in [*y, x]: text = text.removesuffix(each)"),
    *("for each in range(2):\n    while text: text = text[1:]", "while items: items.pop(0)", "for each in y: items.insert(0, each)"),
    *("for each in y: text.find('a')", "while text.count('a'): pass", "[text.split(each) for each in y]"),
    "for each in y:\n    if x: text.partition(each)",
)
NOT_IN_VAIN = (
    *("rest = memoryview(data)\nwhile rest: rest = rest[1:]", "while (at := text.find('a', at)) >= 0: pass"),
    *("for line in y: line.split(',')", "text = text[1:]", "for each in range(5): text = text.removeprefix(x)"),
    *("for each in ('a', x): text = text.removesuffix(each)", "for each in y: each.removesuffix(x)"),
    "for each in y: os.replace(each, each)",
)


@pytest.mark.parametrize("code", WASTEFUL)
def test_loops_that_copy_or_search_a_whole_text_are_found(code: str) -> None:
    assert wasteful_in("def read(text, items, y, at, data, x):\n" + textwrap.indent(code, "    "))


@pytest.mark.parametrize("code", NOT_IN_VAIN)
def test_loops_that_do_not_are_let_pass(code: str) -> None:
    assert not wasteful_in("import os\ndef read(text, items, y, at, data, x):\n" + textwrap.indent(code, "    "))


@pytest.mark.exhaustive
def test_the_count_of_bytes_sees_copies(tmp_path: Path) -> None:
    """Of the rest of a text, of a list whose first item goes, and of a text that grows in an attribute; linear readers move little."""
    library = sweep.compiled(tmp_path)
    if library is None:
        pytest.skip("bytes are not counted here, which takes `cc` and the GNU libc")
    told = subprocess.run(
        [sys.executable, "-m", sweep.__name__, "look"],
        env={**os.environ, "LD_PRELOAD": str(library)},
        cwd=sweep.ROOT,
        check=True,
        capture_output=True,
    )
    assert json.loads(told.stdout) == {"consume": True, "pop": True, "grow": True, "split": False, "join": False}


BAD = {
    r"a*b": "a search begins at each a",
    r"\s*\Z": "a search begins at each white space",
    r"^[\s`*]*x": "white space goes over the ends of lines, at which ^ begins again",
    r"```(.*?)```": "a search begins at each fence that is not closed",
    r"(?<=[?&;])([^=&;#\s]*=)[^&;#\s]+": "the name of a parameter may have question marks",
    r"<tool_call>\s*(\{.*?\})\s*</tool_call>": "a search begins at each opening tag",
    r"(?:\s*(?:<\|[^|<>\n]{1,40}\|>|</s>))+\s*\Z": "white space may be a part of the next repeat",
    r"a(?:.*b)?": "it goes on to the end, and matches one letter",
}
BAD_FROM_THE_BEGINNING = {
    r"(a*)*b": "repeats in repeats",
    r"(?:a|a)*b": "alternatives that overlap",
    r"(?:aa?)*b": "one may be two",
    r"a+a+b": "repeats of the same beside each other",
    r"\d+\.?\d*x": "digits before or after a point that may be missing",
    r"(?:\s*(\D.*))x": "white space is no digit",
}
GOOD = (r"\Aa*b", r"x(a*)y", r"(?<!\s)\s*+\Z", r"```(.*?)(?:```|\Z)", r"\[([^\[\]\n]*)\]", r"(?<=://)[^\s/]+@", r"^[ \t]*+x", r"a++")
GOOD_FROM_THE_BEGINNING = (r"a*b", r"a++ab", r"(a|b)*+c", r"\d++(?:\.\d*+)?x", r"(.*\S)\s*\(([^()]*)\)")


@pytest.mark.parametrize("pattern", [*BAD, *BAD_FROM_THE_BEGINNING])
def test_the_analysis_finds_what_takes_quadratic_time(pattern: str) -> None:
    assert superlinear_part(re.compile(pattern, re.DOTALL | re.MULTILINE), is_searched=pattern in BAD)


@pytest.mark.parametrize("pattern", [*GOOD, *GOOD_FROM_THE_BEGINNING])
def test_the_analysis_lets_pass_what_takes_linear_time(pattern: str) -> None:
    assert superlinear_part(re.compile(pattern, re.DOTALL | re.MULTILINE), is_searched=pattern in GOOD) is None


def test_the_count_of_steps_sees_the_matcher_and_python() -> None:
    slow = re.compile(r"\s*\Z")
    assert count_steps(lambda: slow.search(" " * 10_000 + "x")) > 50 * count_steps(lambda: slow.search(" " * 1_000 + "x"))
    assert count_steps(lambda: [each for each in range(10_000)]) >= 10_000


NOT_OF_OTHERS = {
    "vfgym.wrappers.gymnasium.docstrings": "reads the docstrings of installed games, once",
    "vfgym.wrappers.pettingzoo.rules": "reads the docstrings of installed games, once",
    "vfgym.envs.harbor_tasks": "reads the settings of a task, which are run as programs",
    "verifiers_compat.cli.packages.targets": "reads an argument of the command line",
    "verifiers_compat.v1.config_base": "reads annotations of the author's classes",
    "vfgym.view.public_text._ABSOLUTE_PATH": "matches what only looks like folders too, so it does not begin again inside of it",
}
"""Modules and patterns that are not asked to be linear, and why; the last one is, which the steps show."""


def foreign_patterns() -> list[Use]:
    found = [use for use in patterns() if not any(use.place.startswith(place) for place in NOT_OF_OTHERS)]
    rules = [re.compile(rule.pattern, re.IGNORECASE) for rule in OVERLONG_RULES]
    return [*found, *(Use(f"overlong: {rule.pattern}", rule, True, False) for rule in rules)]


def test_no_pattern_takes_more_than_linear_time() -> None:
    found = {use.place: superlinear_part(use.pattern, is_searched=use.is_searched, is_full=use.is_full) for use in foreign_patterns()}
    assert {place: problem for place, problem in found.items() if problem} == {}


@pytest.mark.parametrize("secret", AWKWARD_SECRETS)
def test_no_pattern_of_a_secret_takes_more_than_linear_time(secret: str) -> None:
    assert superlinear_part(redaction._pattern(secret[:5], is_searched=True)) is None


def nested(depth: int, kind: str) -> Any:
    """Return a value inside so many lists, objects, or both by turns."""
    value: Any = 1
    for level in range(depth):
        value = [value] if kind == "lists" or (kind == "both" and level % 2) else {"a": value}
    return value


def _raise_with(data: Any) -> None:
    error = ValueError("no")
    error.body = data  # type: ignore[attr-defined]
    redaction.redact_error(error)


def _page_with(data: Any) -> None:
    row = {"example_id": 0, "prompt": [], "completion": [], "reward": 1.0, "metrics": {}, "info": data, "error": None}
    outputs: Any = {"outputs": [row], "metadata": {"env_args": data}}
    build_page(outputs)


_EXPRESSION = {
    "anyOf": [{"type": "object", "properties": {"a": {"$ref": "#/$defs/E"}}}] * 3 + [{"type": "array", "items": {"$ref": "#/$defs/E"}}]
}
_EXPRESSIONS = {"type": "object", "properties": {"a": {"$ref": "#/$defs/E"}}, "$defs": {"E": _EXPRESSION}}

OF_DATA: dict[str, Any] = {
    "redact_data": redaction.redact_data,
    "with_secrets": redaction.with_secrets,
    "redact_error": _raise_with,
    "excerpt": lambda data: redaction.excerpt(data, 300),
    "quote_data": quote_data,
    "value_text": value_text,
    "compact_json": compact_json,
    "no_json_numbers": lambda data: no_json_numbers({"a": data}, _EXPRESSIONS),
    "no_json_numbers in anything": lambda data: no_json_numbers({"a": data}, {"type": "object"}),
    "plain_data": plain_data,
    "as_json": lambda data: as_json(data, repr),
    "json_text": json_text,
    "line_of": lambda data: line_of({"a": data, "b": object()}, []),
    "as_message": lambda data: as_message({"role": "user", "content": "a", "extra": data}),
    "build_page": _page_with,
    "says_overlong": lambda data: says_overlong(400, "no", data),
    "codec": codec_for(gym.spaces.Dict(a=gym.spaces.Discrete(3))).from_json,
    "codec of an array": codec_for(gym.spaces.Box(0, 1, (2,))).from_json,
}


@pytest.mark.parametrize("kind", ["lists", "objects", "both"])
@pytest.mark.parametrize("name", OF_DATA)
def test_data_that_are_nested_deeply_are_refused_or_cut(name: str, kind: str) -> None:
    """JSON may be nested a thousand levels deep: whoever goes through it says so, or shows the upper levels, and no stack ends."""
    for depth in (60, 150, 450, 800):
        with contextlib.suppress(ValueError, NotPlain):
            OF_DATA[name](nested(depth, kind))


def test_unions_that_hold_themselves_are_looked_through_once() -> None:
    few, many = (count_steps(lambda depth=depth: OF_DATA["no_json_numbers"](nested(depth, "objects"))) for depth in (9, 90))
    assert many < sweep.MOST_GROWTH * few


def test_long_chains_of_errors_are_gone_through() -> None:
    error = ValueError("api_key=sk-0123456789abcdef")
    for number in range(3 * sys.getrecursionlimit()):
        error, error.__context__ = ValueError(str(number)), error
    redaction.redact_error(error)


def test_answers_are_read_from_their_end() -> None:
    """What stands before the last `LONGEST_TAIL` characters is not looked at, thinking aside; actions that are long count as a whole."""
    codec = codec_for(gym.spaces.Discrete(4))
    assert codec.decode(f"<action>1</action>{' a' * LONGEST_TAIL}\n<action>2</action>") == 2
    assert codec.decode(f"<think>{'a ' * LONGEST_TAIL}</think><action>1</action>") == 1
    with pytest.raises(ActionNotFound):
        codec.decode(f"<action>1</action>{' a' * LONGEST_TAIL}")
    with pytest.raises(ActionNotFound):
        codec.decode("<think>" + "a " * LONGEST_TAIL)
    long = codec_for(gym.spaces.MultiBinary(LONGEST_TAIL))
    written = long.encode(long.representative())
    assert len(written) > LONGEST_TAIL
    assert (long.decode(f"I press them all. <action>{written}</action>") == long.representative()).all()
