"""Reading pages that a search listed: politely, within bounds of time and size, and never at an
address that is not public.

A page that cannot be read keeps the search engine's snippet, and a warning says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import anyio

from groundhook.handlers.web.cache import Cache
from groundhook.handlers.web.dates import published
from groundhook.handlers.web.extract import READABLE
from groundhook.handlers.web.flights import Flights
from groundhook.handlers.web.items import clean
from groundhook.handlers.web.readers import Readers
from groundhook.handlers.web.robots import AGENT, Robots
from groundhook.handlers.web.urls import followable
from groundhook.host.core.errors import HostError, SourceError, SourceTimeout, UsageError
from groundhook.host.core.ports import ClientOf, Scope
from groundhook.host.core.settings import HttpSettings
from groundhook.host.core.source_settings import PageSettings, WebSettings
from groundhook.host.core.trace import span
from groundhook.host.core.types.search import Item
from groundhook.host.core.types.web import WebAnswer

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# seconds before the search's own deadline at which pages that are not there yet are given up
MARGIN = 0.2


@dataclass(frozen=True)
class Read:
    """What was read of a page."""

    title: str
    passage: str
    published: str


class Pages:
    """Shared by all searches of an app."""

    def __init__(
        self, client_of: ClientOf, environment: Mapping[str, str] | None, clock: Callable[[], float]
    ) -> None:
        self._readers = Readers(environment)
        self._robots = Robots(client_of, self._readers, clock)
        self._client_of = client_of
        self._clock = clock
        self._cache: Cache[Read] = Cache()
        self._flights: Flights[Read] = Flights()

    async def close(self) -> None:
        await self._readers.close()

    async def read(
        self, items: tuple[Item, ...], query: str, first: int, scope: Scope, until: float
    ) -> tuple[Item, ...]:
        """The items, the `first` ones with the passage of their page that has most of the query's
        words. What is not read by `until`, a moment of the event loop's clock, stays as it is
        listed."""
        deadline = min(until, anyio.current_effective_deadline()) - MARGIN
        read = list(items)

        async def one(at: int) -> None:
            read[at] = await self._item(items[at], query, scope, deadline)

        async with anyio.create_task_group() as tasks:
            for at in range(min(first, len(items))):
                tasks.start_soon(one, at)
        return tuple(read)

    async def _item(self, item: Item, query: str, scope: Scope, deadline: float) -> Item:
        with span("fetch", label=item.url) as node:
            try:
                page = await self._page(item.url, query, scope.settings.web, deadline)
            except HostError as exc:
                node.fail(str(exc))
                await scope.warn(
                    "web_page",
                    f"{item.url} was not read: {exc}; what the search engine shows of it is used",
                )
                return item
            node.data |= {"characters": len(page.passage)}
        return item.model_copy(
            update={
                "content": page.passage,
                "title": item.title if item.title != item.url else page.title or item.title,
                "published": item.published or published(page.published, scope.now()),
                "status": "fetched",
            }
        )

    async def _page(self, url: str, query: str, settings: WebSettings, deadline: float) -> Read:
        """Raises HostError."""
        key = (url, query, settings.pages)
        if settings.cache.enabled and (kept := self._cache.get(key, self._clock())) is not None:
            return kept
        seconds = min(settings.pages.timeout_ms / 1000, deadline - anyio.current_time())
        with anyio.move_on_after(seconds):
            page, _ = await self._flights.join(
                key, lambda: self._fetched(url, query, settings.pages)
            )
            if settings.cache.enabled:
                until = self._clock() + settings.cache.any_s
                self._cache.put(key, page, until=until, most=settings.cache.entries)
            return page
        raise SourceTimeout(
            f"it was not there within {max(seconds, 0):.1f} s",
            hint="search.web.pages.timeout_ms, search.web.timeout_ms",
        )

    async def _fetched(self, url: str, query: str, settings: PageSettings) -> Read:
        answer = await self._followed(url, settings)
        if answer.status != 200:
            raise SourceError(f"it answers with {answer.status}")
        asked = {
            "body": answer.body,
            "media_type": answer.media_type,
            "charset": answer.charset or "",
            "query": query,
        }
        found: dict[str, Any] = await self._readers.call("read", asked)
        passage = clean(found["passage"])
        if not passage:
            raise SourceError(
                f"nothing on it has to do with the question ({found['characters']} characters)"
            )
        return Read(clean(found["title"]).replace("\n", " "), passage, found["published"])

    async def _followed(self, url: str, settings: PageSettings) -> WebAnswer:
        """The answer behind all redirects; every address on the way is judged, and its site is
        asked for leave."""
        client = self._client_of(
            HttpSettings(
                hosts=("*", *settings.hosts),
                timeout_ms=settings.timeout_ms,
                max_kb=settings.max_kb,
                redirects=0,
            )
        )
        for _ in range(settings.redirects + 1):
            if settings.robots and not await self._robots.allow(url, settings):
                raise SourceError(
                    "its site's robots.txt asks robots to leave it alone",
                    hint="search.web.pages.robots",
                )
            try:
                answer = await client.request(
                    "GET", url, headers={"accept": READABLE, "user-agent": AGENT}
                )
            except UsageError as exc:
                raise SourceError(exc.message) from exc
            location = answer.headers.get("location", "") if answer.status in REDIRECTS else ""
            if not location:
                return answer
            url = followable(urljoin(url, location))
            if not url:
                raise SourceError(f"it redirects to {location[:200]!r}, which cannot be read")
        raise SourceError(
            f"it redirects more than {settings.redirects} times", hint="search.web.pages.redirects"
        )
