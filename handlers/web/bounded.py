"""Bodies of `httpx` answers that end when they grow too large. Imported with the client that needs
it, which takes a while."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from groundhook.handlers.web.answers import too_large
from groundhook.host.core.errors import SourceMalformed


class Bounded(httpx.AsyncByteStream):
    """The body of an answer, up to `most` bytes; SourceError is raised beyond."""

    def __init__(self, provider: str, stream: httpx.AsyncByteStream, most: int) -> None:
        self._provider = provider
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > self._most:
                raise too_large(self._provider, self._most)
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def body_of(provider: str, response: httpx.Response, most: int) -> bytes:
    """The whole body, which the response keeps. Raises SourceError for one that is too large, or
    compressed unasked: what is compressed may grow without end."""
    coding = response.headers.get("content-encoding", "identity")
    if coding.strip().lower() not in ("", "identity"):
        raise SourceMalformed(
            f"{provider!r} answered compressed as {coding[:40]!r}, which was not asked for"
        )
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = Bounded(provider, response.stream, most)
    return await response.aread()
