"""Draw the pictures of docs/view.md: a page of three runs of one game, and one of its rollouts, in a browser.

usage: python scripts/view_picture.py

It needs chromium and Playwright. What is drawn is a real page of agents that played the same game.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import vfgym
from vfgym.view import write_page

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PICTURES = {"view.png": ("#", 620), "view_rollout.png": ("#run=2&example=0&rollout=0&turn=4", 560)}
"""The file of each picture, its place in the page, and its height."""
_WAY = ["down", "down", "right", "right", "down", "right"]


def walker(care: float) -> Callable[[list[Any], dict[str, Any]], str]:
    """Return an agent that knows the way, and takes a step of it as often as it takes care."""
    chance = random.Random(0)

    def agent(observation: list[Any], info: dict[str, Any]) -> str:
        step = sum(message["role"] == "assistant" for message in observation)
        return _WAY[step % len(_WAY)] if chance.random() < care else chance.choice(["up", "down", "left", "right"])

    return agent


def write_runs_page(file: Path, num_examples: int = 20) -> Path:
    """Play the same tasks with three agents, and write the page of their runs."""
    env = vfgym.to_chat("FrozenLake-v1", is_slippery=False, observe="image")
    runs = [
        vfgym.evaluate(env, walker(care), num_examples=num_examples, rollouts_per_example=2, model=name, progress=False)
        for name, care in (("hasty", 0.5), ("hurried", 0.6), ("careful", 0.98))
    ]
    return write_page(file, *runs)


def draw(page: Path) -> None:
    """Take the pictures of a page."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (route, height) in PICTURES.items():
            tab = browser.new_page(viewport={"width": 1000, "height": height})
            tab.goto(page.as_uri() + route)
            tab.wait_for_selector("#title")
            IMAGES.mkdir(exist_ok=True)
            tab.screenshot(path=IMAGES / name)
            Image.open(IMAGES / name).quantize(64).save(IMAGES / name, optimize=True)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        draw(write_runs_page(Path(folder) / "page.html"))
