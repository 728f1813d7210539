"""Serper: Google's results as JSON, over plain HTTP.

Request: POST /search, header X-API-KEY, {q, num, tbs: "qdr:d|w|m|y"}; sites are written into q. Answer: organic [{title, link,
snippet, position, date}], answerBox and knowledgeGraph where Google shows such a box. It has no scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from handlers.web.answers import judge, late, listed, text_of, unreachable
from handlers.web.providers import Access, Ask, Hit, ProviderType

if TYPE_CHECKING:
    import httpx2

NAME = "serper"

AGES = {"day": "qdr:d", "week": "qdr:w", "month": "qdr:m", "year": "qdr:y"}
ANSWER_SCORE = 0.95  # what Google shows above all results


class Serper:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._client: httpx2.AsyncClient | None = None

    async def search(self, ask: Ask, /) -> list[Hit]:
        client = self._opened()
        with _speaking_to(self._access.host, ask.timeout):
            response = await client.post("/search", json=request(ask), timeout=ask.timeout)
        kind = response.headers.get("content-type", "")
        return hits(judge(NAME, self._access.variable, response.status_code, kind, response.content))

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2  # 0.16 s: not before it is needed

            self._client = httpx2.AsyncClient(base_url=self._access.host, headers={"X-API-KEY": self._access.key})
            self._access.closing(self._client.aclose)
        return self._client


def request(ask: Ask) -> dict[str, Any]:
    """The body of a search."""
    sites = " OR ".join(f"site:{site}" for site in ask.sites)
    query = f"({sites}) {ask.query}" if len(ask.sites) > 1 else f"{sites} {ask.query}".strip()
    body: dict[str, Any] = {"q": query, "num": ask.limit}
    return body | {"tbs": AGES[ask.time_range]} if ask.time_range else body


def hits(answer: Mapping[str, Any]) -> list[Hit]:
    """The pages of an answer, a box with an answer or a description before them. Raises SourceMalformed."""
    pages = [
        Hit(url=text_of(entry, "link"), title=text_of(entry, "title"), content=text_of(entry, "snippet"))
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
    return Hit(url=text_of(box, link), title=text_of(box, "title"), content=content, score=ANSWER_SCORE)


@contextmanager
def _speaking_to(host: str, timeout: float) -> Iterator[None]:
    import httpx2

    try:
        yield
    except httpx2.TimeoutException as exc:
        raise late(NAME, timeout) from exc
    except httpx2.HTTPError as exc:
        raise unreachable(NAME, host, exc) from exc


SERPER = ProviderType(variable="SERPER_API_KEY", host="https://google.serper.dev", most=100, make=Serper)
