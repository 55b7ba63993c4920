"""The decorators mark methods, with their arguments in the documented order, too."""

from __future__ import annotations

from typing import Any

import pytest

import verifiers_compat as vf
from verifiers_compat import decorators
from verifiers_compat.decorators import discover_decorated

NAMES = {
    "stop": ("priority",),
    "setup": ("priority",),
    "advantage": ("priority",),
    "teardown": ("priority",),
    "cleanup": ("priority", "stage"),
    "update": ("priority", "stage"),
    "metric": ("priority", "stage"),
    "reward": ("weight", "priority", "stage"),
}
"""The arguments of each decorator, in order."""
VALUES = {"priority": 10, "stage": "group", "weight": 0.5}
DEFAULTS = {"priority": 0, "stage": "rollout", "weight": 1.0}


def marked(decorate: Any, name: str) -> Any:
    """Return the mark that a decorator leaves on a method."""

    def method(self: Any, state: Any) -> bool:
        return True

    [found] = discover_decorated(type("Holder", (), {"method": decorate(method)})(), name)  # type: ignore[arg-type]
    return found.mark  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_taken_in_order_and_by_name_and_have_their_defaults(name: str) -> None:
    decorator, arguments = getattr(decorators, name), NAMES[name]
    values = {argument: VALUES[argument] for argument in arguments}
    by_name, in_order = marked(decorator(**values), name), marked(lambda method: decorator(method, *values.values()), name)
    assert by_name == in_order
    assert {argument: getattr(by_name, argument) for argument in arguments} == values
    bare = marked(decorator, name)
    assert {argument: getattr(bare, argument) for argument in arguments} == {argument: DEFAULTS[argument] for argument in arguments}
    assert bare == marked(decorator(), name)
    assert getattr(vf, name) is decorator
