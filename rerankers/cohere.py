"""Cohere's reranking models, through its own client (v2), which is imported when the first items
are judged.

The client retries by itself unless told not to, has no deadline for the whole, and makes of an
answer of the wrong shape a value whose parts are None. API:
https://docs.cohere.com/reference/rerank
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from cohere import AsyncClientV2

NAME = "cohere"


class Cohere:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._client: AsyncClientV2 | None = None

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        client = self._client = self._client or await self._opened()
        with _speaking_to():
            answer = await client.rerank(
                model=model,
                query=query,
                documents=list(texts),
                request_options={"timeout_in_seconds": _whole(timeout_s)},
            )
        with reading(NAME):
            return [
                (index_of(result.index), score_of(result.relevance_score))
                for result in answer.results
            ]

    async def _opened(self) -> AsyncClientV2:
        make = await anyio.to_thread.run_sync(_load)
        import httpx

        http = httpx.AsyncClient()
        self._access.closing(http.aclose)
        client: AsyncClientV2 = make(
            api_key=self._access.key,
            base_url=self._access.host,
            max_retries=0,
            httpx_client=http,
            client_name="groundhook",
        )
        return client


def _load() -> Any:
    try:
        from cohere import AsyncClientV2
    except ImportError as exc:
        raise RerankError(
            "the client of Cohere is not installed",
            hint="pip install 'groundhook[cohere]', or cohere itself",
        ) from exc
    return AsyncClientV2


def _whole(seconds: float) -> int:
    return max(1, int(seconds + 0.999))


@contextmanager
def _speaking_to() -> Iterator[None]:
    import httpx
    from cohere.core.api_error import ApiError

    try:
        yield
    except ApiError as exc:
        if exc.status_code == 200:
            with reading(NAME):
                raise ValueError("not JSON") from exc
        raise Failed(exc.status_code or 0, _said(exc.body), wait_of(exc.headers)) from exc
    except httpx.TimeoutException as exc:
        raise Failed(0, "no answer in time") from exc
    except httpx.HTTPError as exc:
        raise Failed(0, str(exc) or exc.__class__.__name__) from exc
    except (
        ValueError,
        TypeError,
        AttributeError,
    ) as exc:  # the client builds its values of whatever arrived
        with reading(NAME):
            raise ValueError("the wrong shape") from exc


def _said(body: Any) -> str:
    said = body.get("message") if isinstance(body, dict) else getattr(body, "message", body)
    return said if isinstance(said, str) else ""


COHERE = ProviderType(
    variables=("COHERE_API_KEY", "CO_API_KEY"),
    host="https://api.cohere.com",
    model="rerank-v3.5",
    max_chars=16_000,
    make=Cohere,
)
