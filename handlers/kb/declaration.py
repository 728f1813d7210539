"""What a store needs of a collection's declaration: its settings, and the tenant of documents.
Pure."""

from __future__ import annotations

from groundhook.core.errors import UsageError
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.handlers.kb.store.port import CollectionSettings


def settings_of(spec: CollectionSpec, embedder: Embedder, language: str) -> CollectionSettings:
    """Return the settings of a declared collection. A store compares them with those that the
    collection was created with."""
    return CollectionSettings(
        provider=embedder.provider,
        model=embedder.model,
        dimensions=embedder.dimensions,
        language=language,
        tenanted=bool(spec.tenant_field),
        fields=spec.types,
        **spec.storage.model_dump(),
    )


def validated_tenant(spec: CollectionSpec, tenant: str) -> str:
    """Return the tenant for documents of a collection, "" if it has no tenants. Raises UsageError
    if the collection has tenants and none is named, or if one is named and it has none: everyone
    would see the documents."""
    if spec.tenant_field and not tenant:
        raise UsageError(
            f"collection {spec.id!r} separates its tenants, and no tenant was named",
            hint="name one with --tenant",
        )
    if tenant and not spec.tenant_field:
        raise UsageError(
            f"collection {spec.id!r} has no tenants: everyone would see what is added for"
            f" {tenant!r}",
            hint="declare `tenant_field` in its .kb.yao, or leave out --tenant",
        )
    return tenant
