"""Any endpoint that reranks over HTTP, by its address: Jina, vLLM, Infinity and others in one
dialect, TEI in its own.

`endpoint`: {model?, query, documents, return_documents: false} → {results: [{index,
relevance_score}]}. `tei` (Text Embeddings Inference): {query, texts, truncate: true} → [{index,
score}]. Answers of either shape are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from groundhook.host.core.errors import RerankError
from groundhook.rerankers.providers import (
    Access,
    Failed,
    ProviderType,
    Scores,
    index_of,
    reading,
    score_of,
    wait_of,
)

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 4 * 1024 * 1024  # of an answer, which holds numbers


class Endpoint:
    def __init__(self, access: Access, dialect: Literal["endpoint", "tei"]) -> None:
        self._access, self._dialect = access, dialect
        self._client: httpx2.AsyncClient | None = None

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        import httpx2

        client = self._client = self._client or self._opened()
        try:
            async with client.stream(
                "POST",
                address(self._access.host),
                json=self._body(model, query, texts),
                timeout=timeout_s,
            ) as r:
                status, headers, body = r.status_code, r.headers, await _bounded(r)
        except httpx2.TimeoutException as exc:
            raise Failed(0, "no answer in time") from exc
        except httpx2.HTTPError as exc:
            raise Failed(0, str(exc) or exc.__class__.__name__) from exc
        if status != 200:
            raise Failed(status, _said(body), wait_of(headers))
        with reading(self._access.host):
            return scores(json.loads(body))

    def _body(self, model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
        if self._dialect == "tei":
            return {"query": query, "texts": list(texts), "truncate": True}
        named = {"model": model} if model else {}
        return {**named, "query": query, "documents": list(texts), "return_documents": False}

    def _opened(self) -> httpx2.AsyncClient:
        import httpx2  # 0.16 s: not before it is needed

        client = httpx2.AsyncClient(
            headers={"authorization": f"Bearer {self._access.key}"} if self._access.key else {}
        )
        self._access.closing(client.aclose)
        return client


def address(host: str) -> str:
    """`https://host/v1` → `https://host/v1/rerank`; an address that says so itself stays."""
    bare = host.rstrip("/")
    return bare if bare.endswith("rerank") else f"{bare}/rerank"


def scores(answer: Any) -> Scores:
    """Raises ValueError, KeyError, TypeError for what is no ranking."""
    if isinstance(answer, Mapping):
        answer = answer["results"] if "results" in answer else answer["data"]
    if not isinstance(answer, list):
        raise TypeError("no list")
    return [
        (
            index_of(entry["index"]),
            score_of(entry["relevance_score"] if "relevance_score" in entry else entry["score"]),
        )
        for entry in answer
    ]


async def _bounded(response: httpx2.Response) -> bytes:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MOST_BYTES:
            raise RerankError(
                f"{str(response.url)!r} answered with more than {MOST_BYTES // 1024} KB"
            )
    return body


def _said(body: bytes) -> str:
    """What the endpoint says about its refusal: `detail`, `message` or `error`, as text or inside
    an object."""
    try:
        said = json.loads(body)
    except ValueError:
        return ""
    for key in ("detail", "error", "message"):
        if isinstance(said, Mapping) and key in said:
            said = said[key]
    return said if isinstance(said, str) else ""


ENDPOINT = ProviderType(
    variables=(),
    host="",
    model="",
    max_chars=8000,
    make=lambda access: Endpoint(access, "endpoint"),
)
TEI = ProviderType(
    variables=(), host="", model="", max_chars=8000, make=lambda access: Endpoint(access, "tei")
)
