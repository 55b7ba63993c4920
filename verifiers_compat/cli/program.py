"""How every command runs: what the user can mend is one line on the standard error stream, and exit code 2."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer
from pydantic import BaseModel
from typer.models import OptionInfo

from verifiers_compat.utils.config_utils import MissingKeyError
from vfgym.bounded_json import parse_json
from vfgym.cli.conventions import Debug, Options, invoke
from vfgym.errors import ConfigurationError, Error
from vfgym.output.terminal import echo, echo_traceback

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "REFUSED",
    "STOPPED",
    "Debug",
    "create_app",
    "parse_json_object",
    "print_note",
    "run",
    "take_options_of",
]

FAILED = 1
"""Exit code where the command could not do what it was asked for."""
REFUSED = 2
"""Exit code where it was asked for something that cannot be done at all."""
STOPPED = 3
"""Exit code where a limit ended a run."""
INTERRUPTED = 130
"""Exit code of a command that Ctrl-C stopped."""

F = TypeVar("F", bound=Callable[..., Any])


def create_app(name: str, description: str) -> typer.Typer:
    """Return an app with plain help and plain errors."""
    return typer.Typer(
        name=name,
        help=description,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run(app: typer.Typer, arguments: Sequence[str] | None = None) -> None:
    """Run an app, and exit: with 2 where what was asked for cannot be done, else with the code of the command.

    Args:
        app: The app.
        arguments: The arguments; by default those of the process.
    """
    options = Options()
    try:
        sys.exit(invoke(app, options, name=app.info.name, arguments=arguments))
    except Exception as error:
        if options.shows_tracebacks or not isinstance(error, Error | MissingKeyError):
            echo_traceback(error)
            sys.exit(FAILED)
        echo(f"error: {error}", to_stderr=True)
        sys.exit(REFUSED)


def take_options_of(fields: type[BaseModel]) -> Callable[[F], F]:
    """Return a decorator: a command that takes ``**options`` gets an option for each field that is annotated with a `typer.Option`.

    An option that was not given is None. The field's type decides what an option takes: nothing (``bool``), a number, several texts
    (headers, limits), else a text, which the command parses.
    """
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[_option_type(field.annotation), option])
        for name, field in fields.model_fields.items()
        for option in field.metadata
        if isinstance(option, OptionInfo)
    ]

    def decorate(command: F) -> F:
        own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.kind is not each.VAR_KEYWORD]
        command.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]  # which typer reads
        return command

    return decorate


def _option_type(annotation: Any) -> Any:
    """Return what an option for a field takes, from the field's type, which allows None."""
    kind = next(part for part in get_args(annotation) if part is not types.NoneType)
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if kind in (bool, int, float) and len(get_args(annotation)) == 2:
        return kind | None
    return list[str] | None if kind in (dict[str, str], dict[str, int | float]) else str | None


def print_note(text: str) -> None:
    """Tell the user something on the standard error stream."""
    echo(f"note: {text}", to_stderr=True)


def parse_json_object(option: str, text: str) -> dict[str, Any]:
    """Return the JSON object that an option was given.

    Raises:
        ConfigurationError: If it is something else.
    """
    try:
        value = parse_json(text)
    except ValueError as error:
        raise ConfigurationError(f"{option} must be JSON: {error}") from None  # the text itself may have keys in it
    if not isinstance(value, dict):
        raise ConfigurationError(f"{option} must be a JSON object, such as '{{\"key\": 5}}', got {type(value).__name__}")
    return value
