"""BrowserGym's pages as text: the goal, the tabs, and the accessibility tree, whose elements have numbers that actions name.

Nothing here is imported from BrowserGym before one of its environments is there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import gymnasium as gym

from vfgym.output.pictures import Picture
from vfgym.wrappers.gymnasium.text_games import CommandSpace

_ONE_AT_A_TIME = threading.Lock()


def is_browser(game: Any) -> bool:
    """Say whether a game is an environment of BrowserGym, in any wrappers."""
    innermost = game
    while isinstance(innermost, gym.Wrapper):
        innermost = innermost.env
    return any((cls.__module__, cls.__qualname__) == ("browsergym.core.env", "BrowserEnv") for cls in type(innermost).__mro__)


class BrowserGame(gym.Wrapper[str, str, Any, Any]):
    """An environment of BrowserGym that shows text and takes text. Its picture is the page.

    It lives on a thread of its own, with a browser driver of its own: BrowserGym's driver is one for a process, belongs to the thread that
    first used it, and keeps an event loop running there.
    """

    render_mode = "rgb_array"

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        """Take an environment of BrowserGym."""
        super().__init__(env)
        self.action_space = CommandSpace(("noop()", "scroll(0, 100)", "scroll(0, -100)"))
        self.observation_space = CommandSpace(("",))
        self.metadata = {**(self.metadata or {}), "render_modes": ["rgb_array"]}
        self._screenshot: Any = None
        self._driver: Any = None
        self._thread: ThreadPoolExecutor | None = None

    @property
    def rules_for_players(self) -> str:
        """What can be typed, as BrowserGym describes its actions."""
        actions = getattr(getattr(self.env.unwrapped, "action_mapping", None), "__self__", None)
        describe = getattr(actions, "describe", None)
        rules = "You use a web browser, to reach the goal that is told. In the page, each element has its number in brackets: its bid."
        listed = describe(with_long_description=False, with_examples=True).strip() if callable(describe) else ""
        return f"{rules}\n\n{listed}".strip()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Open the page of a task."""
        observation, info = self._run(self._reset, seed, {} if options is None else {"options": options})
        return self._written(observation), info

    def _reset(self, seed: int | None, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        import browsergym.core as core

        with _ONE_AT_A_TIME:
            core._set_global_playwright(self._driver)
            self._driver = core._get_global_playwright()  # which starts one where there is none
            return self.env.reset(seed=seed, **options)

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Do what is typed."""
        observation, reward, terminated, truncated, info = self._run(self.env.step, action)
        return self._written(observation), reward, terminated, truncated, info

    def render(self) -> Picture | None:
        """Return the page as it was seen last."""
        return cast("Picture | None", self._screenshot)

    def close(self) -> None:
        """Close the browser, and end the thread. A second call does nothing."""
        if self._thread is None:
            return
        try:
            self._run(self._close)
        finally:
            self._thread.shutdown(wait=False)
            self._thread = None

    def _close(self) -> None:
        try:
            self.env.close()
        finally:
            if self._driver is not None:
                self._driver.stop()
                self._driver = None

    def _run(self, call: Callable[..., Any], *args: Any) -> Any:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="browser")
        return self._thread.submit(call, *args).result()

    def _written(self, observation: dict[str, Any]) -> str:
        self._screenshot = observation.get("screenshot")
        return page_text(observation)


def page_text(observation: dict[str, Any]) -> str:
    """Return an observation of BrowserGym as text."""
    from browsergym.utils.obs import flatten_axtree_to_str

    titles, active = observation.get("open_pages_titles", ()), int(observation.get("active_page_index", [0])[0])
    tabs = [f"{'*' if number == active else ' '} {number}: {title or '(no title)'}" for number, title in enumerate(titles)]
    page = flatten_axtree_to_str(observation["axtree_object"], extra_properties=observation.get("extra_element_properties"))
    error = observation.get("last_action_error", "")
    parts = [
        f"Goal: {observation['goal']}" if observation.get("goal") else "",
        f"Error of the last action: {error}" if error else "",
        "Tabs:\n" + "\n".join(tabs) if len(tabs) > 1 else "",
        f"Page: {observation.get('url', '')}\n{page}",
    ]
    return "\n\n".join(part for part in parts if part)
