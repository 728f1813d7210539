"""Provider for HTTP endpoints that rerank: Jina, vLLM, Infinity and others in one dialect, TEI in
its own.

`endpoint`: {model?, query, documents, return_documents: false} → {results: [{index,
relevance_score}]}. `tei` (Text Embeddings Inference): {query, texts, truncate: true} → [{index,
score}]. Answers of both shapes are accepted from both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from groundhook.core.error_bodies import UNCOMPRESSED, shorten_error
from groundhook.core.errors import RerankError
from groundhook.core.json_text import NotJson, read_json
from groundhook.core.retry_after import retry_after_s
from groundhook.rerankers.provider_contract import (
    MAX_BYTES,
    ProviderType,
    RerankerAccess,
    RerankRequestFailed,
    Scores,
    parse_index,
    parse_score,
    parsing,
)

if TYPE_CHECKING:
    import httpx2


class RerankEndpoint:
    """A `rerankers.provider_contract.Provider` with one HTTP client, opened by the first call."""

    def __init__(self, access: RerankerAccess, dialect: Literal["endpoint", "tei"]) -> None:
        self._access, self._dialect = access, dialect
        self._client: httpx2.AsyncClient | None = None

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        import httpx2

        client = self._client = self._client or self._open_client()
        try:
            async with client.stream(
                "POST",
                rerank_url(self._access.host),
                json=self._body(model, query, texts),
                timeout=timeout_s,
            ) as r:
                status, headers, body = r.status_code, r.headers, await _read_bounded(r)
        except httpx2.TimeoutException as exc:
            raise RerankRequestFailed(0, "no answer in time") from exc
        except httpx2.HTTPError as exc:
            raise RerankRequestFailed(0, str(exc) or exc.__class__.__name__) from exc
        if status != 200:
            raise RerankRequestFailed(status, _reason(body), retry_after_s(headers))
        with parsing(self._access.host):
            return parse_scores(read_json(body))

    def _body(self, model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
        if self._dialect == "tei":
            return {"query": query, "texts": list(texts), "truncate": True}
        named = {"model": model} if model else {}
        return {**named, "query": query, "documents": list(texts), "return_documents": False}

    def _open_client(self) -> httpx2.AsyncClient:
        import httpx2  # here because the import takes 0.16 s

        key = {"authorization": f"Bearer {self._access.key}"} if self._access.key else {}
        client = httpx2.AsyncClient(
            headers={**UNCOMPRESSED, **key}, event_hooks={"response": [shorten_error]}
        )
        self._access.closing(client.aclose)
        return client


def rerank_url(host: str) -> str:
    """Return the base URL with `/rerank`, unless it ends with `rerank` already."""
    bare = host.rstrip("/")
    return bare if bare.endswith("rerank") else f"{bare}/rerank"


def parse_scores(answer: Any) -> Scores:
    """Return the positions and scores of a decoded answer of either dialect. Raises ValueError,
    KeyError or TypeError for any other shape."""
    if isinstance(answer, Mapping):
        answer = answer["results"] if "results" in answer else answer["data"]
    if not isinstance(answer, list):
        raise TypeError("not a list")
    return [
        (
            parse_index(entry["index"]),
            parse_score(entry["relevance_score"] if "relevance_score" in entry else entry["score"]),
        )
        for entry in answer
    ]


async def _read_bounded(response: httpx2.Response) -> bytes:
    """Return the body. Raises RerankError beyond MAX_BYTES."""
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_BYTES:
            raise RerankError(
                f"{str(response.url)!r} answered with more than {MAX_BYTES // 1024} kB"
            )
    return body


def _reason(body: bytes) -> str:
    """Return the reason in an error answer: `detail`, `error` or `message`, as text or nested in an
    object."""
    try:
        reason = read_json(body)
    except NotJson:
        return ""
    for key in ("detail", "error", "message"):
        if isinstance(reason, Mapping) and key in reason:
            reason = reason[key]
    return reason if isinstance(reason, str) else ""


ENDPOINT = ProviderType(
    variables=(),
    host="",
    model="",
    max_chars=8000,
    make=lambda access: RerankEndpoint(access, "endpoint"),
)
TEI = ProviderType(
    variables=(),
    host="",
    model="",
    max_chars=8000,
    make=lambda access: RerankEndpoint(access, "tei"),
)
