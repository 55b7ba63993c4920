"""What environments keep for one player between its episodes: whoever makes it closes it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from vfgym.aio.steps import run_sync
from vfgym.episode.sessions import Sessions


class Definition:
    def __init__(self, closed: list[Any], how: Any = None) -> None:
        self.closed, self.how = closed, how

    def close_session(self, session: object) -> Any:
        self.closed.append(session)
        if isinstance(self.how, Exception):
            raise self.how
        return asyncio.sleep(0) if self.how == "later" else None


def episode(definition: Any, session: object) -> Any:
    return SimpleNamespace(definition=definition, state=SimpleNamespace(session=session))


def test_each_environment_has_one() -> None:
    closed: list[Any] = []
    one, other = Definition(closed), Definition(closed)
    sessions = Sessions()
    assert sessions.of(one) is None  # type: ignore[arg-type]
    for definition, session in ((one, None), (one, 0), (one, "second"), (other, "third")):
        sessions.keep(episode(definition, session))
    assert [sessions.of(each) for each in (one, other)] == [0, "third"]  # type: ignore[arg-type]
    run_sync(sessions.close())
    run_sync(sessions.close())
    assert (closed, sessions.of(one)) == (["third", 0], None)  # type: ignore[arg-type]


def test_one_that_fails_to_close_keeps_none_of_the_others_open() -> None:
    closed: list[Any] = []
    sessions = Sessions()
    for number, how in enumerate([None, KeyError("x"), "later", ValueError("y")]):
        sessions.keep(episode(Definition(closed, how), number))
    with pytest.raises(ValueError, match="y"):
        run_sync(sessions.close())
    assert closed == [3, 2, 1, 0]
