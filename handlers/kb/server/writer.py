"""Storing documents on a Qdrant server, many at a time, each in place of its last version.

All passages of a step are written hidden, then shown; then every document's record names its new
version, and from then on searches see it; then the previous versions are removed. So a step of many
documents takes as many requests as one of a single document, and if it is interrupted, searches see
either version of each document, whole.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import anyio
from qdrant_client import models

from groundhook.core.errors import StorageError
from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.server.collection_info import CollectionInfo
from groundhook.handlers.kb.server.connection import ServerConnection
from groundhook.handlers.kb.server.filter import of_documents, of_versions
from groundhook.handlers.kb.server.layout import passage_id, passage_points, record_point
from groundhook.handlers.kb.store.port import FullDocument, PutOutcome

BATCH = 64  # passages in one request
_PASSAGES, _DOCUMENTS = 512, 100  # in one step; a document of more passages is one of its own
_MOST_VERSIONS = 10_000  # of a step's documents

Counted = Callable[[int], None]  # passages written


@dataclass(frozen=True)
class _Version:
    document: FullDocument
    version: str
    record: models.PointStruct

    @classmethod
    def of(cls, document: FullDocument, usual: str) -> _Version:
        version = str(uuid.uuid4())
        return cls(document, version, record_point(document, version, usual))

    @property
    def ids(self) -> list[str]:
        return [passage_id(self.version, ordinal) for ordinal in range(len(self.document.passages))]


def steps(documents: Sequence[FullDocument]) -> Iterator[list[FullDocument]]:
    """Yield the documents in groups that are stored together; no group has one twice."""
    step: dict[tuple[str, str], FullDocument] = {}
    passages = 0
    for document in documents:
        key = document.tenant, document.document
        if step and (
            key in step or len(step) == _DOCUMENTS or passages + len(document.passages) > _PASSAGES
        ):
            yield list(step.values())
            step, passages = {}, 0
        step[key] = document
        passages += len(document.passages)
    if step:
        yield list(step.values())


class CollectionWriter:
    """Writes to one Qdrant collection. Raises StorageError."""

    def __init__(self, connection: ServerConnection, info: CollectionInfo) -> None:
        self._connection = connection
        self._info = info

    async def put(
        self, documents: Sequence[FullDocument], written: Counted | None = None
    ) -> list[PutOutcome]:
        """Store the documents of a step."""
        versions = [_Version.of(document, self._info.settings.language) for document in documents]
        naming = False
        try:
            await self._write_hidden(versions, written)
            before = await self._named_versions(versions)
            await self._connection.write(
                lambda client: client.set_payload(
                    self._info.name, {"hidden": False}, of_versions([v.version for v in versions])
                )
            )
            naming = True
            await self._upsert([version.record for version in versions])
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(2):
                await self._abandon(versions, named=naming)
            raise
        for version in versions:
            self._info.count(version.record.payload or {})
        await self._sweep(versions)
        if lost := await self._find_lost(versions):
            await self.put([version.document for version in lost])
        return ["replaced" if version.record.id in before else "added" for version in versions]

    async def _write_hidden(self, versions: Sequence[_Version], written: Counted | None) -> None:
        info = self._info
        analyser = Analyser(info.settings.language)
        new = chain.from_iterable(
            passage_points(version.document, version.version, analyser, info.settings.language)
            for version in versions
        )
        done = 0
        while batch := list(islice(new, BATCH)):
            await self._upsert(batch)
            done += len(batch)
            if written is not None:
                written(done)

    async def _sweep(self, versions: Sequence[_Version]) -> None:
        """Remove versions of these documents that are shown and do not count: the previous ones,
        and those of hosts that stopped before the last step. Hidden versions stay, since another
        host may still be writing them."""
        shown = await self._find_shown(versions)
        stale = shown.keys() - set((await self._named_versions(versions)).values())
        if stale:
            await self._delete(models.FilterSelector(filter=of_versions(sorted(stale))))

    async def _find_lost(self, versions: Sequence[_Version]) -> list[_Version]:
        """Return the versions whose passages another host removed while it stored the same
        document, because it found them before a record named them."""
        named = await self._named_versions(versions)
        shown = await self._find_shown(versions)
        return [
            version
            for version in versions
            if named.get(str(version.record.id)) == version.version
            and shown.get(version.version, 0) < len(version.document.passages)
        ]

    async def _named_versions(self, versions: Sequence[_Version]) -> Mapping[str, str]:
        """Return the versions in the records, by the records' ids."""
        ids = [version.record.id for version in versions]
        found = await self._connection.read(
            lambda client: client.retrieve(self._info.name, ids, with_payload=["version"])
        )
        return {str(record.id): (record.payload or {})["version"] for record in found}

    async def _find_shown(self, versions: Sequence[_Version]) -> Mapping[str, int]:
        """Return the shown versions of these documents, with their numbers of passages."""
        documents: defaultdict[str, list[str]] = defaultdict(list)
        for version in versions:
            documents[version.document.tenant].append(version.document.document)
        counts: dict[str, int] = {}
        for tenant, ids in documents.items():
            counts |= await self._count_versions(of_documents(tenant, ids, shown=True))
        return counts

    async def _count_versions(self, among: models.Filter) -> Mapping[str, int]:
        counted = await self._connection.read(
            lambda client: client.facet(
                self._info.name, "version", among, limit=_MOST_VERSIONS, exact=True
            )
        )
        return {str(hit.value): hit.count for hit in counted.hits}

    async def _abandon(self, versions: Sequence[_Version], *, named: bool) -> None:
        """Remove passages of versions that will never count. Where they cannot be removed they stay
        hidden. `named`: the records may have been written, although the answer did not come: what
        they name counts."""
        try:
            counting = set((await self._named_versions(versions)).values()) if named else set()
            ids = [
                id for version in versions if version.version not in counting for id in version.ids
            ]
            if ids:
                await self._delete(models.PointIdsList(points=list(ids)))
        except StorageError:
            return

    async def _upsert(self, batch: Sequence[models.PointStruct]) -> None:
        await self._connection.write(lambda client: client.upsert(self._info.name, list(batch)))

    async def _delete(self, selector: models.FilterSelector | models.PointIdsList) -> None:
        await self._connection.write(lambda client: client.delete(self._info.name, selector))
