"""The documented module of `MaybeThinkParser`."""

from vfgym.parsers import MaybeThinkParser

__all__ = ["MaybeThinkParser"]
