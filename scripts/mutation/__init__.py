"""Planting faults in copies of this repository, to see which of them the tests find: ``scripts/mutants.py`` is the command."""
