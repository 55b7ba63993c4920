"""Draw the README's picture: one game as a conversation in text, by tool calls, and with images.

``python scripts/readme_picture.py`` plays the three episodes and writes ``docs/images/three_faces.png``. All that stands in the bubbles
was said in them; "…" marks what is left out. Needs the extras ``classic``, ``images`` and ``plot``.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vfgym
from vfgym import AssistantMessage, ToolCall
from vfgym.messages import Message
from vfgym.wrappers.games.images import Frame, frame_of

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "three_faces.png"

GAME = "FrozenLake-v1"
GAME_OPTIONS: Mapping[str, Any] = {"is_slippery": False}
FACES: Mapping[str, Mapping[str, Any]] = {
    "text, the default": {},
    "as_tool=True": {"as_tool": True},
    'observe="image"': {"observe": "image"},
}
"""What each panel is called, and the options of `vfgym.to_chat` that it shows."""

WAY = ("down", "down", "right", "right", "down", "right")
"""The moves that lead to the goal."""

LEFT_OUT = "…"


@dataclass(frozen=True)
class Bubble:
    """Something that was said."""

    role: str
    parts: tuple[str | Frame, ...]
    """Paragraphs and images, in order."""


@dataclass(frozen=True)
class Panel:
    """An episode: what was said at its beginning and at its end."""

    title: str
    beginning: Bubble
    moves_left_out: int
    end: tuple[Bubble, ...]
    reward: float
    """What the last move was rewarded with."""


def panels() -> list[Panel]:
    """Play an episode for each face of the game, and return what is drawn of it."""
    return [played(title, options) for title, options in FACES.items()]


def played(title: str, options: Mapping[str, Any]) -> Panel:
    """Play one episode along `WAY`."""
    env = vfgym.to_chat(GAME, **GAME_OPTIONS, **options)
    observation, _ = env.reset(seed=0)
    beginning = said(observation[-1])
    reward, is_over = 0.0, False
    for move in WAY:
        answer: Any = f"I go {move}. <action>{move}</action>"
        if options.get("as_tool"):
            answer = AssistantMessage(None, tool_calls=[ToolCall("call_1", "act", f'{{"action": "{move}"}}')])
        observation, reward, is_over, _, _ = env.step(answer)
    env.close()
    if not is_over:
        raise RuntimeError(f"{GAME} has changed: {', '.join(WAY)} leads to the goal no more")
    return Panel(title, shortened(beginning), len(WAY) - 1, (said(observation[-2]), said(observation[-1])), float(reward))


def said(message: Message) -> Bubble:
    """Return what a message says."""
    content = message["content"] or []
    parts: list[str | Frame] = []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        parts += [frame_of(part)] if part["type"] == "image_url" else part["text"].split("\n\n")
    parts += [f"{call.name}({call.arguments})" for call in message.get("tool_calls") or ()]
    return Bubble(message["role"], tuple(parts))


def shortened(prompt: Bubble) -> Bubble:
    """Leave out the rules: the first paragraph stays, and what stands from the actions on."""
    actions = next(place for place, part in enumerate(prompt.parts) if isinstance(part, str) and part.startswith("Actions:"))
    return Bubble(prompt.role, (prompt.parts[0], LEFT_OUT, *prompt.parts[actions:]))


# How it is drawn. Lengths are pixels.

WIDTH, MARGIN, GAP, INSET = 1200, 18, 14, 12
LINE, PARAGRAPH, FONT, IMAGE = 20, 10, 10.6, 140
MONOSPACE = "DejaVu Sans Mono"  # which comes with Matplotlib
COLUMNS = 39
"""Characters in a line of a bubble."""
COLOURS = {"user": ("#eef3fb", "#3d62a8"), "assistant": ("#e9f6ec", "#2c7a44"), "tool": ("#fdf3e1", "#a2691b")}
"""The colours of a bubble and of its label, by the role of who speaks."""


def lines_of(paragraph: str) -> list[str]:
    """Return a paragraph in lines that fit into a bubble."""
    return [part for line in paragraph.split("\n") for part in textwrap.wrap(line, COLUMNS) or [""]]


def height_of(bubble: Bubble) -> int:
    """Return the height that a bubble needs."""
    heights = [LINE * len(lines_of(part)) if isinstance(part, str) else IMAGE for part in bubble.parts]
    return sum(heights) + PARAGRAPH * (len(heights) - 1) + LINE + 2 * INSET


def draw(drawn: list[Panel], file: Path) -> None:
    """Draw panels side by side into a PNG file, with what corresponds in rows."""
    from matplotlib.figure import Figure

    width = (WIDTH - MARGIN * (len(drawn) + 1)) // len(drawn)
    rows = [max(map(height_of, row)) for row in zip(*((panel.beginning, *panel.end) for panel in drawn), strict=True)]
    top = MARGIN + 3 * LINE
    height = top + sum(rows) + len(rows) * GAP + 2 * LINE + MARGIN
    figure = Figure(figsize=(WIDTH / 100, height / 100), dpi=100, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    call = ", ".join([f'"{GAME}"', *(f"{name}={value}" for name, value in GAME_OPTIONS.items()), LEFT_OUT])
    axes.text(MARGIN, MARGIN, f"vfgym.to_chat({call})", family=MONOSPACE, size=12.5, weight="bold", va="top", color="#222222")
    for number, panel in enumerate(drawn):
        draw_panel(axes, panel, rows, left=MARGIN + number * (width + MARGIN), top=top, width=width)
    axes.set(xlim=(0, WIDTH), ylim=(height, 0), aspect="auto")  # after the images, which set their own
    figure.savefig(file, metadata={"Software": None})


def draw_panel(axes: Any, panel: Panel, rows: list[int], *, left: int, top: int, width: int) -> None:
    """Draw one panel: its bubbles from the top down, and its reward below them."""
    axes.text(left + 2, top - 6, panel.title, family=MONOSPACE, size=11.5, color="#444444", va="bottom")
    centred = {"ha": "center", "va": "center"}
    for number, (bubble, height) in enumerate(zip((panel.beginning, *panel.end), rows, strict=True)):
        draw_bubble(axes, bubble, left=left, top=top, width=width, height=height)
        top += height + GAP
        if number == 0:
            text = f"{LEFT_OUT} {panel.moves_left_out} moves {LEFT_OUT}"
            axes.text(left + width / 2, top + LINE / 2 - GAP / 2, text, size=FONT, color="#888888", **centred)
            top += LINE
    axes.text(left + width / 2, top + LINE, f"reward {panel.reward}", size=12.5, weight="bold", color="#222222", **centred)


def draw_bubble(axes: Any, bubble: Bubble, *, left: int, top: int, width: int, height: int) -> None:
    """Draw one bubble, its role above what it says."""
    from matplotlib.patches import FancyBboxPatch

    fill, ink = COLOURS[bubble.role]
    shape = "round,pad=0,rounding_size=10"
    axes.add_patch(FancyBboxPatch((left, top), width, height, boxstyle=shape, facecolor=fill, edgecolor=ink, linewidth=0.8))
    left, top = left + INSET, top + INSET
    axes.text(left, top - 2, bubble.role, size=9.5, weight="bold", color=ink, va="top")
    top += LINE
    for part in bubble.parts:
        if isinstance(part, str):
            for line in lines_of(part):
                axes.text(left, top, line, family=MONOSPACE, size=FONT, color="#1b1b1b", va="top")
                top += LINE
        else:
            frame_height, frame_width = part.shape[:2]
            axes.imshow(part, extent=(left, left + IMAGE * frame_width / frame_height, top + IMAGE, top), zorder=3)
            top += IMAGE
        top += PARAGRAPH


if __name__ == "__main__":
    draw(panels(), Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
