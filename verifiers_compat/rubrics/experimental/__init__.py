"""Rubrics at the paths where the rollout API keeps its newer ones."""
