"""The web source: which provider is asked, with which words, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import anyio

from handlers.web.answers import late
from handlers.web.items import items
from handlers.web.keywords import extract
from handlers.web.providers import Access, Ask, Provider, ProviderType
from handlers.web.serper import SERPER
from handlers.web.tavily import TAVILY
from handlers.web.urls import bare, followable
from host.config.schema import WebSettings
from host.errors import HostError, NotSupported, SourceNotConfigured, UnknownName
from host.ports import Found, Scope
from host.registry import Registry
from host.trace import span
from host.types.search import SearchRequest

CLOSING_TIME = 5.0  # seconds that open connections get to close


def web_providers() -> Registry[ProviderType]:
    """The providers that ship with Groundhook, in the order in which `auto` tries them; others may be added."""
    providers: Registry[ProviderType] = Registry("web search provider")
    providers.add("tavily", TAVILY)
    providers.add("serper", SERPER)
    return providers


@asynccontextmanager
async def open_web(environment: Mapping[str, str], providers: Registry[ProviderType] | None = None) -> AsyncIterator[WebSearch]:
    """The source for `web`. Keys are looked up in `environment`; connections are opened by the first search that needs
    them and closed with the source."""
    stack = AsyncExitStack()
    try:
        yield WebSearch(environment, providers or web_providers(), lambda close: stack.push_async_callback(close))
    finally:
        with anyio.move_on_after(CLOSING_TIME, shield=True):
            await stack.aclose()


class WebSearch:
    """A `host.ports.Handler` for searches of type web."""

    def __init__(
        self,
        environment: Mapping[str, str],
        types: Registry[ProviderType],
        closing: Callable[[Callable[[], Awaitable[None]]], object],
    ) -> None:
        self._environment = environment
        self._types = types
        self._closing = closing
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
        if scope.uses.web != "builtin":
            raise NotSupported(f"web search by {scope.uses.web!r} is not supported yet", hint='set uses.web to "builtin"')
        settings = scope.settings.web
        name, access = choose(settings, self._environment, self._types, self._closing)
        kind = self._types.get(name)
        query = await _query(request, scope)
        wanted = request.limit or settings.max_results
        if wanted > kind.most:
            await scope.warn("web_limit", f"{name!r} returns at most {kind.most} results; {wanted} were asked for")
        ask = Ask(
            query=query,
            limit=min(wanted, kind.most),
            sites=tuple(site for site in map(bare, request.sites or ()) if site),
            time_range=request.time_range,
            timeout=settings.timeout_ms / 1000,
        )
        with span("web_search", label=name, provider=name, query=query, limit=ask.limit) as node:
            try:
                with anyio.fail_after(ask.timeout):
                    hits = await self._provider(name, kind, access).search(ask)
            except TimeoutError as exc:
                raise late(name, ask.timeout) from exc
            found = items(hits, limit=ask.limit, sites=ask.sites)
            node.data |= {"results": len(found), "dropped": len(hits) - len(found)}
        return Found(items=found)

    def _provider(self, name: str, kind: ProviderType, access: Access) -> Provider:
        if (name, access) not in self._open:
            self._open[name, access] = kind.make(access)
        return self._open[name, access]


def choose(
    settings: WebSettings,
    environment: Mapping[str, str],
    types: Registry[ProviderType],
    closing: Callable[[Callable[[], Awaitable[None]]], object],
) -> tuple[str, Access]:
    """The provider to ask and how: the one that is named, or with `auto` the first whose key is there. `api_key_env` names
    another variable for the key; with `auto` it counts for the provider whose name is part of it, else for the first."""
    if settings.host and not followable(settings.host):
        raise SourceNotConfigured(f"search.web.host {settings.host!r} is not an http(s) address")
    name = settings.provider
    if ":" in name or "." in name:
        raise NotSupported(
            f"web search by {name!r} is not supported yet", hint=f"search.web.provider can be auto, {', '.join(types.names())}"
        )
    if name != "auto" and name not in types:
        raise UnknownName("web search provider", name, ["auto", *types.names()])
    tried: list[str] = []
    for candidate in [name] if name != "auto" else types:
        kind = types.get(candidate)
        own = settings.api_key_env if name != "auto" or _names(settings.api_key_env, candidate, types) else ""
        for variable in dict.fromkeys(filter(None, (own, kind.variable))):
            tried.append(variable)
            if key := environment.get(variable, "").strip():
                return candidate, Access(key=key, variable=variable, host=settings.host or kind.host, closing=closing)
    what = "web search has no provider" if name == "auto" else f"web search by {name!r} has no key"
    raise SourceNotConfigured(what, hint=f"set the environment variable {' or '.join(tried)}")


def _names(variable: str, candidate: str, types: Registry[ProviderType]) -> bool:
    named = [name for name in types if name.upper() in variable.upper()]
    return candidate in named if named else candidate == next(iter(types))


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
