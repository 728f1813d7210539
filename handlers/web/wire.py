"""One exchange with a provider over HTTP: within bounds of time and size, and with every failure in
our words.

aiohttp, and not the library that speaks to everything else here: a search sends one small request,
many turns send theirs at the same time, and that takes it a fifth of the time on the one loop that
they share (`make bench NAME=web`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from groundhook.handlers.web.answers import Reply, late, too_large, unreachable
from groundhook.handlers.web.providers import LARGEST, Access

if TYPE_CHECKING:
    import aiohttp

CONNECTIONS = 100  # at the same time, and kept open for later searches
PIECE = 64 * 1024  # bytes of an answer that are read at once


class Wire:
    """A provider's base URL behind a client that is opened when it is first needed."""

    def __init__(self, provider: str, access: Access, headers: Mapping[str, str]) -> None:
        self._provider = provider
        self._access = access
        self._headers = dict(headers)
        self._client: aiohttp.ClientSession | None = None

    async def exchange(self, method: str, path: str, *, timeout: float, **options: Any) -> Reply:  # noqa: ASYNC109
        """The whole answer, whatever its status. Redirects are not followed: the key is for this
        host. Raises SourceError."""
        import aiohttp

        client = self._opened()
        limits = aiohttp.ClientTimeout(total=None, connect=timeout, sock_read=timeout)
        url = f"{self._access.host.rstrip('/')}/{path}"
        body = bytearray()
        with self._speaking(timeout):
            async with client.request(
                method, url, timeout=limits, allow_redirects=False, **options
            ) as response:
                async for chunk in response.content.iter_chunked(PIECE):
                    body += chunk
                    if len(body) > LARGEST:
                        raise too_large(self._provider, LARGEST)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(status=response.status, headers=headers, body=bytes(body))

    def _opened(self) -> aiohttp.ClientSession:
        if self._client is None:
            import aiohttp  # 0.2 s: not before it is needed

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
    def _speaking(self, timeout: float) -> Iterator[None]:
        import aiohttp

        try:
            yield
        except TimeoutError as exc:
            raise late(self._provider, timeout) from exc
        except (
            aiohttp.ClientError,
            ValueError,
        ) as exc:  # ValueError: what cannot be written into a request
            raise unreachable(self._provider, self._access.host, exc) from exc


def _authorities() -> Any:
    """Who vouches for hosts: the machine's authorities, wherever it keeps them, as for every other
    client here."""
    import httpx2

    return httpx2.create_ssl_context()


def _proxy(host: str) -> str | None:
    """The proxy that the environment names for a host."""
    from urllib.request import getproxies, proxy_bypass  # 20 ms

    parts = urlsplit(host)
    known = getproxies()
    return (
        None if proxy_bypass(parts.hostname or "") else known.get(parts.scheme) or known.get("all")
    )
