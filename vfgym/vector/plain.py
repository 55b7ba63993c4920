"""Which environments a vector may play in the calling thread, because nothing in them waits or minds the thread that it runs on."""

from __future__ import annotations

import inspect

from vfgym.calls import is_async
from vfgym.envs.chat import ChatEnv
from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.envs.tool import ToolEnv
from vfgym.lifecycle import is_blocking
from vfgym.overrides import find_put_on
from vfgym.rubrics import Rubric, RubricGroup
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.session import GameSessionEnv


def is_known_to_be_plain(env: ChatEnv) -> bool:
    """Say whether all that an environment calls is known not to wait: its hooks are the library's own, and whatever it was given is plain.

    Hooks of an author's own are not known: plain ones may hold what is bound to a thread (a connection of `sqlite3`), which is always the
    same one on the event loop.
    """
    if not isinstance(env, MultiTurnEnv) or not _is_plain_class(type(env), MultiTurnEnv) or find_put_on(env):
        return False
    if isinstance(env, GameSessionEnv) and env.blocking:
        return False
    if isinstance(env, MultiplayerEnv) and not (env.is_self_play or env.opponents_are_random):
        return False
    tools = env.tools if isinstance(env, ToolEnv) else []
    return not any(is_async(tool) or is_blocking(tool) for tool in tools) and _is_plain_rubric(env.rubric)


def _is_plain_rubric(rubric: Rubric) -> bool:
    if isinstance(rubric, RubricGroup):
        return all(map(_is_plain_rubric, rubric.rubrics))
    functions = [function for function, _ in rubric.step_scorers()] + rubric.functions
    return _is_plain_class(type(rubric), Rubric) and not any(each.is_blocking or is_async(each.plan.func) for each in functions)


def _is_plain_class(cls: type, base: type) -> bool:
    """Say whether a class is of this library, and neither it nor what it inherits beside `base` offers methods that are async or block."""
    if cls.__module__.partition(".")[0] != "vfgym":
        return False
    own = [member for each in cls.__mro__ if not issubclass(base, each) for name, member in vars(each).items() if name[0] != "_"]
    return not any(inspect.iscoroutinefunction(member) or is_blocking(member) for member in own)
