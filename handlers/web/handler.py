"""The web source: it turns a question into search words, calls a search provider or a delegate, and
reads the first pages of the results if configured.

The step from a question to search words: by the built-in rules, or by the delegate in
`uses.keyword`.

Web search by an assistant or an MCP tool, as a provider for one search.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import anyio
from anyio import to_thread

from groundhook.core.errors import (
    DelegateError,
    HostError,
    SourceError,
    SourceNotConfigured,
    UnknownName,
    suggestion,
)
from groundhook.core.ports import ClientOf, Scope, SourceResult
from groundhook.core.registry import Registry
from groundhook.core.source_settings import WebSettings
from groundhook.core.trace import span
from groundhook.core.types.closing import OnClose
from groundhook.core.types.delegation import KeywordAsk, WebAsk
from groundhook.core.types.search import Item, SearchRequest
from groundhook.core.types.uses import KEYWORD, WEB
from groundhook.core.types.web_providers import (
    ABILITIES,
    Ability,
    WebAccess,
    WebEngine,
    WebHit,
    WebProvider,
    WebQuery,
)
from groundhook.handlers.web.items import items_of
from groundhook.handlers.web.keywords import Keywords, extract, from_weighted
from groundhook.handlers.web.pages.pages import PageReader
from groundhook.handlers.web.providers.calls import ProviderCalls
from groundhook.handlers.web.providers.choice import choose_provider
from groundhook.handlers.web.urls import bare

LONG = 1000  # characters of a question that is read in a thread: the longest one takes 100 ms
MAX_RESULTS = 50  # largest limit that a delegate receives


class DelegateSearch:
    """A provider for one search of one turn. `delegate` is an assistant's id or
    `mcp:<server>[.<tool>]`. Its answers depend on the turn's user and are not cached."""

    def __init__(self, delegate: str, scope: Scope) -> None:
        self._delegate = delegate
        self._scope = scope

    async def search(self, ask: WebQuery, /) -> list[WebHit]:
        """Return the delegate's pages. Raises SourceError if it fails."""
        arguments = WebAsk(
            query=ask.query,
            limit=ask.limit,
            sites=ask.sites,
            exclude_sites=ask.exclude_sites,
            time_range=ask.time_range,
            language=ask.language,
        )
        try:
            answer = await self._scope.delegates.ask(
                WEB,
                self._delegate,
                arguments,
                timeout_ms=max(int(ask.timeout * 1000), 1),
                hint="search.web.timeout_ms",
            )
        except DelegateError as exc:
            raise SourceError(exc.message, hint=exc.hint) from exc
        return [
            WebHit(
                url=page.url,
                title=page.title,
                content=page.content,
                score=page.score,
                published=page.published,
            )
            for page in answer.results
        ]


async def search_words(question: str, scope: Scope) -> str:
    """Return the query for a search engine. If the delegate fails, the built-in rules replace it
    with a warning."""
    settings = scope.settings.keyword
    with span("keywords", label=scope.uses.keyword) as node:
        keywords = None
        if scope.uses.keyword != "builtin":
            try:
                keywords = await _ask_delegate(question, scope)
            except DelegateError as exc:
                node.fail(str(exc))
                await scope.warn(exc.code, f"{exc}; the built-in keywords were used")
        if not keywords:
            read = partial(
                extract, question, most=settings.max_keywords, language=settings.language
            )
            keywords = await to_thread.run_sync(read) if len(question) > LONG else read()
        node.data |= {
            "query": keywords.query,
            "keywords": list(keywords.phrases),
            "weights": list(keywords.weights),
        }
    return keywords.query


async def _ask_delegate(question: str, scope: Scope) -> Keywords:
    settings = scope.settings.keyword
    arguments = KeywordAsk(
        query=question, max_keywords=settings.max_keywords, language=settings.language
    )
    answer = await scope.delegates.ask(
        KEYWORD,
        scope.uses.keyword,
        arguments,
        timeout_ms=settings.timeout_ms,
        hint="search.keyword.timeout_ms",
    )
    return from_weighted(
        [(keyword.k, keyword.w) for keyword in answer.keywords], most=settings.max_keywords
    )


# The warning for a provider without an ability that a request needs.
_UNSUPPORTED: dict[Ability, str] = {
    "sites": "cannot search within sites: results from other sites are removed afterwards",
    "exclude_sites": "cannot exclude sites: results from them are removed afterwards",
    "time_range": "cannot search by time: results of any age are shown",
    "language": "cannot search by language: results in any language are shown",
}


def make_web(
    environment: Mapping[str, str],
    providers: Registry[WebProvider],
    *,
    client_of: ClientOf,
    on_close: OnClose,
    reader_environment: Mapping[str, str] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> WebHandler:
    """Return the web source. API keys are read from `environment`; connections are opened by the
    first search that needs them, and the function that closes them is passed to `on_close`. Pages
    are fetched through `client_of` and parsed in processes with `reader_environment` (None: this
    process's own). `clock` returns the seconds by which cached answers expire."""
    page_reader = PageReader(client_of, reader_environment, clock)
    on_close(page_reader.close)
    return WebHandler(environment, providers, on_close, ProviderCalls(clock), page_reader)


class WebHandler:
    """A `core.ports.Handler` for searches of the type `web`."""

    def __init__(
        self,
        environment: Mapping[str, str],
        providers: Registry[WebProvider],
        on_close: OnClose,
        calls: ProviderCalls,
        page_reader: PageReader,
    ) -> None:
        self._environment = environment
        self._providers = providers
        self._on_close = on_close
        self._calls = calls
        self._page_reader = page_reader
        self._engines: dict[tuple[str, WebAccess], WebEngine] = {}
        # The last settings, with the provider chosen for them.
        self._choice: tuple[WebSettings, tuple[str, WebAccess]] | None = None

    @property
    def providers(self) -> list[str]:
        """The providers' names, which `search.web.provider` may have in addition to `auto`."""
        return self._providers.names()

    def problem(self, settings: WebSettings, uses: str = "builtin") -> HostError | None:
        """Return why a search has no provider under these settings and this `uses.web`; None if it
        has one. Any other name is that of a delegate, and is not checked."""
        if uses != "builtin" or (
            settings.provider != "auto" and settings.provider not in self._providers
        ):
            return None
        try:
            self._provider_access(settings)
        except HostError as exc:
            return exc
        return None

    def _provider_access(self, settings: WebSettings) -> tuple[str, WebAccess]:
        """Return the provider's name and access under these settings. The result for the last
        settings is cached, since most turns have the same settings. Raises SourceNotConfigured,
        UnknownName."""
        if self._choice is None or self._choice[0] is not settings:
            self._choice = (
                settings,
                choose_provider(settings, self._environment, self._providers, self._on_close),
            )
        return self._choice[1]

    async def search(self, request: SearchRequest, scope: Scope, /) -> SourceResult:
        """Search, and read the first `fetch` pages of the results. Raises SourceError, and
        UnknownName for an unknown provider."""
        settings = scope.settings.web
        deadline = anyio.current_time() + settings.timeout_ms / 1000
        query = await search_words(request.query, scope)
        found = await self._search(query, request, scope, deadline)
        page_count = settings.fetch if request.fetch is None else request.fetch
        if not page_count:
            return found
        items = await self._page_reader.read(found.items, query, page_count, scope, deadline)
        return replace(found, items=items)

    async def fetch_page(self, url: str, scope: Scope, /) -> Item:
        """Return a page with its whole text as content, within the limits of `search.web.pages`.
        Raises SourceError, IngestError where nothing can be read from it, NotPermitted."""
        return await self._page_reader.whole(url, scope)

    async def _search(
        self, query: str, request: SearchRequest, scope: Scope, deadline: float
    ) -> SourceResult:
        """Return the results as the provider or delegate lists them. If a delegate from `uses.web`
        fails, the built-in search replaces it with a warning."""
        settings = scope.settings.web
        # `search.web.provider` may name a delegate, too.
        name = scope.uses.web if scope.uses.web != "builtin" else settings.provider
        if name == "auto" or name in self._providers:
            return await self._search_by_provider(query, request, scope)
        try:
            return await self._search_by_delegate(name, query, request, scope, deadline)
        except SourceError as exc:
            if scope.uses.web == "builtin":
                self._raise_if_unknown(exc, name)
                raise
            has_builtin = settings.provider in ("auto", *self._providers)
            if (
                not has_builtin
                or self.problem(settings) is not None
                or anyio.current_time() >= deadline
            ):
                raise
            await scope.warn(exc.code, f"{exc}; the built-in search was used")
        return await self._search_by_provider(query, request, scope)

    async def _search_by_provider(
        self, query: str, request: SearchRequest, scope: Scope
    ) -> SourceResult:
        """Search with the configured search provider."""
        settings = scope.settings.web
        name, access = self._provider_access(settings)
        provider = self._providers.get(name)
        web_query = await _build_query(
            name, provider.max_results, provider.can, query, request, scope
        )
        engine = self._engine(name, provider, access)
        with span(
            "web_search", label=name, provider=name, query=query, limit=web_query.limit
        ) as node:
            hits, answered_from = await self._calls.hits(name, access, engine, web_query, settings)
            found = items_of(hits, web_query, scope.now())
            node.data |= {
                "results": len(found),
                "dropped": len(hits) - len(found),
                "answer": answered_from,
            }
        return SourceResult(items=found, provider=name)

    async def _search_by_delegate(
        self, delegate: str, query: str, request: SearchRequest, scope: Scope, deadline: float
    ) -> SourceResult:
        """Search with an assistant or an MCP tool."""
        web_query = await _build_query(delegate, MAX_RESULTS, ABILITIES, query, request, scope)
        web_query = replace(web_query, timeout=deadline - anyio.current_time())
        with span(
            "web_search", label=delegate, provider=delegate, query=query, limit=web_query.limit
        ) as node:
            hits = await DelegateSearch(delegate, scope).search(web_query)
            found = items_of(hits, web_query, scope.now())
            node.data |= {
                "results": len(found),
                "dropped": len(hits) - len(found),
                "answer": "asked",
            }
        return SourceResult(items=found, provider=delegate)

    def _raise_if_unknown(self, error: SourceError, name: str) -> None:
        """Raise SourceNotConfigured with the nearest provider's name if `name` is neither a
        provider nor an assistant."""
        # The chain of causes: DelegateSearch raises SourceError from the host's DelegateError,
        # which the host raises from the error of the delegate, here UnknownName.
        if isinstance(error.__cause__, DelegateError) and isinstance(
            error.__cause__.__cause__, UnknownName
        ):
            hint = suggestion(name, ["auto", *self._providers.names()])
            raise SourceNotConfigured(f"no web search provider {name!r}", hint=hint) from error

    def _engine(self, name: str, provider: WebProvider, access: WebAccess) -> WebEngine:
        if (name, access) not in self._engines:
            self._engines[name, access] = provider.make(access)
        return self._engines[name, access]


async def _build_query(
    name: str,
    max_results: int,
    abilities: frozenset[Ability],
    query: str,
    request: SearchRequest,
    scope: Scope,
) -> WebQuery:
    """Return the request in the form for `name`, with a warning for each part that it does not
    support."""
    settings = scope.settings.web
    wanted = request.limit or settings.max_results
    web_query = WebQuery(
        query=query,
        limit=min(wanted, max_results),
        sites=_sites(request.sites),
        exclude_sites=_sites(
            settings.exclude_sites if request.exclude_sites is None else request.exclude_sites
        ),
        time_range=request.time_range,
        language=settings.language if request.language is None else request.language,
        timeout=settings.timeout_ms / 1000,
    )
    if wanted > max_results:
        await scope.warn(
            "web_limit", f"{name!r} returns at most {max_results} results; {wanted} were requested"
        )
    for ability, limitation in _UNSUPPORTED.items():
        if getattr(web_query, ability) and ability not in abilities:
            await scope.warn(f"web_{ability}", f"{name!r} {limitation}")
    return web_query


def _sites(names: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(site for site in map(bare, names or ()) if site)
