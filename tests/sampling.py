"""Which of many cases a run of the tests takes: the same ones each time, others with another seed."""

from __future__ import annotations

import os

SEED = int(os.environ.get("VFGYM_TEST_SEED", "0"))
"""Seeds all random samples of ids and games: ``VFGYM_TEST_SEED=7 pytest -m exhaustive``. The summary of a run names it."""
