"""The command line as it is declared: every option of every command arrives where it belongs, also one whose value is 0 or empty.

What the options are is read off the commands, so a new one takes part by itself. What a command does with them is tested where that lies.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import pytest
import typer

from tests.commands import run_vfgym
from vfgym import __version__
from vfgym.cli.app import app
from vfgym.cli.conventions import Options, invoke
from vfgym.cli.fields import TableFields
from vfgym.clients.cache import ResponseCache
from vfgym.errors import ConfigurationError
from vfgym.prices import PriceTable


class Reached(Exception):
    """A function was reached that does the work of a command."""


class Door(NamedTuple):
    """Where a command hands over what it was given."""

    functions: Sequence[str]
    """What it calls, in order; the last one does the work."""
    renamed: Mapping[str, str] = {}
    """What parameters are called there, where that is not their own name."""


DOORS = {
    "list": Door(["vfgym.cli.show:print_ids"]),
    "info": Door(["vfgym.cli.show:print_info"]),
    "check": Door(["vfgym.cli.show:print_checks"]),
    "compare": Door(["vfgym.cli.compare:print_comparison"]),
    "export": Door(["vfgym.cli.export:export_run"], {"output": "path"}),
    "sandboxes": Door(["vfgym.cli.sandboxes:print_sandboxes"]),
    "cache": Door(["vfgym.cli.cache:print_cache"]),
    "cache clear": Door(["vfgym.cli.cache:clear_cache"]),
    "merge": Door(["vfgym.cli.merge:merge_runs"], {"output_dir": "target"}),
    "score": Door(["vfgym.cli.score:score_run"], {"rubric": "rubric_name"}),
    "play": Door(["vfgym.cli.play:play_in_terminal"], {"strict": "is_strict"}),
    "serve-model": Door(
        ["vfgym.cli.serve_model:load_models", "vfgym.model_server:ModelServer", "vfgym.cli.serve_model:serve"],
        {"models": "names", "overlong": "faults.overlong"},
    ),
    "eval": Door(
        ["vfgym.cli.eval:run_evaluations"],
        {
            "target": "env_id",
            "path": "resumed_path",
            "vary": "variations",
            "select": "patterns",
            "dry_run": "is_dry_run",
            "limit": "limits",
            "limit_each": "limits_each",
            "no_save": "output_dir",
        },
    ),
}
"""`view` shows runs in one of three ways, so its options are tested below."""

TEXTS: Mapping[str, tuple[str, Any]] = {
    "JSON": ('{"none": null, "zero": 0}', {"none": None, "zero": 0}),
    "I/N": ("1/3", [1, 3]),
    "IDS": ("3, 0", [3, 0]),
    "LIMITS": ("tokens=7", ("tokens", 7)),
    "HOW": ("median,max", ["median", "max"]),
}
"""Texts that are read, by what the help calls them, and what they mean."""


class Parameter(NamedTuple):
    """An option or an argument of a command, as it is declared."""

    name: str
    spellings: Sequence[str]
    """``--seed`` and ``-s``; none for an argument."""
    kind: Any
    is_list: bool
    metavar: str | None
    default: Any
    is_required: bool


def parameters(command: Callable[..., Any]) -> Iterator[Parameter]:
    """Give what a command takes, as its function declares it."""
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        if name in ("context", "debug"):
            continue
        kind, info = get_args(hints[name])
        kind = next((each for each in get_args(kind) if each is not type(None)), kind) if isinstance(kind, UnionType) else kind
        is_list = get_origin(kind) is list
        declared = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
        yield Parameter(
            name,
            [each for each in declared if each.startswith("-")],
            get_args(kind)[0] if is_list else kind,
            is_list,
            info.metavar,
            parameter.default,
            parameter.default is inspect.Parameter.empty,
        )


PRICES = {"m": {"input": 1.0, "output": 0.0}}


def commands(group: typer.Typer, place: str = "") -> Iterator[tuple[str, list[Parameter]]]:
    """Give the commands of an app, those of its groups, and the groups that do something by themselves."""
    for command in group.registered_commands:
        assert command.callback is not None
        yield f"{place}{command.name}", [*parameters(command.callback)]
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        assert inner.typer_instance.registered_callback is not None
        assert inner.typer_instance.registered_callback.callback is not None
        yield f"{place}{inner.name}", [*parameters(inner.typer_instance.registered_callback.callback)]
        yield from commands(inner.typer_instance, f"{place}{inner.name} ")


COMMANDS = dict(commands(app))


class Given(NamedTuple):
    """What is written on the command line, and what it means."""

    words: Sequence[str]
    meaning: Any


def values(parameter: Parameter) -> Iterator[Given]:
    """Give values of a parameter that differ from its default: one of its own by each of its spellings, and what is 0, 0.0 or empty."""
    name, kind, default = parameter.name, parameter.kind, parameter.default
    spelling = parameter.spellings[:1]
    if get_origin(kind) is Literal:
        yield from (Given([*spelling, choice], choice) for choice in get_args(kind) if choice != default)
        return
    if kind is bool:
        for each in parameter.spellings:
            on, _, off = each.partition("/")
            yield Given([on], None if name == "no_save" else True)
            if off:
                yield Given([off], False)
        return
    own: Any = {int: len(name) + 8100, float: 0.0625}.get(kind) or kind(f"{name}-of-a-test")
    text, meaning = TEXTS.get(parameter.metavar or "", (str(own), own))
    if parameter.is_list and text == str(own):
        many = [f"{own}-1", f"{own}-2"]
        yield Given([word for value in many for word in [*spelling, value]], [kind(value) for value in many])
        return
    yield from (Given([*([each] if each else []), text], meaning) for each in parameter.spellings or [""])
    falsy = {int: 0, float: 0.0, str: ""}.get(kind, default)
    if not (parameter.is_required or parameter.is_list or text != str(own) or falsy == default):
        yield Given([*spelling, str(falsy)], falsy)


ARRIVED: dict[tuple[str, ...], dict[str, Any]] = {}
"""What arrives of the words that several cases begin with."""
CASES = [
    pytest.param(name, door, parameter, given, id=f"{name} {' '.join(given.words)}")
    for name, door in DOORS.items()
    for parameter in COMMANDS[name]
    for given in values(parameter)
]


def flattened(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Give what stands inside arguments, by where."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items: Mapping[str, Any] = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif hasattr(value, "_asdict"):
        items = value._asdict()
    elif isinstance(value, TableFields):
        items = {name: getattr(value, name) for name in type(value).model_fields}
    elif place.endswith(".evaluations"):
        items = {"": value[0]}
    else:
        items = {}
        if isinstance(value, PriceTable):
            value = Path("prices-of-a-test") if value.as_dict() == PRICES else None
        elif isinstance(value, ResponseCache):
            value = True
        elif place.endswith(".example_ids"):
            value = value or None
        yield place, list(value) if isinstance(value, tuple) else value
    for name, item in items.items():
        yield from flattened(item, f"{place}.{name}" if name else place.removesuffix(".evaluations"))


@pytest.fixture
def arrived(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Run a command up to where its work would begin, and return what arrives there."""

    def run(name: str, door: Door, words: Sequence[str]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        with monkeypatch.context() as patched:
            for reference in door.functions:
                module, _, attribute = reference.partition(":")
                signature = inspect.signature(getattr(importlib.import_module(module), attribute))

                def record(*args: Any, _signature: inspect.Signature = signature, _place: str = attribute, **kwargs: Any) -> Any:
                    bound = _signature.bind(*args, **kwargs)
                    bound.apply_defaults()
                    for each, value in bound.arguments.items():
                        seen.update(flattened(value, f"{_place}.{each}"))
                    if _place == door.functions[-1].rpartition(":")[2]:
                        raise Reached
                    return {}

                patched.setattr(f"{module}.{attribute}", record)
            with pytest.raises(Reached):
                invoke(app, Options(), name="vfgym", arguments=[*name.split(), *words])
        return seen

    return run


def words_for(command: Sequence[Parameter], *given: tuple[Parameter, Sequence[str]]) -> list[str]:
    """Return what a command is given: all that it needs, and what is `given` in its place or besides."""
    words = {each.name: next(values(each)).words for each in command if each.is_required}
    words |= {parameter.name: those for parameter, those in given}
    return [word for each in command for word in words.get(each.name, ())]


@pytest.mark.parametrize(("name", "door", "parameter", "given"), CASES)
def test_an_option_arrives_where_its_field_is_and_changes_nothing_else(
    name: str, door: Door, parameter: Parameter, given: Given, arrived: Callable[..., dict[str, Any]], directory: Path
) -> None:
    (directory / "prices-of-a-test").write_text("[m]\ninput = 1.0\noutput = 0.0\n")
    another = [(parameter, [*given.words[:-1], "csv" if given.meaning != "csv" else "hf"])] if parameter.is_required else []
    words = words_for(COMMANDS[name], *another)
    if (name, *words) not in ARRIVED:
        ARRIVED[name, *words] = arrived(name, door, words)
    before = ARRIVED[name, *words]
    field, meaning = door.renamed.get(parameter.name, parameter.name), given.meaning
    if isinstance(meaning, tuple):  # one of several limits
        field, meaning = f"{field}.{meaning[0]}", meaning[1]
    try:
        after = arrived(name, door, words_for(COMMANDS[name], (parameter, given.words)))
    except ConfigurationError as error:  # a number that it cannot be
        assert meaning == 0
        assert f"{field} must be a positive integer, " in f"{error},"
        return
    changed = {place: value for place, value in after.items() if value != before[place]}
    assert changed
    assert changed.keys() == {place for place in after if place.endswith(f".{field}")}
    for value in changed.values():
        assert value == meaning
        assert isinstance(value, bool) is isinstance(meaning, bool)


def test_all_commands_take_part() -> None:
    assert COMMANDS.keys() == {*DOORS, "view"}


@pytest.mark.parametrize(
    ("words", "function", "arguments"),
    [
        ([], "open_viewer", {"runs": [Path("a"), Path("b")]}),
        (["--html", "page"], "write_html", {"runs": [Path("a"), Path("b")], "file": Path("page"), "as_json": False}),
        (["--html", "page", "--json"], "write_html", {"runs": [Path("a"), Path("b")], "file": Path("page"), "as_json": True}),
        (["--serve"], "serve_page", {"runs": [Path("a"), Path("b")], "port": 0}),
        (["--serve", "--port", "8103"], "serve_page", {"runs": [Path("a"), Path("b")], "port": 8103}),
    ],
)
def test_view_shows_runs_in_one_of_three_ways(
    words: list[str], function: str, arguments: dict[str, Any], arrived: Callable[..., dict[str, Any]]
) -> None:
    found = arrived("view", Door([f"vfgym.cli.view:{function}"]), ["a", "b", *words])
    assert found == {f"{function}.{name}": value for name, value in arguments.items()}


@pytest.mark.parametrize(
    "words", [["--debug", "list"], ["list", "--debug"], ["--debug", "eval", "x"], ["cache", "--debug"], ["cache", "clear", "--debug"]]
)
def test_debug_stands_before_a_command_or_after_it(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "vfgym.cli.show.print_ids",
        "vfgym.cli.eval.run_evaluations",
        "vfgym.cli.cache.print_cache",
        "vfgym.cli.cache.clear_cache",
    ):
        monkeypatch.setattr(name, lambda *args, **kwargs: 0)
    for is_asked in (True, False):
        options = Options()
        invoke(app, options, name="vfgym", arguments=[word for word in words if is_asked or word != "--debug"])
        assert options.shows_tracebacks is is_asked


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evaluate", "ID"], "No such command 'evaluate'"),
        (["eval"], "Missing argument 'ID|FILE.toml'"),
        (["eval", "ID", "--num-example", "3"], "No such option: --num-example"),
        (["eval", "ID", "--num-examples", "many"], "Invalid value for '--num-examples'"),
        (["eval", "ID", "--split", "test"], "Invalid value for '--split'"),
        (["eval", "ID", "--env-args", "{x}"], "--env-args must be JSON: "),
        (["eval", "ID", "--env-args", "[1]"], "--env-args must be a JSON object, such as .* got list"),
        (["eval", "ID", "-S", "0.7"], "--sampling-args must be a JSON object, such as .* got float"),
        (["score", "RUN", "--rubric", "m:r", "--rubric-args", "[3]"], "--rubric-args must be a JSON object"),
        (["eval", "ID", "--example-ids", "3,x"], "--example-ids must be integers .* got '3,x'"),
        (["export", "run", "--to", "xls"], "Invalid value for '--to'"),
        (["export", "run"], "Missing option '--to'. Choose from: parquet, csv, hf, sft, preference"),
        (["view", "run", "--serve", "--html", "page"], "leave out --html and --json"),
        (["view", "run", "--serve", "--json"], "leave out --html and --json"),
        (["view", "run", "--port", "8103"], "give --serve too"),
        (["view", "run", "--serve", "--port", "65536"], "Invalid value for '--port'"),
        (["view", "run", "--json"], "give --html FILE too"),
    ],
)
def test_a_wrong_command_line_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        invoke(app, Options(), name="vfgym", arguments=words)
    assert "\n" not in str(caught.value)


def test_what_an_argument_holds_is_not_shown_where_it_is_no_json() -> None:
    with pytest.raises(ConfigurationError) as caught:
        invoke(app, Options(), name="vfgym", arguments=["eval", "ID", "-S", '{"api_key": "sk-0123456789"'])
    assert "sk-0123456789" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_version_and_help() -> None:
    assert run_vfgym("--version").stdout == f"vfgym {__version__}\n"
    shown = run_vfgym("--help").stdout
    assert "--install-completion" not in shown
    assert all(f"\n  {name} " in shown for name, _, rest in (each.partition(" ") for each in COMMANDS) if not rest)
    assert run_vfgym(exit_code=2).stdout == shown
