"""Which codec a space gets: names, spaces of a user's own, what is refused."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces as gs

from tests.codecs.spaces import Point
from vfgym.codecs import ActionNotFound, Codec, codec_for, register_codec, registry
from vfgym.errors import ConfigurationError, InvalidAction


class Even(gs.Discrete):
    """Even numbers: it contains less than its base class."""

    def contains(self, x: Any) -> bool:
        return super().contains(x) and int(x) % 2 == 0

    def sample(self, *args: Any, **kwargs: Any) -> Any:
        return np.int64(super().sample() // 2 * 2)


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
        (gs.Dict(a=gs.Discrete(2)), {"a": ["x", "y"], "b": None}),
        (gs.Tuple((gs.Discrete(2),)), "a"),
        (gs.OneOf((gs.Discrete(2), gs.Text(3), gs.Text(4))), [None, None]),
        (gs.Graph(gs.Discrete(2), None), {"links": ["a"]}),
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


def test_the_example_of_a_subclass_is_an_action_of_its_own() -> None:
    class Odd(gs.Discrete):
        def contains(self, x: Any) -> bool:
            return super().contains(x) and int(x) % 2 == 1

        def sample(self, *args: Any, **kwargs: Any) -> Any:
            return np.int64(super().sample() // 2 * 2 + 1)

    for codec in (codec_for(Odd(8)), codec_for(Odd(10)), codec_for(Even(8)), codec_for(Even(10))):
        assert codec.decode(codec.example()) in codec.space
    codec = codec_for(Odd(10))
    assert codec.to_json(np.int64(3)) == 3
    assert codec.read_exactly("3") == 3
    assert codec.read_exactly("4") is None
    assert codec.read_exactly("three") is None


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
    with pytest.raises(ConfigurationError, match=r"a subclass of gymnasium\.Space, got Discrete\(2\)"):
        register_codec(gs.Discrete(2), PointCodec)  # type: ignore[arg-type]


def test_a_class_of_its_own_kind_is_not_read_like_its_base_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_factories", dict(registry._factories))
    given: list[Any] = []

    def make(space: Any, names: Any) -> Codec:
        given.append((space, names))
        return codec_for(gs.Discrete(2), names)

    register_codec(Even, make)
    even, names = Even(9), ["a", "b"]
    assert codec_for(even, names).decode("b") == 1
    assert given == [(even, names)]
    assert type(codec_for(gs.Discrete(2))) is type(codec_for(even, names))


def test_a_copied_codec_shares_nothing_random_with_the_game() -> None:
    space = gs.Discrete(3, seed=5)
    twin = copy.deepcopy(space)
    codec = codec_for(gs.Tuple((space, Even(4), gs.Graph(gs.Discrete(2), None))))
    codec.example()
    codec.listing()
    assert [space.sample() for _ in range(9)] == [twin.sample() for _ in range(9)]
