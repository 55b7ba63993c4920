"""Codecs: every Gymnasium space as JSON schema, JSON data and text that a model writes, and back.

A `Codec` has three forms for the actions of one space. As *JSON* an action is the argument of a tool (`schema`, `to_json`,
`from_json`). As *text* it is what a model writes (`encode`, `decode`): writing is exact, reading forgives format but not
meaning. As *words* the space is described to the model (`listing`, `example`). `text_renderer` is the one-way counterpart for
observations.

`base` holds the contract, `registry` the dispatch by space, `discrete`, `arrays`, `text` and `compounds` the kinds of spaces. `narrowing`
gets from a message to its action: `answers` knows where an answer stands, `relaxed` reads what is almost JSON, `data` the shapes in which
models write it, `numbers` reads numbers in sentences, `choices` knows what a sentence says to be its choice, by the words and forms in
`english`, `problems` what a model is told where there is none. `observations` renders.
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
