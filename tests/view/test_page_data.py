"""What a page holds of its runs, as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.view.runs import PIXEL, failed_row, reports_of, rich_row, row
from vfgym.view.page_data import PageData


def test_rows_have_what_is_shown_and_messages_images_and_tools_stand_once(tmp_path: Path) -> None:
    failed = failed_row(metrics_errors={"exact": "at /srv/x.py"}, extra=["x"], empty=[], off=False, zero=0)
    rows = [rich_row(), failed, row(2, 1, 0.0, token_usage={"input_tokens": 3.0}, cleanup_errors={"close": "at /srv/y.py"})]
    data = PageData(reports_of(tmp_path, rows)).as_json()
    (run,) = data["runs"]
    common = {"ended": "terminated (max_turns)", "seconds": 0.5, "metrics": {"num_turns": 1.0}, "rest": {"timing": {"total": 0.5}}}
    said = 'look({"where": "needle-in-arguments"}) · </script><img src=x onerror="document.ti…'
    usage = {"input_tokens": 100.0, "output_tokens": 20.0}
    first = {"asked": "Your board: +---+---+ | X | O | +---+---+", "example": 0, "rollout": 0, "fingerprint": "0" * 16, "reward": 1.0}
    first |= {"counted": 1.0, "turns": 2, "tokens": 120.0, "usage": usage, "said": said, "prompt": [0, 1], "completion": [2, 3, 4]}
    second = {"asked": "question 1", "example": 1, "rollout": 0, "fingerprint": f"{1:016x}", "reward": 0.0, "counted": None, "turns": 1}
    second |= {"tokens": None, "usage": {}, "said": "answer 1.0", "prompt": [5], "completion": [6], "ended": "policy_failed (has_error)"}
    second |= {"metrics_errors": {"exact": "at …/x.py"}, "rest": {"timing": {"total": 0.5}, "extra": ["x"], "zero": 0}}
    second |= {"failure": ["ModelError", "ModelError('needle-in-error: …/model.bin is missing')"]}
    third = {"asked": "question 2", "example": 2, "rollout": 1, "fingerprint": f"{2:016x}", "reward": 0.0, "counted": 0.0, "turns": 1}
    third |= {"tokens": 3.0, "usage": {"input_tokens": 3.0}, "said": "answer 2.1", "prompt": [7], "completion": [8]}
    third |= {"cleanup_errors": {"close": "at …/y.py"}}
    assert run["rows"] == [{**common, **first, "tools": [0]}, {**common, **second}, {**common, **third}]
    assert (run["name"], run["label"], run["env"]) == ("a-game-v0 · a-model · 0", "a-model", "a-game-v0")
    assert (run["mean"], run["note"]) == (
        {"value": None, "interval": None, "text": "not known"},
        "3 rollouts of 3 tasks, 1 failed, 1.0 turns each, 41 tokens each",
    )
    assert [(concern["title"], concern["message"], concern["rollouts"]) for concern in run["concerns"]] == [
        ("the agent failed: ModelError", "ModelError('needle-in-error: …/model.bin is missing')", [1]),
        ("cleaning up failed: close", "at …/y.py", [2]),
    ]
    assert run["histogram"] == [1, *[0] * 18, 1]
    assert (len(data["messages"]), data["images"], data["tools"]) == (9, [PIXEL], rows[0]["tool_defs"])
    (environment,) = data["environments"]
    assert environment["scales"] == {"mean": None, "difference": None, "reward": [[n / 10, f"{n / 10:g}"] for n in range(0, 11, 2)]}
    assert environment["tasks"] == [
        {"example_id": example, "means": [mean], "rollouts": [example]} for example, mean in ((1, None), (2, 0.0), (0, 1.0))
    ]


def test_what_every_rollout_is_asked_is_left_out_only_where_tasks_are_several(tmp_path: Path) -> None:
    same = [{"role": "user", "content": "the same"}]
    several, alone = PageData(
        reports_of(tmp_path, [row(0, prompt=same), row(1, prompt=same)], [row(0, prompt=same), row(0, 1, prompt=same)])
    ).as_json()["runs"]
    assert [[each["asked"] for each in run["rows"]] for run in (several, alone)] == [["", ""], ["the same", "the same"]]


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_turns_say_where_their_answers_stand_and_what_they_were_asked_where_that_is_another_prompt(tmp_path: Path) -> None:
    ask, on, first, second, lost = (
        said("user", "?"),
        said("user", "on"),
        said("assistant", "a"),
        said("assistant", "a"),
        said("assistant", "lost"),
    )
    steps = [
        {"prompt": [ask], "completion": [first], "reward": 9.0, "extras": {"reward": 0.0, "more": 1}, "tokens": {}, "response": {}},
        {"prompt": [ask, first, on], "completion": [second], "reward": 0.25, "extras": {}, "is_truncated": False, "advantage": 0},
        {"prompt": [on], "completion": [lost], "reward": None, "trajectory_id": "t"},
    ]
    rows = [
        row(0, prompt=[ask], completion=[first, on, second], trajectory=steps),
        row(1, prompt=[ask], completion=[first, on, second], step_rewards=[0.0, 0.5]),
        row(2, prompt=[ask], completion=[], step_rewards=[]),
        row(3, prompt=[ask], completion=[first], step_rewards=[1, 2, 3]),
    ]
    data = PageData(reports_of(tmp_path, rows)).as_json()
    played, rewarded, empty, other = data["runs"][0]["rows"]
    assert data["messages"] == [ask, first, on, lost]
    assert played["steps"] == [
        {"reward": 0.0, "at": 0, "rest": {"extras": {"reward": 0.0, "more": 1}}},
        {"reward": 0.25, "at": 2, "rest": {"advantage": 0}},
        {"reward": None, "completion": [3], "prompt": [2]},
    ]
    assert (rewarded["steps"], rewarded["rest"]) == ([{"at": 0, "reward": 0.0}, {"at": 2, "reward": 0.5}], {"timing": {"total": 0.5}})
    assert (empty["steps"], empty["rest"], empty["turns"]) == ([], {"timing": {"total": 0.5}}, 0)
    assert ("steps" in other, other["rest"]) == (False, {"timing": {"total": 0.5}, "step_rewards": [1, 2, 3]})


def test_messages_of_others_are_shown_as_far_as_they_can_be(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": "https://x/y.png"}
    rows = [row(prompt=[said("user", [said("x", 1), image, "part"])], completion=[], counted_reward=float("nan"))]
    data = PageData(reports_of(tmp_path, rows)).as_json()
    assert data["messages"] == [said("user", [said("x", 1), {"type": "image", "image": 0}, "part"])]
    assert data["images"] == ["https://x/y.png"]
