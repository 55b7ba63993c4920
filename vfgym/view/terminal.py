"""Runs in the terminal, as an app of Textual: what was found, a list of rollouts, and the conversation of the one that is marked.

A run that grows is read again as its files change. What a model wrote is shown as plain text, control characters escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from vfgym.errors import MissingExtra
from vfgym.output.terminal import display_text, one_line
from vfgym.results import ResultsError, load_results
from vfgym.results.counting import is_failed
from vfgym.results.plain_json import NotPlain, as_json
from vfgym.view.findings import Findings, find
from vfgym.view.rollouts import (
    answers_of,
    ended_by,
    failure_reason,
    messages_of,
    said_words,
    step_rewards_of,
    task_and_rollout,
    tokens_of,
)
from vfgym.view.run_files import files_state
from vfgym.view.run_report import RunReport, report_run
from vfgym.view.summary_text import summary_lines

try:
    from rich.text import Text
    from textual import on
    from textual.app import App, ComposeResult
    from textual.binding import Binding, BindingType
    from textual.containers import Horizontal, VerticalScroll
    from textual.widgets import DataTable, Footer, Input, Static
except ImportError as error:
    raise MissingExtra("view", "the viewer in the terminal") from error

SECONDS_BETWEEN_READS = 1.0
"""How often it is looked whether the files of a run have changed."""

_COLOURS = {"user": "cyan", "assistant": "green", "tool": "yellow"}


class RunFiles:
    """The files of a run, which is read again when they have changed."""

    def __init__(self, path: Path) -> None:
        """Read the run.

        Raises:
            ResultsError: If it cannot be read.
        """
        self.path = path
        self._seen: object = files_state(path)
        self.report: RunReport = report_run(load_results(path))

    def reload(self) -> bool:
        """Read it again if it has changed, and say whether it has; what cannot be read now is left for the next time."""
        state = files_state(self.path)
        if state == self._seen:
            return False
        try:
            self.report = report_run(load_results(self.path))
        except (ResultsError, OSError):  # its files are being replaced
            return False
        self._seen = state
        return True


class RunViewer(App[None]):
    """Shows some runs until the user leaves."""

    CSS = """
    #summary { height: auto; max-height: 40%; padding: 0 1; background: $panel; }
    #lists { height: 1fr; }
    #rollouts { width: 1fr; height: 1fr; }
    #conversation { width: 1fr; height: 1fr; padding: 0 1; border-left: solid $primary; }
    #lists.narrow { layout: vertical; }
    #lists.narrow #rollouts, #lists.narrow #conversation { width: 1fr; }
    #lists.narrow #conversation { height: 2fr; border-left: none; border-top: solid $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("r", "next_run", "Next run"),
        Binding("slash", "search", "Search"),
        Binding("f", "only_failed", "Failed only"),
        Binding("left", "turn(-1)", "Turn back", priority=True),
        Binding("right", "turn(1)", "Turn on", priority=True),
        Binding("escape", "leave", "Whole", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, runs: Sequence[Path]) -> None:
        """Read the runs.

        Args:
            runs: Their directories.

        Raises:
            ResultsError: If one cannot be read.
        """
        super().__init__()
        self._files = [RunFiles(Path(run)) for run in runs]
        self._findings: Findings = find([each.report for each in self._files])
        self._number = 0
        self._wanted = ""
        self._only_failed = False
        self._turn: int | None = None
        """The answer that is shown, from 0; None for the whole conversation."""
        self._listed: list[Mapping[str, Any]] = []
        """The rollouts in the list."""
        self._marked: tuple[int, int] | None = None
        """The example and the rollout that are shown."""

    @property
    def report(self) -> RunReport:
        """The run that is shown."""
        return self._files[self._number].report

    def compose(self) -> ComposeResult:
        """Lay out the numbers, the list and the conversation."""
        yield Static(id="summary")
        yield Input(placeholder="Text in a rollout; Enter to go back to the list", id="search")
        with Horizontal(id="lists"):
            table: DataTable[Text] = DataTable(id="rollouts", cursor_type="row", zebra_stripes=True)
            yield table
            with VerticalScroll(id="conversation", can_focus=True):
                yield Static(id="messages")
        yield Footer()

    def on_mount(self) -> None:
        """Fill in the first run, and look after its files from now on."""
        self.query_one("#search").display = False
        self._fill()
        self.query_one(DataTable).focus()
        self.set_interval(SECONDS_BETWEEN_READS, self._reload)

    def on_resize(self) -> None:
        """Put the conversation below the list where there is little room beside it."""
        self.query_one("#lists").set_class(self.size.width < 90, "narrow")

    def _reload(self) -> None:
        if any([each.reload() for each in self._files]):
            self._findings = find([each.report for each in self._files])
            self._fill()

    def _rows(self) -> list[Mapping[str, Any]]:
        rows = [row for row in self.report.rows if is_failed(row) or not self._only_failed]
        return [row for row in rows if self._wanted in _searched_text(row)] if self._wanted else rows

    def _fill(self) -> None:
        """Show the run as it is now; the rollout that was marked stays so."""
        rows, marked = self._rows(), self._marked
        self._listed = rows
        lines = [*summary_lines([each.report for each in self._files], self._findings, self._number)]
        self.query_one("#summary", Static).update(Text("\n".join([*lines, f"{len(rows)} of {len(self.report.rows)} rollouts"])))
        table = self.query_one(DataTable)
        table.clear(columns=True)
        names = [name for name in _COLUMNS if name != "tokens" or any(tokens_of(row) is not None for row in self.report.rows)]
        table.add_columns(*names)
        for row in rows:
            table.add_row(
                *(Text(one_line(_COLUMNS[name](row)), style="red" if name == "ended" and is_failed(row) else "") for name in names)
            )
        places = [_place(row) for row in rows]
        if marked in places:
            table.move_cursor(row=places.index(marked))
        self._show_conversation()

    @on(DataTable.RowHighlighted)
    def _mark(self, event: DataTable.RowHighlighted) -> None:
        if event.cursor_row < len(self._listed):
            marked = _place(self._listed[event.cursor_row])
            if marked != self._marked:
                self._marked, self._turn = marked, None
                self.query_one("#conversation").scroll_home(animate=False)
            self._show_conversation()

    def _marked_row(self) -> Mapping[str, Any] | None:
        return next((row for row in self._listed if _place(row) == self._marked), None)

    def _show_conversation(self) -> None:
        row = self._marked_row()
        self.query_one("#messages", Static).update(Text("No rollout.") if row is None else conversation_text(row, self._turn))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the arrows to the text that is typed, where one is."""
        return not (action == "turn" and self.query_one(Input).has_focus)

    def action_turn(self, step: int) -> None:
        """Show one turn of the conversation: the next one, or the one before."""
        row = self._marked_row()
        if row is not None and (count := len(answers_of(row))):
            self._turn = min(max((-1 if self._turn is None else self._turn) + step, 0), count - 1)
            self._show_conversation()

    def action_leave(self) -> None:
        """Show the whole conversation again, and all rollouts."""
        self._turn, self._wanted = None, ""
        self.query_one(Input).value = ""
        self._close_search()
        self._fill()

    def action_next_run(self) -> None:
        """Show the next run."""
        self._number = (self._number + 1) % len(self._files)
        self._turn = None
        self._fill()

    def action_only_failed(self) -> None:
        """Show the failed rollouts only, or all again."""
        self._only_failed = not self._only_failed
        self._fill()

    def action_search(self) -> None:
        """Ask for a text."""
        self.query_one(Input).display = True
        self.query_one(Input).focus()

    @on(Input.Submitted)
    def _search(self, event: Input.Submitted) -> None:
        self._wanted = event.value.strip().lower()
        self._close_search()
        self._fill()

    def _close_search(self) -> None:
        self.query_one(Input).display = False
        self.query_one(DataTable).focus()


_COLUMNS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "task": task_and_rollout,
    "reward": lambda row: f"{row['reward']:.3f}",
    "ended": lambda row: failure_reason(row)[0] if is_failed(row) else ended_by(row),
    "turns": lambda row: str(len(answers_of(row))),
    "tokens": lambda row: "-" if (tokens := tokens_of(row)) is None else f"{tokens:,.0f}",
    "first words": lambda row: failure_reason(row)[1][:120] if is_failed(row) else said_words(row),
}


def _place(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["example_id"], row.get("rollout") or 0


def _searched_text(row: Mapping[str, Any]) -> str:
    try:
        return json.dumps(as_json(row, fallback=repr), ensure_ascii=False).lower()
    except NotPlain:  # nested too deeply
        return conversation_text(row).plain.lower()


def conversation_text(row: Mapping[str, Any], turn: int | None = None) -> Text:
    """Return the conversation of a row as it is shown in the terminal.

    Args:
        row: The row.
        turn: Show this answer, from 0, with what stands before and after it; None for the whole conversation.
    """
    prompt = messages_of(row, "prompt")
    messages = [*prompt, *messages_of(row, "completion")]
    first, last, title = 0, len(messages), f"task {row['example_id']}, rollout {row.get('rollout') or 0}"
    if turn is not None:
        answers = [len(prompt) + at for at in answers_of(row)]
        first = answers[turn - 1] + 1 if turn else 0
        last = answers[turn + 1] if turn + 1 < len(answers) else len(messages)
        title += f", turn {turn + 1} of {len(answers)}"
    text = Text()
    text.append(f"{title}\nreward {row['reward']:.3f}, {one_line(ended_by(row))}\n", style="bold")
    if is_failed(row):
        text.append(f"failed: {display_text(': '.join(failure_reason(row)))}\n", style="bold red")
    human = row.get("human")
    if isinstance(human, Mapping):
        text.append(f"played by a person: {one_line(', '.join(f'{count} {name}' for name, count in human.items()))}\n")
    earned = step_rewards_of(row) or {}
    for at, message in enumerate(messages[first:last], start=first - len(prompt)):
        role = str(message.get("role"))
        note = f" step reward {earned[at]:.3g}" if at in earned else ""
        text.append(f"\n[{one_line(role)}]{note}\n", style=f"bold {_COLOURS.get(role, 'magenta')}")
        text.append(display_text(message_text(message)) + "\n")
    return text


def message_text(message: Mapping[str, Any]) -> str:
    """Return a message as text: reasoning, content with a word for each picture, tool calls."""
    parts = [f"(reasoning) {message[name]}" for name in ("reasoning_content", "reasoning") if message.get(name)]
    content = message.get("content")
    parts += [_part_text(part) for part in content] if isinstance(content, list) else [content] if content else []
    for call in message.get("tool_calls") or ():
        made = call.get("function") or call
        parts.append(f"→ {made.get('name')}({made.get('arguments')})")
    return "\n".join(map(str, parts))


def _part_text(part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part)
    return str(part["text"]) if "text" in part else f"<{part.get('type', 'part')}>"
