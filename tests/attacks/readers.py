"""Everything in the packages that reads or writes text of others, collected by rule: what `ROOMS` hold, and what is registered.

A public function of a room that takes text first and needs nothing else is called with the text. What is called in another way is in
`CALLED`, what reads no text of others in `LEFT_OUT`, with the reason. A function that is in neither is reported by `uncollected`.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import json
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
from pydantic import BaseModel

import vfgym
import vfgym.parsers
from vfgym.codecs import codec_for, registry
from vfgym.codecs.registry import NarrowedCodec
from vfgym.wrappers.games.action_lists import ActionLists
from vfgym.wrappers.games.answers import Answers

Read = Callable[[str], Any]

ROOMS = (
    *("vfgym.codecs", "vfgym.parsers", "vfgym.output", "vfgym.view", "vfgym.play.lines", "vfgym.play.forms", "vfgym.messages"),
    *("vfgym.wrappers.textarena.answers", "vfgym.wrappers.textarena.observations", "vfgym.wrappers.textarena.moves"),
    *("vfgym.wrappers.games.answers", "vfgym.wrappers.games.action_lists", "vfgym.wrappers.games.history"),
    *("vfgym.tools.arguments", "vfgym.tools.json_numbers", "vfgym.tools.results", "vfgym.clients.formats", "vfgym.clients.faults"),
    *("vfgym.interception.wire", "vfgym.model_server.tokenizer", "vfgym.model_server.wire", "vfgym.model_server.parsed_request"),
    *("vfgym.results.plain_json", "vfgym.results.reading", "vfgym.results.trajectory", "vfgym.rubrics.code_rubric", "vfgym.rubrics.code_tests"),
    *("vfgym.training.local_policy", "verifiers_compat.parsers", "verifiers_compat.utils.data_utils", "verifiers_compat.utils.message_utils"),
)
"""Packages and modules in which text of others is read."""
