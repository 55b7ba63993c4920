"""Every Python snippet of the README and of docs/ runs as it stands.

The blocks of a page run in order in one namespace, as a reader would paste them into a notebook: a block may ``await``. A comment line
before a block changes that: ``<!-- raises: InvalidAction -->`` means that the block must raise this error, ``<!-- skip -->`` that it is
not run.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import sys
from pathlib import Path
from types import ModuleType

import gymnasium as gym
import pytest

from scripts import catalogue
from scripts.markdown_blocks import Block, markdown_blocks
from tests.agent_programs import PROBLEM
from vfgym.cli.environments import description
from vfgym.registration import list_registered_ids
from vfgym.wrappers.textarena import textarena_games

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
NEED_SANDBOX = ("agent_programs.md", "recursive_models.md", "sandboxes.md", "tasksets.md")


def run_block(block: Block, page: Path, module: ModuleType, runner: asyncio.Runner) -> None:
    """Execute one block in the namespace of ``module``; tracebacks name the line of the page."""
    source = "\n" * (block.line - 1) + block.code
    code = compile(source, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(eval(code, module.__dict__))
    else:
        exec(code, module.__dict__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.name in NEED_SANDBOX and PROBLEM:
        pytest.skip(PROBLEM)
    module = ModuleType(f"snippets_of_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with asyncio.Runner() as runner:
        for block in markdown_blocks(page.read_text()):
            if block.language != "python" or block.marker == "skip":
                continue
            if block.marker.startswith("raises:"):
                with pytest.raises(Exception) as caught:  # noqa: PT011, the next line looks at the name
                    run_block(block, page, module, runner)
                assert caught.type.__name__ == block.marker.removeprefix("raises:").strip(), f"{page.name}:{block.line}"
            else:
                run_block(block, page, module, runner)


def test_the_catalogue_has_every_id() -> None:
    """Made by ``scripts/catalogue.py``. The variants of TextArena's ids play the same games, so they have no lines of their own."""
    lines = (ROOT / "docs" / "catalogue.md").read_text().splitlines()
    listed = [line.split("`")[1] for line in lines if line.startswith("| `")]
    assert listed == [env_id for env_id in list_registered_ids() if not env_id.endswith(("-train", "-raw"))]


def test_the_catalogue_says_which_games_need_a_later_python() -> None:
    """It is made with a Python that has them all; those who read it may have an earlier one."""
    lines = [line.split(" | ") for line in (ROOT / "docs" / "catalogue.md").read_text().splitlines() if line.startswith("| `")]
    said = {cells[0].strip("| `"): cells[5] for cells in lines if "Python" in cells[5]}
    games = [game for game in textarena_games().values() if game["variant"] == "default" and (game["missing"] or "").startswith("Python")]
    assert said == {f"textarena/{game['id']}": f"from {game['missing']}" for game in games}
    assert said["textarena/Chess-v0"] == "from Python 3.12"


def test_the_catalogue_and_the_list_say_which_ids_go_back() -> None:
    """What a game itself answers once it is made, every id of it, is a test of its own (`tests/wrappers/games/test_going_back.py`)."""
    lines = [line.split(" | ") for line in (ROOT / "docs" / "catalogue.md").read_text().splitlines() if line.startswith("| `")]
    said = {cells[0].strip("| `"): cells[4] for cells in lines if cells[4]}
    listed = {env_id: "no" if "cannot go back" in description(env_id) else "yes" for env_id in said}
    assert said == listed
    assert {env_id.partition("/")[0] for env_id, goes_back in said.items() if goes_back == "no"} == {"gymnasium"}
    for env_id in ("gymnasium/CartPole-v1", "gymnasium/BipedalWalker-v3", "gymnasium/Hopper-v5"):
        assert gym.make(env_id).unwrapped.can_go_back is (said[env_id] == "yes")  # type: ignore[attr-defined]


def test_the_guide_of_games_prints_the_words_that_the_reader_of_answers_leaves_out() -> None:
    listed = json.loads((ROOT / "vfgym" / "data" / "answer_words.json").read_text())
    rule = " ".join((ROOT / "docs" / "games.md").read_text().split())
    assert f"and the words {', '.join(listed['words'].split())}." in rule


def test_a_row_of_the_catalogue_says_whether_its_game_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("textarena", reason="needs the extra textarena")
    monkeypatch.setattr(catalogue, "EPISODES", 1)
    runs = {name: catalogue.described(f"textarena/{name}").cells()[5] for name in ("TicTacToe-v0", "ReverseTicTacToe-v0", "Klondike-v0")}
    assert runs["TicTacToe-v0"] == "yes"
    assert runs["ReverseTicTacToe-v0"].startswith("from Python 3.12" if sys.version_info >= (3, 12) else "no: ReverseTicTacToe-v0 cannot")
    assert runs["Klondike-v0"].startswith("no: Klondike-v0 cannot be played here: it needs a repair")
