"""A workspace of its own for each test, environments in it, and commands called in this process."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from verifiers_compat.alias import uninstall
from verifiers_compat.cli.commands.eval import main as eval_main
from verifiers_compat.cli.commands.gepa import main as gepa_main
from verifiers_compat.utils.logging_utils import LOGGERS
from vfgym.model_server import ModelServer, scripted

YES_NO = '''
"""Written as published environments are: for `verifiers`."""

import verifiers as vf
from verifiers.utils.config_utils import ensure_keys


class Questions(vf.SingleTurnEnv):
    limit = 1


def load_environment(num_examples: int = 4, answer: str = "yes", key: str | None = None, fails: bool = False) -> vf.Environment:
    if key is not None:
        ensure_keys([key])
    if fails:
        return vf.SingleTurnEnv(dataset=lambda: 1 / 0)

    def is_right(completion, answer) -> float:
        return float(completion[-1]["content"] == answer)

    rows = [{"question": f"Is {i} a number?", "answer": answer} for i in range(num_examples)]
    return Questions(dataset=rows, rubric=vf.Rubric(funcs=[is_right]))
'''


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current directory. Modules in its ``modules`` can be imported; ``yes_no`` is one."""
    monkeypatch.chdir(tmp_path)
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "yes_no.py").write_text(YES_NO)
    monkeypatch.syspath_prepend(str(modules))
    known = set(sys.modules)
    yield tmp_path
    uninstall()
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
    for name in LOGGERS:
        logger = logging.getLogger(name)
        for handler in list(logger.handlers):
            logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
        logger.propagate = True


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Models that always say "yes" or "no"."""
    with ModelServer({"yes": scripted(["yes"]), "no": scripted(["no"])}) as running:
        yield running


@pytest.fixture
def run_command(capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Calls the `main` of a command with arguments."""

    def call(main: Callable[[Sequence[str]], None], *arguments: str) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        out, err = capfd.readouterr()
        return Done(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def vf_eval(run_command: Callable[..., Done]) -> Callable[..., Done]:
    """The command, called with its arguments."""
    return functools.partial(run_command, eval_main)


@pytest.fixture
def vf_gepa(run_command: Callable[..., Done]) -> Callable[..., Done]:
    """The command, called with its arguments."""
    return functools.partial(run_command, gepa_main)
