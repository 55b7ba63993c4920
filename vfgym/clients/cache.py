"""Answers of models that are kept, so that the same is not asked, and paid for, twice.

`ResponseCache` is a SQLite file, which any number of processes may use at once. What is the same is said by `RequestKeys`: the model, the
conversation, the tools, the generation parameters, the server, which rollout of its example asks, and how often that rollout has asked the
same before. So rollouts that are repeated differ as they would without a cache, and a run that is played again gets the same answers in the
same places. Only answers are kept: a request that failed is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import sqlite3
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from vfgym.aio.threads import on_thread
from vfgym.errors import ConfigurationError
from vfgym.messages import Response, as_messages, plain
from vfgym.output.terminal import one_line
from vfgym.tools import Tool

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

T = TypeVar("T")

CACHE_VARIABLE = "VFGYM_CACHE"
"""Environment variable that names the file."""

_VERSION = 1
"""Of the file's tables."""
_VERSION_OF_KEYS = 2
"""Of what keys are made of."""
_COLUMNS = ("key", "model", "kept", "response")
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""What SQLite says of a file that is not whole, or not of its own."""
_SECONDS_FOR_OTHERS = 60.0
"""For how long a process waits for others that write."""
_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    kept REAL NOT NULL,
    response TEXT NOT NULL
) WITHOUT ROWID
"""


class CacheContents(TypedDict):
    """What a cache holds."""

    path: str
    answers: int
    bytes: int
    """Size of the file."""
    models: dict[str, int]
    """Answers of each model."""


def default_cache_path() -> Path:
    """Return the file that is used where none is named: ``$VFGYM_CACHE``, else one in the user's cache directory."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "vfgym" / "responses.sqlite"


class ResponseCache:
    """Answers of models in a SQLite file. It may be used from any thread, and be inherited by a forked process."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Name the file; it is made when it is first used.

        Args:
            path: The file; that of `default_cache_path` by default.
        """
        self.path = default_cache_path() if path is None else Path(path)
        self._connection: tuple[int, sqlite3.Connection] | None = None
        """With the process that it was opened in: a forked one opens its own."""
        self._inode: int | None = None
        """Of the file that was opened last."""
        self._lock = threading.Lock()
        self._has_warned = False

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]

    def open(self) -> None:
        """Open the file, so that what is wrong with it shows before anybody is asked.

        Raises:
            ConfigurationError: If it cannot be opened, or is something else.
        """
        self._do(lambda connection: None)

    async def find(self, key: str) -> Response | None:
        """Return the answer that is kept under a key; None where there is none, or the file cannot be read any more."""
        try:
            return await on_thread(self._find, key)
        except ConfigurationError as error:
            self._warn(str(error))
            return None

    async def keep(self, key: str, response: Response) -> Response:
        """Keep an answer, and return the one to use: what was kept meanwhile by another rollout or process stays, and is used by all.

        So what is played now is what will be played again. Where the answer cannot be kept, the log says why.
        """
        try:
            text = json.dumps(response.model_dump())
        except (TypeError, ValueError) as error:
            self._warn(f"answers of {response.model} are not cached, since they have no form in JSON: {error}")
            return response
        try:
            is_kept = await on_thread(self._keep, key, response.model, text)
        except ConfigurationError as error:  # the answer was paid for: it is used
            self._warn(str(error))
            return response
        return response if is_kept else await self.find(key) or response

    def _warn(self, message: str) -> None:
        """Log what is wrong, once."""
        if not self._has_warned:
            self._has_warned = True
            logger.warning("%s", message)

    def contents(self) -> CacheContents:
        """Return what it holds, as numbers."""
        models: dict[str, int] = {}
        if self.path.exists():
            query = "SELECT model, count(*) FROM answers GROUP BY model ORDER BY model"
            models = dict(self._do(lambda connection: connection.execute(query).fetchall()))
        size = self.path.stat().st_size if self.path.exists() else 0
        return {"path": str(self.path), "answers": sum(models.values()), "bytes": size, "models": models}

    def clear(self) -> int:
        """Forget all answers, and return how many there were."""
        if not self.path.exists():
            return 0

        def delete(connection: sqlite3.Connection) -> int:
            count = connection.execute("DELETE FROM answers").rowcount
            connection.execute("VACUUM")
            return count

        return self._do(delete)

    def close(self) -> None:
        """Close the file. It is opened again when it is used again."""
        with self._lock:
            opened, self._connection = self._connection, None
            if opened is not None and opened[0] == os.getpid():
                opened[1].close()

    def _find(self, key: str) -> Response | None:
        found = self._do(lambda connection: connection.execute("SELECT response FROM answers WHERE key = ?", (key,)).fetchone())
        try:
            return None if found is None else Response.model_validate_json(found[0])
        except ValueError as error:
            raise self._unusable(f"it holds an answer that cannot be read ({one_line(error)})") from error

    def _keep(self, key: str, model: str, text: str) -> bool:
        """Keep an answer, and return whether there was none."""
        row = (key, model, time.time(), text)
        return self._do(lambda connection: connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", row).rowcount == 1)

    def _do(self, action: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the file, one after the other. One that is damaged is set aside, and it is done with a new one."""
        with self._lock:
            try:
                try:
                    return action(self._connected())
                except sqlite3.DatabaseError as error:
                    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:  # the rest of the code says more
                        raise
                    self._set_aside(error)
                    return action(self._connected())
            except (OSError, sqlite3.Error) as error:
                raise self._unusable(str(error)) from error

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None or self._connection[0] != os.getpid():
            self._inode = None
            self._connection = (os.getpid(), self._connect())
        return self._connection[1]

    def _set_aside(self, error: Exception) -> None:
        """Give a damaged file another name, unless another process has done so already."""
        opened, self._connection = self._connection, None
        if opened is not None and opened[0] == os.getpid():
            opened[1].close()
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb") as damaged:
            _lock(damaged.fileno())
            if self._inode != os.fstat(damaged.fileno()).st_ino or self._inode != self.path.stat().st_ino:
                return
            aside = self.path.with_name(f"{self.path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
            for suffix in ("-wal", "-shm", ""):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(f"{self.path}{suffix}", f"{aside}{suffix}")
            logger.warning("the cache %s is damaged (%s): it is set aside as %s, and a new one is begun", self.path, error, aside.name)

    def _unusable(self, reason: str) -> ConfigurationError:
        return ConfigurationError(
            f"the cache {self.path} cannot be used: {reason}. Remove the file, or name another one with {CACHE_VARIABLE}"
        )

    def _check_file(self) -> None:
        """Make the file, or check that one that is there is the user's own and nobody else's to read or to write.

        Raises:
            ConfigurationError: If it is not.
        """
        # Conversations may be private, and whoever can write to it decides what models say.
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
        try:
            status = os.fstat(descriptor)
            self._inode = status.st_ino
            if not stat.S_ISREG(status.st_mode):
                raise self._unusable("it is not a plain file")
            if not hasattr(os, "geteuid"):
                return
            if status.st_uid != os.geteuid():
                raise self._unusable(f"it belongs to another user (uid {status.st_uid}), who can read it and write answers into it")
            if status.st_mode & 0o077:
                os.fchmod(descriptor, 0o600)
                logger.warning(
                    "others could open the cache %s (mode %o), so its answers may not be those of models: now only you can",
                    self.path,
                    stat.S_IMODE(status.st_mode),
                )
        finally:
            os.close(descriptor)

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._check_file()
        # Each statement is a transaction of its own.
        connection = sqlite3.connect(self.path, timeout=_SECONDS_FOR_OTHERS, isolation_level=None, check_same_thread=False)
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError(f"it is of version {version}, and this is version {_VERSION}")
            other = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'answers'").fetchone()
            if other is not None:
                raise sqlite3.DatabaseError(f"it is the database of something else, with a table {other[0]}")
            columns = tuple(name for _, name, *_ in connection.execute("PRAGMA table_info(answers)"))
            if columns not in ((), _COLUMNS):
                raise sqlite3.DatabaseError(f"it is the database of something else, with columns {', '.join(columns)}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")  # what a power cut loses is asked for again
            connection.execute(_TABLES)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        except BaseException:
            connection.close()
            raise
        return connection


def _lock(descriptor: int) -> None:
    """Wait until no other process holds a file that is to be set aside."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextlib.contextmanager
def opened(cache: ResponseCache) -> Iterator[ResponseCache]:
    """Open a cache for a ``with``, and close it afterwards."""
    try:
        cache.open()
        yield cache
    finally:
        cache.close()


class RequestKeys:
    """Says under which keys the answers of one rollout are kept."""

    def __init__(self, cache: ResponseCache, rollout: int) -> None:
        """Begin with a rollout, which has asked nothing yet.

        Args:
            cache: Where answers are kept.
            rollout: Its number within the example.
        """
        self.cache = cache
        self._rollout = rollout
        self._times_asked: Counter[str] = Counter()

    def next_key(
        self,
        answered_by: str,
        asked_model: str,
        prompt: Sequence[Any],
        sampling_args: Any = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> str:
        """Return the key of the request that is made next.

        Args:
            answered_by: The server (see `vfgym.Client.answered_by`).
            asked_model: Name of the model.
            prompt: The conversation.
            sampling_args: Generation parameters.
            tools: The tools.
            **kwargs: What else a client is told, which decides no answer.
        """
        request = {
            "answered_by": answered_by,
            "model": asked_model,
            "messages": plain(as_messages(list(prompt))),
            "tools": [tool.openai for tool in tools or ()],
            "sampling_args": sampling_args or {},
            "rollout": self._rollout,
        }
        text = json.dumps(request, sort_keys=True, default=repr)
        times = self._times_asked[text]
        self._times_asked[text] += 1
        return hashlib.sha256(f"{_VERSION_OF_KEYS} {times} {text}".encode()).hexdigest()
