"""How a provider is asked: from the cache, together with whoever asks the same, under a deadline,
and again when that is safe."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable
from typing import Literal

import anyio

from groundhook.handlers.web.answers import late
from groundhook.handlers.web.breaker import Breaker
from groundhook.handlers.web.cache import Cache
from groundhook.handlers.web.flights import Flights
from groundhook.handlers.web.providers import Ask, Hit, Provider
from groundhook.host.core.errors import (
    SourceError,
    SourceNotConfigured,
    SourceRateLimited,
    SourceRefused,
)
from groundhook.host.core.source_settings import WebSettings

BACKOFF = 0.2  # seconds before the first second try; doubled with each
How = Literal["asked", "joined", "cached"]
Hits = tuple[Hit, ...]


class Asking:
    """Shared by all searches of an app. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._cache: Cache[Hits] = Cache()
        self._flights: Flights[Hits] = Flights()
        self._breakers: dict[Hashable, Breaker] = {}

    async def hits(
        self, name: str, who: Hashable, provider: Provider, ask: Ask, settings: WebSettings
    ) -> tuple[Hits, How]:
        """What the provider `name` answers, and where the answer is from. `who` sets apart whose
        account is asked. Raises SourceError."""
        key = (name, who, canonical(ask))
        if settings.cache.enabled and (kept := self._cache.get(key, self._clock())) is not None:
            return kept, "cached"

        async def work() -> Hits:
            found = await self._guarded(name, (name, who, ask.timeout), provider, ask, settings)
            if settings.cache.enabled:
                until = self._clock() + getattr(settings.cache, f"{ask.time_range or 'any'}_s")
                self._cache.put(key, found, until=until, most=settings.cache.entries)
            return found

        found, joined = await self._flights.join((key, ask.timeout), work)
        return found, "joined" if joined else "asked"

    async def _guarded(
        self, name: str, key: Hashable, provider: Provider, ask: Ask, settings: WebSettings
    ) -> Hits:
        """One search, unless the provider is to be left alone."""
        before = self._breakers.get(key, Breaker())
        now = self._clock()
        if before.open(now):
            wait = max(before.until - now, 0.0)
            times = f"{before.failures} failures in a row" if before.failures > 1 else "a failure"
            raise SourceError(
                f"{name!r} is left alone for {wait:.0f} s after {times}: {before.why}",
                hint="search.web.breaker",
            )
        self._breakers[key] = before.asked()
        try:
            # A little before those who wait give up, so that it is known as the provider's failure.
            with anyio.fail_after(ask.timeout - min(ask.timeout / 20, 0.1)):
                found = await _persistent(provider, ask, settings.retries)
        except TimeoutError as exc:
            self._note(key, settings, late(name, ask.timeout))
            raise late(name, ask.timeout) from exc
        except SourceError as exc:
            self._note(key, settings, exc)
            raise
        except BaseException:
            self._breakers[key] = self._breakers.get(key, before).left()
            raise
        self._breakers.pop(key, None)
        return found

    def _note(self, key: Hashable, settings: WebSettings, error: SourceError) -> None:
        """Failures that are the provider's count; a key that is refused or a quota that is used up
        passes for no failure."""
        state = self._breakers.get(key, Breaker())
        told = (
            isinstance(error, SourceRefused | SourceNotConfigured | SourceRateLimited)
            and error.after is None
        )
        if told:
            self._breakers[key] = state.left()
        else:
            rules = settings.breaker
            self._breakers[key] = state.failed(
                self._clock(),
                error.message,
                most=rules.failures,
                pause=rules.pause_s,
                after=error.after,
            )


async def _persistent(provider: Provider, ask: Ask, retries: int) -> Hits:
    """Ask, and again after a failure that may pass, when the deadline leaves time for the wait."""
    for tried in range(retries):
        try:
            return tuple(await provider.search(ask))
        except SourceError as exc:
            wait = (
                exc.after if exc.after is not None else BACKOFF * 2**tried * random.uniform(0.5, 1)
            )
            if not exc.again or anyio.current_time() + wait >= anyio.current_effective_deadline():
                raise
        await anyio.sleep(wait)
    return tuple(await provider.search(ask))


def canonical(ask: Ask) -> Hashable:
    """What of a request decides its answer, in one spelling."""
    sites, without = (
        sorted({site.lower() for site in ask.sites}),
        sorted({site.lower() for site in ask.exclude_sites}),
    )
    query = " ".join(ask.query.split())
    return (query, ask.limit, tuple(sites), tuple(without), ask.time_range, ask.language.lower())
