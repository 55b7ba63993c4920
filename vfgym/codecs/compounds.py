"""Spaces made of spaces: Tuple, Dict, Sequence, OneOf, Graph, and a MultiDiscrete whose values have names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import GraphInstance
from gymnasium.vector.utils import concatenate, create_empty_array

from vfgym.codecs.arrays import multi_discrete_codec
from vfgym.codecs.base import Codec, Schema, Space
from vfgym.codecs.data import elements_of, json_text, mapping_of, quote_data, sequence_of
from vfgym.codecs.problems import ActionNotFound
from vfgym.codecs.registry import codec_for, register_codec
from vfgym.errors import ConfigurationError, InvalidAction, did_you_mean


class TupleCodec(Codec):
    """The actions of a `gymnasium.spaces.Tuple`, as a list."""

    def __init__(self, space: Any, names: Sequence[Any] | None = None, *, members: Iterable[Space] | None = None) -> None:
        """Describe the tuples.

        Args:
            space: The space.
            names: The names of each member's actions (or ``None``), in order.
            members: The members, where they are not the space's own `spaces`.

        Raises:
            ConfigurationError: If the names do not fit.
        """
        self.space = space
        spaces = list(space.spaces if members is None else members)
        self.names = _checked_names(space, names, len(spaces))
        self._codecs = [codec_for(member, each) for member, each in zip(spaces, self.names or [None] * len(spaces), strict=True)]
        count = len(spaces)
        self.longest = sum(codec.longest for codec in self._codecs)
        self.schema: Schema = {"type": "array", "minItems": count, "maxItems": count}
        if count:
            self.schema["prefixItems"] = [codec.schema for codec in self._codecs]

    def to_json(self, action: Any) -> list[Any]:
        """Return the list of the members' JSON data."""
        if not isinstance(action, tuple | list | np.ndarray) or len(action) != len(self._codecs):
            raise InvalidAction(f"expected {_several(len(self._codecs), 'element')} for {self.space}, got {action!r}")
        return [codec.to_json(member) for codec, member in zip(self._codecs, action, strict=True)]

    def read(self, data: Any) -> Any:
        """Return the tuple of a list's members."""
        items = elements_of(data, len(self._codecs))
        members = []
        for index, (codec, item) in enumerate(zip(self._codecs, items, strict=True), 1):
            try:
                members.append(codec.read(item))
            except ActionNotFound as error:
                error.places.append(f"element {index}")
                raise
        return tuple(members)

    def listing(self) -> str:
        """Return what each member of the list may be."""
        return "[" + ", ".join(f"<{codec.listing()}>" for codec in self._codecs) + "]"

    def representative(self) -> Any:
        """Return the tuple of ordinary members."""
        return tuple(codec.representative() for codec in self._codecs)


class NamedMultiDiscreteCodec(TupleCodec):
    """The arrays of a `gymnasium.spaces.MultiDiscrete` whose values have names, as nested lists of them."""

    def __init__(self, space: gym.spaces.MultiDiscrete[Any], names: Sequence[Any]) -> None:
        """Describe the arrays.

        Args:
            space: The space.
            names: For each element of the first axis the names of its values (or ``None``), or a list of such names for the next axis.

        Raises:
            ConfigurationError: If the names do not fit.
        """
        kind = space.dtype.type

        def member(nvec: Any, start: Any) -> Space:
            if nvec.shape:
                return gym.spaces.MultiDiscrete(nvec, kind, start=start)
            return gym.spaces.Discrete(nvec, start=start, dtype=kind)

        if not space.shape:
            raise ConfigurationError(f"expected no names for {space}, which has no elements, got {names!r}")
        super().__init__(space, names, members=map(member, space.nvec, space.start))

    def read(self, data: Any) -> Any:
        """Return the array of nested lists of names or numbers."""
        if len(self._codecs) == 1 and sequence_of(data) is None:
            data = [data]
        return np.array(super().read(data), self.space.dtype)

    def representative(self) -> Any:
        """Return the array of ordinary elements."""
        return np.array(super().representative(), self.space.dtype)


class DictCodec(Codec):
    """The actions of a `gymnasium.spaces.Dict`, as an object. Keys that are not strings are written as strings."""

    def __init__(self, space: gym.spaces.Dict, names: Mapping[Any, Any] | None = None) -> None:
        """Describe the dicts.

        Args:
            space: The space.
            names: The names of the actions under some of the keys.

        Raises:
            ConfigurationError: If the names do not fit, or two keys are the same when they are written as strings.
        """
        self.space = space
        if names is not None and not (isinstance(names, Mapping) and names.keys() <= space.spaces.keys()):
            raise ConfigurationError(f"expected names under the keys {_listed(space.spaces)}, got {names!r}")
        self.names = None if names is None else dict(names)
        self._codecs = {key: codec_for(member, (names or {}).get(key)) for key, member in space.spaces.items()}
        self._keys = {str(key): key for key in self._codecs}
        self.own_keys = frozenset(self._keys)
        self.longest = sum(codec.longest for codec in self._codecs.values())
        if len(self._keys) != len(self._codecs):
            raise ConfigurationError(f"expected keys that differ as texts, got {_listed(space.spaces)}")
        self.schema: Schema = {
            "type": "object",
            "properties": {str(key): codec.schema for key, codec in self._codecs.items()},
            "required": list(self._keys),
            "additionalProperties": False,
        }

    def to_json(self, action: Any) -> dict[str, Any]:
        """Return the object of the members' JSON data."""
        if not isinstance(action, Mapping) or action.keys() != self._codecs.keys():
            raise InvalidAction(f"expected a dict with the keys {_listed(self._keys)} for {self.space}, got {quote_data(action)}")
        return {str(key): codec.to_json(action[key]) for key, codec in self._codecs.items()}

    def read(self, data: Any) -> dict[Any, Any]:
        """Return the dict of an object's members, in the order of the space."""
        given = mapping_of(data)
        if given is None:
            raise ActionNotFound(f"must be an object with {_several(len(self._keys), 'key')} {_listed(self._keys)}, got {quote_data(data)}")
        unknown = next((key for key in given if key not in self._keys), None)
        if unknown is not None:
            raise ActionNotFound(
                f"must have no key `{unknown}`.{did_you_mean(str(unknown), self._keys)} Its keys are {_listed(self._keys)}"
            )
        members = {}
        for written, key in self._keys.items():
            if written not in given:
                raise ActionNotFound(f"must have the key `{written}`, got only {_listed(given) or 'no key'}")
            try:
                members[key] = self._codecs[key].read(given[written])
            except ActionNotFound as error:
                error.places.append(f"`{written}`")
                raise
        return members

    def listing(self) -> str:
        """Return what may stand under each key."""
        return "{" + ", ".join(f"{json_text(str(key))}: <{codec.listing()}>" for key, codec in self._codecs.items()) + "}"

    def representative(self) -> dict[Any, Any]:
        """Return the dict of ordinary members."""
        return {key: codec.representative() for key, codec in self._codecs.items()}


class SequenceCodec(Codec):
    """The actions of a `gymnasium.spaces.Sequence`, as a list of any length."""

    def __init__(self, space: gym.spaces.Sequence, names: Any = None) -> None:
        """Describe the sequences.

        Args:
            space: The space.
            names: The names of one item's actions.

        Raises:
            ConfigurationError: If the names do not fit.
        """
        self.space = space
        self.names = names
        self._item = codec_for(space.feature_space, names)
        self._is_stacked = space.stack
        self.schema: Schema = {"type": "array", "items": self._item.schema}

    def to_json(self, action: Any) -> list[Any]:
        """Return the list of the items' JSON data."""
        items = _unstacked(self._item.space, action) if self._is_stacked else action
        return [self._item.to_json(item) for item in items]

    def read(self, data: Any) -> Any:
        """Return the tuple of a list's items, or these stacked in arrays where the space does so."""
        given = sequence_of(data)
        if given is None:
            raise ActionNotFound(f"must be a list, got {quote_data(data)}")
        items = []
        for index, item in enumerate(given, 1):
            try:
                items.append(self._item.read(item))
            except ActionNotFound as error:
                error.places.append(f"element {index}")
                raise
        return _stacked(self._item.space, items) if self._is_stacked else tuple(items)

    def listing(self) -> str:
        """Return what an item may be."""
        return f"[<{self._item.listing()}>, ...], of any length"

    def representative(self) -> Any:
        """Return two ordinary items."""
        items = [self._item.representative()] * 2
        return _stacked(self._item.space, items) if self._is_stacked else tuple(items)


class OneOfCodec(Codec):
    """The actions of a `gymnasium.spaces.OneOf`, as an object that says which of the spaces the value is of."""

    def __init__(self, space: gym.spaces.OneOf[Any], names: Sequence[Any] | None = None) -> None:
        """Describe the choices.

        Args:
            space: The space.
            names: The names of each space's actions (or ``None``), in order.

        Raises:
            ConfigurationError: If the names do not fit.
        """
        self.space = space
        self.names = _checked_names(space, names, len(space.spaces))
        self._codecs = [
            codec_for(member, each) for member, each in zip(space.spaces, self.names or [None] * len(space.spaces), strict=True)
        ]
        self.longest = max((codec.longest for codec in self._codecs), default=0)
        self.schema: Schema = {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"choice": {"const": index}, "value": codec.schema},
                    "required": ["choice", "value"],
                    "additionalProperties": False,
                }
                for index, codec in enumerate(self._codecs)
            ]
        }

    def to_json(self, action: Any) -> dict[str, Any]:
        """Return the choice and its value."""
        if not isinstance(action, tuple) or len(action) != 2 or action[0] not in range(len(self._codecs)):
            raise InvalidAction(f"expected a choice from 0 to {len(self._codecs) - 1} and its value for {self.space}, got {action!r}")
        choice, value = action
        return {"choice": int(choice), "value": self._codecs[choice].to_json(value)}

    def read(self, data: Any) -> tuple[Any, Any]:
        """Return choice and value; a value that only one of the spaces can read needs no choice."""
        given = mapping_of(data)
        if given is not None and given.keys() == {"choice", "value"}:
            return self._chosen(given["choice"], given["value"])
        fitting = []
        for index, codec in enumerate(self._codecs):
            try:
                fitting.append((np.int64(index), codec.read(data)))
            except ActionNotFound:
                continue
        if len(fitting) == 1:
            return fitting[0]
        problem = "fits several of its choices" if fitting else "fits none of its choices"
        raise ActionNotFound(f'must be an object {{"choice": ..., "value": ...}}, and {quote_data(data)} {problem}')

    def listing(self) -> str:
        """Return what the value of each choice may be."""
        listed = [f'{{"choice": {index}, "value": <{codec.listing()}>}}' for index, codec in enumerate(self._codecs)]
        return " or ".join(listed)

    def representative(self) -> tuple[Any, Any]:
        """Return an ordinary value of the first choice."""
        return np.int64(0), self._codecs[0].representative()

    def _chosen(self, choice: Any, value: Any) -> tuple[Any, Any]:
        index = int(choice) if isinstance(choice, str) and choice.strip().isdecimal() and len(choice) < 10 else choice
        if isinstance(index, bool) or not isinstance(index, int | float) or index not in range(len(self._codecs)):
            raise ActionNotFound(f"must be a whole number from 0 to {len(self._codecs) - 1}, got {quote_data(choice)}", "`choice`")
        try:
            return np.int64(index), self._codecs[int(index)].read(value)
        except ActionNotFound as error:
            error.places.append("`value`")
            raise


class GraphCodec(Codec):
    """The actions of a `gymnasium.spaces.Graph`, as an object with nodes, edges, and the pairs of nodes that the edges link."""

    def __init__(self, space: gym.spaces.Graph, names: Mapping[str, Any] | None = None) -> None:
        """Describe the graphs.

        Args:
            space: The space.
            names: The names of a node's and of an edge's features, under ``nodes`` and ``edges``.

        Raises:
            ConfigurationError: If the names do not fit.
        """
        self.space = space
        if names is not None and not (isinstance(names, Mapping) and names.keys() <= {"nodes", "edges"}):
            raise ConfigurationError(f"expected names under the keys `nodes` and `edges` for {space}, got {names!r}")
        self.names = None if names is None else dict(names)
        # What Gymnasium batches nodes and edges into is what a stacked sequence is.
        self._nodes = _features(space.node_space, (names or {}).get("nodes"))
        self._edges = None if space.edge_space is None else _features(space.edge_space, (names or {}).get("edges"))
        properties: dict[str, Schema] = {"nodes": self._nodes.schema}
        self.schema: Schema = {"type": "object", "properties": properties, "required": ["nodes"], "additionalProperties": False}
        if self._edges is not None:
            link = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2}
            properties["edges"] = self._edges.schema
            properties["edge_links"] = {
                "type": "array",
                "items": link,
                "description": "for each edge the two nodes that it links, counted from 0",
            }
            self.schema["dependentRequired"] = {"edges": ["edge_links"], "edge_links": ["edges"]}

    def to_json(self, action: Any) -> dict[str, Any]:
        """Return nodes and, where there are any, edges and links."""
        if not isinstance(action, GraphInstance):
            raise InvalidAction(f"expected a GraphInstance for {self.space}, got {type(action).__name__}")
        data: dict[str, Any] = {"nodes": self._nodes.to_json(action.nodes)}
        if action.edges is not None and action.edge_links is not None and self._edges is not None:
            data |= {"edges": self._edges.to_json(action.edges), "edge_links": action.edge_links.tolist()}
        return data

    def read(self, data: Any) -> GraphInstance:
        """Return the graph, whose links are between its nodes."""
        given = mapping_of(data)
        known = {"nodes", "edges", "edge_links"}
        if given is None or "nodes" not in given or not given.keys() <= known:
            raise ActionNotFound(f"must be an object with the keys `nodes`, `edges` and `edge_links`, got {quote_data(data)}")
        nodes = _under("nodes", self._nodes.read, given["nodes"])
        edges, links = given.get("edges"), given.get("edge_links")
        if edges is None and links is None:
            return GraphInstance(nodes, None, None)
        if self._edges is None:
            raise ActionNotFound(f"must have no edges, got {quote_data(links if edges is None else edges)}")
        if edges is None or links is None:
            raise ActionNotFound("must have `edges` and `edge_links`, or neither of them")
        read_edges = _under("edges", self._edges.read, edges)
        count, links_count = (len(sequence_of(items) or ()) for items in (given["nodes"], edges))
        if links_count and not count:
            raise ActionNotFound("must have nodes for its edges to link")
        pairs = gym.spaces.Box(0, max(count - 1, 0), (links_count, 2), np.int32)
        return GraphInstance(nodes, read_edges, _under("edge_links", codec_for(pairs).read, links))

    def listing(self) -> str:
        """Return what nodes and edges may be."""
        edges = "" if self._edges is None else f', "edges": {self._edges.listing()}, "edge_links": [[<node>, <node>], ...]'
        return f'{{"nodes": {self._nodes.listing()}{edges}}}'

    def representative(self) -> GraphInstance:
        """Return two ordinary nodes, and two edges between them where there are edges."""
        if self._edges is None:
            return GraphInstance(self._nodes.representative(), None, None)
        links = np.array([[0, 1], [1, 0]], np.int32)
        return GraphInstance(self._nodes.representative(), self._edges.representative(), links)


def _features(space: Space, names: Any) -> Codec:
    return codec_for(gym.spaces.Sequence(space, stack=True), names)


def _multi_discrete(space: gym.spaces.MultiDiscrete[Any], names: Sequence[Any] | None) -> Codec:
    return multi_discrete_codec(space) if names is None else NamedMultiDiscreteCodec(space, names)


def _checked_names(space: Space, names: Any, count: int) -> list[Any] | None:
    """Return the names of members in order."""
    if names is None:
        return None
    if not isinstance(names, Sequence) or isinstance(names, str) or len(names) != count:
        raise ConfigurationError(f"expected a list of {_several(count, 'element')} with the names (or None) for {space}, got {names!r}")
    return list(names)


def _unstacked(space: Space, stacked: Any) -> list[Any]:
    """Return the items that `concatenate` put together, for which `iterate` needs a batched space of the right length."""
    if isinstance(space, gym.spaces.Tuple):
        return list(zip(*(_unstacked(member, part) for member, part in zip(space.spaces, stacked, strict=True)), strict=True))
    if isinstance(space, gym.spaces.Dict):
        parts = [_unstacked(member, stacked[key]) for key, member in space.spaces.items()]
        return [dict(zip(space.spaces, items, strict=True)) for items in zip(*parts, strict=True)]
    return list(stacked)


def _stacked(space: Space, items: Sequence[Any]) -> Any:
    """Return items as Gymnasium batches them."""
    empty: Any = create_empty_array(space, len(items))
    return concatenate(space, items, empty) if items else empty


def _under(key: str, read: Callable[[Any], Any], data: Any) -> Any:
    """Return what is read from data that stands under a key."""
    try:
        return read(data)
    except ActionNotFound as error:
        error.places.append(f"`{key}`")
        raise


def _listed(keys: Iterable[Any]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


register_codec(gym.spaces.Tuple, TupleCodec)
register_codec(gym.spaces.Dict, DictCodec)
register_codec(gym.spaces.Sequence, SequenceCodec)
register_codec(gym.spaces.OneOf, OneOfCodec)
register_codec(gym.spaces.Graph, GraphCodec)
register_codec(gym.spaces.MultiDiscrete, _multi_discrete)
