"""MCP servers, records and web hosts on a cassette: what hooks use in addition to searches and
models."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from groundhook.core.errors import HostError
from groundhook.core.ports import Records, Scope, ToolServers, WebClient
from groundhook.core.settings import HttpSettings
from groundhook.core.types.search import RecordQuery
from groundhook.core.types.servers import ServerMethod
from groundhook.core.types.web import WebAnswer
from groundhook.host.config.packages import App
from groundhook.host.testing.cassette import joined, lines
from groundhook.host.testing.tape import Tape, TapedAnswer
from groundhook.host.web_client.clients import WebClients

PRIVATE = frozenset({"set-cookie", "date"})  # headers of an answer that are not recorded


@dataclass(frozen=True)
class TapedServers:
    """`ToolServers` whose answers are recorded. `declared` returns the tools of a server without
    recordings; None if the server must have recordings."""

    tape: Tape
    real: ToolServers
    declared: Callable[[str], list[dict[str, Any]] | None]

    async def ask(
        self, server: str, method: ServerMethod, params: Mapping[str, Any], /
    ) -> dict[str, Any]:
        cassette = self.tape.cassette
        if method == "tools/list" and not (
            cassette.recording or cassette.has_any("MCP call", "server", server)
        ):
            tools = self.declared(server)
            if tools is not None:
                return {"tools": tools}

        async def real() -> TapedAnswer:
            return {"result": await self.real.ask(server, method, params)}

        request = {"server": server, "method": method, "params": dict(params)}
        result: dict[str, Any] = (await self.tape.ask("MCP call", request, real))["result"]
        return result

    def start_ms(self, server: str, /) -> int:
        return self.real.start_ms(server)


@dataclass(frozen=True)
class TapedRecords:
    """`Records` whose answers are recorded."""

    tape: Tape
    real: Records

    async def records(self, query: RecordQuery, scope: Scope, /) -> list[dict[str, Any]]:
        async def real() -> TapedAnswer:
            return {"records": await self.real.records(query, scope)}

        identity = scope.identity.model_dump(exclude_defaults=True)
        request = {**query.model_dump(mode="json", exclude_none=True), "identity": identity}
        answer = await self.tape.ask("record query", request, real)
        records: list[dict[str, Any]] = answer["records"]
        return records


def declared_tools(app: App, server: str) -> list[dict[str, Any]] | None:
    """Return the tools that a server's file names, without schemas; None if an assistant of the app
    delegates a step to the server, which needs the real ones."""
    if any(step == server or step.startswith(f"{server}.") for step in _steps(app)):
        return None
    names = app.servers.named(server).tools
    return [{"name": name, "description": "", "inputSchema": {"type": "object"}} for name in names]


def _steps(app: App) -> Iterator[str]:
    """Yield the servers, with their tools, to which assistants delegate steps."""
    for id in app.packages:
        with suppress(HostError):  # an invalid package, which `groundhook check` reports
            settings = app.settings_for(app.packages.named(id)).settings
            rerank = (settings.search.rerank.mcp or "").removeprefix("mcp:")
            for name in (*settings.uses.model_dump().values(), f"mcp:{rerank}"):
                if isinstance(name, str) and name.startswith("mcp:"):
                    server = name.removeprefix("mcp:")
                    yield from (server, f"agents.{id}.{server}")


class TapedWeb(WebClients):
    """Clients whose answers are recorded. A recorded request has only the names of its headers:
    their values may be API keys."""

    def __init__(self, tape: Tape, real: WebClients) -> None:
        super().__init__()
        self._tape, self._real = tape, real

    def of(self, settings: HttpSettings) -> WebClient:
        return _TapedClient(self._tape, self._real, settings)


@dataclass(frozen=True)
class _TapedClient:
    tape: Tape
    clients: WebClients
    settings: HttpSettings

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: str | bytes | None = None,
        json: Any = None,
    ) -> WebAnswer:
        async def real() -> TapedAnswer:
            client = self.clients.of(self.settings)
            answer = await client.request(
                method, url, headers=headers, query=query, body=body, json=json
            )
            kept = {name: value for name, value in answer.headers.items() if name not in PRIVATE}
            return {
                "url": answer.url,
                "status": answer.status,
                "headers": kept,
                **_recorded_body(answer.body),
            }

        text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
        request = {
            "method": method,
            "url": url,
            "query": dict(query or {}),
            "body": text,
            "json": json,
        }
        request["headers"] = sorted(headers or {})
        answer = await self.tape.ask("web request", request, real)
        return WebAnswer(
            url=answer["url"],
            status=answer["status"],
            headers=answer["headers"],
            body=_body(answer),
        )


def _recorded_body(body: bytes) -> TapedAnswer:
    try:
        return {"text": lines(body.decode("utf-8"))}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}


def _body(answer: TapedAnswer) -> bytes:
    return (
        base64.b64decode(answer["base64"])
        if "base64" in answer
        else joined(answer["text"]).encode("utf-8")
    )
