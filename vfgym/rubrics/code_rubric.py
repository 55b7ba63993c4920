"""`CodeRubric`: which share of a task's tests the model's code passes, each code in a sandbox."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
from collections.abc import Sequence
from typing import Any

from vfgym.aio.background import on_background_loop
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.lifecycle import teardown
from vfgym.parsers import MaybeThinkParser, Parser
from vfgym.rubrics.code_tests import find_pytest, needs_pytest, read_tests, share_of_passed
from vfgym.rubrics.rubric import Rubric
from vfgym.rubrics.scoring import RewardFunc
from vfgym.sandboxes import SandboxPool, SandboxSpec, check_spec

TIMEOUT_SECONDS = 10.0
_FENCE = re.compile(r"^[ \t]*+```(?P<language>[^\n`]*+)$", re.MULTILINE)


def last_code_block(text: str) -> str:
    r"""Return what the last fenced block of a text has in it; nothing where there is none.

    >>> fence = "`" * 3
    >>> last_code_block(f"First\n{fence}python\nprint(1)\n{fence}\nbut better:\n{fence}\nprint(2)\n{fence}")
    'print(2)\n'
    """
    block, start = "", None
    for fence in _FENCE.finditer(text):
        if start is None:
            start = fence.end() + 1
        elif not fence["language"].strip(" \t"):
            block, start = text[start : fence.start()], None
    return block


class CodeRubric(Rubric):
    """Rewards code by the tests that it passes: ``passed_tests``, their share.

    The code is the last fenced block of the completion. ``info["tests"]`` of the task is a list, or its JSON, of

    - ``{"stdin": ..., "stdout": ...}``: the code runs as a program and must print this, white space at the ends of lines and empty lines at
      the end left out, and end with exit code 0;
    - lines with an ``assert``, which run after the code in its namespace;
    - ``{"pytest": ...}``, the text of a test module that imports ``solution``: it counts as the share of its tests that pass.

    Each code has a new sandbox without network, as many at once as there are cores, and the evaluating process runs none of it. Some are
    made in advance, until the environment is closed. A code that ends its sandbox, or takes too long, fails the tests that
    are left. Lines with an ``assert`` and pytest share their interpreter with the code, so one that is out to deceive them can; programs
    that are compared by what they print can't.
    """

    def __init__(
        self,
        funcs: Sequence[RewardFunc] | RewardFunc | None = None,
        weights: Sequence[float] | None = None,
        parser: Parser | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        *,
        sandbox: SandboxSpec | None = None,
        backend: str | None = None,
    ) -> None:
        """Make a rubric of `funcs`, and of ``passed_tests`` with weight 1.0 after them.

        Args:
            funcs: Further reward functions.
            weights: Their weights (1.0 without).
            parser: Reads the code out of a completion. By default what the last fenced block after the reasoning has in it.
            timeout_seconds: Seconds that all tests of one code may take together.
            sandbox: Limits of the sandboxes, and the Python of the tests (``SandboxSpec(python=...)``).
            backend: What makes the sandboxes (see `vfgym.sandboxes`); None for what works here.

        Raises:
            ConfigurationError: If an argument is out of range, or no sandbox can be made here: the text says what to install.
        """
        if isinstance(timeout_seconds, bool) or not isinstance(timeout_seconds, int | float) or not 0 < timeout_seconds < float("inf"):
            raise ConfigurationError(f"timeout_seconds must be a positive number of seconds, got {timeout_seconds!r}")
        super().__init__(funcs, weights, MaybeThinkParser(last_code_block) if parser is None else parser)
        self.timeout_seconds = timeout_seconds
        spec = SandboxSpec() if sandbox is None else sandbox
        if spec.python is None:
            folders, variables = find_pytest()
            spec = dataclasses.replace(spec, readable_paths=(*spec.readable_paths, *folders), env={**variables, **spec.env})
        self.sandbox_spec = spec
        self.backend = check_spec(self.sandbox_spec, backend).name
        self.add_reward_func(self.passed_tests, range=(0.0, 1.0))

    async def passed_tests(self, parser: Parser, completion: Any, info: Any) -> float:
        """Return the share of the task's tests that the code passes.

        Args:
            parser: Reads the code out of the completion.
            completion: What the model wrote.
            info: Has the ``tests`` of the task.

        Raises:
            ConfigurationError: If they can't be run.
            SandboxError: If no sandbox can be made.
        """
        tests = read_tests(info)
        code = str(parser.parse_answer(completion) or "")
        if not code.strip():
            return 0.0
        return await on_background_loop(self._run, code, tests)

    async def _run(self, code: str, tests: list[Any]) -> float:
        pools = _find_pools()
        async with pools.cores:
            for _ in range(2):  # what ended a sandbox was the code, or somebody else
                async with pools.of(self.sandbox_spec, self.backend).lease() as sandbox:
                    if any(not isinstance(test, str) and "pytest" in test for test in tests):
                        await needs_pytest(sandbox)
                    try:
                        return await share_of_passed(sandbox, code, tests, self.timeout_seconds)
                    except SandboxError:
                        pass
        return 0.0

    @teardown
    async def close_sandboxes(self) -> None:
        """Close the sandboxes that were made in advance."""
        await on_background_loop(_close_pool, self.sandbox_spec, self.backend)


class _Pools:
    """The pools of this process, which its rubrics share, and how many codes run at once. All lives on the background loop."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.cores = asyncio.Semaphore(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
        self.pools: dict[Any, SandboxPool] = {}

    def of(self, spec: SandboxSpec, backend: str) -> SandboxPool:
        key = (repr(spec), backend)
        if key not in self.pools:
            self.pools[key] = SandboxPool(spec, backend)
        return self.pools[key]


_pools: _Pools | None = None


def _find_pools() -> _Pools:
    global _pools
    if _pools is None or _pools.pid != os.getpid():  # a fork has none of its parent's sandboxes
        _pools = _Pools()
    return _pools


async def _close_pool(spec: SandboxSpec, backend: str) -> None:
    pool = _find_pools().pools.pop((repr(spec), backend), None)
    if pool is not None:
        await pool.close()
