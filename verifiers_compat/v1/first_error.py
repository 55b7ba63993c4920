"""A rollout has one error, the first: what fails after it is kept beside it, and stops nothing more.

Mostly it is a consequence of the first (a reward function that looks for a completion that there is not), so only the debug log has it
with its traceback: a batch whose model is down would fill any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from verifiers_compat.v1.state import State
from vfgym.calls import ends_run

logger = logging.getLogger(__name__)


@contextmanager
def keep_first_error(state: State, name: str, noted_in: Literal["metrics_errors", "cleanup_errors"]) -> Iterator[None]:
    """Let through what is raised inside, unless the rollout has an error already: it is then noted in the state.

    Args:
        state: The rollout's.
        name: What runs inside.
        noted_in: The item of the state for what signals raise, or for what other handlers raise.
    """
    try:
        yield
    except BaseException as error:
        if state.failure is None or ends_run(error):
            raise
        logger.debug("%s failed after the error that ended its rollout: %r", name, error, exc_info=error)
        state.setdefault(noted_in, {})[name] = repr(error)
