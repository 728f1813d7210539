"""The syncs of an app's toolkits: lists them, returns their state, runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from groundhook.core.errors import HostError, UsageError
from groundhook.core.registry import by_end
from groundhook.core.sync_source import SyncSource
from groundhook.core.tool_ports import Toolkit
from groundhook.core.types.sync import SyncProgress, SyncReport, SyncStatus
from groundhook.host.app.collections import AppCollections
from groundhook.host.app.sources import AppSources
from groundhook.host.config.packages import App
from groundhook.host.sync.engine import SyncEngine
from groundhook.host.sync.schedule import keep_synced


@dataclass(frozen=True)
class Syncs:
    """The syncs of one reading of an app's files."""

    app: App
    sources: AppSources
    toolkits: Callable[[str], Toolkit]
    engine: SyncEngine

    def ids(self) -> list[str]:
        """Return the toolkits that are synced, by full id, without those whose file is broken."""
        return [id for id, _ in self._list_synced()]

    def id_of(self, name: str) -> str:
        """Return the full id of a toolkit, given it or its end. Raises UnknownName, UsageError."""
        return by_end("toolkit", name, list(self.app.toolkits))

    async def run(
        self,
        name: str,
        *,
        full: bool = False,
        force: bool = False,
        progress: Callable[[SyncProgress], object] | None = None,
    ) -> SyncReport:
        """Sync a toolkit and return the report. Raises UnknownName, ConfigError, SourceError,
        StorageError; UsageError for a toolkit that reads live, and if too many records are missing
        from its source."""
        id = self.id_of(name)
        source = self.toolkits(id).sync()
        if source is None:
            raise UsageError(f"the toolkit {id!r} reads live: it has nothing to sync")
        owner = self.app.toolkits.named(id).assistant
        sources = self.sources
        collections = AppCollections(self.app, lambda: sources.knowledge_base, sources.texts, owner)
        return await self.engine.sync(
            id, source, collections, full=full, force=force, progress=progress
        )

    async def status(self, name: str) -> SyncStatus:
        """Return the state of a toolkit's syncs, with the time between them. Raises UnknownName,
        StorageError."""
        id = self.id_of(name)
        status = await self.engine.status(id)
        source = self.toolkits(id).sync()
        return status if source is None else replace(status, every=source.settings.every)

    async def keep(self, failed: Callable[[str], object]) -> None:
        """Sync every toolkit with `sync.every` at that interval, until cancelled. `failed` is
        called with the reason of a failed sync; the next one is due as usual."""
        await keep_synced(
            {id: source.settings.every_s for id, source in self._list_synced()},
            last=self.engine.status,
            sync=self.run,
            on_failure=failed,
            now=self.engine.now,
        )

    def _list_synced(self) -> Iterator[tuple[str, SyncSource]]:
        for id in sorted(self.app.toolkits):
            try:
                source = self.toolkits(id).sync()
            except HostError:
                continue  # `groundhook check` and calls of its tools report the error
            if source is not None:
                yield id, source
