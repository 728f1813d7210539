"""The connection to a Qdrant server or cluster: its client, deadline, retries and errors.

A read is retried when the server could not be reached, was busy or was restarting. A write is never
retried here; the caller decides.

If gRPC is preferred, a request to its port first finds out whether Qdrant answers there. As long as
it does not, HTTP is used with a warning: it is only slower, and a closed port stops no search.
"""

from __future__ import annotations

import json
import logging
import math
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import grpc
import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from groundhook.core.app_settings import QdrantSettings
from groundhook.core.error_bodies import shorten_error
from groundhook.core.errors import ConfigError, HostError, StorageError

_Answer = TypeVar("_Answer")
_Call = Callable[[AsyncQdrantClient], Awaitable[_Answer]]

log = logging.getLogger("groundhook")

_PAUSE_S = 0.1  # before the second attempt; doubled before each further one
_LONGEST_PAUSE_S = 2.0
_AGAIN = (429, 502, 503, 504)
_CONNECTIONS = httpx.Limits(max_connections=64, max_keepalive_connections=16)
_PROBE_S = 2.0  # for Qdrant to answer on the gRPC port
_PROBED_S = 60.0  # between two probes of a port that did not answer
# No proxy, as with HTTP. Short pauses, so that a restarted server is found at once: by default gRPC
# waits up to two minutes.
_CHANNEL = {
    "grpc.enable_http_proxy": 0,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.min_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1000,
}
_GRPC_AS_HTTP = {
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


class RequestRefused(StorageError):
    """The server refused. `status` as in HTTP; 404: there is no such collection, 409: there is one
    already. `after_s`: seconds to wait before the next request."""

    def __init__(self, status: int, message: str, hint: str = "", *, after_s: float = 0.0) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.after_s = after_s


class Unreachable(StorageError):
    """No connection, or one that broke. Trying again may help."""


class ServerConnection:
    """The connection of this process to a Qdrant server. `read` and `write` run a call of the
    client. Raise StorageError."""

    def __init__(self, settings: QdrantSettings) -> None:
        self.url = settings.url
        self._settings = settings
        self._clients: dict[bool, AsyncQdrantClient] = {}  # by whether they use gRPC
        self._choosing = anyio.Lock()
        self._grpc = False  # whether gRPC is in use
        self._used_grpc = False  # whether it ever was
        self._probe_at = 0.0  # when to probe the gRPC port again, on the monotonic clock
        self._without_grpc = ""  # why HTTP is used although gRPC is preferred
        self._warned = False

    async def read(self, call: _Call[_Answer]) -> _Answer:
        pause = _PAUSE_S
        for left in range(self._settings.retries, -1, -1):
            wait_s = 0.0
            try:
                return await self._call_once(call)
            except Unreachable:
                if not left:
                    raise
            except RequestRefused as exc:
                wait_s = exc.after_s
                if not left or exc.status not in _AGAIN or wait_s > self._settings.timeout_s:
                    raise
            await anyio.sleep(max(pause, wait_s))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        raise AssertionError("the last try raises or returns")

    async def write(self, call: _Call[_Answer]) -> _Answer:
        return await self._call_once(call)

    async def grpc_problem(self) -> str:
        """Return why HTTP is used although gRPC is preferred; "" otherwise."""
        await self._choose()
        return self._without_grpc

    async def aclose(self) -> None:
        while self._clients:
            _, client = self._clients.popitem()
            await client.close()

    async def _call_once(self, call: _Call[_Answer]) -> _Answer:
        await self._choose()
        by_grpc = self._grpc
        client = self._client(grpc=by_grpc)
        try:
            with self._translate():
                # The client's own timeout is for one read of the connection; this one is for the
                # whole answer.
                with anyio.fail_after(self._settings.timeout_s):
                    answer = await _call_client(client, call)
        except Unreachable:
            if by_grpc:
                # The next request probes the port again.
                self._grpc, self._probe_at = (False, 0.0)
            raise
        if self._without_grpc and not self._warned:
            self._warned = True
            log.warning("HTTP is used for the Qdrant server %r: %s", self.url, self._without_grpc)
        return answer

    async def _choose(self) -> None:
        """Probe the gRPC port, if gRPC is preferred and not in use."""
        if not self._settings.prefer_grpc or self._grpc:
            return
        async with self._choosing:
            if self._grpc or time.monotonic() < self._probe_at:
                return
            self._without_grpc = await self._probe()
            self._grpc = not self._without_grpc
            self._probe_at = time.monotonic() + _PROBED_S
            self._used_grpc |= self._grpc
            if not self._used_grpc:
                # Its channel would go on connecting; no request uses it yet.
                await self._clients.pop(True).close()

    async def _probe(self) -> str:
        """Return why Qdrant does not answer on its gRPC port; "" if it does."""
        port = f"its gRPC port {self._settings.grpc_port}"
        try:
            with anyio.fail_after(min(_PROBE_S, self._settings.timeout_s)):
                await _call_client(self._client(grpc=True), lambda client: client.info())
        except TimeoutError:
            return f"{port} does not answer"
        except grpc.RpcError as exc:
            return f"{port} is not Qdrant's or is closed: {_detail(exc)}"
        return ""

    def _client(self, *, grpc: bool) -> AsyncQdrantClient:
        if grpc not in self._clients:
            self._clients[grpc] = _client(self._settings, grpc=grpc)
        return self._clients[grpc]

    @contextmanager
    def _translate(self) -> Iterator[None]:
        place = f"the Qdrant server {self.url!r}"
        try:
            yield
        except TimeoutError as exc:
            raise StorageError(
                f"{place} did not answer within {self._settings.timeout_s:g} s",
                hint="raise qdrant.timeout_s if it is only slow",
            ) from exc
        except UnexpectedResponse as exc:
            raise self._refused_error(exc.status_code or 0, _reason(exc)) from exc
        except ResourceExhaustedResponse as exc:
            raise self._refused_error(429, exc.message, after_s=exc.retry_after_s) from exc
        except QdrantException as exc:  # a 429 whose Retry-After is a date
            raise self._refused_error(429, str(exc)) from exc
        except grpc.RpcError as exc:
            raise self._failed_error(exc) from exc
        except ResponseHandlingException as exc:
            raise self._unreachable_error(exc.source) from exc
        except (httpx.HTTPError, OSError, json.JSONDecodeError, RecursionError) as exc:
            raise self._unreachable_error(exc) from exc

    def _refused_error(self, status: int, message: str, *, after_s: float = 0.0) -> StorageError:
        place = f"the Qdrant server {self.url!r}"
        if status in (401, 403):
            return RequestRefused(
                status,
                f"{place} refused the key ({status})",
                hint="see qdrant.api_key in agent/agent.yml",
            )
        if "already exists" in message:
            status = 409  # older servers call it 400
        if status == 503:
            return RequestRefused(status, f"{place} is not ready ({status}: {message})")
        return RequestRefused(status, f"{place} answered {status}: {message}", after_s=after_s)

    def _failed_error(self, exc: Any) -> StorageError:
        """Return the error for a gRPC error."""
        if exc.code() == grpc.StatusCode.UNAVAILABLE:
            where = (
                f"the Qdrant server {self.url!r} cannot be reached on port"
                f" {self._settings.grpc_port}"
            )
            return Unreachable(
                f"{where}: {_detail(exc)}",
                hint="see qdrant.url and qdrant.grpc_port in agent/agent.yml",
            )
        return self._refused_error(_GRPC_AS_HTTP.get(exc.code(), 500), _detail(exc))

    def _unreachable_error(self, exc: Exception) -> StorageError:
        place = f"the Qdrant server {self.url!r}"
        if isinstance(exc, httpx.TimeoutException):
            return StorageError(
                f"{place} did not answer within {self._settings.timeout_s:g} s",
                hint="raise qdrant.timeout_s if it is only slow",
            )
        if isinstance(exc, (httpx.TransportError, OSError)):
            if isinstance(exc.__cause__ or exc, ssl.SSLError) or "CERTIFICATE" in str(exc):
                return StorageError(
                    f"{place} cannot be trusted: {exc}",
                    hint="see qdrant.ca_file in agent/agent.yml",
                )
            return Unreachable(
                f"{place} cannot be reached: {exc or type(exc).__name__}",
                hint="see qdrant.url in agent/agent.yml",
            )
        return StorageError(
            f"{place} answered with something other than Qdrant's format",
            hint="see qdrant.url in agent/agent.yml",
        )


async def _call_client(client: AsyncQdrantClient, call: _Call[_Answer]) -> _Answer:
    try:
        return await call(client)
    except anyio.get_cancelled_exc_class():
        # gRPC raises its own cancellation error, which no cancel scope catches: without this a
        # deadline would end the whole task.
        await anyio.lowlevel.checkpoint_if_cancelled()
        raise


def _reason(exc: UnexpectedResponse) -> str:
    """Return the reason in an error response, or its beginning if it is not Qdrant's."""
    try:
        return str(exc.structured()["status"]["error"])
    except (ValueError, KeyError, TypeError):
        return exc.content[:200].decode("utf-8", "replace") or exc.reason_phrase


def _detail(exc: Any) -> str:
    """Return the message of a gRPC error; of several failed connections the last one's."""
    return (
        str(exc.details() or exc.code().name)
        .rpartition("last error: ")[2]
        .removeprefix("UNKNOWN: ")
    )


def _client(settings: QdrantSettings, *, grpc: bool) -> AsyncQdrantClient:
    hooks = {"response": [shorten_error]}
    options: dict[str, Any] = {"limits": _CONNECTIONS, "trust_env": False, "event_hooks": hooks}
    channel: dict[str, Any] = dict(_CHANNEL)
    headers: dict[str, str] = {}
    if settings.ca_file:
        try:
            options["verify"] = ssl.create_default_context(cafile=settings.ca_file)
            channel["root_certificates"] = Path(settings.ca_file).read_bytes()
        except (OSError, ssl.SSLError) as exc:
            raise ConfigError(f"qdrant.ca_file {settings.ca_file!r} cannot be used: {exc}") from exc
    if settings.api_key and settings.url.startswith("http://"):
        # As `api_key` the client would print a warning to the terminal.
        headers["api-key"] = settings.api_key
    try:
        return AsyncQdrantClient(
            url=settings.url,
            api_key=(settings.api_key or None) if not headers else None,
            headers=headers or None,
            timeout=math.ceil(settings.timeout_s) + 1,  # ours ends first
            prefer_grpc=grpc,
            grpc_port=settings.grpc_port,
            grpc_options=channel,
            check_compatibility=False,
            **options,
        )
    except HostError:
        raise
    except ValueError as exc:
        raise ConfigError(
            f"qdrant.url {settings.url!r} is not an address: {exc}",
            hint="such as https://host:6333",
        ) from exc
