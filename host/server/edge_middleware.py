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
from groundhook.host.server.identity.caller import is_loopback, within
from groundhook.host.server.logs import Logs
from groundhook.host.server.problems import Problem, response

PROBES = frozenset({"/healthz", "/readyz"})  # whose callers know no name of the server
_REQUEST_ID = re.compile(r"[\w-]{1,64}", re.ASCII)
SAFE_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


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
            await send(message)

        try:
            if not self._is_ours(headers.get("host", ""), scope["path"]):
                detail = "the server does not answer under this name (server.hosts lists others)"
                wrong = response(Problem(code="wrong_host", detail=detail), "problem", request_id)
                await wrong(scope, receive, send_with_headers)
                return
            await self._app(scope, receive, send_with_headers)
        finally:
            ms = (time.perf_counter() - began) * 1000
            self._logs.request(scope, status, ms)

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
        address = str(client[0]) if client else ""
        proxies = self._settings.proxies
        if not proxies or not within(address, proxies):
            return address
        if (scheme := headers.get("x-forwarded-proto", "")) in ("http", "https"):
            scope["scheme"] = scheme
        for hop in reversed(headers.get("x-forwarded-for", "").split(",")):
            if not (hop := hop.strip()):
                continue
            address = hop
            if not within(hop, proxies):
                break
        return address[:100]
