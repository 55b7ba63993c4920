"""Which codec the actions of a space have, by the kind of the space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym

from vfgym.codecs.base import Codec, Space, seeded_sample
from vfgym.codecs.problems import ActionNotFound
from vfgym.codecs.reading import Where
from vfgym.errors import ConfigurationError

CodecFactory = Callable[[Any, Any], Codec]
"""Makes the codec of a space from the space and the names (or ``None``)."""

_factories: dict[type[Space], CodecFactory] = {}


def register_codec(space_class: type[Space], factory: CodecFactory) -> None:
    """Make known how the codecs of a kind of spaces are made; subclasses of it without a factory of their own use it too.

    Args:
        space_class: A subclass of `gymnasium.Space`.
        factory: Called with a space and its names (``None`` without any); most often a subclass of `Codec`.

    Raises:
        ConfigurationError: If the class is not a subclass of `gymnasium.Space`.
    """
    if not (isinstance(space_class, type) and issubclass(space_class, gym.Space)):
        raise ConfigurationError(f"expected a subclass of gymnasium.Space, got {space_class!r}")
    _factories[space_class] = factory


def codec_for(space: Space, names: Any = None) -> Codec:
    """Return the codec of a space.

    >>> codec = codec_for(gym.spaces.Discrete(3), ["left", "stay", "right"])
    >>> codec.encode(2), codec.decode("I go <action>Right</action>!"), codec.from_json(0)
    ('right', np.int64(2), np.int64(0))

    Args:
        space: Any space, nested as deeply as you like. A space of an unknown class is treated like its nearest known base
            class (what its own `contains` refuses is refused), or by its own `to_jsonable` and `from_jsonable`.
        names: What actions are called. For a `Discrete` a name for each action, in order, or a mapping from numbers to names;
            for a vector (a 1-d `Box` or `MultiBinary`) a label for each element; for a `Dict`, `Tuple`, `OneOf`, `MultiDiscrete`
            or `Graph` a structure like the space's, with such names or ``None`` in it; for a `Sequence` the names of one item.

    Raises:
        ConfigurationError: If it is not a space, or the names do not fit it.
    """
    if not isinstance(space, gym.Space):
        raise ConfigurationError(f"expected a gymnasium.Space, got {space!r}")
    for base in type(space).__mro__:
        if base in _factories:
            codec = _factories[base](space, names)
            return codec if type(space).contains is base.contains or base is gym.Space else NarrowedCodec(codec)
    raise AssertionError("gym.Space itself is registered")


class NarrowedCodec(Codec):
    """The codec of a user's subclass of a known space, which contains only some of what its base class contains."""

    def __init__(self, codec: Codec) -> None:
        """Narrow the codec of the base class by the space's own `contains`."""
        self.space, self.names, self.schema = codec.space, codec.names, codec.schema
        self.own_keys, self.longest = codec.own_keys, codec.longest
        self._codec = codec

    def to_json(self, action: Any) -> Any:
        """Return what the base class's codec returns."""
        return self._codec.to_json(action)

    def encode(self, action: Any) -> str:
        """Return what the base class's codec returns."""
        return self._codec.encode(action)

    def read(self, data: Any) -> Any:
        """Return what the base class's codec reads, if the space contains it."""
        return self._checked(self._codec.read(data))

    def read_exactly(self, text: str) -> Any:
        """Return what the base class's codec returns, if the space contains it."""
        action = self._codec.read_exactly(text)
        return action if action is not None and self.space.contains(action) else None

    def match(self, text: str, where: Where) -> Any:
        """Return what the base class's codec returns, if the space contains it."""
        action = self._codec.match(text, where)
        return None if action is None else self._checked(action)

    def listing(self) -> str:
        """Return the phrase of the base class."""
        return self._codec.listing()

    def legal_texts(self, mask: Any) -> list[str] | None:
        """Return what the base class's codec returns."""
        return self._codec.legal_texts(mask)

    def representative(self) -> Any:
        """Return the base class's action if the space contains it, and a sample if not."""
        action = self._codec.representative()
        return action if self.space.contains(action) else seeded_sample(self.space)

    def _checked(self, action: Any) -> Any:
        if not self.space.contains(action):
            raise ActionNotFound(f"is not valid here, got {self._codec.encode(action)}")
        return action
