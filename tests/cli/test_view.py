"""``vfgym view``: a page of HTML is written, or served until Ctrl-C; the viewer needs a terminal."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.cases import SECONDS, program
from tests.view.runs import row, write_run
from vfgym.cli.view import open_viewer, serve_page, write_html
from vfgym.errors import ConfigurationError
from vfgym.results import ResultsError


def test_a_page_is_written_and_its_size_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, file = [write_run(tmp_path / name, [row()]) for name in ("a", "b")], tmp_path / "page.html"
    write_html(runs, file, as_json=True)
    assert json.loads(capsys.readouterr().out) == {"path": str(file), "bytes": file.stat().st_size, "runs": [*map(str, runs)]}
    write_html(runs, file)
    assert capsys.readouterr() == ("", f"{file}: {file.stat().st_size / 1e6:.2f} MB, open it in a browser\n")


def test_of_what_is_no_run_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ResultsError):
        write_html([tmp_path], tmp_path / "page.html")
    assert [*tmp_path.iterdir()] == [tmp_path / "mine.py"]
    with pytest.raises(ResultsError):
        serve_page([tmp_path], 0)


def test_without_a_terminal_the_viewer_says_what_else_there_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="write a page with --html FILE, or serve it with --serve"):
        open_viewer([write_run(tmp_path / "run", [row()])])


def test_a_page_is_served_until_ctrl_c(tmp_path: Path) -> None:
    command = program("view", str(write_run(tmp_path / "run", [row()])), "--serve")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("http://127.0.0.1:")
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert (process.returncode, output, errors) == (0, "\nstopped\n", "")
