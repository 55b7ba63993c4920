"""Signatures show every argument: nothing public hides those of another public class behind ``**kwargs``."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from vfgym.envs.chat import ChatEnv
from vfgym.errors import UnknownArgument

MODULES = ("vfgym", "vfgym.agents", "vfgym.envs", "vfgym.model_server", "vfgym.play", "vfgym.results", "vfgym.rubrics", "vfgym.testing")
MODULES += ("vfgym.training", "vfgym.vector", "vfgym.wrappers")
OPEN = {"to_chat": "arguments of the game", "call": "arguments of a tool", "push_to_hub": "arguments of another library"}
"""Functions that hand on what this library does not know."""


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in MODULES:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            found = getattr(module, public)
            if inspect.isfunction(found) or (inspect.isclass(found) and not issubclass(found, BaseException)):
                yield public, found


def test_no_public_callable_hides_arguments() -> None:
    hiding = [
        name
        for name, found in public_callables()
        if name not in OPEN
        and not (inspect.isclass(found) and issubclass(found, dict))  # messages and states have any fields
        and any(parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(found).parameters.values())
    ]
    assert hiding == []


ENVIRONMENTS = sorted(
    {found for _, found in public_callables() if inspect.isclass(found) and issubclass(found, ChatEnv)}, key=lambda cls: cls.__name__
)


@pytest.mark.parametrize("cls", ENVIRONMENTS, ids=lambda cls: cls.__name__)
def test_what_an_environment_takes_is_what_its_signature_shows(cls: type[ChatEnv]) -> None:
    shown = inspect.signature(cls).parameters
    assert set(shown) - {"_"} <= set(cls.argument_names())
    own = [*inspect.signature(cls.__init__).parameters.values()][1:]
    assert [each for each in own if each.kind is not each.VAR_KEYWORD and each.name not in cls._refused_arguments] == [
        each for each in shown.values() if each in own
    ], "its own come first, as they are"


def test_functions_that_make_environments_show_what_these_take() -> None:
    shown = inspect.signature(vfgym.to_chat).parameters
    assert {"observe", "as_tool", "max_turns", "rubric"} <= shown.keys()
    assert next(iter(shown)) == "env"
    assert shown["game_options"].kind is inspect.Parameter.VAR_KEYWORD
    shown = inspect.signature(vfgym.from_openenv).parameters
    assert {"url", "max_turns", "rubric"} <= shown.keys()
    inspect.signature(vfgym.to_chat).bind("CartPole-v1", max_turns=3, is_slippery=False)


def test_classes_of_others_are_as_their_authors_wrote_them() -> None:
    class Mine(vfgym.SingleTurnEnv):
        def __init__(self, level: int, **kwargs: Any) -> None:
            super().__init__(**kwargs)

    assert list(inspect.signature(Mine).parameters) == ["level", "kwargs"]
    with pytest.raises(UnknownArgument, match="has no argument 'nope'"):
        Mine(1, nope=1, dataset=[{"question": "?"}])
    assert "kwargs" in inspect.signature(vf.MultiTurnEnv).parameters, "documented so"
