"""Delete documents whose source no longer exists in the folders and files that were added again.

A document is deleted if it came from the folder (or the file of rows, or the feed) that is being
added and no longer exists there. It stays if its file or folder exists and cannot be read, and so
do the rows of a file that could not be read to its end.
"""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.handlers.kb.ingest.report import Tally
from groundhook.handlers.kb.ingest.sources import FEED, File, Inputs, SeenIds
from groundhook.handlers.kb.store.port import DocumentRecord, VectorStore


class Deletion:
    """Deletes after one add to one collection. `tenant` is that of the added documents; "" if each
    document named its own."""

    def __init__(
        self, store: VectorStore, spec: CollectionSpec, tenant: str, tally: Tally, seen: SeenIds
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
