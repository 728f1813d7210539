"""Lists a collection's documents."""

from __future__ import annotations

from dataclasses import dataclass

from groundhook.core.errors import StorageError
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.handlers.kb.store.port import DocumentRecord, DocumentStore


@dataclass(frozen=True, kw_only=True)
class CollectionListing:
    """A declared collection with its documents. `disk_bytes` includes all tenants. `error`: why its
    documents cannot be read."""

    id: str
    name: str
    documents: tuple[DocumentRecord, ...] = ()
    disk_bytes: int = 0
    language: str = ""
    error: str = ""

    @property
    def chunks(self) -> int:
        return sum(document.chunks for document in self.documents)

    @property
    def source_bytes(self) -> int:
        """The size of the files and rows that the documents were added from."""
        return sum(document.bytes for document in self.documents)


async def list_collection(
    store: DocumentStore, spec: CollectionSpec, tenant: str | None
) -> CollectionListing:
    """Return a collection with its documents of a tenant, of all tenants for None. Raises
    StorageError."""
    usage = await store.usage(spec.id, tenant if spec.tenant_field else None)
    return CollectionListing(
        id=spec.id,
        name=spec.name,
        documents=usage.documents,
        disk_bytes=usage.disk_bytes,
        language=usage.language,
    )


async def list_readable(
    store: DocumentStore, spec: CollectionSpec, tenant: str | None
) -> CollectionListing:
    """Return the same; a collection that cannot be read is listed with the `error`."""
    try:
        return await list_collection(store, spec, tenant)
    except StorageError as exc:
        return CollectionListing(id=spec.id, name=spec.name, error=str(exc))
