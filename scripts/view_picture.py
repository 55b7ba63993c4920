"""Draw the picture of docs/view.md: a page of two runs of one game, in a browser.

usage: python scripts/view_picture.py

It needs chromium and Playwright. What is drawn is a real page of two agents that played the same game.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import vfgym
from vfgym.view import write_page

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "view.png"
ROUTE = "#run=0&example=0&rollout=0&turn=2"


def write_runs_page(file: Path) -> Path:
    """Play the same tasks with two agents, and write the page of both runs."""
    env = vfgym.to_chat("FrozenLake-v1", is_slippery=False, observe="image")
    runs = [
        vfgym.evaluate(env, agent, num_examples=4, rollouts_per_example=2, state_columns=["trajectory"], model=name, progress=False)
        for name, agent in (("down", lambda observation, info: "down"), ("random", "random"))
    ]
    return write_page(file, *runs)


def draw(page: Path, picture: Path) -> None:
    """Take the picture of a page."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1100, "height": 860})
        tab.goto(page.as_uri() + ROUTE)
        tab.wait_for_selector("article")
        picture.parent.mkdir(exist_ok=True)
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        draw(write_runs_page(Path(folder) / "page.html"), PICTURE)
