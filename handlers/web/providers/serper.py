"""Provider for Serper: Google's results as JSON.

Request: POST /search, header X-API-KEY, {q, num, tbs: "qdr:d|w|m|y", hl}; sites are written into q.
Answer: organic [{title, link, snippet, position, date}], answerBox and knowledgeGraph where Google
shows such a box. Serper has no scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundhook.core.types.web_providers import WebAccess, WebHit, WebProvider, WebQuery
from groundhook.handlers.web.providers.answers import parse_answer, text_of
from groundhook.handlers.web.providers.client import ProviderClient
from groundhook.handlers.web.providers.provider_helpers import google_pages, with_operators

NAME = "serper"

AGES = {"day": "qdr:d", "week": "qdr:w", "month": "qdr:m", "year": "qdr:y"}
ANSWER_SCORE = 0.95  # of a box that Google shows above all results


class Serper:
    """A `core.types.web_providers.WebEngine`."""

    def __init__(self, access: WebAccess) -> None:
        self._variable = access.variable
        self._client = ProviderClient(NAME, access, {"X-API-KEY": access.key})

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        reply = await self._client.request("POST", "search", json=request(ask), timeout=ask.timeout)
        return hits(parse_answer(NAME, self._variable, reply))


def request(ask: WebQuery) -> dict[str, Any]:
    """Return the JSON body of a search."""
    body: dict[str, Any] = {"q": with_operators(ask), "num": ask.limit}
    if ask.time_range:
        body["tbs"] = AGES[ask.time_range]
    if ask.language:
        body["hl"] = ask.language.lower()
    return body


def hits(answer: Mapping[str, Any]) -> list[WebHit]:
    """Return the pages of an answer, after its answer box and knowledge graph if it has them.
    Raises SourceMalformed."""
    pages = google_pages(NAME, answer, "organic")
    boxes = [
        _box(answer.get("answerBox"), "link", "answer", "snippet"),
        _box(answer.get("knowledgeGraph"), "descriptionLink", "description", "description"),
    ]
    return [box for box in boxes if box is not None] + pages


def _box(box: object, link: str, short: str, long: str) -> WebHit | None:
    if not isinstance(box, Mapping) or not text_of(box, link) or not text_of(box, short, long):
        return None
    parts = dict.fromkeys([text_of(box, short), text_of(box, long)])
    content = "\n".join(part for part in parts if part)
    return WebHit(
        url=text_of(box, link), title=text_of(box, "title"), content=content, score=ANSWER_SCORE
    )


SERPER = WebProvider(
    variable="SERPER_API_KEY", host="https://google.serper.dev", max_results=100, make=Serper
)
