"""The viewer in the terminal, driven by keys: what it shows of a run, and of one that grows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.view.runs import BOARD, HOSTILE, failed_row, rich_row, row, write_run
from vfgym.results import ResultsError

pytest.importorskip("textual", reason="needs the extra view")

from textual.widgets import DataTable, Input, Static

from vfgym.view.terminal import RunFiles, RunViewer, conversation_text, message_text


@asynccontextmanager
async def viewer_of(*runs: Path, width: int = 110) -> AsyncIterator[Any]:
    async with RunViewer(runs).run_test(size=(width, 40)) as pilot:
        await pilot.pause()
        yield pilot


def text_of(pilot: Any, selector: str) -> str:
    return str(pilot.app.query_one(selector, Static).content)


def listed(pilot: Any) -> list[str]:
    table = pilot.app.query_one(DataTable)
    return [str(table.get_row_at(number)[0]) for number in range(table.row_count)]


async def test_a_run_its_rollouts_and_a_conversation(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [rich_row(), failed_row()])
    async with viewer_of(run) as pilot:
        assert "2 rollouts of 2 tasks, 1 failed" in text_of(pilot, "#summary")
        assert "! 1 of 2: the agent failed: ModelError: ModelError('needle-in-error" in text_of(pilot, "#summary")
        assert listed(pilot) == ["0/0", "1/0"]
        for needle in ("system", "reasoning", "arguments", "tool"):
            assert f"needle-in-{needle}" in text_of(pilot, "#messages")
        await pilot.press("down")
        assert "failed: ModelError" in text_of(pilot, "#messages")


async def test_what_was_found_stands_first_with_its_picture(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / name, [row(task, reward=reward) for task in range(8)], reward_range=[0, 1])
        for name, reward in (("a", 0.25), ("b", 0.75))
    ]
    async with viewer_of(*runs) as pilot:
        environment, found, first, second, *_ = text_of(pilot, "#summary").splitlines()
        assert (environment, "a-model (b) is better than a-model (a) by 0.5" in found) == ("a-game-v0", True)
        assert first.startswith("> a-model (a) ")
        assert second.startswith("  a-model (b) ")
        assert first.index("●") < second.index("●")
        assert [str(column.label) for column in pilot.app.query_one(DataTable).ordered_columns] == [
            "task",
            "reward",
            "ended",
            "turns",
            "first words",
        ]


async def test_rewards_of_turns_stand_beside_their_answers(tmp_path: Path) -> None:
    said = [{"role": role, "content": text} for role, text in (("assistant", "a"), ("user", "go on"), ("assistant", "b"))]
    run = write_run(tmp_path / "run", [row(completion=said, step_rewards=[0.25, 0.75])])
    async with viewer_of(run) as pilot:
        shown = [line for line in text_of(pilot, "#messages").splitlines() if line.startswith("[")]
        assert shown == ["[user]", "[assistant] step reward 0.25", "[user]", "[assistant] step reward 0.75"]
        await pilot.press("right", "right")
        shown = [line for line in text_of(pilot, "#messages").splitlines() if line.startswith("[")]
        assert shown == ["[user]", "[assistant] step reward 0.75"]


async def test_turns_filters_and_runs_by_keys(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", [rich_row(), failed_row(), row(2)])
    other = write_run(tmp_path / "other", [row(7)])
    async with viewer_of(one, other) as pilot:
        await pilot.press("right", "right")
        assert "turn 2 of 2" in text_of(pilot, "#messages")
        assert "needle-in-system" not in text_of(pilot, "#messages")
        await pilot.press("escape", "f")
        assert listed(pilot) == ["1/0"]
        await pilot.press("f", "slash", *"needle-in-reasoning", "enter")
        assert listed(pilot) == ["0/0"]
        await pilot.press("escape")
        assert listed(pilot) == ["0/0", "1/0", "2/0"]
        await pilot.press("r")
        assert listed(pilot) == ["7/0"]


async def test_a_run_that_grows_is_read_again(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row()])
    async with viewer_of(run) as pilot:
        with (run / "results.jsonl").open("a") as file:
            file.write(json.dumps(row(1)) + "\n" + json.dumps(row(2))[:40])  # the last one is being written
        pilot.app._reload()
        await pilot.pause()
        assert listed(pilot) == ["0/0", "1/0"]
        assert [each.reload() for each in pilot.app._files] == [False]
        (run / "results.jsonl").unlink()
        pilot.app._reload()
        assert listed(pilot) == ["0/0", "1/0"]


async def test_a_text_to_search_for_is_asked_below_and_arrows_move_in_it(tmp_path: Path) -> None:
    deep: Any = "deeply"
    for _ in range(190):
        deep = [deep]
    run = write_run(tmp_path / "run", [row(0), row(1, deep=deep, completion=[{"role": "assistant", "content": "Answer DEEP"}])])
    async with viewer_of(run) as pilot:
        search = pilot.app.query_one(Input)
        assert not search.display
        await pilot.press("slash", "n", "left", "i")
        assert (search.display, search.has_focus, search.value) == (True, True, "in")
        await pilot.press("escape")
        assert (search.display, search.value, pilot.app.query_one(DataTable).has_focus) == (False, "", True)
        for typed, found in ((" Answer deep ", ["1/0"]), ("answer", ["0/0", "1/0"]), ("nowhere", [])):
            await pilot.press("slash")
            search.value = typed
            await pilot.press("enter")
            assert (listed(pilot), search.display) == (found, False), typed
        assert (text_of(pilot, "#messages"), text_of(pilot, "#summary").splitlines()[-1]) == ("No rollout.", "0 of 2 rollouts")


def test_a_conversation_as_text() -> None:
    told = rich_row(3, rollout=2, human={"hints": 2, "undone": 0}, step_rewards=[0.5, 0.0])
    call = '→ look({"where": "needle-in-arguments"})'
    answers = ["\n[assistant] step reward 0.5", "(reasoning) needle-in-reasoning", call], ["\n[assistant] step reward 0", HOSTILE]
    tool = ["\n[tool]", "needle-in-tool", "<image_url>"]
    head = ["reward 1.000, terminated (max_turns)", "played by a person: 2 hints, 0 undone"]
    system, user = ["\n[system]", "needle-in-system"], ["\n[user]", f"Your board:\n\n{BOARD}", "<image_url>"]
    whole, first, second = (conversation_text(told, turn).plain for turn in (None, 0, 1))
    assert whole == "\n".join(["task 3, rollout 2", *head, *system, *user, *answers[0], *tool, *answers[1], ""])
    assert first == "\n".join(["task 3, rollout 2, turn 1 of 2", *head, *system, *user, *answers[0], *tool, ""])
    assert second == "\n".join(["task 3, rollout 2, turn 2 of 2", *head, *tool, *answers[1], ""])
    failed = conversation_text(failed_row()).plain
    error = "failed: ModelError: ModelError('needle-in-error: /srv/models/keys/model.bin is missing')"
    assert failed.startswith(f"task 1, rollout 0\nreward 0.000, policy_failed (has_error)\n{error}\n\n[user]\nquestion 1\n")
    assert [span.style for span in conversation_text(failed_row()).spans] == ["bold", "bold red", "bold cyan", "bold green"]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({}, ""),
        ({"content": ""}, ""),
        ({"content": "a", "reasoning": "b"}, "(reasoning) b\na"),
        ({"content": ["a", {"text": ""}, {"type": "image"}, {}]}, "a\n\n<image>\n<part>"),
        ({"content": None, "tool_calls": [{"name": "f", "arguments": "{}"}, {"function": {"name": "g"}}]}, "→ f({})\n→ g(None)"),
    ],
)
def test_a_message_as_text(message: dict[str, Any], text: str) -> None:
    assert message_text(message) == text


async def test_what_a_model_wrote_does_not_work_the_terminal(tmp_path: Path) -> None:
    said = "\x1b[2J[bold red]not markup[/]"
    run = write_run(tmp_path / "run", [row(completion=[{"role": "assistant", "content": said}], stop_condition="[red]\x1b")])
    async with viewer_of(run, width=45) as pilot:
        assert "\\x1b[2J[bold red]not markup[/]" in text_of(pilot, "#messages")
        lists = pilot.app.query_one("#lists")
        assert lists.has_class("narrow")


def test_a_run_that_cannot_be_read_now_is_read_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "run", [row()])
    files = RunFiles(run)
    with (run / "results.jsonl").open("a") as file:
        file.write(json.dumps(row(1)) + "\n")
    with monkeypatch.context() as patched:
        patched.setattr("vfgym.view.terminal.load_results", Mock(side_effect=OSError))
        assert (files.reload(), len(files.report.rows)) == (False, 1)
    assert (files.reload(), len(files.report.rows), files.reload()) == (True, 2, False)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="cannot read"):
        RunViewer([tmp_path])
