"""Which codec a space gets: names, spaces of a user's own, what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces as gs
from hypothesis import given
from hypothesis import strategies as st

from tests.codecs.spaces import same
from vfgym.codecs import ActionNotFound, Codec, codec_for, register_codec, registry
from vfgym.codecs.marks import EMPTY
from vfgym.errors import ConfigurationError, InvalidAction


class Even(gs.Discrete):
    """Even numbers: it contains less than its base class."""

    def contains(self, x: Any) -> bool:
        return super().contains(x) and int(x) % 2 == 0

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        return np.int64(super().sample() // 2 * 2)


class Mission(gym.Space[str]):
    """A direct subclass whose members are strings, like MiniGrid's MissionSpace."""

    def __init__(self) -> None:
        super().__init__(dtype=str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return f"get the {self.np_random.choice(['red', 'blue'])} ball"

    def contains(self, x: Any) -> bool:
        return x in ("get the red ball", "get the blue ball")


class Point(gym.Space[Any]):
    """A space of an unknown kind, with JSON of its own."""

    def sample(self, mask: Any = None, probability: Any = None) -> complex:
        return complex(int(self.np_random.integers(9)), 1)

    def contains(self, x: Any) -> bool:
        return isinstance(x, complex) and x.imag == 1

    def to_jsonable(self, sample_n: Any) -> Any:
        return [[point.real, point.imag] for point in sample_n]

    def from_jsonable(self, sample_n: Any) -> Any:
        return [complex(*pair) for pair in sample_n]


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


@pytest.mark.parametrize("names", [{-1: "left", 0: "stay", 1: "right"}, {"0": "stay", "1": "right", "-1": "left"}])
def test_names_may_be_given_by_number_in_any_order_and_as_json_has_them(names: Any) -> None:
    codec = codec_for(gs.Discrete(3, start=-1), names)
    assert codec.names == ["left", "stay", "right"]
    assert codec.decode("right") == 1


@pytest.mark.parametrize(
    ("space", "names"),
    [
        (gs.Discrete(2), ["left"]),
        (gs.Discrete(2), ["left", "left"]),
        (gs.Discrete(2), ["left", ""]),
        (gs.Discrete(2), ["left", 1]),
        (gs.Discrete(2), "ab"),
        (gs.Discrete(2), {0: "left"}),
        (gs.Discrete(2), {0: "left", 2: "right"}),
        (gs.Discrete(2), {0: "left", "0": "right"}),
        (gs.Discrete(2), {"0": "left", "2": "right"}),
        (gs.Discrete(2), {0: "left", 1: "right", "other": "up"}),
        (gs.Box(0, 1, (2,)), ["x"]),
        (gs.Box(0, 1, (2,)), ["x", "X"]),
        (gs.Box(0, 1, (2, 2)), ["x", "y"]),
        (gs.MultiBinary(2), "xy"),
        (gs.MultiDiscrete([2, 2]), ["off", "on"]),
        (gs.MultiDiscrete([2, 2]), [["off", "on"]]),
        (gs.Text(3), ["a"]),
        (gs.Tuple((gs.Discrete(2),)), [["a"]]),
        (gs.Tuple((gs.Discrete(2),)), []),
        (gs.Dict(a=gs.Discrete(2)), {"b": ["x", "y"]}),
        (gs.Dict(a=gs.Discrete(2)), ["x", "y"]),
        (gs.OneOf((gs.Discrete(2),)), [["a"]]),
        (gs.Graph(gs.Discrete(2), None), ["a", "b"]),
        (Point(), ["a"]),
    ],
)
def test_names_that_do_not_fit_are_refused(space: Any, names: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        codec_for(space, names)


def test_only_spaces_have_codecs() -> None:
    with pytest.raises(ConfigurationError, match=r"expected a gymnasium\.Space, got 3"):
        codec_for(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="differ as texts"):
        codec_for(gs.Dict({1: gs.Discrete(2), "1": gs.Discrete(2)}))  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match="64-bit"):
        codec_for(gs.Box(0, 1, (2,), np.longdouble))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("space", "action"),
    [
        (gs.Discrete(3), -1),
        (gs.Discrete(3), 1.5),
        (gs.Discrete(3), "1"),
        (gs.Box(0, 1, (2,)), np.zeros(3)),
        (gs.Box(0, 1, (2,)), "ab"),
        (gs.MultiDiscrete([2, 2]), np.zeros(3, int)),
        (gs.Text(3), 5),
        (gs.Tuple((gs.Discrete(2),)), ()),
        (gs.Tuple((gs.Discrete(2),)), None),
        (gs.Dict(a=gs.Discrete(2)), {"b": 1}),
        (gs.OneOf((gs.Discrete(2),)), (1, 0)),
        (gs.OneOf((gs.Discrete(2),)), 0),
        (gs.Graph(gs.Discrete(2), None), [0]),
    ],
)
def test_what_has_not_the_form_of_an_action_is_not_written(space: Any, action: Any) -> None:
    with pytest.raises(InvalidAction, match="expected"):
        codec_for(space).encode(action)


NAMES = st.text("abc xyzAB-+.,:'\"12é", min_size=1, max_size=6) | st.text(min_size=1, max_size=6)


@given(
    st.lists(NAMES.filter(lambda name: name.strip() == name and name not in EMPTY), min_size=1, max_size=12, unique=True),
    st.integers(-5, 5),
)
def test_every_name_is_read_as_its_action(names: list[str], start: int) -> None:
    space = gs.Discrete(len(names), start=start)
    codec = codec_for(space, names)
    for number, name in enumerate(names, start):
        action = codec.decode(name)
        assert same(action, np.int64(number))
        assert codec.encode(action) == name
        if not any(each.strip("+-0.") == str(abs(number)).strip("0") for each in names):
            assert codec.from_json(number) == number
        assert codec.decode(f"I will take <action> {name} </action>!") == number


@given(st.integers(1, 3000), st.integers(-2000, 2000), st.data())
def test_every_number_is_read_as_its_action(n: int, start: int, data: st.DataObject) -> None:
    codec = codec_for(gs.Discrete(n, start=start))
    number = data.draw(st.integers(start, start + n - 1))
    for text in (str(number), f"I will take <action> {number} </action>.", f"My answer: {number}.", f"**Action: {number}**"):
        assert same(codec.decode(text), np.int64(number))
    for beyond in (start - 1, start + n):
        with pytest.raises(ActionNotFound):
            codec.decode(str(beyond))


def test_a_name_that_looks_like_a_number_is_a_name() -> None:
    codec = codec_for(gs.Discrete(2), ["1", "0"])
    assert codec.decode("1") == 0
    assert codec.from_json("1") == 0
    with pytest.raises(ActionNotFound, match="since 1 is the number of one action and the name of another"):
        codec.from_json(1)
    forces = codec_for(gs.Discrete(3), ["2.0", "1.0", "-1.0"])
    assert [forces.from_json(data) for data in (1, 1.0, "1", "-1", "2")] == [1, 1, 1, 2, 0]
    for data in (2, 2.0):
        with pytest.raises(ActionNotFound, match="must be a name in quotes"):
            forces.from_json(data)


def test_keys_of_any_kind_are_written_as_texts() -> None:
    space = gs.Dict({1: gs.Discrete(2), "a": gs.Discrete(2)})  # type: ignore[dict-item]
    action = space.sample()
    codec = codec_for(space)
    assert same(codec.decode(codec.encode(action)), action)


def test_a_mask_names_the_legal_texts() -> None:
    mask = np.array([1, 0, 1], np.int8)
    assert codec_for(gs.Discrete(3, start=4)).legal_texts(mask) == ["4", "6"]
    named = codec_for(gs.Discrete(3), ["a", "b", "c"])
    assert named.legal_texts(mask) == ["a", "c"]
    assert named.legal_texts(None) is None
    assert codec_for(gs.MultiBinary(3)).legal_texts(mask) is None
    with pytest.raises(ConfigurationError, match=r"a mask of shape \(3,\).*got shape \(2,\)"):
        named.legal_texts(mask[:2])


def test_a_subclass_is_read_like_its_base_class_and_keeps_its_own_limits() -> None:
    codec = codec_for(Even(9), [f"cell {number}" for number in range(9)])
    assert codec.decode("cell 4") == 4
    assert codec.from_json("cell 4") == 4
    assert codec.decode(codec.example()) in codec.space
    for read in (codec.decode, codec.from_json):
        with pytest.raises(ActionNotFound, match="is not valid here, got cell 3"):
            read("cell 3")
    with pytest.raises(ActionNotFound, match="Element 1 is not valid here"):
        codec_for(gs.Tuple((Even(9),))).decode("[3]")
    assert codec.legal_texts([1] * 2 + [0] * 7) == ["cell 0", "cell 1"]


def test_a_space_of_strings_is_read_as_text() -> None:
    space = Mission()
    codec = codec_for(space)
    assert codec.encode("get the red ball") == "get the red ball"
    assert codec.decode("<action>get the blue ball</action>") == "get the blue ball"
    assert codec.from_json(codec.to_json("get the red ball")) == "get the red ball"
    assert codec.decode(codec.example()) in space
    with pytest.raises(ActionNotFound, match="must be another text"):
        codec.decode("get the green ball")


def test_an_unknown_kind_is_read_by_its_own_json() -> None:
    codec = codec_for(gs.Tuple((Point(), gs.Discrete(2))))
    assert codec.encode((3 + 1j, np.int64(0))) == "[[3, 1], 0]"
    assert codec.decode("[[3, 1], 0]") == (3 + 1j, 0)
    assert codec.decode(codec.example()) in codec.space
    for text in ("[[3, 2], 0]", "[[3], [0]]", "[{}, 0]", "[null, 0]"):
        with pytest.raises(ActionNotFound):
            codec.decode(text)


def test_a_user_can_register_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))

    class PointCodec(Codec):
        schema = {"type": "integer"}

        def __init__(self, space: Any, names: Any) -> None:
            self.space, self.names = space, names

        def to_json(self, action: Any) -> int:
            return int(action.real)

        def read(self, data: Any) -> complex:
            if type(data) is not int:
                raise ActionNotFound(f"must be a whole number, got {data!r}")
            return complex(data, 1)

        def listing(self) -> str:
            return "a whole number"

        def representative(self) -> complex:
            return 3 + 1j

    register_codec(Point, PointCodec)
    codec = codec_for(gs.Tuple((Point(), Point())))
    assert codec.example() == "[3, 3]"
    assert codec.decode("Action: [4, 5]") == (4 + 1j, 5 + 1j)
    with pytest.raises(ActionNotFound, match=r"Element 2 must be a whole number, got 'x'\. Valid actions: \[<a whole number>"):
        codec.decode("[4, x]")
    with pytest.raises(ConfigurationError, match=r"a subclass of gymnasium\.Space"):
        register_codec(int, PointCodec)  # type: ignore[arg-type]


def test_minigrids_missions_are_texts() -> None:
    mission = pytest.importorskip("minigrid.core.mission")
    space = mission.MissionSpace(lambda color: f"get the {color} ball", ordered_placeholders=[["red", "blue"]])
    codec = codec_for(space)
    assert codec.decode(codec.encode("get the red ball")) == "get the red ball"


def test_a_copied_codec_shares_nothing_random_with_the_game() -> None:
    space = gs.Discrete(3, seed=5)
    twin = copy.deepcopy(space)
    codec = codec_for(gs.Tuple((space, Even(4), gs.Graph(gs.Discrete(2), None))))
    codec.example()
    codec.listing()
    assert [space.sample() for _ in range(9)] == [twin.sample() for _ in range(9)]
