"""Add documents to a collection: find, read, cut, embed and store them, and delete those that no
longer exist.

An unchanged document is only read; a changed one replaces its previous version. A document that
cannot be added becomes a line of the report and the others continue; a store that fails ends the
add. Everything stored before a failure stays, and the next add continues from there. Only a few
documents are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from groundhook.core.errors import IngestError
from groundhook.core.ports import Embedder
from groundhook.core.readers.pool import open_readers
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.documents import Reader
from groundhook.handlers.kb.declaration import validated_tenant
from groundhook.handlers.kb.ingest.build import (
    ChunkedDocument,
    DocumentBuilder,
    LoadedDocument,
    address,
)
from groundhook.handlers.kb.ingest.identity import Chosen, choose, moved_notes
from groundhook.handlers.kb.ingest.parse import FileParser
from groundhook.handlers.kb.ingest.report import AddProgress, AddReport, Meter, Tally
from groundhook.handlers.kb.ingest.sources import (
    FEED,
    MOST_UNREAD,
    File,
    Inputs,
    ItemSupply,
    PlannedDocument,
    SeenIds,
    find_inputs,
)
from groundhook.handlers.kb.ingest.throttle import CORES, run_concurrently
from groundhook.handlers.kb.reading.columns import Columns
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.store.checks import refuse_other_settings
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    DocumentRecord,
    DocumentStore,
    FullDocument,
    PutOutcome,
)


class Deletion:
    """Deletes after one add to one collection: documents that came from a folder, a file of rows
    or the feed that was added and no longer exist there. A document stays if its file or folder
    exists and cannot be read, and so do the rows of a file that could not be read to its end.
    `tenant` is that of the added documents; "" if each document named its own."""

    def __init__(
        self, store: DocumentStore, spec: CollectionSpec, tenant: str, tally: Tally, seen: SeenIds
    ) -> None:
        self._store = store
        self._spec = spec
        self._tenant = tenant if tenant or not spec.tenant_field else None
        self._tally = tally
        self._seen = seen

    async def run(self, inputs: Inputs, broken: Mapping[int, str], prune: bool | None) -> list[str]:
        """Delete what no longer exists and return notes for the report. `broken` are files of rows
        that were not read to their end; `prune` is as in `AddRequest`. Documents of a feed are
        deleted only with `prune=True`: a feed need not repeat what it delivered before."""
        if prune is False:
            return []
        kept = {file.source for file in inputs.files if file.error or file.index in broken}
        closed = tuple(f"{folder}/" for folder in inputs.closed)
        notes: list[str] = []
        for source in (*map(str, inputs.folders), *_files_of_rows(inputs)):
            if source != FEED or prune:
                notes += await self._delete_gone(source, kept, closed, sure=bool(prune))
        return notes

    async def _delete_gone(
        self, source: str, kept: set[str], closed: tuple[str, ...], *, sure: bool
    ) -> list[str]:
        gone: list[DocumentRecord] = []
        any_left = False
        async for stored in self._store.documents_from(self._spec.id, self._tenant, source):
            exists = stored.source in kept or stored.source.startswith(closed)
            if exists or self._seen.document(stored.tenant, stored.document):
                any_left = True
            else:
                gone.append(stored)
        if not gone:
            return []
        if not any_left and not sure:
            return [
                f"none of the {len(gone)} documents that came from {source!r} exists any more;"
                " nothing was removed (is a drive not mounted? --prune removes them)"
            ]
        for tenant in dict.fromkeys(stored.tenant for stored in gone):
            ids = [stored.document for stored in gone if stored.tenant == tenant]
            for removed in await self._store.remove(self._spec.id, tenant, ids):
                self._tally.removed(removed)
        return []


def _files_of_rows(inputs: Inputs) -> list[str]:
    """Return the files of rows that are in none of the folders, and the feed."""
    folders = [f"{folder}/" for folder in inputs.folders]

    def alone(file: File) -> bool:
        return (
            file.rows
            and not file.error
            and not any(file.source.startswith(folder) for folder in folders)
        )

    return [file.source for file in inputs.files if alone(file)]


@dataclass(frozen=True, kw_only=True)
class AddRequest:
    """What to add. `feed` has rows as JSON. `prune`: True removes documents that came from these
    folders and files and no longer exist there, False keeps them, None removes them unless none of
    a folder's documents is left. `exclude` are patterns of files and folders to omit.
    `uploaded`: clients have sent the files, which are not kept where they are."""

    paths: Sequence[Path]
    tenant: str = ""
    feed: BinaryIO | None = None
    prune: bool | None = None
    exclude: Sequence[str] = ()
    uploaded: bool = False


class Ingestion:
    """Adds documents to the collections of one store."""

    def __init__(
        self,
        store: DocumentStore,
        *,
        reserve_bytes: int,
        readers: Mapping[str, Reader] = READERS,
        reader_environment: Mapping[str, str] | None = None,
    ) -> None:
        self._store = store
        self._readers = readers
        self._reader_environment = reader_environment
        self._reserve_bytes = reserve_bytes

    async def add(
        self,
        spec: CollectionSpec,
        embedder: Embedder,
        settings: CollectionSettings,
        request: AddRequest,
        progress: AddProgress | None = None,
    ) -> AddReport:
        """Add the documents and return the report. Raises UsageError, ConfigError for a collection
        that was made with another model or other fields, and StorageError."""
        if request.tenant:
            validated_tenant(spec, request.tenant)
        stored = await self._store.settings(spec.id)
        if stored is not None:
            refuse_other_settings(spec.id, stored, settings)
        inputs = await anyio.to_thread.run_sync(
            lambda: find_inputs(
                request.paths,
                feed=request.feed is not None,
                readers=self._readers,
                exclude=request.exclude,
            )
        )
        if request.uploaded:
            inputs = inputs.as_uploaded()
        columns = Columns(spec.rows, apart=[spec.tenant_field] if spec.tenant_field else [])
        put = partial(self._store.put, spec.id, settings, reserve_bytes=self._reserve_bytes)
        async with open_readers(self._reader_environment) as pool:
            with closing(SeenIds()) as seen:
                parser = FileParser(pool, self._readers)
                adding = _Add(
                    store=self._store,
                    collection=spec.id,
                    put=put,
                    builder=DocumentBuilder(spec, embedder, request.tenant, parser),
                    supply=ItemSupply(
                        inputs.files, columns, seen, request.feed, spec.tenant_field or ""
                    ),
                    tally=Tally(),
                    meter=Meter(progress, sum(file.size for file in inputs.files)),
                    seen=seen,
                )
                await adding.run()
                deletion = Deletion(self._store, spec, request.tenant, adding.tally, seen)
                notes = await deletion.run(inputs, adding.supply.broken, request.prune)
        report = adding.tally.report(spec.id, inputs, adding.supply.broken)
        notes += [*moved_notes(adding.chosen.values()), *_links_note(inputs)]
        return replace(report, notes=(*report.notes, *notes))


Ready = list[tuple[PlannedDocument, FullDocument]]


@dataclass(kw_only=True)
class _Add:
    """One add that is running: every core builds documents, and the next documents are embedded
    while one is written to the disk."""

    store: DocumentStore
    collection: str
    put: Callable[..., Awaitable[list[PutOutcome]]]
    builder: DocumentBuilder
    supply: ItemSupply
    tally: Tally
    meter: Meter
    seen: SeenIds
    chosen: dict[tuple[str, str], Chosen] = field(default_factory=dict)

    async def run(self) -> None:
        # No buffer: a builder waits until the writer is ready, which bounds the memory in use.
        send, receive = anyio.create_memory_object_stream[Ready](0)
        with send:
            builders = [partial(self._build, send.clone()) for _ in range(CORES)]
        await run_concurrently(partial(self._write, receive), *builders)

    async def _build(self, ready: MemoryObjectSendStream[Ready]) -> None:
        async with ready:
            while items := await self.supply.take():
                self.meter.part(items[0], 0)
                changed = await self._find_changed(items)
                cuts: list[ChunkedDocument] = []
                for loaded, cut in zip(changed, await self.builder.cut_all(changed), strict=True):
                    if isinstance(cut, ChunkedDocument):
                        self.tally.undeclared(list(cut.undeclared))
                        self.tally.remark(loaded.item, cut.document.notes)
                        cuts.append(cut)
                    else:
                        self._enter_failure(loaded.item, cut)
                for portion in self.builder.portions(cuts):
                    documents = await self.builder.build(portion, self._report_share)
                    items_of = [cut.loaded.item for cut in portion]
                    try:
                        await ready.send(list(zip(items_of, documents, strict=True)))
                    except anyio.BrokenResourceError:
                        return  # the writer failed, and its error ends the add

    async def _find_changed(self, items: Sequence[PlannedDocument]) -> list[LoadedDocument]:
        """Return the items that are new or changed. Unreadable and unchanged ones are entered in
        the report."""
        loaded: list[LoadedDocument] = []
        for item, result in zip(items, await self.builder.load_all(items), strict=True):
            if isinstance(result, LoadedDocument):
                loaded.append(result)
            else:
                for name in filter(None, (item.document, item.other)):
                    self.seen.note(None, name)
                self._enter_failure(item, result)
        stored = await self._find_stored(loaded)
        changed = []
        moved: dict[str, dict[str, tuple[str, str]]] = {}
        for each in await self._identify(loaded, stored):
            known = stored.get((each.tenant, each.item.document))
            if known is None or known.fingerprint != each.fingerprint:
                changed.append(each)
                continue
            self.chosen.pop((each.tenant, each.item.document), None)
            self.tally.note(each.item, "unchanged")
            self.meter.unchanged(each.item)
            source = each.item.file.source
            if known.source != source:
                # A document with a web address of its own keeps it, wherever its file is.
                own = known.url if not known.url.startswith("file:") else address(each.item)
                moved.setdefault(each.tenant, {})[each.item.document] = (own, source)
        for tenant, places in moved.items():
            await self.store.relocate(self.collection, tenant, places)
        return changed

    async def _identify(
        self,
        loaded: Sequence[LoadedDocument],
        stored: Mapping[tuple[str, str], DocumentRecord],
    ) -> list[LoadedDocument]:
        """Return the documents with the ids that they have in the collection. Those whose names
        other files have are entered in the report."""

        def known(each: LoadedDocument) -> dict[str, DocumentRecord]:
            names = (each.item.document, each.item.other)
            return {
                name: stored[each.tenant, name] for name in names if (each.tenant, name) in stored
            }

        identified: list[LoadedDocument] = []
        choices = await anyio.to_thread.run_sync(
            lambda: [choose(each.item, known(each)) for each in loaded]
        )
        for each, chosen in zip(loaded, choices, strict=True):
            if isinstance(chosen, IngestError):
                self._enter_failure(each.item, chosen)
                continue
            if chosen.beside or chosen.after:
                self.chosen[each.tenant, chosen.id] = chosen
            self.seen.note(each.tenant, chosen.id)
            if each.item.document != chosen.id:
                each = replace(each, item=replace(each.item, document=chosen.id))
            identified.append(each)
        return identified

    async def _find_stored(
        self, loaded: Sequence[LoadedDocument]
    ) -> dict[tuple[str, str], DocumentRecord]:
        """Return what the store has under the names of these documents, by tenant and id."""
        found: dict[tuple[str, str], DocumentRecord] = {}
        for tenant in dict.fromkeys(each.tenant for each in loaded):
            own = [each.item for each in loaded if each.tenant == tenant]
            ids = [name for each in own for name in (each.document, each.other) if name]
            for record in await self.store.document_records(self.collection, tenant, ids):
                found[tenant, record.document] = record
        return found

    async def _write(self, ready: MemoryObjectReceiveStream[Ready]) -> None:
        async with ready:
            async for batch in ready:
                outcomes = await self.put(*[document for _, document in batch])
                for (item, document), outcome in zip(batch, outcomes, strict=True):
                    self.tally.note(item, outcome, chunks=len(document.passages))

    def _report_share(self, cut: ChunkedDocument, share: float, passages: int) -> None:
        self.meter.part(cut.loaded.item, share, passages)

    def _enter_failure(self, item: PlannedDocument, error: IngestError) -> None:
        self.tally.note(item, "failed", error=str(error))
        self.meter.part(item, 1)


def _links_note(inputs: Inputs) -> Iterator[str]:
    """Yield a note that names the links to folders, if there are any."""
    if inputs.linked:
        shown = ", ".join(map(repr, inputs.linked[:MOST_UNREAD])) + (
            ", …" if len(inputs.linked) > MOST_UNREAD else ""
        )
        yield (
            f"links to folders are not followed: {shown} (name those folders themselves to add what"
            " is in them)"
        )
