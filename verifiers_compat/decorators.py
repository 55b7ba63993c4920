"""The documented decorators of the rollout API."""

from vfgym.lifecycle import advantage, cleanup, discover_decorated, metric, reward, setup, stop, teardown, update

__all__ = ["advantage", "cleanup", "discover_decorated", "metric", "reward", "setup", "stop", "teardown", "update"]
