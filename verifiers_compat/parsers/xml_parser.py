"""The documented module of `XMLParser`."""

from vfgym.parsers import XMLParser

__all__ = ["XMLParser"]
