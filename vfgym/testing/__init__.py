"""What authors test their environments with.

- `checks` has a check for each promise of an environment, to parametrize a test over; `check_environment` carries them out at once.
- `play` plays a scripted conversation, and has what came of it; `call` writes a tool call.
- `FakeClock` lets time pass without waiting.
- `FakeModel` answers by a rule and remembers what it was asked, `ScriptedClient` answers by the turn of an episode, and `ModelServer` does
  over HTTP, with `Faults`.

The guide is ``docs/testing_environments.md``. Nothing here needs pytest.

>>> import vfgym
>>> env = vfgym.SingleTurnEnv(dataset=[{"question": "6 * 7?", "answer": "42"}], rubric=vfgym.Rubric(lambda completion: 1.0))
>>> play(env, ["42"]).reward
1.0
>>> [str(check) for check in checks(lambda: env.fork())][:2]
["passes gymnasium's check_env without a warning", 'replays the same episodes under a seed']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vfgym.checks.environment import Check, check_environment
from vfgym.clients.scripted import ScriptedClient
from vfgym.testing.environment_checks import EnvironmentCheck, checks
from vfgym.testing.fake_clock import FakeClock
from vfgym.testing.fake_model import FakeModel, FakeModelRequest
from vfgym.testing.scripted_play import PlayedEpisode, call, play

if TYPE_CHECKING:
    from vfgym.model_server import Faults, ModelRequest, ModelServer, Reply

__all__ = [
    "Check",
    "EnvironmentCheck",
    "FakeClock",
    "FakeModel",
    "FakeModelRequest",
    "Faults",
    "ModelRequest",
    "ModelServer",
    "PlayedEpisode",
    "Reply",
    "ScriptedClient",
    "call",
    "check_environment",
    "checks",
    "play",
]


def __getattr__(name: str) -> Any:
    # The server needs aiohttp, which the rest does not.
    if name in ("Faults", "ModelRequest", "ModelServer", "Reply"):
        from vfgym import model_server

        return getattr(model_server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
