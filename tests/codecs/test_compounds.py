"""Codecs of spaces that are made of spaces: tuples, dicts, sequences, choices, graphs and arrays of names."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs

from tests.codecs.spaces import same
from vfgym.codecs import ActionNotFound, codec_for
from vfgym.errors import ConfigurationError, InvalidAction


def test_the_schema_of_a_sequence_is_that_of_its_items() -> None:
    assert MANY.schema == {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 1}}


def test_empty_sequences_and_graphs_without_edges() -> None:
    for item in (gs.Discrete(3), gs.Box(-1, 1, (2,)), gs.Text(3), gs.Dict(a=gs.Discrete(2))):
        plain, stacked = (codec_for(gs.Sequence(item, stack=stack)) for stack in (False, True))
        assert plain.decode("[]") == ()
        assert stacked.decode("[]") in stacked.space
        assert stacked.encode(stacked.decode("[]")) == "[]"
    graph = gs.Graph(gs.Discrete(3), gs.Box(0, 1, (2,)), seed=1)
    codec = codec_for(graph)
    for sample in (graph.sample(num_nodes=3, num_edges=0), graph.sample(num_nodes=1), graph.sample(num_nodes=2, num_edges=5)):
        assert same(codec.decode(codec.encode(sample)), sample)


def test_an_action_of_the_key_action_is_not_unwrapped_twice() -> None:
    codec = codec_for(gs.Dict(action=gs.Discrete(2)))
    assert codec.decode('{"action": 1}') == {"action": 1}
    assert codec.decode('{"action": {"action": 1}}') == {"action": 1}
    both = codec_for(gs.Dict(action=gs.Discrete(3), gear=gs.Discrete(2)))
    assert both.decode('{"action": {"action": 2, "gear": 1}}\nIt is free.') == {"action": 2, "gear": 1}
    with pytest.raises(ActionNotFound, match="must have the key `gear`"):
        both.decode('{"action": 1}')


def test_names_stand_for_the_numbers_at_any_depth() -> None:
    space = gs.Dict(
        go=gs.Discrete(2, start=5),
        pads=gs.Tuple((gs.MultiDiscrete([[2, 2], [2, 3]]), gs.Box(0, 1, (2,)))),
        more=gs.Sequence(gs.Discrete(2)),
        either=gs.OneOf((gs.Discrete(2), gs.Text(3))),
        net=gs.Graph(gs.Discrete(2), gs.Discrete(2)),
    )
    on_off = ["off", "on"]
    names = {
        "go": {5: "stay", 6: "leave"},
        "pads": ([[on_off, None], [on_off, ["a", "b", "c"]]], ["x", "y"]),
        "more": on_off,
        "either": [on_off, None],
        "net": {"nodes": on_off},
    }
    codec = codec_for(space, names)
    data = {
        "either": {"choice": 0, "value": "on"},
        "go": "leave",
        "more": ["on", "off"],
        "net": {"nodes": ["on", "off"], "edges": [1], "edge_links": [[0, 1]]},
        "pads": [[["off", 1], ["on", "c"]], [0.5, 1.0]],
    }
    action = codec.from_json(data)
    assert action in space
    assert codec.to_json(action) == data
    assert same(codec.decode(codec.encode(action)), action)
    assert action["pads"][0].tolist() == [[0, 1], [1, 2]]
    assert codec == codec_for(space, names)
    assert codec != codec_for(space)
    assert same(pickle.loads(pickle.dumps(codec)).from_json(data), action)


def test_keys_of_any_kind_are_written_as_texts() -> None:
    space = gs.Dict({1: gs.Discrete(2), "a": gs.Discrete(2)})  # type: ignore[dict-item]
    action = space.sample()
    codec = codec_for(space)
    assert same(codec.decode(codec.encode(action)), action)


TUPLE = codec_for(gs.Tuple((gs.Discrete(2), gs.Discrete(3))), [["off", "on"], None])
DICT = codec_for(gs.Dict(move=gs.Discrete(2), aim=gs.Box(0, 9, (2,), np.int8)), {"move": ["go", "stay"]})
MANY = codec_for(gs.Sequence(gs.Discrete(2)))
STACKED = codec_for(gs.Sequence(gs.Dict(a=gs.Discrete(2), b=gs.Tuple([gs.Discrete(9), gs.Discrete(10)])), stack=True))
EITHER = codec_for(gs.OneOf([gs.Discrete(2), gs.Discrete(3), gs.Text(5)]), [["off", "on"], None, None])
NET = codec_for(gs.Graph(gs.Discrete(2), gs.Discrete(3)), {"nodes": ["a", "b"], "edges": ["x", "y", "z"]})
POINTS = codec_for(gs.Graph(gs.Discrete(2), None))
PAD = codec_for(gs.MultiDiscrete([2, 3], start=[0, 1]), [["off", "on"], None])


@pytest.mark.parametrize(
    ("codec", "data", "written"),
    [
        (TUPLE, ["ON", "2"], ["on", 2]),
        (TUPLE, (0, 0), ["off", 0]),
        (DICT, {"aim": "[1, 2]", "move": 1}, {"move": "stay", "aim": [1, 2]}),
        (DICT, '{"move": 0, "aim": [0, 0]}', {"move": "go", "aim": [0, 0]}),
        (MANY, [], []),
        (MANY, "[1, 0]", [1, 0]),
        (STACKED, [{"a": 1, "b": [0, 9]}, {"a": 0, "b": [8, 7]}], [{"a": 1, "b": [0, 9]}, {"a": 0, "b": [8, 7]}]),
        (EITHER, {"choice": " 0 ", "value": 0}, {"choice": 0, "value": "off"}),
        (EITHER, {"choice": 0, "value": "on"}, {"choice": 0, "value": "on"}),
        (EITHER, {"choice": "1", "value": 2}, {"choice": 1, "value": 2}),
        (EITHER, {"choice": 1.0, "value": 0}, {"choice": 1, "value": 0}),
        (EITHER, "hello", {"choice": 2, "value": "hello"}),
        (NET, {"nodes": ["a", 1], "edges": ["z"], "edge_links": [[1, 0]]}, {"nodes": ["a", "b"], "edges": ["z"], "edge_links": [[1, 0]]}),
        (NET, {"nodes": ["a"]}, {"nodes": ["a"]}),
        (NET, {"nodes": [], "edges": [], "edge_links": []}, {"nodes": [], "edges": [], "edge_links": []}),
        (NET, {"nodes": [0], "edges": None, "edge_links": None}, {"nodes": ["a"]}),
        (POINTS, {"nodes": [1, 0]}, {"nodes": [1, 0]}),
        (PAD, ["on", 3], ["on", 3]),
    ],
)
def test_members_are_read_by_their_own_codecs(codec: Any, data: Any, written: Any) -> None:
    action = codec.from_json(data)
    assert action in codec.space
    assert codec.to_json(action) == written


@pytest.mark.parametrize(
    ("codec", "data", "problem"),
    [
        (TUPLE, [0], "The action must have 2 elements, got 1"),
        (TUPLE, 3, "The action must be a list of 2 elements, got 3"),
        (TUPLE, [0, 3], "Element 2 must be a whole number from 0 to 2, got 3"),
        (DICT, 3, "The action must be an object with 2 keys `move`, `aim`, got 3"),
        (DICT, {}, "must have the key `move`, got only no key"),
        (DICT, {"aim": [0, 0]}, "must have the key `move`, got only `aim`"),
        (DICT, {"move": 0, "aim": [0, 99]}, "Element 2 of `aim` must be from 0 to 9, got 99"),
        (DICT, {"mvoe": 0, "aim": [0, 0]}, "must have no key `mvoe`. Did you mean `move`? Its keys are `move`, `aim`"),
        (MANY, {}, "must be a list, got {}"),
        (MANY, [0, 1, 2], "Element 3 must be a whole number from 0 to 1, got 2"),
        (EITHER, 0, "0 fits several of its choices"),
        (EITHER, [], "[] fits none of its choices"),
        (EITHER, {"choice": 3, "value": 0}, "`choice` must be a whole number from 0 to 2, got 3"),
        *[(EITHER, {"choice": choice, "value": 0}, "`choice` must be a whole number") for choice in (True, -1, 0.5, "-1", "", "0" * 10)],
        (EITHER, {"choice": 0, "value": 0, "why": 0}, "fits none of its choices"),
        (EITHER, {"choice": None, "value": 0}, "`choice` must be a whole number"),
        (EITHER, {"choice": 1, "value": 3}, "`value` must be a whole number from 0 to 2, got 3"),
        (NET, [], "must be an object with the keys `nodes`, `edges` and `edge_links`, got []"),
        (NET, {"edges": []}, "must be an object with the keys"),
        (NET, {"nodes": [], "names": []}, "must be an object with the keys"),
        (NET, {"nodes": [0], "edge_links": [[0, 0]]}, "must have `edges` and `edge_links`, or neither of them"),
        (NET, {"nodes": [0], "edges": [0], "edge_links": [[0, 1]]}, "of `edge_links` must be from 0 to 0, got 1"),
        (NET, {"nodes": [0], "edges": [9], "edge_links": [[0, 0]]}, "Element 1 of `edges` must be"),
        (NET, {"nodes": [0, 2]}, "Element 2 of `nodes` must be"),
        (NET, {"nodes": [0], "edges": [0]}, "must have `edges` and `edge_links`, or neither of them"),
        (NET, {"nodes": [], "edges": [0], "edge_links": [[0, 0]]}, "must have nodes for its edges to link"),
        (NET, {"nodes": [0], "edges": [0], "edge_links": []}, "`edge_links` must have 1 element, got 0"),
        (POINTS, {"nodes": [0], "edges": [0]}, "must have no edges, got [0]"),
        (POINTS, {"nodes": [0], "edge_links": [[0, 0]]}, "must have no edges, got [[0, 0]]"),
        (PAD, ["on", 0], "Element 2 must be a whole number from 1 to 3, got 0"),
        (PAD, "on", "must be a list of 2 elements"),
    ],
)
def test_a_problem_is_told_with_its_place(codec: Any, data: Any, problem: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        codec.from_json(data)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("codec", "listing", "example"),
    [
        (TUPLE, "[<0 (off), 1 (on)>, <0, 1, 2>]", '["off", 1]'),
        (DICT, '{"move": <0 (go), 1 (stay)>, "aim": <a list of 2 whole numbers, each from 0 to 9>}', '{"move": "go", "aim": [5, 5]}'),
        (MANY, "[<0, 1>, ...], of any length", "[0, 0]"),
        (PAD, "[<0 (off), 1 (on)>, <1, 2, 3>]", '["off", 2]'),
        (EITHER, '{"choice": 0, "value": <0 (off), 1 (on)>} or {"choice": 1, "value": <0, 1, 2>} or ', '{"choice": 0, "value": "off"}'),
        (NET, '{"nodes": [<0 (a), 1 (b)>, ...], of any length, "edges": [<0 (x), 1 (y), 2 (z)>, ...], of any length,', None),
        (POINTS, '{"nodes": [<0, 1>, ...], of any length}', '{"nodes": [0, 0]}'),
    ],
)
def test_members_are_listed(codec: Any, listing: str, example: str | None) -> None:
    assert codec.listing().startswith(listing)
    if example is not None:
        assert codec.example() == example
    else:
        assert json.loads(codec.example())["edge_links"] == [[0, 1], [1, 0]]


def test_an_array_of_names_has_its_dtype_and_one_element_needs_no_list() -> None:
    codec = codec_for(gs.MultiDiscrete([2], dtype=np.int8), [["off", "on"]])
    assert same(codec.from_json("on"), np.array([1], np.int8))
    assert same(codec.decode(codec.example()), np.array([0], np.int8))
    assert same(codec.representative(), np.array([0], np.int8))
    with pytest.raises(ConfigurationError, match="which has no elements"):
        codec_for(gs.MultiDiscrete(np.array(3)), [["a"]])


def test_a_choice_may_be_numbered_as_numpy_does_and_is_written_as_json() -> None:
    data = EITHER.to_json((np.int64(1), np.int64(2)))
    assert json.dumps(data) == '{"choice": 1, "value": 2}'
    for action in ((3, 0), (0,), [0, 0]):
        with pytest.raises(InvalidAction, match="expected a choice from 0 to 2"):
            EITHER.to_json(action)


@pytest.mark.parametrize(
    ("codec", "action", "problem"),
    [
        (TUPLE, (0,), "expected 2 elements for Tuple"),
        (TUPLE, "01", "expected 2 elements for Tuple"),
        (codec_for(gs.Tuple([gs.Discrete(2)])), (0, 0), "expected 1 element for Tuple"),
        (DICT, {"move": 0}, "expected a dict with the keys `move`, `aim` for Dict"),
        (DICT, {"move": 0, "aim": [0, 0], "more": 0}, "expected a dict with the keys `move`, `aim` for Dict"),
        (DICT, (0, 0), "expected a dict with the keys `move`, `aim` for Dict"),
        (NET, (0, None, None), "expected a GraphInstance for Graph.*, got tuple$"),
    ],
)
def test_what_is_not_an_action_is_not_written(codec: Any, action: Any, problem: str) -> None:
    with pytest.raises(InvalidAction, match=f"^{problem}"):
        codec.to_json(action)


PAIR = gs.Tuple([gs.Discrete(2), gs.Discrete(2)])


@pytest.mark.parametrize(
    ("space", "names", "problem"),
    [
        *[
            (PAIR, names, r"expected a list of 2 elements with the names \(or None\) for Tuple")
            for names in ([], [None], [None] * 3, "ab", 0)
        ],
        (gs.OneOf([gs.Discrete(2)]), [], "expected a list of 1 element with the names"),
        (gs.Dict(a=gs.Discrete(1)), {"b": ["x"]}, "expected names under the keys `a`, got {'b'"),
        (gs.Dict(a=gs.Discrete(1)), ["x"], r"expected names under the keys `a`, got \['x'\]"),
        (gs.Graph(gs.Discrete(1), None), {"edge": ["x"]}, "expected names under the keys `nodes` and `edges` for Graph.*, got {'edge'"),
        (gs.Graph(gs.Discrete(1), None), [], "expected names under the keys `nodes` and `edges`"),
    ],
)
def test_names_that_do_not_fit_are_refused(space: Any, names: Any, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{problem}"):
        codec_for(space, names)


@pytest.mark.parametrize(
    ("space", "names", "change"),
    [
        (PAIR, [["a", "b"], None], lambda names: names.clear()),
        (gs.Dict(a=gs.Discrete(2)), {"a": ["x", "y"]}, lambda names: names.clear()),
        (gs.Graph(gs.Discrete(2), None), {"nodes": ["x", "y"]}, lambda names: names.clear()),
    ],
)
def test_names_that_change_afterwards_are_kept_as_they_were(space: Any, names: Any, change: Any) -> None:
    codec, same_names = codec_for(space, names), codec_for(space, names.copy())
    change(names)
    assert codec == same_names
    assert codec.names == same_names.names


def test_the_longest_action_is_that_of_all_members_together_or_of_the_longest_choice() -> None:
    text = gs.Text(100)
    longest = codec_for(text).longest
    assert longest >= 100
    assert codec_for(gs.Tuple((text, text))).longest == codec_for(gs.Dict(a=text, b=text)).longest == 2 * longest
    assert codec_for(gs.OneOf((gs.Text(5), text))).longest == longest


def test_schemas_name_what_must_be_there() -> None:
    assert TUPLE.schema["prefixItems"] == [{"type": "string", "enum": ["off", "on"]}, {"type": "integer", "minimum": 0, "maximum": 2}]
    assert (TUPLE.schema["minItems"], TUPLE.schema["maxItems"]) == (2, 2)
    assert codec_for(gs.Tuple(())).schema == {"type": "array", "minItems": 0, "maxItems": 0}
    assert (DICT.schema["required"], DICT.schema["additionalProperties"]) == (["move", "aim"], False)
    assert [each["properties"]["choice"] for each in EITHER.schema["anyOf"]] == [{"const": 0}, {"const": 1}, {"const": 2}]
    assert NET.schema["dependentRequired"] == {"edges": ["edge_links"], "edge_links": ["edges"]}
    assert POINTS.schema["properties"].keys() == {"nodes"}
