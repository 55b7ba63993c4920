"""The documented module of `MaybeThinkParser`."""

from vfgym.parsers import MaybeThinkParser as MaybeThinkParser
