"""The robots.txt of sites (RFC 9309), fetched at most once an hour."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from groundhook.core.errors import IngestError, SourceError
from groundhook.core.ports import ClientOf
from groundhook.core.readers.pool import ReaderPool
from groundhook.core.settings import HttpSettings
from groundhook.core.source_settings import PageSettings
from groundhook.handlers.web.cache import Cache
from groundhook.handlers.web.pages.reader import is_allowed
from groundhook.handlers.web.single_flight import SingleFlight

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
