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


def check_spellings(app: typer.Typer, letters: str, otherwise: Mapping[str, str]) -> None:
    """Check that options are spelled as documented: by the name of their parameter, and with these letters.

    Args:
        app: The command.
        letters: All letters that are options, each before the name that it stands for: ``"n num_examples, ..."``.
        otherwise: Long spellings that are not the name of the parameter.
    """
    short = {f"-{letter}": name for letter, name in (part.split() for part in letters.split(","))}
    for name, spellings in declared_options(app).items():
        assert spellings[0] == otherwise.get(name, f"--{name.replace('_', '-')}")
        assert [each for each in spellings if not each.startswith("--")] == [letter for letter, of in short.items() if of == name]
    assert set(short.values()) <= declared_options(app).keys()
