"""Task folders in Harbor's format, as its own template makes them, filled in for tests."""

from __future__ import annotations

from pathlib import Path

TASK_TOML = """
schema_version = "1.4"
artifacts = []

[task]
name = "acme/{name}"
version = "1.0.0"
authors = []
keywords = []

[metadata]

[verifier]
timeout_sec = 60.0
collect = []

[verifier.env]

[agent]
timeout_sec = 600.0

[environment]
network_mode = "public"
build_timeout_sec = 600.0
os = "linux"
mcp_servers = []

[environment.env]

[solution.env]
"""
DOCKERFILE = """FROM {image}

# Install or copy over any environment dependencies here.

WORKDIR /app

COPY . ./
"""
BROKEN = "def double(x):\n    return x + 2\n"
CHECK = "import sys; sys.path.insert(0, '/app'); from double import double; assert [double(x) for x in (0, 3)] == [0, 6]"
TASKS = {
    "greet": ("Write hello to /app/greeting.txt.", "echo hello > greeting.txt", "grep -qx hello greeting.txt"),
    "repair": ("double.py does not double. Repair it.", "sed -i 's/x + 2/x * 2/' double.py", f'python3 -c "{CHECK}"'),
    "count": ("Write the number of lines of data.txt to count.txt.", "wc -l < data.txt > count.txt", 'test "$(cat count.txt)" -eq 3'),
    "link": ("Make latest a link to data.txt.", "ln -s data.txt latest", 'test "$(readlink latest)" = data.txt'),
    "clean": ("Remove data.txt.", "rm data.txt", "! test -e data.txt"),
}
"""For each task what is to be done, a solution, and a command that succeeds once it is done."""


def make_task(
    root: Path,
    name: str,
    instruction: str = "Do it.",
    solution: str = "true",
    check: str = "true",
    *,
    tests: str = "",
    image: str = "ubuntu:24.04",
) -> Path:
    """Make a task folder, and return it. `tests` is all of its ``test.sh``, in place of a `check`."""
    folder = root / name
    for part in ("environment", "solution", "tests"):
        (folder / part).mkdir(parents=True)
    (folder / "task.toml").write_text(TASK_TOML.format(name=name))
    (folder / "instruction.md").write_text(instruction)
    (folder / "environment" / "Dockerfile").write_text(DOCKERFILE.format(image=image))
    (folder / "environment" / "double.py").write_text(BROKEN)
    (folder / "environment" / "data.txt").write_text("a\nb\nc\n")
    (folder / "solution" / "solve.sh").write_text(f"#!/bin/bash\n\n{solution}\n")
    reward = f"if {check}; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi"
    (folder / "tests" / "test.sh").write_text(f"#!/bin/bash\n\n{tests or reward}\n")
    return folder


def make_tasks(root: Path, *names: str, image: str = "ubuntu:24.04") -> Path:
    """Make some of the tasks, or all, in a folder, and return that."""
    for name in names or TASKS:
        make_task(root, name, *TASKS[name], image=image)
    return root
