"""Calls of providers: cache, single flight, retries, and the circuit breaker."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundhook.core.errors import SourceError, SourceRateLimited, SourceRefused, SourceTimeout
from groundhook.core.source_settings import WebSettings
from groundhook.core.types.web_providers import WebHit, WebQuery
from groundhook.handlers.web.cache import Cache
from groundhook.handlers.web.providers.calls import Breaker, ProviderCalls, cache_key

NO_CACHE = WebSettings.model_validate(
    {"retries": 0, "cache": {"enabled": False}, "breaker": {"failures": 3, "pause_s": 10}}
)


def passing(kind: type[SourceError] = SourceError, after: float | None = None) -> SourceError:
    error = kind("for now")
    error.again, error.after = True, after
    return error


@dataclass
class Scripted:
    """A provider that answers with hits or errors in order and repeats the last one; `gate` holds
    every answer back."""

    script: list[SourceError | None]
    gate: anyio.Event | None = None
    requests: list[WebQuery] = field(default_factory=list)
    cancelled: int = 0

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        self.requests.append(ask)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        try:
            if self.gate is not None:
                await self.gate.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        if step is not None:
            raise step
        return [WebHit(url=f"https://x.example/{len(self.requests)}")]


@dataclass
class Desk:
    """`ProviderCalls` with a clock that the test sets."""

    calls: ProviderCalls
    provider: Scripted
    now: list[float]

    async def ask(
        self, query: str = "q", settings: WebSettings | None = None, **fields: object
    ) -> tuple[str, str]:
        ask = WebQuery(query=query, limit=5, **fields)  # type: ignore[arg-type]
        hits, how = await self.calls.hits("p", "who", self.provider, ask, settings or WebSettings())
        return hits[0].url.rpartition("/")[2], how


def desk(*script: SourceError | None, gate: anyio.Event | None = None) -> Desk:
    now = [100.0]
    return Desk(ProviderCalls(lambda: now[0]), Scripted(list(script) or [None], gate), now)


async def until_requested(provider: Scripted, times: int = 1) -> None:
    with anyio.fail_after(60):
        while len(provider.requests) < times:
            await anyio.lowlevel.checkpoint()


async def cancel_while_asking(at: Desk, **requested: Any) -> None:
    """Ask, cancel once the provider has the request, and wait until it sees the cancellation."""
    times = len(at.provider.requests)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(at.ask, **requested))
        await until_requested(at.provider, times + 1)
        tasks.cancel_scope.cancel()
    with anyio.fail_after(60):
        while not at.provider.cancelled:
            await anyio.lowlevel.checkpoint()


# -------------------------------------------------------------------------------------------- cache


async def test_an_answer_is_cached_for_the_lifetime_of_its_time_range() -> None:
    at = desk()
    assert await at.ask() == ("1", "asked")
    assert await at.ask("  q ") == ("1", "cached")
    assert await at.ask(time_range="day") == ("2", "asked")
    at.now[0] += 301
    assert await at.ask(time_range="day") == ("3", "asked")
    assert await at.ask() == ("1", "cached")
    at.now[0] += 600
    assert await at.ask() == ("4", "asked")


async def test_requests_that_differ_in_any_part_are_cached_apart() -> None:
    at = desk()
    for fields in (
        {},
        {"sites": ("a.org",)},
        {"exclude_sites": ("a.org",)},
        {"language": "de"},
        {"time_range": "year"},
    ):
        assert (await at.ask(**fields))[1] == "asked"
    assert (await at.ask(sites=("A.org", "a.org")))[1] == "cached"


async def test_a_disabled_cache_stores_nothing() -> None:
    at = desk()
    assert await at.ask(settings=NO_CACHE) == ("1", "asked")
    assert await at.ask(settings=NO_CACHE) == ("2", "asked")


async def test_failures_are_not_cached() -> None:
    at = desk(SourceError("no"), None)
    with pytest.raises(SourceError):
        await at.ask()
    assert await at.ask() == ("2", "asked")


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(0, 3))), st.integers(1, 4)
)
def test_a_cache_is_bounded_and_never_returns_expired_values(
    steps: list[tuple[int, int, int]], most: int
) -> None:
    cache: Cache[int] = Cache()
    good: dict[int, float] = {}
    now = 0.0
    for key, lifetime, passed in steps:
        now += passed
        cached = cache.get(key, now)
        assert cached is None or (cached == key and good[key] > now)
        cache.put(key, key, expires=now + lifetime, max_entries=most)
        good[key] = now + lifetime
        assert len(cache) <= most
        assert cache.get(key, now) == key


@given(st.text(), st.lists(st.text(max_size=3)), st.lists(st.text(max_size=3)))
def test_sites_in_another_order_are_the_same_request(
    query: str, sites: list[str], without: list[str]
) -> None:
    one = WebQuery(query=query, limit=3, sites=tuple(sites), exclude_sites=tuple(without))
    other = WebQuery(
        query=f" {query} ",
        limit=3,
        sites=tuple(reversed(sites)),
        exclude_sites=tuple(sorted(without)),
    )
    assert cache_key(one) == cache_key(other)


# ------------------------------------------------------------------------------------ single flight


async def test_equal_concurrent_requests_make_one_call() -> None:
    answers: list[tuple[str, str]] = []
    at = desk(gate=anyio.Event())

    async def ask() -> None:
        answers.append(await at.ask(settings=NO_CACHE))

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(ask)
        await until_requested(at.provider)
        assert at.provider.gate is not None
        at.provider.gate.set()
    assert len(at.provider.requests) == 1
    assert sorted({how for _, how in answers}) == ["asked", "joined"]
    assert len(answers) == 50


async def test_a_first_caller_that_is_cancelled_does_not_fail_the_others() -> None:
    answers: list[tuple[str, str]] = []
    at = desk(gate=anyio.Event())

    async def one(scope: anyio.CancelScope) -> None:
        with scope:
            answers.append(await at.ask())

    first, second = anyio.CancelScope(), anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, first)
        await until_requested(at.provider)
        tasks.start_soon(one, second)
        await anyio.lowlevel.checkpoint()
        first.cancel()
        await anyio.lowlevel.checkpoint()
        assert at.provider.gate is not None
        at.provider.gate.set()
    assert answers == [("2", "asked")]
    assert at.provider.cancelled == 1


async def test_work_without_waiting_calls_is_cancelled() -> None:
    at = desk(gate=anyio.Event())
    await cancel_while_asking(at)
    at.provider.gate = None
    assert await at.ask() == ("2", "asked")


async def test_a_failure_is_raised_by_all_waiting_calls() -> None:
    failed: list[str] = []
    at = desk(SourceRefused("no such key"), gate=anyio.Event())

    async def one() -> None:
        with pytest.raises(SourceRefused, match="no such key"):
            await at.ask()
        failed.append("yes")

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(one)
        await until_requested(at.provider)
        assert at.provider.gate is not None
        at.provider.gate.set()
    assert failed == ["yes"] * 3
    assert len(at.provider.requests) == 1


# ------------------------------------------------------------------------------------------ retries


async def test_a_transient_failure_is_retried_after_the_providers_own_pause() -> None:
    at = desk(passing(SourceRateLimited, after=0.03), None)
    began = anyio.current_time()
    assert await at.ask() == ("2", "asked")
    assert anyio.current_time() - began >= 0.03


@pytest.mark.parametrize("error", [SourceRefused("no"), SourceError("once is enough")])
async def test_a_permanent_failure_is_not_retried(error: SourceError) -> None:
    at = desk(error)
    with pytest.raises(SourceError):
        await at.ask()
    assert len(at.provider.requests) == 1


async def test_a_retry_beyond_the_deadline_is_not_waited_for() -> None:
    at = desk(passing(SourceRateLimited, after=3600))
    with anyio.fail_after(60), pytest.raises(SourceRateLimited):
        await at.ask(timeout=600)
    assert len(at.provider.requests) == 1


async def test_the_deadline_holds_over_all_tries() -> None:
    at = desk(passing(after=0.01), gate=anyio.Event())
    with pytest.raises(SourceTimeout, match=r"0\.05 s"):
        await at.ask(timeout=0.05)


# ---------------------------------------------------------------------------------- circuit breaker


async def test_a_provider_that_keeps_failing_is_not_called_until_one_trial_succeeds() -> None:
    at = desk(SourceError("broken"))
    for _ in range(3):
        with pytest.raises(SourceError, match="broken"):
            await at.ask(settings=NO_CACHE)
    with pytest.raises(SourceError, match="not called for 10 s after 3 failures in a row: broken"):
        await at.ask(settings=NO_CACHE)
    assert len(at.provider.requests) == 3
    at.now[0] += 10
    with pytest.raises(SourceError, match=r"^broken"):
        await at.ask(settings=NO_CACHE)
    with pytest.raises(SourceError, match="is not called"):
        await at.ask(settings=NO_CACHE)
    at.now[0] += 10
    at.provider.script = [None]
    await at.ask(settings=NO_CACHE)
    at.provider.script = [SourceError("broken"), None]
    with pytest.raises(SourceError, match=r"^broken"):
        await at.ask(settings=NO_CACHE)
    await at.ask(settings=NO_CACHE)


async def test_after_a_pause_a_single_search_tries_the_provider() -> None:
    at = desk(passing(SourceRateLimited, after=5))
    with pytest.raises(SourceRateLimited):
        await at.ask(settings=NO_CACHE)
    with pytest.raises(SourceError, match="not called for 5 s after a failure: for now"):
        await at.ask("other", settings=NO_CACHE)
    at.now[0] += 6
    at.provider.script, at.provider.gate = [None], anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(at.ask, "trial", NO_CACHE)
        await until_requested(at.provider, 2)
        with pytest.raises(SourceError, match="is not called"):
            await at.ask("other", settings=NO_CACHE)
        at.provider.gate.set()
    assert (await at.ask("other", settings=NO_CACHE))[1] == "asked"


async def test_a_cancelled_trial_allows_the_next_one() -> None:
    at = desk(passing(after=1), None, gate=None)
    with pytest.raises(SourceError):
        await at.ask(settings=NO_CACHE)
    at.now[0] += 2
    at.provider.gate = anyio.Event()
    await cancel_while_asking(at, settings=NO_CACHE)
    at.provider.gate.set()
    assert (await at.ask(settings=NO_CACHE))[1] == "asked"


async def test_a_refused_key_does_not_open_the_breaker() -> None:
    at = desk(SourceRefused("no"))
    for _ in range(10):
        with pytest.raises(SourceRefused):
            await at.ask(settings=NO_CACHE)


@given(st.lists(st.sampled_from(["fail", "later", "abandon", "ask", "wait"])), st.integers(0, 4))
def test_a_breaker_always_closes_again_after_its_pause(steps: list[str], most: int) -> None:
    breaker, now = Breaker(), 0.0
    for step in steps:
        if step == "wait":
            now += 3
        elif not breaker.is_open(now):
            breaker = breaker.sent()
            if step == "fail":
                breaker = breaker.failed(now, "no", max_failures=most, pause=7)
            elif step == "later":
                breaker = breaker.failed(now, "no", max_failures=most, pause=7, after=1e9)
            else:
                breaker = breaker.abandoned()
    assert not breaker.is_open(now + 301)
