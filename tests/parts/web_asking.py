"""Searches of the web with a provider on the loopback."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from groundhook.core.ports import NoDelegates, Scope, SourceResult
from groundhook.core.registry import Registry
from groundhook.core.settings import SearchSettings, UsesSettings
from groundhook.core.trace import recording
from groundhook.core.types.events import TraceNode
from groundhook.core.types.search import SearchRequest
from groundhook.core.types.turn import Identity
from groundhook.core.types.web_providers import WebProvider
from groundhook.handlers.web.handler import make_web
from groundhook.handlers.web.providers.searxng import SEARXNG
from groundhook.handlers.web.providers.serpapi import SERPAPI
from groundhook.handlers.web.providers.serper import SERPER
from groundhook.handlers.web.providers.tavily import TAVILY
from groundhook.host.web_client.clients import open_web_clients
from tests.keys import key
from tests.loopback.server import Loopback

PROVIDERS = ("tavily", "serper", "serpapi", "searxng")


KEYS = {
    "TAVILY_API_KEY": key("tvly"),
    "SERPER_API_KEY": key("serper"),
    "SERPAPI_API_KEY": key("serpapi"),
}


def builtin_providers() -> Registry[WebProvider]:
    providers: Registry[WebProvider] = Registry("web search provider")
    for name, provider in zip(PROVIDERS, (TAVILY, SERPER, SERPAPI, SEARXNG), strict=True):
        providers.add(name, provider)
    return providers


class Asking:
    """Searches as the host does, and records warnings and trace nodes."""

    def __init__(
        self,
        server: Loopback | None,
        provider: str = "auto",
        environment: Mapping[str, str] = KEYS,
        **settings: Any,
    ) -> None:
        self.environment = environment
        self.warned: list[str] = []
        self.nodes: dict[str, TraceNode] = {}
        host = server.url if server else ""
        web = {
            "provider": provider,
            "host": host,
            "timeout_ms": 60_000,
            "retries": 0,
            "cache": {"enabled": False},
            **settings,
        }
        self.uses: dict[str, str] = {}
        self.delegates: Any = NoDelegates()
        self.settings = SearchSettings.model_validate({"web": web})

    async def search(
        self, query: str = "rivers of Berlin", *, warmed: bool = False, **options: Any
    ) -> SourceResult:
        """`warmed`: search once before without a short deadline, so that imports and opening
        clients do not count."""

        async def warn(code: str, message: str) -> None:
            self.warned.append(f"{code}: {message}")

        scope = Scope(
            identity=Identity(),
            assistant_id="a",
            settings=self.settings,
            uses=UsesSettings.model_validate(self.uses),
            now=lambda: datetime(2026, 11, 1, tzinfo=UTC),
            warn=warn,
            delegates=self.delegates,
        )
        request = SearchRequest.model_validate(
            {"type": "web", "query": query, "limit": 10, **options}
        )
        with recording(lambda node: self.nodes.update({node.type: node})):
            async with open_web_clients() as clients, AsyncExitStack() as closing:
                web = make_web(
                    self.environment,
                    builtin_providers(),
                    client_of=clients.of,
                    on_close=closing.push_async_callback,
                )
                if warmed:
                    patient = {"web": self.settings.web.model_copy(update={"timeout_ms": 30_000})}
                    await web.search(
                        request, replace(scope, settings=self.settings.model_copy(update=patient))
                    )
                return await web.search(request, scope)
