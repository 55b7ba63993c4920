"""What is logged while a check runs is kept for it; what others log meanwhile is shown."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.environments import Talk
from vfgym import State
from vfgym.aio.threads import on_thread
from vfgym.checks.kept_log import log_kept
from vfgym.testing import Check, check_environment


class Overheard(Talk):
    """Logs on the background loop and on a pool's thread, and calls `meanwhile` at each reset."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        super().__init__(max_turns=3)
        self.meanwhile = meanwhile

    async def setup_state(self, state: State) -> Any:
        await on_thread(self.meanwhile)
        LOGGER.warning("from the loop")
        await on_thread(LOGGER.warning, "from a thread")
        return super().setup_state(state)


LOGGER = logging.getLogger("vfgym.tests")


def test_a_check_keeps_what_is_logged_for_it_and_nothing_that_others_log(caplog: pytest.LogCaptureFixture) -> None:
    def others() -> None:
        thread = threading.Thread(target=LOGGER.warning, args=("from somebody else",))
        thread.start()
        thread.join()

    checks = check_environment(lambda: Overheard(others))
    assert set(caplog.messages) == {"from somebody else"}
    details = "; ".join(check.detail for check in checks)
    assert details.count("logged: from the loop") == details.count("logged: from a thread") == 1
    assert "somebody else" not in details


def test_handlers_are_as_they_were_once_the_last_of_several_checks_is_done(caplog: pytest.LogCaptureFixture) -> None:
    library = logging.getLogger("vfgym")
    before = library.handlers.copy(), library.propagate
    second_has_begun, first_is_done = threading.Event(), threading.Event()
    results: list[list[Check]] = []

    def until_the_first_is_done() -> None:
        second_has_begun.set()
        first_is_done.wait(60.0)

    second = threading.Thread(target=lambda: results.append(check_environment(lambda: Overheard(until_the_first_is_done))))

    def until_the_second_has_begun() -> None:
        if second.ident is None:
            second.start()
        second_has_begun.wait(60.0)

    results.append(check_environment(lambda: Overheard(until_the_second_has_begun)))
    assert library.propagate is False, "the second goes on"
    first_is_done.set()
    second.join()
    assert ["; ".join(each.detail for each in checks).count("logged: from the loop") for checks in results] == [1, 1]
    assert (caplog.messages, (library.handlers, library.propagate)) == ([], before)


def test_records_are_kept_after_an_error_and_handlers_are_as_before(caplog: pytest.LogCaptureFixture) -> None:
    library = logging.getLogger("vfgym")
    before = library.handlers.copy(), library.propagate
    with contextlib.suppress(KeyError), log_kept() as records:
        LOGGER.warning("kept")
        raise KeyError
    assert ([record.getMessage() for record in records], (library.handlers, library.propagate)) == (["kept"], before)
    assert caplog.messages == []
    LOGGER.warning("shown")
    assert caplog.messages == ["shown"]
