"""Errors with their causes, as text and as data, and back."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import Any

from vfgym.errors import Error
from vfgym.results import ErrorInfo


class ErrorChain:
    """An error and the causes that were given with ``raise ... from``, outermost first.

    ``str`` gives the types, ``repr`` the errors, both joined by `` -> ``.
    """

    def __init__(self, error: BaseException, parent_type: type[BaseException] = BaseException) -> None:
        """Follow the causes of an error.

        Args:
            error: The outermost error.
            parent_type: Only errors of this type are links of the chain.
        """
        self.chain = get_error_chain(error, parent_type)
        """The links."""

    def __contains__(self, error_type: type[BaseException]) -> bool:
        """Say whether a link is of a type."""
        return any(isinstance(link, error_type) for link in self.chain)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, ErrorChain) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return " -> ".join(type(link).__name__ for link in self.chain)

    def __repr__(self) -> str:
        return " -> ".join(repr(link) for link in self.chain)


def get_error_chain(error: BaseException | None, parent_type: type[BaseException] = BaseException) -> list[BaseException]:
    """Return an error and its causes (``__cause__``), outermost first; only those of `parent_type`, where it is given."""
    chain: list[BaseException] = []
    while error is not None and not any(error is link for link in chain):
        chain.append(error)
        error = error.__cause__
    return [link for link in chain if isinstance(link, parent_type)]


def get_vf_error_chain(error: BaseException | None) -> list[BaseException]:
    """Return those of an error and its causes that are `vfgym.errors.Error`."""
    return get_error_chain(error, Error)


error_info = ErrorInfo.of


def error_type_name(error: BaseException | Mapping[str, Any] | str | None) -> str | None:
    """Return the name of an error's type: of an exception, of its data, or of the text of either chain; None for no error."""
    if error is None:
        return None
    if isinstance(error, BaseException):
        return type(error).__name__
    text = str(error["error"]) if isinstance(error, Mapping) else error
    return text.partition(" -> ")[0].partition("(")[0]


def error_info_to_exception(
    error: Mapping[str, Any] | str, error_types: Iterable[type[BaseException]] | Mapping[str, type[BaseException]] | None = None
) -> BaseException:
    """Return an exception for an error that was written down.

    Args:
        error: An `ErrorInfo` (as a dict), or the text of a chain.
        error_types: The types that there may be; by default `vfgym.errors.Error`, what derives from it, and Python's own.

    Returns:
        An exception of the named type whose text is the whole chain; an `Error` where there is no type of that name.
    """
    name = error_type_name(error)
    text = str(error.get("error_chain_repr", error["error"])) if isinstance(error, Mapping) else error
    if error_types is None:
        known: dict[str, type[BaseException]] = {
            name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
        }
        known.update(error_type_names(Error))
    elif isinstance(error_types, Mapping):
        known = dict(error_types)
    else:
        known = {kind.__name__: kind for kind in error_types}
    kind = known.get(str(name), Error)
    try:
        return kind(text)
    except TypeError:  # a type whose constructor asks for more than a text
        return Error(text)


def error_type_names(kind: type[BaseException]) -> dict[str, type[BaseException]]:
    """Return an error type and all that derive from it, by their names."""
    found = {kind.__name__: kind}
    for derived in type.__subclasses__(kind):
        found.update(error_type_names(derived))
    return found
