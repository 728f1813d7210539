"""Bodies of answers that are no success. The clients of services read them whole, whatever their
size, to find a reason in them; here they are cut before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

MOST_BYTES = 64 * 1024
# For a client with these hooks: the size of a compressed body says nothing about its text.
UNCOMPRESSED = {"accept-encoding": "identity"}
# A hook of a client for its responses.
Shorten = Callable[[Any], Awaitable[None]]


async def shorten_error(response: Any) -> None:
    """Keep the beginning of an answer's body, MOST_BYTES, unless its status is 2xx; nothing of one
    that is compressed. A hook for responses of a client of `httpx` or `httpx2`."""
    if not response.is_success:
        await shorten(response, MOST_BYTES)


async def shorten(response: Any, most: int) -> None:
    """Keep the beginning of an answer's body, whatever its status: at most `most` bytes."""
    body = bytearray()
    coding = response.headers.pop("content-encoding", "identity")
    try:
        if coding.strip().lower() == "identity":
            async for piece in response.stream:
                body += piece
                if len(body) >= most:
                    break
    finally:
        await response.stream.aclose()
    # Of the same library: each reads streams of its own classes alone.
    response.stream = type(response)(200, content=bytes(body[:most])).stream
