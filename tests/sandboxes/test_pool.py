"""Pools: each lease is of a sandbox that no program has touched; what was leased is closed; some are made in advance."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os

import pytest

from tests.sandboxes.making import need
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import SandboxPool, SandboxSpec
from vfgym.sandboxes.base import Sandbox


@pytest.fixture(params=["bwrap", "unsafe"])
def backend(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


LISTING = """[ "$HOME" = /home/sandbox ] && cd / || cd "$HOME/.."; find . -xdev | sort"""
TOUCH = [
    "mkdir -p a/b ~/c && touch a/b/file ~/c/d ../e; chmod 000 a/b; ln -s / a/up; chmod 700 .; rmdir ~/../tmp",
    "rmdir ../workspace; ln -s tmp ../workspace",
    "true",
]


@pytest.mark.parametrize("touch", TOUCH)
async def test_each_lease_is_of_a_sandbox_that_nobody_has_had(backend: str, touch: str) -> None:
    pool = SandboxPool(SandboxSpec(), backend)
    had: list[Sandbox] = []
    listings = []
    for _ in range(3):
        async with pool.lease() as sandbox:
            listings.append((await sandbox.exec(LISTING)).stdout)
            result = await sandbox.python("x = globals().get('x', 0) + 1\nx")
            assert (result.value, result.count) == ("1", 1)
            await sandbox.exec(touch)
            had.append(sandbox)
        assert not sandbox.is_alive
    assert len({sandbox.id for sandbox in had}) == 3
    assert len(set(listings)) == 1
    await pool.close()
    with pytest.raises(SandboxError, match="the pool of sandboxes is closed"):
        async with pool.lease():
            pass


async def test_one_is_made_for_the_next_lease_and_closed_with_the_pool(backend: str) -> None:
    for most_idle in (0, 1):
        pool = SandboxPool(SandboxSpec(), backend, most_idle=most_idle)
        for _ in range(2):
            async with pool.lease():
                pass
        made = [await asyncio.wrap_future(future) for future in pool._made]
        assert [sandbox.is_alive for sandbox in made] == [True] * most_idle
        await pool.close()
        await pool.close()
        assert not any(sandbox.is_alive for sandbox in made)


async def test_one_that_has_ended_before_it_was_leased_is_not_leased() -> None:
    need("bwrap")
    pool = SandboxPool(SandboxSpec(), "bwrap", most_idle=1)
    async with pool.lease():
        pass
    [future] = pool._made
    ended = await asyncio.wrap_future(future)
    await ended.close()
    async with pool.lease() as sandbox:
        assert sandbox is not ended
        assert (await sandbox.exec("echo fine")).stdout == "fine\n"
    await pool.close()


async def test_a_lease_that_is_cancelled_while_it_waits_leaves_what_is_made_to_the_next() -> None:
    need("bwrap")
    pool = SandboxPool(SandboxSpec(), "bwrap", most_idle=1)
    async with pool.lease():
        pass
    [future] = pool._made
    waiting = asyncio.ensure_future(pool.lease().__aenter__())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with pool.lease() as sandbox:
        assert sandbox is future.result()
    await pool.close()


async def test_leases_at_once_are_of_different_sandboxes() -> None:
    need("bwrap")
    pool = SandboxPool(SandboxSpec(), "bwrap", most_idle=2)

    async def use(number: int) -> str:
        async with pool.lease() as sandbox:
            await sandbox.write_file("number", str(number))
            return (await sandbox.exec("cat number; ls | wc -l")).stdout

    assert await asyncio.gather(*map(use, range(6))) == [f"{number}1\n" for number in range(6)]
    await pool.close()


@pytest.mark.parametrize("error", [KeyError("x"), asyncio.CancelledError()])
async def test_a_lease_that_ends_with_an_error_closes_its_sandbox_and_makes_another(error: BaseException) -> None:
    pool = SandboxPool(SandboxSpec(), "unsafe", most_idle=1)
    with pytest.raises(type(error)):
        async with pool.lease() as sandbox:
            raise error
    assert not sandbox.is_alive
    [future] = pool._made
    async with pool.lease() as other:
        assert other is future.result()
        assert other.is_alive
    await pool.close()


async def test_no_more_are_made_than_may_be_idle_and_none_once_the_pool_is_closed() -> None:
    pool = SandboxPool(SandboxSpec(), "unsafe", most_idle=1)
    async with pool.lease(), pool.lease():
        assert len(pool._made) == 0
    assert len(pool._made) == 1
    async with pool.lease() as sandbox:
        await pool.close()
        assert sandbox.is_alive, "somebody has it"
    assert not sandbox.is_alive
    assert len(pool._made) == 0
    assert SandboxPool(SandboxSpec(), "unsafe")._most_idle == (os.cpu_count() or 1)


async def test_one_that_could_not_be_made_is_passed_over() -> None:
    pool = SandboxPool(SandboxSpec(), "unsafe", most_idle=1)
    async with pool.lease():
        pass
    failed: concurrent.futures.Future[Sandbox] = concurrent.futures.Future()
    failed.set_exception(SandboxError("no room"))
    pool._made.appendleft(failed)
    made = pool._made[1]
    async with pool.lease() as sandbox:
        assert sandbox is made.result()
        pool._made.appendleft(failed)
    await pool.close()
    with pytest.raises(SandboxError, match="the pool of sandboxes is closed"):
        await pool.lease().__aenter__()


def test_a_spec_that_can_not_be_kept_is_refused_when_the_pool_is_made() -> None:
    with pytest.raises(ConfigurationError, match="image"):
        SandboxPool(SandboxSpec(image="debian"), "unsafe")
