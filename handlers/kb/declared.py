"""What a collection's declaration says to a store: what it is made with, and whose documents it
keeps. Pure."""

from __future__ import annotations

from groundhook.handlers.kb.store import Made
from groundhook.host.core.errors import UsageError
from groundhook.host.core.ports import Embedder
from groundhook.host.core.types.collection_spec import CollectionSpec


def made_with(spec: CollectionSpec, embedder: Embedder, language: str) -> Made:
    """What a store compares with what the collection was made with."""
    return Made(
        provider=embedder.provider,
        model=embedder.model,
        dimensions=embedder.dimensions,
        language=language,
        tenanted=bool(spec.tenant_field),
        fields=spec.types,
        **spec.storage.model_dump(),
    )


def tenant_of(spec: CollectionSpec, tenant: str) -> str:
    """The tenant that documents of a collection are stored for. Raises UsageError when the
    collection has tenants and none is named, and when it has none and one is: the documents would
    be everybody's."""
    if spec.tenant_field and not tenant:
        raise UsageError(
            f"collection {spec.id!r} keeps its tenants apart, and no tenant was named",
            hint="name one with --tenant",
        )
    if tenant and not spec.tenant_field:
        raise UsageError(
            f"collection {spec.id!r} has no tenants: what is added for {tenant!r} would be seen"
            " by all",
            hint="declare `tenant_field` in its .kb.yao, or leave out --tenant",
        )
    return tenant
