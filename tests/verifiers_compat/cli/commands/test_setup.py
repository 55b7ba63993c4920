"""``vf-setup``: the directories and files of a workspace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.verifiers_compat.cli.options import declared_options
from verifiers_compat.cli.commands.setup import app, endpoints_text, main
from verifiers_compat.cli.evals.endpoints import read_endpoints
from verifiers_compat.cli.evals.files import load_toml_config
from vfgym.clients.config import PROVIDERS

WITHOUT_EFFECT = ("--skip-agents-md", "--skip-install", "--no-interactive")


def test_a_workspace_is_made_and_what_is_there_is_kept(workspace: Path, run_command: Callable[..., Any]) -> None:
    done = run_command(main, *WITHOUT_EFFECT)
    assert (done.code, done.out.count("written ")) == (0, 2)
    assert Path("environments").is_dir()
    endpoints = read_endpoints("configs/endpoints.toml")
    assert endpoints["echo"] == [{"model": "echo", "url": "http://localhost:8000/v1", "key": "LOCAL_API_KEY"}]
    (config,) = load_toml_config("configs/eval/example.toml")
    assert Path(config["endpoints_path"]).resolve() == workspace / "configs" / "endpoints.toml"
    assert config["endpoint_id"] in endpoints
    for file in ("configs/endpoints.toml", "configs/eval/example.toml"):
        Path(file).write_text("mine")
    assert run_command(main).out.count("kept ") == 2
    assert Path("configs/endpoints.toml").read_text() == Path("configs/eval/example.toml").read_text() == "mine"


def test_every_provider_is_a_comment_that_works(workspace: Path) -> None:
    file = workspace / "endpoints.toml"
    file.write_text("\n".join(line.removeprefix("# ") if "=" in line or "[[" in line else "" for line in endpoints_text().splitlines()))
    endpoints = read_endpoints(file)
    assert list(endpoints) == ["echo", *(f"my-{name}-model" for name in PROVIDERS)]
    for name, provider in PROVIDERS.items():
        [found] = endpoints[f"my-{name}-model"]
        assert (found["url"], found["key"]) == (provider.url, provider.key_var)
        assert found.get("api_client_type", "openai_chat_completions") == provider.client_type


@pytest.mark.parametrize(("given", "message"), [(["--prime-rl"], "installs a trainer"), (["--agents", "claude"], "--agents writes guides")])
def test_what_cannot_be_done_is_refused(given: list[str], message: str, workspace: Path, run_command: Callable[..., Any]) -> None:
    done = run_command(main, *given)
    assert done.code == 2
    assert message in done.err
    assert not Path("environments").exists()


def test_every_option_is_given_in_a_test_here() -> None:
    spelled = {spelling for spellings in declared_options(app).values() for spelling in spellings}
    assert spelled == {*WITHOUT_EFFECT, "--prime-rl", "--agents", "--debug"}
