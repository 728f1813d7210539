"""Voyage's reranking models, through its own client, which is imported when the first items are
judged.

The service cuts texts that are too long (`truncation`). The client has no deadline for the whole,
its errors may raise when they are printed, and it looks texts up by whatever position arrives. API:
https://docs.voyageai.com/reference/reranker-api
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, SupportsIndex, overload

import anyio

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

NAME = "voyage"


class Voyage:
    def __init__(self, access: Access) -> None:
        self._access = access

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        make = await anyio.to_thread.run_sync(_load)
        # A client costs nothing to make; it opens a connection for each request and keeps none.
        client = make(
            api_key=self._access.key, timeout=timeout_s, base_url=self._access.host.rstrip("/")
        )
        with _speaking_to(), reading(NAME):
            answer = await client.rerank(query, _Texts(texts), model=model, truncation=True)
            return [
                (index_of(result.index), score_of(result.relevance_score))
                for result in answer.results
            ]


class _Texts(list[str]):
    """Texts that the client may look up by a position that does not exist: it is left out
    afterwards."""

    @overload
    def __getitem__(self, at: SupportsIndex, /) -> str: ...
    @overload
    def __getitem__(self, at: slice, /) -> list[str]: ...
    def __getitem__(self, at: SupportsIndex | slice, /) -> str | list[str]:
        return (
            list.__getitem__(self, at)
            if isinstance(at, slice) or -len(self) <= at.__index__() < len(self)
            else ""
        )


def _load() -> Any:
    try:
        from voyageai.client_async import AsyncClient  # 0.4 s
    except ImportError as exc:
        hint = "pip install 'groundhook[voyage]', or voyageai itself"
        raise RerankError("the client of Voyage is not installed", hint=hint) from exc
    return AsyncClient


@contextmanager
def _speaking_to() -> Iterator[None]:
    import aiohttp
    import voyageai.error as errors

    try:
        yield
    except (errors.APIConnectionError, errors.Timeout, aiohttp.ClientError) as exc:
        cause = exc.__cause__ or exc
        raise Failed(0, cause.__class__.__name__) from exc
    except errors.VoyageError as exc:
        if exc.http_status == 200:
            with reading(NAME):
                raise ValueError("not JSON") from exc
        raise Failed(exc.http_status or 0, _said(exc.json_body), wait_of(exc.headers)) from exc


def _said(body: Any) -> str:
    detail = body.get("detail") if isinstance(body, dict) else None
    return detail if isinstance(detail, str) else ""


VOYAGE = ProviderType(
    variables=("VOYAGE_API_KEY",),
    host="https://api.voyageai.com/v1",
    model="rerank-2.5",
    max_chars=100_000,
    make=Voyage,
)
