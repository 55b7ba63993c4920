"""Codecs: every Gymnasium space as JSON schema, JSON data and text that a model writes, and back.

A `Codec` has three forms for the actions of one space. As *JSON* an action is the argument of a tool (`schema`, `to_json`,
`from_json`). As *text* it is what a model writes (`encode`, `decode`): writing is exact, reading forgives format but not
meaning. As *words* the space is described to the model (`listing`, `example`). `text_renderer` is the one-way counterpart for
observations.

`base` holds the contract, `registry` the dispatch by space, `discrete`, `arrays`, `text` and `compounds` the kinds of spaces. `reading` is
the rule by which all games get from an answer to its action: `thinking` is dropped, `marks` say which part of the answer is meant, and the
codec says which action that part is as a whole. `relaxed` reads what is almost JSON, `numbers` numbers with a unit, `problems` holds what a
model is told where there is no action. `observations` renders.
"""

from vfgym.codecs import arrays, compounds, discrete, text  # noqa: F401 - importing a kind registers it
from vfgym.codecs.base import Codec
from vfgym.codecs.observations import observation_text, text_renderer, without_colours
from vfgym.codecs.problems import ActionNotFound
from vfgym.codecs.registry import codec_for, register_codec

__all__ = [
    "ActionNotFound",
    "Codec",
    "codec_for",
    "observation_text",
    "register_codec",
    "text_renderer",
    "without_colours",
]
