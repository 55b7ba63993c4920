"""The documented module of `ThinkParser`."""

from vfgym.parsers import ThinkParser

__all__ = ["ThinkParser"]
