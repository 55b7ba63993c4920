"""Clocks that run ahead, so that no test waits."""

from __future__ import annotations

import time

import pytest


def later(monkeypatch: pytest.MonkeyPatch, clock: str, seconds: float) -> None:
    """Let one of the clocks of `time` go on by some seconds."""
    original = getattr(time, clock)
    monkeypatch.setattr(time, clock, lambda: original() + seconds)
