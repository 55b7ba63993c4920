"""What happens around every request to a model, whoever makes it: an agent, a rollout, a judge, code that a model wrote.

Every `vfgym.Client` is asked through `accounted`. Where limits hold, a request is refused when one is used up, and counted before its
answer is used. Where a run has a cache, an answer that it holds is not asked for again. Where a run's provider is busy, fewer requests
are under way at once. What of that is in force says the `vfgym.context`; where nothing is, a request costs one look-up more.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from vfgym.context import given, in_force
from vfgym.errors import LimitReached
from vfgym.limits import Meter

if TYPE_CHECKING:
    from vfgym.clients.cache import RequestKeys
    from vfgym.clients.pacing import Pace
    from vfgym.messages import Response

Ask: TypeAlias = "Callable[..., Awaitable[Response]]"
AskT = TypeVar("AskT", bound=Callable[..., Any])


@dataclass(slots=True)
class _Request:
    """A request that is under way. A client that asks another one has that one's requests inside its own: those count instead."""

    has_inner: bool = False
    is_sent: bool = False
    """Whether it was sent over HTTP: what is sent after that counts by itself."""
    meters: list[Meter] = field(default_factory=list)
    """Those that hold a place for it."""

    def leave(self) -> None:
        """Hold no place any more."""
        while self.meters:
            self.meters.pop().end()


class SendingRefused(BaseException):
    """A limit is used up before something is sent.

    It is not an `Exception`: SDKs would take it for a broken connection, and send again.
    """

    def __init__(self, error: LimitReached) -> None:
        """Take the error that the request ends with."""
        super().__init__(error)
        self.error = error


def note_sending() -> None:
    """Take note that something is about to be sent over HTTP: a request, again after a failure too, or where it is redirected to.

    The first one is the request that was let begin; each that follows is one more, and is refused where a limit is used up.

    Raises:
        SendingRefused: If one is.
    """
    request: _Request | None = in_force().request
    if request is None or not request.meters:
        return
    if not request.is_sent:
        request.is_sent = True
        return
    refusals = []
    for meter in request.meters:
        try:
            meter.begin_again()
        except LimitReached as error:
            refusals.append(error)
    if refusals:
        raise SendingRefused(refusals[0])


async def count_sending(request: Any) -> None:
    """Count what a client of httpx sends (a hook of its requests)."""
    note_sending()


def count_sendings_of(sdk_client: Any) -> None:
    """Let what an asynchronous client of an SDK sends count, by the hooks of the HTTP client that it has."""
    http_client = getattr(sdk_client, "_client", None)
    hooks = getattr(http_client, "event_hooks", None)
    if isinstance(hooks, dict) and inspect.iscoroutinefunction(getattr(http_client, "send", None)):
        before = hooks.get("request", [])
        if count_sending not in before:
            http_client.event_hooks = {**hooks, "request": [*before, count_sending]}  # type: ignore[union-attr]


def accounted(ask: AskT) -> AskT:
    """Return a client's ``get_response`` with what happens around every request."""
    usual_model = _default_model(ask)

    @functools.wraps(ask)
    async def get_response(client: Any, *args: Any, **kwargs: Any) -> Response:
        context = in_force()
        meters, pace = context.meters, context.pace
        keys: RequestKeys | None = context.keys
        if not meters and keys is None and (pace is None or context.request is not None):
            return await ask(client, *args, **kwargs)  # type: ignore[no-any-return]
        own = functools.partial(ask, client, *args, **kwargs)
        if context.request is not None:
            return await _ask_measured(own, meters, _model_asked(client, usual_model, args, kwargs))
        model = _model_asked(client, usual_model, args, kwargs)
        if keys is None:
            return await _ask_in_turn(own, meters, pace, model)
        question = {**dict(zip(_QUESTION, args, strict=False)), **kwargs, "asked_model": model}
        key = keys.next_key(client.answered_by, **question)
        kept = await keys.cache.find(key)
        if kept is not None:
            for meter in meters:
                meter.count_cached(kept.usage)
            return kept
        return await keys.cache.keep(key, await _ask_in_turn(own, meters, pace, model))

    return get_response  # type: ignore[return-value]


_QUESTION = ("prompt", "asked_model", "sampling_args", "tools")
"""What `Client.get_response` takes by its place."""


def _default_model(ask: Callable[..., Any]) -> Any:
    """Return the model that a client's ``get_response`` takes where none is given."""
    parameter = inspect.signature(ask).parameters.get("model")
    return None if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default


def _model_asked(client: Any, usual: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the name of the model that is asked: the one given, else the client's own, by which it is counted and priced."""
    given = args[1] if len(args) > 1 else kwargs.get("model")
    named = (given, usual, getattr(client, "model", None), getattr(getattr(client, "config", None), "model", None))
    return next((name for name in named if isinstance(name, str) and name), f"(of {type(client).__name__}, unnamed)")


async def _ask_in_turn(own: Ask, meters: tuple[Meter, ...], pace: Pace | None, model: str) -> Response:
    """Ask when it is the request's turn, if that is allowed then, and give it up when the time of a meter is over."""
    ask = functools.partial(_ask_measured, own, meters, model)
    if pace is not None:
        ask = functools.partial(_ask_at_pace, ask, pace)
    return await (_ask_before_deadline(ask, meters) if meters else ask())


async def _ask_at_pace(ask: Ask, pace: Pace) -> Response:
    """Ask when the provider bears one more request."""
    await pace.enter()
    try:
        response = await ask()
    except Exception as error:
        pace.note_failure(error)
        raise
    else:
        pace.note_answer()
        return response
    finally:
        pace.leave()


async def _ask_before_deadline(ask: Ask, meters: tuple[Meter, ...]) -> Response:
    """Ask, and give the request up when the time of a meter is over."""
    timed = [(meter.deadline, index) for index, meter in enumerate(meters) if meter.deadline is not None and not meter.is_over]
    if not timed:
        return await ask()
    deadline, index = min(timed)
    scope = asyncio.timeout(max(0.0, deadline - time.monotonic()))
    try:
        async with scope:
            return await ask()
    except TimeoutError:
        if not scope.expired():
            raise
    meter = meters[index]
    meter.refuse(LimitReached("time", meter.limits.time or 0.0, max(meter.seconds, meter.limits.time or 0.0)))


async def _ask_measured(own: Ask, meters: tuple[Meter, ...], model: str) -> Response:
    """Ask if the meters allow it, and count it, unless what is asked asks somebody else, who is counted then."""
    outer: _Request | None = in_force().request
    if outer is not None:
        outer.has_inner = True
        outer.leave()
    request = _Request()
    try:
        for meter in meters:
            meter.begin(model)
            request.meters.append(meter)
        with given(request=request):
            response = await _ask_counting_failure(own, request)
        if not request.has_inner:
            for meter in meters:
                meter.count(model, response.usage)
        return response
    finally:
        request.leave()


async def _ask_counting_failure(own: Ask, request: _Request) -> Response:
    try:
        return await own()
    except LimitReached:
        raise
    except SendingRefused as refused:
        raise refused.error from None
    except Exception:
        for meter in () if request.has_inner else request.meters:
            meter.count_failure()
        raise
    except BaseException:  # it is given up, and whoever is asked has it all the same
        for meter in () if request.has_inner else request.meters:
            meter.count_given_up()
        raise
