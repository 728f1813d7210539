"""Provider for SerpApi: Google's results as JSON.

Request: GET /search?engine=google&q&num&tbs&hl&api_key; sites are written into q. Answer:
search_metadata {status}, search_information {organic_results_state}, organic_results [{title, link,
snippet, position, date}], answer_box and knowledge_graph where Google shows such a box. An answer
without results has `error` and the status Success. SerpApi has no scores.
API: https://serpapi.com/search-api, https://serpapi.com/search-errors
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundhook.core.concealed import shortened
from groundhook.core.errors import SourceError
from groundhook.core.types.web_providers import WebAccess, WebHit, WebProvider, WebQuery
from groundhook.handlers.web.providers.answers import parse_answer, text_of
from groundhook.handlers.web.providers.client import ProviderClient
from groundhook.handlers.web.providers.provider_helpers import google_pages, with_operators
from groundhook.handlers.web.providers.serper import AGES, ANSWER_SCORE

NAME = "serpapi"


class SerpApi:
    """A `core.types.web_providers.WebEngine`."""

    def __init__(self, access: WebAccess) -> None:
        self._access = access
        self._client = ProviderClient(NAME, access, {"accept": "application/json"})

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        query = {**parameters(ask), "api_key": self._access.key}
        reply = await self._client.request("GET", "search", params=query, timeout=ask.timeout)
        return hits(parse_answer(NAME, self._access.variable, reply))


def parameters(ask: WebQuery) -> dict[str, str]:
    """Return the query parameters of a search, without the key."""
    values = {
        "engine": "google",
        "output": "json",
        "q": with_operators(ask),
        "num": str(ask.limit),
        "tbs": AGES[ask.time_range] if ask.time_range else "",
        "hl": ask.language.lower(),
    }
    return {name: value for name, value in values.items() if value}


def hits(answer: Mapping[str, Any]) -> list[WebHit]:
    """Return the pages of an answer, after its answer box and knowledge graph if it has them.
    Raises SourceError for a search that failed there, SourceMalformed."""
    metadata, found = answer.get("search_metadata"), answer.get("search_information")
    status = text_of(metadata, "status") if isinstance(metadata, Mapping) else ""
    if status == "Error":
        reason = shortened(text_of(answer, "error"), 300)
        failed = SourceError(f"the search failed at {NAME!r}: {reason}")
        failed.again = True
        raise failed
    nothing = (
        isinstance(found, Mapping) and "empty" in text_of(found, "organic_results_state").lower()
    )
    if nothing or (status == "Success" and "error" in answer and "organic_results" not in answer):
        return []
    pages = google_pages(NAME, answer, "organic_results")
    boxes = [_box(answer.get("answer_box")), _graph(answer.get("knowledge_graph"))]
    return [box for box in boxes if box is not None] + pages


def _box(box: object) -> WebHit | None:
    if not isinstance(box, Mapping) or not text_of(box, "link"):
        return None
    parts = dict.fromkeys([text_of(box, "answer", "result"), text_of(box, "snippet")])
    content = "\n".join(part for part in parts if part)
    return _answer(text_of(box, "link"), text_of(box, "title"), content)


def _graph(graph: object) -> WebHit | None:
    source = graph.get("source") if isinstance(graph, Mapping) else None
    if not isinstance(graph, Mapping) or not isinstance(source, Mapping):
        return None
    return _answer(text_of(source, "link"), text_of(graph, "title"), text_of(graph, "description"))


def _answer(url: str, title: str, content: str) -> WebHit | None:
    if not url or not content:
        return None
    return WebHit(url=url, title=title, content=content, score=ANSWER_SCORE)


SERPAPI = WebProvider(
    variable="SERPAPI_API_KEY", host="https://serpapi.com", max_results=100, make=SerpApi
)
