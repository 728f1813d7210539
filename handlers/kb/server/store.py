"""Collections on a Qdrant server or cluster: a `VectorStore` shared by any number of hosts, with
nothing kept in this process.

A collection is a Qdrant collection behind an alias, which a rebuild moves. It holds a point for
each passage and, without vectors, a record for each document. The record is the one point at which
a document becomes visible: it names the version whose passages count, and is written in one step,
see `put`. Searches see the old document or the new one, never a part, although Qdrant has no
transactions: see `search`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from operator import attrgetter
from typing import Any
from weakref import WeakValueDictionary

import anyio
from qdrant_client import models

from groundhook.core.errors import StorageError
from groundhook.core.types.fields import Scalar
from groundhook.core.types.filters import Filter
from groundhook.handlers.kb.server import search as server_search
from groundhook.handlers.kb.server.collection_info import CollectionInfo
from groundhook.handlers.kb.server.collections import ServerCollections
from groundhook.handlers.kb.server.connection import RequestRefused, ServerConnection
from groundhook.handlers.kb.server.filter import of_documents, of_record, of_records
from groundhook.handlers.kb.server.layout import (
    parse_record,
    payload_and_vector,
    record_id,
    source_payload,
)
from groundhook.handlers.kb.server.names import find_names
from groundhook.handlers.kb.server.reader import CollectionReader
from groundhook.handlers.kb.server.search import CollectionRebuilt
from groundhook.handlers.kb.server.writer import CollectionWriter, Counted, steps
from groundhook.handlers.kb.store import points
from groundhook.handlers.kb.store.checks import (
    refuse_other_settings,
    refuse_too_long,
    refuse_without_tenant,
)
from groundhook.handlers.kb.store.port import (
    CollectionSettings,
    CollectionUsage,
    DocumentRecord,
    FullDocument,
    Hit,
    MatchingDocument,
    PassageOrdinals,
    PutOutcome,
    StoreProgress,
    VectorAnswer,
    VectorQuestion,
)

_PAGE = 500  # documents changed by one request
_TOGETHER = 32  # questions in one request
_ROUNDS = 8  # attempts of a search while documents are being replaced


class ServerStore:
    """A `VectorStore` for one event loop. Close it with `aclose`."""

    def __init__(self, connection: ServerConnection, prefix: str) -> None:
        self._connection = connection
        self._collections = ServerCollections(connection, prefix)
        self._write_locks = WeakValueDictionary[tuple[str, str, str], anyio.Lock]()

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def grpc_problem(self) -> str:
        """Return why HTTP is used although gRPC is preferred; "" otherwise."""
        return await self._connection.grpc_problem()

    async def start(self) -> None:
        """Do nothing: the server runs."""

    async def put(
        self,
        collection: str,
        settings: CollectionSettings,
        /,
        *documents: FullDocument,
        reserve_bytes: int = 0,
        progress: StoreProgress | None = None,
    ) -> list[PutOutcome]:
        """Store documents. `reserve_bytes` is ignored: the server manages its own disk."""
        refuse_too_long(documents)
        if documents:
            await self._collections.open_for_writing(collection, settings, *documents)
        outcomes: list[PutOutcome] = []
        before, total = 0, sum(len(document.passages) for document in documents)
        for step in steps(documents):
            counted = None if progress is None else partial(_report, progress, before, total)
            outcomes += await self._put(collection, settings, step, counted)
            before += sum(len(document.passages) for document in step)
        return outcomes

    async def _put(
        self,
        collection: str,
        settings: CollectionSettings,
        step: Sequence[FullDocument],
        counted: Counted | None,
    ) -> list[PutOutcome]:
        async with AsyncExitStack() as locks:
            for tenant, document in sorted(
                (document.tenant, document.document) for document in step
            ):
                await locks.enter_async_context(
                    self._write_locks.setdefault((collection, tenant, document), anyio.Lock())
                )
            try:
                return await CollectionWriter(
                    self._connection,
                    await self._collections.open_for_writing(collection, settings, *step),
                ).put(step, counted)
            except RequestRefused as exc:
                if exc.status != 404:
                    raise
            # Another process removed the collection: it is created again.
            self._collections.forget(collection)
            return await CollectionWriter(
                self._connection,
                await self._collections.open_for_writing(collection, settings, *step),
            ).put(step, counted)

    async def search(
        self, collection: str, settings: CollectionSettings, question: VectorQuestion, /
    ) -> VectorAnswer:
        return (await self.search_many(collection, settings, [question]))[0]

    async def search_many(
        self, collection: str, settings: CollectionSettings, questions: Sequence[VectorQuestion], /
    ) -> list[VectorAnswer]:
        answers: list[VectorAnswer] = []
        for start in range(0, len(questions), _TOGETHER):
            answers += await self._search(
                collection, settings, questions[start : start + _TOGETHER]
            )
        return answers

    async def _search(
        self, collection: str, settings: CollectionSettings, questions: Sequence[VectorQuestion]
    ) -> list[VectorAnswer]:
        for question in questions:
            refuse_without_tenant(collection, settings, question.tenant)
        excluded: dict[str, str] = {}
        for _ in range(_ROUNDS):
            info = await self._collections.look(collection)
            if info is None:
                return [VectorAnswer(exists=False)] * len(questions)
            refuse_other_settings(collection, info.settings, settings)
            try:
                answers = await server_search.search(self._connection, info, questions, excluded)
            except CollectionRebuilt:
                self._collections.forget(collection)
            except RequestRefused as exc:
                # Removed, or rebuilt with vectors of another size. If it did not change, the error
                # is raised.
                self._collections.forget(collection)
                again = await self._collections.look(collection)
                if exc.status not in (400, 404) or (again and again.settings == info.settings):
                    raise
            else:
                if answers is not None:
                    return answers
        raise StorageError(
            f"collection {collection!r} changes faster than it can be searched", hint="try again"
        )

    async def passages(
        self, collection: str, tenant: str | None, wanted: PassageOrdinals, /
    ) -> dict[str, tuple[Hit, ...]]:
        info = await self._collections.look(collection)
        if info is None:
            return {}
        ids = {record_id(tenant or "", document): document for document in wanted}
        found = await self._reader(info).documents(
            {id: wanted[ids[id]] for id in ids}, vectors=False
        )
        return {
            ids[id]: tuple(
                points.make_hit(
                    passage.payload or {},
                    info.settings.fields,
                    document=ids[id],
                    title=record["title"],
                    url=record["url"],
                    ordinal=(passage.payload or {})["ordinal"],
                )
                for passage in passages
            )
            for id, (record, passages) in found.items()
        }

    async def full_documents(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[FullDocument]:
        info = await self._collections.look(collection)
        if info is None:
            return []
        wanted = dict.fromkeys(record_id(*document) for document in documents)
        found = await self._reader(info).documents(wanted, vectors=True)
        return [
            points.full_document(
                parse_record(record), [*map(payload_and_vector, passages)], info.settings.fields
            )
            for record, passages in found.values()
        ]

    async def facets(
        self,
        collection: str,
        tenant: str | None,
        fields: Sequence[str],
        filter: Filter | None,
        limit: int,
        /,
    ) -> dict[str, list[tuple[Scalar, int]]]:
        info = await self._collections.look(collection)
        if info is None:
            return {}
        refuse_without_tenant(collection, info.settings, tenant)
        found: dict[str, list[tuple[Scalar, int]]] = {}
        for name in fields:
            if name in info.settings.fields:
                counted = await self._reader(info).facet(name, of_records(tenant, filter))
                found[name] = sorted(counted, key=lambda pair: (-pair[1], pair[0]))[:limit]
        return found

    async def names(
        self, collection: str, tenant: str | None, words: Sequence[str], /
    ) -> list[str]:
        """Return the names, of at most `server.names.MOST_PASSAGES` passages; found once in a
        minute."""
        info = await self._collections.look(collection)
        if info is None:
            return []
        refuse_without_tenant(collection, info.settings, tenant)
        return await find_names(self._connection, info, tenant, words)

    async def count(self, collection: str, tenant: str | None, filter: Filter | None, /) -> int:
        info = await self._collections.look(collection)
        if info is None:
            return 0
        refuse_without_tenant(collection, info.settings, tenant)
        return await self._reader(info).count(of_records(tenant, filter))

    async def matching_documents(
        self, collection: str, tenant: str | None, filter: Filter | None, /
    ) -> list[MatchingDocument]:
        info = await self._collections.look(collection)
        if info is None:
            return []
        refuse_without_tenant(collection, info.settings, tenant)
        listed = [
            MatchingDocument(
                record["document"],
                record["title"],
                record["url"],
                points.decode_fields(record["fields"], info.settings.fields),
            )
            async for record in self._reader(info).records(of_records(tenant, filter))
        ]
        return sorted(listed, key=attrgetter("document"))

    async def settings(self, collection: str, /) -> CollectionSettings | None:
        info = await self._collections.look(collection)
        return info.settings if info else None

    async def has_languages(self, collection: str, /) -> bool:
        info = await self._collections.look(collection)
        return info is None or info.sums is not None

    async def usage(
        self, collection: str, tenant: str | None, /, *, settings: CollectionSettings | None = None
    ) -> CollectionUsage:
        """Return what is stored. `disk_bytes` is 0: the server does not report it."""
        self._collections.forget(collection)
        info = await self._collections.look(collection)
        if info is None:
            return CollectionUsage()
        if settings is not None:
            refuse_other_settings(collection, info.settings, settings)
        stored = [one async for one in self._reader(info).document_records(of_records(tenant))]
        return CollectionUsage(
            documents=tuple(sorted(stored, key=_record_key)), settings=info.settings
        )

    async def document_records(
        self, collection: str, tenant: str | None, documents: Sequence[str], /
    ) -> tuple[DocumentRecord, ...]:
        info = await self._collections.look(collection)
        if info is None:
            return ()
        stored = [
            one
            async for one in self._reader(info).document_records(
                of_records(tenant, documents=documents)
            )
        ]
        return tuple(sorted(stored, key=_record_key))

    async def documents_from(
        self, collection: str, tenant: str | None, source: str, /
    ) -> AsyncIterator[DocumentRecord]:
        info = await self._collections.look(collection)
        if info is not None:
            async for stored in self._reader(info).document_records(
                of_records(tenant, source=source)
            ):
                if not source or stored.source == source or stored.source.startswith(f"{source}/"):
                    yield stored

    async def relocate(
        self, collection: str, tenant: str, places: Mapping[str, tuple[str, str]], /
    ) -> None:
        info = await self._collections.look(collection)
        if info is None:
            return
        moves = [
            models.SetPayload(
                payload=source_payload(url, source), filter=of_record(record_id(tenant, document))
            )
            for document, (url, source) in places.items()
        ]
        for start in range(0, len(moves), _PAGE):
            await self._batch(
                info.name,
                [
                    models.SetPayloadOperation(set_payload=one)
                    for one in moves[start : start + _PAGE]
                ],
            )

    async def remove(
        self, collection: str, tenant: str | None, documents: Sequence[str] | None, /
    ) -> list[str]:
        info = await self._collections.look(collection)
        if info is None:
            return []
        wanted = of_records(tenant, documents=documents)
        gone = sorted(
            [stored async for stored in self._reader(info).document_records(wanted)],
            key=_record_key,
        )
        if len(gone) == await self._reader(info).count(of_records(None)):
            await self._collections.discard(collection)
        else:
            for start in range(0, len(gone), _PAGE):
                await self._remove_documents(info.name, gone[start : start + _PAGE])
            self._collections.forget(collection)
        return [stored.document for stored in gone]

    async def swap(self, building: str, collection: str, /) -> bool:
        new, old = (
            await self._document_versions(building),
            await self._document_versions(collection),
        )
        if new is None:
            raise StorageError(f"collection {collection!r} has no rebuilt version to replace it")
        if new != old:
            return False
        await self._collections.swap(building, collection)
        return True

    # ---- points

    def _reader(self, info: CollectionInfo) -> CollectionReader:
        return CollectionReader(self._connection, info)

    async def _remove_documents(self, name: str, gone: Sequence[DocumentRecord]) -> None:
        """Remove documents, their records first, so that no search shows them any more."""
        records: list[Any] = [record_id(stored.tenant, stored.document) for stored in gone]
        await self._delete(name, models.PointIdsList(points=records))
        for tenant in dict.fromkeys(stored.tenant for stored in gone):
            documents = [stored.document for stored in gone if stored.tenant == tenant]
            await self._delete(name, models.FilterSelector(filter=of_documents(tenant, documents)))

    async def _document_versions(self, collection: str) -> set[tuple[str, str, str]] | None:
        info = await self._collections.look(collection)
        if info is None:
            return None
        return {
            (stored.tenant, stored.document, stored.fingerprint)
            async for stored in self._reader(info).document_records(of_records(None))
        }

    async def _batch(self, name: str, operations: Sequence[models.UpdateOperation]) -> None:
        await self._connection.write(
            lambda client: client.batch_update_points(name, list(operations))
        )

    async def _delete(self, name: str, selector: Any) -> None:
        await self._connection.write(lambda client: client.delete(name, selector))


def _report(progress: StoreProgress, before: int, total: int, done: int) -> None:
    progress(before + done, total)


def _record_key(stored: DocumentRecord) -> tuple[str, str]:
    return stored.tenant, stored.document
