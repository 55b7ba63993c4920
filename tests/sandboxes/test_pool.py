"""Pools: a reusable sandbox comes back as if it were new; one that can't be made so, or may not, is not leased again."""

from __future__ import annotations

import asyncio

import pytest

from tests.sandboxes.making import need
from vfgym.errors import ConfigurationError, SandboxError
from vfgym.sandboxes import SandboxPool, SandboxSpec


@pytest.fixture(params=["bwrap", "unsafe"])
def backend(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


LISTING = """[ "$HOME" = /home/sandbox ] && cd / || cd "$HOME/.."; find . -xdev | sort"""


async def test_a_reusable_sandbox_is_leased_again_as_if_it_were_new(backend: str) -> None:
    pool = SandboxPool(SandboxSpec(reusable=True), backend)
    async with pool.lease() as sandbox:
        before = (await sandbox.exec(LISTING)).stdout
        await sandbox.python("x = 1")
        await sandbox.write_file("/other/folder/file", "left")
        await sandbox.exec("mkdir -p a/b ~/c && touch a/b/file ~/c/d ../e; chmod 000 a/b; ln -s / a/up; chmod 700 .; rmdir ~/../tmp")
        first = sandbox.id
    async with pool.lease() as sandbox:
        assert sandbox.id == first
        after = (await sandbox.exec(LISTING)).stdout
        assert after == before
        with pytest.raises(FileNotFoundError):
            await sandbox.read_file("/other/folder/file")
        result = await sandbox.python("x")
        assert "NameError" in str(result.traceback)
        assert result.count == 1
    await pool.close()
    assert not sandbox.is_alive
    with pytest.raises(SandboxError, match="the pool of sandboxes is closed"):
        async with pool.lease():
            pass


async def test_one_that_was_harmed_or_may_not_be_shared_is_closed(backend: str) -> None:
    for reusable in (True, False):
        pool = SandboxPool(SandboxSpec(reusable=reusable), backend)
        async with pool.lease() as sandbox:
            if reusable:
                await sandbox.exec("rmdir ../workspace; ln -s tmp ../workspace")
        assert not sandbox.is_alive
        async with pool.lease() as other:
            assert (await other.exec("echo fine")).stdout == "fine\n"
        await pool.close()


async def test_leases_at_once_are_of_different_sandboxes() -> None:
    need("bwrap")
    pool = SandboxPool(SandboxSpec(reusable=True), "bwrap", most_idle=2)

    async def use(number: int) -> str:
        async with pool.lease() as sandbox:
            await sandbox.write_file("number", str(number))
            return (await sandbox.exec("cat number; ls | wc -l")).stdout

    assert await asyncio.gather(*map(use, range(6))) == [f"{number}1\n" for number in range(6)]
    await pool.close()


def test_a_spec_that_can_not_be_kept_is_refused_when_the_pool_is_made() -> None:
    with pytest.raises(ConfigurationError, match="image"):
        SandboxPool(SandboxSpec(image="debian"), "unsafe")
