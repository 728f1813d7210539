"""Tavily, through its own client.

The client answers a wrong shape with no results, forgets the status of a refusal and reads bodies
of any size, so it is given an HTTP client whose answers are read within bounds and judged first.
API: https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from groundhook.handlers.web.answers import Reply, judge, late, listed, text_of, unreachable
from groundhook.handlers.web.providers import LARGEST, Access, Ask, Hit, ProviderType

if TYPE_CHECKING:
    import httpx

NAME = "tavily"


class Tavily:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._client: Any = None

    async def search(self, ask: Ask, /) -> list[Hit]:
        client = self._opened()
        with _speaking_to(self._access.host, ask.timeout):
            answer = await client.search(
                ask.query,
                max_results=ask.limit,
                time_range=ask.time_range,
                include_domains=list(ask.sites) or None,
                exclude_domains=list(ask.exclude_sites) or None,
                timeout=ask.timeout,
            )
        return [
            Hit(
                url=text_of(entry, "url"),
                title=text_of(entry, "title"),
                content=text_of(entry, "content", "raw_content"),
                score=_number(entry.get("score")),
                published=text_of(entry, "published_date"),
            )
            for entry in listed(NAME, answer, "results")
        ]

    def _opened(self) -> Any:
        if self._client is None:
            import httpx
            from tavily import AsyncTavilyClient

            # Bodies are counted as they come: what is not compressed cannot grow on the way.
            headers = {"accept-encoding": "identity"}
            http = httpx.AsyncClient(
                base_url=self._access.host, headers=headers, event_hooks={"response": [self._judge]}
            )
            self._access.closing(http.aclose)
            self._client = AsyncTavilyClient(api_key=self._access.key, client=http)
        return self._client

    async def _judge(self, response: httpx.Response) -> None:
        """Raises SourceError for an answer that is none; called for every answer before the client
        sees it."""
        from groundhook.handlers.web.bounded import body_of

        body = await body_of(NAME, response, LARGEST)
        reply = Reply(status=response.status_code, headers=dict(response.headers), body=body)
        listed(NAME, judge(NAME, self._access.variable, reply), "results")


@contextmanager
def _speaking_to(host: str, timeout: float) -> Iterator[None]:
    import httpx
    from tavily.errors import TimeoutError as TavilyTimeout

    try:
        yield
    except (TavilyTimeout, httpx.TimeoutException) as exc:
        raise late(NAME, timeout) from exc
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise unreachable(NAME, host, exc) from exc


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


TAVILY = ProviderType(
    variable="TAVILY_API_KEY",
    host="https://api.tavily.com",
    most=20,
    make=Tavily,
    can=frozenset({"sites", "exclude_sites", "time_range"}),
)
