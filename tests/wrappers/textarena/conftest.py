"""Games are played without a word in the log, and leave the random numbers of the process alone."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import numpy as np
import pytest

from tests.sampling import SEED


@pytest.fixture
def process_is_left_alone(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.ERROR, logger="vfgym.wrappers.textarena.match")
    random.seed(SEED)
    np.random.seed(SEED % 2**32)
    before = random.getstate(), np.random.get_state()
    yield
    assert random.getstate() == before[0]
    np.testing.assert_equal(np.random.get_state(), before[1])
