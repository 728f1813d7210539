"""Adding documents to a collection: found, read, cut, embedded, stored; and taking out those that
are gone.

A document that did not change costs reading it; one that changed replaces its last version. A
document that cannot be added is a line of the report and the others go on; a store that fails ends
the add. What was added before stays, whatever happens, and adding again goes on from there. Only a
few documents are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from groundhook.handlers.kb.declared import tenant_of
from groundhook.handlers.kb.ingest.build import Cut, Loaded, Making, address, cut_up, prepared
from groundhook.handlers.kb.ingest.deletion import Pruning
from groundhook.handlers.kb.ingest.report import AddReport, Meter, Progress, Tally
from groundhook.handlers.kb.ingest.sources import MOST_UNREAD, Found, Item, Seen, Supply, found
from groundhook.handlers.kb.ingest.throttle import CORES, together
from groundhook.handlers.kb.reading.columns import Columns
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.store import Incoming, Made, Outcome, Stored, VectorStore, agree
from groundhook.host.core.errors import IngestError
from groundhook.host.core.ports import Embedder
from groundhook.host.core.types.documents import Reader
from groundhook.host.core.types.specs import CollectionSpec


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to add. `prune`: remove documents that came from the folders and files named and are not
    there any more; None: do, unless none of a folder's documents is left. `feed` has rows as
    JSON."""

    paths: Sequence[Path]
    tenant: str = ""
    feed: BinaryIO | None = None
    prune: bool | None = None


class Ingestion:
    """Adds documents to collections of one store."""

    def __init__(
        self,
        store: VectorStore,
        *,
        reserve_bytes: int,
        readers: Mapping[str, Reader] = READERS,
    ) -> None:
        self._store = store
        self._readers = readers
        self._reserve_bytes = reserve_bytes

    async def add(
        self,
        spec: CollectionSpec,
        embedder: Embedder,
        made: Made,
        wanted: Wanted,
        progress: Progress | None = None,
    ) -> AddReport:
        """Raises UsageError, ConfigError for a collection made with something else, and
        StorageError."""
        if wanted.tenant:
            tenant_of(spec, wanted.tenant)
        there = await self._store.made(spec.id)
        if there is not None:
            agree(spec.id, there, made)
        given = await anyio.to_thread.run_sync(
            lambda: found(wanted.paths, feed=wanted.feed is not None, readers=self._readers)
        )
        seen = Seen()
        try:
            columns = Columns(spec.rows, apart=[spec.tenant_field] if spec.tenant_field else [])
            adding = _Add(
                store=self._store,
                collection=spec.id,
                put=partial(self._store.put, spec.id, made, reserve_bytes=self._reserve_bytes),
                making=Making(spec, embedder, wanted.tenant, self._readers),
                supply=Supply(given.files, columns, seen, wanted.feed),
                tally=Tally(),
                meter=Meter(progress, sum(file.size for file in given.files)),
                seen=seen,
            )
            await adding.run()
            pruning = Pruning(self._store, spec, wanted.tenant, adding.tally, seen)
            notes = await pruning.run(given, adding.supply.broken, wanted.prune)
        finally:
            seen.close()
        report = adding.tally.report(spec.id, given, adding.supply.broken)
        return AddReport(**{**vars(report), "notes": (*report.notes, *notes, *_linked(given))})


Ready = list[tuple[Item, Incoming]]


@dataclass(kw_only=True)
class _Add:
    """One add under way: documents are made on every core, and while one is written to the disk,
    the next are embedded."""

    store: VectorStore
    collection: str
    put: Callable[..., Awaitable[list[Outcome]]]
    making: Making
    supply: Supply
    tally: Tally
    meter: Meter
    seen: Seen

    async def run(self) -> None:
        send, receive = anyio.create_memory_object_stream[Ready](0)
        with send:
            makers = [partial(self._make, send.clone()) for _ in range(CORES)]
        await together(partial(self._write, receive), *makers)

    async def _make(self, ready: MemoryObjectSendStream[Ready]) -> None:
        async with ready:
            while items := await self.supply.take():
                self.meter.part(items[0], 0)
                changed = await self._changed(items)
                cuts: list[Cut] = []
                for loaded, cut in zip(changed, await cut_up(self.making, changed), strict=True):
                    if isinstance(cut, Cut):
                        self.tally.undeclared(list(cut.undeclared))
                        self.tally.remark(loaded.item, cut.document.notes)
                        cuts.append(cut)
                    else:
                        self._failed(loaded.item, cut)
                for portion in self.making.portions(cuts):
                    made = await self.making.made(portion, self._embedded)
                    await ready.send(
                        [
                            (cut.loaded.item, document)
                            for cut, document in zip(portion, made, strict=True)
                        ]
                    )

    async def _changed(self, items: Sequence[Item]) -> list[Loaded]:
        """Those of the items that are to be made: what cannot be read, and what is there as it is,
        is entered in the report."""
        loaded: list[Loaded] = []
        for item, each in zip(items, await prepared(self.making, items), strict=True):
            if isinstance(each, Loaded):
                self.seen.note(each.tenant, item.document)
                loaded.append(each)
            else:
                self.seen.note(None, item.document)
                self._failed(item, each)
        there = await self._there(loaded)
        changed = []
        moved: dict[str, dict[str, tuple[str, str]]] = {}
        for each in loaded:
            known = there.get((each.tenant, each.item.document))
            if known is None or known.fingerprint != each.fingerprint:
                changed.append(each)
                continue
            self.tally.note(each.item, "unchanged")
            self.meter.unchanged(each.item)
            source = each.item.file.source
            if known.source != source:
                own = known.url if not known.url.startswith("file:") else address(each.item)
                moved.setdefault(each.tenant, {})[each.item.document] = (own, source)
        for tenant, places in moved.items():
            await self.store.relocate(self.collection, tenant, places)
        return changed

    async def _there(self, loaded: Sequence[Loaded]) -> dict[tuple[str, str], Stored]:
        """What the store has of these documents, by tenant and id."""
        there: dict[tuple[str, str], Stored] = {}
        for tenant in dict.fromkeys(each.tenant for each in loaded):
            ids = [each.item.document for each in loaded if each.tenant == tenant]
            for stored in await self.store.stored(self.collection, tenant, ids):
                there[tenant, stored.document] = stored
        return there

    async def _write(self, ready: MemoryObjectReceiveStream[Ready]) -> None:
        async with ready:
            async for some in ready:
                outcomes = await self.put(*[document for _, document in some])
                for (item, document), outcome in zip(some, outcomes, strict=True):
                    self.tally.note(item, outcome, chunks=len(document.passages))

    def _embedded(self, cut: Cut, share: float, passages: int) -> None:
        self.meter.part(cut.loaded.item, share, passages)

    def _failed(self, item: Item, error: IngestError) -> None:
        self.tally.note(item, "failed", error=str(error))
        self.meter.part(item, 1)


def _linked(given: Found) -> Iterator[str]:
    """What to say of links to folders."""
    if given.linked:
        shown = ", ".join(map(repr, given.linked[:MOST_UNREAD])) + (
            ", …" if len(given.linked) > MOST_UNREAD else ""
        )
        yield (
            f"links to folders are not followed: {shown} (name those folders themselves to add what"
            " is in them)"
        )
