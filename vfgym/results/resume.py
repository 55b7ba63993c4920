"""Resuming: what an earlier run has done of this one, found by the fingerprints of its tasks."""

from __future__ import annotations

import logging
import operator
import os
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

from vfgym.bounded_json import parse_json
from vfgym.endings import ending_of
from vfgym.errors import ConfigurationError
from vfgym.limits import Spending
from vfgym.messages import MESSAGE_TYPES, MessageTypes
from vfgym.output.redaction import redact_data
from vfgym.results.counting import counted_reward
from vfgym.results.files import METADATA, ROWS, UNMATCHED, Piece, ResultsError, is_in_use, not_a_directory, open_plain, read_span
from vfgym.results.metadata import Run, package_versions
from vfgym.results.plain_json import json_text
from vfgym.results.reading import ResultLine, RowsFile, read_metadata, read_rows, report_cut, take_messages
from vfgym.results.rows import RolloutOutput, row_line, row_order

logger = logging.getLogger(__name__)

SAME_SETTINGS = (
    "env_id",
    "model",
    "is_model",
    "rollouts_per_example",
    "env_args",
    "sampling_args",
    "seed",
    "limits_each",
    "both_seats",
    "shard",
)
"""Metadata in which a run must agree with one that it goes on with."""

_WITHOUT_MENTION: Mapping[str, Any] = {"both_seats": False, "scored_again": False, "shard": None}
"""What is true of a run whose metadata say nothing else. One that was scored again is not gone on with: its rubric is another one."""

_SAID_ANYWAY: Mapping[str, Mapping[str, Any]] = {"sampling_args": {"n": 1, "extra_body": {}}}
"""What some writers add to a setting, and changes nothing."""


FailureReward: TypeAlias = Callable[[int], float | None]
"""Gives what rollouts of an example count with that failed, as their environment declares."""


class Slot(NamedTuple):
    """One rollout of a run's plan."""

    example_id: int
    rollout: int
    """Its number within the example, from 0."""
    fingerprint: str | None
    """That of its task; None where the task cannot be read."""


class _Kept(NamedTuple):
    """A row of the earlier run that this run keeps."""

    line: ResultLine
    text: bytes | None
    """Its line where that has to be written anew: the example has another id now, the row had no fingerprint, or its line no end."""


class EarlierRun:
    """What an earlier run into the same directory has done of this one."""

    def __init__(
        self,
        path: Path,
        file: RowsFile,
        kept: Mapping[Slot, ResultLine],
        unmatched: Iterable[ResultLine],
        seconds: float,
        types: MessageTypes,
        failure_reward: FailureReward | None,
    ) -> None:
        """Keep the rows that were matched; `load` reads and matches them."""
        self.seconds = seconds
        """What the run took so far."""
        self.identity = file.identity
        self._path = path
        # A last line may be whole but for its end.
        unended = -1 if file.is_whole else file.identity[1]
        changed = {id(line): _adopt(line.row, slot, failure_reward) or line.stop == unended for slot, line in kept.items()}
        self._kept = [_Kept(line, _text(line.row) if changed[id(line)] else None) for line in file.lines if id(line) in changed]
        self._unmatched = [(line.start, line.stop) for line in unmatched]
        self._by_place = {(slot.example_id, slot.rollout): line.row for slot, line in kept.items()}
        self.needs_rewrite = not file.is_whole or len(self._kept) < len(file.lines) or any(each.text is not None for each in self._kept)
        """Whether the file must be written anew before rows are added."""
        # Only now: how a row stands on disk does not follow from its message objects, which leave out what is null.
        malformed = sum(not take_messages(line.row, types) for line, _ in self._kept)
        if malformed:
            logger.warning("%d rows of %s hold malformed messages, and are kept as plain data", malformed, path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        run: Run,
        slots: Iterable[Slot],
        *,
        redo_errors: bool = False,
        whole_groups: bool = False,
        types: MessageTypes = MESSAGE_TYPES,
        failure_reward: FailureReward | None = None,
    ) -> Self | None:
        """Read what an earlier run has done.

        A row is of a slot if its task has the slot's fingerprint and it has the slot's number: whether its example has the
        same id does not matter, since a data set may have been reordered, but where several tasks are equal each keeps its
        own rows. Rows without a fingerprint (of other writers) go by their example's id, in their order. The lines of rows
        that are of no slot are put aside in ``unmatched.jsonl`` when the run begins to write.

        Args:
            path: Directory of the results.
            run: What this run is.
            slots: All its rollouts.
            redo_errors: Whether rollouts with an error are left out, to be played again.
            whole_groups: Whether an example of which any rollout is missing is left out as a whole, since its rollouts are
                scored together.
            types: The message class for each role: the rows that are kept have message objects, as new ones do.
            failure_reward: Gives what rollouts of an example count with that failed, as is declared now. Without it rows are left as they
                are, and are not told what they count with.

        Returns:
            What was done; None if the directory holds no rows.

        Raises:
            ConfigurationError: If this run has other settings than the earlier one, or none of its tasks.
            ResultsError: If the files cannot be read.
        """
        path = Path(path)
        if not has_rows(path):
            return None
        metadata = read_metadata(path)
        _compare(path, metadata, run)
        file = read_rows(path, metadata)
        report_cut(path, file)
        slots = list(slots)
        matched = _match(file.lines, slots)
        if file.lines and not matched:
            raise ConfigurationError(
                f"cannot resume {path}: none of its {len(file.lines)} rows belongs to a task of this run. Is its data set the same,"
                " and made the same way in each process? Otherwise choose another directory"
            )
        taken = set(map(id, matched.values()))
        unmatched = [line for line in file.lines if id(line) not in taken]
        if unmatched:
            logger.warning(
                "%d rows of %s belong to no task of this run, or to a rollout that has another row: they are put aside in %s",
                len(unmatched),
                path,
                path / UNMATCHED,
            )
        kept = {slot: line for slot, line in matched.items() if not (redo_errors and line.row["error"] is not None)}
        if whole_groups:
            partial = {slot.example_id for slot in slots if slot not in kept}
            kept = {slot: line for slot, line in kept.items() if slot.example_id not in partial}
        logger.info("resuming %s: %d of %d rollouts are done, %d are to be played", path, len(kept), len(slots), len(slots) - len(kept))
        return cls(path, file, kept, unmatched, _seconds(metadata), types, failure_reward)

    @property
    def rows(self) -> list[RolloutOutput]:
        """The rows that are kept, in the order of the file."""
        return [each.line.row for each in self._kept]

    def row_of(self, example_id: int, rollout: int) -> RolloutOutput | None:
        """Return the row of one rollout of this run; None if it is to be played."""
        return self._by_place.get((example_id, rollout))

    def lines(self) -> Iterator[bytes]:
        """Give the lines of the rows that are kept, as they must stand in the file."""
        with (self._path / ROWS).open("rb") as file:
            for line, text in self._kept:
                yield read_span(file, line.start, line.stop) if text is None else text

    def find_unmatched_lines(self) -> Iterator[bytes]:
        """Give the lines of the rows that belong to no rollout of this run, each with its end."""
        with (self._path / ROWS).open("rb") as file:
            for start, stop in self._unmatched:
                yield read_span(file, start, stop).removesuffix(b"\n") + b"\n"

    def pieces(self) -> list[Piece]:
        """Return where each row that is kept stands in the file, once it was written anew if it needed to be."""
        pieces = []
        end = 0
        for line, text in self._kept:
            size = line.stop - line.start if text is None else len(text)
            pieces.append(Piece(row_order(line.row), end, end + size))
            end += size
        return pieces


def has_rows(path: Path) -> bool:
    """Say whether a directory holds rows of a run."""
    try:
        with open_plain(path / ROWS) as file:
            return os.fstat(file.fileno()).st_size > 0
    except FileNotFoundError:
        return False
    except NotADirectoryError as error:
        raise not_a_directory(path) from error
    except OSError as error:
        raise ResultsError(f"cannot read results from {path}: {error}") from error


def _text(row: RolloutOutput) -> bytes:
    return (row_line(row) + "\n").encode()


def _adopt(row: RolloutOutput, slot: Slot, failure_reward: FailureReward | None) -> bool:
    """Give a row the names that this run has for its rollout, and what it counts with. Say whether any of that is new."""
    names: dict[str, Any] = {"example_id": slot.example_id, "rollout": slot.rollout}
    if slot.fingerprint is not None:
        names["fingerprint"] = slot.fingerprint
    if failure_reward is not None:
        ending, declared = ending_of(row), failure_reward(slot.example_id)
        names["counted_reward"] = counted_reward(ending, row["reward"], declared)
        if not ending.counts_with_return:
            names["failure_reward"] = declared
    is_changed = any(key not in row or not _are_equal(row[key], value) for key, value in names.items())
    row.update(names)
    return is_changed


def _are_equal(one: Any, other: Any) -> bool:
    return one is other or one == other or (one != one and other != other)  # NaN is not equal to itself


def earlier_metadata(path: Path | None) -> dict[str, Any]:
    """Return the metadata of a run that was begun in a directory; nothing where none was.

    Raises:
        ResultsError: If they cannot be read.
    """
    return {} if path is None or not (path / METADATA).is_file() else read_metadata(path)


def recorded_spending(metadata: Mapping[str, Any]) -> Spending:
    """Return what the metadata of a run say that it cost so far, and how many requests it gave up."""
    cost, abandoned = metadata.get("cost"), metadata.get("abandoned_requests")
    known = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None
    return Spending(cost=known, abandoned=abandoned if isinstance(abandoned, int) else 0)


def _seconds(metadata: Mapping[str, Any]) -> float:
    seconds = metadata.get("time", metadata.get("time_ms", 0.0) / 1000)
    return float(seconds) if isinstance(seconds, int | float) else 0.0


# Settings


def find_differing_setting(metadata: Mapping[str, Any], settings: Mapping[str, Any]) -> str | None:
    """Return the first setting in which a run differs from another one's metadata; None if all agree.

    What only one of the two knows is not compared.
    """
    if metadata.get("base_url"):  # older versions did not say more of whether a model was asked
        metadata = {"is_model": True, **metadata}
    metadata, settings = {**_WITHOUT_MENTION, **metadata}, {**_WITHOUT_MENTION, **settings}
    for name in (*SAME_SETTINGS, "scored_again"):
        if name in metadata and name in settings and _comparable(name, metadata[name]) != _comparable(name, settings[name]):
            return name
    return None


def _comparable(name: str, value: Any) -> Any:
    """Return a setting as it can be compared with one that was read: as it stands on disk, so without secrets; without addresses, too.

    An empty text, list or mapping is None; 0 and false say something.
    """
    value = redact_data(value)
    if name in _SAID_ANYWAY and isinstance(value, Mapping | None):
        value = {**_SAID_ANYWAY[name], **(value or {})}
    plain = parse_json(re.sub(r" at 0x[0-9a-fA-F]+", "", json_text(value)))
    return None if plain in ("", [], {}) else plain


def check_settings(path: str | Path, metadata: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Check that a run with these settings can go on with another one's results.

    Args:
        path: Directory of the results.
        metadata: Their metadata.
        settings: Those of `SAME_SETTINGS` that are known, and ``num_examples``.

    Raises:
        ConfigurationError: If they differ, or it had more examples.
    """
    name = find_differing_setting(metadata, settings)
    if name is not None:
        before, now = redact_data([metadata.get(name, False), settings.get(name, False)])
        raise ConfigurationError(
            f"cannot resume {path}: its {name} is {before!r}, and this run's is {now!r}. Give the same, or choose another directory"
        )
    before = metadata.get("num_examples", 0)
    if isinstance(before, int) and settings["num_examples"] < before:
        raise ConfigurationError(
            f"cannot resume {path}: its num_examples is {before}, and this run's is {settings['num_examples']}. Give at least as many, or"
            " choose another directory"
        )


def _compare(path: Path, metadata: Mapping[str, Any], run: Run) -> None:
    """Refuse to go on with a run that has other settings, and warn of one that has other columns, or was made by other code."""
    check_settings(path, metadata, {name: getattr(run, name) for name in (*SAME_SETTINGS, "num_examples")})
    columns = metadata.get("state_columns")
    missing = [name for name in run.state_columns if name not in (columns or ())]
    if missing:
        logger.warning("the rows that %s holds already are without the state columns %s", path, ", ".join(missing))
    changed = [
        *_describe_changes(metadata.get("version_info"), run.version_info),
        *_describe_changes(metadata.get("versions"), package_versions()),
    ]
    if changed:
        logger.warning("the rows that %s holds already were made by other code than the new ones: %s", path, ", ".join(changed))


def _describe_changes(before: Any, now: Mapping[str, Any]) -> Iterator[str]:
    """Give what is another version now, in words, where both are known."""
    for name, version in now.items():
        known = before.get(name) if isinstance(before, Mapping) else None
        if known is not None and version is not None and known != version:
            yield f"{name} was {known} and is {version}"


# Matching


def _match(lines: Sequence[ResultLine], slots: Sequence[Slot]) -> dict[Slot, ResultLine]:
    """Find the row of each slot, where there is one."""
    exact: dict[tuple[Any, ...], ResultLine] = {}
    spare: defaultdict[tuple[Any, ...], deque[ResultLine]] = defaultdict(deque)
    unmarked: defaultdict[int, list[ResultLine]] = defaultdict(list)
    # Of several rows for one slot, one without an error counts.
    for line in sorted(lines, key=lambda line: line.row["error"] is not None):
        row = line.row
        fingerprint, place = row.get("fingerprint"), row_order(row)
        if fingerprint is None:
            unmarked[row["example_id"]].append(line)
        elif (fingerprint, *place) not in exact:
            exact[(fingerprint, *place)] = line
    found: dict[Slot, ResultLine] = {}
    for slot in slots:
        line_of_slot = exact.pop((slot.fingerprint, slot.example_id, slot.rollout), None)
        if line_of_slot is not None:
            found[slot] = line_of_slot
    for (fingerprint, _, rollout), line in exact.items():
        spare[fingerprint, rollout].append(line)
    for slot in slots:
        if slot in found:
            continue
        elsewhere = spare.get((slot.fingerprint, slot.rollout)) if slot.fingerprint is not None else None
        if elsewhere:
            found[slot] = elsewhere.popleft()
            continue
        candidates = unmarked.get(slot.example_id, [])
        position = next((i for i, line in enumerate(candidates) if line.row.get("rollout", slot.rollout) == slot.rollout), None)
        if position is not None:
            found[slot] = candidates.pop(position)
    return found


# Finding a run to resume


def find_incomplete(
    folder: str | Path, settings: Mapping[str, Any], *, redo_errors: bool = False, or_finished: bool = False
) -> Path | None:
    """Return the newest run that can be resumed and has something left to do; None if there is none.

    A run that is going on now is not counted. Where none is found, the log names the runs that have something left to do, and says
    why they cannot be resumed. It names those that cannot be read, too.

    Args:
        folder: Where the directories of runs lie.
        settings: Metadata that a run must agree in (see `SAME_SETTINGS`), and the ``num_examples`` that it may have at most;
            -1 for any number.
        redo_errors: Whether rollouts with an error count as left to do.
        or_finished: Whether the newest run that fits is returned even if it has nothing left to do.
    """
    newest_first = sorted(Path(folder).glob(f"*/{METADATA}"), key=lambda file: file.stat().st_mtime, reverse=True)
    others: list[tuple[Path, str, dict[str, Any]]] = []
    for file in newest_first:
        path = file.parent
        try:
            metadata = read_metadata(path)
            reason = _why_not(path, metadata, settings)
            if reason is not None:
                others.append((path, reason, metadata))
                continue
            total = _num_rollouts(metadata)
            rows = [line.row for line in read_rows(path, metadata).lines] if has_rows(path) else []
        except OSError as error:
            logger.warning("%s is passed over: %s", path, error)
            continue
        except (KeyError, TypeError) as error:
            logger.warning("%s is passed over: its %s is not that of a run: %r", path, METADATA, error)
            continue
        if or_finished or len(rows) < total or (redo_errors and any(row["error"] is not None for row in rows)):
            return path
    for path, reason, metadata in others:  # only now: it takes a while to count the rows of many runs
        _tell_what_is_left(path, reason, metadata)
    return None


def _tell_what_is_left(path: Path, reason: str, metadata: Mapping[str, Any]) -> None:
    """Warn of a run that has something left to do, and cannot be resumed."""
    try:
        total = _num_rollouts(metadata)
        done = _num_rows(path)
    except (KeyError, TypeError):  # somebody else's file of that name
        return
    except OSError as error:
        logger.warning("%s is passed over: %s", path, error)
        return
    if done < total:
        logger.warning("%s, with %d of %d rollouts done, is not resumed: %s", path, done, total, reason)


def _num_rollouts(metadata: Mapping[str, Any]) -> int:
    """Return how many rollouts a run has, done or not."""
    return operator.index(metadata["num_examples"]) * operator.index(metadata["rollouts_per_example"])


def _why_not(path: Path, metadata: Mapping[str, Any], settings: Mapping[str, Any]) -> str | None:
    """Return why a run cannot be resumed with these settings; None if it can."""
    name = find_differing_setting(metadata, settings)
    if name is not None:
        return f"its {name} is {redact_data(metadata.get(name, False))!r}, not {redact_data(settings.get(name, False))!r}"
    most = settings.get("num_examples", -1)
    if -1 < most < metadata["num_examples"]:
        return f"its num_examples is {metadata['num_examples']}, and {most} are asked for: ask for at least as many"
    return "it is going on now" if is_in_use(path) else None


def _num_rows(path: Path) -> int:
    """Return how many whole lines a run has written, without reading what they say."""
    if not has_rows(path):
        return 0
    with open_plain(path / ROWS) as file:
        return sum(line.endswith(b"\n") for line in file)
