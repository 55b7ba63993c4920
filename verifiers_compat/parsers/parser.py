"""The documented module of `Parser`."""

from vfgym.parsers import Parser as Parser
