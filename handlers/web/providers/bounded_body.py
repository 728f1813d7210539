"""Size limits for the bodies of `httpx` responses. A module of its own, so that httpx is imported
only with the client that uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from groundhook.core.errors import SourceMalformed
from groundhook.handlers.web.providers.answers import too_large_error


class BoundedStream(httpx.AsyncByteStream):
    """A response's body. Iteration raises SourceError beyond `max_bytes`."""

    def __init__(self, provider: str, stream: httpx.AsyncByteStream, max_bytes: int) -> None:
        self._provider = provider
        self._stream = stream
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > self._max_bytes:
                raise too_large_error(self._provider, self._max_bytes)
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def read_body(provider: str, response: httpx.Response, max_bytes: int) -> bytes:
    """Read the whole body, which the response keeps. Raises SourceError for a body beyond
    `max_bytes`, and SourceMalformed for one that is compressed against the request's
    `accept-encoding`: its size after decompression is not bounded."""
    coding = response.headers.get("content-encoding", "identity")
    if coding.strip().lower() not in ("", "identity"):
        raise SourceMalformed(
            f"{provider!r} sent the answer compressed as {coding[:40]!r}, which was not requested"
        )
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = BoundedStream(provider, response.stream, max_bytes)
    return await response.aread()
