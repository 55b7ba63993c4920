"""A repository is cloned once for each ref, and its token is shown to nobody."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from verifiers_compat.v1.checkouts import Repository
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.output.redaction import Secret

TOKEN = "ghp_0123456789abcdef"
WHO = ["-c", "user.name=a", "-c", "user.email=a@example.org"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


async def test_a_repository_is_cloned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ref by itself, also inside a hook of another repository."""
    folder = tmp_path / "rlm"
    folder.mkdir()
    for number, branch in enumerate(("main", "other")):
        (folder / "rlm.py").write_text(branch)
        begin = [["init", "--quiet", "--initial-branch=main"]] if number == 0 else [["checkout", "--quiet", "-b", branch]]
        for arguments in (*begin, ["add", "rlm.py"], [*WHO, "commit", "--quiet", "-m", "Write"]):
            subprocess.run(["git", *arguments], cwd=folder, check=True)
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    found = [await Repository(str(folder), branch).checkout() for branch in ("main", "other")]
    assert [(each / "rlm.py").read_text() for each in found] == ["main", "other"]
    (folder / ".git").rename(tmp_path / "gone")
    assert await Repository(str(folder), "main").checkout() == found[0]
    with pytest.raises(SandboxError, match="could not be cloned at 'third'"):
        await Repository(str(folder), "third").checkout()


async def test_a_token_is_shown_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands for git says all that it knows, and fails. The token is for this repository alone, and for no redirection."""
    git = tmp_path / "git"
    git.write_text(f'#!/bin/sh\necho "$0 $@" >> {tmp_path}/arguments\nenv >&2; exit 1\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    repository = Repository("github.com/a/b", "main", TOKEN)
    with pytest.raises(SandboxError, match="could not be cloned") as failed:
        await repository.checkout()
    told = str(failed.value)
    for line in (
        *("GIT_CONFIG_KEY_0=http.https://github.com/a/b.extraHeader", "GIT_CONFIG_VALUE_0=Authorization: Basic ***"),
        *("GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_1=http.followRedirects", "GIT_CONFIG_VALUE_1=false", "GIT_TERMINAL_PROMPT=0"),
    ):
        assert line in told
    assert TOKEN not in told + (tmp_path / "arguments").read_text() + repr(repository)
    assert isinstance(repository.token, Secret)
    with pytest.raises(SandboxError) as failed:
        await Repository("github.com/a/c", "main").checkout()
    assert "GIT_CONFIG_COUNT" not in str(failed.value)


def test_what_is_not_a_repository_is_refused() -> None:
    assert [Repository(url, "v1").url for url in ("github.com/a/b", "ssh://a/b", "/a/b")] == ["https://github.com/a/b", "ssh://a/b", "/a/b"]
    for ref in ("", "--upload-pack=x"):
        with pytest.raises(ConfigurationError, match="a ref must be"):
            Repository("github.com/a/b", ref)
    for url in ("http://example.org/a.git", "ssh://example.org/a", "/a/b"):
        with pytest.raises(ConfigurationError, match="over HTTPS only"):
            Repository(url, "main", TOKEN)
