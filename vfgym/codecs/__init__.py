"""Codecs: every Gymnasium space as JSON schema, JSON data and text that a model writes, and back.

A `Codec` has three faces for the actions of one space. As *JSON* an action is the argument of a tool (`schema`, `to_json`,
`from_json`). As *text* it is what a model writes (`encode`, `decode`): writing is exact, reading forgives format but not
meaning. As *words* the space is described to the model (`listing`, `example`). `text_renderer` is the one-way counterpart for
observations.

`base` holds the contract and the dispatch by space, `answers` finds the answer in a message, `relaxed` reads what is almost JSON,
`numbers` reads numbers in sentences, `choices` knows what a sentence says to be its choice, `discrete`, `arrays`, `text` and
`compounds` are the kinds of spaces, `observations` renders.
"""

from vfgym.codecs import arrays, compounds, discrete, text  # noqa: F401 - importing a kind registers it
from vfgym.codecs.base import ActionNotFound, Codec, codec_for, register_codec
from vfgym.codecs.observations import observation_text, text_renderer, without_colours

__all__ = [
    "ActionNotFound",
    "Codec",
    "codec_for",
    "observation_text",
    "register_codec",
    "text_renderer",
    "without_colours",
]
