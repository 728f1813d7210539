"""The HTTP client of a provider: within limits of time and size, with every failure raised as
SourceError.

It uses aiohttp instead of httpx, which all other clients here use: many turns send one small
request each at the same time on one event loop, and aiohttp needs a fifth of the time for that
(`make bench NAME=web`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from groundhook.core.error_bodies import MOST_BYTES
from groundhook.core.errors import SourceNotConfigured
from groundhook.core.extras import extra, import_aside
from groundhook.core.types.web_providers import WebAccess
from groundhook.handlers.web.providers.answers import (
    HttpReply,
    timeout_error,
    too_large_error,
    unreachable_error,
)
from groundhook.handlers.web.providers.provider_helpers import MAX_BYTES

if TYPE_CHECKING:
    import aiohttp

CONNECTIONS = 100  # at the same time; they stay open for later searches
CHUNK = 64 * 1024  # bytes read at once


class ProviderClient:
    """A client for a provider's base URL, opened by the first request."""

    def __init__(self, provider: str, access: WebAccess, headers: Mapping[str, str]) -> None:
        self._provider = provider
        self._access = access
        self._headers = dict(headers)
        self._client: aiohttp.ClientSession | None = None

    async def request(self, method: str, path: str, *, timeout: float, **options: Any) -> HttpReply:  # noqa: ASYNC109
        """Send a request and return the whole answer, whatever its status. `timeout` is in seconds.
        Redirects are not followed, since the key is for this host only. Raises SourceError."""
        await import_aside("aiohttp")
        client = self._open_session()
        import aiohttp

        limits = aiohttp.ClientTimeout(total=None, connect=timeout, sock_read=timeout)
        url = f"{self._access.host.rstrip('/')}/{path}"
        body = bytearray()
        with self._translate_errors(timeout):
            async with client.request(
                method, url, timeout=limits, allow_redirects=False, **options
            ) as response:
                async for chunk in response.content.iter_chunked(CHUNK):
                    body += chunk
                    if response.status >= 300 and len(body) >= MOST_BYTES:
                        break
                    if len(body) > MAX_BYTES:
                        raise too_large_error(self._provider, MAX_BYTES)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpReply(status=response.status, headers=headers, body=bytes(body))

    def _open_session(self) -> aiohttp.ClientSession:
        if self._client is None:
            with extra("web", f"asking {self._provider!r}", SourceNotConfigured):
                import aiohttp

            secure = urlsplit(self._access.host).scheme == "https"
            self._client = aiohttp.ClientSession(
                headers=self._headers,
                connector=aiohttp.TCPConnector(
                    limit=CONNECTIONS, ssl=_authorities() if secure else True
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=_proxy(self._access.host),
            )
            self._access.closing(self._client.close)
        return self._client

    @contextmanager
    def _translate_errors(self, timeout: float) -> Iterator[None]:
        import aiohttp

        try:
            yield
        except TimeoutError as exc:
            raise timeout_error(self._provider, timeout) from exc
        # ValueError: a URL or header that cannot be sent.
        except (aiohttp.ClientError, ValueError) as exc:
            raise unreachable_error(self._provider, self._access.host, exc) from exc


def _authorities() -> Any:
    """Return the TLS context with the machine's certificate authorities, found as for every other
    client here."""
    import httpx2

    return httpx2.create_ssl_context()


def _proxy(host: str) -> str | None:
    """Return the proxy that the environment configures for a host."""
    from urllib.request import getproxies, proxy_bypass  # 20 ms

    parts = urlsplit(host)
    known = getproxies()
    return (
        None if proxy_bypass(parts.hostname or "") else known.get(parts.scheme) or known.get("all")
    )
