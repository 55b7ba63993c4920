"""Failures of rollouts, in the log: the first with its traceback, since the rows tell of all of them."""

from __future__ import annotations

import logging

from vfgym.errors import Error

logger = logging.getLogger(__name__)


class FailureLog:
    """Logs the failures of one run."""

    def __init__(self) -> None:
        """Begin without any."""
        self._has_any = False

    def note(self, example_id: int, rollout: int, error: BaseException) -> None:
        """Log that a rollout failed."""
        level = logging.DEBUG if self._has_any else logging.WARNING
        self._has_any = True
        # An error of this library's kinds (a model's, say) tells in words what is wrong; any other is found by its line.
        traceback = None if isinstance(error, Error) else error
        logger.log(
            level, "rollout %d of example %s failed: %r (the rows tell of further ones)", rollout, example_id, error, exc_info=traceback
        )
