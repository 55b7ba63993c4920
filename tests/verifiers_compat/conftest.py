"""The rollout API as published environments import it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from verifiers_compat.alias import install, uninstall


@pytest.fixture(scope="module")
def vf() -> Iterator[Any]:
    """The package as published environments import it."""
    install()
    import verifiers

    yield verifiers
    uninstall()
