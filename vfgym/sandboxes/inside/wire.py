"""JSON, as the agent reads and writes it: by the C part of the package `json` alone.

The package imports regular expressions and enumerations, for which each new sandbox takes 10 ms of CPU time more.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Reader:
    """What the scanner asks for: how `json.JSONDecoder` has it."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_constant = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}.__getitem__
    parse_float, parse_int = float, int
    memo: dict[str, str] = {}


def _refuse(value: Any) -> Any:
    raise TypeError(f"{type(value).__name__} can't be sent")


def _make() -> tuple[Callable[[str], Any], Callable[[Any], str]]:
    """Return what reads a text and what writes one."""
    try:
        import _json

        scan = _json.make_scanner(_Reader)  # type: ignore[arg-type] # which asks for nothing but these attributes
        write = _json.make_encoder(None, _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True)
        if scan('{"a": [1]}', 0)[0] != {"a": [1]} or "".join(write({"a": [1]}, 0)) != '{"a": [1]}':
            raise ValueError
    except Exception:  # an interpreter that has it otherwise, or not
        import json

        return json.loads, json.dumps
    return lambda text: scan(text, 0)[0], lambda value: "".join(write(value, 0))


_read, _write = _make()


def read(data: bytes) -> Any:
    """Return what is in a message.

    Raises:
        ValueError: If it can't be read.
    """
    try:
        return _read(data.decode())
    except Exception as error:  # the C part says what is wrong by an exception of the package, which is not there
        raise ValueError(f"a message that can't be read ({type(error).__name__})") from None


def write(value: Any) -> bytes:
    """Return a message."""
    return _write(value).encode()
