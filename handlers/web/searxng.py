"""SearXNG: a search engine that one hosts oneself and that asks others; no key.

Request: GET /search?q&format=json&time_range&language; sites are written into q. Answer: results
[{title, url, content, engine, score, publishedDate}], unresponsive_engines [[name, why]]. There is
no limit: what its engines show on their first page is all there is, usually 10 to 30 results. Its
scores have no upper end, so the position counts. 403 means that `json` is not among
`search.formats` of its settings.yml. API: https://docs.searxng.org/dev/search_api.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.handlers.web.answers import judge, listed, text_of
from groundhook.handlers.web.providers import Access, Ask, Hit, ProviderType, with_operators
from groundhook.handlers.web.wire import Wire
from groundhook.host.core.errors import SourceError, SourceRefused

NAME = "searxng"


class SearXNG:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._wire = Wire(NAME, access, {"accept": "application/json"})

    async def search(self, ask: Ask, /) -> list[Hit]:
        # Relative: an instance may live below a path of its host.
        reply = await self._wire.exchange(
            "GET", "search", params=parameters(ask), timeout=ask.timeout
        )
        if reply.status == 403:
            raise SourceRefused(
                f"{NAME!r} at {self._access.host} does not answer with JSON (403)",
                hint="add `json` to search.formats in its settings.yml and restart it",
            )
        answer = judge(NAME, self._access.variable, reply)
        hits = [
            Hit(
                url=text_of(entry, "url"),
                title=text_of(entry, "title"),
                content=text_of(entry, "content"),
                published=text_of(entry, "publishedDate", "pubdate"),
            )
            for entry in listed(NAME, answer, "results")
        ]
        silent = unresponsive(answer)
        if not hits and silent:
            raise SourceError(
                f"none of the engines behind {NAME!r} found anything, and some did not answer:"
                f" {silent}"
            )
        return hits


def parameters(ask: Ask) -> dict[str, str]:
    """What stands behind the question mark."""
    said = {
        "q": with_operators(ask),
        "format": "json",
        "time_range": ask.time_range or "",
        "language": ask.language,
    }
    return {name: value for name, value in said.items() if value}


def unresponsive(answer: Mapping[str, Any]) -> str:
    """The engines that did not answer, each with the reason: `google (CAPTCHA), bing (timeout)`."""
    named = answer.get("unresponsive_engines")
    pairs = (
        [entry for entry in named if isinstance(entry, Sequence) and len(entry) == 2]
        if isinstance(named, list)
        else []
    )
    return ", ".join(f"{name} ({why})" for name, why in pairs)[:300]


SEARXNG = ProviderType(variable="SEARXNG_URL", host="", most=50, make=SearXNG)
