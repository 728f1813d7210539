"""The outermost layer of the server: gives each request an id, checks its Host header, finds the
client's address, sets the headers of every answer, and logs the request."""

from __future__ import annotations

import re
import secrets
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from groundhook.core.server_settings import ServerSettings
from groundhook.host.server.identity.client_addresses import (
    client_behind,
    is_loopback,
    plain,
    within,
)
from groundhook.host.server.logs import Logs
from groundhook.host.server.problems import HttpProblem, response

PROBES = frozenset({"/healthz", "/readyz"})  # whose callers know no name of the server
_REQUEST_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": (
        "default-src 'none'; frame-ancestors 'none'; form-action 'none'; base-uri 'none'"
    ),
}


def _forbid_storing(headers: MutableHeaders) -> None:
    """Forbid caches to store an answer, except files that are the same for everyone and say so."""
    given = headers.get("cache-control", "")
    if "no-store" not in given and "public" not in given:
        headers["cache-control"] = f"no-store, {given}" if given else "no-store"


class EdgeMiddleware:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, host: str, logs: Logs) -> None:
        self._app, self._settings, self._logs = app, settings, logs
        public = urlsplit(settings.public_url).hostname
        self._hosts = {name.lower() for name in settings.hosts} | ({public} if public else set())
        if host not in ("0.0.0.0", "::", ""):
            self._hosts.add(host.lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else f"r_{secrets.token_hex(6)}"
        scope["groundhook.request"] = request_id
        scope["groundhook.address"] = self._address(scope, headers)
        began, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answered = MutableHeaders(scope=message)
                answered["x-request-id"] = request_id
                for name, value in SAFE_HEADERS.items():
                    answered.setdefault(name, value)
                # Nothing that is sent is for everybody: no cache keeps it for the next reader, also
                # not the browser's own after signing out.
                _forbid_storing(answered)
            await send(message)

        try:
            if (problem := self._refusal(scope, headers)) is not None:
                refused = response(problem, "problem", request_id)
                await refused(scope, receive, send_with_headers)
                return
            if (origin := self._unlisted(scope, headers)) is not None:
                self._logs.unlisted(origin)
            await self._app(scope, receive, send_with_headers)
        finally:
            ms = (time.perf_counter() - began) * 1000
            self._logs.request(scope, status, ms)

    def _refusal(self, scope: Scope, headers: Headers) -> HttpProblem | None:
        """Return why a request reaches no endpoint; None: it does."""
        # A proxy in front may see one request where the chunks end it and another one follows, so
        # the connection is closed (RFC 9112, 6.1).
        if "transfer-encoding" in headers:
            close = {"connection": "close"}
            if "content-length" in headers:
                detail = "the request has both Content-Length and Transfer-Encoding"
                return HttpProblem(code="usage", detail=detail, headers=close)
            if scope["http_version"] == "1.0":
                detail = "a request of HTTP/1.0 has no Transfer-Encoding"
                return HttpProblem(code="usage", detail=detail, headers=close)
        if not self._is_ours(headers.get("host", ""), scope["path"]):
            detail = "the server does not answer under this name (server.hosts lists others)"
            return HttpProblem(code="wrong_host", detail=detail)
        return None

    def _unlisted(self, scope: Scope, headers: Headers) -> str | None:
        """Return the origin for which a browser asks whether a page of another site may send a
        request, if it may not."""
        asks = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        origin = headers.get("origin", "")
        return None if not asks or {origin, "*"} & set(self._settings.origins) else origin

    def _is_ours(self, host: str, path: str) -> bool:
        if path in PROBES:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return is_loopback(name) or name in self._hosts

    def _address(self, scope: Scope, headers: Headers) -> str:
        """Return the client's address: behind trusted proxies, the rightmost address that is not
        one of them. The scheme that they forward counts as well."""
        client = scope.get("client")
        sender = plain(str(client[0])) if client else ""
        if not within(sender, self._settings.proxies):
            return sender
        # Of several schemes the last: the first may be the client's own.
        schemes = ",".join(headers.getlist("x-forwarded-proto")).split(",")
        if (scheme := schemes[-1].strip()) in ("http", "https"):
            scope["scheme"] = scheme
        return client_behind(self._settings.proxies, sender, headers.getlist("x-forwarded-for"))
