"""Provider for SearXNG, a self-hosted metasearch engine without keys.

Request: GET /search?q&format=json&time_range&language; sites are written into q. Answer: results
[{title, url, content, engine, score, publishedDate}], unresponsive_engines [[name, why]]. There is
no limit parameter: it returns the first page of its engines, usually 10 to 30 results. Its scores
have no upper bound, so scores are computed from positions. 403 means that `json` is missing from
`search.formats` of its settings.yml. API: https://docs.searxng.org/dev/search_api.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.core.errors import SourceError, SourceRefused
from groundhook.core.types.web_providers import WebAccess, WebHit, WebProvider, WebQuery
from groundhook.handlers.web.providers.answers import objects_of, parse_answer, text_of
from groundhook.handlers.web.providers.client import ProviderClient
from groundhook.handlers.web.providers.provider_helpers import with_operators

NAME = "searxng"


class SearXNG:
    """A `core.types.web_providers.WebEngine` for one instance."""

    def __init__(self, access: WebAccess) -> None:
        self._access = access
        self._client = ProviderClient(NAME, access, {"accept": "application/json"})

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        # A relative path: an instance may be installed below a path of its host.
        reply = await self._client.request(
            "GET", "search", params=parameters(ask), timeout=ask.timeout
        )
        if reply.status == 403:
            raise SourceRefused(
                f"{NAME!r} at {self._access.host} does not answer with JSON (403)",
                hint="add `json` to search.formats in its settings.yml and restart it",
            )
        answer = parse_answer(NAME, self._access.variable, reply)
        hits = [
            WebHit(
                url=text_of(entry, "url"),
                title=text_of(entry, "title"),
                content=text_of(entry, "content"),
                published=text_of(entry, "publishedDate", "pubdate"),
            )
            for entry in objects_of(NAME, answer, "results")
        ]
        silent = unresponsive(answer)
        if not hits and silent:
            raise SourceError(
                f"the engines of {NAME!r} found nothing, and some did not answer: {silent}"
            )
        return hits


def parameters(ask: WebQuery) -> dict[str, str]:
    """Return the query parameters of a search."""
    values = {
        "q": with_operators(ask),
        "format": "json",
        "time_range": ask.time_range or "",
        "language": ask.language,
    }
    return {name: value for name, value in values.items() if value}


def unresponsive(answer: Mapping[str, Any]) -> str:
    """Return the engines that did not answer, each with its reason: `google (CAPTCHA), bing
    (timeout)`."""
    named = answer.get("unresponsive_engines")
    pairs = (
        [entry for entry in named[:50] if isinstance(entry, Sequence) and len(entry) == 2]
        if isinstance(named, list)
        else []
    )
    return ", ".join(f"{name} ({why})" for name, why in pairs)[:300]


SEARXNG = WebProvider(variable="SEARXNG_URL", host="", max_results=50, make=SearXNG)
