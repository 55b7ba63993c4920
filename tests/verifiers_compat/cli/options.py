"""Every option that a command declares, each with a value of its own: so one that is dropped is found, and two that are swapped."""

from __future__ import annotations

from collections.abc import Mapping

import typer


def declared_options(app: typer.Typer) -> dict[str, list[str]]:
    """Return how the options of a command are spelled, by the names of its parameters."""
    return {each.name: list(each.opts) for each in typer.main.get_command(app).params if each.param_type_name == "option" and each.name}


def command_line(app: typer.Typer, given: Mapping[str, str | None], spelling: int) -> list[str]:
    """Return arguments of a command.

    Args:
        app: The command.
        given: What options are given, by the names of the parameters; None for a flag.
        spelling: Which spelling of each is taken; the last one where there are fewer.
    """
    arguments = []
    for name, value in given.items():
        spellings = declared_options(app)[name]
        arguments += [spellings[min(spelling, len(spellings) - 1)], *([] if value is None else [value])]
    return arguments
