"""Reading one Qdrant collection: documents by their records, and records by a condition."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from groundhook.core.errors import StorageError
from groundhook.core.types.fields import Scalar
from groundhook.handlers.kb.server.collection_info import CollectionInfo
from groundhook.handlers.kb.server.connection import ServerConnection
from groundhook.handlers.kb.server.layout import parse_record, passage_id
from groundhook.handlers.kb.store import points
from groundhook.handlers.kb.store.port import DocumentRecord, PassageOrdinals

_PAGE = 500  # records in one answer
_MOST_VALUES = 10_000  # of one facet
_ROUNDS = 8  # attempts of a read while documents are being replaced


class CollectionReader:
    """Reads from one Qdrant collection. Raises StorageError."""

    def __init__(self, connection: ServerConnection, info: CollectionInfo) -> None:
        self._connection = connection
        self._info = info

    async def count(self, among: models.Filter) -> int:
        counted = await self._connection.read(
            lambda client: client.count(self._info.name, among, exact=True)
        )
        return counted.count

    async def documents(
        self, wanted: PassageOrdinals, *, vectors: bool
    ) -> dict[str, tuple[Mapping[str, Any], list[models.Record]]]:
        """Return documents, given by their records' ids: each one's record, and its passages, all
        of one version. Documents that do not exist are omitted."""
        found: dict[str, tuple[Mapping[str, Any], list[models.Record]]] = {}
        waiting = list(wanted)
        for _ in range(_ROUNDS):
            stored = await self._retrieve(waiting, vectors=False)
            records = {id: record.payload or {} for id, record in stored.items()}
            ids = {id: _passage_ids(record, wanted[id]) for id, record in records.items()}
            passages = await self._retrieve([*chain.from_iterable(ids.values())], vectors=vectors)
            for id, own in ids.items():
                if passages.keys() >= set(own):
                    found[id] = records[id], [passages[one] for one in own]
            waiting = [id for id in ids if id not in found]  # replaced between the two requests
            if not waiting:
                return {id: found[id] for id in wanted if id in found}
        raise _too_fast_error(str(records[waiting[0]]["document"]))

    async def _retrieve(self, ids: Sequence[str], *, vectors: bool) -> dict[str, models.Record]:
        wanted: Any = [points.DENSE] if vectors else False
        found: dict[str, models.Record] = {}
        for start in range(0, len(ids), _PAGE):
            page = ids[start : start + _PAGE]
            call = partial(_retrieve_points, name=self._info.name, ids=page, with_vectors=wanted)
            found |= {str(record.id): record for record in await self._connection.read(call)}
        return found

    async def facet(self, field: str, among: models.Filter) -> list[tuple[Scalar, int]]:
        # The server orders ties arbitrarily: all values are requested, and cut here.
        counted = await self._connection.read(
            lambda client: client.facet(
                self._info.name, points.payload_path(field), among, limit=_MOST_VALUES, exact=True
            )
        )
        return [
            (points.decode_value(hit.value, self._info.settings.fields[field]), hit.count)
            for hit in counted.hits
        ]

    async def document_records(self, wanted: models.Filter) -> AsyncIterator[DocumentRecord]:
        async for record in self.records(wanted):
            yield parse_record(record)

    async def records(self, wanted: models.Filter) -> AsyncIterator[Mapping[str, Any]]:
        offset: Any = None
        while True:
            page, offset = await self._page(wanted, offset)
            for record in page:
                yield record.payload or {}
            if offset is None:
                return

    async def _page(self, wanted: models.Filter, offset: Any) -> tuple[list[models.Record], Any]:
        return await self._connection.read(
            lambda client: client.scroll(self._info.name, wanted, _PAGE, offset=offset)
        )


def _retrieve_points(
    client: AsyncQdrantClient, *, name: str, ids: Sequence[str], with_vectors: Any
) -> Awaitable[list[models.Record]]:
    return client.retrieve(name, ids, with_payload=True, with_vectors=with_vectors)


def _passage_ids(record: Mapping[str, Any], ordinals: Sequence[int] | None) -> list[str]:
    """Return the ids of a document's passages, all or some of them, by its record."""
    chunks = record["chunks"]
    chosen = range(chunks) if ordinals is None else ordinals
    return [passage_id(record["version"], each) for each in chosen if 0 <= each < chunks]


def _too_fast_error(document: str) -> StorageError:
    return StorageError(
        f"document {document!r} changes faster than it can be read", hint="try again"
    )
