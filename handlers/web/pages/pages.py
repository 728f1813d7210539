"""Fetching of the pages that a search listed: within limits of time and size, from public addresses
only, and as robots.txt allows.

A page that cannot be read keeps the search engine's snippet, with a warning that says why.

The robots.txt of sites (RFC 9309), fetched at most once an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import anyio

from groundhook.core.errors import (
    DelegateError,
    HostError,
    IngestError,
    SourceError,
    SourceTimeout,
    UsageError,
)
from groundhook.core.ports import ChecksAddresses, ClientOf, Scope, WebClient
from groundhook.core.readers.pool import ReaderPool
from groundhook.core.settings import HttpSettings
from groundhook.core.source_settings import PageSettings, WebSettings
from groundhook.core.trace import span
from groundhook.core.types.delegation import FetchAsk
from groundhook.core.types.search import Item
from groundhook.core.types.uses import FETCH
from groundhook.core.types.web import WebAnswer
from groundhook.handlers.web.cache import Cache
from groundhook.handlers.web.dates import parse_date
from groundhook.handlers.web.items import clean
from groundhook.handlers.web.pages.extract import READABLE
from groundhook.handlers.web.pages.reader import is_allowed, read_page
from groundhook.handlers.web.single_flight import SingleFlight
from groundhook.handlers.web.urls import canonical, followable

AGENT = "groundhook"
LIFETIME = 3600.0  # seconds in the cache; RFC 9309, section 2.4: at most a day
MAX_SITES = 1000  # in the cache
MAX_KB = 500  # kB; RFC 9309, section 2.5: a crawler must read at least this much


class Robots:
    """The rules of all sites for the user agent AGENT. One per app; `clock` returns seconds."""

    def __init__(
        self, client_of: ClientOf, readers: ReaderPool, clock: Callable[[], float]
    ) -> None:
        self._client_of = client_of
        self._readers = readers
        self._clock = clock
        self._cache: Cache[str | SourceError] = Cache()
        self._in_flight: SingleFlight[str | SourceError] = SingleFlight()

    async def allowed(self, url: str, settings: PageSettings) -> bool:
        """Return whether robots.txt allows the page at `url`. Raises SourceError when robots.txt
        cannot be fetched or parsed; the page must not be read then."""
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        key = (site, settings)
        rules = self._cache.get(key, self._clock())
        if rules is None:
            rules, _ = await self._in_flight.run(key, lambda: self._fetch_robots(site, settings))
            self._cache.put(key, rules, expires=self._clock() + LIFETIME, max_entries=MAX_SITES)
        if isinstance(rules, SourceError):
            raise rules
        if not rules.strip():
            return True
        try:
            return await self._readers.call(is_allowed, rules, AGENT, url)
        except IngestError as exc:
            raise SourceError(f"its site's robots.txt cannot be parsed: {exc.message}") from exc

    async def _fetch_robots(self, site: str, settings: PageSettings) -> str | SourceError:
        """Return the file, "" if it does not exist (4xx), or the error if it is unreachable
        (section 2.3.1: then no page may be read)."""
        client = self._client_of(
            HttpSettings(
                hosts=("*", *settings.hosts),
                timeout_ms=settings.timeout_ms,
                max_kb=MAX_KB,
                redirects=5,
            )
        )
        try:
            answer = await client.request(
                "GET", f"{site}/robots.txt", headers={"user-agent": AGENT}
            )
        except SourceError as exc:
            return SourceError(f"its site's robots.txt cannot be fetched: {exc.message}")
        if answer.status < 300:
            return answer.text
        if 400 <= answer.status < 500:
            return ""
        return SourceError(
            f"its site answers with status {answer.status} for robots.txt, so the page is not read"
        )


REDIRECTS = frozenset({301, 302, 303, 307, 308})
LONGEST = 200_000  # characters of a whole page
# Seconds before the search's deadline at which unfinished pages are abandoned, so that the search
# can return the others.
MARGIN = 0.2


@dataclass(frozen=True)
class PagePassage:
    """The part of a page that answers the query, or its whole text; `published` is its date as the
    page writes it."""

    title: str
    passage: str
    published: str


class PageReader:
    """Fetches, parses and caches pages. One per app, shared by all searches."""

    def __init__(
        self, client_of: ClientOf, environment: Mapping[str, str] | None, clock: Callable[[], float]
    ) -> None:
        self._readers = ReaderPool(environment)
        self._robots = Robots(client_of, self._readers, clock)
        self._client_of = client_of
        self._clock = clock
        self._cache: Cache[PagePassage] = Cache()
        self._in_flight: SingleFlight[PagePassage] = SingleFlight()

    async def close(self) -> None:
        await self._readers.close()

    async def read(
        self, items: tuple[Item, ...], query: str, page_count: int, scope: Scope, deadline: float
    ) -> tuple[Item, ...]:
        """Return the items; the first `page_count` ones have the passage of their page that matches
        the query best as their content. Items whose page is not read by the `deadline`, a time of
        the event loop's clock, stay unchanged."""
        deadline = min(deadline, anyio.current_effective_deadline()) - MARGIN
        results = list(items)

        async def fetch(at: int) -> None:
            results[at] = await self._fetch_item(items[at], query, scope, deadline)

        async with anyio.create_task_group() as tasks:
            for at in range(min(page_count, len(items))):
                tasks.start_soon(fetch, at)
        return tuple(results)

    async def whole(self, url: str, scope: Scope) -> Item:
        """Return a page with its whole text as content. Raises HostError."""
        settings = scope.settings.web
        with span("fetch", label=url) as node:
            deadline = anyio.current_time() + settings.timeout_ms / 1000
            page = await self._read_page(url, None, scope, deadline)
            node.data |= {"characters": len(page.passage)}
        return Item(
            type="web",
            title=page.title or url,
            content=page.passage,
            url=url,
            score=1.0,
            published=parse_date(page.published, scope.now()),
            status="fetched",
            key=f"web:{canonical(url)}",
        )

    async def _fetch_item(self, item: Item, query: str, scope: Scope, deadline: float) -> Item:
        with span("fetch", label=item.url) as node:
            try:
                page = await self._read_page(item.url, query, scope, deadline)
            except HostError as exc:
                node.fail(str(exc))
                await scope.warn(
                    "web_page",
                    f"{item.url} was not read: {exc}; the search engine's snippet is used",
                )
                return item
            node.data |= {"characters": len(page.passage)}
        return item.model_copy(
            update={
                "content": page.passage,
                "title": item.title if item.title != item.url else page.title or item.title,
                "published": item.published or parse_date(page.published, scope.now()),
                "status": "fetched",
            }
        )

    async def _read_page(
        self, url: str, query: str | None, scope: Scope, deadline: float
    ) -> PagePassage:
        """Return the page's passage for a query (None: its whole text), read by what `uses.fetch`
        names; if that fails, the built-in reader replaces it with a warning. Raises HostError."""
        settings = scope.settings.web
        if scope.uses.fetch not in ("", "builtin"):
            # Past the deadline it is the built-in reader that says so.
            with anyio.move_on_after(deadline - anyio.current_time()):
                await self._refuse_unreadable(url, settings.pages)
                try:
                    return await self._ask_delegate(url, query, scope, deadline)
                except (DelegateError, IngestError, SourceError) as exc:
                    await scope.warn(exc.code, f"{url}: {exc}; the built-in reader was used")
        return await self._get_page(url, query, settings, deadline)

    async def _refuse_unreadable(self, url: str, settings: PageSettings) -> None:
        """Raise the error of the built-in reader for a page that it would not read, so that nobody
        else reads it in its place."""
        client = self._client(settings)
        if isinstance(client, ChecksAddresses):  # one that answers from a file reaches no address
            try:
                await client.check(url)
            except UsageError as exc:
                raise SourceError(exc.message) from exc
        await self._refuse_disallowed(url, settings)

    async def _ask_delegate(
        self, url: str, query: str | None, scope: Scope, deadline: float
    ) -> PagePassage:
        """Return the page as an assistant or an MCP tool reads it. Its answer may depend on the
        user, so it is not cached. Raises DelegateError, IngestError, SourceError."""
        settings = scope.settings.web.pages
        left_ms = int((deadline - anyio.current_time()) * 1000)
        answer = await scope.delegates.ask(
            FETCH,
            scope.uses.fetch,
            FetchAsk(url=url, query=query or "", max_length=LONGEST),
            timeout_ms=max(1, min(settings.timeout_ms, left_ms)),
            hint="search.web.pages.timeout_ms",
            tries=1,
        )
        body = answer.content[:LONGEST].encode("utf-8", "replace")
        page = await self._readers.call(read_page, body, "text/plain", "utf-8", query)
        return _as_passage({**page, "title": answer.title, "published": answer.published}, query)

    async def _get_page(
        self, url: str, query: str | None, settings: WebSettings, deadline: float
    ) -> PagePassage:
        """Return the page's passage for a query (None: its whole text), from the cache if possible.
        `deadline` is a time of the event loop's clock. Raises HostError."""
        key = (url, query, settings.pages)
        if settings.cache.enabled and (cached := self._cache.get(key, self._clock())) is not None:
            return cached
        seconds = min(settings.pages.timeout_ms / 1000, deadline - anyio.current_time())
        with anyio.move_on_after(seconds):
            page, _ = await self._in_flight.run(
                key, lambda: self._fetch_and_extract(url, query, settings.pages)
            )
            if settings.cache.enabled:
                expires = self._clock() + settings.cache.any_s
                self._cache.put(key, page, expires=expires, max_entries=settings.cache.entries)
            return page
        raise SourceTimeout(
            f"it did not arrive within {max(seconds, 0):.1f} s",
            hint="search.web.pages.timeout_ms, search.web.timeout_ms",
        )

    async def _fetch_and_extract(
        self, url: str, query: str | None, settings: PageSettings
    ) -> PagePassage:
        answer = await self._fetch(url, settings)
        if answer.status != 200:
            raise SourceError(f"the server answered with status {answer.status}")
        page = await self._readers.call(
            read_page, answer.body, answer.media_type, answer.charset or "", query
        )
        return _as_passage(page, query)

    async def _fetch(self, url: str, settings: PageSettings) -> WebAnswer:
        """Return the answer after all redirects. Each address on the way is checked against the
        address rules and its site's robots.txt."""
        client = self._client(settings)
        for _ in range(settings.redirects + 1):
            await self._refuse_disallowed(url, settings)
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
                raise SourceError(
                    f"it redirects to {location[:200]!r}, which is not an http(s) address"
                )
        raise SourceError(
            f"it redirects more than {settings.redirects} times", hint="search.web.pages.redirects"
        )

    def _client(self, settings: PageSettings) -> WebClient:
        return self._client_of(
            HttpSettings(
                hosts=("*", *settings.hosts),
                timeout_ms=settings.timeout_ms,
                max_kb=settings.max_kb,
                redirects=0,
            )
        )

    async def _refuse_disallowed(self, url: str, settings: PageSettings) -> None:
        if settings.robots and not await self._robots.allowed(url, settings):
            raise SourceError("its site's robots.txt disallows it", hint="search.web.pages.robots")


def _as_passage(page: Mapping[str, Any], query: str | None) -> PagePassage:
    """Return what `read_page` returned, cleaned and cut. Raises SourceError where it is empty."""
    passage = clean(page["passage"][:LONGEST])
    if not passage:
        if query is None:
            raise SourceError("it has no text")
        raise SourceError(f"none of its {page['characters']} characters match the question")
    return PagePassage(clean(page["title"]).replace("\n", " "), passage, page["published"])
