"""The composition root: opens an app and makes the parts that its turns and searches need.

async with open_host("path/to/app") as host:
    async with host.stream("docs", "What is a hook?") as events:
        async for event in events: ...

Tuning of Python's garbage collector for a process that serves an app.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    suppress,
)
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from groundhook.core.errors import StorageError
from groundhook.core.exception_groups import unwrap_exception_groups
from groundhook.core.extras import extra
from groundhook.core.hook_engine import HookEngine
from groundhook.core.hook_tests import SuiteEngine
from groundhook.core.ports import (
    ClientOf,
    Clock,
    Connector,
    Embedder,
    Handler,
)
from groundhook.core.readers.pool import ReaderPool, TextReaders, open_readers
from groundhook.core.registry import Deferred
from groundhook.core.trace import Export
from groundhook.core.types.attached import AttachedReader
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.core.types.search import SearchType
from groundhook.core.types.tools import Tool
from groundhook.handlers.kb.reading.html_markdown import markdown_of
from groundhook.hooks.first_use import open_on_first_use
from groundhook.host.app.builtins import BUILTIN, declared_embedders
from groundhook.host.app.connectors import Connectors
from groundhook.host.app.host import Host
from groundhook.host.app.parts import RERANKER, make_part, named_reader, named_tool
from groundhook.host.app.plugins import (
    HOST,
    PORT_VERSION,
    Entries,
    Plugin,
    PluginContext,
    PluginOwner,
    Plugins,
    Source,
    installed_plugins,
    join_plugins,
    passed_plugins,
)
from groundhook.host.app.sources import AppSources
from groundhook.host.app.toolkits import Toolkits
from groundhook.host.chats.memory.memory import open_memory
from groundhook.host.config.env_file import app_environment
from groundhook.host.config.environment import child_environment
from groundhook.host.config.packages import App, load_app
from groundhook.host.search.searcher import SearchPlugins
from groundhook.host.tools.mcp.servers import open_servers
from groundhook.host.tools.toolbox import Toolbox
from groundhook.host.turn.context import Randomness, Runtime
from groundhook.host.turn.open_turns import open_turns
from groundhook.host.turn.request_servers import RequestServers
from groundhook.host.web_client.clients import open_web_clients

if TYPE_CHECKING:
    from groundhook.core.types.sync import SyncStatus
    from groundhook.host.app.exact_texts import ExactTexts
    from groundhook.host.chats.ports import ChatStore
    from groundhook.host.sync.engine import SyncEngine
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exclude the objects that exist now from garbage collection while the block runs. The parts of
    an app live as long as its host; each scan of them would stop all turns for 50 ms."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


CHATS_FILE = "chats.sqlite"  # in the state folder
CLOSING_TIME = 5.0  # seconds that the parts of plug-ins get to close


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
    tune_gc: bool = False,
    processes: int = 1,
) -> AsyncIterator[Host]:
    """Return a context manager that opens the app in a folder and yields its `Host`. Processes and
    models start when they are first used. Raises ConfigError, PluginError.

    `now` fixes the clock, also for hooks: a moment, or a function that returns one. `seed` makes
    random values repeatable, for tests only: the random numbers of hooks, and the fence around
    sources, which documents must not know. `environment` replaces the process's, and `.env`.
    `plugins` register more parts, as the entry point group `groundhook.plugins` does. `sources`
    replace the built-in ones, `connectors` those that the app declares. `tools` are offered to
    models. `tune_gc` is for processes that serve only one app: objects that exist when it is opened
    are excluded from garbage collection, which saves turns pauses of 50 ms. `processes` is how many
    processes on this machine open the app to serve it together: without `hooks.workers`, each of
    them starts its part of one hook worker per core."""
    registry = Plugins()
    given = PluginOwner("an argument of open_host", passed=True)
    instances = (given, _make_plugin(sources or {}, tools))
    join_plugins(
        registry, [(HOST, BUILTIN), *installed_plugins(), *passed_plugins(plugins), instances]
    )
    app = _load(Path(path), environment, registry)
    settings = app.settings
    async with AsyncExitStack() as stack:
        stack.enter_context(unwrap_exception_groups())
        engine = await stack.enter_async_context(_open_hooks(app, processes))
        clock = _make_clock(now)
        memory = await stack.enter_async_context(
            open_memory(app.state / "memory.sqlite", clock, settings.memory, settings.store)
        )
        web_clients = await stack.enter_async_context(open_web_clients())
        servers = await stack.enter_async_context(
            open_servers(app.servers, app.environment, folder=app.root)
        )
        closing = await stack.enter_async_context(AsyncExitStack())
        readers = await stack.enter_async_context(open_readers(child_environment()))

        def embedder(spec: EmbeddingSpec) -> Embedder:
            return opened.knowledge_base.embedder(spec)

        context = _make_context(app, registry, clock, web_clients.of, embedder, closing)
        opened = AppSources(context, _open_exact_texts(app, closing))
        runtime = Runtime(
            app=app,
            plugins=_make_search_plugins(context, opened),
            documents=opened,
            records=opened,
            texts=TextReaders(readers, markdown_of),
            attachments=cache(partial(_make_attached_reader, readers, embedder, registry)),
            memory=memory,
            web_clients=web_clients,
            connectors=Connectors(app, context, connectors or {}),
            hooks=engine,
            toolbox=_make_toolbox(registry.tools),
            toolkits=Toolkits(app, context),
            collections=partial(opened.collections, app),
            servers=servers,
            servers_for=RequestServers,
            now=clock,
            web_configured=opened.web_configured,
            clock_is_fixed=now is not None,
            randomness=Randomness(seed=seed),
            export=await stack.enter_async_context(_open_trace_export(app)),
        )
        chats = partial(_open_chats, stack.enter_context(ExitStack()), app)
        # Entered after everything that turns use, so that turns end before it is closed.
        turns = await stack.enter_async_context(open_turns(settings.turns))
        if tune_gc:
            stack.enter_context(frozen_heap())
        yield Host(runtime=runtime, sources=opened, plugins=registry, turns=turns, open_chats=chats)


def _make_attached_reader(
    pool: ReaderPool, embedder: Callable[[EmbeddingSpec], Embedder], plugins: Plugins
) -> AttachedReader:
    # Imported here because most turns have no files.
    from groundhook.handlers.kb.attached import AttachedFiles

    given = plugins.readers
    readers = {name: named_reader(given.part(name), read) for name, read in given.items()}
    return AttachedFiles(pool, embedder, readers)


@asynccontextmanager
async def open_suite_engine(app: App) -> AsyncIterator[SuiteEngine]:
    """Yield the engine that runs an app's test files."""
    # Imported here because only tests need it.
    from groundhook.hooks.testing import open_suites

    async with open_suites(cache=app.state / "hooks", environment=child_environment()) as engine:
        yield engine


def _open_hooks(app: App, processes: int) -> AbstractAsyncContextManager[HookEngine]:
    workers = app.settings.hook_workers
    if workers is None:
        workers = max(1, (os.cpu_count() or 1) // processes)
    return open_on_first_use(
        workers=workers, cache=app.state / "hooks", environment=child_environment()
    )


def _load(path: Path, environment: Mapping[str, str] | None, registry: Plugins) -> App:
    """Read the app's files, register the embedders that they declare, and make its state folder.
    Raises ConfigError, StorageError."""
    variables = app_environment(path) if environment is None else environment
    app = load_app(
        path,
        variables,
        frozenset(registry.connectors.names()),
        frozenset(registry.toolkits.names()),
    )
    join_plugins(
        registry,
        [(PluginOwner("`embedders` of agent/agent.yml"), declared_embedders(app.settings))],
    )
    _make_state_folder(app.state)
    return app


def _open_chats(stack: ExitStack, app: App) -> ChatStore:
    """Return the store of conversations, which is closed with the stack."""
    # Imported here because turns outside of conversations do not need it.
    from groundhook.host.chats.storage.opening import open_storage
    from groundhook.host.chats.store import chat_store
    from groundhook.host.chats.tables import CHATS

    file = app.state / CHATS_FILE
    opened = open_storage(app.settings.store, file, [CHATS], noun="the chats")
    return chat_store(stack.enter_context(opened))


def _open_exact_texts(app: App, closing: AsyncExitStack) -> Callable[[], ExactTexts]:
    """Return a function that opens the exact texts of documents when it is first called; they are
    closed with the app."""

    @cache
    def opened() -> ExactTexts:
        from groundhook.host.app.exact_texts import ExactTexts

        texts = ExactTexts(app.state)
        closing.callback(texts.close)
        return texts

    return opened


@asynccontextmanager
async def _open_trace_export(app: App) -> AsyncIterator[Export | None]:
    """Yield the export of traces that the app's settings name, or None. Raises ConfigError."""
    settings = app.settings.trace.export
    if settings is None:
        yield None
        return
    with extra("otlp", "sending traces (trace.export in agent/agent.yml)"):
        from groundhook.host.output.trace_export import TraceExport
    export = TraceExport(settings, app.environment, service="groundhook")
    try:
        yield export
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(export.close)


def _make_context(
    app: App,
    plugins: Plugins,
    now: Clock,
    client_of: ClientOf,
    embedder: Callable[[EmbeddingSpec], Embedder],
    closing: AsyncExitStack,
) -> PluginContext:
    return PluginContext(
        environment=app.environment,
        child_environment=child_environment(),
        settings=app.settings,
        root=app.root,
        state=app.state,
        databases=app.databases,
        collections=app.collections,
        models=app.models,
        plugins=plugins,
        client_of=client_of,
        embedder=embedder,
        now=now,
        synced=_make_sync_reader(app.state, now),
        closing=lambda close: closing.push_async_callback(_limit_closing, close),
    )


def _make_sync_reader(folder: Path, now: Clock) -> Callable[[str], Awaitable[SyncStatus]]:
    """Return the reader of the state of syncs; the engine is imported when a toolkit first needs
    it."""

    @cache
    def engine() -> SyncEngine:
        from groundhook.host.sync.engine import SyncEngine

        return SyncEngine(folder, now)

    async def status(toolkit: str) -> SyncStatus:
        return await engine().past(toolkit)

    return status


def _make_search_plugins(context: PluginContext, sources: AppSources) -> SearchPlugins:
    entries = context.plugins.rerankers
    makers = {
        name: partial(make_part, entries.part(name), RERANKER, partial(make, context))
        for name, make in entries.items()
    }
    return SearchPlugins(
        handlers=sources.handlers,
        rerankers=Deferred("reranker", makers),
        imported=sources.imported,
    )


def _make_toolbox(tools: Entries[Tool]) -> Toolbox:
    return Toolbox.of(named_tool(tools.part(name), tool) for name, tool in tools.items())


def _make_plugin(sources: Mapping[SearchType, Handler], tools: Iterable[Tool]) -> Plugin:
    """Return a plug-in that registers parts which a program has made itself, in place of the
    built-in ones. The plug-in raises UnknownName."""
    made = [
        Source(type=type, make=partial(_return_given, handler)) for type, handler in sources.items()
    ]

    def register(plugins: Plugins) -> None:
        for source in made:
            plugins.sources.replace(source.type, source)
        for tool in tools:
            plugins.tools.add(tool.name, tool)

    return Plugin(register, requires=PORT_VERSION)


def _return_given(handler: Handler, _: PluginContext) -> Handler:
    return handler


async def _limit_closing(close: Callable[[], Awaitable[None]]) -> None:
    # Shielded: a host is often closed because its task was cancelled.
    with anyio.move_on_after(CLOSING_TIME, shield=True):
        await close()


def _make_clock(now: datetime | Callable[[], datetime] | None) -> Callable[[], datetime]:
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
    for file in (*folder.glob("*.sqlite*"), *folder.glob("graphs/*.sqlite*")):
        with suppress(OSError):  # another user's file, or one that was removed meanwhile
            if file.stat().st_mode & 0o077:  # of an older version, or copied
                file.chmod(0o600)
