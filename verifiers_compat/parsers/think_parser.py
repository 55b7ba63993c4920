"""The documented module of `ThinkParser`."""

from vfgym.parsers import ThinkParser as ThinkParser
