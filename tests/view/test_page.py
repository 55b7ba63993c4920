"""`write_page`: one file that holds all of its runs, says nothing of the machine, and lets nothing run but its own script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.view.runs import BOARD, HOSTILE, PIXEL, failed_row, page_data, play_run, rich_row, row, write_run
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import Secret
from vfgym.results import ResultsError, compare, load_results
from vfgym.view import build_page, report_run, write_page


def test_every_message_and_every_reason_is_in_the_page(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [rich_row(), failed_row()])
    page = build_page(run)
    text = json.dumps(page_data(page))
    for needle in ("system", "arguments", "reasoning", "tool", "error"):
        assert f"needle-in-{needle}" in text
    assert HOSTILE in json.loads(text)["messages"][4]["content"]
    assert HOSTILE not in page
    assert len(re.findall("<script", page)) == 2


def test_the_page_loads_nothing_and_runs_its_own_script_only(tmp_path: Path) -> None:
    page = build_page(write_run(tmp_path / "run", [row()], env_id='"><script>alert(1)</script>'))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; ")
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        *_, text = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert f"{rule} 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "unsafe" not in policy
    assert "http:" not in page
    assert "https:" not in page
    assert "innerHTML" not in page
    assert "<script>alert" not in page


def test_images_and_messages_stand_in_it_once(tmp_path: Path) -> None:
    data = page_data(build_page(write_run(tmp_path / "run", [rich_row(0), rich_row(1)])))
    assert (data["images"], [each["prompt"] for each in data["runs"][0]["rows"]]) == ([PIXEL], [[0, 1]] * 2)
    assert BOARD in data["messages"][1]["content"][0]["text"]
    assert data["messages"][1]["content"][1] == {"type": "image", "image": 0}


def test_a_turn_with_another_prompt_keeps_it(tmp_path: Path) -> None:
    asked, said = {"role": "user", "content": "only this"}, {"role": "assistant", "content": "answer 0.0"}
    side = {"prompt": [asked], "completion": [{"role": "assistant", "content": "aside"}], "reward": None}
    steps = [{"prompt": [asked], "completion": [said], "reward": 1.0, "extras": {"is": "kept", "reward": 0.25}}, side]
    run = write_run(tmp_path / "run", [row(trajectory=steps)], state_columns=["trajectory"])
    data = page_data(build_page(run))
    first, second = data["runs"][0]["rows"][0]["steps"]
    assert (first["at"], data["messages"][first["prompt"][0]]) == (0, asked)
    assert first["rest"] == {"extras": {"is": "kept", "reward": 0.25}}
    assert (first["reward"], second["reward"]) == (0.25, None), "the reward of the turn, not of the rollout"
    assert (data["messages"][second["prompt"][0]], data["messages"][second["completion"][0]]["content"]) == (asked, "aside")


def test_rewards_of_turns_stand_beside_their_answers(tmp_path: Path) -> None:
    said = [{"role": role, "content": text} for role, text in (("assistant", "a"), ("user", "go on"), ("assistant", "b"))]
    others = [row(1, completion=said, step_rewards=[1.0]), row(2, completion=said, step_rewards=["mine", "yours"]), row(3)]
    rows = [row(completion=said, step_rewards=[0.25, 0.75]), *others]
    shown, *rest = page_data(build_page(write_run(tmp_path / "run", rows)))["runs"][0]["rows"]
    assert (shown["steps"], "step_rewards" in shown["rest"]) == ([{"at": 0, "reward": 0.25}, {"at": 2, "reward": 0.75}], False)
    assert [each.get("steps") for each in rest] == [None] * 3
    assert [each["rest"].get("step_rewards") for each in rest] == [[1.0], ["mine", "yours"], None], "what has no place is not lost"


def test_results_in_memory_give_the_same_page_as_their_files(tmp_path: Path) -> None:
    outputs = play_run(tmp_path / "run")
    played, read = (page_data(build_page(each))["runs"][0] for each in (outputs, tmp_path / "run"))
    assert played["rows"] == read["rows"]


def test_no_key_and_no_path_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("HOME", "/home/ann")
    Secret("known-by-the-process")
    said = f"sk-of-the-environment known-by-the-process /home/ann/notes.txt {tmp_path}/run/results.jsonl"
    rows = [row(completion=[{"role": "assistant", "content": said}]), failed_row()]
    run = write_run(tmp_path / "run", rows, env_args={"path": "/srv/data/tasks.jsonl", "api_key": "sk-in-the-settings"})
    page = build_page(run)
    text = page + json.dumps(page_data(page))
    for hidden in ("sk-of", "known-by", "sk-in", "/home/ann", str(tmp_path), "/srv/"):
        assert hidden not in text
    assert "*** *** ~/notes.txt run/results.jsonl" in text
    assert "tasks.jsonl" in text
    assert "model.bin is missing" in text


def test_a_report_says_why_rollouts_failed_and_what_tasks_earned(tmp_path: Path) -> None:
    rows = [
        row(0, 0, 1.0),
        row(0, 1, 0.0),
        failed_row(1),
        failed_row(2),
        row(2, 1, stop_condition="no_tools", metrics_errors={"exact": "KeyError"}, failed=True),
    ]
    report = report_run(load_results(write_run(tmp_path / "run", rows, rollouts_per_example=2)))
    assert [(concern.reason, concern.rollouts) for concern in report.concerns] == [("ModelError", [2, 3]), ("reward function exact", [4])]
    assert (report.reward.value, report.reward.interval) == (None, None)
    assert [(task.example_id, task.reward, task.num_failed, task.num_passed) for task in report.tasks] == [
        (0, 0.5, 0, 1),
        (1, None, 1, 0),
        (2, None, 2, 0),
    ]
    assert report.summary["pass_at_k"] == {"1": 0.25, "2": 0.5}


def test_several_runs_have_a_verdict_each(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, [row(task, reward=reward) for task in range(8)]) for name, reward in (("a", 0.25), ("b", 0.75))]
    elsewhere = [
        write_run(tmp_path / name, [row(task + shift) for task in range(8)], env_id="another-v0") for name, shift in (("c", 0), ("d", 8))
    ]
    same, other = page_data(build_page(*runs, *elsewhere))["environments"]
    (pair,) = same["pairs"]
    compared = compare(*runs)["pairs"][0]
    assert pair["verdict"] == compared["verdict"].replace(f"{tmp_path}/", "")
    assert pair["difference"] == {"value": 0.5, "interval": compared["interval"], "text": "+0.500"}, (
        "the numbers are those of `vfgym compare`"
    )
    assert same["headlines"] == ["a-model (b) is better than a-model (a)"]
    assert "share no task" in other["pairs"][0]["verdict"]
    assert other["headlines"] == ["a-model (d) cannot be compared with a-model (c)"]
    (alone,) = page_data(build_page(runs[0]))["environments"]
    assert (alone["pairs"], alone["headlines"]) == (
        [],
        ["a-model earns 0.250 on average over 8 tasks (no interval, since nothing varies and no range of rewards is known)"],
    )


def test_a_page_is_replaced_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "pages" / "page.html"
    file.parent.mkdir()
    file.write_text("x" * 10**6)
    run = write_run(tmp_path / "run", [row()])
    assert write_page(str(file), run, load_results(run)) == file
    assert file.read_text(encoding="utf-8") == build_page(run, run)
    assert [each.name for each in file.parent.iterdir()] == ["page.html"]


def test_nothing_is_written_where_a_run_cannot_be_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(), row(1)])
    lines = (run / "results.jsonl").read_text().splitlines()
    (run / "results.jsonl").write_text("\n".join([lines[0], "broken", lines[1]]))
    file = tmp_path / "page.html"
    for given in (run, tmp_path / "missing"):
        with pytest.raises(ResultsError):
            write_page(file, given)
    with pytest.raises(ConfigurationError, match="needs a run"):
        write_page(file)
    with pytest.raises(ResultsError, match="cannot write"):
        write_page(tmp_path / "no" / "page.html", write_run(tmp_path / "good", [row()]))
    with pytest.raises(ResultsError, match="cannot write"):
        write_page(run, tmp_path / "good")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["good", "run"]
