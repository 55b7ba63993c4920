"""`Screen`: what a player sees, and where lines are read. All text goes through `vfgym.output.terminal`."""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.text import Text

from vfgym.envs.seat import transcript
from vfgym.messages import Message
from vfgym.output.terminal import display_text, echo

_MOST_COLUMNS, _MOST_LINES = 80, 30
"""How large an image is drawn at most, in characters."""

_CLEAR_HISTORY = "\x1b[3J"
"""What clears the lines that have left a terminal at its top."""

_FIRM_SPACE = "\ue000"
"""Stands for a space at which no line is broken. It is a character that no text has, and not U+00A0, at which Rich breaks lines."""

_GAP = re.compile(r"(?<=\S)\s+(?=\S)")
"""What stands between two words."""


class Screen:
    """A terminal, or what stands in for one in tests.

    Attributes:
        is_simple: Whether lines are read and written as they are, without colours, images and editing: where TERM says so.
    """

    def __init__(self, *, to_stderr: bool = False) -> None:
        """Show on standard output, or on standard error where standard output is for programs."""
        self._to_stderr = to_stderr
        self._console = Console(stderr=to_stderr, highlight=False, markup=False)
        self.is_simple = os.environ.get("TERM", "") in ("", "dumb", "unknown") or not self._console.is_terminal
        if not self.is_simple and not to_stderr:
            _edit_lines()

    @property
    def width(self) -> int:
        """Characters that a line has room for."""
        return self._console.width

    def ask(self, prompt: str) -> str:
        """Show a prompt and return the line that is typed.

        Raises:
            EOFError: If the input ends (Ctrl-D).
            KeyboardInterrupt: At Ctrl-C.
        """
        if not self._to_stderr:
            return input(display_text(prompt))
        echo(prompt, end="", to_stderr=True, flush=True)  # `input` would write it to standard output
        line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.removesuffix("\n")

    def say(self, text: str = "") -> None:
        """Show text. Sentences are broken at words where they are longer than a line; boards and tables are left as they are.

        A sentence is a line that has letters or digits for half of its characters, and single spaces for half of its gaps.
        """
        for line in text.split("\n"):
            echo(*self._wrap(line), to_stderr=self._to_stderr)

    def say_as_is(self, text: str) -> None:
        """Show text that is copied as a whole, such as a path: it is not broken at words."""
        echo(text, to_stderr=self._to_stderr)

    def say_list(self, items: Sequence[str], *, before: str = "", after: str = "") -> None:
        """Show items with commas between them. No item is broken that fits into a line."""
        self.say(before + ", ".join(item.replace(" ", _FIRM_SPACE) for item in items) + after)

    def _wrap(self, line: str) -> Sequence[str]:
        shown = display_text(line)
        if cell_len(shown) > self.width and len({*shown.strip()}) == 1:  # it only divides what is above from what is below
            return [shown[: self.width]]
        if cell_len(shown) <= self.width or not _is_sentence(shown):
            return [shown.replace(_FIRM_SPACE, " ")]
        indent = len(shown) - len(shown.lstrip())
        lines = Text(shown.strip()).wrap(self._console, max(self.width - indent, 10))
        return ["\n".join(" " * indent + str(part).rstrip() for part in lines).replace(_FIRM_SPACE, " ")]

    def clear(self) -> None:
        """Clear the screen, with what can be scrolled back to; where it is simple, move it out of sight."""
        if self.is_simple:
            self.say("\n" * self._console.height)
            return
        self._console.clear()
        self._console.file.write(_CLEAR_HISTORY)
        self._console.file.flush()

    def show(self, messages: Sequence[Message]) -> None:
        """Show messages: what the environment says as it is, others below who says them."""
        for message in messages:
            if message["role"] != "user":
                self.say(f"[{message['role']}]")
            self._show_content(message)
            self.say()

    def _show_content(self, message: Message) -> None:
        content = message["content"]
        if isinstance(content, str) or message["role"] == "assistant":
            self.say(transcript([message]).removeprefix(f"[{message['role']}] "))
            return
        for part in content or ():
            if "text" in part:
                self.say(str(part["text"]))
            else:
                self._show_part(message, part)

    def _show_part(self, message: Message, part: Any) -> None:
        image = None if self.is_simple or self._console.color_system is None else read_image(part)
        if image is not None:
            self._draw(image)
        alone = message.of_fields({**message, "content": [part]})
        self.say(transcript([alone]).removeprefix(f"[{message['role']}] ") + (" (/open shows it in a viewer)" if image_bytes(part) else ""))

    def _draw(self, image: Any) -> None:
        """Draw an image in half blocks: two pixels a character, one above the other."""
        scale = min(1.0, min(self.width - 1, _MOST_COLUMNS) / image.width, 2 * _MOST_LINES / image.height)
        columns, rows = max(1, round(image.width * scale)), max(1, round(image.height * scale / 2))
        pixels = image.resize((columns, 2 * rows)).load()
        for row in range(rows):
            line = Text()
            for column in range(columns):
                upper, lower = (_colour(pixels[column, 2 * row + half]) for half in (0, 1))
                line.append("▀", Style(color=upper, bgcolor=lower))
            self._console.print(line, soft_wrap=True)

    def open_images(self, messages: Sequence[Message]) -> None:
        """Open the images of messages in a viewer, and say where they are."""
        contents = [message["content"] for message in messages]
        parts = [part for content in contents if not isinstance(content, str) for part in content or ()]
        found = [data for data in map(image_bytes, parts) if data is not None]
        if not found:
            self.say("(there are no images in what you were shown last)")
            return
        folder = Path(tempfile.mkdtemp(prefix="vfgym-play-"))
        for number, data in enumerate(found, start=1):
            file = folder / f"image{number}.png"
            file.write_bytes(data)
            is_open = webbrowser.open(file.as_uri())
            self.say_as_is(f"({'opened' if is_open else 'no viewer was found; the image is'} {file})")


def _is_sentence(line: str) -> bool:
    """Say whether a line is text rather than a part of a board or a table."""
    visible = [character for character in line if not character.isspace()]
    gaps = _GAP.findall(line)
    return 2 * sum(map(str.isalnum, visible)) >= len(visible) and 2 * gaps.count(" ") >= len(gaps)


def image_bytes(part: Any) -> bytes | None:
    """Return the bytes of an image that a content part holds itself; None for other parts and images elsewhere."""
    url = part.get("image_url") if part.get("type") == "image_url" else None
    address = url.get("url") if url is not None else None
    if not isinstance(address, str) or not address.startswith("data:image/") or ";base64," not in address:
        return None
    try:
        return base64.b64decode(address.partition(";base64,")[2], validate=True)
    except (binascii.Error, ValueError):
        return None


def read_image(part: Any) -> Any:
    """Return the image of a content part, in colours; None where there is none, or nothing to read it with."""
    data = image_bytes(part)
    if data is None:
        return None
    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        return Image.open(io.BytesIO(data)).convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError):  # not an image that can be read
        return None


def _colour(pixel: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*pixel)


def _edit_lines() -> None:
    """Let `input` edit lines and remember them, where Python can."""
    try:
        import readline  # noqa: F401 -- `input` uses it as soon as it is imported
    except ImportError:  # Windows, where the console edits lines itself
        pass
