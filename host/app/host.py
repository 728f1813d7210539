"""The composition root: the only place that knows which sources, rerankers, connectors and hook
engine there are.

async with open_host("path/to/app") as host:
    async with host.stream("docs", "What is a hook?") as events:
        async for event in events: ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ValidationError

from groundhook.handlers.db.base import Database, open_database
from groundhook.handlers.kb.base import KnowledgeBase, open_kb
from groundhook.handlers.kb.embed import EmbedderFactory
from groundhook.handlers.kb.embedders import providers as services
from groundhook.handlers.kb.reading.html import markdown_of
from groundhook.handlers.web.base import open_web
from groundhook.hooks.runner import open_engine
from groundhook.host.app.check import check
from groundhook.host.app.gc_tuning import spared
from groundhook.host.app.hook_diagnostics import declarations, hook_problems
from groundhook.host.citations.index import CitationIndex
from groundhook.host.config.environment import child_environment, process_environment
from groundhook.host.config.packages import App, load_app
from groundhook.host.config.resolve import Explained, explain, explain_app
from groundhook.host.core.channel import Channel
from groundhook.host.core.errors import ConfigError, HostError, StorageError, UsageError, unwrapped
from groundhook.host.core.ports import Connector, Delegates, Embedder, Handler, Reranker, Warn
from groundhook.host.core.problems import Problem
from groundhook.host.core.registry import Registry
from groundhook.host.core.settings import Settings
from groundhook.host.core.types.base import dotted, problems, read, well_formed
from groundhook.host.core.types.events import Event, Warned
from groundhook.host.core.types.search import SearchRequest, SearchResult, SearchType
from groundhook.host.core.types.specs import EmbeddingSpec
from groundhook.host.core.types.turn import Identity, Message, TurnOptions
from groundhook.host.llm.connectors import build
from groundhook.host.mcp.servers import open_servers
from groundhook.host.memory.memory import open_memory
from groundhook.host.search.searcher import Plugins, Searcher
from groundhook.host.turn.run import Caller, Fixed, Names, Request, Runtime, scope_of
from groundhook.host.turn.stream import OpenTurns, call, open_turn
from groundhook.host.turn.tools import Tool, Toolbox
from groundhook.host.web_client.clients import open_web_clients
from groundhook.rerankers.delegated import DelegatedReranker
from groundhook.rerankers.model import open_model_reranker
from groundhook.rerankers.score import ScoreReranker

Plugin = Callable[[Plugins], None]
PLUGINS = "groundhook.plugins"  # entry points of this group are plug-ins


@dataclass(frozen=True, kw_only=True)
class Host:
    """An app that is open. Made by `open_host`; everything it started ends with it."""

    app: App
    runtime: Runtime
    kb: KnowledgeBase
    database: Database
    turns: OpenTurns
    providers: Sequence[str] = ()

    def stream(
        self,
        assistant_id: str,
        messages: str | Sequence[Message | Mapping[str, Any]],
        *,
        search: bool | None = None,
        connector: str | Sequence[str] | None = None,
        identity: Identity | Mapping[str, Any] | None = None,
        options: TurnOptions | Mapping[str, Any] | None = None,
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Enter one turn and read its events; leaving the block stops what is still running.
        `messages` is the conversation or one user message. Of several `connector`s the next is
        asked when one cannot be reached. Entering raises UnknownName and ConfigError; later
        failures are `error` events."""
        given = (
            options.model_dump(exclude_unset=True)
            if isinstance(options, TurnOptions)
            else dict(options or {})
        )
        said = {"search": search, "connector": connector}
        request = Request(
            assistant_id=assistant_id,
            messages=conversation(messages),
            options=_valid(
                TurnOptions,
                {**given, **{key: value for key, value in said.items() if value is not None}},
            ),
            identity=_valid(Identity, identity or {}, "identity"),
        )
        return open_turn(self.runtime, self.turns, request)

    async def search(
        self,
        request: SearchRequest | Mapping[str, Any],
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        warned: Callable[[Warned], object] | None = None,
    ) -> SearchResult:
        """One search outside a turn, with an assistant's settings and names or the app's. A search
        that fails is a result with `error`; what else should be known goes to `warned`. Raises
        UsageError for a request that is none, UnknownName for the assistant."""
        asked = _valid(SearchRequest, request)
        self.turns.refuse_if_closed()
        settings = self.settings(assistant)
        channel = Channel("search")
        warn = _warner(warned)
        caller = Caller(runtime=self.runtime, turn_id=channel.turn_id)
        asking = Request(
            assistant_id=assistant or "",
            messages=(),
            identity=_valid(Identity, identity or {}, "identity"),
        )
        searcher = Searcher(
            plugins=self.runtime.plugins,
            settings=settings,
            scope=scope_of(caller, asking, settings, call, warn),
            names=Names(self.app, assistant or "", settings),
            citation_index=CitationIndex(settings.search.citation.format),
            channel=channel,
        )
        channel.close()
        return await searcher.search(asked, "user")

    def delegates(
        self,
        *,
        identity: Identity | Mapping[str, Any] | None = None,
        assistant: str | None = None,
        warned: Callable[[Warned], object] | None = None,
    ) -> Delegates:
        """Who does, outside a turn, the steps that are given to an assistant or an MCP tool; their
        warnings go to `warned`."""
        warn = _warner(warned)
        caller = Caller(runtime=self.runtime, turn_id="")
        asking = Request(
            assistant_id=assistant or "",
            messages=(),
            identity=_valid(Identity, identity or {}, "identity"),
        )
        return scope_of(caller, asking, self.settings(assistant), call, warn).delegates

    def with_app(self, app: App) -> Host:
        """The same host over another reading of its files. Turns that have begun go on with what
        they began with. MCP servers stay those that were declared when the host was opened."""
        kb = (
            self.kb
            if app.collections is self.app.collections
            else self.kb.with_collections(app.collections)
        )
        database = (
            self.database
            if app.models is self.app.models
            else self.database.with_models(app.models)
        )
        handlers = Registry[Handler]("search type")
        for type in self.runtime.plugins.handlers:
            handler = self.runtime.plugins.handlers.get(type)
            handlers.add(
                type,
                kb if handler is self.kb else database if handler is self.database else handler,
            )
        assert isinstance(self.runtime.connectors, Connectors)
        runtime = replace(
            self.runtime,
            app=app,
            plugins=replace(self.runtime.plugins, handlers=handlers),
            documents=kb,
            records=database if self.runtime.records is self.database else self.runtime.records,
            connectors=self.runtime.connectors.with_app(app),
        )
        return replace(self, app=app, runtime=runtime, kb=kb, database=database)

    async def check(self, assistant: str | None = None) -> list[Problem]:
        """Everything that is wrong with the app's files, or with one assistant: configuration,
        references between files, hooks that do not compile or do not fit their types. Raises
        UnknownName."""
        rerankers = self.runtime.plugins.rerankers.names()
        found = check(
            self.app,
            assistant or "",
            providers=self.providers,
            rerankers=rerankers,
            collection=self.kb.wrong,
        )
        ids = [assistant] if assistant else sorted(self.app.packages)
        outdated = [
            Problem(_severity(one), one.message, hint=one.hint, code=one.code)
            for one in await self.kb.outdated()
        ]
        return [
            *found,
            *outdated,
            *await hook_problems(self.app, ids, self.runtime.hooks, self._tools),
        ]

    def declarations(self) -> str:
        """What a hook of this app may use, as TypeScript declarations."""
        return declarations(self.app, self._tools)

    def explain(self, assistant: str) -> list[Explained]:
        """Every setting of an assistant and of the app, with the layer and place that set it.
        Raises UnknownName, ConfigError."""
        own = explain(self.app.settings_for(self.app.package(assistant)))
        return [*own, *explain_app(self.app.settings, self.app.agent_file)]

    @property
    def _tools(self) -> list[str]:
        return [schema["function"]["name"] for schema in self.runtime.toolbox.schemas()]

    def settings(self, assistant: str | None = None) -> Settings:
        """An assistant's settings, or the app's. Raises UnknownName, ConfigError."""
        if assistant is not None:
            return self.app.settings_for(self.app.package(assistant)).settings
        return self.app.common.settings


@asynccontextmanager
async def open_host(
    path: str | Path = ".",
    *,
    now: datetime | Callable[[], datetime] | None = None,
    seed: int | None = None,
    environment: Mapping[str, str] | None = None,
    plugins: Iterable[Plugin] = (),
    sources: Mapping[SearchType, Handler] | None = None,
    tools: Iterable[Tool] = (),
    connectors: Mapping[str, Connector] | None = None,
) -> AsyncIterator[Host]:
    """Open the app in a folder. Opening starts no process and loads no model: what is needed starts
    when it is first used.

    `now` fixes the clock (a moment, or what returns one), for hooks as well. `seed` fixes chance,
    for tests only: the random numbers of hooks, and the fence around sources, which documents must
    not know. `environment` replaces the process's variables. `plugins` add rerankers, as those of
    the entry point group `groundhook.plugins` do. `sources` take the place of the built-in ones,
    `connectors` of those that the app declares. `tools` are offered to models. Raises ConfigError,
    UnknownName.
    """
    app = load_app(Path(path), process_environment() if environment is None else environment)
    settings = app.settings
    _make_state_folder(app.state)
    async with AsyncExitStack() as stack:
        stack.enter_context(unwrapped())
        engine = await stack.enter_async_context(
            open_engine(
                workers=settings.hook_workers,
                cache=app.state / "hooks",
                environment=child_environment(),
            )
        )
        embedders = _embedders(app)
        kb = await stack.enter_async_context(
            open_kb(app.state, app.collections, embedders, settings.kb_storage, settings.qdrant)
        )
        database = await stack.enter_async_context(_database(app))
        clock = _clock(now)
        memory = await stack.enter_async_context(
            open_memory(app.state / "memory.sqlite", clock, settings.memory)
        )
        web_clients = await stack.enter_async_context(open_web_clients())
        web = await stack.enter_async_context(
            open_web(app.environment, client_of=web_clients.of, readers=child_environment())
        )
        servers = await stack.enter_async_context(
            open_servers(app.servers, app.environment, folder=app.root)
        )
        handlers: dict[SearchType, Handler] = {
            "web": web,
            "kb": kb,
            "db": database,
            **(sources or {}),
        }
        model_reranker = await stack.enter_async_context(open_model_reranker(app.environment))
        runtime = Runtime(
            app=app,
            plugins=_registered(handlers, model_reranker, plugins),
            documents=kb,
            records=database,
            markdown=markdown_of,
            memory=memory,
            web_clients=web_clients,
            connectors=Connectors(app, kb.embedder(EmbeddingSpec()), connectors or {}),
            hooks=engine,
            toolbox=Toolbox(tools),
            servers=servers,
            now=clock,
            web_configured=lambda settings: web.configured(settings.search.web, settings.uses.web),
            fixed=Fixed(clock=now is not None, seed=seed),
        )
        turns = OpenTurns()
        stack.push_async_callback(turns.close)
        stack.enter_context(spared())
        yield Host(
            app=app, runtime=runtime, kb=kb, database=database, turns=turns, providers=web.providers
        )


def _embedders(app: App) -> Registry[EmbedderFactory]:
    embedders = Registry[EmbedderFactory]("embedding provider")
    services.register_local(embedders, small_engine=app.settings.kb_storage.small_embedder)
    services.register(embedders, app.settings.embedders, app.environment)
    return embedders


def _warner(warned: Callable[[Warned], object] | None) -> Warn:
    async def warn(code: str, message: str) -> None:
        if warned is not None:
            warned(Warned(code=code, message=message))

    return warn


def _severity(error: HostError) -> Literal["error", "warning"]:
    return "error" if isinstance(error, ConfigError) else "warning"


def _database(app: App) -> AbstractAsyncContextManager[Database]:
    said = app.settings.database
    url = app.database_url
    return open_database(
        url, said.timeout_ms, app.models, connections=said.connections, result_kb=said.result_kb
    )


def conversation(messages: str | Sequence[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    """Messages from what a caller has: text, mappings or messages, or one alone. Raises
    UsageError."""
    said: Any = {"role": "user", "content": messages} if isinstance(messages, str) else messages
    every = said if isinstance(said, (list, tuple)) else [said]
    return tuple(
        _valid(Message, message, f"messages[{index}]") for index, message in enumerate(every)
    )


def _registered(
    handlers: Mapping[SearchType, Handler], model: Reranker, plugins: Iterable[Plugin]
) -> Plugins:
    """What there is to search and to rerank with; built-ins and plug-ins come through the same
    door."""
    rerankers = {
        "score": ScoreReranker(),
        "model": model,
        "agent": DelegatedReranker("agent"),
        "mcp": DelegatedReranker("mcp"),
    }

    def builtin(registries: Plugins) -> None:
        for type, handler in handlers.items():
            registries.handlers.add(type, handler)
        for name, reranker in rerankers.items():
            registries.rerankers.add(name, reranker)

    types = Registry[Handler]("search type", get_args(SearchType))
    registries = Plugins(handlers=types, rerankers=Registry[Reranker]("reranker"))
    for plugin in [
        builtin,
        *(point.load() for point in metadata.entry_points(group=PLUGINS)),
        *plugins,
    ]:
        plugin(registries)
    return registries


class Connectors:
    """Connectors by id, each made when it is first asked for. `given` take the place of those that
    the app declares."""

    def __init__(self, app: App, embedder: Embedder, given: Mapping[str, Connector]) -> None:
        self._app, self._embedder, self._given = app, embedder, given
        self._made = dict(given)

    def with_app(self, app: App) -> Connectors:
        return Connectors(app, self._embedder, self._given)

    def __call__(self, id: str) -> Connector:
        """Raises UnknownName; ConfigError when its file is broken or needs a variable that is not
        set."""
        if id not in self._made:
            self._made[id] = build(self._app.connector(id), self._embedder)
        return self._made[id]


def _valid(model: type[Any], raw: Any, path: str = "") -> Any:
    if isinstance(raw, model):
        return raw
    if not isinstance(raw, Mapping):
        raise UsageError(
            f"{path or model.__name__} must be a mapping, not {raw.__class__.__name__}"
        )
    try:
        value, unknown = read(model, well_formed(raw))
    except RecursionError:
        raise UsageError(f"{path or model.__name__} is nested too deeply") from None
    except ValidationError as exc:
        step, message = problems(exc)[0]
        where = ".".join(part for part in (path, dotted(step)) if part)
        raise UsageError(f"{where or model.__name__}: {message}") from None
    if unknown:
        raise UsageError(
            f"{path}{'.' if path else ''}{unknown[0].path}: unknown key", hint=unknown[0].hint
        )
    return value


def _clock(now: datetime | Callable[[], datetime] | None) -> Callable[[], datetime]:
    moment = None if now is None or callable(now) else now.astimezone()
    return now if callable(now) else lambda: moment or datetime.now().astimezone()


def _make_state_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        hint = "make the app's folder writable, or name another with `state` in agent/agent.yml"
        raise StorageError(
            f"the state folder {str(folder)!r} cannot be made: {exc.strerror}", hint=hint
        ) from exc
