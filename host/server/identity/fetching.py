"""Fetches the key sets of identity providers from the configured addresses, with small limits of
size and time."""

from __future__ import annotations

from urllib.parse import urlsplit

import anyio
import httpx2

from groundhook.core.errors import SourceError
from groundhook.host.server.identity.client_addresses import is_loopback

LARGEST = 256 * 1024
SECONDS = 5


async def fetch_key_set(url: str) -> bytes:
    """Return the body of an address. Raises SourceError; an address without encryption must be on
    this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise SourceError(f"the key set {url!r} must be fetched with https")
    body = bytearray()
    try:
        with anyio.fail_after(SECONDS):
            async with (
                # The configured address alone: no redirect, and no proxy of the environment.
                httpx2.AsyncClient(follow_redirects=False, trust_env=False) as client,
                client.stream("GET", url) as answer,
            ):
                answer.raise_for_status()
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > LARGEST:
                        raise SourceError(f"the key set {url!r} is larger than {LARGEST} bytes")
    except (httpx2.HTTPError, TimeoutError) as exc:
        raise SourceError(f"the key set {url!r} cannot be fetched: {exc}") from exc
    return bytes(body)
