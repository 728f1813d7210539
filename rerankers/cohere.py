"""Provider of Cohere's reranking models through Cohere's own client (v2). The client is imported by
the first call.

The client retries unless `max_retries` is 0, has no total deadline, and turns an answer of the
wrong shape into a value whose fields are None. API: https://docs.cohere.com/reference/rerank
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio

from groundhook.core.error_bodies import UNCOMPRESSED, shorten_error
from groundhook.core.errors import RerankError
from groundhook.core.extras import extra
from groundhook.core.json_text import count_values
from groundhook.core.retry_after import retry_after_s
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

if TYPE_CHECKING:
    import httpx
    from cohere import AsyncClientV2

NAME = "cohere"


class Cohere:
    """A `rerankers.provider_contract.Provider` with one HTTP client, opened by the first call."""

    def __init__(self, access: RerankerAccess) -> None:
        self._access = access
        self._client: AsyncClientV2 | None = None

    async def judge(
        self, model: str, query: str, texts: Sequence[str], timeout_s: float, /
    ) -> Scores:
        client = self._client = self._client or await self._open_client()
        with _translate_errors():
            answer = await client.rerank(
                model=model,
                query=query,
                documents=list(texts),
                request_options={"timeout_in_seconds": _whole_seconds(timeout_s)},
            )
        with parsing(NAME):
            return [
                (parse_index(result.index), parse_score(result.relevance_score))
                for result in answer.results
            ]

    async def _open_client(self) -> AsyncClientV2:
        make = await anyio.to_thread.run_sync(_load)  # the import takes a while
        import httpx

        class Bounded(httpx.AsyncHTTPTransport):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                response = await super().handle_async_request(request)
                await shorten_error(response)
                try:
                    body = await _read_bounded(response)
                finally:
                    await response.aclose()
                return httpx.Response(response.status_code, headers=response.headers, content=body)

        http = httpx.AsyncClient(transport=Bounded(), headers=UNCOMPRESSED)
        self._access.closing(http.aclose)
        client: AsyncClientV2 = make(
            api_key=self._access.key,
            base_url=self._access.host,
            max_retries=0,
            httpx_client=http,
            client_name="groundhook",
        )
        return client


async def _read_bounded(response: httpx.Response) -> bytes:
    """Return the body, which the client would read and parse whatever its size. Raises
    RerankError."""
    if response.headers.get("content-encoding", "identity") != "identity":
        raise RerankError(f"{NAME!r} answered with compressed data, which was not asked for")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > MAX_BYTES:
            raise RerankError(f"{NAME!r} answered with more than {MAX_BYTES // 1024} kB")
    if count_values(body) > MOST_VALUES:
        raise RerankError(f"{NAME!r} answered with far more values than a ranking has")
    return bytes(body)


def _load() -> Any:
    with extra("cohere", "reranking with Cohere", RerankError):
        from cohere import AsyncClientV2
    return AsyncClientV2


def _whole_seconds(seconds: float) -> int:
    """Return the seconds rounded up, at least 1: the client accepts only whole seconds."""
    return max(1, int(seconds + 0.999))


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise the client's errors as RequestFailed, and unreadable answers as RerankError."""
    import httpx
    from cohere.core.api_error import ApiError

    try:
        yield
    except ApiError as exc:
        if exc.status_code == 200:
            with parsing(NAME):
                raise ValueError("not JSON") from exc
        raise RerankRequestFailed(
            exc.status_code or 0, _reason(exc.body), retry_after_s(exc.headers)
        ) from exc
    except httpx.TimeoutException as exc:
        raise RerankRequestFailed(0, "no answer in time") from exc
    except httpx.HTTPError as exc:
        raise RerankRequestFailed(0, str(exc) or exc.__class__.__name__) from exc
    # The client builds its values from the answer without checking them.
    except (ValueError, TypeError, AttributeError, RecursionError) as exc:
        with parsing(NAME):
            raise ValueError("the wrong shape") from exc


def _reason(body: Any) -> str:
    """Return the `message` of an error answer, or "" if it has none."""
    message = body.get("message") if isinstance(body, dict) else getattr(body, "message", body)
    return message if isinstance(message, str) else ""


COHERE = ProviderType(
    variables=("COHERE_API_KEY", "CO_API_KEY"),
    host="https://api.cohere.com",
    model="rerank-v3.5",
    max_chars=16_000,
    make=Cohere,
)
