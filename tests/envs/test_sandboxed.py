"""`SandboxedEnv`: when a sandbox is made, kept and closed, whatever its backend; `SandboxEnv`'s tests play in real ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from vfgym import State, sandboxes
from vfgym.envs import sandboxed
from vfgym.envs.sandboxed import SandboxedEnv, backend_for, find_sandbox, fresh_sandbox, give_back_sandbox, open_sandbox, sandboxes_in_use
from vfgym.errors import EpisodeNotPicklable, InfraError, SandboxError
from vfgym.sandboxes import SandboxSpec, TreeSnapshot
from vfgym.sandboxes.spec import Entry


class Recorded:
    """Stands for a sandbox: it notes what is done with it."""

    def __init__(self, spec: SandboxSpec, backend: str | None) -> None:
        self.spec, self.backend, self.id = spec, backend, f"sandbox-{id(self)}"
        self.done: list[Any] = []
        self.fails: dict[str, BaseException] = {}
        self.files = TreeSnapshot(((Entry("a", "file", 0o644, 1), b"1"),))

    def _do(self, *what: Any) -> None:
        self.done.append(what)
        if what[0] in self.fails:
            raise self.fails[what[0]]

    async def close(self) -> None:
        self._do("close")

    async def copy_to(self, other: Any, path: str) -> None:
        self._do("copy", other, path)

    async def snapshot(self) -> TreeSnapshot:
        self._do("snapshot")
        return self.files

    async def restore(self, files: TreeSnapshot) -> None:
        self._do("restore", files)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    """The sandboxes that were made."""
    made: list[Recorded] = []

    async def create(spec: SandboxSpec, backend: str | None) -> Recorded:
        made.append(Recorded(spec, backend))
        return made[-1]

    monkeypatch.setattr(sandboxes, "create", create)
    monkeypatch.setattr(sandboxed, "_leased", {})
    return made


class Leasing(SandboxedEnv):
    """Leases a sandbox for each episode, and may fail when it looks at it."""

    has_files_alone = True
    fails: BaseException | None = None

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"dataset": [{"question": "?"}], "backend": "unsafe", "max_turns": 1, **kwargs})
        self.seen: list[Any] = []

    @property
    def played(self) -> State:
        assert self.state is not None
        return self.state

    async def setup_state(self, state: State) -> State:
        await self.lease_sandbox(state, {8001: "/own"})
        return state

    def env_response(self, messages: Any, state: State) -> Any:
        return "on"

    async def post_rollout(self, state: State) -> None:
        self.seen.append(state["sandbox"].id)
        if self.fails is not None:
            raise self.fails


@pytest.mark.parametrize(
    ("spec", "chosen", "backend"),
    [
        ({"image": "a"}, None, "container"),
        ({"image": "a"}, "bwrap", "bwrap"),
        ({"dockerfile": True}, None, "container"),
        ({}, None, None),
        ({}, "unsafe", "unsafe"),
    ],
)
async def test_an_image_needs_an_engine_where_nothing_was_chosen(
    made: list[Recorded], spec: Any, chosen: str | None, backend: str | None, tmp_path: Any
) -> None:
    """A limit of the disk would hide what the image has, so there is none."""
    (tmp_path / "Dockerfile").touch()
    given = SandboxSpec(disk_mb=8, **({"dockerfile": tmp_path} if "dockerfile" in spec else spec))
    assert backend_for(given, chosen) == backend
    sandbox: Any = await open_sandbox(given, chosen)
    assert (sandbox.backend, sandbox.spec.disk_mb) == (backend, None if backend == "container" else 8)
    assert (find_sandbox(sandbox.id), sandboxes_in_use()) == (sandbox, [sandbox.id])
    for _ in range(2):
        await give_back_sandbox(sandbox.id)
    assert (sandbox.done, sandboxes_in_use()) == ([("close",)], [])
    with pytest.raises(SandboxError, match=f"there is no sandbox '{sandbox.id}': it was closed, or was never there"):
        find_sandbox(sandbox.id)


@pytest.mark.parametrize("error", [None, SandboxError("no"), asyncio.CancelledError()])
@pytest.mark.parametrize("fails", ["copy", "block"])
async def test_a_fresh_sandbox_has_the_results_and_is_closed(made: list[Recorded], fails: str, error: BaseException | None) -> None:
    spec = SandboxSpec(memory_mb=100, forwards={80: "/socket"})
    played = Recorded(spec, "unsafe")
    if error is not None and fails == "copy":
        played.fails["copy"] = error

    async def grade() -> None:
        async with fresh_sandbox(played, iter(["a", "b"])) as fresh:  # type: ignore[arg-type]
            assert (fresh.spec.memory_mb, fresh.spec.forwards, fresh.backend) == (100, {}, "unsafe")
            assert played.done == [("copy", fresh, "a"), ("copy", fresh, "b")]
            assert sandboxes_in_use() == [fresh.id]
            if error is not None:
                raise error

    if error is None:
        await grade()
    else:
        with pytest.raises(type(error)):
            await grade()
    assert ([each.done for each in made], sandboxes_in_use()) == ([[("close",)]], [])


@pytest.mark.parametrize(
    ("kept", "scored", "fails", "is_kept"),
    [
        (False, True, None, False),
        (True, True, None, True),
        (True, False, None, False),
        (True, True, InfraError("no"), True),
        (True, True, ValueError("no"), False),
        (True, True, asyncio.CancelledError(), False),
        (False, True, InfraError("no"), False),
    ],
)
async def test_a_sandbox_is_kept_for_scoring_alone_and_closed_once(
    made: list[Recorded], kept: bool, scored: bool, fails: BaseException | None, is_kept: bool
) -> None:
    env = Leasing(keep_sandbox_for_scoring=kept, score_rollouts=scored, sandbox=SandboxSpec(forwards={80: "/given"}))
    env.fails = fails
    found: list[bool] = []

    def look(state: State) -> float:
        found.append("sandbox" in state)
        return 0.0

    env.rubric.add_reward_func(look)
    await env.areset(seed=0)
    [sandbox] = made
    assert sandbox.spec.forwards == {80: "/given", 8001: "/own"}
    assert (env.played["sandbox"], env.played["sandbox_id"]) == (sandbox, sandbox.id)
    if fails is None or isinstance(fails, InfraError):
        await env.astep("x")
        assert found == ([is_kept] if scored else [])
        assert env.played["error"] is fails
    else:
        with pytest.raises(ValueError if isinstance(fails, ValueError) else RuntimeError):  # nobody has cancelled the step
            await env.astep("x")
    assert (env.seen, sandbox.done, sandboxes_in_use(), "sandbox" in env.played) == ([sandbox.id], [("close",)], [], False)
    await env.aclose()
    assert sandbox.done == [("close",)]


async def test_an_episode_that_is_broken_off_is_closed_without_a_look_at_its_sandbox(made: list[Recorded]) -> None:
    env = Leasing(keep_sandbox_for_scoring=True)
    await env.areset(seed=0)
    await env.aclose()
    assert (env.seen, made[0].done) == ([], [("close",)])


async def test_the_files_of_a_sandbox_are_copied_where_they_are_all_that_it_has(made: list[Recorded]) -> None:
    env = Leasing()
    await env.areset(seed=0)
    [sandbox] = made
    [(key, copied)] = (await env.copy_resources(env.played)).items()
    assert (key, copied.spec, copied.backend, copied.files) == (id(sandbox), sandbox.spec, "unsafe", sandbox.files)
    state = State(sandbox=copied)
    await env.open_resources(state)
    assert (made[1].spec, made[1].backend, made[1].done) == (sandbox.spec, "unsafe", [("restore", sandbox.files)])
    assert (state["sandbox"], state["sandbox_id"]) == (made[1], made[1].id)
    await env.close_sandbox(state)
    assert (await env.copy_resources(State()), made[1].done[1:]) == ({}, [("close",)])
    await env.open_resources(State())
    assert len(made) == 2
    sandbox.files = TreeSnapshot((), "")
    with pytest.raises(EpisodeNotPicklable, match=r"a snapshot of its sandbox is without $"):
        await env.copy_resources(env.played)
    sandbox.fails["snapshot"] = SandboxError("a socket")
    with pytest.raises(EpisodeNotPicklable, match="the files of its sandbox cannot be: a socket"):
        await env.copy_resources(env.played)
    env.has_files_alone = False  # type: ignore[misc]
    with pytest.raises(EpisodeNotPicklable, match="a sandbox of Leasing has more in it than files"):
        await env.copy_resources(env.played)
    await env.aclose()


@pytest.mark.parametrize("error", [SandboxError("no"), asyncio.CancelledError(), KeyboardInterrupt()])
async def test_a_sandbox_whose_files_can_not_be_made_again_is_closed(
    made: list[Recorded], error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def restore(self: Recorded, files: TreeSnapshot) -> None:
        raise error

    monkeypatch.setattr(Recorded, "restore", restore)
    env, state = Leasing(), State(sandbox=sandboxed.SandboxCopy(SandboxSpec(), "unsafe", TreeSnapshot(())))
    with pytest.raises(type(error)):
        await env.open_resources(state)
    assert ([each.done for each in made], sandboxes_in_use()) == ([[("close",)]], [])
