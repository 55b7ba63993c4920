"""Codecs of spaces that are made of spaces: tuples, dicts, sequences, choices, graphs and arrays of names."""

from __future__ import annotations

import pickle

from gymnasium import spaces as gs

from tests.codecs.spaces import same
from vfgym.codecs import codec_for


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
