"""The documented rollout API."""
