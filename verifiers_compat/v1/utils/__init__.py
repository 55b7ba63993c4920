"""Functions at the paths where published tasksets and harnesses import them from."""

from __future__ import annotations

from verifiers_compat.loading import create_getattr

__getattr__ = create_getattr(__name__)
