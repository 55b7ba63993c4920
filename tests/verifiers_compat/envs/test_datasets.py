"""Tasks as Hugging Face datasets: prompts, ids and columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Dataset

import verifiers_compat as vf
from tests.verifiers_compat.environments import ROW, single
from tests.verifiers_compat.models import rolled_out
from verifiers_compat.envs.datasets import view_of, without_progress_bars
from vfgym.errors import ConfigurationError

ASKED, SHOT = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "0"}
YOURS = {"role": "system", "content": "Yours."}


@pytest.mark.parametrize("as_dataset", [False, True])
@pytest.mark.parametrize(
    ("row", "prompt"),
    [
        ({"question": "hi"}, [YOURS, SHOT, ASKED]),
        ({"prompt": [ASKED], "question": "not asked"}, [YOURS, ASKED]),
        *(
            ({"prompt": [{"role": role, "content": "Mine."}, ASKED]}, [{"role": role, "content": "Mine."}, ASKED])
            for role in ("system", "developer")
        ),
    ],
)
def test_a_question_gets_system_prompt_and_few_shot_and_a_prompt_what_it_lacks(row: dict[str, Any], prompt: Any, as_dataset: bool) -> None:
    rows = Dataset.from_list([row]) if as_dataset else [row]
    shown = vf.SingleTurnEnv(dataset=rows, system_prompt="Yours.", few_shot=[SHOT]).get_dataset()[0]
    assert (shown["prompt"], shown.get("question")) == (prompt, row.get("question"))
    alone = vf.SingleTurnEnv(dataset=rows).get_dataset()[0]["prompt"]
    assert alone == [message for message in prompt if message not in (YOURS, SHOT)]


def test_ids_that_are_numbers_are_kept_others_renamed_and_those_of_environments_dropped() -> None:
    dataset = single({**ROW, "example_id": "x7"}, {**ROW, "example_id": "x9"}).get_dataset()
    assert (dataset["src_id"][:], dataset["example_id"][:]) == (["x7", "x9"], [0, 1])
    assert single({**ROW, "example_id": 7}, {**ROW, "example_id": 3}).get_dataset()["example_id"][:] == [7, 3]
    assert "env_id" not in single({**ROW, "env_id": "x"}).get_dataset().column_names


@pytest.mark.parametrize("row", [{"q": "no question"}, {"prompt": 3}, {"prompt": [{"role": "nobody", "content": "x"}]}])
def test_rows_that_are_no_tasks_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises((ValueError, KeyError, TypeError), match=r"prompt|role"):
        vf.SingleTurnEnv(dataset=[row]).get_dataset()


async def test_prompts_of_completion_mode_are_plain_strings_in_the_dataset() -> None:
    for rows in ([{"prompt": "42"}, {"prompt": "Once upon"}], Dataset.from_list([{"prompt": "42"}, {"prompt": "Once upon"}])):
        env = vf.SingleTurnEnv(dataset=rows, message_type="completion")
        assert env.get_dataset()["prompt"][:] == ["42", "Once upon"]
        state = await rolled_out(env, "a time", row=1)
        assert [(message.role, message.content) for message in state["prompt"]] == [("text", "Once upon")]


@pytest.mark.parametrize(("n", "rows"), [(-1, [0, 1, 2]), (0, [0, 1, 2]), (1, [0]), (9, [0, 1, 2])])
def test_a_view_has_the_first_rows_and_the_dataset_keeps_its_order(n: int, rows: list[int]) -> None:
    dataset = Dataset.from_dict({"row": [0, 1, 2]})
    assert view_of(dataset, n, None)["row"][:] == rows
    assert len(view_of(dataset, n, 0)) == len(rows)
    assert dataset["row"][:] == [0, 1, 2]


def test_bars_are_off_for_a_while_and_a_users_choice_is_kept() -> None:
    def are_off() -> bool:
        with without_progress_bars():
            return datasets.are_progress_bars_disabled()

    assert not datasets.are_progress_bars_disabled()
    assert (are_off(), datasets.are_progress_bars_disabled()) == (True, False)
    with pytest.raises(ZeroDivisionError), without_progress_bars():
        1 / 0  # noqa: B018
    assert not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        assert (are_off(), datasets.are_progress_bars_disabled()) == (True, True)
    finally:
        datasets.enable_progress_bars()


def test_a_row_that_has_no_form_in_json_is_named() -> None:
    with pytest.raises(ConfigurationError, match="row 1 cannot be part of a Dataset"):
        vf.SingleTurnEnv(dataset=[{"question": "?"}, {"question": "?", "made": object()}]).get_dataset()


def test_prompts_of_a_dataset_with_a_cache_are_those_of_its_environment(tmp_path: Path) -> None:
    """Whatever another environment made of the same rows before."""
    Dataset.from_list([{"question": "hi", "env_id": "x"}]).save_to_disk(tmp_path)
    rows = datasets.load_from_disk(str(tmp_path))
    made: list[dict[str, Any]] = [{}, {"system_prompt": "Yours."}, {"few_shot": [SHOT]}, {"system_prompt": "Yours.", "few_shot": [SHOT]}]
    for _ in range(2):
        shown = [vf.SingleTurnEnv(dataset=rows, **given).get_dataset()[0]["prompt"] for given in made]
        assert shown == [[ASKED], [YOURS, ASKED], [SHOT, ASKED], [YOURS, SHOT, ASKED]]
    env = vf.SingleTurnEnv(dataset=rows)
    for prompt, expected in (("Yours.", [YOURS, ASKED]), (None, [ASKED])):
        env.set_system_prompt(prompt)
        assert env.get_dataset()[0] == {"question": "hi", "prompt": expected, "example_id": 0}


def test_options_of_the_environment_are_those_of_the_map(tmp_path: Path) -> None:
    rows = Dataset.from_list([{"question": "hi"}])
    vf.SingleTurnEnv(dataset=rows, map_kwargs={"cache_file_name": str(tmp_path / "own.arrow")}).get_dataset()
    assert (tmp_path / "own.arrow").exists()
