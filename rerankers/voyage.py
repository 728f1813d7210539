"""Provider of Voyage's reranking models through Voyage's own client. The client is imported by the
first call.

The service truncates texts that are too long (`truncation`). The client has no total deadline, its
errors may raise when they are printed, and it looks texts up by the positions in the answer without
checking them. API: https://docs.voyageai.com/reference/reranker-api
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, SupportsIndex, overload

import anyio

from groundhook.core.errors import RerankError
from groundhook.core.extras import extra
from groundhook.core.retry_after import retry_after_s
from groundhook.core.voyage_answers import AnswerTooLarge, bounded_answers
from groundhook.rerankers.provider_contract import (
    MAX_BYTES,
    MOST_VALUES,
    ProviderType,
    RerankerAccess,
    RerankRequestFailed,
    Scores,
    parse_index,
    parse_score,
    parsing,
)

NAME = "voyage"


class VoyageReranking:
    """A `rerankers.provider_contract.Provider` that makes a client for each call."""

    def __init__(self, access: RerankerAccess) -> None:
        self._access = access

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        make = await anyio.to_thread.run_sync(_load)
        # A client for each call: making one is cheap, and it opens a connection for each request.
        client = make(
            api_key=self._access.key, timeout=timeout_s, base_url=self._access.host.rstrip("/")
        )
        with _translate_errors(), parsing(NAME):
            async with bounded_answers(MAX_BYTES, MOST_VALUES):
                answer = await client.rerank(query, _Texts(texts), model=model, truncation=True)
            return [
                (parse_index(result.index), parse_score(result.relevance_score))
                for result in answer.results
            ]


class _Texts(list[str]):
    """Texts that return "" for a position that does not exist, so that the client does not raise;
    such positions are dropped afterwards."""

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
    with extra("voyage", "reranking with Voyage", RerankError):
        from voyageai.client_async import AsyncClient  # 0.4 s
    return AsyncClient


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise the client's errors as RequestFailed, and unreadable answers as RerankError."""
    import aiohttp
    import voyageai.error as errors

    try:
        yield
    except AnswerTooLarge as exc:
        raise RerankError(f"{NAME!r} answered with {exc}") from exc
    except (errors.APIConnectionError, errors.Timeout, aiohttp.ClientError) as exc:
        cause = exc.__cause__ or exc
        raise RerankRequestFailed(0, cause.__class__.__name__) from exc
    except errors.VoyageError as exc:
        if exc.http_status == 200:
            with parsing(NAME):
                raise ValueError("not JSON") from exc
        raise RerankRequestFailed(
            exc.http_status or 0, _reason(exc.json_body), retry_after_s(exc.headers)
        ) from exc


def _reason(body: Any) -> str:
    """Return the `detail` of an error answer, or "" if it has none."""
    detail = body.get("detail") if isinstance(body, dict) else None
    return detail if isinstance(detail, str) else ""


VOYAGE = ProviderType(
    variables=("VOYAGE_API_KEY",),
    host="https://api.voyageai.com/v1",
    model="rerank-2.5",
    max_chars=100_000,
    make=VoyageReranking,
)
