"""Provider for Tavily, through Tavily's own client.

The client turns an answer of the wrong shape into no results, drops the status of an error and
reads bodies of any size. It therefore gets an HTTP client that limits and checks each answer first.
API: https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from groundhook.core.error_bodies import UNCOMPRESSED, shorten_error
from groundhook.core.errors import SourceNotConfigured
from groundhook.core.extras import extra, import_aside
from groundhook.core.types.web_providers import WebAccess, WebHit, WebProvider, WebQuery
from groundhook.handlers.web.providers.answers import (
    HttpReply,
    objects_of,
    parse_answer,
    text_of,
    timeout_error,
    unreachable_error,
)
from groundhook.handlers.web.providers.provider_helpers import MAX_BYTES

if TYPE_CHECKING:
    import httpx

NAME = "tavily"


class Tavily:
    """A `core.types.web_providers.WebEngine` with one client, opened by the first search."""

    def __init__(self, access: WebAccess) -> None:
        self._access = access
        self._client: Any = None

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        await import_aside("tavily")
        client = self._open_client()
        with _translate_errors(self._access.host, ask.timeout):
            answer = await client.search(
                ask.query,
                max_results=ask.limit,
                time_range=ask.time_range,
                include_domains=list(ask.sites) or None,
                exclude_domains=list(ask.exclude_sites) or None,
                timeout=ask.timeout,
            )
        return [
            WebHit(
                url=text_of(entry, "url"),
                title=text_of(entry, "title"),
                content=text_of(entry, "content", "raw_content"),
                score=_number(entry.get("score")),
                published=text_of(entry, "published_date"),
            )
            for entry in objects_of(NAME, answer, "results")
        ]

    def _open_client(self) -> Any:
        if self._client is None:
            with extra("web", f"asking {NAME!r}", SourceNotConfigured):
                import httpx
                from tavily import AsyncTavilyClient

            hooks = {"response": [shorten_error, self._check]}
            http = httpx.AsyncClient(
                base_url=self._access.host, headers=UNCOMPRESSED, event_hooks=hooks
            )
            self._access.closing(http.aclose)
            self._client = AsyncTavilyClient(api_key=self._access.key, client=http)
        return self._client

    async def _check(self, response: httpx.Response) -> None:
        """Check an answer before the client sees it. Raises SourceError for an error or a wrong
        shape."""
        from groundhook.handlers.web.providers.bounded_body import read_body

        body = await read_body(NAME, response, MAX_BYTES)
        reply = HttpReply(status=response.status_code, headers=dict(response.headers), body=body)
        objects_of(NAME, parse_answer(NAME, self._access.variable, reply), "results")


@contextmanager
def _translate_errors(host: str, timeout: float) -> Iterator[None]:
    """Raise the client's errors as SourceError."""
    import httpx
    from tavily.errors import TimeoutError as TavilyTimeout

    try:
        yield
    except (TavilyTimeout, httpx.TimeoutException) as exc:
        raise timeout_error(NAME, timeout) from exc
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise unreachable_error(NAME, host, exc) from exc


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


TAVILY = WebProvider(
    variable="TAVILY_API_KEY",
    host="https://api.tavily.com",
    max_results=20,
    make=Tavily,
    can=frozenset({"sites", "exclude_sites", "time_range"}),
)
