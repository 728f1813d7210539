"""Taking out of a collection what is gone from the folders and files that were added again.

A document goes when it came from the folder (or the file of rows, or the feed) that is being added,
and is not there any more. One whose file is there, or whose folder is, and cannot be read stays as
it was, and so do the rows of a file that could not be read to its end.
"""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.handlers.kb.ingest.report import Tally
from groundhook.handlers.kb.ingest.sources import FEED, File, Found, Seen
from groundhook.handlers.kb.store import Stored, VectorStore
from groundhook.host.core.types.specs import CollectionSpec


class Pruning:
    """For one add of one collection; `tenant` is that of the documents added, empty where each said
    its own."""

    def __init__(
        self, store: VectorStore, spec: CollectionSpec, tenant: str, tally: Tally, seen: Seen
    ) -> None:
        self._store = store
        self._spec = spec
        self._tenant = tenant if tenant or not spec.tenant_field else None
        self._tally = tally
        self._seen = seen

    async def run(self, given: Found, broken: Mapping[int, str], prune: bool | None) -> list[str]:
        """Remove what is gone → what should be known about it. `broken` are files of rows that were
        not read to their end; `prune` is as in `Wanted`. What came from a feed goes only when that
        is asked for."""
        if prune is False:
            return []
        kept = {file.source for file in given.files if file.error or file.index in broken}
        closed = tuple(f"{folder}/" for folder in given.closed)
        notes: list[str] = []
        for source in (*map(str, given.folders), *_files_of_rows(given)):
            if source != FEED or prune:
                notes += await self._one(source, kept, closed, sure=bool(prune))
        return notes

    async def _one(
        self, source: str, kept: set[str], closed: tuple[str, ...], *, sure: bool
    ) -> list[str]:
        gone: list[Stored] = []
        there = False
        async for stored in self._store.come_from(self._spec.id, self._tenant, source):
            there_still = stored.source in kept or stored.source.startswith(closed)
            if there_still or self._seen.document(stored.tenant, stored.document):
                there = True
            else:
                gone.append(stored)
        if not gone:
            return []
        if not there and not sure:
            return [
                f"none of the {len(gone)} documents that came from {source!r} is there any more;"
                " nothing was removed (is something not mounted? --prune removes them)"
            ]
        for tenant in dict.fromkeys(stored.tenant for stored in gone):
            ids = [stored.document for stored in gone if stored.tenant == tenant]
            for removed in await self._store.remove(self._spec.id, tenant, ids):
                self._tally.gone(removed)
        return []


def _files_of_rows(given: Found) -> list[str]:
    """Files of rows that are not in one of the folders, and the feed."""
    folders = [f"{folder}/" for folder in given.folders]

    def alone(file: File) -> bool:
        return (
            file.rows
            and not file.error
            and not any(file.source.startswith(folder) for folder in folders)
        )

    return [file.source for file in given.files if alone(file)]
