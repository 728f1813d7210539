"""The way to a Qdrant server or cluster: one client, its deadline, what is tried again, and its errors in our words.

With `server_filter` and `server` the only place that imports `qdrant_client`. Reads are tried again when the server
could not be reached, was busy or was restarting; writes never are: whoever asked decides.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import grpc
import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from host.config.schema import QdrantSettings
from host.errors import ConfigError, HostError, StorageError

Answer = TypeVar("Answer")
Call = Callable[[AsyncQdrantClient], Awaitable[Answer]]

_PAUSE_S = 0.1  # before the first try again; twice as long before each further one
_LONGEST_PAUSE_S = 2.0
_AGAIN = (429, 502, 503, 504)
_CONNECTIONS = httpx.Limits(max_connections=64, max_keepalive_connections=16)
_GRPC_AS_HTTP = {
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


class Refused(StorageError):
    """The server said no. `status` as in HTTP; 404: there is no such collection, 409: there is one already."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class Unreachable(StorageError):
    """No connection, or one that broke. Trying again may help."""


class ServerLink:
    """A Qdrant server as this process speaks to it. `read` and `write` take a call of the client. Raise StorageError."""

    def __init__(self, settings: QdrantSettings) -> None:
        self.url = settings.url
        self._settings = settings
        self._client: AsyncQdrantClient | None = None

    async def read(self, call: Call[Answer]) -> Answer:
        pause = _PAUSE_S
        for left in range(self._settings.retries, -1, -1):
            try:
                return await self._once(call)
            except StorageError as exc:
                if not left or not (isinstance(exc, Unreachable) or (isinstance(exc, Refused) and exc.status in _AGAIN)):
                    raise
            await anyio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        raise AssertionError("the last try raises or returns")

    async def write(self, call: Call[Answer]) -> Answer:
        return await self._once(call)

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _once(self, call: Call[Answer]) -> Answer:
        client = self._connected()
        with self._speaking():
            # The client's own timeout is for one read of the connection; this one is for the whole answer.
            with anyio.fail_after(self._settings.timeout_s):
                return await call(client)

    def _connected(self) -> AsyncQdrantClient:
        if self._client is None:
            self._client = _client(self._settings)
        return self._client

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        place = f"the Qdrant server {self.url!r}"
        try:
            yield
        except TimeoutError as exc:
            raise StorageError(
                f"{place} did not answer within {self._settings.timeout_s:g} s", hint="raise qdrant.timeout_s if it is only slow"
            ) from exc
        except UnexpectedResponse as exc:
            raise self._refused(exc.status_code or 0, _said(exc)) from exc
        except ResourceExhaustedResponse as exc:
            raise self._refused(429, str(exc)) from exc
        except grpc.RpcError as exc:
            raise self._refused(_GRPC_AS_HTTP.get(exc.code(), 500), str(exc.details())) from exc
        except ResponseHandlingException as exc:
            raise self._unreachable(exc.source) from exc
        except (httpx.HTTPError, OSError, json.JSONDecodeError) as exc:
            raise self._unreachable(exc) from exc

    def _refused(self, status: int, said: str) -> StorageError:
        place = f"the Qdrant server {self.url!r}"
        if status in (401, 403):
            return Refused(status, f"{place} refused the key ({status})", hint="see qdrant.api_key in agent/agent.yml")
        if "already exists" in said:
            status = 409  # older servers call it 400
        if status == 503:
            return Refused(status, f"{place} is not ready ({status}: {said})")
        return Refused(status, f"{place} answered {status}: {said}")

    def _unreachable(self, exc: Exception) -> StorageError:
        place = f"the Qdrant server {self.url!r}"
        if isinstance(exc, httpx.TimeoutException):
            return StorageError(
                f"{place} did not answer within {self._settings.timeout_s:g} s", hint="raise qdrant.timeout_s if it is only slow"
            )
        if isinstance(exc, (httpx.TransportError, OSError)):
            if isinstance(exc.__cause__ or exc, ssl.SSLError) or "CERTIFICATE" in str(exc):
                return StorageError(f"{place} cannot be trusted: {exc}", hint="see qdrant.ca_file in agent/agent.yml")
            return Unreachable(
                f"{place} cannot be reached: {exc or type(exc).__name__}", hint="see qdrant.url in agent/agent.yml"
            )
        return StorageError(f"{place} answered something else than Qdrant does", hint="see qdrant.url in agent/agent.yml")


def _said(exc: UnexpectedResponse) -> str:
    """The sentence in an answer that refuses; its beginning where it is none of Qdrant's."""
    try:
        return str(exc.structured()["status"]["error"])
    except (ValueError, KeyError, TypeError):
        return exc.content[:200].decode("utf-8", "replace") or exc.reason_phrase


def _client(settings: QdrantSettings) -> AsyncQdrantClient:
    options: dict[str, Any] = {"limits": _CONNECTIONS, "trust_env": False}
    headers: dict[str, str] = {}
    if settings.ca_file:
        if settings.prefer_grpc:
            raise ConfigError("qdrant.ca_file holds for HTTP only", hint="leave out qdrant.prefer_grpc, or qdrant.ca_file")
        try:
            options["verify"] = ssl.create_default_context(cafile=settings.ca_file)
        except (OSError, ssl.SSLError) as exc:
            raise ConfigError(f"qdrant.ca_file {settings.ca_file!r} cannot be used: {exc}") from exc
    if settings.api_key and settings.url.startswith("http://"):
        headers["api-key"] = settings.api_key  # given as the key, the client would write a warning of its own to the terminal
    try:
        return AsyncQdrantClient(
            url=settings.url,
            api_key=(settings.api_key or None) if not headers else None,
            headers=headers or None,
            timeout=max(1, round(settings.timeout_s)),
            prefer_grpc=settings.prefer_grpc,
            grpc_port=settings.grpc_port,
            check_compatibility=False,
            **options,
        )
    except HostError:
        raise
    except ValueError as exc:
        raise ConfigError(f"qdrant.url {settings.url!r} is not an address: {exc}", hint="such as https://host:6333") from exc
