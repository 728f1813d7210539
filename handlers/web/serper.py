"""Serper: Google's results as JSON, over plain HTTP.

Request: POST /search, header X-API-KEY, {q, num, tbs: "qdr:d|w|m|y", hl}; sites are written into q.
Answer: organic [{title, link, snippet, position, date}], answerBox and knowledgeGraph where Google
shows such a box. It has no scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from groundhook.handlers.web.answers import judge, listed, text_of
from groundhook.handlers.web.providers import Access, Ask, Hit, ProviderType, with_operators
from groundhook.handlers.web.wire import Wire

NAME = "serper"

AGES = {"day": "qdr:d", "week": "qdr:w", "month": "qdr:m", "year": "qdr:y"}
ANSWER_SCORE = 0.95  # what Google shows above all results


class Serper:
    def __init__(self, access: Access) -> None:
        self._variable = access.variable
        self._wire = Wire(NAME, access, {"X-API-KEY": access.key})

    async def search(self, ask: Ask, /) -> list[Hit]:
        reply = await self._wire.exchange("POST", "search", json=request(ask), timeout=ask.timeout)
        return hits(judge(NAME, self._variable, reply))


def request(ask: Ask) -> dict[str, Any]:
    """The body of a search."""
    body: dict[str, Any] = {"q": with_operators(ask), "num": ask.limit}
    if ask.time_range:
        body["tbs"] = AGES[ask.time_range]
    if ask.language:
        body["hl"] = ask.language.lower()
    return body


def hits(answer: Mapping[str, Any]) -> list[Hit]:
    """The pages of an answer, a box with an answer or a description before them. Raises
    SourceMalformed."""
    pages = [
        Hit(
            url=text_of(entry, "link"),
            title=text_of(entry, "title"),
            content=text_of(entry, "snippet"),
            published=text_of(entry, "date"),
        )
        for entry in listed(NAME, answer, "organic")
    ]
    boxes = [
        _box(answer.get("answerBox"), "link", "answer", "snippet"),
        _box(answer.get("knowledgeGraph"), "descriptionLink", "description", "description"),
    ]
    return [box for box in boxes if box is not None] + pages


def _box(box: object, link: str, short: str, long: str) -> Hit | None:
    if not isinstance(box, Mapping) or not text_of(box, link) or not text_of(box, short, long):
        return None
    parts = dict.fromkeys([text_of(box, short), text_of(box, long)])
    content = "\n".join(part for part in parts if part)
    return Hit(
        url=text_of(box, link), title=text_of(box, "title"), content=content, score=ANSWER_SCORE
    )


SERPER = ProviderType(
    variable="SERPER_API_KEY", host="https://google.serper.dev", most=100, make=Serper
)
