"""Items: made when they are asked for, from their own seed, and kept for a while."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.wrappers.reasoning_gym.making import items_of
from vfgym.errors import ConfigurationError
from vfgym.wrappers.reasoning_gym import items as items_module
from vfgym.wrappers.reasoning_gym.items import ItemIds, ItemRows, Items, as_share
from vfgym.wrappers.reasoning_gym.levels import Share

pytest.importorskip("reasoning_gym", reason="needs the extra reasoning-gym")


class Drawing:
    """A dataset whose items hold the first random numbers of the process, and which counts what it makes."""

    def __init__(self, size: int = 2000, seed: int = 5) -> None:
        self.size, self.seed, self.made = size, seed, Counter[int]()

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> dict[str, Any]:
        self.made[index] += 1
        return {"question": f"{random.random()} {np.random.rand()}", "answer": None, "metadata": {}}

    def score_answer(self, answer: str | None, entry: Any) -> float:
        return 0.0


def drawn(seed: int) -> str:
    return f"{random.Random(seed).random()} {np.random.RandomState(seed).rand()}"


def test_each_item_is_made_from_the_seed_of_its_index() -> None:
    """Also where it is made out of order, and again."""
    items = Items.of(Drawing(), 2000)
    indices = [0, 1, 1029, 7, 1029, *range(1000, 1100), 1999]
    assert [items.entry(index)["question"] for index in indices] == [drawn(5 + index) for index in indices]


def test_the_last_thousand_entries_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    assert items_module._MOST_KEPT == 1024
    monkeypatch.setattr(items_module, "_MOST_KEPT", 3)
    dataset = Drawing()
    items = Items.of(dataset, 10)
    kept = items.entry(0)
    assert items.entry(0) is kept
    for index in (1, 2, 3):
        items.entry(index)
    assert (len(items._kept), dataset.made) == (3, Counter({0: 1, 1: 1, 2: 1, 3: 1}))
    assert items.entry(0) == kept, "it is made again, and alike"
    assert dataset.made[0] == 2
    items.entry(2)
    assert dataset.made[2] == 1


def test_ids_name_level_and_index() -> None:
    items = Items([Share("chain_sum")], size=8, seed=3, is_composite=False, has_levels=True)
    row = ItemRows(items, [2, 26]).row(26)
    assert (row["example_id"], row["info"]) == (26, {"source_dataset": "chain_sum", "index": 2, "level": 3})
    assert row["question"] == items.dataset(3)[2]["question"] != items.dataset(0)[2]["question"]
    assert (items.dataset(), items.source_of(2), items.source(items.entry(2))) == (items.dataset(0), "chain_sum", "chain_sum")


def test_the_size_and_the_seed_are_those_of_the_dataset() -> None:
    """The items of acre depend on the size, and those of word_ladder and list_functions end there."""
    for name in ("acre", "list_functions", "word_ladder"):
        items = items_of(name, 8, seed=4)
        assert (items.dataset().size, items.dataset().seed, bool(items.entry(7)["question"])) == (8, 4, True)


def test_rows_are_plain_data_and_made_when_they_are_asked_for() -> None:
    items = items_of("leg_counting", 1_000_000)
    rows = ItemRows(items, range(10, 1_000_000))
    assert (len(rows), rows.example_ids[0], items._datasets, items._kept) == (999_990, 10, {}, {})
    row = json.loads(json.dumps(rows[2]))
    assert row == rows[2] == {**row, "info": {"source_dataset": "leg_counting", "index": 12}, "example_id": 12}
    assert row.keys() == {"question", "answer", "info", "example_id"}
    assert list(items._kept) == [12]


def test_answers_are_text_or_none() -> None:
    items = Items.of(Drawing(), 3)
    items._kept[0] = {"question": "?", "answer": 0, "metadata": {}}
    assert [row["answer"] for row in ItemRows(items, range(2))] == ["0", None]


def test_ids_follow_the_levels_of_the_moment() -> None:
    """Slices of them, too; what is the id of no item now is not among them."""
    items, levels = items_of("leg_counting", 10), {2: 0, 3: 4, 4: 0}
    ids = ItemIds(items, range(2, 5), lambda index: levels[index])
    assert (list(ids), len(ids), list(ids[1:])) == ([2, 43, 4], 3, [43, 4])
    assert [ids.index(example_id) for example_id in (2, 43, 4)] == [0, 1, 2]
    assert [example_id in ids for example_id in (43, 3, 42, 5, 1, "2", None)] == [True, *[False] * 6]
    levels[3] = 0
    assert list(ids) == [2, 3, 4]
    with pytest.raises(ValueError, match="43 is not among the ids"):
        ids.index(43)


def test_an_answer_is_scored_by_the_dataset_of_its_level() -> None:
    items, harder = Items.of(Drawing(), 4), Drawing()
    harder.score_answer = lambda answer, entry: 0.75  # type: ignore[method-assign]
    items._datasets[1] = harder
    assert (items.score_later("x", 3), items.score_later("x", 4 + 3)) == (0.0, 0.75)


# Composites


def test_an_item_of_a_composite_is_of_the_dataset_that_reasoning_gym_draws() -> None:
    """With the weights and configurations of its parts; the item need not be made to know."""
    shares = [Share("leg_counting"), Share("graph_color", 3.0, {"min_num_vertices": 5}), Share("chain_sum", 0.5)]
    items = Items(shares, size=1100, seed=9, is_composite=True)
    for index in (*range(30), 1024, 1029, 1099):
        assert items.source_of(index) == items.source(items.entry(index))
    drawn = Counter(items.source_of(index) for index in range(1100))
    assert drawn["graph_color"] > 2 * drawn["leg_counting"] > 2 * drawn["chain_sum"] > 0
    assert items.dataset().datasets["graph_color"].config.min_num_vertices == 5


def test_a_part_of_a_composite_without_a_level_is_of_the_one_below() -> None:
    items = Items([Share("spiral_matrix"), Share("chain_sum")], size=4, seed=0, is_composite=True, has_levels=True)
    hardest = items.configurations["spiral_matrix"][3]
    made = items.dataset(7).datasets
    assert made["spiral_matrix"].config.max_n == hardest["max_n"]
    assert made["chain_sum"].config.max_terms == items.configurations["chain_sum"][7]["max_terms"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("leg_countin", "Did you mean `leg_counting`"),
        ("composite", "cannot be a part"),
        (3, "a dataset's name, or a dict"),
        ({"weight": 1.0}, "a dataset's name, or a dict"),
        ({"name": 3}, "a dataset's name, or a dict"),
        ({"name": "chain_sum", "wheight": 1.0}, "'wheight'"),
        *(({"name": "chain_sum", "weight": weight}, "positive number") for weight in (0, -1, "1", float("inf"), float("nan"))),
        *(({"name": "chain_sum", "config": {key: 3}}, f"must not set '{key}'") for key in ("seed", "size")),
        ({"name": "chain_sum", "config": [1]}, "must be a dict"),
    ],
)
def test_a_part_that_cannot_be_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        as_share(given)


def test_parts_are_names_or_dicts() -> None:
    assert as_share("gcd") == Share("gcd", 1.0, {})
    assert as_share({"name": "gcd", "weight": 2, "config": {"min_value": 3}}) == Share("gcd", 2, {"min_value": 3})


@pytest.mark.parametrize("config", [{"no_such_key": 1}, {"min_terms": -1}])
def test_what_reasoning_gym_refuses_is_told_with_the_first_item(config: dict[str, Any]) -> None:
    items = items_of("chain_sum", **config)
    with pytest.raises(ConfigurationError, match="refuses the configuration of 'chain_sum'"):
        items.entry(0)
