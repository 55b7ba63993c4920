"""Pages in a real browser, with the network off: every rollout is reached, everything is found, nothing of a model is run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts import view_picture
from tests.view.browser import WIDTHS, OpenPage, open_browser
from tests.view.runs import BOARD, HOSTILE, failed_row, large_run, play_run, rich_row, row, write_run
from vfgym.view import write_page

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def rich_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rich")
    steps = [{"prompt": [], "completion": [{"role": "assistant", "content": "aside"}], "reward": 0.125, "extras": {"why": "said"}}]
    rows = [rich_row(), failed_row(), row(2, reward=0.25, trajectory=steps, answer="needle-in-answer")]
    one = write_run(folder / "one", rows, state_columns=["trajectory"])
    other = write_run(folder / "other", [rich_row(), row(1)], model="another")
    return write_page(folder / "page.html", one, other)


def test_a_thousand_rollouts_are_each_reached(tmp_path: Path, browser: Any) -> None:
    run = large_run(tmp_path / "run")
    assert 4.5e6 < (run / "results.jsonl").stat().st_size < 5.5e6
    file = write_page(tmp_path / "page.html", run)
    assert file.stat().st_size < 5e6
    page = OpenPage(browser, file)
    assert page.tab.locator("#rollouts ~ div tbody tr").count() == 50
    for number in range(1000):
        page.go(f"#run=0&example={number // 4}&rollout={number % 4}")
        assert f"end {number}" in page.tab.evaluate("document.querySelector('.conversation').lastChild.innerText")
    page.go("#run=0")
    page.tab.fill("#filter-text", "end 777")
    assert page.text("#count") == "1 of 1,000 rollouts"
    page.tab.fill("#filter-text", "")
    listed: set[str] = set()
    for _ in range(20):
        listed.update(page.tab.locator("#rollouts ~ div tbody th").all_inner_texts())
        pages = page.tab.get_by_role("group", name="Pages of rollouts")
        if pages.get_by_role("button", name="Next page").is_enabled():
            pages.get_by_role("button", name="Next page").click()
    assert len(listed) == 1000
    assert page.problems == []


def test_whatever_was_said_is_shown_and_found_and_never_run(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    for needle in ("system", "arguments", "reasoning", "tool", "error", "answer"):
        page.go("#run=0")
        page.tab.fill("#filter-text", f"needle-in-{needle}")
        assert page.text("#count") == "1 of 3 rollouts", needle
        page.tab.locator("#rollouts ~ div tbody a").click()
        page.tab.wait_for_selector("article")
        page.tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert f"needle-in-{needle}" in page.text(), needle
        page.tab.get_by_role("link", name="All rollouts").click()
        page.tab.wait_for_selector("#filter-text")
        page.tab.get_by_role("button", name="Clear").click()
    page.go("#run=0&example=0&rollout=0&beside=none")
    assert HOSTILE in page.text()
    assert page.tab.title() == "Example 0, rollout 0 · a-game-v0 · a-model · one"
    assert page.tab.locator("pre", has_text="| X | O |").first.inner_text() == BOARD
    assert page.tab.locator("img").evaluate_all("all => all.map(each => each.alt)") == [
        "Image 1 of 1 in message 2 of 5, turn 1, example 0, rollout 0",
        "Image 1 of 1 in message 4 of 5, turn 2, example 0, rollout 0",
    ]
    assert page.tab.locator("img").evaluate_all("all => all.every(each => each.complete && each.naturalWidth > 0)")
    assert page.problems == []


def test_a_policy_keeps_what_slips_in_from_running(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    ran = page.tab.evaluate(
        "() => { const made = document.createElement('div'); made.innerHTML = '<img src=x onerror=\"window.ran = 1\">';"
        " document.body.append(made); return new Promise(done => setTimeout(() => done(window.ran), 300)); }"
    )
    assert ran is None
    assert page.problems


def test_filters_combine(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    page.tab.get_by_label("Failure").select_option(label="ModelError")
    assert page.text("#count") == "1 of 3 rollouts"
    page.tab.get_by_label("Failure").select_option(label="not failed")
    page.tab.get_by_label("Reward to").fill("0.5")
    assert page.text("#count") == "1 of 3 rollouts"
    page.tab.get_by_label("Ended by").select_option(label="has_error")
    assert page.text("#count") == "0 of 3 rollouts"
    page.tab.get_by_role("button", name="Clear").click()
    assert page.text("#count") == "3 of 3 rollouts"


def test_a_rollout_without_a_number_is_in_no_range_of_rewards(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    for label in ("Reward from", "Reward to"):
        page.tab.get_by_label(label).fill("0")
        listed = page.tab.locator("#rollouts ~ div tbody th").all_inner_texts()
        assert "example 1, rollout 0" not in listed, label
        page.tab.get_by_role("button", name="Clear").click()


@pytest.mark.parametrize("width", WIDTHS.values())
def test_a_page_fits_however_long_its_names_are(tmp_path: Path, browser: Any, width: int) -> None:
    name = HOSTILE + "x" * 3000
    long = row(stop_condition=name, metrics={name: 1.0, "other": 0.5}, token_usage={name: 1.0})
    page = OpenPage(browser, write_page(tmp_path / "page.html", write_run(tmp_path / "run", [long], model=name)), width)
    for route in ("#run=0", "#run=0&example=0&rollout=0"):
        page.go(route)
        page.tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), route
    assert page.problems == []


def test_turns_by_keys_and_two_runs_side_by_side(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    assert "no difference can be given: a-model has" in page.text()
    page.go("#run=0&example=0&rollout=0")
    articles = page.tab.locator("article")
    assert articles.count() == 2
    first, second = (articles.nth(number).bounding_box() for number in range(2))
    assert first["x"] < second["x"]
    assert abs(first["y"] - second["y"]) < 50
    page.tab.keyboard.press("ArrowRight")
    page.tab.wait_for_function("location.hash.includes('turn=1')")
    page.tab.keyboard.press("ArrowRight")
    page.tab.wait_for_function("location.hash.includes('turn=2')")
    assert page.text("#turn") == "Turn 2 of 2"
    assert "needle-in-tool" in page.text()
    assert "needle-in-system" not in page.text()
    page.tab.keyboard.press("ArrowLeft")
    page.tab.wait_for_function("location.hash.includes('turn=1')")
    assert "needle-in-system" in page.text()
    page.tab.get_by_label("Beside it").select_option(label="nothing")
    page.tab.wait_for_function("document.querySelectorAll('article').length === 1")


def test_a_link_opens_its_rollout(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    page.tab.goto("about:blank")
    page.tab.goto(rich_page.as_uri() + "#run=0&example=2&rollout=0")
    page.tab.wait_for_selector("article")
    assert page.text("#title") == "Example 2, rollout 0"
    assert "aside" in page.text()
    assert "step reward 0.125" in page.text()
    page.go("#run=0&example=99")
    assert "no rollout 0 of example 99" in page.text()


@pytest.mark.parametrize("device", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_accessible_and_fits(rich_page: Path, browser: Any, device: str, scheme: str) -> None:
    """axe-core finds nothing, and nothing is wider than the screen."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    page = OpenPage(browser, rich_page, WIDTHS[device])
    page.tab.emulate_media(color_scheme=scheme)
    for route in ("#run=0", "#run=1", "#run=0&example=0&rollout=0", "#run=0&example=1&rollout=0&turn=1", "#run=0&example=2&rollout=0"):
        page.go(route)
        page.tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        found = axe.run(page.tab).response["violations"]
        assert not found, json.dumps([(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found], indent=1)
        assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), route


def test_a_rollout_can_be_printed(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    page.go("#run=0&example=0&rollout=0")
    page.tab.emulate_media(media="print")
    assert not page.tab.get_by_role("button").first.is_visible()
    assert "needle-in-tool" in page.text()
    assert page.tab.pdf().startswith(b"%PDF")


def test_a_played_run_is_shown(tmp_path: Path, browser: Any) -> None:
    page = OpenPage(browser, write_page(tmp_path / "page.html", play_run()))
    page.go("#run=0&example=0&rollout=1")
    assert "Tool call add" in page.text()
    assert page.problems == []


def test_the_picture_of_the_guide_is_of_a_real_page(tmp_path: Path, browser: Any) -> None:
    file = view_picture.write_runs_page(tmp_path / "page.html")
    page = OpenPage(browser, file)
    page.go(view_picture.ROUTE)
    assert page.text("#turn").startswith("Turn 2 of ")
    assert page.tab.locator("article img").count() >= 4
    assert view_picture.PICTURE.read_bytes().startswith(b"\x89PNG")
    assert page.problems == []
