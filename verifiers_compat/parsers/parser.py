"""The documented module of `Parser`."""

from vfgym.parsers import Parser

__all__ = ["Parser"]
