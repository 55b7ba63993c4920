"""How the processes of an `AsyncVectorEnv` share conversations: a file for each, and a view that reads them when it is looked at."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import pytest
from gymnasium.vector.utils.shared_memory import create_shared_memory, read_from_shared_memory, write_to_shared_memory

from vfgym.messages import AssistantMessage, UserMessage
from vfgym.shared_conversations import ConversationsView, SharedConversations
from vfgym.spaces import ChatSpace

FIRST, SECOND = [UserMessage("a")], [UserMessage("a"), AssistantMessage("b")]


def test_each_leaves_its_last_conversation() -> None:
    shared = SharedConversations(3)
    shared.write(1, tuple(SECOND))
    shared.write(1, FIRST)
    shared.write(2, tuple(SECOND))
    assert [shared.read(index) for index in range(3)] == [[], FIRST, SECOND]
    assert type(shared.read(1)[0]) is UserMessage


def test_a_view_shows_what_is_written_later_and_its_copy_does_not() -> None:
    shared = SharedConversations(2)
    view = ConversationsView(shared)
    shared.write(0, FIRST)
    kept = copy.deepcopy(view)
    shared.write(0, SECOND)
    assert (len(view), view[0], view[-1], view[:1], list(view), kept) == (2, SECOND, [], (SECOND,), [SECOND, []], (FIRST, []))
    with pytest.raises(IndexError):
        view[2]


def test_gymnasium_shares_conversations_so() -> None:
    space = ChatSpace()
    shared = create_shared_memory(space, n=2)
    write_to_shared_memory(space, 1, FIRST, shared)
    assert list(read_from_shared_memory(space, shared, n=2)) == [[], FIRST]


def test_the_directory_goes_with_who_made_it_and_no_other_process() -> None:
    shared = SharedConversations(1)
    shared.write(0, FIRST)
    directory = Path(shared._directory)
    child = os.fork()
    if child == 0:
        del shared
        os._exit(0)
    os.waitpid(child, 0)
    assert shared.read(0) == FIRST
    del shared
    assert not directory.exists()
