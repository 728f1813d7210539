"""What sites want robots to leave alone (RFC 9309): their robots.txt, asked for once an hour."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from groundhook.handlers.web.cache import Cache
from groundhook.handlers.web.flights import Flights
from groundhook.handlers.web.readers import Readers
from groundhook.host.core.errors import IngestError, SourceError
from groundhook.host.core.ports import ClientOf
from groundhook.host.core.settings import HttpSettings
from groundhook.host.core.source_settings import PageSettings

AGENT = "groundhook"
KEPT = 3600.0  # seconds; RFC 9309, section 2.4: not longer than a day
SITES = 1000
LARGEST = 500  # kB; RFC 9309, section 2.5: so much must be read


class Robots:
    def __init__(self, client_of: ClientOf, readers: Readers, clock: Callable[[], float]) -> None:
        self._client_of = client_of
        self._readers = readers
        self._clock = clock
        self._cache: Cache[str | SourceError] = Cache()
        self._flights: Flights[str | SourceError] = Flights()

    async def allow(self, url: str, settings: PageSettings) -> bool:
        """Whether the page at `url` may be read. Raises SourceError when the site cannot say: it is
        left alone then."""
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        key = (site, settings)
        said = self._cache.get(key, self._clock())
        if said is None:
            said, _ = await self._flights.join(key, lambda: self._asked(site, settings))
            self._cache.put(key, said, until=self._clock() + KEPT, most=SITES)
        if isinstance(said, SourceError):
            raise said
        if not said.strip():
            return True
        try:
            return bool(
                await self._readers.call("robots", {"text": said, "agent": AGENT, "url": url})
            )
        except IngestError as exc:
            raise SourceError(f"its site's robots.txt cannot be read: {exc.message}") from exc

    async def _asked(self, site: str, settings: PageSettings) -> str | SourceError:
        """The file, empty where there is none (4xx); why it cannot be had (section 2.3.1: then
        nothing may be read)."""
        client = self._client_of(
            HttpSettings(
                hosts=("*", *settings.hosts),
                timeout_ms=settings.timeout_ms,
                max_kb=LARGEST,
                redirects=5,
            )
        )
        try:
            answer = await client.request(
                "GET", f"{site}/robots.txt", headers={"user-agent": AGENT}
            )
        except SourceError as exc:
            return SourceError(f"its site's robots.txt cannot be had: {exc.message}")
        if answer.status < 300:
            return answer.text
        if 400 <= answer.status < 500:
            return ""
        return SourceError(
            f"its site answers with {answer.status} for robots.txt, and is left alone"
        )
