"""Calls of search providers: cached, shared with equal calls under way, within a deadline, retried
after transient failures, and behind a circuit breaker.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Literal

import anyio

from groundhook.core.errors import (
    SourceError,
    SourceNotConfigured,
    SourceRateLimited,
    SourceRefused,
)
from groundhook.core.source_settings import WebSettings
from groundhook.core.types.web_providers import WebEngine, WebHit, WebQuery
from groundhook.handlers.web.cache import Cache
from groundhook.handlers.web.providers.answers import timeout_error
from groundhook.handlers.web.single_flight import SingleFlight

LONGEST_PAUSE = 300.0  # seconds; the upper limit for a provider's Retry-After


@dataclass(frozen=True)
class Breaker:
    """A circuit breaker for a provider that keeps failing: a pure state machine.

        closed ── `max_failures` in a row, or a Retry-After ──► open ── the pause ends ──► one trial
        request ──► closed, or open again

    The state: `failures` in a row so far, the reason `why` of the last one, the time
    `paused_until` before which no request is sent, in seconds of any clock, and whether the trial
    request after a pause is under way (`trying`)."""

    failures: int = 0
    paused_until: float = 0.0
    trying: bool = False
    why: str = ""

    def is_open(self, now: float) -> bool:
        """Return whether requests must not be sent now."""
        return now < self.paused_until or self.trying

    def sent(self) -> Breaker:
        """Return the state after a request was sent. After a pause it is the only one until its
        outcome is known."""
        return replace(self, trying=self.paused_until > 0)

    def abandoned(self) -> Breaker:
        """Return the state after a request was cancelled, or failed for a reason that does not
        count."""
        return replace(self, trying=False)

    def failed(
        self, now: float, why: str, *, max_failures: int, pause: float, after: float | None = None
    ) -> Breaker:
        """Return the state after a failure. `max_failures` in a row open the breaker for `pause`
        seconds (0: never); `after`, the provider's Retry-After in seconds, opens it at once."""
        failures = self.failures + 1
        if after is not None:
            return Breaker(failures, now + min(after, LONGEST_PAUSE), why=why)
        return Breaker(
            failures, now + pause if max_failures and failures >= max_failures else 0.0, why=why
        )


BACKOFF = 0.2  # seconds before the first retry; doubled with each further one
How = Literal["asked", "joined", "cached"]
Hits = tuple[WebHit, ...]


class ProviderCalls:
    """Calls providers. One per app, shared by all searches. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._cache: Cache[Hits] = Cache()
        self._in_flight: SingleFlight[Hits] = SingleFlight()
        self._breakers: dict[Hashable, Breaker] = {}

    async def hits(
        self,
        name: str,
        account: Hashable,
        engine: WebEngine,
        ask: WebQuery,
        settings: WebSettings,
    ) -> tuple[Hits, How]:
        """Return the hits of the provider `name`, and whether they are from a call (`asked`), from
        another search's call under way (`joined`) or `cached`. `account` keeps the answers of
        different keys and hosts apart. Raises SourceError."""
        key = (name, account, cache_key(ask))
        if settings.cache.enabled and (cached := self._cache.get(key, self._clock())) is not None:
            return cached, "cached"

        async def work() -> Hits:
            hits = await self._call_with_breaker(
                name, (name, account, ask.timeout), engine, ask, settings
            )
            if settings.cache.enabled:
                expires = self._clock() + getattr(settings.cache, f"{ask.time_range or 'any'}_s")
                self._cache.put(key, hits, expires=expires, max_entries=settings.cache.entries)
            return hits

        hits, joined = await self._in_flight.run((key, ask.timeout), work)
        return hits, "joined" if joined else "asked"

    async def _call_with_breaker(
        self, name: str, key: Hashable, engine: WebEngine, ask: WebQuery, settings: WebSettings
    ) -> Hits:
        """Call the provider unless its breaker is open. Raises SourceError."""
        before = self._breakers.get(key, Breaker())
        now = self._clock()
        if before.is_open(now):
            wait = max(before.paused_until - now, 0.0)
            times = f"{before.failures} failures in a row" if before.failures > 1 else "a failure"
            raise SourceError(
                f"{name!r} is not called for {wait:.0f} s after {times}: {before.why}",
                hint="search.web.breaker",
            )
        self._breakers[key] = before.sent()
        try:
            # Shortly before the caller's own deadline, so that the timeout counts as a failure of
            # the provider.
            with anyio.fail_after(ask.timeout - min(ask.timeout / 20, 0.1)):
                hits = await _call_with_retries(engine, ask, settings.retries)
        except TimeoutError as exc:
            self._record_failure(key, settings, timeout_error(name, ask.timeout))
            raise timeout_error(name, ask.timeout) from exc
        except SourceError as exc:
            self._record_failure(key, settings, exc)
            raise
        except BaseException:
            self._breakers[key] = self._breakers.get(key, before).abandoned()
            raise
        self._breakers.pop(key, None)
        return hits

    def _record_failure(self, key: Hashable, settings: WebSettings, error: SourceError) -> None:
        """Count a failure of the provider. A refused key, a missing setting and a used-up quota do
        not count."""
        state = self._breakers.get(key, Breaker())
        ours = (
            isinstance(error, SourceRefused | SourceNotConfigured | SourceRateLimited)
            and error.after is None
        )
        if ours:
            self._breakers[key] = state.abandoned()
        else:
            rules = settings.breaker
            self._breakers[key] = state.failed(
                self._clock(),
                error.message,
                max_failures=rules.failures,
                pause=rules.pause_s,
                after=error.after,
            )


async def _call_with_retries(engine: WebEngine, ask: WebQuery, retries: int) -> Hits:
    """Call the provider, and again after transient failures if the deadline leaves time for the
    wait."""
    for tried in range(retries):
        try:
            return tuple(await engine.search(ask))
        except SourceError as exc:
            wait = (
                exc.after if exc.after is not None else BACKOFF * 2**tried * random.uniform(0.5, 1)
            )
            if not exc.again or anyio.current_time() + wait >= anyio.current_effective_deadline():
                raise
        await anyio.sleep(wait)
    return tuple(await engine.search(ask))


def cache_key(ask: WebQuery) -> Hashable:
    """Return the parts of a request that decide its answer, normalized."""
    sites, without = (
        sorted({site.lower() for site in ask.sites}),
        sorted({site.lower() for site in ask.exclude_sites}),
    )
    query = " ".join(ask.query.split())
    return (query, ask.limit, tuple(sites), tuple(without), ask.time_range, ask.language.lower())
