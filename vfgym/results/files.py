"""The directory of a run: rows appended as they come, metadata replaced as a whole, one writer at a time."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import stat
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Self

from vfgym.bounded_json import parse_json
from vfgym.errors import Error
from vfgym.results.dropped_values import DroppedValueLog
from vfgym.results.metadata import GenerateOutputs
from vfgym.results.plain_json import json_text, number_as_text
from vfgym.results.rows import row_line, row_order
from vfgym.results.statistics import with_statistics

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing keeps two runs out of one directory there
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from vfgym.results.resume import EarlierRun

logger = logging.getLogger(__name__)

ROWS = "results.jsonl"
METADATA = "metadata.json"
UNMATCHED = "unmatched.jsonl"
"""Rows of earlier runs that belong to no rollout of the run that went on in their directory."""
NOT_WRITTEN = frozenset({"path_to_save", "date"})
"""Metadata that stay in memory."""
_SECONDS_BETWEEN_METADATA = 1.0
_SHARE_OF_TIME = 0.05
"""Most of the time that goes into keeping the metadata up to date."""


class ResultsError(Error, OSError):
    """Results could not be written or read."""

    outputs: GenerateOutputs | None = None
    """What was finished when a write failed."""


class Piece(NamedTuple):
    """Where the line of a row stands in a file."""

    order: tuple[int, int]
    """What the row is sorted by."""
    start: int
    stop: int


def default_results_path(env_id: str, model: str, root: str | Path = "outputs", *, is_model: bool = True) -> Path:
    """Return a fresh directory name below `root`: ``evals/{env_id}--{model}/{8 hex digits}``, with ``--`` for each slash.

    That of an agent is ``evals/{env_id}--agent={name}/{8 hex digits}``, which no model has: names of models are written without signs.
    """
    name = _as_name(model) if is_model else f"agent={_as_name(model)}"
    return Path(root) / "evals" / f"{_as_name(env_id)}--{name}" / uuid.uuid4().hex[:8]


def metadata_as_written(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata as they are written: without what stays in memory, the statistics as they can be read back."""
    return with_statistics({key: value for key, value in metadata.items() if key not in NOT_WRITTEN}, number_as_text)


def _as_name(text: str) -> str:
    return re.sub(r"[^\w.+-]", "-", text.replace("/", "--"))


def not_a_directory(path: Path) -> ResultsError:
    """Return the error that says that a file stands where a run's directory should be."""
    file = next((each for each in (path, *path.parents) if each.exists() and not each.is_dir()), path)
    return ResultsError(f"cannot write results to {path}: results_path must be a directory, and {file} is a file. Choose another path")


def cannot_write(path: Path, error: OSError) -> ResultsError:
    """Return the error that says that a run's directory cannot be written."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return not_a_directory(path)
    reason = error.strerror or str(error)
    return ResultsError(f"cannot write results to {path}: {reason}. Give a directory that can be written, with room on its disk")


@contextlib.contextmanager
def _writing_to(path: Path) -> Iterator[None]:
    """Raise what goes wrong meanwhile as the `ResultsError` of a directory that cannot be written."""
    try:
        yield
    except ResultsError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from error


def is_in_use(path: Path) -> bool:
    """Say whether a run is writing its results to a directory now."""
    try:
        lock = lock_directory(path)
    except ResultsError:
        return True
    if lock is not None:
        os.close(lock)
    return False


def lock_directory(path: Path) -> int | None:
    """Keep other runs out of a directory until the descriptor that is returned is closed, or the process ends, however it does.

    Raises:
        ResultsError: If another run is in it.
    """
    if fcntl is None:
        return None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ResultsError(f"another run is writing its results to {path}: wait until it has ended, or choose another directory") from None
    except OSError:  # a file system without locks
        os.close(descriptor)
        return None
    return descriptor


def open_plain(file: Path) -> BinaryIO:
    """Open a file to read it, if it is one: to open a pipe waits for somebody who writes to it.

    Raises:
        ResultsError: If it is a pipe, a socket or a device.
        OSError: If it cannot be opened.
    """
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_plain(file)
    return open(descriptor, "rb")


def _not_plain(file: Path) -> ResultsError:
    return ResultsError(f"{file} is not a plain file: it is a directory, a pipe or a device, and holds no results")


class ResultsWriter:
    """Writes one run's results into a directory."""

    def __init__(self, path: str | Path, metadata: Mapping[str, Any], *, earlier: EarlierRun | None = None) -> None:
        """Make the directory and both files, so that what is wrong with it shows before any rollout runs.

        Args:
            path: Directory of the results.
            metadata: What is known of the run as it begins.
            earlier: What the directory holds of the run already. Rows that are not kept, and a last line that is not whole,
                are removed from the file now; those that belong to no rollout of the run are added to ``unmatched.jsonl`` first.

        Raises:
            ResultsError: If the directory or the files cannot be made, it holds results and there is no `earlier`, they are
                not those that `earlier` read, or another run writes to it.
        """
        self.path = Path(path)
        self._pieces: list[Piece] = []
        self._next_metadata = 0.0
        self._broken: ResultsError | None = None
        self._text_log = DroppedValueLog()
        with _writing_to(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._locked = lock_directory(self.path)
        try:
            self._rows = self._open(earlier)
        except BaseException:
            self._unlock()
            raise
        try:
            self.write_metadata(metadata)
        except BaseException:
            self.close()
            raise

    def _open(self, earlier: EarlierRun | None) -> io.RawIOBase:
        file = self.path / ROWS
        with _writing_to(self.path):
            if earlier is not None:
                if _identity(file) != earlier.identity:
                    raise ResultsError(f"{file} has changed since it was read: another run has written to it. Resume again")
                if earlier.needs_rewrite:
                    _add(self.path / UNMATCHED, earlier.find_unmatched_lines())
                    _replace(file, earlier.lines())
                self._pieces = earlier.pieces()
            if file.is_fifo():  # which is opened when somebody reads from it
                raise _not_plain(file)
            # Unbuffered: a row is one write call, and is with the system when that returns.
            rows: io.RawIOBase = open(file, "ab", buffering=0)  # noqa: SIM115 (held open for the whole run)
        self._end = rows.tell()
        if earlier is None and self._end > 0:
            rows.close()
            raise ResultsError(
                f"{self.path} holds the results of another run already: choose another directory, remove it, or resume that run"
            )
        return rows

    def append(self, row: Mapping[str, Any]) -> None:
        """Add one row.

        Raises:
            ResultsError: If it cannot be written.
        """
        if self._broken is not None:
            raise self._broken
        data = (row_line(row, text_log=self._text_log) + "\n").encode()
        rest = memoryview(data)
        try:
            while rest:  # a raw write may take a part only, when the disk is nearly full
                rest = rest[self._rows.write(rest) or 0 :]
        except OSError as error:
            failure = cannot_write(self.path, error)
            self._cut_back(failure)
            raise failure from error
        self._pieces.append(Piece(row_order(row), self._end, self._end + len(data)))
        self._end += len(data)

    def _cut_back(self, failure: ResultsError) -> None:
        """Remove the part of a row that was written. Where that cannot be done, nothing may be written after it."""
        try:
            self._rows.truncate(self._end)
        except OSError:
            self._broken = failure

    def write_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata: a reader sees the old file or the new one, never a part.

        Raises:
            ResultsError: If it cannot be written.
        """
        kept = metadata_as_written(metadata)
        target = self.path / METADATA
        temporary = target.with_suffix(".json.tmp")
        with _writing_to(self.path):
            temporary.write_text(json_text(kept, is_indented=True) + "\n", encoding="utf-8")
            os.replace(temporary, target)
        self._next_metadata = time.monotonic() + _SECONDS_BETWEEN_METADATA

    def update_metadata(self, make: Callable[[], Mapping[str, Any]]) -> None:
        """Replace the metadata with what `make` gives, about once a second; it does nothing in between.

        Where that takes long, it is done more rarely.

        Raises:
            ResultsError: If it cannot be written.
        """
        started = time.monotonic()
        if started >= self._next_metadata:
            self.write_metadata(make())
            ended = time.monotonic()
            self._next_metadata = ended + max(_SECONDS_BETWEEN_METADATA, (ended - started) / _SHARE_OF_TIME)

    def finish(self, metadata: Mapping[str, Any], rows: Iterable[Mapping[str, Any]] = ()) -> None:
        """End the run: put the rows in order, by example and rollout, and write the metadata. Nothing can be added then.

        Args:
            metadata: What the run is, and what came of it.
            rows: All rows, settled: what failed ones count with is written into their lines.

        Raises:
            ResultsError: If a file cannot be written. The rows stand on disk in any case.
        """
        self._rows.close()
        in_order = sorted(self._pieces, key=lambda piece: piece.order)
        settled = {row_order(row): row["counted_reward"] for row in rows if row["failed"]}
        if settled or in_order != self._pieces:
            file = self.path / ROWS
            with _writing_to(self.path), file.open("rb") as written:
                _replace(file, (_settle_line(read_span(written, piece.start, piece.stop), settled.get(piece.order)) for piece in in_order))
        self.write_metadata(metadata)

    def close(self) -> None:
        """Close the file, and let others write to the directory. A second call does nothing."""
        self._rows.close()
        self._unlock()

    def discard(self) -> None:
        """Remove the files that were made, and the directories that have nothing else in them."""
        self.close()
        for name in (ROWS, METADATA):
            (self.path / name).unlink(missing_ok=True)
        for folder in (self.path, self.path.parent):
            try:
                folder.rmdir()
            except OSError:  # there is something else in it
                return

    def _unlock(self) -> None:
        if self._locked is not None:
            os.close(self._locked)
            self._locked = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def write_results(path: str | Path, results: GenerateOutputs) -> None:
    """Write whole results to a directory of their own, as a run writes them.

    Raises:
        ResultsError: If they cannot be written, or the directory holds results already.
    """
    with ResultsWriter(path, results["metadata"]) as writer:
        for row in results["outputs"]:
            writer.append(row)
        writer.finish(results["metadata"])


def _identity(file: Path) -> tuple[int, int]:
    """Return what tells a file of rows from itself after more was written: rows are appended, or the file is another one."""
    status = file.stat()
    return status.st_ino, status.st_size


def _settle_line(line: bytes, counted: float | None) -> bytes:
    """Return the line of a row that counts with this number; None for one whose number is the one in the line."""
    if counted is None:
        return line
    row = parse_json(line)
    return line if row["counted_reward"] == counted else json_text({**row, "counted_reward": number_as_text(counted)}).encode() + b"\n"


def read_span(file: BinaryIO, start: int, stop: int) -> bytes:
    """Return what stands in a file from one place to another."""
    file.seek(start)
    return file.read(stop - start)


def _add(file: Path, lines: Iterable[bytes]) -> None:
    """Add lines to a file. Those that stand in it are left out: a run may have been stopped after it had added them."""
    added = dict.fromkeys(lines)
    if not added:
        return
    before = file.read_bytes() if file.exists() else b""
    if before and not before.endswith(b"\n"):
        before += b"\n"
    known = set(before.splitlines(keepends=True))
    _replace(file, [before, *(line for line in added if line not in known)])


def _replace(file: Path, lines: Iterable[bytes]) -> None:
    """Write a file anew: it is the old one until the new one is whole, and on the disk."""
    temporary = file.with_suffix(".jsonl.tmp")
    try:
        with temporary.open("wb") as target:
            target.writelines(lines)
            target.flush()
            os.fsync(target.fileno())
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
