"""Pages in a real browser, with the network off: every rollout is reached, everything is found, nothing of a model is run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scripts import view_picture
from tests.view.browser import WIDTHS, OpenPage, open_browser
from tests.view.runs import BOARD, HOSTILE, failed_row, large_run, rich_row, row, write_run
from vfgym.view import write_page

pytestmark = pytest.mark.exhaustive

ROWS = ".rollouts li a"


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
    assert page.tab.locator(ROWS).count() == 50
    for number in range(1000):
        page.go(f"#run=0&example={number // 4}&rollout={number % 4}")
        assert f"end {number}" in page.tab.evaluate("document.querySelector('.conversation').lastChild.innerText")
    page.go("#run=0")
    page.tab.fill("#by-text", "end 777")
    assert page.text("#count") == "1 of 1,000 rollouts"
    page.tab.fill("#by-text", "")
    listed: set[str] = set()
    for _ in range(20):
        listed.update(page.tab.locator(f"{ROWS} .id").all_inner_texts())
        pages = page.tab.get_by_role("group", name="Pages of rollouts")
        if pages.get_by_role("button", name="Next page").is_enabled():
            pages.get_by_role("button", name="Next page").click()
    assert (len(listed), page.problems) == (1000, [])


def test_whatever_was_said_is_shown_and_found_and_never_run(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    for needle in ("system", "arguments", "reasoning", "tool", "error", "answer"):
        page.go("#run=0")
        page.tab.get_by_label("Run", exact=True).select_option(label="a-model")
        page.tab.fill("#by-text", f"needle-in-{needle}")
        assert page.text("#count") == "1 of 5 rollouts", needle
        page.tab.locator(ROWS).click()
        page.tab.wait_for_selector("article")
        page.open_details()
        assert f"needle-in-{needle}" in page.text(), needle
        page.tab.get_by_role("link", name="All rollouts").click()
        page.tab.wait_for_selector("#by-text")
        page.tab.get_by_role("button", name="Clear").click()
    page.go("#run=0&example=0&rollout=0")
    assert HOSTILE in page.text()
    assert page.tab.title() == "a-game-v0 · a-model · task 0, rollout 0"
    assert page.tab.locator("pre", has_text="| X | O |").first.inner_text() == BOARD
    assert page.tab.locator("img").evaluate_all("all => all.map(each => each.alt)") == [
        "Image 1 of 1 in message 2 of 5, turn 1, task 0, rollout 0",
        "Image 1 of 1 in message 4 of 5, turn 2, task 0, rollout 0",
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
    page.tab.get_by_label("Trouble").select_option(label="the agent failed: ModelError")
    assert page.text("#count") == "1 of 5 rollouts"
    page.tab.get_by_label("Trouble").select_option(label="none")
    page.tab.get_by_label("Reward to").fill("0.5")
    assert page.text("#count") == "1 of 5 rollouts"
    page.tab.get_by_label("Ended").select_option(label="policy_failed (has_error)")
    assert page.text("#count") == "0 of 5 rollouts"
    page.tab.get_by_role("button", name="Clear").click()
    assert page.text("#count") == "5 of 5 rollouts"
    page.tab.get_by_label("Run", exact=True).select_option(label="another")
    assert page.text("#count") == "2 of 5 rollouts"
    page.tab.get_by_role("button", name="Clear").click()
    page.tab.get_by_role("button", name="Show the rollouts of a-model: the agent failed: ModelError").click()
    assert page.tab.locator(f"{ROWS} .id").all_text_contents() == ["task 1/0"]


def test_a_rollout_without_a_number_is_in_no_range_of_rewards(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    for label in ("Reward from", "Reward to"):
        page.tab.get_by_label(label).fill("0")
        assert page.tab.locator(ROWS, has_text="ModelError").count() == 0, label
        page.tab.get_by_role("button", name="Clear").click()
    assert page.tab.locator(ROWS, has_text="ModelError").count() == 1


@pytest.mark.parametrize("width", WIDTHS.values())
def test_a_page_fits_however_long_its_names_are(tmp_path: Path, browser: Any, width: int) -> None:
    name = HOSTILE + "x" * 3000
    long = row(stop_condition=name, metrics={name: 1.0, "other": 0.5}, token_usage={name: 1.0})
    page = OpenPage(browser, write_page(tmp_path / "page.html", write_run(tmp_path / "run", [long], model=name)), width)
    for route in ("#run=0", "#run=0&example=0&rollout=0"):
        page.go(route)
        page.open_details()
        assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), route
    assert page.problems == []


def test_turns_by_keys_and_two_runs_side_by_side(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    assert "no difference can be given: a-model has" in page.text()
    page.go("#run=0&example=0&rollout=0&beside=1")
    articles = page.tab.locator("article")
    assert articles.count() == 2
    first, second = (articles.nth(number).bounding_box() for number in range(2))
    assert first["x"] < second["x"]
    assert abs(first["y"] - second["y"]) < 50
    page.tab.keyboard.press("ArrowRight")
    page.tab.wait_for_url(re.compile("turn=1"))
    page.tab.keyboard.press("ArrowRight")
    page.tab.wait_for_url(re.compile("turn=2"))
    assert page.text("#turn") == "Turn 2 of 2"
    assert page.tab.locator(".stage img").count() == 2, "the image stays in sight, in both"
    assert "needle-in-tool" in page.text()
    assert "needle-in-system" not in page.text()
    page.tab.keyboard.press("ArrowLeft")
    page.tab.wait_for_url(re.compile("turn=1"))
    assert "needle-in-system" in page.text()
    page.tab.keyboard.press("Escape")
    page.tab.wait_for_url(re.compile("rollout=0&beside=1$"))
    page.tab.get_by_label("Compare with").select_option(value="")
    page.tab.locator("article").nth(1).wait_for(state="detached")


def test_a_link_opens_its_rollout(rich_page: Path, browser: Any) -> None:
    page = OpenPage(browser, rich_page)
    page.tab.goto("about:blank")
    page.tab.goto(rich_page.as_uri() + "#run=0&example=2&rollout=0")
    page.tab.wait_for_selector("article")
    assert page.text("#title") == "a-game-v0 · a-model · task 2, rollout 0"
    assert "aside" in page.text()
    assert "step reward 0.125" in page.text()
    page.go("#run=0&example=99")
    assert "no rollout 0 of task 99" in page.text()


@pytest.mark.parametrize("device", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_accessible_and_fits(rich_page: Path, browser: Any, device: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python").Axe()
    page = OpenPage(browser, rich_page, WIDTHS[device])
    page.tab.emulate_media(color_scheme=scheme)
    for route in (
        "#",
        "#run=9",
        *(f"#run=0&{rest}" for rest in ("example=0&beside=1", "example=0&turn=1&beside=1", "example=1&turn=1", "example=2")),
    ):
        page.go(route)
        page.open_details()
        found = axe.run(page.tab).response["violations"]
        assert not found, json.dumps([(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found], indent=1)
        assert page.tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), route


def test_print_shows_everything(tmp_path: Path, browser: Any) -> None:
    rules = "\n\n".join([f"Rule {number} of this game, which is long enough to be folded." for number in range(20)])
    rows = [row(number, prompt=[{"role": "user", "content": f"{rules}\n\n{BOARD}"}]) for number in range(60)]
    page = OpenPage(browser, write_page(tmp_path / "page.html", write_run(tmp_path / "run", rows)))
    page.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.tab.emulate_media(media="print")
    assert page.tab.locator(ROWS).count() == 60
    assert "rollouts_per_example" in page.text(), "what is folded on the screen"
    assert not page.tab.get_by_role("button", name="Clear").is_visible()
    page.tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.tab.locator(ROWS).count() == 50
    page.go("#run=0&example=3&rollout=0&turn=1")
    page.tab.emulate_media(media="screen")
    assert "Rule 7" not in page.text(), "rules are folded"
    page.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.tab.emulate_media(media="print")
    assert "Rule 7" in page.text()
    assert page.tab.pdf().startswith(b"%PDF")
    assert page.problems == []


def test_a_game_is_played_again_with_its_board_in_sight(tmp_path: Path, browser: Any) -> None:
    """By the slider, by keys and by a clock; on a phone the conversation begins in the first screen."""
    boards = [f"[S]FF\nFHF\nF{square}G" for square in "XYZ"]
    talk = [
        {"role": role, "content": text} for board in boards[1:] for role, text in (("assistant", "down"), ("user", f"{board}\n\nReward: 0"))
    ]
    rules = "\n\n".join(["You are playing a game.", *[f"Rule {number}." for number in range(20)], boards[0]])
    run = write_run(tmp_path / "run", [row(prompt=[{"role": "user", "content": rules}], completion=talk)])
    page = OpenPage(browser, write_page(tmp_path / "page.html", run), WIDTHS["phone"])
    page.go("#run=0&example=0&rollout=0")
    assert page.tab.locator(".message").first.bounding_box()["y"] < 200
    assert page.tab.locator(".message.assistant").first.bounding_box()["y"] < 844
    page.tab.get_by_label("Turn", exact=True).fill("2")
    assert page.text(".stage pre") == boards[1]
    assert "Reward: 0" in page.text(".talk")
    page.tab.locator("#title").focus()
    page.tab.keyboard.press("ArrowRight")
    assert (page.text("#turn"), page.text(".stage pre")) == ("The end", boards[2])
    assert "Reward 1 · terminated (max_turns)" in page.text(".talk")
    page.tab.clock.install()
    page.tab.keyboard.press(" ")
    assert page.text("#turn") == "Turn 1 of 2"
    page.tab.clock.run_for(5000)
    assert (page.text("#turn"), page.text(".play")) == ("The end", "Play")
    page.tab.get_by_role("button", name="Whole conversation").click()
    assert (page.tab.locator(".message").count(), page.problems) == (5, [])


def test_the_pictures_of_the_guide_are_of_a_real_page(tmp_path: Path, browser: Any) -> None:
    page = OpenPage(browser, view_picture.write_runs_page(tmp_path / "page.html", num_examples=7))
    for name, (route, _) in view_picture.PICTURES.items():
        page.go(route)
        assert (view_picture.IMAGES / name).read_bytes().startswith(b"\x89PNG")
    assert (page.tab.locator(".stage img").count(), page.problems) == (1, [])
