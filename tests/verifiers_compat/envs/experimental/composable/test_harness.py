"""`Harness`: an agent's program as data."""

from __future__ import annotations

from typing import Any

import pytest

from verifiers_compat.envs.experimental.composable import Harness


@pytest.mark.parametrize(
    ("fields", "mapping"),
    [
        ({}, None),
        ({"upload_dir_mapping": {}}, None),
        ({"skills_path": "/skills"}, {"skills": "/skills"}),
        ({"upload_dir_mapping": {"data": "/data"}}, {"data": "/data"}),
        ({"upload_dir_mapping": {"data": "/data", "skills": "/old"}, "skills_path": "/new"}, {"data": "/data", "skills": "/new"}),
    ],
)
def test_folders_are_copied_to_where_they_are_mapped_and_skills_to_their_own_path(fields: dict[str, Any], mapping: Any) -> None:
    assert Harness(**fields).get_effective_upload_dir_mapping() == mapping


def test_documented_defaults() -> None:
    harness = Harness()
    assert (harness.run_command, harness.install_timeout, harness.metrics_prefix) == ("", 300, "")
    assert (harness.instruction_path, harness.system_prompt_path) == ("/task/instruction.md", "/task/system_prompt.txt")
