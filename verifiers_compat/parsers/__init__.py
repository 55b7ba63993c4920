"""The documented parsers of the rollout API, one module each."""

from vfgym.parsers import MaybeThinkParser, Parser, ThinkParser, XMLParser

__all__ = ["MaybeThinkParser", "Parser", "ThinkParser", "XMLParser"]
