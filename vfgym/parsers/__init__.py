"""Parsers: how an answer is read out of what a model wrote.

A parser belongs to an environment or a rubric. It finds the answer in a completion (`Parser.parse_answer`), gives an
action or its fields to an environment (`Parser.parse`) and can reward a model for keeping to the format
(`Parser.get_format_reward_func`). The `extract_*` functions read one text and serve as a parser's `extract_fn`.
"""

from vfgym.parsers.extraction import extract_boxed_answer, extract_hash_answer
from vfgym.parsers.parser import Parser
from vfgym.parsers.think_parser import MaybeThinkParser, ThinkParser
from vfgym.parsers.xml_parser import XMLParser

__all__ = ["MaybeThinkParser", "Parser", "ThinkParser", "XMLParser", "extract_boxed_answer", "extract_hash_answer"]
