"""Every error that vfgym raises or records, in one hierarchy.

An `Error` inside an episode ends that episode and is recorded in ``state["error"]``; the tree below `ModelError`,
`ToolError` and `InfraError` is the one that the rollout API documents. Errors that a caller made (a wrong action, a
wrong configuration) refine the standard exception too, and Gymnasium's where it has one, so that ``except ValueError`` and
``except gymnasium.error.ResetNeeded`` keep working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, TypedDict

import gymnasium.error

FailureCause: TypeAlias = Literal["policy", "environment", "infrastructure"]
"""By whose doing a rollout failed (see `vfgym.endings.Ending`)."""


class Error(Exception):
    """Base class of every error of this library."""

    failure_cause: FailureCause | None = None
    """By whose doing a rollout failed that it ends; whoever raises it may set it. None where that depends on who raised it: what comes from
    whoever answers is the policy's doing, anything else the environment's."""


class ModelError(Error):
    """A model could not be asked, or its answer could not be used."""


class InvalidModelResponseError(ModelError):
    """A model answered with something that is not one assistant message."""

    failure_cause = "policy"


class EmptyModelResponseError(InvalidModelResponseError):
    """A model answered with no text, no tool call and no reasoning."""


class OverlongPromptError(Error):
    """The prompt is longer than the model's context. It ends an episode as a truncation, not as an error."""


class ToolError(Error):
    """A tool call went wrong."""


class ToolParseError(ToolError):
    """The arguments of a tool call could not be read as a JSON object."""

    failure_cause = "policy"


class ToolCallError(ToolError):
    """A tool call was well formed but could not be carried out: unknown tool, wrong arguments, or the tool raised."""


class InfraError(Error):
    """Something underneath the environment failed (a sandbox, a tunnel, a server); a retry may help."""

    failure_cause: FailureCause | None = "infrastructure"


class TunnelError(InfraError):
    """A tunnel to a remote machine failed."""


class SandboxError(InfraError):
    """A sandbox could not be made, reached or used."""


class AgentError(InfraError):
    """The program of an agent failed, or ended without asking its model."""

    failure_cause = "policy"


class BrowserSandboxError(SandboxError):
    """A browser sandbox could not be made, reached or used."""


class WorkerDied(InfraError):
    """A worker process ended before it answered a call, or could not be started."""


class WorkersLost(InfraError):
    """No worker is left that could play the rest of a run, and none can be started.

    Attributes:
        outputs: What was finished, as ``vfgym.evaluate`` returns it; None where nobody kept it.
    """

    outputs: Any = None


class WorkerTimeout(Error, TimeoutError):
    """A call in a worker process used up its time."""


class LimitFacts(TypedDict):
    """A limit that is used up."""

    limit: str
    """Its name: ``tokens``, ``cost``, ``time``, ``errors`` or ``requests``."""
    allowed: float
    used: float
    """What was spent. Requests that were under way when it was used up count, too."""


class LimitReached(Error):
    """A limit on what may be spent is used up, so nothing begins any more (see `vfgym.limit`).

    Attributes:
        limit: Its name: ``tokens``, ``cost``, ``time``, ``errors`` or ``requests``.
        allowed: What may be spent.
        used: What was spent: with requests that were under way, it may be more.
    """

    def __init__(self, limit: str, allowed: float, used: float) -> None:
        """Say which limit is used up."""
        super().__init__(f"the limit on {limit} is used up: {used:.10g} of {allowed:.10g}")
        self.limit = limit
        self.allowed = allowed
        self.used = used

    def as_dict(self) -> LimitFacts:
        """Return its attributes, as the metadata of a run that it ended hold them."""
        return {"limit": self.limit, "allowed": self.allowed, "used": self.used}

    def __reduce__(self) -> tuple[type[LimitReached], tuple[str, float, float]]:
        return type(self), (self.limit, self.allowed, self.used)


class InvalidMessage(Error, ValueError):
    """A value is not a chat message, or not a list of them."""


class InvalidAction(Error, ValueError, gymnasium.error.InvalidAction):
    """An action is not a member of the action space. The episode stands as it was."""

    failure_cause = "policy"


class ConfigurationError(Error, ValueError):
    """An environment, rubric, agent or run was set up in a way that cannot work."""


class UnknownArgument(ConfigurationError, TypeError):
    """A constructor was given an argument that it does not have."""


class HookMissing(ConfigurationError, TypeError):
    """An object was made of a class that does not write a method which it must write."""


class ResetNeeded(Error, RuntimeError, gymnasium.error.ResetNeeded):
    """`step` was called before `reset`, or after the episode ended."""


class EpisodeBusy(Error, RuntimeError):
    """An episode was stepped while another step of it was still running."""


class EpisodeNotPicklable(Error, TypeError):
    """An episode cannot be pickled or copied as it stands: model calls are parked in it, or its game is copied as a new one."""


class WouldDeadlock(Error, RuntimeError):
    """A synchronous call that must wait was made on the very event loop it would wait for."""


class MissingExtra(Error, ImportError):
    """An optional dependency is not installed. The message names the command that installs it."""

    def __init__(self, extra: str, needed_for: str) -> None:
        """Say what the missing extra is needed for and how to install it.

        Args:
            extra: Name of the extra of the distribution ``vfgym``.
            needed_for: What cannot be done without it, as the subject of a sentence.
        """
        super().__init__(f"{needed_for} needs an optional dependency: pip install 'vfgym[{extra}]'")
        self.extra = extra
        self.needed_for = needed_for

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return type(self), (self.extra, self.needed_for)


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return a sentence naming the known names nearest to `given`, or an empty string.

    >>> did_you_mean("leg_count", ["leg_counting", "sudoku"])
    ' Did you mean `leg_counting`?'
    >>> did_you_mean("zebra", ["sudoku"])
    ''
    """
    near = difflib.get_close_matches(given, list(known), n=3, cutoff=0.5)
    return f" Did you mean {', '.join(f'`{name}`' for name in near)}?" if near else ""
