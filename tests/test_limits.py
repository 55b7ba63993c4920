"""Blocks with limits: what is asked inside is counted, nothing begins where a limit is used up, and what is wrong is refused."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vfgym
from tests.models import InOrder, answer
from vfgym import Client, Response, UserMessage
from vfgym.clients.cache import RequestKeys, ResponseCache, opened
from vfgym.context import given, in_force
from vfgym.errors import ConfigurationError, LimitReached, ModelError
from vfgym.limits import Meter, RolloutLimits, RolloutMeter, Spending, SpendingLimits, prices_in_force
from vfgym.messages import Message, Usage
from vfgym.prices import PriceTable

PRICES = {"scripted": {"input": 1.0, "output": 100.0}}


def answers(count: int, tokens: int = 9) -> list[Response]:
    """Return answers that cost one token of a prompt and so many of the answer."""
    return [answer("yes", completion_tokens=tokens) for _ in range(count)]


async def ask(client: Client) -> Response:
    return await client.get_response([UserMessage("?")], "scripted")


async def test_a_block_counts_what_is_asked_inside_and_begins_nothing_where_it_is_used_up() -> None:
    client = InOrder(*answers(9))
    async with vfgym.limit(tokens=25) as meter:
        for _ in range(3):
            await ask(client)
        assert (meter.spent.requests, meter.spent.input_tokens, meter.spent.output_tokens) == (3, 3, 27)
        with pytest.raises(LimitReached, match="the limit on tokens is used up: 30 of 25") as raised:
            await ask(client)
    assert (raised.value.as_dict(), len(client.asked)) == ({"limit": "tokens", "allowed": 25, "used": 30}, 3)
    await ask(client)
    assert meter.spent.requests == 3, "outside of the block nothing is counted"


async def test_what_is_spent_beyond_a_limit_is_that_of_requests_under_way() -> None:
    client = InOrder(*answers(99))

    async def keep_asking() -> None:
        while True:
            await ask(client)

    with vfgym.limit(tokens=200) as meter:
        outcomes = await asyncio.gather(*(keep_asking() for _ in range(5)), return_exceptions=True)
    assert all(isinstance(each, LimitReached) for each in outcomes)
    assert meter.spent.requests == len(client.asked)
    assert 200 <= meter.spent.tokens < 200 + 5 * 10


async def test_blocks_nest_and_each_counts_for_itself() -> None:
    client = InOrder(*answers(9))
    with vfgym.limit(requests=3) as outer:
        with vfgym.limit(requests=2) as inner:
            await ask(client)
            await ask(client)
            with pytest.raises(LimitReached) as of_inner:
                await ask(client)
        await ask(client)
        with vfgym.limit(requests=10), pytest.raises(LimitReached) as of_outer:
            await ask(client)
    assert (of_inner.value.allowed, of_outer.value.allowed, inner.spent.requests, outer.spent.requests) == (2, 3, 2, 3)


async def test_a_request_that_is_under_way_when_the_time_is_over_is_given_up() -> None:
    client = InOrder(asyncio.Event())
    with vfgym.limit(time=0.01), pytest.raises(LimitReached, match="the limit on time is used up"):
        await ask(client)


async def test_failed_requests_are_errors() -> None:
    client = InOrder(ModelError("busy"), *answers(1), ModelError("busy"), *answers(1))
    with vfgym.limit(errors=2) as meter:
        for _ in range(3):
            with pytest.raises(ModelError) if len(client.answers) % 2 == 0 else vfgym.limit():
                await ask(client)
        with pytest.raises(LimitReached, match="errors is used up: 2 of 2"):
            await ask(client)
    assert (meter.spent.requests, meter.spent.errors) == (3, 2)


async def test_cost_is_tokens_times_prices() -> None:
    client = InOrder(*answers(9))
    with vfgym.limit(cost=0.0015, prices=PRICES) as meter:
        await ask(client)
        assert meter.spent.cost == pytest.approx((1 * 1.0 + 9 * 100.0) / 1e6)
        await ask(client)
        with pytest.raises(LimitReached, match=r"the limit on cost is used up: 0\.001802 of 0\.0015"):
            await ask(client)


async def test_an_unknown_price_is_unknown_and_refused_where_cost_is_limited() -> None:
    client = InOrder(*answers(2))
    with vfgym.limit(prices={"other": {"input": 1, "output": 1}}) as meter:
        await ask(client)
    assert meter.spent.cost is None
    near = {"script": {"input": 1, "output": 1}}
    problem = r"no price for the model scripted.*Did you mean `script`"
    with vfgym.limit(cost=1, prices=near), pytest.raises(ConfigurationError, match=problem):
        await ask(client)
    assert len(client.asked) == 1


async def test_answers_that_tell_no_tokens_cannot_be_limited_by_tokens() -> None:
    with vfgym.limit(tokens=5), pytest.raises(ConfigurationError, match="does not tell how many tokens"):
        await ask(InOrder("yes"))
    with vfgym.limit(requests=5):
        await ask(InOrder("yes"))


@pytest.mark.parametrize("usage", [None, {"prompt_tokens": 1}, SimpleNamespace(prompt_tokens=1, completion_tokens=None)])
@pytest.mark.parametrize("limited", ["tokens", "cost"])
def test_what_cannot_be_limited_is_said_again_until_the_meter_is_over(limited: str, usage: Any) -> None:
    meter = Meter(SpendingLimits(**{limited: 5}), PriceTable.of(PRICES))
    meter.count("scripted", Usage(0, 0, 0, 0))
    assert (meter.spent, meter.raise_if_refused()) == (Spending(1, 0, 0, 0.0), None)
    for use in (lambda: meter.count("scripted", usage), meter.raise_if_refused):
        with pytest.raises(ConfigurationError) as raised:
            use()
        assert str(raised.value) == (
            f"scripted does not tell how many tokens its answers have, so a limit on {limited} cannot hold: leave it out, or limit"
            " requests or time"
        )
    meter.is_over = True
    meter.count("scripted", usage)
    meter.begin("unknown")
    assert meter.spent == Spending(3, 0, 0, None)


def test_a_model_without_a_price_is_named_again() -> None:
    meter = Meter(SpendingLimits(cost=5), PriceTable.of(PRICES))
    for use in (lambda: meter.begin("first"), lambda: meter.begin("second")):
        with pytest.raises(ConfigurationError):
            use()
    with pytest.raises(ConfigurationError, match="no price for the model first"):
        meter.raise_if_refused()
    Meter(SpendingLimits(requests=1), PriceTable.of(PRICES)).begin("first")


class Asking(Client):
    def __init__(self, inner: Client) -> None:
        self.inner = inner

    async def get_response(self, prompt: Sequence[Message], model: str, *args: Any, **kwargs: Any) -> Response:
        await self.inner.get_response(prompt, model, *args, **kwargs)
        return await self.inner.get_response(prompt, model, *args, **kwargs)


class Louder(InOrder):
    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        return await super().get_response(*args, **kwargs)


async def test_a_client_that_asks_another_one_is_not_counted_beside_it() -> None:
    with vfgym.limit() as meter:
        await ask(Louder(*answers(1)))
        assert meter.spent.requests == 1
        await ask(Asking(InOrder(*answers(2))))
        assert (meter.spent.requests, meter.spent.output_tokens) == (3, 27)


async def test_what_a_client_asks_of_another_one_is_refused_where_a_limit_is_used_up() -> None:
    inner = InOrder(*answers(4))
    with vfgym.limit(requests=3) as meter:
        await ask(Asking(inner))
        with pytest.raises(LimitReached):
            await ask(Asking(inner))
    assert (meter.spent.requests, len(inner.asked)) == (3, 3)
    clients = [InOrder(*answers(2)) for _ in range(3)]
    with vfgym.limit(requests=4) as meter:
        await asyncio.gather(*(ask(Asking(each)) for each in clients), return_exceptions=True)
    assert meter.spent.requests == sum(len(each.asked) for each in clients) == 4


async def test_a_client_that_asks_models_by_other_names_has_to_know_their_prices() -> None:
    class Renaming(Client):
        inner = InOrder(*answers(1))

        async def get_response(self, prompt: Sequence[Message], model: str, *args: Any, **kwargs: Any) -> Response:
            return await self.inner.get_response(prompt, "dear", *args, **kwargs)

    with vfgym.limit(cost=1, prices=PRICES), pytest.raises(ConfigurationError, match="no price for the model dear"):
        await ask(Renaming())
    assert not Renaming.inner.asked


class OwnModel(InOrder):
    def __init__(self, model: str | None, *given: Any) -> None:
        super().__init__(*given)
        self.model = model

    async def get_response(self, prompt: Sequence[Message], model: str | None = None, *args: Any, **kwargs: Any) -> Response:
        return await super().get_response(prompt, model or self.model or "", *args, **kwargs)


class UsualModel(InOrder):
    async def get_response(self, prompt: Sequence[Message], model: str = "usual", *args: Any, **kwargs: Any) -> Response:
        return await super().get_response(prompt, model, *args, **kwargs)


@pytest.mark.parametrize(
    ("make", "name"), [(lambda *given: OwnModel("own", *given), "own"), (UsualModel, "usual")], ids=["attribute", "signature"]
)
async def test_a_client_with_a_model_of_its_own_is_counted_and_priced_by_that(make: Any, name: str, tmp_path: Path) -> None:
    prices = {name: {"input": 0.0, "output": 1e6}, "given": {"input": 0.0, "output": 2e6}}
    client = make(*answers(4, tokens=1))
    with vfgym.limit(cost=100, prices=prices) as meter:
        await client.get_response([UserMessage("?")])
        assert (meter.spent.requests, meter.spent.cost) == (1, 1.0)
        await client.get_response(prompt=[UserMessage("?")], model="given")
        assert meter.spent.cost == 3.0
    with vfgym.limit(cost=1, prices=PRICES), pytest.raises(ConfigurationError, match=f"no price for the model {name}"):
        await client.get_response([UserMessage("?")])
    with opened(ResponseCache(tmp_path / "answers.sqlite")) as kept:
        for question in ({}, {"model": name}, {}):
            with given(keys=RequestKeys(kept, 0)):
                await client.get_response([UserMessage("?")], **question)
    assert len(client.asked) == 3, "who is asked by default is the same model as who is asked by that name"


async def test_a_request_that_fails_is_one_error_whoever_passed_it_on() -> None:
    with vfgym.limit() as meter:
        for client in (InOrder(ValueError("no answer")), Asking(InOrder(ValueError("no answer")))):
            with pytest.raises(Exception, match="no answer"):
                await ask(client)
    assert (meter.spent.requests, meter.spent.errors) == (2, 2)


@pytest.mark.parametrize("given", [{"tokens": 0}, {"tokens": -5}, {"tokens": 2.5}, {"tokens": True}, {"time": "60"}, {"cost": 1e999}])
def test_what_is_no_limit_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"the limit {next(iter(given))} must be a positive"):
        SpendingLimits.of(given)


def test_unknown_limits_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"there is no limit 'token'.*Did you mean `tokens`"):
        SpendingLimits.of({"token": 5})
    with pytest.raises(ConfigurationError, match="there is no limit 'cost', there are tokens, turns, time"):
        RolloutLimits.of({"cost": 5})
    with pytest.raises(ConfigurationError, match="limits must be a dict"):
        SpendingLimits.of(5)  # type: ignore[arg-type]


def test_a_limit_on_cost_needs_prices() -> None:
    with pytest.raises(ConfigurationError, match="needs the prices"), vfgym.limit(cost=1):
        pass


def test_one_limit_is_in_force_once() -> None:
    limit = vfgym.limit(tokens=5)
    with limit, pytest.raises(ConfigurationError, match="in force already"):
        limit.__enter__()

    def fail_inside(error: BaseException) -> None:
        with limit as meter:
            assert in_force().meters == (meter,)
            raise error

    for error in (ValueError("x"), KeyboardInterrupt(), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            fail_inside(error)
        assert in_force().meters == ()


TEN = {"tokens": 10, "cost": 10.0, "errors": 10, "requests": 10, "time": 10}


def spent(**changes: Any) -> Spending:
    return Spending(**{"requests": 0, "input_tokens": 0, "output_tokens": 0, "cost": 0.0, "errors": 0, **changes})


@pytest.mark.parametrize(
    ("name", "less", "all_of_it", "more"),
    [
        ("tokens", {"input_tokens": 4, "output_tokens": 5}, {"input_tokens": 5, "output_tokens": 5}, {"output_tokens": 12}),
        ("cost", {"cost": 9.5}, {"cost": 10.0}, {"cost": 12.0}),
        ("errors", {"errors": 9}, {"errors": 10}, {"errors": 12}),
        ("requests", {"requests": 9}, {"requests": 10}, {"requests": 12}),
    ],
)
def test_a_limit_is_used_up_by_what_it_allows(name: str, less: dict[str, Any], all_of_it: dict[str, Any], more: dict[str, Any]) -> None:
    """Each limit counts what it names, and its error says what was allowed and what was used."""
    limits, prices = SpendingLimits(**TEN), PriceTable.of(PRICES)
    assert Meter(limits, prices, spent=spent(**less)).find_used_up() is None
    for amounts, used in ((all_of_it, 10), (more, 12)):
        error = Meter(limits, prices, spent=spent(**amounts)).find_used_up()
        assert error is not None
        assert (error.limit, error.allowed, error.used) == (name, 10, used)
        others = SpendingLimits(**{other: value for other, value in TEN.items() if other != name})
        assert Meter(others, prices, spent=spent(**amounts)).find_used_up() is None


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in a list where a test changes it."""
    times = [1000.0]
    monkeypatch.setattr(vfgym.limits, "time", SimpleNamespace(monotonic=lambda: times[0]))
    return times


def test_time_is_used_up_from_the_beginning_and_what_passed_before_counts(now: list[float]) -> None:
    meter = Meter(SpendingLimits(time=50), seconds=10)
    assert (meter.seconds, meter.deadline) == (10, 1040)
    now[0] = 1039
    assert meter.find_used_up() is None
    for now[0], used in ((1040, 50), (1042, 52)):
        error = meter.find_used_up()
        assert error is not None
        assert (error.limit, error.allowed, error.used) == ("time", 50, used)
    assert Meter(SpendingLimits(), seconds=1001).deadline is None


def test_a_cost_that_is_not_known_uses_up_nothing() -> None:
    meter = Meter(SpendingLimits(cost=10, requests=3), PriceTable.of(PRICES), spent=spent(cost=None, requests=2))
    assert meter.find_used_up() is None


def test_what_was_spent_is_added_up() -> None:
    total = Spending(1, 10, 20, 1.0, 1, 1)
    total.add(Spending(4, 100, 200, 2.0, 3, 5), share=0.5)
    assert total == Spending(5, 60, 120, 2.0, 4, 6)
    total.add(Spending(7, 0, 0, None, 0, 0), requests=0)
    assert total == Spending(5, 60, 120, None, 4, 6)
    total.add(Spending(1, 1, 1, 1.0, 0, 0))
    assert (total, total.tokens) == (Spending(6, 61, 121, None, 4, 6), 182)


def test_what_was_refused_first_is_what_is_said_from_then_on() -> None:
    """Who takes it for an error of their own does not hide it; a meter that is over refuses nothing."""
    meter = Meter(SpendingLimits(requests=1), spent=spent(requests=1))
    meter.raise_if_refused()
    with pytest.raises(LimitReached) as first:
        meter.refuse_if_used_up()
    meter.spent.requests = 7
    for again in (meter.refuse_if_used_up, meter.raise_if_refused, lambda: meter.begin("scripted"), meter.begin_again):
        with pytest.raises(LimitReached) as raised:
            again()
        assert raised.value is first.value
    meter.is_over = True
    meter.begin("scripted")
    meter.begin_again()


def test_requests_under_way_count_until_they_end() -> None:
    meter = Meter(SpendingLimits(requests=2))
    meter.begin("scripted")
    meter.begin("scripted")
    with pytest.raises(LimitReached, match="2 of 2"):
        meter.begin("scripted")
    meter = Meter(SpendingLimits(requests=2))
    meter.begin("scripted")
    meter.end()
    meter.begin("scripted")
    meter.begin_again()
    assert meter.spent.requests == 1
    with pytest.raises(LimitReached, match="2 of 2"):
        meter.begin_again()
    meter = Meter(SpendingLimits(requests=2))
    for _ in range(2):
        meter.begin("scripted")
    meter.end(2)
    for _ in range(2):
        meter.hold_place()
    with pytest.raises(LimitReached, match="2 of 2"):
        meter.hold_place()


def test_requests_that_fail_or_are_given_up_are_counted_apart() -> None:
    meter, of_rollouts = Meter(SpendingLimits()), Meter(SpendingLimits(), counts_failed_requests=False)
    of_one = RolloutMeter(RolloutLimits())
    for each in (meter, of_rollouts, of_one):
        each.count_failure()
        each.count_given_up()
        each.count_cached(Usage(prompt_tokens=1, reasoning_tokens=0, completion_tokens=2, total_tokens=3))
    assert (meter.spent.requests, meter.spent.errors, meter.spent.abandoned, meter.spent.tokens) == (2, 1, 1, 0)
    assert of_one.spent == meter.spent
    assert (of_rollouts.spent.requests, of_rollouts.spent.errors, of_rollouts.spent.abandoned) == (2, 0, 1)


def test_what_each_request_spends_is_reported() -> None:
    told: list[Spending] = []
    meter = Meter(SpendingLimits(), PriceTable.of(PRICES), report=told.append)
    meter.begin_again()
    meter.count_failure()
    meter.count_given_up()
    meter.count("scripted", Usage(prompt_tokens=1, reasoning_tokens=0, completion_tokens=2, total_tokens=3))
    meter.count("unknown", None)
    assert [(each.requests, each.tokens, each.errors, each.abandoned, each.cost is None) for each in told] == [
        (1, 0, 0, 0, False),
        (1, 0, 1, 0, False),
        (1, 0, 0, 1, False),
        (1, 3, 0, 0, False),
        (1, 0, 0, 0, True),
    ]
    total = Spending()
    for each in told:
        total.add(each)
    assert total == meter.spent


def test_a_rollout_has_turns_and_counts_what_came_out_of_a_cache() -> None:
    usage = Usage(prompt_tokens=1, reasoning_tokens=0, completion_tokens=2, total_tokens=3)
    meter = RolloutMeter(RolloutLimits(tokens=6, turns=2))
    assert meter.find_used_up_after(1) is None
    for num_turns in (2, 3):
        error = meter.find_used_up_after(num_turns)
        assert error is not None
        assert (error.limit, error.allowed, error.used) == ("turns", 2, num_turns)
    meter.count_cached(usage)
    meter.count_cached(None)
    assert (meter.tokens, meter.spent.tokens, meter.spent.requests) == (3, 0, 0)
    meter.count("scripted", usage)
    error = meter.find_used_up_after(0)
    assert error is not None
    assert (error.limit, error.allowed, error.used) == ("tokens", 6, 6)
    assert RolloutMeter(RolloutLimits()).find_used_up_after(1000) is None
    priced = RolloutMeter(RolloutLimits(), PriceTable.of(PRICES))
    priced.count("scripted", usage)
    assert (priced.spent.cost, meter.spent.cost) == ((1 * 1.0 + 2 * 100.0) / 1e6, None)


@pytest.mark.parametrize("how", ["count", "count_cached", "count_failure"])
def test_where_requests_are_turns_each_is_one_however_it_ended(how: str) -> None:
    meter = RolloutMeter(RolloutLimits(turns=2))
    arguments = {"count": ("scripted", None), "count_cached": (None,), "count_failure": ()}[how]
    for _ in range(2):
        assert meter.find_used_up() is None
        getattr(meter, how)(*arguments)
    assert meter.find_used_up() is None, "requests are no turns by default"
    meter.requests_are_turns = True
    error = meter.find_used_up()
    assert error is not None
    assert (error.limit, error.allowed, error.used) == ("turns", 2, 2)


def test_the_earlier_deadline_is_that_of_a_rollout_or_another_one(now: list[float]) -> None:
    without, within = RolloutMeter(RolloutLimits()), RolloutMeter(RolloutLimits(time=50))
    assert [meter.earlier_deadline(None) for meter in (without, within)] == [None, 1050]
    assert [meter.earlier_deadline(0.0) for meter in (without, within)] == [0.0, 0.0]
    assert [meter.earlier_deadline(1051) for meter in (without, within)] == [1051, 1050]
    now[0] = 1049
    assert [meter.is_out_of_time for meter in (without, within)] == [False, False]
    now[0] = 1050
    assert [meter.is_out_of_time for meter in (without, within)] == [False, True]


def test_limits_are_given_by_name_as_a_dict_or_as_they_are() -> None:
    limits = SpendingLimits(tokens=5)
    assert SpendingLimits.of(None) == SpendingLimits()
    assert SpendingLimits.of(limits) is limits
    assert (SpendingLimits.of({"tokens": 5, "cost": 0.5}), limits.given()) == (SpendingLimits(tokens=5, cost=0.5), {"tokens": 5})
    with pytest.raises(TypeError, match="positional"):
        SpendingLimits(5)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("texts", "limits"),
    [([], {}), (["tokens=2_000,time=1.5"], {"tokens": 2000, "time": 1.5}), ([" tokens = 20 ", "turns=3"], {"tokens": 20, "turns": 3})],
)
def test_limits_are_read_from_text(texts: list[str], limits: dict[str, Any]) -> None:
    assert RolloutLimits.parse(texts, "--limit") == RolloutLimits(**limits)


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        (["tokens"], r"--limit is written NAME=NUMBER.*got 'tokens'"),
        (["tokens=many"], r"--limit is written NAME=NUMBER.*got 'tokens=many'"),
        (["tokens=1,"], r"--limit is written NAME=NUMBER.*got ''"),
        (["tokens=1", "turns=2,tokens=1"], "--limit says tokens twice"),
        (["token=1"], r"--limit: there is no limit 'token'.*Did you mean `tokens`"),
        (["tokens=0"], "--limit: the limit tokens must be a positive integer, got 0"),
        (["tokens=1.5"], "--limit: the limit tokens must be a positive integer, got 1.5"),
        (["time=inf"], "--limit: the limit time must be a positive number, got inf"),
    ],
)
def test_text_that_says_no_limit_is_refused(texts: list[str], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        RolloutLimits.parse(texts, "--limit")


def test_prices_in_force_are_those_of_the_innermost_block_that_has_some() -> None:
    assert prices_in_force() is None
    with vfgym.limit(prices=PRICES), vfgym.limit(prices={"other": {"input": 1, "output": 1}}) as inner, vfgym.limit():
        assert prices_in_force() is inner.prices is not None
    with vfgym.limit(prices=PRICES), vfgym.limit(), vfgym.limit(cost=1) as meter:
        meter.count("scripted", Usage(1, 0, 2, 3))
    assert meter.spent.cost == (1 * 1.0 + 2 * 100.0) / 1e6
    assert prices_in_force() is None


def test_the_error_is_pickled_whole() -> None:
    error = pickle.loads(pickle.dumps(LimitReached("cost", 2.5, 2.75)))
    assert str(error) == "the limit on cost is used up: 2.75 of 2.5"
    assert error.as_dict() == {"limit": "cost", "allowed": 2.5, "used": 2.75}
