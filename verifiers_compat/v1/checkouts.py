"""`Repository`: one of git that is cloned on this machine, once, for the sandboxes that a program of it is copied into."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from vfgym.aio.threads import on_thread
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.output.redaction import Secret, redact
from vfgym.sandboxes.host_cache import cache_folder, make_once

_CLONES_WITHIN = 600.0
_MOST_QUOTED = 2000
_OF_OTHER_REPOSITORIES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
"""What git is told where it calls us, in a hook."""


@dataclass(frozen=True)
class Repository:
    """A repository at one of its refs."""

    url: str
    """Where it is, by HTTPS where nothing else is said."""
    ref: str
    """A branch, a tag or a commit."""
    token: str | None = field(default=None, repr=False)
    """What a private one is read with, over HTTPS only."""

    def __post_init__(self) -> None:
        if "://" not in self.url and not os.path.isabs(self.url):
            object.__setattr__(self, "url", f"https://{self.url}")
        if self.ref.startswith("-") or not self.ref:
            raise ConfigurationError(f"a ref must be a branch, a tag or a commit, got {self.ref!r}")
        if self.token is not None and not self.url.startswith("https://"):
            raise ConfigurationError(f"a token is sent over HTTPS only, and the repository is {redact(self.url)}")
        if self.token is not None:
            object.__setattr__(self, "token", Secret(self.token))

    async def checkout(self) -> Path:
        """Return a folder with its files, which are fetched where they never were.

        Raises:
            SandboxError: If they cannot be.
        """
        return await on_thread(self._find)

    def _find(self) -> Path:
        key = hashlib.sha256(f"{self.url}\0{self.ref}".encode()).hexdigest()[:16]
        folder = cache_folder("checkouts") / key
        make_once(folder, lambda: self._fetch(folder / "files"), redact(f"{self.url} at {self.ref}"))
        return folder / "files"

    def _fetch(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        for arguments in (
            ("init", "--quiet"),
            ("fetch", "--quiet", "--depth", "1", self.url, self.ref),
            ("checkout", "--quiet", "FETCH_HEAD"),
        ):
            try:
                ran = subprocess.run(
                    ["git", *arguments],
                    cwd=folder,
                    env=self._variables(),
                    capture_output=True,
                    stdin=subprocess.DEVNULL,
                    text=True,
                    errors="replace",
                    timeout=_CLONES_WITHIN,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise SandboxError(redact(f"{self.url} could not be cloned: {error}")) from None
            if ran.returncode != 0:
                said = redact(ran.stderr).strip()[-_MOST_QUOTED:]
                raise SandboxError(redact(f"{self.url} could not be cloned at {self.ref!r}: {said}"))

    def _variables(self) -> dict[str, str]:
        """Return what git is told by its environment: the token is seen in no list of processes, and sent to this place only."""
        variables = {name: value for name, value in os.environ.items() if name not in _OF_OTHER_REPOSITORIES}
        variables["GIT_TERMINAL_PROMPT"] = "0"
        if self.token is None:
            return variables
        credentials = Secret(base64.b64encode(f"x-access-token:{self.token}".encode()).decode())
        settings = {f"http.{self.url}.extraHeader": f"Authorization: Basic {credentials}", "http.followRedirects": "false"}
        variables["GIT_CONFIG_COUNT"] = str(len(settings))
        for number, (key, value) in enumerate(settings.items()):
            variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return variables
