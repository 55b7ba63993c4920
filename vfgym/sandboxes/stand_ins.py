"""What of this machine stands for an image where no container engine answers: programs that the image is known for.

An image of Python, Debian, Ubuntu or Node, in any version, promises a program or a system, and a machine that has it can run what is
written for the image. Which version it has is said once. All other images promise what nobody here knows of.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import platform
import shutil
import subprocess

from vfgym.errors import ConfigurationError
from vfgym.sandboxes.creation import find_backend
from vfgym.sandboxes.local import find_interpreter
from vfgym.sandboxes.spec import SandboxSpec

logger = logging.getLogger(__name__)

_SEEN_INSIDE = "/usr/local/bin:/usr/bin:/bin"


def with_stand_in(spec: SandboxSpec, backend: str | None, *, strict_image: bool = False) -> SandboxSpec:
    """Return a spec without its image, where this machine stands for it; else the spec.

    Args:
        spec: What is asked for.
        backend: What makes sandboxes; None for what works here, an engine for images.
        strict_image: Whether nothing is to stand for an image.
    """
    if spec.image is None or strict_image or backend not in (None, "bwrap") or (backend is None and has_engine()):
        return spec
    stand_in = find_stand_in(spec.image)
    if stand_in is None:
        return spec
    _tell(spec.image, stand_in)
    return dataclasses.replace(spec, image=None)


def has_engine() -> bool:
    """Say whether a container engine answers."""
    try:
        find_backend("container")
    except ConfigurationError:
        return False
    return True


@functools.cache
def find_stand_in(image: str) -> str | None:
    """Return what of this machine stands for an image, with its version; None where nothing does."""
    name = image.removeprefix("docker.io/").removeprefix("library/").partition("@")[0].partition(":")[0]
    if name in ("debian", "ubuntu"):
        try:
            return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
        except OSError:  # not a Linux, or one that does not say which
            return None
    program = {"python": find_interpreter(), "node": shutil.which("node", path=_SEEN_INSIDE)}.get(name)
    if program is None:
        return None
    try:
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{program} ({asked.stdout.strip()})"


@functools.cache
def _tell(image: str, stand_in: str) -> None:
    logger.warning(
        "%s of this machine stands for the image %s, since no container engine runs it; strict_image=True refuses", stand_in, image
    )
