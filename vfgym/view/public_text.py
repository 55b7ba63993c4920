"""What leaves this machine in a page: without keys, and without the folders of this machine."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vfgym.output.redaction import redact, with_secrets

_FOLDERS = r"(?:[A-Za-z]:)?(?:[\\/]++[\w.@+ -]*[\w.@+-])*[\\/]++"
_ABSOLUTE_PATH = re.compile(rf"(?<![\w:/.~<>-])(?:{_FOLDERS}(?=[\w.@+-])|(?P<nothing>{_FOLDERS}))")
"""The folders before the last name of an absolute path; not those of a URL. What only looks like them is matched too, as ``nothing``:
elsewhere in it no path begins, so it is not gone over again."""

_BEFORE_FOLDER = r"(^|[^\w.~-]|\\[bfnrt]|(?:\x1b|\\u001b)\[[\d;]*m|\\u[0-9a-f]{4})"
"""What may stand before a folder: nothing of a name. The escapes of JSON end in letters, and so do a terminal's colours."""


def shorten_paths(value: Any) -> Any:
    """Return data in whose texts each absolute path is cut to its last name: what a machine said of itself, errors and settings.

    >>> shorten_paths({"error": "FileNotFoundError(2, '/home/ann/data/tasks.jsonl')", "url": "http://localhost:8000/v1"})
    {'error': "FileNotFoundError(2, '…/tasks.jsonl')", 'url': 'http://localhost:8000/v1'}
    """
    if isinstance(value, str):
        return _ABSOLUTE_PATH.sub(lambda folders: folders["nothing"] or "…/", value)
    if isinstance(value, Mapping):
        return {key: shorten_paths(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [shorten_paths(item) for item in value]
    return value


def public_text(text: str, run_directories: Iterable[Path] = ()) -> str:
    """Return a text without the keys of this process and of its environment variables, and without the folders of this machine.

    ``~`` stands for the home directory and ``.`` for the working directory, a run's directory is its name.

    Args:
        text: Any text, JSON too.
        run_directories: Where the runs are that it tells of.
    """
    with_secrets(dict(os.environ))  # learns the values of variables that are named like keys
    folders = {str(Path(sys.prefix)): "<python>", str(Path(__file__).parents[2]): "<vfgym>", os.getcwd(): ".", str(Path.home()): "~"}
    for directory in run_directories:
        folders |= {str(directory.absolute()): directory.absolute().name, str(directory.resolve()): directory.absolute().name}
    text = redact(text)
    for folder in sorted(folders, key=len, reverse=True):
        if len(Path(folder).parts) > 1:
            spellings = "|".join(map(re.escape, {folder, json.dumps(folder)[1:-1]}))
            name = folders[folder].replace("\\", r"\\")
            text = re.sub(rf"{_BEFORE_FOLDER}(?:{spellings})(?![\w-])", rf"\g<1>{name}", text)
    return text
