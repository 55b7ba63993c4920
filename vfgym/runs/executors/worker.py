"""A worker: it plays rollouts of a run that another process coordinates."""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import os
import pkgutil
import platform
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from vfgym.agents.loading import import_named
from vfgym.aio.background import run_to_end
from vfgym.aio.bridge import bridge
from vfgym.bounded_json import dump_json
from vfgym.errors import LimitReached
from vfgym.results.rows import row_line
from vfgym.runs.engine import Engine, GroupJob
from vfgym.runs.executors.failures import as_data
from vfgym.runs.executors.link import LinkClosed, WorkerLink, connect
from vfgym.runs.executors.opened import OpenRun
from vfgym.runs.executors.spending import Ledger, WorkerSpending
from vfgym.runs.executors.travelling import register
from vfgym.runs.executors.worker_log import forwarded_to
from vfgym.runs.inputs import Example
from vfgym.runs.recorder import RowMaker
from vfgym.runs.spending import Budget

logger = logging.getLogger(__name__)


def serve_rollouts(addresses: Sequence[str], token: str, number: int) -> None:
    """Play rollouts of a run until it is over: what an executor is given to do.

    Args:
        addresses: Where the run's coordinator may be, as ``host:port``.
        token: What both have to know.
        number: Which worker of the run this is.

    Raises:
        LinkClosed: If there is no coordinator, or it does not know the token.
    """
    run_to_end(_serve(addresses, token, number))


def this_process() -> dict[str, Any]:
    """Return what a worker and a coordinator say of themselves."""
    return {"version": importlib.metadata.version("vfgym"), "python": platform.python_version(), "pid": os.getpid(), "host": _host()}


def _host() -> str:
    return socket.gethostname()


async def _serve(addresses: Sequence[str], token: str, number: int) -> None:
    link = await connect(addresses)
    try:
        coordinator = await link.greet(token, {**this_process(), "number": number}, is_coordinator=False)
        order = await link.receive()
        if "run" not in order:  # nobody wants this worker
            return
        is_elsewhere = (coordinator["pid"], coordinator["host"]) != (os.getpid(), _host())
        with forwarded_to(link, is_on=is_elsewhere):
            await _obey(link, order)
    except LinkClosed:  # the coordinator is gone, and its run with it
        logger.debug("the coordinator is gone", exc_info=True)
    finally:
        await link.close()


async def _obey(link: WorkerLink, order: Mapping[str, Any]) -> None:
    """Play as a coordinator wants, until it says that the run is over, or is gone."""
    orders = _Orders(link)
    reading = asyncio.create_task(orders.read())
    playing = asyncio.create_task(_play(link, order, orders))
    try:
        await asyncio.wait({reading, playing}, return_when=asyncio.FIRST_COMPLETED)
        if playing.done() and not playing.cancelled():
            _tell_of(playing.exception(), link)
            await reading  # until the coordinator has had it, and closes the connection
    finally:
        for task in (playing, reading):
            task.cancel()
        await asyncio.wait({playing, reading})
        for task in (playing, reading):
            if not task.cancelled():
                task.exception()  # else asyncio reports that nobody asked for it
        orders.ledger.report()


def _tell_of(error: BaseException | None, link: WorkerLink) -> None:
    if isinstance(error, LimitReached):
        link.send({"refused": error.as_dict()})
    elif error is not None:
        link.send({"error": as_data(error)})


async def _play(link: WorkerLink, order: Mapping[str, Any], orders: _Orders) -> None:
    if order["env_module"] is not None:
        await bridge(import_named, order["env_module"], f"environment {order['made_as']!r}")
    register(order["registered"])
    open_run: Callable[..., AbstractAsyncContextManager[OpenRun]] = await bridge(pkgutil.resolve_name, order["opened_by"])
    async with open_run(order["run"], order["slots"]) as run:
        how = run.how
        budget = Budget.of(how.limits, how.limits_each, how.prices, order["has_cache"], [])
        spending = WorkerSpending(budget, run.most_at_once, orders.ledger)
        rows = RowMaker(order["env_id"], how.state_columns, run.declared)

        async def finish(group: GroupJob) -> None:
            made = rows.rows(group)
            job = orders.finished(group)
            known = [] if not rows.unseen else rows.known
            head = f'{{"job":{job},"known":{_json_list(known)},"unseen":{_json_list(sorted(rows.unseen))},"rows":['
            orders.ledger.report_if_due()
            link.send_text(head + ",".join(map(row_line, made)) + "]}")
            await link.drain()

        with spending.in_force():
            engine = Engine(
                run.new_player,
                in_groups=run.in_groups,
                max_concurrent_scoring=run.max_concurrent_scoring,
                strict=how.strict,
                spending=spending,
            )
            await engine.play(orders, run.most_at_once, finish)


class _Orders(AsyncIterator[tuple[GroupJob, int]]):
    """The rollouts that a coordinator wants to be played, as they are asked for."""

    def __init__(self, link: WorkerLink) -> None:
        self.ledger = Ledger(link)
        self._link = link
        self._ready: deque[tuple[GroupJob, int]] = deque()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._jobs: dict[tuple[int, int], int] = {}
        """The number of each job, by the place of its example and its first rollout."""
        self._wanted = 0
        """Rollouts that were asked for since the last message."""

    async def __anext__(self) -> tuple[GroupJob, int]:
        if not self._wanted:
            asyncio.get_running_loop().call_soon(self._ask)
        self._wanted += 1
        while not self._ready:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return self._ready.popleft()

    def _ask(self) -> None:
        wanted, self._wanted = self._wanted, 0
        self._link.send({"want": wanted})

    async def read(self) -> None:
        """Take what the coordinator says, until it says that the run is over, or is gone."""
        while True:
            message = await self._link.receive()
            if "over" in message:
                return
            if "job" in message:
                self._take(message)
            else:
                self.ledger.take(message)

    def _take(self, message: Mapping[str, Any]) -> None:
        example_id, position, num_rollouts, place = message["example"]
        group = GroupJob(Example(example_id, position, num_rollouts, place), message["numbers"])
        self._jobs[place, group.numbers[0]] = message["job"]
        self._ready += [(group, number) for number in group.numbers]
        for _ in group.numbers:
            if self._waiting:
                turn = self._waiting.popleft()
                if not turn.done():
                    turn.set_result(None)

    def finished(self, group: GroupJob) -> int:
        """Return the number of the job that a group was, which is done."""
        return self._jobs.pop((group.example.place, group.numbers[0]))


def _json_list(names: Sequence[str]) -> str:
    return dump_json(list(names))
