"""`RunDirectory`: what a run leaves on disk, and finds there when it goes on.

GEPA draws from a seed alone, so a run that is started again asks the same questions in the same order. Each question (an evaluation of
a candidate, a reflection) has a place of its own, named by its number and by a digest of what is asked: where an answer stands there, it
is taken, else the models are asked. So a run that was stopped anywhere goes on where it was, and comes to the result that it would have
come to; and a question that differs from the one of its number is asked anew.

* ``settings.json``: what the run is about; another run is refused.
* ``evaluations/NUMBER-DIGEST/``: results of rollouts, as `vfgym.results.load_results` reads them.
* ``reflections/NUMBER-DIGEST.json``: what the reflecting model was asked, and its answer.
* ``report.json``, ``report.md`` and ``best_prompt.txt``: what came of it so far.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import redact, redact_data
from vfgym.results import ResultsError
from vfgym.results.files import cannot_write, lock_directory
from vfgym.results.plain_json import json_text

logger = logging.getLogger("verifiers_compat.gepa")

SETTINGS = "settings.json"
BEST_PROMPT = "best_prompt.txt"
_DIGITS_OF_DIGEST = 12


class RunDirectory:
    """The directory of one run."""

    def __init__(self, path: str | Path, settings: Mapping[str, Any]) -> None:
        """Begin a run in a directory, or go on with the one that is there.

        Args:
            path: The directory; it is made.
            settings: What the run is about. They are written without secrets.

        Raises:
            ConfigurationError: If the directory has other things in it, or a run with other settings.
            ResultsError: If it cannot be written, or another run writes to it.
        """
        self.path = Path(path)
        self._num_questions = 0
        written = parse_json(json_text(redact_data(dict(settings))))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            is_empty = not any(self.path.iterdir())
            self._lock = lock_directory(self.path)
        except ResultsError:
            raise
        except OSError as error:
            raise cannot_write(self.path, error) from error
        try:
            self._begin(is_empty, written)
        except BaseException:
            self.close()
            raise

    def _begin(self, is_empty: bool, written: Mapping[str, Any]) -> None:
        if is_empty:
            self.write(SETTINGS, json_text(written, is_indented=True) + "\n")
        else:
            _check_same(self.path, self._read_settings(), written)
            logger.info("going on with the run in %s", self.path)

    def close(self) -> None:
        """Let others write to the directory. A second call does nothing."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read_settings(self) -> dict[str, Any]:
        try:
            settings = parse_json((self.path / SETTINGS).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            settings = None
        if not isinstance(settings, dict):
            raise ConfigurationError(
                f"{self.path} is not empty and holds no run that could go on (there is no readable {SETTINGS}): choose another directory"
            )
        return settings

    def next_evaluation(self, *asked: Any) -> Path:
        """Return the directory for the results of the next question, which is an evaluation."""
        return self.path / "evaluations" / self._name(asked)

    def forget(self, evaluation: Path) -> None:
        """Remove an evaluation, so that it is played again."""
        shutil.rmtree(evaluation, ignore_errors=True)

    def recall(self, prompt: str, ask: Callable[[str], str]) -> str:
        """Return the answer to the next question, which is a reflection: the one that was given before, or a new one.

        Args:
            prompt: The question.
            ask: Asks the model.
        """
        name = f"reflections/{self._name([prompt])}.json"
        try:
            return str(parse_json((self.path / name).read_text(encoding="utf-8"))["answer"])
        except (OSError, ValueError, KeyError, TypeError):
            answer = ask(prompt)
        self.write(name, json_text({"prompt": prompt, "answer": answer}, is_indented=True) + "\n")
        return answer

    def _name(self, asked: Any) -> str:
        self._num_questions += 1
        digest = hashlib.sha256(json_text(asked).encode()).hexdigest()[:_DIGITS_OF_DIGEST]
        return f"{self._num_questions:04}-{digest}"

    def write(self, name: str, text: str) -> None:
        """Write a file as a whole, without secrets.

        Raises:
            ResultsError: If it cannot be written.
        """
        target = self.path / name
        temporary = target.with_name(f"{target.name}.tmp")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(redact(text), encoding="utf-8")
            os.replace(temporary, target)
        except BaseException as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise ResultsError(f"cannot write {target}: {error.strerror or error}") from error
            raise


def _check_same(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    different = [name for name in here if there.get(name) != here[name]]
    if different:
        said = "; ".join(f"{name} is {json_text(there.get(name))[:80]} there and {json_text(here[name])[:80]} here" for name in different)
        raise ConfigurationError(f"{path} holds another run: {said}. Give the same settings to go on with it, or another directory")
