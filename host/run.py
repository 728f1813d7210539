"""One turn's state: what it runs under, what it has found, and what its hooks may ask of the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from host.answer import Answer
from host.citations import Book
from host.config.layers import Layer, hook_layer, request_layer, resolve
from host.config.schema import Settings
from host.content import question_of
from host.errors import HostError, Place
from host.output.channel import Channel
from host.packages import App, Package
from host.ports import Clock, Connector, Documents, HookEngine, HookTurn, Scope
from host.registry import Registry
from host.search.searcher import Plugins, Searcher
from host.tools import Toolbox
from host.trace import span
from host.types.events import Failed, Warned
from host.types.search import SearchRequest, SearchResult, SearchType
from host.types.turn import CreateReturn, Identity, Message, TurnOptions


@dataclass(frozen=True, kw_only=True)
class Machinery:
    """What a host is made of, shared by all its turns. Only the composition root makes one."""

    app: App
    plugins: Plugins
    documents: Documents
    connectors: Registry[Connector]
    hooks: HookEngine
    toolbox: Toolbox
    now: Clock
    web_configured: Callable[[Settings], bool]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One turn as it was asked for."""

    assistant_id: str
    messages: tuple[Message, ...]
    options: TurnOptions = TurnOptions()
    identity: Identity = Identity()


@dataclass
class Run:
    """The state of one turn. Steps write into it in order; what they hand out does not change afterwards."""

    machinery: Machinery
    request: Request
    package: Package
    channel: Channel
    settings: Settings
    searcher: Searcher
    answer: Answer
    question: str
    results: list[SearchResult] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)

    @staticmethod
    def begin(machinery: Machinery, request: Request, package: Package, channel: Channel) -> Run:
        """Resolve the layers that are known before the hook. Raises ConfigError."""
        settings = resolve([*_below(machinery.app, package), request_layer(request.options)]).settings
        book = Book(settings.search.citation.format)

        async def warn(code: str, message: str) -> None:
            await channel.send(Warned(code=code, message=message))

        scope = Scope(
            identity=request.identity,
            assistant_id=package.id,
            settings=settings.search,
            uses=settings.uses,
            now=machinery.now,
            warn=warn,
        )
        searcher = Searcher(
            plugins=machinery.plugins,
            settings=settings,
            scope=scope,
            names=machinery.app.names(package),
            book=book,
            channel=channel,
        )
        return Run(machinery, request, package, channel, settings, searcher, Answer(channel, book), question_of(request.messages))

    def adopt(self, created: CreateReturn) -> None:
        """Fold what Create returned between the assistant's layer and the request's. Raises ConfigError."""
        layers = [*_below(self.machinery.app, self.package), hook_layer(created), request_layer(self.request.options)]
        self.settings = resolve(layers).settings
        scope = replace(self.searcher.scope, settings=self.settings.search, uses=self.settings.uses)
        self.searcher = replace(self.searcher, settings=self.settings, scope=scope)
        self.metadata.update(created.metadata or {})
        self.question = question_of(created.messages or ()) or self.question
        book = self.searcher.book
        if self.settings.search.citation.format != book.format:
            book.reformat(self.settings.search.citation.format)
            self.results = [
                result.model_copy(update={"items": tuple(book.cite(item) for item in result.items)}) for result in self.results
            ]

    def hook_turn(self) -> HookTurn | None:
        """The turn as the hook engine takes it; None when the package has no hook."""
        if self.package.hook is None:
            return None
        options = self.request.options
        context = {
            "chat_id": options.chat_id,
            "assistant_id": self.package.id,
            "locale": options.locale or self.settings.locale,
            "theme": options.theme,
            "route": options.route,
            "referer": options.referer,
            "accept": options.accept,
            "client": options.client.model_dump(),
            "metadata": {**options.metadata, **self.metadata},
            "authorized": self.request.identity.model_dump(),
        }
        return HookTurn(script=self.package.hook, context=context, services=_Services(self), limits=self.settings.hooks.limits)

    @property
    def usable(self) -> frozenset[SearchType]:
        """The search types that could be searched if that was forced."""
        usable: set[SearchType] = {"web"} if self.machinery.web_configured(self.settings) else set()
        usable |= {"kb"} if self.settings.kb.collections or self.settings.search.kb.collections else set()
        usable |= {"db"} if self.settings.db.models or self.settings.search.db.models else set()
        return frozenset(usable)

    async def warn(self, error: HostError) -> None:
        await self.channel.send(Warned(**_told(error)))


def failure(error: HostError) -> Failed:
    """An error as the event that tells the client."""
    return Failed(**_told(error))


def _told(error: HostError) -> dict[str, Any]:
    place = error.place or Place("")
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "file": place.file,
        "line": place.line,
        "column": place.column,
    }


def _below(app: App, package: Package) -> list[Layer]:
    return [*app.layers, package.layer]


@dataclass(frozen=True)
class _Services:
    """`host.ports.HookServices` for one run: searches of its hooks join the turn's pool."""

    run: Run

    async def search(self, request: SearchRequest, /) -> SearchResult:
        result = await self.run.searcher.search(request, "hook")
        self.run.results.append(result)
        return result

    async def search_many(self, requests: Sequence[SearchRequest], mode: Literal["all", "any", "race"], /) -> list[SearchResult]:
        results = await self.run.searcher.search_many(requests, mode, "hook")
        self.run.results += results
        return results

    async def log(self, level: str, message: str, /) -> None:
        with span("log", message, level=level):
            pass

    async def warn(self, code: str, message: str, /) -> None:
        await self.run.channel.send(Warned(code=code, message=message, file=self.run.package.folder_shown))


def hook_options(options: TurnOptions) -> Mapping[str, Any]:
    """The request's options as hooks see them: what was said, nothing more."""
    return options.model_dump(mode="json", exclude_defaults=True)
