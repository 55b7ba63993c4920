"""Run a script or a module that imports ``verifiers`` with this package under that name.

    python -m verifiers_compat script.py [arguments]
    python -m verifiers_compat -m package.module [arguments]

It is run as ``python`` would run it: as ``__main__``, with its own ``sys.argv`` and ``sys.path[0]``; its exit code and its
traceback are those of the process. Processes that it starts anew (``multiprocessing`` with "spawn", ``subprocess``) do not have
the name; for them, call ``verifiers_compat.install()`` in the program itself.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from verifiers_compat.alias import install

USAGE = "usage: python -m verifiers_compat (script.py | -m module) [arguments]\n"


def main(arguments: Sequence[str]) -> None:
    """Run what the arguments name.

    Args:
        arguments: A script or ``-m`` and a module, then the arguments of that.
    """
    if arguments and arguments[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return
    is_module = bool(arguments) and arguments[0] == "-m"
    given = list(arguments[1:] if is_module else arguments)
    if not given or (not is_module and given[0].startswith("-")):
        sys.stderr.write(USAGE)
        sys.exit(2)
    install()
    sys.argv = given
    (_run_module if is_module else _run_script)(given[0])


def _run_script(script: str) -> None:
    if os.path.isdir(script) or script.endswith((".zip", ".pyz")):
        runpy.run_path(script, run_name="__main__")
        return
    loader = importlib.machinery.SourceFileLoader("__main__", script)
    try:
        source = loader.get_data(script)
    except OSError as error:
        _fail(f"can't open file {os.path.abspath(script)!r}: [Errno {error.errno}] {error.strerror}")
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(script))
    _run(
        lambda: loader.source_to_code(source, script), __file__=script, __loader__=loader, __spec__=None, __package__=None, __cached__=None
    )


def _run_module(name: str) -> None:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError) as error:
        _fail(f"Error while finding module specification for {name!r} ({type(error).__name__}: {error})", code=1)
    if spec is None:
        _fail(f"No module named {name}", code=1)
    loader: Any = spec.loader
    sys.argv[0] = spec.origin or name
    attributes = {"__file__": spec.origin, "__loader__": loader, "__spec__": spec, "__package__": spec.parent, "__cached__": spec.cached}
    _run(lambda: loader.get_code(spec.name) if hasattr(loader, "get_code") else None, **attributes)


def _run(compiled: Callable[[], CodeType | None], **attributes: Any) -> None:
    """Run code as ``__main__``; a traceback begins with that code."""
    module = ModuleType("__main__")
    module.__dict__.update(attributes, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    try:
        code = compiled()
    except SyntaxError as error:
        _report(error, None)
    if code is None:
        _fail(f"{attributes['__spec__'].name!r} has no code that could be run", code=1)
    try:
        exec(code, module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        traceback = error.__traceback__ and error.__traceback__.tb_next
        if isinstance(error, KeyboardInterrupt):
            raise error.with_traceback(traceback)  # noqa: B904 (the same error): Python ends the process as the signal would
        _report(error, traceback)


def _report(error: BaseException, traceback: TracebackType | None) -> NoReturn:
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)
    sys.exit(1)


def _fail(text: str, code: int = 2) -> NoReturn:
    sys.stderr.write(f"{sys.executable}: {text}\n")
    sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
