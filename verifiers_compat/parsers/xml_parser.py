"""The documented module of `XMLParser`."""

from vfgym.parsers import XMLParser as XMLParser
