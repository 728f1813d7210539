"""The web source: which provider is asked, with which words, and what becomes of its answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import anyio

from groundhook.handlers.web.delegated import MOST, Delegated
from groundhook.handlers.web.items import items
from groundhook.handlers.web.pages import Pages
from groundhook.handlers.web.provider_choice import Closing, choose
from groundhook.handlers.web.providers import (
    ABILITIES,
    Ability,
    Access,
    Ask,
    Provider,
    ProviderType,
)
from groundhook.handlers.web.request import Asking
from groundhook.handlers.web.searxng import SEARXNG
from groundhook.handlers.web.serper import SERPER
from groundhook.handlers.web.tavily import TAVILY
from groundhook.handlers.web.urls import bare
from groundhook.handlers.web.words import search_words
from groundhook.host.core.errors import (
    DelegateError,
    HostError,
    SourceError,
    SourceNotConfigured,
    UnknownName,
    suggestion,
)
from groundhook.host.core.ports import ClientOf, Found, Scope
from groundhook.host.core.registry import Registry
from groundhook.host.core.source_settings import WebSettings
from groundhook.host.core.trace import span
from groundhook.host.core.types.search import SearchRequest

CLOSING_TIME = 5.0  # seconds that open connections get to close

# What is said of a provider that cannot do what a request asks for.
_CANNOT: dict[Ability, str] = {
    "sites": "cannot search within sites: pages of other sites among its results are left out here",
    "exclude_sites": "cannot leave out sites: their pages among its results are left out here",
    "time_range": "cannot search by time: results of any age are shown",
    "language": "cannot search by language: results in any language are shown",
}


def web_providers() -> Registry[ProviderType]:
    """The providers that ship with Groundhook, in the order in which `auto` tries them; others may
    be added."""
    providers: Registry[ProviderType] = Registry("web search provider")
    providers.add("tavily", TAVILY)
    providers.add("serper", SERPER)
    providers.add("searxng", SEARXNG)
    return providers


@asynccontextmanager
async def open_web(
    environment: Mapping[str, str],
    providers: Registry[ProviderType] | None = None,
    *,
    client_of: ClientOf,
    readers: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[WebSearch]:
    """The source for `web`. Keys are looked up in `environment`; connections are opened by the
    first search that needs them and closed with the source. Pages are asked for through `client_of`
    and read in processes with the environment `readers` (none: this process's own). `clock` gives
    the seconds that answers are kept by."""
    closing = AsyncExitStack()
    try:
        pages = Pages(client_of, readers, clock)
        closing.push_async_callback(pages.close)
        yield WebSearch(
            environment,
            providers or web_providers(),
            closing.push_async_callback,
            Asking(clock),
            pages,
        )
    finally:
        with anyio.move_on_after(CLOSING_TIME, shield=True):
            await closing.aclose()


class WebSearch:
    """A `host.core.ports.Handler` for searches of type web."""

    def __init__(
        self,
        environment: Mapping[str, str],
        types: Registry[ProviderType],
        closing: Closing,
        asking: Asking,
        pages: Pages,
    ) -> None:
        self._environment = environment
        self._types = types
        self._closing = closing
        self._asking = asking
        self._pages = pages
        self._open: dict[tuple[str, Access], Provider] = {}
        self._choice: tuple[WebSettings, tuple[str, Access]] | None = None  # the last one

    @property
    def providers(self) -> list[str]:
        """The names that `search.web.provider` may have beside `auto`."""
        return self._types.names()

    def configured(self, settings: WebSettings, uses: str = "builtin") -> bool:
        """Whether there is somebody to ask under these settings and this `uses.web`."""
        if uses != "builtin" or (
            settings.provider != "auto" and settings.provider not in self._types
        ):
            return True
        try:
            self._chosen(settings)
        except HostError:
            return False
        return True

    def _chosen(self, settings: WebSettings) -> tuple[str, Access]:
        """Who is asked under these settings, which most turns share. Raises SourceNotConfigured,
        UnknownName."""
        if self._choice is None or self._choice[0] is not settings:
            self._choice = (
                settings,
                choose(settings, self._environment, self._types, self._closing),
            )
        return self._choice[1]

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Raises SourceError, UnknownName for a provider that is not there."""
        settings = scope.settings.web
        until = anyio.current_time() + settings.timeout_ms / 1000
        query = await search_words(request.query, scope)
        found = await self._listed(query, request, scope, until)
        first = settings.fetch if request.fetch is None else request.fetch
        return (
            replace(found, items=await self._pages.read(found.items, query, first, scope, until))
            if first
            else found
        )

    async def _listed(
        self, query: str, request: SearchRequest, scope: Scope, until: float
    ) -> Found:
        """What whoever does the search lists. One that `uses.web` names is replaced by the built-in
        search when it fails."""
        settings = scope.settings.web
        by = scope.uses.web if scope.uses.web != "builtin" else settings.provider
        if by == "auto" or by in self._types:
            return await self._by_provider(query, request, scope)
        try:
            return await self._by(by, query, request, scope, until)
        except SourceError as exc:
            if scope.uses.web == "builtin":
                self._refuse_unknown(exc, by)
                raise
            if (
                settings.provider not in ("auto", *self._types)
                or not self.configured(settings)
                or anyio.current_time() >= until
            ):
                raise
            await scope.warn(exc.code, f"{exc}; the built-in search was used")
        return await self._by_provider(query, request, scope)

    async def _by_provider(self, query: str, request: SearchRequest, scope: Scope) -> Found:
        """Through a search engine, as the settings name it."""
        settings = scope.settings.web
        name, access = self._chosen(settings)
        kind = self._types.get(name)
        ask = await _ask(name, kind.most, kind.can, query, request, scope)
        provider = self._provider(name, kind, access)
        with span("web_search", label=name, provider=name, query=query, limit=ask.limit) as node:
            hits, how = await self._asking.hits(name, access, provider, ask, settings)
            found = items(hits, ask, scope.now())
            node.data |= {"results": len(found), "dropped": len(hits) - len(found), "answer": how}
        return Found(items=found, provider=name)

    async def _by(
        self, doer: str, query: str, request: SearchRequest, scope: Scope, until: float
    ) -> Found:
        """Through an assistant or an MCP tool."""
        ask = await _ask(doer, MOST, ABILITIES, query, request, scope)
        ask = replace(ask, timeout=until - anyio.current_time())
        with span("web_search", label=doer, provider=doer, query=query, limit=ask.limit) as node:
            hits = await Delegated(doer, scope).search(ask)
            found = items(hits, ask, scope.now())
            node.data |= {
                "results": len(found),
                "dropped": len(hits) - len(found),
                "answer": "asked",
            }
        return Found(items=found, provider=doer)

    def _refuse_unknown(self, error: SourceError, name: str) -> None:
        """Name the providers where there is neither one nor an assistant of that name."""
        if isinstance(error.__cause__, DelegateError) and isinstance(
            error.__cause__.__cause__, UnknownName
        ):
            hint = suggestion(name, ["auto", *self._types.names()])
            raise SourceNotConfigured(f"no web search provider {name!r}", hint=hint) from error

    def _provider(self, name: str, kind: ProviderType, access: Access) -> Provider:
        if (name, access) not in self._open:
            self._open[name, access] = kind.make(access)
        return self._open[name, access]


async def _ask(
    name: str, most: int, can: frozenset[Ability], query: str, request: SearchRequest, scope: Scope
) -> Ask:
    """The request as `name` is asked it; what it cannot do is said."""
    settings = scope.settings.web
    wanted = request.limit or settings.max_results
    ask = Ask(
        query=query,
        limit=min(wanted, most),
        sites=_sites(request.sites),
        exclude_sites=_sites(
            settings.exclude_sites if request.exclude_sites is None else request.exclude_sites
        ),
        time_range=request.time_range,
        language=settings.language if request.language is None else request.language,
        timeout=settings.timeout_ms / 1000,
    )
    if wanted > most:
        await scope.warn(
            "web_limit", f"{name!r} returns at most {most} results; {wanted} were asked for"
        )
    for ability, words in _CANNOT.items():
        if getattr(ask, ability) and ability not in can:
            await scope.warn(f"web_{ability}", f"{name!r} {words}")
    return ask


def _sites(names: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(site for site in map(bare, names or ()) if site)
