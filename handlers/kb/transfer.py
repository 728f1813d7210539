"""Collections made anew, written to a file, and read from one: from what a store holds, whichever
engine is behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import IO

import anyio.to_thread

from groundhook.handlers.kb.exported import Lines, end, header, lines_of
from groundhook.handlers.kb.ingest.batching import BatchWriter, TransferProgress
from groundhook.handlers.kb.store import (
    Incoming,
    Made,
    Stored,
    VectorStore,
    agree,
    refuse_other_tenancy,
)
from groundhook.host.core.errors import ConfigError, StorageError, UsageError
from groundhook.host.core.ports import Embedder

# passages that are read at once: the embedded engine answers no search meanwhile, about a
# millisecond
_TOGETHER = 64
_BUILDING = "~new"  # what a collection that is being made anew is called, after its id


@dataclass(frozen=True, kw_only=True)
class Transferred:
    """What became of it: documents and passages written, and those that were there already as they
    are."""

    collection: str
    documents: int = 0
    passages: int = 0
    unchanged: int = 0
    unchanged_passages: int = 0


class Transfer:
    """Between stores and files. `reserve_bytes` of disk stay free."""

    def __init__(self, store: VectorStore, *, reserve_bytes: int) -> None:
        self._store = store
        self._reserve_bytes = reserve_bytes

    async def rebuild(
        self, id: str, made: Made, embedder: Embedder, told: TransferProgress | None = None
    ) -> Transferred:
        """Make a collection anew with what is declared now, beside the one that is searched
        meanwhile, and put it in its place. What an attempt before this one made counts as
        unchanged. Raises UsageError when nothing to make it from, and ConfigError when it is to
        gain or lose its tenants: whose its documents are is then for whoever adds them to say."""
        building = id + _BUILDING
        there = await self._store.usage(id, None)
        if (was := there.made) is None:
            raise UsageError(
                f"collection {id!r} is empty: nothing to make it from",
                hint=f"groundhook kb add {id} PATH…",
            )
        if (
            not there.documents
        ):  # an add that was refused has left it: the next one makes it as it is declared then
            await self._store.remove(id, None, None)
            return Transferred(collection=id)
        refuse_other_tenancy(id, was, made)
        again = None if _same_vectors(was, made) else embedder
        await self._start(building, made)
        done = Transferred(collection=id)
        while True:
            changed = await self._catch_up(id, building, made, again, told, done)
            if changed == done and await self._store.swap(building, id):
                return done
            done = changed

    async def export(
        self, id: str, out: IO[str], told: TransferProgress | None = None
    ) -> Transferred:
        """Write a collection to a file, no more than a page of documents in memory at a time."""
        made = await self._store.made(id)
        if made is None:
            raise UsageError(f"collection {id!r} is empty: there is nothing to export")
        total = 0
        async for stored in self._store.come_from(id, None, ""):
            total += stored.chunks
        await anyio.to_thread.run_sync(out.write, header(id, made))
        done = Transferred(collection=id)
        async for page in self._pages(id, self._store.come_from(id, None, "")):
            await anyio.to_thread.run_sync(_write, out, page)
            done = _with(done, page)
            if told is not None and page:
                told(done.passages, max(total, done.passages), page[-1].document)
        await anyio.to_thread.run_sync(out.write, end(done.documents))
        return done

    async def load(
        self,
        id: str,
        made: Made,
        embedder: Embedder,
        file: IO[str],
        told: TransferProgress | None = None,
        *,
        embed: bool = False,
    ) -> Transferred:
        """Add what `export` wrote to a collection as it is declared; `embed`: with new vectors.
        Raises ConfigError when it was made with another embedding and is not to be embedded,
        UsageError for another file, StorageError for one that was cut."""
        lines = Lines(file)
        was = await lines.made()
        if made.language == "auto":
            made = replace(made, language=was.language)
        if not embed:
            _refuse_other_vectors(id, was, made)
        there = {
            (one.tenant, one.document): one
            for one in (await self._store.usage(id, None, made=made)).documents
        }
        filling = self._filling(id, made, embedder if embed else None, told)
        unchanged, passages = 0, 0
        try:
            while not isinstance(read := await lines.next(made, vectors=not embed), int):
                for document in read:
                    known = there.get((document.tenant, document.document))
                    if known is not None and known.fingerprint == document.fingerprint:
                        unchanged, passages = unchanged + 1, passages + known.chunks
                        filling.report(document.document)
                    else:
                        await filling.add(document)
        finally:  # what was read of a file that was cut counts
            await filling.flush()
        if read != filling.documents + unchanged:
            raise StorageError(
                f"{lines.name!r} says that it has {read} documents and has another number"
            )
        return Transferred(
            collection=id,
            documents=filling.documents,
            passages=filling.passages,
            unchanged=unchanged,
            unchanged_passages=passages,
        )

    async def _pages(self, id: str, listed: AsyncIterator[Stored]) -> AsyncIterator[list[Incoming]]:
        """The documents of a list that are still there, as many small ones together as are worth
        one request."""
        waiting: list[tuple[str, str]] = []
        passages = 0
        async for stored in listed:
            if waiting and passages + stored.chunks > _TOGETHER:
                yield await self._store.whole(id, waiting)
                waiting, passages = [], 0
            waiting.append((stored.tenant, stored.document))
            passages += stored.chunks
        if waiting:
            yield await self._store.whole(id, waiting)

    def _filling(
        self,
        id: str,
        made: Made,
        embedder: Embedder | None,
        told: TransferProgress | None,
        *,
        ready: int = 0,
        total: int = 0,
    ) -> BatchWriter:
        put = partial(self._store.put, id, made, reserve_bytes=self._reserve_bytes)
        return BatchWriter(put, embedder, told, ready=ready, total=total)

    async def _start(self, building: str, made: Made) -> None:
        """Begin, or go on where an attempt before was stopped."""
        there = (await self._store.usage(building, None)).made
        try:
            if there is not None:
                agree(building, there, made)
        except ConfigError:
            await self._store.remove(building, None, None)

    async def _catch_up(
        self,
        id: str,
        building: str,
        made: Made,
        embedder: Embedder | None,
        told: TransferProgress | None,
        done: Transferred,
    ) -> Transferred:
        """Bring `building` to what `id` holds now."""
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
        if not done.documents:  # nothing of it is from this attempt
            done = replace(done, unchanged=len(kept), unchanged_passages=ready)
        filling = self._filling(building, made, embedder, told, ready=ready, total=total)
        async for page in self._pages(
            id, _each(stored for key, stored in wanted.items() if key not in has)
        ):
            for document in page:
                await filling.add(document)
        await filling.flush()
        return replace(
            done,
            documents=done.documents + filling.documents,
            passages=done.passages + filling.passages,
        )


def _same_vectors(one: Made, other: Made) -> bool:
    return (one.provider, one.model, one.dimensions) == (
        other.provider,
        other.model,
        other.dimensions,
    )


def _refuse_other_vectors(id: str, was: Made, made: Made) -> None:
    if not _same_vectors(was, made):
        raise ConfigError(
            f"the file's vectors are of {was.provider!r} {was.model!r} with {was.dimensions}"
            f" dimensions, and collection {id!r} is declared with {made.provider!r} {made.model!r}"
            f" of {made.dimensions}",
            hint="add --embed to embed its texts anew, or declare the collection as it was",
        )


def _key(stored: Stored) -> tuple[str, str, str]:
    return stored.tenant, stored.document, stored.fingerprint


async def _each(listed: Iterable[Stored]) -> AsyncIterator[Stored]:
    for stored in listed:
        yield stored


def _with(done: Transferred, documents: Sequence[Incoming]) -> Transferred:
    passages = sum(len(document.passages) for document in documents)
    return replace(
        done, documents=done.documents + len(documents), passages=done.passages + passages
    )


def _write(out: IO[str], documents: Sequence[Incoming]) -> None:
    out.writelines(map(lines_of, documents))
