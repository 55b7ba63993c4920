"""BrowserGym's pages are text, each environment on a thread with a driver of its own. What stands for the package here keeps its contract.

It cannot be installed beside this library without force: it pins a greenlet that is too old.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from vfgym.wrappers.gymnasium.browsergym import BrowserGame, is_browser, page_text

SCREENSHOT = np.zeros((20, 30, 3), np.uint8)


class Anything(gym.Space[Any]):
    """A space without a kind, as BrowserGym's are."""


class Actions:
    def to_python_code(self, action: str) -> str:
        return action

    def describe(self, with_long_description: bool = True, with_examples: bool = True) -> str:
        return "click(bid: str)"


class BrowserEnv(gym.Env[Any, Any]):
    """A page with a button, to be used on the thread of its driver alone, as Playwright demands."""

    __module__ = "browsergym.core.env"
    __qualname__ = "BrowserEnv"
    metadata = {"render_modes": None}
    observation_space = action_space = Anything()
    action_mapping = Actions().to_python_code

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.driver = sys.modules["browsergym.core"]._get_global_playwright()
        self.given = (seed, options)
        return self._observation(""), {}

    def step(self, action: str) -> Any:
        assert self.driver.thread is threading.current_thread()
        is_hit = action == "click('13')"
        return self._observation("" if is_hit else "no such element"), float(is_hit), is_hit, False, {}

    def _observation(self, error: str) -> dict[str, Any]:
        titles = ("Shop", "Help")
        return {
            **{"goal": "Click button ONE.", "url": "http://shop", "open_pages_titles": titles, "active_page_index": np.array([1])},
            **{"axtree_object": "[13] button 'ONE'", "last_action_error": error, "screenshot": SCREENSHOT},
        }


class Driver:
    def __init__(self) -> None:
        self.thread, self.is_stopped = threading.current_thread(), False

    def stop(self) -> None:
        assert self.thread is threading.current_thread()
        self.is_stopped = True


@pytest.fixture
def drivers(monkeypatch: pytest.MonkeyPatch) -> list[Driver]:
    started: list[Driver] = []
    core: Any = ModuleType("browsergym.core")
    core.current = None

    def give(driver: Any) -> None:
        core.current = driver

    def get() -> Any:
        if core.current is None:
            core.current = Driver()
            started.append(core.current)
        return core.current

    core._set_global_playwright, core._get_global_playwright = give, get
    obs: Any = ModuleType("browsergym.utils.obs")
    obs.flatten_axtree_to_str = lambda tree, extra_properties=None: tree if extra_properties is None else f"{tree} {extra_properties}"
    for name, module in {"browsergym": ModuleType("browsergym"), "browsergym.core": core, "browsergym.utils.obs": obs}.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setitem(sys.modules, "browsergym.utils", ModuleType("browsergym.utils"))
    monkeypatch.setattr(sys.modules["browsergym"], "core", core, raising=False)
    return started


def test_a_page_is_its_goal_its_tabs_and_its_accessibility_tree(drivers: list[Driver]) -> None:
    env = vfgym.to_chat(BrowserEnv)
    observation, _ = env.reset(seed=0)
    told = observation[-1].content
    assert "You use a web browser" in told
    assert "click(bid: str)" in told
    page = "Tabs:\n  0: Shop\n* 1: Help\n\nPage: http://shop\n[13] button 'ONE'"
    assert told.endswith(f"Goal: Click button ONE.\n\n{page}")
    observation, reward, terminated, *_ = env.step("<action>click('7')</action>")
    assert observation[-1].content == f"Goal: Click button ONE.\n\nError of the last action: no such element\n\n{page}"
    assert (reward, terminated) == (0.0, False)
    assert env.step("click('13')")[1:3] == (1.0, True)
    env.close()
    assert [driver.is_stopped for driver in drivers] == [True]


def test_the_screenshot_is_shown_where_images_are(drivers: list[Driver]) -> None:
    env = vfgym.to_chat(BrowserEnv, observe="both")
    assert [part["type"] for part in env.reset(seed=0)[0][-1].content][-1] == "image_url"
    env.close()


def test_each_environment_has_a_driver_on_a_thread_of_its_own(drivers: list[Driver]) -> None:
    env = vfgym.to_chat(BrowserEnv, max_turns=2)
    results = vfgym.evaluate(env, "random", num_examples=4, max_concurrent=4, progress=False)
    assert results["metadata"]["num_failed"] == 0
    env.close()
    assert len({driver.thread for driver in drivers}) == len(drivers)
    assert all(driver.is_stopped for driver in drivers)


@pytest.mark.parametrize(
    ("told", "text"),
    [
        ({}, "Page: \n[1] a"),
        ({"goal": "", "last_action_error": "", "url": "http://a"}, "Page: http://a\n[1] a"),
        ({"goal": "Go."}, "Goal: Go.\n\nPage: \n[1] a"),
        ({"open_pages_titles": ("One",)}, "Page: \n[1] a"),
        ({"open_pages_titles": ("One", "")}, "Tabs:\n* 0: One\n  1: (no title)\n\nPage: \n[1] a"),
        ({"open_pages_titles": ("", "Two"), "active_page_index": [1]}, "Tabs:\n  0: (no title)\n* 1: Two\n\nPage: \n[1] a"),
        ({"extra_element_properties": {"1": "seen"}}, "Page: \n[1] a {'1': 'seen'}"),
    ],
    ids=str,
)
def test_of_a_page_only_what_there_is_is_told(drivers: list[Driver], told: dict[str, Any], text: str) -> None:
    assert page_text({"axtree_object": "[1] a", **told}) == text


def test_environments_of_browsergym_are_known_in_wrappers_and_as_subclasses() -> None:
    page = BrowserEnv()
    shop = type("Shop", (BrowserEnv,), {"__module__": "shops"})()
    assert all(map(is_browser, (page, gym.Wrapper(page), gym.wrappers.TimeLimit(gym.Wrapper(shop), 3), shop)))
    elsewhere = type("BrowserEnv", (gym.Env,), {"__module__": "elsewhere"})()
    core = type("Other", (gym.Env,), {"__module__": "browsergym.core.env"})()
    assert not any(map(is_browser, (elsewhere, core, gym.Wrapper(core), None)))


def test_options_reach_the_page_and_its_picture_is_the_last_one(drivers: list[Driver]) -> None:
    page = BrowserEnv()
    game = BrowserGame(page)
    assert (game.metadata, BrowserEnv.metadata) == ({"render_modes": ["rgb_array"]}, {"render_modes": None})
    assert game.render() is None
    for seed, options in ((0, None), (None, {}), (3, {"level": 0})):
        game.reset(seed=seed, options=options)
        assert page.given == (seed, options)
    assert game.render() is SCREENSHOT
    page.action_mapping = None
    assert game.rules_for_players == (
        "You use a web browser, to reach the goal that is told. In the page, each element has its number in brackets: its bid."
    )
    game.close()


@pytest.mark.parametrize("problem", [None, OSError("the browser is gone"), KeyboardInterrupt()], ids=repr)
def test_a_closed_page_leaves_no_driver_and_is_opened_anew(drivers: list[Driver], problem: BaseException | None) -> None:
    """Whatever closing the browser raises."""
    page = BrowserEnv()

    def close() -> None:
        if problem is not None:
            raise problem

    page.close = close  # type: ignore[method-assign]
    game = BrowserGame(page)
    game.close()  # nothing was opened
    for count in (1, 2):
        game.reset(seed=0)
        assert [driver.is_stopped for driver in drivers] == [*[True] * (count - 1), False]
        with contextlib.nullcontext() if problem is None else pytest.raises(type(problem)):
            game.close()
        game.close()
        assert [driver.is_stopped for driver in drivers] == [True] * count
