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
        self.needed_by: str | None = None
        """Id of the environment that was being loaded."""
        super().__init__(self.keys)

    def __str__(self) -> str:
        names, exports = ", ".join(self.keys), " ".join(f"{key}=..." for key in self.keys)
        problem = (
            "these environment variables are not set, or empty"
            if self.needed_by is None
            else (f"the environment {self.needed_by!r} needs environment variables that are not set, or empty")
        )
        return f"{problem}: {names}. Set them, in a shell with: export {exports}"

    def __reduce__(self) -> tuple[type[MissingKeyError], tuple[list[str]], dict[str, str | None]]:
        return type(self), (self.keys,), {"needed_by": self.needed_by}


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
