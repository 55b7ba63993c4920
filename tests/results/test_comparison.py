"""`compare`: runs beside each other, and the command that prints it."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from vfgym import Rubric, SingleTurnEnv, evaluate
from vfgym.cli.compare import print_comparison
from vfgym.cli.conventions import Exit
from vfgym.errors import ConfigurationError
from vfgym.results import GenerateOutputs, compare
from vfgym.results.comparison import compare_places
from vfgym.results.files import ROWS
from vfgym.results.intervals import estimate_mean, interval_of

TASKS = [{"question": f"{n} + {n}?", "answer": str(2 * n)} for n in range(20)]


def exact(completion: Any, answer: str) -> float:
    return float(completion[-1].content == answer)


def up_to(limit: int) -> Callable[..., str]:
    """Return an agent that knows the answers below a limit."""

    def agent(observation: Any, info: Any) -> str:
        number = int(observation[-1].content.split()[0])
        return str(2 * number) if number < limit else "?"

    agent.__name__ = f"up_to_{limit}"
    return agent


def fails(observation: Any, info: Any) -> str:
    raise RuntimeError("out of order")


def played(agent: Any, tasks: Sequence[Mapping[str, Any]] = TASKS, **kwargs: Any) -> GenerateOutputs:
    env = SingleTurnEnv(tasks, rubric=Rubric(exact), failure_reward=kwargs.pop("failure_reward", None))
    return evaluate(env, agent, progress=False, **kwargs)


def results_of(rewards: Mapping[tuple[int, int], float], model: str = "m") -> GenerateOutputs:
    """Return results with these rewards, by task and number of the rollout."""
    rows = [
        {"example_id": task, "rollout": number, "fingerprint": f"{task:016x}", "reward": reward, "counted_reward": reward}
        | {"failed": False, "error": None}
        for (task, number), reward in rewards.items()
    ]
    return {"outputs": rows, "metadata": {"model": model, "env_id": "e"}}  # type: ignore[typeddict-item]


def test_runs_and_their_difference_are_told() -> None:
    """Of 20 tasks the first run knows 10, the second 16: six are better, none is worse."""
    comparison = compare(played(up_to(10), rollouts_per_example=2), played(up_to(16), rollouts_per_example=2))
    first, second = comparison["runs"]
    assert {key: first[key] for key in ("path", "model", "rollouts", "examples", "errors", "mean")} == {
        "path": None,
        "model": "up_to_10",
        "rollouts": 40,
        "examples": 20,
        "errors": 0,
        "mean": 0.5,
    }
    assert second["interval"] == interval_of({task: [float(task < 16)] * 2 for task in range(20)})
    assert (second["planned"], second["endings"]) == (40, {"terminated": 40})
    (pair,) = comparison["pairs"]
    assert (pair["a"], pair["b"], pair["examples"], pair["rollouts"], pair["unpaired"]) == (0, 1, 20, 40, [0, 0])
    assert (pair["better"], pair["worse"], pair["equal"]) == (6, 0, 14)
    assert pair["difference"] == pytest.approx(0.3)
    estimate = estimate_mean({task: [float(10 <= task < 16)] * 2 for task in range(20)}, (-1.0, 1.0))
    assert pair["interval"] == list(estimate.interval or ())
    assert pair["p_value"] == estimate.p_value()
    assert (pair["distinguishable"], pair["needed"]) == (True, None)
    assert (pair["missing"], pair["changes_if_missing_failed"], pair["limits_differ"]) == ([0, 0], None, False)
    assert pair["verdict"] == "up_to_16 is better than up_to_10 by 0.3 (95 % interval: 0.0186 to 0.548) with 20 tasks"


def test_a_difference_that_may_be_chance_says_how_many_tasks_would_tell() -> None:
    (pair,) = compare(played(up_to(10)), played(up_to(11)))["pairs"]
    assert not pair["distinguishable"]
    assert pair["needed"] is not None
    assert 150 < pair["needed"] <= 200
    assert pair["verdict"] == "not distinguishable with 20 tasks; about 200 would tell, if up_to_11 really differs from up_to_10 by 0.05"


def test_equal_runs_and_equal_differences_have_no_interval() -> None:
    run = results_of({(task, number): math.sin(task + number) for task in range(7) for number in range(3)})
    (pair,) = compare(run, run)["pairs"]
    assert (pair["difference"], pair["interval"], pair["needed"], pair["equal"]) == (0.0, None, None, 7)
    assert (pair["p_value"], pair["distinguishable"]) == (1.0, False)
    assert pair["verdict"] == "no difference: m (run 2) and m (run 1) earned the same in each of 7 tasks"
    right = results_of({(task, 0): 1.0 for task in range(20)})
    (pair,) = compare(right, right)["pairs"]
    assert pair["interval"] is not None
    assert pair["interval"][0] < -0.1 < 0.1 < pair["interval"][1], "twenty right answers of twenty leave room for a difference"
    a, b = (results_of({(task, 0): 10.0 * task + gain for task in range(8)}, name) for name, gain in (("a", 0.0), ("b", 5.0)))
    (pair,) = compare(a, b)["pairs"]
    assert (pair["interval"], pair["distinguishable"]) == (None, True)
    assert pair["verdict"] == "b is better than a by 5 in each of 8 tasks"


def test_shuffled_rows_give_the_same_bytes(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, agent in zip(paths, (up_to(9), up_to(14)), strict=True):
        played(agent, rollouts_per_example=3, results_path=path)
    before = json.dumps(compare(*paths))
    for path in paths:
        lines = (path / ROWS).read_text().splitlines(keepends=True)
        (path / ROWS).write_text("".join(random.Random(3).sample(lines, len(lines))))
    assert json.dumps(compare(*paths)) == before


def test_tasks_are_paired_by_what_they_are_and_others_left_out() -> None:
    (pair,) = compare(played(up_to(10)), played(up_to(12), TASKS[::-1]))["pairs"]
    assert (pair["examples"], pair["better"], pair["worse"], pair["unpaired"]) == (20, 2, 0, [0, 0])
    (pair,) = compare(played(up_to(5), TASKS[:10]), played(up_to(5), TASKS[5:], rollouts_per_example=2))["pairs"]
    assert (pair["examples"], pair["rollouts"], pair["unpaired"]) == (5, 5, [5, 25])


def test_what_a_rollout_counts_with_in_a_pair() -> None:
    (pair,) = compare(played(up_to(5)), played(fails))["pairs"]
    assert (pair["difference"], pair["interval"], pair["distinguishable"], pair["needed"]) == (None, None, False, None)
    assert "fails has 20 rollouts that failed or were cut, with nothing to count with" in pair["verdict"]
    comparison = compare(played(up_to(20), failure_reward=0.0), played(fails, failure_reward=0.0))
    assert comparison["runs"][1]["errors"] == 20
    assert (comparison["pairs"][0]["difference"], comparison["pairs"][0]["distinguishable"]) == (-1.0, True)
    run = played(up_to(5))
    for row in run["outputs"]:
        del row["counted_reward"]
    (pair,) = compare(played(up_to(5)), run)["pairs"]
    assert (pair["difference"], pair["rollouts"]) == (0.0, 20)
    (pair,) = compare(results_of({(0, 0): 1.0, (1, 0): math.nan}), results_of({(0, 0): 1.0, (1, 0): 0.0}))["pairs"]
    assert pair["difference"] is None
    assert "1 rollout with a reward that is not a finite number" in pair["verdict"]


@pytest.mark.parametrize(("num_different", "num_equal", "needed"), [(2, 0, 6), (5, 0, 6), (5, 1, 8)])
def test_fewer_than_six_tasks_that_differ_tell_nothing(num_different: int, num_equal: int, needed: int) -> None:
    tasks = num_different + num_equal
    a = results_of({(task, 0): 0.0 for task in range(tasks)}, "a")
    b = results_of({(task, 0): float(task < num_different) for task in range(tasks)}, "b")
    (pair,) = compare(a, b)["pairs"]
    assert (pair["p_value"] or 0.0) >= 0.05
    assert (pair["better"], pair["distinguishable"], pair["needed"]) == (num_different, False, needed)
    assert pair["verdict"].startswith(f"not distinguishable with {tasks} tasks; about {needed} would tell, if b really differs from a by ")


def test_fewer_than_six_tasks_that_differ_tell_nothing_however_much_they_do() -> None:
    """Of rewards without a known range, an interval may be narrow with three tasks."""
    a, b = (results_of({(task, 0): worth + task / 100 for task in range(3)}, name) for name, worth in (("a", 0.0), ("b", 5.0)))
    b["outputs"][2]["counted_reward"] = b["outputs"][2]["reward"] = 5.01
    (pair,) = compare(a, b)["pairs"]
    assert (pair["p_value"] or 1.0) < 0.05
    assert (pair["distinguishable"], pair["needed"]) == (False, 6)
    assert pair["verdict"].startswith(
        "not distinguishable with 3 tasks: only 3 of them differ, and it takes 6 to rule out chance; about 6 "
    )


def test_several_comparisons_are_corrected_and_the_interval_is_not() -> None:
    """Six of six tasks tell a difference alone (p = 1/32), and not among four comparisons of which none says more."""
    base = results_of({(task, 0): 0.0 for task in range(6)}, "base")
    others = [results_of({(task, 0): 1.0 for task in range(6)}, name) for name in "abcd"]
    (alone,) = compare(base, others[0])["pairs"]
    together = compare(base, *others)["pairs"]
    assert alone["distinguishable"]
    assert alone["p_value"] == pytest.approx(1 / 32)
    for pair in together:
        assert (pair["distinguishable"], pair["interval"]) == (False, alone["interval"])
        assert pair["p_value"] == pytest.approx(4 / 32)
        assert pair["needed"] == 8, "2 * 0.5**8 is below 0.05 / 4"
        assert "4 comparisons at once give chance as many tries; about " in pair["verdict"]


def test_the_clearest_pair_stands_against_all_and_the_next_against_one_fewer() -> None:
    """Holm's method."""
    base = results_of({(task, 0): 0.0 for task in range(20)}, "base")
    some, clear, hardly = (results_of({(task, 0): float(task < gained) for task in range(20)}, str(gained)) for gained in (8, 20, 1))
    alone = [compare(base, other)["pairs"][0]["p_value"] or 0.0 for other in (some, clear, hardly)]
    pairs = compare(base, some, clear, hardly)["pairs"]
    assert [(pair["a"], pair["b"], pair["better"]) for pair in pairs] == [(0, 1, 8), (0, 2, 20), (0, 3, 1)]
    assert [pair["p_value"] for pair in pairs] == pytest.approx([2 * alone[0], 3 * alone[1], alone[2]])
    assert [pair["distinguishable"] for pair in pairs] == [True, True, False]


def test_a_small_gain_in_every_task_is_called_what_it_is() -> None:
    """Between rewards from 0 to 1, a gain of 0.02 in 20 of 20 tasks would be outweighed by one task that is lost."""
    a, b = (results_of({(task, 0): 0.5 + gain * (1 + task / 100) for task in range(20)}, name) for name, gain in (("a", 0.0), ("b", 0.02)))
    for run in (a, b):
        run["metadata"]["reward_range"] = [0.0, 1.0]
    (pair,) = compare(a, b)["pairs"]
    assert (pair["better"], pair["distinguishable"]) == (20, False)
    assert "it earned more in 20 of them and less in 0, but so little that one task could outweigh it; about " in pair["verdict"]
    for run in (a, b):
        run["metadata"]["reward_range"] = None
    assert compare(a, b)["pairs"][0]["distinguishable"]


# Missing, cut and unfinished


def missing(run: GenerateOutputs, tasks: Iterable[int], failure_reward: float | None = 0.0) -> GenerateOutputs:
    """Return a run of which the infrastructure failed the rollouts of some tasks."""
    gone = set(tasks)
    for row in run["outputs"]:
        if row["example_id"] in gone:
            row |= {"ending": "infrastructure_failed", "failed": True, "error": {"error": "InfraError"}, "reward": 0.0}
            row |= {"counted_reward": None, "failure_reward": failure_reward}
    return run


def test_a_missing_rollout_is_in_no_pair_and_what_it_would_change_is_said() -> None:
    """On 12 tasks both are alike; on the other 8 the first run is right, and the second one has nothing."""
    a = results_of({(task, 0): 1.0 for task in range(20)}, "a")
    b = missing(results_of({(task, 0): 1.0 for task in range(20)}, "b"), range(8))
    comparison = compare(a, b)
    (pair,) = comparison["pairs"]
    assert (pair["examples"], pair["rollouts"], pair["unpaired"], pair["missing"]) == (12, 12, [0, 0], [0, 8])
    assert (pair["difference"], pair["distinguishable"], pair["changes_if_missing_failed"]) == (0.0, False, True)
    assert pair["verdict"].startswith(
        "no difference: b and a earned the same in each of 12 tasks. 8 rollouts of b and 0 of a are missing: "
    )
    assert "if they counted as failures, the verdict would be another one (b is worse than a by 0.4 (95 % interval: " in pair["verdict"]
    assert comparison["runs"][1]["endings"] == {"infrastructure_failed": 8, "terminated": 12}
    assert comparison["runs"][1]["mean"] == 1.0


def test_what_missing_rollouts_would_change_is_said_where_it_is_known() -> None:
    a = missing(results_of({(task, 0): 0.0 for task in range(20)}, "a"), [3])
    b = missing(results_of({(task, 0): 1.0 for task in range(20)}, "b"), [3, 4])
    (pair,) = compare(a, b)["pairs"]
    assert (pair["rollouts"], pair["missing"], pair["changes_if_missing_failed"], pair["distinguishable"]) == (18, [1, 2], False, True)
    assert pair["verdict"].endswith("2 rollouts of b and 1 of a are missing: if they counted as failures, the verdict would be the same")
    a = results_of({(task, 0): 0.0 for task in range(8)}, "a")
    b = missing(results_of({(task, 0): 1.0 for task in range(8)}, "b"), [1], failure_reward=None)
    (pair,) = compare(a, b)["pairs"]
    assert (pair["distinguishable"], pair["changes_if_missing_failed"]) == (True, None)
    assert pair["verdict"].endswith(
        "1 rollout of b and 0 of a are missing: nothing says what they would count with if they counted as failures"
    )


def test_runs_with_different_limits_say_so_and_how_many_each_cut() -> None:
    free, limited = (
        evaluate("gymnasium/MountainCar-v0", "random", num_examples=3, progress=False, limits_each=limits)
        for limits in (None, {"turns": 5})
    )
    limited["metadata"]["model"] = "limited"
    comparison = compare(free, limited)
    (pair,) = comparison["pairs"]
    assert (pair["difference"], pair["limits_differ"]) == (0.0, True)
    assert comparison["runs"][1]["limits"] == {"turns": 5}
    assert pair["verdict"].endswith(
        "Their limits differ: limited had turns 5 and random none, which cut 3 rollouts of limited and 0 of random"
    )


def test_a_run_that_was_stopped_has_no_mean_and_the_verdict_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, agent in (("whole", up_to(10)), ("stopped", up_to(12))):
        played(agent, failure_reward=0.0, results_path=tmp_path / name)
    rows = (tmp_path / "stopped" / ROWS).read_text().splitlines(keepends=True)
    (tmp_path / "stopped" / ROWS).write_text("".join(rows[:4]))
    comparison = compare(tmp_path / "whole", tmp_path / "stopped")
    (_, run), (pair,) = comparison["runs"], comparison["pairs"]
    assert (run["mean"], run["interval"], run["rollouts"], run["planned"]) == (None, None, 4, 20)
    assert pair["rollouts"] == 4
    assert pair["verdict"].endswith("up_to_12 was stopped after 4 of 20 rollouts: those that end early say nothing of the others")
    capsys.readouterr()
    assert print_comparison([tmp_path / "whole", tmp_path / "stopped"], as_json=False) == Exit.GOOD
    assert "4 of 20" in capsys.readouterr().out


def test_pairs_of_several_runs_are_corrected_together_and_say_why_they_cannot_be_compared() -> None:
    base = results_of({(task, 0): 0.0 for task in range(6)}, "base")
    better = results_of({(task, 0): 1.0 for task in range(6)}, "better")
    elsewhere = results_of({(task, 0): 1.0 for task in range(6, 9)}, "elsewhere")
    pairs = compare_places([base, better, elsewhere, better], [(0, 1), (0, 2), (0, 3)])
    assert [(pair["a"], pair["b"]) for pair in pairs] == [(0, 1), (0, 2), (0, 3)]
    assert [pair["p_value"] for pair in pairs] == [pytest.approx(2 / 32), None, pytest.approx(2 / 32)]
    assert pairs[1]["verdict"].startswith("cannot be compared: elsewhere and base share no task")
    assert pairs[1]["unpaired"] == [6, 3]


@pytest.mark.parametrize(
    ("runs", "text"),
    [
        ([], "a comparison needs two runs or more, got 0"),
        ([results_of({(0, 0): 1.0})], "a comparison needs two runs or more, got 1"),
        ([results_of({(0, 0): 1.0}), results_of({})], "run 2 has no rollouts to compare"),
        ([results_of({(0, 0): 1.0}), 42], "run 2 must be the directory of a run or what vfgym.evaluate returned, got int"),
        ([results_of({(0, 0): 1.0}, "x"), results_of({(1, 0): 1.0}, "y")], "y and x share no task"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs: list[Any], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        compare(*runs)


# Rows of other writers, equal tasks, ranges and names


def with_metadata(run: GenerateOutputs, **metadata: Any) -> GenerateOutputs:
    run["metadata"] |= metadata  # type: ignore[typeddict-item]
    return run


def test_rows_without_fingerprints_go_by_their_example_and_equal_tasks_by_their_order() -> None:
    a, b = results_of({(0, 0): 1.0, (1, 0): 0.0, (2, 0): 0.0}, "a"), results_of({(0, 0): 0.0, (1, 0): 0.0, (3, 0): 1.0}, "b")
    for row in (*a["outputs"], *b["outputs"]):
        row |= {"fingerprint": None, "rollout": None}
    (pair,) = compare(a, b)["pairs"]
    assert (pair["examples"], pair["rollouts"], pair["unpaired"], pair["difference"]) == (2, 2, [1, 1], -0.5)
    for row in (*a["outputs"], *b["outputs"]):
        row["fingerprint"] = "one task"
    (pair,) = compare(a, b)["pairs"]
    assert (pair["examples"], pair["rollouts"], pair["unpaired"], pair["difference"]) == (1, 3, [0, 0], 0.0)
    with pytest.raises(ConfigurationError, match="b and a share no task"):
        compare(a, with_metadata(b, env_id="another"))


def test_a_declared_range_is_that_of_both_runs_together() -> None:
    rewards = {(task, 0): 0.5 for task in range(20)}
    a, b = (results_of({slot: reward + gain for slot, reward in rewards.items()}, name) for name, gain in (("a", 0.0), ("b", 0.25)))
    differences = {task: [0.25] for task in range(20)}
    for of_a, of_b, width in (([0.0, 1.0], [-1.0, 0.8], 2.0), ([-1.0, 0.8], [0.0, 1.0], 2.0), ([0.0, 1.0], [0.25, 0.75], 1.0)):
        comparison = compare(with_metadata(a, reward_range=of_a), with_metadata(b, reward_range=of_b))
        assert comparison["pairs"][0]["interval"] == list(estimate_mean(differences, (-width, width)).interval or ())
        assert [run["interval"] for run in comparison["runs"]] == [
            interval_of({task: [0.5] for task in range(20)}, of_a),
            interval_of({task: [0.75] for task in range(20)}, of_b),
        ]
    for of_a, of_b in (([0.0, 1.0], None), (None, [0.0, 1.0])):
        (pair,) = compare(with_metadata(a, reward_range=of_a), with_metadata(b, reward_range=of_b))["pairs"]
        assert pair["interval"] is None
        assert pair["verdict"] == "b is better than a by 0.25 in each of 20 tasks"


def test_a_worse_run_is_called_worse_with_the_end_of_its_interval_that_is_nearest_to_zero_first() -> None:
    a, b = (results_of({(task, 0): float(task < right) for task in range(20)}, name) for name, right in (("a", 16), ("b", 10)))
    (pair,) = compare(a, b)["pairs"]
    assert (pair["better"], pair["worse"], pair["equal"], pair["distinguishable"]) == (0, 6, 14, True)
    assert pair["verdict"] == "b is worse than a by 0.3 (95 % interval: 0.0186 to 0.548) with 20 tasks"


@pytest.mark.parametrize(
    ("gain", "size"), [(0.000123456, "0.000123"), (12.345, "12.3"), (999.0, "999"), (1000.0, "1000"), (123456.7, "123457")]
)
def test_how_large_a_difference_is_has_three_digits_that_say_something(gain: float, size: str) -> None:
    a, b = (results_of({(task, 0): 2.0 + worth for task in range(6)}, name) for name, worth in (("a", 0.0), ("b", gain)))
    assert compare(a, b)["pairs"][0]["verdict"] == f"b is better than a by {size} in each of 6 tasks"


def test_one_task_tells_nothing() -> None:
    a, b = (results_of({(0, number): reward for number in range(9)}, name) for name, reward in (("a", 0.0), ("b", 1.0)))
    (pair,) = compare(a, b)["pairs"]
    assert (pair["difference"], pair["interval"], pair["p_value"], pair["needed"]) == (1.0, None, None, None)
    assert pair["verdict"] == "not distinguishable with 1 task: what one task says is no more than chance, play more of them"


def test_gains_and_losses_that_cancel_are_too_small_to_be_found() -> None:
    a, b = (results_of({(task, 0): float(task % 2 == right) for task in range(6)}, name) for name, right in (("a", 0), ("b", 1)))
    (pair,) = compare(a, b)["pairs"]
    assert (pair["better"], pair["worse"], pair["difference"], pair["needed"]) == (3, 3, 0.0, None)
    assert pair["verdict"] == "not distinguishable with 6 tasks: if there is a difference, it is too small to be found"


def test_a_pair_without_a_number_stands_in_no_correction_and_says_what_both_lack() -> None:
    base = results_of({(task, 0): 0.0 for task in range(6)}, "base")
    better = results_of({(task, 0): 1.0 for task in range(6)}, "better")
    unknown = results_of({(task, 0): 1.0 for task in range(6)}, "unknown")
    unknown["outputs"][0] |= {"counted_reward": None, "failed": True}
    first, second = compare(base, unknown, better)["pairs"]
    assert (first["p_value"], first["better"], second["p_value"]) == (None, 5, pytest.approx(1 / 32))
    endless = results_of({(task, 0): math.inf if task < 2 else 1.0 for task in range(6)}, "endless")
    comparison = compare(endless, unknown)
    assert [run["mean"] for run in comparison["runs"]] == [None, None]
    assert comparison["pairs"][0]["verdict"] == (
        "no difference can be given: endless has 2 rollouts with a reward that is not a finite number and"
        " unknown has 1 rollout that failed or were cut, with nothing to count with (make the environment with failure_reward=...)"
    )


def test_runs_that_share_only_missing_rollouts_have_no_difference() -> None:
    a, b = (missing(results_of({(0, 0): 0.0, (1, 0): 1.0}, name), gone) for name, gone in (("a", [0]), ("b", [1])))
    (pair,) = compare(a, b)["pairs"]
    assert (pair["examples"], pair["rollouts"], pair["missing"], pair["p_value"]) == (0, 0, [1, 1], None)
    assert pair["verdict"].startswith(
        "no difference can be given: all rollouts that b and a share are missing in one of them. 1 rollout of b "
    )
    (run, _) = compare(missing(results_of({(0, 0): 0.0}), [0]), b)["runs"]
    assert (run["mean"], run["interval"], run["endings"]) == (None, None, {"infrastructure_failed": 1})


def test_limits_stand_in_the_order_of_their_names_with_the_time_limit_of_the_environment() -> None:
    a, b = (results_of({(task, 0): 0.0 for task in range(2)}, name) for name in "ab")
    with_metadata(a, limits_each={"turns": 5, "tokens": 1e6}, env_args={"timeout_seconds": 0.0})
    comparison = compare(a, with_metadata(b, env_args={"timeout_seconds": None}, limits_each=None))
    assert [run["limits"] for run in comparison["runs"]] == [{"turns": 5, "tokens": 1e6, "timeout_seconds": 0.0}, {}]
    assert comparison["pairs"][0]["verdict"].endswith(
        "Their limits differ: b had none and a timeout_seconds 0, tokens 1e+06, turns 5, which cut 0 rollouts of b and 0 of a"
    )
    assert not compare(a, with_metadata(b, limits_each=a["metadata"]["limits_each"], env_args={"timeout_seconds": 0}))["pairs"][0][
        "limits_differ"
    ]


def test_each_of_two_runs_that_were_stopped_is_named() -> None:
    a, b = (
        with_metadata(results_of({(task, 0): 0.0 for task in range(played)}, name), num_rollouts=4) for name, played in (("a", 3), ("b", 4))
    )
    (pair,) = compare(a, b)["pairs"]
    assert pair["verdict"].endswith(
        "in each of 3 tasks. a was stopped after 3 of 4 rollouts: those that end early say nothing of the others"
    )
    assert [run["mean"] for run in compare(a, b)["runs"]] == [None, 0.0]
    with_metadata(b, num_rollouts=5)
    assert [part[:21] for part in compare(a, b)["pairs"][0]["verdict"].split(". ")[1:]] == [
        "b was stopped after 4",
        "a was stopped after 3",
    ]


def test_runs_of_one_model_are_called_by_their_directories_and_those_without_by_their_places(tmp_path: Path) -> None:
    played(up_to(1), results_path=tmp_path / "one")
    (_, second) = compare(str(tmp_path / "one"), played(up_to(1)), played(up_to(2)))["pairs"]
    assert "up_to_2 really differs from up_to_1 (one) by" in second["verdict"]
    (first,) = compare(str(tmp_path / "one"), played(up_to(1)))["pairs"]
    assert first["verdict"] == "no difference: up_to_1 (run 2) and up_to_1 (one) earned the same in each of 20 tasks"
    run = with_metadata(results_of({}), path_to_save="/some/where")
    with pytest.raises(ConfigurationError, match=r"^run 1 \(/some/where\) has no rollouts to compare$"):
        compare(run, run)


def test_a_pair_that_cannot_be_compared_has_nothing_but_a_verdict() -> None:
    base, other = results_of({(0, 0): 0.0, (1, 0): 0.0}, "base"), results_of({(5, 0): 1.0}, "other")
    (pair, fine) = compare_places([other, base, results_of({(0, 0): 1.0}, "third")], [(1, 0), (2, 1)])
    assert pair == {
        **{"a": 1, "b": 0, "difference": None, "interval": None, "p_value": None, "examples": 0, "rollouts": 0, "unpaired": [2, 1]},
        **{"missing": [0, 0], "better": 0, "worse": 0, "equal": 0, "distinguishable": False, "changes_if_missing_failed": None},
        **{"limits_differ": False, "needed": None},
        "verdict": "cannot be compared: other and base share no task: runs can be compared that played the same tasks"
        " (of one environment, with the same arguments and split)",
    }
    assert (fine["a"], fine["b"], fine["difference"], fine["unpaired"]) == (2, 1, -1.0, [0, 1])
    assert compare_places([], []) == []
