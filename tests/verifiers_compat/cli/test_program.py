"""How every command runs: what the user can mend is one line, the exit codes, options made of fields; all commands load little."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from typing import Annotated, Any

import pytest
import typer
from pydantic import BaseModel

from tests.programs import run_python
from verifiers_compat.cli.program import create_app, parse_json_object, print_note, run, take_options_of
from verifiers_compat.utils.config_utils import MissingKeyError
from vfgym.cli.conventions import Debug
from vfgym.errors import ConfigurationError, ToolError

COMMANDS = ("eval", "gepa", "init", "install", "setup", "tui")


def raising(error: BaseException | None) -> Callable[[Any], None]:
    """Return the `main` of a command that raises something."""
    app = create_app("vf-test", "Raise something.")

    @app.command()
    def command(number: int = 3, debug: Debug = False) -> None:
        if error is not None:
            raise error

    return lambda arguments: run(app, arguments)


@pytest.mark.parametrize(
    ("error", "code", "err"),
    [
        (None, 0, ""),
        (typer.Exit(3), 3, ""),
        (ConfigurationError("no such thing"), 2, "error: no such thing\n"),
        (ToolError("broken"), 2, "error: broken\n"),
        (MissingKeyError(["A_KEY"]), 2, f"error: {MissingKeyError(['A_KEY'])}\n"),
    ],
)
def test_what_the_user_can_mend_is_one_line(error: Any, code: int, err: str, run_command: Callable[..., Any]) -> None:
    assert run_command(raising(error)) == (code, "", err)


def test_a_traceback_is_for_bugs_and_for_those_who_ask(run_command: Callable[..., Any]) -> None:
    for arguments, error in (((), ZeroDivisionError("a bug")), (("--debug",), ConfigurationError("no such thing"))):
        done = run_command(raising(error), *arguments)
        assert done.code == 1
        assert "Traceback" in done.err
        assert f"{type(error).__name__}: {error}" in done.err
    assert run_command(raising(None), "--debug").code == 0


@pytest.mark.parametrize(("given", "message"), [("--nubmer=3", "No such option: --nubmer"), ("--number=x", "Invalid value for '--number'")])
def test_a_wrong_command_line_is_one_line(given: str, message: str, run_command: Callable[..., Any]) -> None:
    done = run_command(raising(None), given)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err
    assert "--help lists what can be given" in done.err


def test_fields_become_options(run_command: Callable[..., Any]) -> None:
    """As their types say. What is not given is None, which is not what 0 and an empty text are."""

    class Fields(BaseModel):
        hidden: str | None = None
        flag: Annotated[bool | None, typer.Option("--flag")] = None
        count: Annotated[Annotated[int, "checked"] | None, typer.Option("--count", "-c")] = None
        share: Annotated[float | None, typer.Option("--share")] = None
        either: Annotated[int | str | None, typer.Option("--either")] = None
        table: Annotated[dict[str, Any] | None, typer.Option("--table")] = None
        pairs: Annotated[dict[str, str] | None, typer.Option("--pair")] = None
        limits: Annotated[dict[str, int | float] | None, typer.Option("--limit")] = None

    app = create_app("vf-test", "Take options.")
    got: list[dict[str, Any]] = []

    @app.command()
    @take_options_of(Fields)
    def command(name: str, own: int = 7, **options: Any) -> None:
        got.append({"name": name, "own": own, **options})

    names = ("flag", "count", "share", "either", "table", "pairs", "limits")
    run_command(lambda arguments: run(app, arguments), "x")
    assert got.pop() == {"name": "x", "own": 7, **dict.fromkeys(names)}
    given = ("--flag", "-c", "0", "--share", "0.5", "--either", "3", "--table", "{}", "--pair", "a", "--pair", "b", "--limit", "c")
    run_command(lambda arguments: run(app, arguments), "x", *given)
    values = (True, 0, 0.5, "3", "{}", ["a", "b"], ["c"])
    assert got.pop() == {"name": "x", "own": 7, **dict(zip(names, values, strict=True))}


def test_notes_go_to_the_standard_error_stream_and_json_objects_are_parsed(capsys: pytest.CaptureFixture[str]) -> None:
    print_note("careful")
    assert capsys.readouterr() == ("", "note: careful\n")
    assert parse_json_object("--args", '{"a": [1]}') == {"a": [1]}
    assert parse_json_object("--args", "{}") == {}
    for text, message in (("{", "--args must be JSON: "), ("[]", "--args must be a JSON object, .*got list"), ("null", "got NoneType")):
        with pytest.raises(ConfigurationError, match=message):
            parse_json_object("--args", text)
    with pytest.raises(ConfigurationError) as refused:
        parse_json_object("--args", '{"key": "secret"')
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("place", ["cli.commands", "scripts"])
@pytest.mark.parametrize("command", [*COMMANDS, "build"])
def test_every_command_runs_as_a_module(
    place: str, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At its place, and at the older one."""
    module = f"verifiers_compat.{place}.{command}"
    if module == "verifiers_compat.scripts.tui":
        return  # which there never was
    monkeypatch.setattr(sys, "argv", [command, "--help"])
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(module, run_name="__main__")
    out, err = capsys.readouterr()
    if command == "build":
        assert (ended.value.code, err.partition(":")[2][:14]) == (2, " vf-build does")
    else:
        assert (ended.value.code or 0, out.splitlines()[0].partition(" [")[0].strip()) == (0, f"Usage: vf-{command}")


def test_help_loads_nothing_heavy() -> None:
    program = f"""
        import importlib, sys
        for name in {COMMANDS}:
            try:
                importlib.import_module(f"verifiers_compat.cli.commands.{{name}}").main(["--help"])
            except SystemExit as ended:
                assert not ended.code
        print(*sys.modules, file=sys.stderr)
    """
    done = run_python(program, check=True)
    assert done.stdout.count("Usage: vf-") == len(COMMANDS)
    assert not {"gepa", "datasets", "openai", "aiohttp", "anthropic"} & set(done.stderr.split())
