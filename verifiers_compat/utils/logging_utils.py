"""Logging of this library, and small texts for a terminal.

`setup_logging` is for programs; importing the library configures nothing. The loggers are ``verifiers`` (which environments of
the rollout API use), ``verifiers_compat`` and ``vfgym``.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from verifiers_compat.utils.message_utils import format_messages
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.output.redaction import redact
from vfgym.output.terminal import display_text

LOGGER_NAME = "verifiers"
"""The logger that environments of the rollout API use."""

LOGGERS = (LOGGER_NAME, "verifiers_compat", "vfgym")
"""Everything that `setup_logging` and `log_level` concern."""

LEVEL_VAR = "VF_LOG_LEVEL"
"""Environment variable of the level, where none is given."""

LOG_FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
DATE_FORMAT = "%Y-%m-%d %H:%M:%S"

_OURS = "_verifiers_compat_handler"
_STANDARD_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
_said: set[tuple[str, int, str]] = set()


def log_once(logger: logging.Logger, level: int, msg: str) -> None:
    """Log a message that the process has not logged before, to this logger at this level."""
    key = (logger.name, level, msg)
    if key not in _said:
        _said.add(key)
        logger.log(level, msg, stacklevel=2)


def warning_once(logger: logging.Logger, msg: str) -> None:
    """Log a warning that the process has not logged before, to this logger."""
    log_once(logger, logging.WARNING, msg)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ``timestamp`` (ISO 8601, UTC), ``level``, ``name``, ``message``, ``exception``, and any ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        line: dict[str, Any] = {
            "timestamp": datetime.datetime.fromtimestamp(record.created, datetime.UTC).isoformat(),
            "level": record.levelname,
            "name": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info or record.exc_text:
            line["exception"] = record.exc_text or self.formatException(record.exc_info)  # type: ignore[arg-type]
        line.update({key: value for key, value in record.__dict__.items() if key not in _STANDARD_FIELDS and key not in line})
        return redact(json.dumps(line, default=repr, ensure_ascii=False))


def setup_logging(
    level: str | int | None = None,
    log_format: str | None = None,
    date_format: str | None = None,
    log_file: str | Path | None = None,
    console_logging: bool = True,
    file_logging: bool | None = None,
    json_logging: bool = False,
) -> None:
    """Configure the library's logging: to stderr, and to a file. A second call replaces what the first one set up.

    Args:
        level: The lowest level that is shown (``"INFO"``, ``"debug"``, ``10``); by default the environment variable
            ``VF_LOG_LEVEL``, else ``"INFO"``.
        log_format: Format of a line, as `logging.Formatter` takes it.
        date_format: Format of its time.
        log_file: A file to append to.
        console_logging: Whether to log to stderr.
        file_logging: Whether to log to `log_file`; by default where one is given.
        json_logging: Write JSON lines (`JsonFormatter`) instead of formatted text.

    Raises:
        ConfigurationError: If there is no such level, a file is asked for without `log_file`, or JSON lines are with a format.
    """
    number = _level_number(os.environ.get(LEVEL_VAR) or "INFO" if level is None else level)
    if file_logging and log_file is None:
        raise ConfigurationError("file_logging needs log_file: the file to log to")
    if json_logging and (log_format is not None or date_format is not None):
        raise ConfigurationError("log_format and date_format are for lines of text; json_logging writes JSON lines")
    formatter = JsonFormatter() if json_logging else logging.Formatter(log_format or LOG_FORMAT, date_format or DATE_FORMAT)
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)] if console_logging else []
    if log_file is not None and file_logging is not False:
        Path(log_file).parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(log_file, encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(formatter)
        setattr(handler, _OURS, True)
    for name in LOGGERS:
        logger = logging.getLogger(name)
        for handler in [handler for handler in logger.handlers if hasattr(handler, _OURS)]:
            logger.removeHandler(handler)
            handler.close()
        for handler in handlers:
            logger.addHandler(handler)
        logger.setLevel(number)
        logger.propagate = not handlers  # else a root logger with a handler shows each line twice


@contextlib.contextmanager
def log_level(level: str | int, *names: str) -> Iterator[None]:
    """Set the level of loggers, by default the library's, inside a ``with``; afterwards they have the level that they had.

    Raises:
        ConfigurationError: If there is no such level.
    """
    number = _level_number(level)
    earlier = {logger: logger.level for logger in map(logging.getLogger, names or LOGGERS)}
    for logger in earlier:
        logger.setLevel(number)
    try:
        yield
    finally:
        for logger, before in earlier.items():
            logger.setLevel(before)


def quiet_verifiers() -> contextlib.AbstractContextManager[None]:
    """Show warnings and errors only, inside a ``with``."""
    return log_level(logging.WARNING)


def _level_number(level: str | int) -> int:
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    known = logging.getLevelNamesMapping()
    name = str(level).strip().upper()
    if name.isdecimal():
        return int(name)
    if name not in known:
        raise ConfigurationError(f"there is no log level {level!r}; known: {', '.join(known)}.{did_you_mean(name, known)}")
    return known[name]


def print_prompt_completions_sample(
    prompts: Mapping[str, Any] | Sequence[Any] | None = None,
    completions: Sequence[Any] | int | None = None,
    errors: Sequence[Any] | None = None,
    rewards: Sequence[float] | None = None,
    step: int | None = None,
    num_samples: int = 1,
    *,
    outputs: Mapping[str, Any] | None = None,
    n: int = 3,
) -> None:
    """Print a table of some rollouts: prompt, completion, reward, and error where there are any.

    It is called in two ways: ``print_prompt_completions_sample(outputs, n=3)`` with what `generate` or `evaluate` returned, or
    ``print_prompt_completions_sample(prompts, completions, errors, rewards, step, num_samples=1)``.

    Args:
        prompts: The prompts; or the outputs of a run.
        completions: The completions; or, after the outputs of a run, `n`.
        errors: For each rollout its error, or None; None for no errors.
        rewards: For each rollout its reward.
        step: Number of a training step, for the title.
        num_samples: How many rollouts are shown.
        outputs: The outputs of a run.
        n: How many of them are shown.

    Raises:
        ConfigurationError: If it was called in neither way, or the lists are of different lengths.
    """
    if outputs is None and isinstance(prompts, Mapping):
        outputs, n = prompts, completions if isinstance(completions, int) else n
    if outputs is not None:
        rows = list(outputs["outputs"])
        prompts, completions = [row.get("prompt") for row in rows], [row.get("completion") for row in rows]
        errors, rewards, num_samples = [row.get("error") for row in rows], [row["reward"] for row in rows], n
    if prompts is None or completions is None or rewards is None or isinstance(completions, int):
        raise ConfigurationError("expected the outputs of a run, or prompts, completions, errors, rewards and step")
    errors = [None] * len(prompts) if errors is None else errors
    if not len(prompts) == len(completions) == len(rewards) == len(errors):
        lengths = f"{len(prompts)}, {len(completions)}, {len(rewards)} and {len(errors)}"
        raise ConfigurationError(f"prompts, completions, rewards and errors must be of one length, got {lengths}")
    _print_table(list(zip(prompts, completions, rewards, errors, strict=True))[:num_samples], None if step is None else f"Step {step}")


_NARROWEST_TABLE = 80
"""Characters of a line below which a rollout is shown in lines of their own: in columns, words would be spelled one letter a line."""


def _print_table(rows: Sequence[tuple[Any, Any, float, Any]], title: str | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    heads = ["Prompt", "Completion", "Reward"]
    if any(error is not None for *_, error in rows):
        heads.append("Error")
    cells = [
        (
            format_messages(prompt or []),
            format_messages(completion or []),
            Text(f"{reward:.3f}"),
            Text(display_text(error or ""), style="red"),
        )
        for prompt, completion, reward, error in rows
    ]
    if console.width < _NARROWEST_TABLE:
        if title is not None:
            console.print(title)
        for row in cells:
            for head, cell in zip(heads, row, strict=False):
                if cell or head != "Error":
                    console.print(Text(f"{head}: ", style="bold"), cell, sep="\n" if head in ("Prompt", "Completion") else "")
        return
    table = Table(title=title, show_lines=True, expand=True)
    for head in heads:
        table.add_column(head, ratio={"Reward": None, "Error": 1}.get(head, 2), overflow="fold", no_wrap=head == "Reward")
    for row in cells:
        table.add_row(*row[: len(heads)])
    console.print(table)


def print_time(time_s: float) -> str:
    """Return a time in seconds as text: two units at most.

    >>> print_time(0.25), print_time(75), print_time(7260), print_time(90000)
    ('250ms', '1m 15s', '2h 1m', '1d 1h')
    """
    if round(time_s * 1000) < 1000:
        return f"{time_s * 1000:.0f}ms"
    if round(time_s, 1) < 60:
        return f"{time_s:.1f}s"
    seconds = round(time_s)
    units = [("d", seconds // 86400), ("h", seconds // 3600 % 24), ("m", seconds // 60 % 60), ("s", seconds % 60)]
    first = next(index for index, (_, count) in enumerate(units) if count)
    return " ".join(f"{count}{unit}" for unit, count in units[first : first + 2] if count)


def print_size(num_bytes: float) -> str:
    """Return a number of bytes as text.

    >>> print_size(512), print_size(2048), print_size(5 * 1024**3)
    ('512 B', '2.0 KB', '5.0 GB')
    """
    size = float(num_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        decimals = 0 if unit == "B" else 1
        if round(abs(size), decimals) < 1024:
            return f"{size:.{decimals}f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


def truncate(s: str, limit: int = 200) -> str:
    """Return a text of at most `limit` characters; one that was cut ends with ``...``.

    >>> truncate("abcdefgh", 6)
    'abc...'
    """
    return s if len(s) <= limit else s[: max(0, limit - 3)] + "..."[: max(0, limit)]
