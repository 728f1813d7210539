"""The HTTP client for hooks and page reading: declared hosts, public addresses, and limits of time
and size.

    async with GuardedClient(settings.http) as client:
        answer = await client.request("GET", "https://api.example.org/v1", query={"q": "tea"})
        answer.status, answer.headers, answer.value

A name is resolved once and each of its addresses is checked (`core.types.hosts`); the
connection goes to a checked address, so DNS rebinding has no effect. Redirects are new requests and
are checked again. No cookies are kept, no proxy or certificate of the environment is used, and the
caller's headers are not sent to other hosts after a redirect.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import cache
from typing import Any, Self

import anyio
import httpcore2
import httpx2

from groundhook.core.errors import (
    NotPermitted,
    SourceError,
    SourceMalformed,
    SourceTimeout,
    UsageError,
)
from groundhook.core.settings import HttpSettings
from groundhook.core.types.hosts import HostOrAddress, declares, parse_host_rule
from groundhook.core.types.web import WebAnswer
from groundhook.host.web_client.guard import FAILURES, Guard, Resolve, look_up
from groundhook.host.web_client.request import OutgoingRequest, redirected

CONNECTIONS = 16
CODINGS = frozenset({"identity", "gzip", "deflate"})


class GuardedClient:
    """Sends requests to the hosts that `settings` declares and to no others. Usable by many tasks
    of one event loop; leaving it closes every connection.

    `resolve` and `trust` replace the machine's resolver and certificate authorities.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        resolve: Resolve = look_up,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._rules = tuple(parse_host_rule(entry) for entry in settings.hosts)
        self._guard = Guard(self._rules, resolve)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trust or authorities(),
            max_connections=CONNECTIONS,
            max_keepalive_connections=CONNECTIONS,
            keepalive_expiry=5.0,  # the name is resolved and checked again after that
            network_backend=self._guard,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # Shielded with a bound: a host is often closed because its task was cancelled.
        with anyio.move_on_after(5, shield=True):
            await self._pool.aclose()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: str | bytes | None = None,
        json: Any = None,
        timeout_ms: float | None = None,
    ) -> WebAnswer:
        """Send a request, follow redirects, and return the whole answer. `query` is added to the
        URL's own; `body` is sent as it is, or `json` as JSON; `timeout_ms` can shorten the timeout
        of `settings` but not extend it.

        Raises UsageError for an invalid request; NotPermitted for a host or an address that is not
        declared; SourceTimeout if the answer is not complete in time; SourceMalformed for invalid
        HTTP; SourceError if the answer is too large, redirects too often, or the host cannot be
        reached.
        """
        outgoing = OutgoingRequest.made(
            method, url, headers=headers, query=query, body=body, json=json
        )
        limit = self._effective_timeout_ms(timeout_ms)
        # One deadline around everything: the library's own timeouts begin again with each byte.
        with anyio.move_on_after(limit / 1000):
            return await self._follow_redirects(outgoing)
        raise SourceTimeout(
            f"{str(outgoing.host)!r} did not answer in full within {limit:g} ms",
            hint="raise http.timeout_ms" if limit == self._settings.timeout_ms else "",
        )

    async def check(self, url: str) -> None:
        """Raise UsageError, NotPermitted or SourceError if no request is sent to an address."""
        outgoing = OutgoingRequest.made("GET", url, headers=None, query=None, body=None, json=None)
        self._check_declared(outgoing, outgoing.host)
        await self._guard.allowed_addresses(outgoing.host, outgoing.port)

    def _effective_timeout_ms(self, timeout_ms: float | None) -> float:
        if timeout_ms is None:
            return self._settings.timeout_ms
        if (
            isinstance(timeout_ms, bool)
            or not isinstance(timeout_ms, int | float)
            or not timeout_ms > 0  # also refuses NaN
        ):
            raise UsageError(
                f"a timeout must be a positive number of milliseconds, not {timeout_ms!r}"
            )
        return min(timeout_ms, self._settings.timeout_ms)

    async def _follow_redirects(self, outgoing: OutgoingRequest) -> WebAnswer:
        first_host = outgoing.host
        for _ in range(self._settings.redirects + 1):
            self._check_declared(outgoing, first_host)
            with _translate_errors(outgoing.host):
                answer = await self._send(outgoing)
            if isinstance(answer, WebAnswer):
                return answer
            outgoing = answer
        raise SourceError(
            f"{str(first_host)!r} redirected more than {self._settings.redirects} times",
            hint="raise http.redirects",
        )

    def _check_declared(self, outgoing: OutgoingRequest, first_host: HostOrAddress) -> None:
        """Raise NotPermitted unless the request's host and port are declared."""
        if declares(self._rules, outgoing.host, outgoing.port):
            return
        host = f"{str(outgoing.host)!r}"
        subject = (
            f"the host {host}"
            if outgoing.host == first_host
            else f"{str(first_host)!r} redirects to {host}, which"
        )
        port = "" if outgoing.url.port is None else f" on port {outgoing.port}"
        raise NotPermitted(
            f"{subject} is not declared{port}",
            hint=f"to allow it, add {outgoing.declaration!r} to http.hosts in package.yao",
        )

    async def _send(self, outgoing: OutgoingRequest) -> WebAnswer | OutgoingRequest:
        """Send one request and return its answer, or the request that it redirects to."""
        raw = await self._pool.handle_async_request(outgoing.request())
        response = httpx2.Response(raw.status, headers=raw.headers, stream=_Stream(raw))
        try:
            # With `redirects: 0` the caller gets the redirect itself.
            onward = redirected(outgoing, response) if self._settings.redirects else None
            return onward or await self._read(outgoing, response)
        finally:
            with anyio.move_on_after(5, shield=True):
                await response.aclose()

    async def _read(self, outgoing: OutgoingRequest, response: httpx2.Response) -> WebAnswer:
        # Only codings that were requested: the size after another decompression is not limited.
        coding = response.headers.get("content-encoding", "identity")
        if not {each.strip().lower() for each in coding.split(",")} <= CODINGS:
            raise SourceMalformed(
                f"{str(outgoing.host)!r} sent the answer compressed as {coding[:40]!r}, which was"
                " not requested"
            )
        max_bytes = self._settings.max_kb * 1024
        body = bytearray()
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                body += chunk
                # Counted after decompression, since a small body may expand without end.
                if len(body) > max_bytes:
                    raise SourceError(
                        f"{str(outgoing.host)!r} answered with more than"
                        f" {self._settings.max_kb} kB",
                        hint="raise http.max_kb",
                    )
        headers = {name.lower(): value for name, value in response.headers.items()}
        return WebAnswer(
            url=str(outgoing.url), status=response.status_code, headers=headers, body=bytes(body)
        )


class _Stream(httpx2.AsyncByteStream):
    """The body of an answer as received."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._response.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _translate_errors(host: HostOrAddress) -> Iterator[None]:
    """Raise the HTTP libraries' errors as SourceError."""
    try:
        yield
    except (httpcore2.ProtocolError, httpx2.DecodingError) as exc:
        raise SourceMalformed(f"{str(host)!r} did not answer with valid HTTP: {exc}") from exc
    except FAILURES as exc:
        why = f": {exc}" if str(exc) else ""
        raise SourceError(f"{str(host)!r} could not be reached{why}") from exc


@cache
def authorities() -> ssl.SSLContext:
    """Return the TLS context with the machine's certificate authorities, read once (20 ms).
    Authorities from environment variables are ignored."""
    return httpx2.create_ssl_context(trust_env=False)
