"""What is shown on the terminal."""

from __future__ import annotations

import base64
import io
import sys
import webbrowser
from pathlib import Path
from typing import Any

import pytest

from tests.view.runs import PIXEL
from vfgym.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from vfgym.play import Screen
from vfgym.play.screen import image_bytes, read_image

IMAGE = {"type": "image_url", "image_url": {"url": PIXEL}}
BYTES = base64.b64decode(PIXEL.partition(",")[2])


def test_boards_are_kept_and_sentences_broken_at_words(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "dumb")
    screen = Screen()
    board = "| a | b | c | d | e | f |\n+---+---+---+---+---+---+\n 1  2  3  4  5  6  7  8"
    screen.say(f"A sentence that is longer than that.\n{board}\x1b[2J")
    assert capsys.readouterr().out == f"A sentence that is\nlonger than that.\n{board}\\x1b[2J\n"
    screen.say_list(["col 1", "col 2", "col 3"], before="(", after=")")
    assert capsys.readouterr().out == "(col 1, col 2,\ncol 3)\n"


@pytest.fixture
def simple(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setenv("TERM", "dumb")
    return Screen()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def coloured(monkeypatch: pytest.MonkeyPatch) -> tuple[Screen, Terminal]:
    for name, value in {"COLUMNS": "20", "TERM": "xterm-256color", "COLORTERM": "truecolor"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    return Screen(), sys.stdout  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("-" * 30, "-" * 20),
        ("  Two words that also are so.", "  Two words that\n  also are so."),
        ("exactly twenty chars", "exactly twenty chars"),
        ("#.#.#.#.#.#.#.#.#.#.#.", "#.#.#.#.#.#.#.#.#.#.#."),
        ("one  two  three  four  five", "one  two  three  four  five"),
    ],
)
def test_lines_are_broken_where_they_are_sentences(text: str, shown: str, simple: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    simple.say(text)
    assert capsys.readouterr().out == shown + "\n"


def test_messages_are_shown_below_who_says_them(simple: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    simple.show(
        [
            SystemMessage("Win."),
            UserMessage([{"type": "text", "text": "Look:"}, IMAGE]),
            AssistantMessage("a", tool_calls=[ToolCall("c", "f", "{}")]),
            ToolMessage("done", tool_call_id="c"),
            UserMessage([{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]),
        ]
    )
    assert capsys.readouterr().out.split("\n\n") == [
        *("[system]\nWin.", "Look:\n[image 1x1] (/open\nshows it in a\nviewer)", "[assistant]\na f({})", "[tool]\ndone", "[image]", ""),
    ]


def test_a_screen_is_cleared_with_its_history(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, terminal = coloured(monkeypatch)
    screen.clear()
    assert (screen.is_simple, terminal.getvalue()) == (False, "\x1b[2J\x1b[H\x1b[3J")


def test_a_simple_screen_is_moved_out_of_sight(simple: Screen, capsys: pytest.CaptureFixture[str]) -> None:
    simple.clear()
    assert (simple.is_simple, simple.width, capsys.readouterr().out) == (True, 20, "\n" * 6)


@pytest.mark.parametrize(
    ("size", "drawn"),
    [
        ((2, 2), ["\x1b[38;2;255;0;0;48;2;0;0;255m▀\x1b[0m" * 2]),
        ((38, 80), [f"\x1b[38;2;{both};48;2;{both}m▀\x1b[0m" * 19 for both in ["255;0;0"] * 10 + ["0;0;255"] * 10]),
    ],
)
def test_images_are_drawn_in_half_blocks_where_there_are_colours(
    size: tuple[int, int], drawn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pil = pytest.importorskip("PIL.Image")
    image, data = pil.new("RGB", size, (255, 0, 0)), io.BytesIO()
    image.paste((0, 0, 255), (0, size[1] // 2, *size))
    image.save(data, "PNG")
    screen, terminal = coloured(monkeypatch)
    url = f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"
    screen.show([UserMessage([{"type": "image_url", "image_url": {"url": url}}])])
    *lines, image_line, _, _, _ = terminal.getvalue().splitlines()
    assert image_line == f"[image {size[0]}x{size[1]}] (/open"
    if len(drawn) > 1:  # what lies at the edge is mixed
        lines[9:11] = drawn[9:11]
    assert lines == drawn


@pytest.mark.parametrize("opens", [True, False])
def test_images_are_opened_in_a_viewer(opens: bool, simple: Screen, capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or opens)
    monkeypatch.setattr("tempfile.mkdtemp", lambda prefix: str(tmp_path))
    simple.open_images(
        [UserMessage("text"), AssistantMessage(None), UserMessage([IMAGE, {"type": "text", "text": "x"}]), UserMessage([IMAGE])]
    )
    files = [tmp_path / f"image{number}.png" for number in (1, 2)]
    assert (opened, [file.read_bytes() for file in files]) == ([file.as_uri() for file in files], [BYTES] * 2)
    said = "opened" if opens else "no viewer was found; the image is"
    assert capsys.readouterr().out == "".join(f"({said} {file})\n" for file in files)
    simple.open_images([UserMessage("text")])
    assert capsys.readouterr().out == "(there are no images\nin what you were\nshown last)\n"


@pytest.mark.parametrize(
    ("part", "data"),
    [
        (IMAGE, BYTES),
        ({"type": "text", "text": "x"}, None),
        ({"type": "image_url"}, None),
        ({"type": "image_url", "image_url": {"url": "https://x/y.png"}}, None),
        ({"type": "image_url", "image_url": {"url": "data:image/png,xx"}}, None),
        ({"type": "image_url", "image_url": {"url": "data:text/plain;base64,eHg="}}, None),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}, None),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,eHg="}}, b"xx"),
    ],
)
def test_the_bytes_of_an_image(part: dict[str, Any], data: bytes | None) -> None:
    assert image_bytes(part) == data
    image = read_image(part)
    assert (image is None) == (data != BYTES)


def test_lines_are_read_beside_standard_output_where_that_is_for_programs(
    simple: Screen, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo"))
    assert (simple.ask("\x1b> "), capsys.readouterr()) == ("one", ("\\x1b> ", ""))
    apart = Screen(to_stderr=True)
    assert (apart.ask("? "), capsys.readouterr()) == ("two", ("", "? "))
    for screen in (simple, apart):
        with pytest.raises(EOFError):
            screen.ask("> ")
    capsys.readouterr()
    apart.say("said")
    apart.say_as_is("a path that is longer than a line is")
    assert capsys.readouterr() == ("", "said\na path that is longer than a line is\n")
