"""Values that rows drop: where they stood, and what the log says."""

from __future__ import annotations

import pytest

from vfgym.results.dropped_values import DroppedValueLog, Place, StandIn, resolve_stand_ins


def test_stand_ins_become_text_and_their_places_are_named() -> None:
    places: list[Place] = []
    data = {"a": [1, [StandIn.of("x", "first"), "kept"]], "b": {"c": StandIn.of("y", "second")}, "d": None}
    found = resolve_stand_ins(data, "info", places)
    assert found is data
    assert found == {"a": [1, ["x", "kept"]], "b": {"c": "y"}, "d": None}
    assert type(found["b"]["c"]) is str
    assert type(found["a"][1][0]) is str
    assert places == [("info.a[1][0]", "first"), ("info.b.c", "second")]


def test_a_stand_in_alone_is_its_text() -> None:
    places: list[Place] = []
    assert type(resolve_stand_ins(StandIn.of("", "why"), "socket", places)) is str
    assert places == [("socket", "why")]
    assert resolve_stand_ins(5, "n", places) == 5


def test_each_kind_of_place_is_warned_of_once_in_a_run(caplog: pytest.LogCaptureFixture) -> None:
    log = DroppedValueLog()
    log.warn({"example_id": 0}, [])
    assert caplog.messages == []
    log.warn({"example_id": 4, "rollout": 2}, [Place("steps[0].lock", "no form"), Place("steps[1].lock", "no form")])
    assert "example 4, rollout 2 leaves out steps[0].lock: no form (" in caplog.text
    log.warn({"example_id": 5}, [Place("steps[12].lock", "no form")])
    assert len(caplog.messages) == 1
    log.warn({"example_id": 5, "rollout": None}, [Place("steps[3].lock", "no form"), Place("steps[0].key", "bytes")], "holds as text only")
    assert caplog.messages[1].startswith("the row of example 5, rollout 0 holds as text only steps[0].key: bytes (")
    DroppedValueLog().warn({"example_id": 5}, [Place("steps[12].lock", "no form")])
    assert len(caplog.messages) == 3, "each run has a log of its own"


@pytest.mark.parametrize(("count", "more"), [(5, None), (6, "; and 1 more ("), (8, "; and 3 more (")])
def test_one_warning_names_five_places(count: int, more: str | None, caplog: pytest.LogCaptureFixture) -> None:
    DroppedValueLog().warn({"example_id": 0}, [Place(f"key{number}", "no form") for number in range(count)])
    assert "key4: no form" in caplog.text
    assert "key5" not in caplog.text
    assert ("more (" in caplog.text) == (more is not None)
    assert more is None or more in caplog.text


def test_after_20_kinds_a_run_says_so_and_warns_no_more(caplog: pytest.LogCaptureFixture) -> None:
    log = DroppedValueLog()
    for number in range(25):
        log.warn({"example_id": number}, [Place(f"key{number}", "no form")])
    assert len(caplog.messages) == 21
    assert "example 19" in caplog.messages[-2]
    assert "no further places are reported" in caplog.messages[-1]
