"""Rebuild, export and import collections, with any engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import IO

import anyio.to_thread

from groundhook.core.errors import ConfigError, StorageError, UsageError
from groundhook.core.ports import Embedder
from groundhook.handlers.kb.admin.export_file import ExportReader, document_lines, end, header
from groundhook.handlers.kb.ingest.batching import BatchWriter, TransferProgress
from groundhook.handlers.kb.store.checks import refuse_other_settings, refuse_other_tenancy
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    DocumentRecord,
    DocumentStore,
    FullDocument,
)

# passages of one read: the embedded engine delays searches meanwhile, by about a millisecond
_PASSAGES_READ = 64
_BUILDING = "~new"  # suffix of the id of a collection that is being rebuilt


@dataclass(frozen=True, kw_only=True)
class TransferResult:
    """The result: documents and passages that were written, and those that were already there."""

    collection: str
    documents: int = 0
    passages: int = 0
    unchanged: int = 0
    unchanged_passages: int = 0


class Transfer:
    """Transfers collections between a store and files. `reserve_bytes` of disk stay free."""

    def __init__(self, store: DocumentStore, *, reserve_bytes: int) -> None:
        self._store = store
        self._reserve_bytes = reserve_bytes

    async def rebuild(
        self,
        id: str,
        settings: CollectionSettings,
        embedder: Embedder,
        progress: TransferProgress | None = None,
    ) -> TransferResult:
        """Build a collection again with the current declaration, and replace the old one, which is
        searched meanwhile. Documents of an interrupted attempt count as unchanged. Raises
        UsageError for an empty collection, and ConfigError if it gains or loses tenants: only a new
        add can assign the documents to tenants."""
        building = id + _BUILDING
        usage = await self._store.usage(id, None)
        if (stored := usage.settings) is None:
            raise UsageError(
                f"collection {id!r} is empty: there is nothing to rebuild it from",
                hint=f"groundhook kb add {id} PATH…",
            )
        # Left by an add that was refused; the next add creates it with its declaration.
        if not usage.documents:
            await self._store.remove(id, None, None)
            return TransferResult(collection=id)
        refuse_other_tenancy(id, stored, settings)
        new_embedder = None if _same_vectors(stored, settings) else embedder
        await self._discard_outdated(building, settings)
        done = TransferResult(collection=id)
        while True:
            changed = await self._catch_up(id, building, settings, new_embedder, progress, done)
            if changed == done and await self._store.swap(building, id):
                return done
            done = changed

    async def export(
        self,
        id: str,
        out: IO[str],
        progress: TransferProgress | None = None,
        declared: CollectionSettings | None = None,
    ) -> TransferResult:
        """Write a collection to a file, with at most a page of documents in memory. `declared` are
        the settings of one that another program made."""
        settings = declared or await self._store.settings(id)
        if settings is None:
            raise UsageError(f"collection {id!r} is empty: there is nothing to export")
        total = 0
        async for stored in self._store.documents_from(id, None, ""):
            total += stored.chunks
        await anyio.to_thread.run_sync(out.write, header(id, settings))
        done = TransferResult(collection=id)
        async for page in self._pages(id, self._store.documents_from(id, None, "")):
            await anyio.to_thread.run_sync(_write, out, page)
            done = _add_counts(done, page)
            if progress is not None and page:
                progress(done.passages, max(total, done.passages), page[-1].document)
        await anyio.to_thread.run_sync(out.write, end(done.documents))
        return done

    async def import_documents(
        self,
        id: str,
        settings: CollectionSettings,
        embedder: Embedder,
        file: IO[str],
        progress: TransferProgress | None = None,
        *,
        embed: bool = False,
    ) -> TransferResult:
        """Add the documents of an exported file to a collection; `embed`: with new vectors. Raises
        ConfigError if the vectors are of another embedding, UsageError for another kind of file,
        StorageError for a truncated one."""
        reader = ExportReader(file)
        exported = await reader.settings()
        if settings.language == "auto":
            settings = replace(settings, language=exported.language)
        if not embed:
            _refuse_other_vectors(id, exported, settings)
        stored = {
            (one.tenant, one.document): one
            for one in (await self._store.usage(id, None, settings=settings)).documents
        }
        writer = self._writer(id, settings, embedder if embed else None, progress)
        unchanged, passages = 0, 0
        try:
            while not isinstance(read := await reader.next(settings, vectors=not embed), int):
                for document in read:
                    known = stored.get((document.tenant, document.document))
                    if known is not None and known.fingerprint == document.fingerprint:
                        unchanged, passages = unchanged + 1, passages + known.chunks
                        writer.report(document.document)
                    else:
                        await writer.add(document)
        finally:  # also store what was read of a truncated file
            await writer.flush()
        if read != (there := writer.documents + unchanged):
            raise StorageError(
                f"{reader.name!r} has {there} documents, and its last line announces {read}",
                hint="export it again; the documents that it has are added",
            )
        return TransferResult(
            collection=id,
            documents=writer.documents,
            passages=writer.passages,
            unchanged=unchanged,
            unchanged_passages=passages,
        )

    async def _pages(
        self, id: str, listed: AsyncIterator[DocumentRecord]
    ) -> AsyncIterator[list[FullDocument]]:
        """Yield the documents of a list that still exist, as many small ones as are worth one
        request."""
        waiting: list[tuple[str, str]] = []
        passages = 0
        async for stored in listed:
            if waiting and passages + stored.chunks > _PASSAGES_READ:
                yield await self._store.full_documents(id, waiting)
                waiting, passages = [], 0
            waiting.append((stored.tenant, stored.document))
            passages += stored.chunks
        if waiting:
            yield await self._store.full_documents(id, waiting)

    def _writer(
        self,
        id: str,
        settings: CollectionSettings,
        embedder: Embedder | None,
        progress: TransferProgress | None,
        *,
        ready: int = 0,
        total: int = 0,
    ) -> BatchWriter:
        put = partial(self._store.put, id, settings, reserve_bytes=self._reserve_bytes)
        return BatchWriter(put, embedder, progress, ready=ready, total=total)

    async def _discard_outdated(self, building: str, settings: CollectionSettings) -> None:
        """Keep the result of an interrupted attempt, unless it was built with another
        declaration."""
        built = (await self._store.usage(building, None)).settings
        try:
            if built is not None:
                refuse_other_settings(building, built, settings)
        except ConfigError:
            await self._store.remove(building, None, None)

    async def _catch_up(
        self,
        id: str,
        building: str,
        settings: CollectionSettings,
        embedder: Embedder | None,
        progress: TransferProgress | None,
        done: TransferResult,
    ) -> TransferResult:
        """Copy the documents of `id` that `building` lacks, and remove from `building` those that
        `id` no longer has. Returns the counts in all."""
        wanted = {_key(one): one for one in (await self._store.usage(id, None)).documents}
        has = {_key(one): one for one in (await self._store.usage(building, None)).documents}
        for tenant, name, _ in has.keys() - wanted.keys():
            if not any(key[:2] == (tenant, name) for key in wanted):
                await self._store.remove(building, tenant, [name])
        kept = has.keys() & wanted.keys()
        total, ready = (
            sum(one.chunks for one in wanted.values()),
            sum(has[key].chunks for key in kept),
        )
        if not done.documents:  # all of it is from an earlier attempt
            done = replace(done, unchanged=len(kept), unchanged_passages=ready)
        writer = self._writer(building, settings, embedder, progress, ready=ready, total=total)
        async for page in self._pages(
            id, _iterate(stored for key, stored in wanted.items() if key not in has)
        ):
            for document in page:
                await writer.add(document)
        await writer.flush()
        return replace(
            done,
            documents=done.documents + writer.documents,
            passages=done.passages + writer.passages,
        )


def _same_vectors(one: CollectionSettings, other: CollectionSettings) -> bool:
    return (one.provider, one.model, one.dimensions) == (
        other.provider,
        other.model,
        other.dimensions,
    )


def _refuse_other_vectors(
    id: str, stored: CollectionSettings, settings: CollectionSettings
) -> None:
    if not _same_vectors(stored, settings):
        raise ConfigError(
            f"the file's vectors are of {stored.provider!r} {stored.model!r} with"
            f" {stored.dimensions} dimensions, and collection {id!r} is declared with"
            f" {settings.provider!r} {settings.model!r} of {settings.dimensions}",
            hint="add --embed to embed its texts again, or declare the collection as it was",
        )


def _key(stored: DocumentRecord) -> tuple[str, str, str]:
    return stored.tenant, stored.document, stored.fingerprint


async def _iterate(listed: Iterable[DocumentRecord]) -> AsyncIterator[DocumentRecord]:
    for stored in listed:
        yield stored


def _add_counts(done: TransferResult, documents: Sequence[FullDocument]) -> TransferResult:
    passages = sum(len(document.passages) for document in documents)
    return replace(
        done, documents=done.documents + len(documents), passages=done.passages + passages
    )


def _write(out: IO[str], documents: Sequence[FullDocument]) -> None:
    out.writelines(map(document_lines, documents))
