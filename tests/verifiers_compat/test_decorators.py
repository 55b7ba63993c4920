"""The decorators take their arguments in the documented order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import verifiers_compat as vf


@pytest.mark.parametrize(
    ("mark", "arguments"),
    [(vf.stop, (10,)), (vf.cleanup, (10, "rollout")), (vf.teardown, (10,)), (vf.metric, (10, "rollout")), (vf.reward, (0.5, 10))],
)
def test_decorators_take_their_arguments_in_the_documented_order(mark: Any, arguments: tuple[Any, ...]) -> None:
    def method(self: Any, state: Any) -> bool:
        return True

    def of(cls: Callable[..., Any]) -> Any:
        holder = type("Holder", (), {"method": cls})
        return vf_marks(holder(), mark)

    def other(self: Any, state: Any) -> bool:
        return True

    names = ("weight", "priority", "stage") if mark is vf.reward else ("priority", "stage")
    assert of(mark(method, *arguments)) == of(mark(**dict(zip(names, arguments, strict=False)))(other))


def vf_marks(holder: object, mark: Any) -> list[Any]:
    from verifiers_compat.decorators import discover_decorated

    name = next(name for name in ("stop", "cleanup", "teardown", "metric", "reward") if getattr(vf, name) is mark)
    return [each.mark for each in discover_decorated(holder, name)]  # type: ignore[arg-type]
