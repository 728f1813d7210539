"""One exchange with a provider over HTTP: within bounds of time and size, and with every failure in our words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from handlers.web.answers import Reply, late, too_large, unreachable
from handlers.web.providers import LARGEST, Access

if TYPE_CHECKING:
    import httpx2

CONNECTIONS = 100  # at the same time, and kept open for later searches


class Wire:
    """A provider's base URL behind a client that is opened when it is first needed."""

    def __init__(self, provider: str, access: Access, headers: Mapping[str, str]) -> None:
        self._provider = provider
        self._access = access
        self._headers = dict(headers)
        self._client: httpx2.AsyncClient | None = None

    async def exchange(self, method: str, path: str, *, timeout: float, **options: Any) -> Reply:  # noqa: ASYNC109  (of one read)
        """The whole answer, whatever its status. Redirects are not followed: the key is for this host. Raises SourceError."""
        client = self._opened()
        body = bytearray()
        with self._speaking(timeout):
            async with client.stream(method, path, timeout=timeout, **options) as response:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > LARGEST:
                        raise too_large(self._provider, LARGEST)
        return Reply(status=response.status_code, headers=dict(response.headers), body=bytes(body))

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            import httpx2  # 0.16 s: not before it is needed

            host = self._access.host.rstrip("/")
            limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
            self._client = httpx2.AsyncClient(base_url=host, headers=self._headers, limits=limits)
            self._access.closing(self._client.aclose)
        return self._client

    @contextmanager
    def _speaking(self, timeout: float) -> Iterator[None]:
        import httpx2

        try:
            yield
        except httpx2.TimeoutException as exc:
            raise late(self._provider, timeout) from exc
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            raise unreachable(self._provider, self._access.host, exc) from exc
