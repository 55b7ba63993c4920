"""The commands; each module runs with ``python -m``, too."""
