"""The web source: which provider is asked, with which words, and what becomes of its answer."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from handlers.web.asking import Asking
from handlers.web.choose import Closing, choose
from handlers.web.items import items
from handlers.web.keywords import extract
from handlers.web.providers import Ability, Access, Ask, Provider, ProviderType
from handlers.web.searxng import SEARXNG
from handlers.web.serper import SERPER
from handlers.web.tavily import TAVILY
from handlers.web.urls import bare
from host.config.schema import WebSettings
from host.errors import HostError, NotSupported, unwrapped
from host.ports import Found, Scope
from host.registry import Registry
from host.trace import span
from host.types.search import SearchRequest

CLOSING_TIME = 5.0  # seconds that open connections get to close

# What is said of a provider that cannot do what a request asks for.
_CANNOT: dict[Ability, str] = {
    "sites": "cannot search within sites: pages of other sites among its results are left out here",
    "exclude_sites": "cannot leave out sites: their pages among its results are left out here",
    "time_range": "cannot search by time: results of any age are shown",
    "language": "cannot search by language: results in any language are shown",
}


def web_providers() -> Registry[ProviderType]:
    """The providers that ship with Groundhook, in the order in which `auto` tries them; others may be added."""
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
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[WebSearch]:
    """The source for `web`. Keys are looked up in `environment`; connections are opened by the first search that needs
    them and closed with the source. `clock` gives the seconds that answers are kept by."""
    async with AsyncExitStack() as stack:
        stack.enter_context(unwrapped())
        tasks = await stack.enter_async_context(anyio.create_task_group())
        closing = AsyncExitStack()
        try:
            asking = Asking(tasks, clock)
            yield WebSearch(environment, providers or web_providers(), closing.push_async_callback, asking)
        finally:
            tasks.cancel_scope.cancel()
            with anyio.move_on_after(CLOSING_TIME, shield=True):
                await closing.aclose()


class WebSearch:
    """A `host.ports.Handler` for searches of type web."""

    def __init__(self, environment: Mapping[str, str], types: Registry[ProviderType], closing: Closing, asking: Asking) -> None:
        self._environment = environment
        self._types = types
        self._closing = closing
        self._asking = asking
        self._open: dict[tuple[str, Access], Provider] = {}

    @property
    def providers(self) -> list[str]:
        """The names that `search.web.provider` may have beside `auto`."""
        return self._types.names()

    def configured(self, settings: WebSettings) -> bool:
        """Whether there is a provider to ask under these settings."""
        try:
            choose(settings, self._environment, self._types, self._closing)
        except HostError:
            return False
        return True

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """Raises SourceError, NotSupported for a delegated search, UnknownName for a provider that is not there."""
        settings = scope.settings.web
        for by in (scope.uses.web if scope.uses.web != "builtin" else "", settings.provider):
            if by.startswith("mcp:") or "." in by or by == scope.uses.web:
                hint = 'set uses.web to "builtin" and search.web.provider to "auto"'
                raise NotSupported(f"web search by {by!r} is not supported yet", hint=hint)
        name, access = choose(settings, self._environment, self._types, self._closing)
        kind = self._types.get(name)
        ask = await _ask(name, kind, request, scope, await _query(request, scope))
        with span("web_search", label=name, provider=name, query=ask.query, limit=ask.limit) as node:
            hits, how = await self._asking.hits(name, access, self._provider(name, kind, access), ask, settings)
            found = items(hits, ask, scope.now())
            node.data |= {"results": len(found), "dropped": len(hits) - len(found), "answer": how}
        return Found(items=found, provider=name)

    def _provider(self, name: str, kind: ProviderType, access: Access) -> Provider:
        if (name, access) not in self._open:
            self._open[name, access] = kind.make(access)
        return self._open[name, access]


async def _ask(name: str, kind: ProviderType, request: SearchRequest, scope: Scope, query: str) -> Ask:
    """The request as a provider is asked it; what this one cannot do is said."""
    settings = scope.settings.web
    wanted = request.limit or settings.max_results
    ask = Ask(
        query=query,
        limit=min(wanted, kind.most),
        sites=_sites(request.sites),
        exclude_sites=_sites(settings.exclude_sites if request.exclude_sites is None else request.exclude_sites),
        time_range=request.time_range,
        language=settings.language if request.language is None else request.language,
        timeout=settings.timeout_ms / 1000,
    )
    if wanted > kind.most:
        await scope.warn("web_limit", f"{name!r} returns at most {kind.most} results; {wanted} were asked for")
    for ability, words in _CANNOT.items():
        if getattr(ask, ability) and ability not in kind.can:
            await scope.warn(f"web_{ability}", f"{name!r} {words}")
    return ask


def _sites(names: tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(site for site in map(bare, names or ()) if site)


async def _query(request: SearchRequest, scope: Scope) -> str:
    """The words to search for. A keyword extractor that is not there does not stop the search: the built-in one serves."""
    settings = scope.settings.keyword
    with span("keywords", label=scope.uses.keyword) as node:
        if scope.uses.keyword != "builtin":
            message = f"keyword extraction by {scope.uses.keyword!r} is not supported yet; the built-in one was used"
            node.fail(message)
            await scope.warn("not_supported", message)
        keywords = extract(request.query, most=settings.max_keywords, language=settings.language)
        node.data |= {"query": keywords.query, "keywords": list(keywords.phrases)}
    return keywords.query
