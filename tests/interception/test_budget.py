"""What the requests of one program may take of this process's memory."""

from __future__ import annotations

import pytest

from vfgym.aio.bounds import TooMuch
from vfgym.interception import budget
from vfgym.interception.budget import MOST_WAITING, MemoryBudget, size_in_memory
from vfgym.messages import UserMessage

MIB = 2**20


@pytest.mark.parametrize(("text", "size"), [(b"", 0), (b"12", 2), (b"[1,2]", 5 + 2 * 128), (b'{"a":[]}', 8 + 2 * 128)])
def test_lists_and_objects_take_more_than_their_text(text: bytes, size: int) -> None:
    assert size_in_memory(text) == size


@pytest.mark.parametrize(("num_programs", "limit"), [(1, 64 * MIB), (16, 64 * MIB), (32, 32 * MIB), (256, 4 * MIB), (10**6, 4 * MIB)])
def test_what_waits_is_bounded_by_a_fair_share(num_programs: int, limit: int) -> None:
    own = MemoryBudget()
    with own.request(num_programs) as first, own.request(num_programs) as second:
        first.take(limit - 1)
        second.take(1)
        with pytest.raises(TooMuch, match=f"{limit:,} bytes") as caught:
            second.take(1)
        assert (caught.value.status, own.waiting) == (429, limit)
    assert own.waiting == 0


def fail(own: MemoryBudget, error: type[BaseException] | BaseException) -> None:
    with own.request(1) as waiting:
        waiting.take(5)
        raise error


def test_after_whatever_ends_a_request_nothing_of_it_is_counted() -> None:
    own = MemoryBudget()
    for error in (KeyError, TooMuch(429, "x"), KeyboardInterrupt):
        with pytest.raises((KeyError, TooMuch, KeyboardInterrupt)):
            fail(own, error)
        assert own.waiting == 0
    with own.request(1) as waiting:
        waiting.take(5)
        waiting.release()
        waiting.release()
        assert own.waiting == 0


def test_what_is_read_counts_in_place_of_its_text() -> None:
    own = MemoryBudget()
    text = b"[1,2]"
    with own.request(1) as waiting:
        waiting.take(len(text))
        waiting.read(text)
        assert own.waiting == size_in_memory(text)
        with pytest.raises(TooMuch):
            waiting.read(b"[" * (MOST_WAITING // 128))


def test_messages_are_kept_once_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    own = MemoryBudget()
    assert (own.waiting, own.kept) == (0, 0)
    first = UserMessage("a")
    assert own.keep([first])[0] is first
    kept = own.kept
    again = own.keep([UserMessage("a"), first])
    assert [each is first for each in again] == [True, True]
    assert own.kept == kept + 2 * 16
    monkeypatch.setattr(budget, "MOST_KEPT", own.kept + 100)
    for message in (UserMessage("x" * 100), UserMessage("a")):
        with pytest.raises(TooMuch, match="conversations of a rollout") as caught:
            own.keep([message] * 10)
        assert caught.value.status == 413
