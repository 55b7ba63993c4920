"""A real browser for pages, without a network: Debian's ``chromium``, driven by Playwright."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = {"desktop": 1280, "phone": 390}


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """Start a browser; the test is skipped where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class OpenPage:
    """A page that is open, and what its browser complained of."""

    def __init__(self, browser: Any, file: Path, width: int = WIDTHS["desktop"]) -> None:
        self.problems: list[str] = []
        self.tab = browser.new_context(viewport={"width": width, "height": 900}, offline=True).new_page()
        self.tab.on("console", lambda message: self.problems.append(message.text))
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("request", lambda request: self.problems.append(request.url) if request.url.startswith("http") else None)
        self.tab.set_default_timeout(8000)
        self.tab.goto(file.as_uri())
        self.tab.wait_for_selector("#title")

    def go(self, route: str) -> None:
        """Open a link into the page."""
        changed = "new Promise(done => { addEventListener('hashchange', () => done(1), {once: true}); location.hash = route; })"
        self.tab.evaluate(f"route => location.hash === route || {changed}", route.removesuffix("#"))

    def open_details(self) -> None:
        """Open whatever is folded."""
        self.tab.evaluate("document.querySelectorAll('details').forEach(each => { each.make?.(); each.open = true; })")

    def text(self, selector: str = "main") -> str:
        """Return what can be read."""
        return str(self.tab.inner_text(selector))
