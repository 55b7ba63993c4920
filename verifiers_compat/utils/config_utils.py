"""Environment variables that an environment cannot do without."""

from __future__ import annotations

import os
from collections.abc import Iterable


class MissingKeyError(ValueError):
    """Environment variables are not set."""

    def __init__(self, keys: Iterable[str]) -> None:
        """Name the variables that are missing.

        Args:
            keys: Their names.
        """
        self.keys = list(keys)
        """Names of the variables that are not set."""
        exports = "\n".join(f"    export {key}=..." for key in self.keys)
        super().__init__(f"these environment variables are not set, or empty: {', '.join(self.keys)}. Set them, in a shell with\n{exports}")

    def __reduce__(self) -> tuple[type[MissingKeyError], tuple[list[str]]]:
        return type(self), (self.keys,)


def ensure_keys(keys: Iterable[str]) -> None:
    """Check that environment variables are set.

    Args:
        keys: Names of the variables.

    Raises:
        MissingKeyError: If any is not set, or empty. It names all of them.
        TypeError: If `keys` is one text and not several names.
    """
    if isinstance(keys, str):
        raise TypeError(f"ensure_keys takes a list of names, got the text {keys!r}: write [{keys!r}]")
    missing = [key for key in dict.fromkeys(keys) if not os.environ.get(key)]
    if missing:
        raise MissingKeyError(missing)
