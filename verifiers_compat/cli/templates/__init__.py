"""The files that ``vf-init`` and ``vf-setup`` write, as templates with ``$name`` for what differs."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import string
from pathlib import Path

from packaging.version import Version

from vfgym.output.terminal import echo


def fill_template(template: str, module: str = "", **values: str) -> str:
    """Return the text of a file.

    Args:
        template: Name of the template, without ``.template``. It may have ``$module``, ``$name`` (its distribution), ``$version``
            (this library's) and `values` in it.
        module: Name of the environment's module.
        **values: What else stands in it.
    """
    text = importlib.resources.files(__name__).joinpath(f"{template}.template").read_text(encoding="utf-8")
    version = Version(importlib.metadata.version("vfgym")).public  # ">=" takes no local part
    return string.Template(text).safe_substitute(module=module, name=module.replace("_", "-"), version=version, **values)


def write_new(file: Path, text: str, *, replaces: bool = False) -> None:
    """Write a file, unless it is there already and not to be replaced; print which of the two happened."""
    if file.exists() and not replaces:
        echo(f"kept    {file}")
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    echo(f"written {file}")
