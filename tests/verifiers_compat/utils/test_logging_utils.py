"""Logging of the rollout API's helpers, the sample table in both call shapes, and texts for a terminal."""

from __future__ import annotations

import json
import logging
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verifiers_compat.utils import logging_utils
from verifiers_compat.utils.logging_utils import (
    LOGGER_NAME,
    LOGGERS,
    JsonFormatter,
    log_level,
    log_once,
    print_prompt_completions_sample,
    print_size,
    print_time,
    quiet_verifiers,
    setup_logging,
    truncate,
    warning_once,
)
from vfgym.output.redaction import Secret


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Put the loggers back as they were."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    yield
    setup_logging(console_logging=False)
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
        logger.level, logger.propagate, logger.handlers = level, propagate, handlers


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def test_every_logger_of_the_library_is_set_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To stderr and to a file, once each, from the level that is given."""
    file = tmp_path / "new" / "run.log"
    setup_logging("debug", log_format="%(name)s %(message)s", log_file=file)
    [first] = [handler for handler in logging.getLogger("vfgym").handlers if isinstance(handler, logging.FileHandler)]
    setup_logging("info", log_format="%(name)s %(levelname)s %(message)s", log_file=file)
    for name in (LOGGER_NAME, "verifiers_compat.utils", "vfgym.episode"):
        logging.getLogger(name).info("höre")
        logging.getLogger(name).debug("too low")
    expected = ["verifiers INFO höre", "verifiers_compat.utils INFO höre", "vfgym.episode INFO höre"]
    assert _lines(file) == expected
    assert capsys.readouterr().err.splitlines() == expected
    assert first.stream is None, "the file of the first call is closed"
    setup_logging(log_format="%(asctime)s", date_format="now", log_file=file, console_logging=False)
    logging.getLogger("vfgym").info("x")
    assert (_lines(file), capsys.readouterr().err) == ([*expected, "now"], "")
    assert [logging.getLogger(name).propagate for name in LOGGERS] == [False] * 3
    setup_logging(console_logging=False)
    assert [logging.getLogger(name).propagate for name in LOGGERS] == [True] * 3


def test_the_level_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger(LOGGER_NAME)
    monkeypatch.delenv("VF_LOG_LEVEL", raising=False)
    setup_logging()
    assert logger.level == logging.INFO
    monkeypatch.setenv("VF_LOG_LEVEL", "warning")
    setup_logging()
    assert logger.level == logging.WARNING
    for level, number in ((10, 10), (0, 0), (" 15 ", 15), ("error", logging.ERROR)):
        setup_logging(level)
        assert logger.level == number
    monkeypatch.setenv("VF_LOG_LEVEL", "")
    setup_logging()
    assert logger.level == logging.INFO


def test_importing_configures_nothing() -> None:
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in map(logging.getLogger, LOGGERS)]
    runpy.run_path(str(logging_utils.__file__))
    assert [(logger.level, logger.propagate, list(logger.handlers)) for logger in map(logging.getLogger, LOGGERS)] == before


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    setup_logging("INFO", log_file=file, console_logging=False, json_logging=True)
    logging.getLogger("vfgym").info("a %s", "line\n2", extra={"example_id": 3, "path": file})
    try:
        raise KeyError("x")
    except KeyError:
        logging.getLogger("vfgym").exception("failed")
    logging.getLogger("vfgym").info("x", extra={"level": "mine", "timestamp": 0, "key": str(Secret("sk-abcdefghijklmnop"))})
    first, second, third = map(json.loads, _lines(file))
    assert first["path"] == repr(file)
    assert first.keys() == {"timestamp", "level", "name", "message", "example_id", "path"}
    assert (third["level"], third["timestamp"] == 0, "abcdefghij" in third["key"]) == ("INFO", False, False)
    assert {key: first[key] for key in ("level", "name", "message", "example_id")} == {
        "level": "INFO",
        "name": "vfgym",
        "message": "a line\n2",
        "example_id": 3,
    }
    assert first["timestamp"].endswith("+00:00")
    assert second["exception"].endswith("KeyError: 'x'")
    assert isinstance(JsonFormatter(), logging.Formatter)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"level": "INFOO"}, "there is no log level 'INFOO'; known: .*Did you mean `INFO`"),
        ({"level": ""}, "there is no log level ''"),
        ({"level": True}, "there is no log level True"),
        ({"json_logging": True, "date_format": ""}, "json_logging"),
        ({"file_logging": True}, "log_file"),
        ({"json_logging": True, "log_format": "%(message)s"}, "json_logging"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        setup_logging(**options)


def test_a_file_can_be_switched_off(tmp_path: Path) -> None:
    setup_logging(log_file=tmp_path / "run.log", file_logging=False)
    logging.getLogger("vfgym").warning("x")
    assert not (tmp_path / "run.log").exists()


def test_levels_are_restored() -> None:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    loggers[0].setLevel(logging.INFO)
    before = [logger.level for logger in loggers]
    with log_level("DEBUG"):
        assert [logger.level for logger in loggers] == [logging.DEBUG] * 3
        with quiet_verifiers():
            assert [logger.level for logger in loggers] == [logging.WARNING] * 3
        with pytest.raises(KeyError), quiet_verifiers():
            raise KeyError
        assert [logger.level for logger in loggers] == [logging.DEBUG] * 3
    assert [logger.level for logger in loggers] == before
    with pytest.raises(ValueError, match="no log level"), log_level("loud"):
        pass
    one, other = logging.getLogger("test.one"), logging.getLogger("test.two")
    with log_level(logging.ERROR, "test.one", "test.two"):
        assert [logger.level for logger in (one, other, *loggers)] == [logging.ERROR, logging.ERROR, *before]
    assert (one.level, other.level) == (0, 0)


def test_once_is_once(caplog: pytest.LogCaptureFixture) -> None:
    """For each logger, level and message."""
    logger, other = logging.getLogger("test.once"), logging.getLogger("test.other")
    for _ in range(3):
        warning_once(logger, "careful")
        warning_once(other, "careful")
        log_once(logger, logging.ERROR, "careful")
        warning_once(logger, "careful again")
    assert [(record.name, record.levelname) for record in caplog.records] == [
        ("test.once", "WARNING"),
        ("test.other", "WARNING"),
        ("test.once", "ERROR"),
        ("test.once", "WARNING"),
    ]
    assert {record.filename for record in caplog.records if record.levelname == "ERROR"} == {Path(__file__).name}


def _row(number: int, error: Any = None) -> dict[str, Any]:
    prompt = [{"role": "user", "content": f"[b]question {number}"}]
    return {"prompt": prompt, "completion": [{"role": "assistant", "content": f"answer {number}"}], "reward": number / 4, "error": error}


def test_the_sample_of_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Three rollouts by default; text that looks like markup stays as it is."""
    outputs = {"outputs": [_row(number) for number in range(5)], "metadata": {}}
    print_prompt_completions_sample(outputs)
    shown = capsys.readouterr().out
    assert "[b]question 2" in shown
    assert "0.500" in shown
    assert "question 3" not in shown
    assert "Error" not in shown
    for call in (lambda: print_prompt_completions_sample(outputs, 1), lambda: print_prompt_completions_sample(outputs=outputs, n=1)):
        call()
        shown = capsys.readouterr().out
        assert "question 0" in shown
        assert "question 1" not in shown


def test_the_sample_of_a_training_step(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [_row(0), _row(1, "broken")]
    columns = [[row[key] for row in rows] for key in ("prompt", "completion", "error", "reward")]
    print_prompt_completions_sample(*columns, 7, num_samples=2)
    shown = capsys.readouterr().out
    assert "Step 7" in shown
    assert "broken" in shown
    assert "answer 1" in shown
    print_prompt_completions_sample(columns[0], columns[1], None, columns[3], 0)
    shown = capsys.readouterr().out
    assert "answer 0" in shown
    assert "answer 1" not in shown
    assert ("Step 0" in shown, "Error" in shown) == (True, False)
    print_prompt_completions_sample(columns[0], columns[1], [None, "broken"], columns[3], num_samples=0)
    shown = capsys.readouterr().out
    assert ("Step" in shown, "answer" in shown, "broken" in shown) == (False, False, False)


@pytest.mark.parametrize("arguments", [(), (["x"],), (["x"], ["y"], None, None, 1), (["x"], ["y"], None, [1.0, 2.0], 1), (["x"], 3)])
def test_neither_shape(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"outputs of a run|of one length"):
        print_prompt_completions_sample(*arguments)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.0154, "15ms"),
        (1, "1.0s"),
        (0.9996, "1.0s"),
        (59.94, "59.9s"),
        (59.96, "1m"),
        (60, "1m"),
        (3599, "59m 59s"),
        (3600, "1h"),
        (86400, "1d"),
        (86460, "1d"),
        (90061, "1d 1h"),
    ],
)
def test_times(seconds: float, text: str) -> None:
    assert print_time(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1023.6, "1.0 KB"),
        (1536, "1.5 KB"),
        (1024**2 - 1, "1.0 MB"),
        (3 * 1024**2, "3.0 MB"),
        (1024**3, "1.0 GB"),
        (2 * 1024**4, "2.0 TB"),
        (1024**5, "1024.0 TB"),
        (-1536, "-1.5 KB"),
    ],
)
def test_sizes(size: int, text: str) -> None:
    assert print_size(size) == text


@pytest.mark.parametrize(("limit", "text"), [(10, "abcdefghij"), (9, "abcdef..."), (3, "..."), (2, ".."), (0, "")])
def test_a_text_is_cut_to_its_limit(limit: int, text: str) -> None:
    assert truncate("abcdefghij", limit) == text


@pytest.mark.parametrize("width", [25, 45])
def test_a_sample_is_readable_in_narrow_lines(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Lines break between words, and no number is cut."""
    monkeypatch.setenv("COLUMNS", str(width))
    prompt = [{"role": "user", "content": "How many inhabitants has Liechtenstein, approximately?"}]
    completion = [{"role": "assistant", "content": "Approximately 39,444.25 inhabitants"}]
    print_prompt_completions_sample([prompt], [completion], [ValueError("no number")], [-63234.5], step=7)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Step 7"
    assert "Reward: -63234.500" in lines
    assert all(len(line) <= width for line in lines)
    words = {word for line in lines for word in line.split()}
    assert {"Liechtenstein,", "approximately?", "inhabitants", "39,444.25"} <= words
