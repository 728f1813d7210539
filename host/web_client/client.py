"""The only way from a hook to the web: to declared hosts, at public addresses, within limits of
time and size.

    async with GuardedClient(settings.http) as client:
        answer = await client.request("GET", "https://api.example.org/v1", query={"q": "tea"})
        answer.status, answer.headers, answer.value

A name is resolved once and every address it leads to is judged (`host.core.types.hosts`); the
connection goes to an address that was judged, so a name that changes its mind in between changes
nothing. Redirects are new requests and are judged again. No cookies are kept, no proxy or
certificate of the environment is used, and what the caller's headers say stays with the host that
they were meant for.
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

from groundhook.host.core.errors import (
    NotPermitted,
    SourceError,
    SourceMalformed,
    SourceTimeout,
    UsageError,
)
from groundhook.host.core.settings import HttpSettings
from groundhook.host.core.types.hosts import Host, declares, parse_declared
from groundhook.host.core.types.web import WebAnswer
from groundhook.host.web_client.guard import FAILURES, Guard, Resolve, look_up
from groundhook.host.web_client.request import Outgoing, redirected

CONNECTIONS = 16
CODINGS = frozenset({"identity", "gzip", "deflate"})


class GuardedClient:
    """Speaks to the hosts that `settings` declares and to no other. Serves many tasks of one event
    loop; leaving it closes every connection.

    `resolve` and `trust` (the authorities that vouch for hosts) are inputs for those who need
    others than the machine's.
    """

    def __init__(
        self,
        settings: HttpSettings,
        *,
        resolve: Resolve = look_up,
        trust: ssl.SSLContext | None = None,
    ) -> None:
        self._settings = settings
        self._rules = tuple(parse_declared(entry) for entry in settings.hosts)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trust or authorities(),
            max_connections=CONNECTIONS,
            max_keepalive_connections=CONNECTIONS,
            keepalive_expiry=5.0,
            network_backend=Guard(self._rules, resolve),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
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
        """Ask, follow redirects, and read the whole answer. `query` is added to the URL's own;
        `body` is sent as it is, or `json` as JSON; `timeout_ms` shortens the time of `settings`,
        never extends it.

        Raises UsageError for what is no request; NotPermitted for a host or an address that is not
        declared; SourceTimeout when the answer is not whole in time; SourceMalformed when it is no
        HTTP; SourceError when it is too large, redirects too often, or cannot be had.
        """
        outgoing = Outgoing.made(method, url, headers=headers, query=query, body=body, json=json)
        limit = self._patience(timeout_ms)
        with anyio.move_on_after(limit / 1000):
            return await self._follow(outgoing)
        raise SourceTimeout(
            f"{str(outgoing.host)!r} did not answer in full within {limit:g} ms",
            hint="the limit is http.timeout_ms" if limit == self._settings.timeout_ms else "",
        )

    def _patience(self, timeout_ms: float | None) -> float:
        if timeout_ms is None:
            return self._settings.timeout_ms
        if (
            isinstance(timeout_ms, bool)
            or not isinstance(timeout_ms, int | float)
            or not timeout_ms > 0
        ):
            raise UsageError(f"a timeout is a positive number of milliseconds, not {timeout_ms!r}")
        return min(timeout_ms, self._settings.timeout_ms)

    async def _follow(self, outgoing: Outgoing) -> WebAnswer:
        asked = outgoing.host
        for _ in range(self._settings.redirects + 1):
            self._permit(outgoing, asked)
            with _speaking_to(outgoing.host):
                answer = await self._exchange(outgoing)
            if isinstance(answer, WebAnswer):
                return answer
            outgoing = answer
        raise SourceError(
            f"{str(asked)!r} redirected more than {self._settings.redirects} times",
            hint="the limit is http.redirects",
        )

    def _permit(self, outgoing: Outgoing, asked: Host) -> None:
        if declares(self._rules, outgoing.host, outgoing.port):
            return
        shown = f"{str(outgoing.host)!r}"
        who = (
            f"the host {shown}"
            if outgoing.host == asked
            else f"{str(asked)!r} redirects to {shown}, which"
        )
        port = "" if outgoing.url.port is None else f" on port {outgoing.port}"
        raise NotPermitted(
            f"{who} is not declared{port}",
            hint=f"add {outgoing.declaration!r} to http.hosts in package.yao, if it is meant",
        )

    async def _exchange(self, outgoing: Outgoing) -> WebAnswer | Outgoing:
        """One request → its answer, or the request that it redirects to."""
        raw = await self._pool.handle_async_request(outgoing.request())
        response = httpx2.Response(raw.status, headers=raw.headers, stream=_Stream(raw))
        try:
            onward = redirected(outgoing, response) if self._settings.redirects else None
            return onward or await self._read(outgoing, response)
        finally:
            with anyio.move_on_after(5, shield=True):
                await response.aclose()

    async def _read(self, outgoing: Outgoing, response: httpx2.Response) -> WebAnswer:
        coding = response.headers.get("content-encoding", "identity")
        if not {each.strip().lower() for each in coding.split(",")} <= CODINGS:
            raise SourceMalformed(
                f"{str(outgoing.host)!r} answered compressed as {coding[:40]!r}, which was not"
                " asked for"
            )
        most = self._settings.max_kb * 1024
        body = bytearray()
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) > most:
                    raise SourceError(
                        f"{str(outgoing.host)!r} answered with more than"
                        f" {self._settings.max_kb} kB",
                        hint="the limit is http.max_kb",
                    )
        headers = {name.lower(): value for name, value in response.headers.items()}
        return WebAnswer(
            url=str(outgoing.url), status=response.status_code, headers=headers, body=bytes(body)
        )


class _Stream(httpx2.AsyncByteStream):
    """The body of an answer as it comes over the wire."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._response.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _speaking_to(host: Host) -> Iterator[None]:
    """Errors of the libraries below, in our words."""
    try:
        yield
    except (httpcore2.ProtocolError, httpx2.DecodingError) as exc:
        raise SourceMalformed(f"{str(host)!r} did not answer as HTTP says: {exc}") from exc
    except FAILURES as exc:
        why = f": {exc}" if str(exc) else ""
        raise SourceError(f"{str(host)!r} could not be reached{why}") from exc


@cache
def authorities() -> ssl.SSLContext:
    """The machine's own, read once (20 ms); those that the environment names are left aside."""
    return httpx2.create_ssl_context(trust_env=False)
