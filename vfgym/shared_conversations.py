"""How the processes of an `AsyncVectorEnv` share conversations, which have no fixed size: each leaves its last one in a file.

`AsyncVectorEnv` makes the shared memory once, writes to it in its processes, and takes what it reads once as its observations, since arrays
show what is written later. So what is read is a view that reads the files when it is looked at, and a copy of it, which each step returns
by default, is a tuple of conversations.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

from gymnasium.vector.utils.shared_memory import create_shared_memory, read_from_shared_memory, write_to_shared_memory

from vfgym.messages import Message
from vfgym.spaces import ChatSpace


class SharedConversations:
    """A file for each sub-environment, in a directory that is removed with the object that made it."""

    def __init__(self, count: int) -> None:
        """Make the directory for so many sub-environments."""
        self.count = count
        self._directory = tempfile.mkdtemp(prefix="vfgym-vector-")
        weakref.finalize(self, _remove, self._directory, os.getpid())

    def write(self, index: int, conversation: Sequence[Message]) -> None:
        """Leave the conversation of a sub-environment, in place of its last one."""
        self._file(index).write_bytes(pickle.dumps(list(conversation), protocol=pickle.HIGHEST_PROTOCOL))

    def read(self, index: int) -> list[Message]:
        """Return the conversation that a sub-environment left last; an empty one before its first reset."""
        try:
            conversation: list[Message] = pickle.loads(self._file(index).read_bytes())
        except FileNotFoundError:
            return []
        return conversation

    def _file(self, index: int) -> Path:
        return Path(self._directory, f"{index}.pickle")


def _remove(directory: str, made_by: int) -> None:
    if os.getpid() == made_by:  # a process that was forked has the object, too
        shutil.rmtree(directory, ignore_errors=True)


class ConversationsView(Sequence[list[Message]]):
    """The conversations as they are when they are looked at. A copy is a tuple of them as they are now."""

    def __init__(self, shared: SharedConversations) -> None:
        """Look at what is shared."""
        self._shared = shared

    def __len__(self) -> int:
        return self._shared.count

    @overload
    def __getitem__(self, index: int) -> list[Message]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[list[Message], ...]: ...
    def __getitem__(self, index: int | slice) -> list[Message] | tuple[list[Message], ...]:
        places = range(len(self))[index]
        return self._shared.read(places) if isinstance(places, int) else tuple(map(self._shared.read, places))

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[list[Message], ...]:
        return tuple(self)


@create_shared_memory.register(ChatSpace)
def _share(space: ChatSpace, n: int = 1, ctx: Any = None) -> SharedConversations:
    return SharedConversations(n)


@read_from_shared_memory.register(ChatSpace)
def _view(space: ChatSpace, shared_memory: SharedConversations, n: int = 1) -> ConversationsView:
    return ConversationsView(shared_memory)


@write_to_shared_memory.register(ChatSpace)
def _write(space: ChatSpace, index: int, value: Sequence[Message], shared_memory: SharedConversations) -> None:
    shared_memory.write(index, value)
