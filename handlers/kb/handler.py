"""The search source `kb`: collections searched at once, for one identity, with similarities that mean the same for every
embedding model. It reads; adding is `ingest`'s.

The tenant comes from the request's identity and nowhere else, and is part of every question to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio

from handlers.kb import fusion
from handlers.kb.embed import least_cosine
from handlers.kb.ingest import HEADINGS, made_with
from handlers.kb.language import known_language
from handlers.kb.store import Answer, Hit, Question, VectorStore, packed
from host.errors import HostError, NotPermitted, SourceNotConfigured, suggestion
from host.ports import Embedder, Found, Scope
from host.trace import span
from host.types.search import Item, SearchRequest
from host.types.specs import CollectionSpec

EmbedderOf = Callable[[CollectionSpec], Embedder]


@dataclass
class _Outcome:
    """What the collections of one search answered."""

    items: dict[str, tuple[Item, ...]] = field(default_factory=dict)
    problems: dict[str, HostError] = field(default_factory=dict)


class KBHandler:
    def __init__(self, store: VectorStore, collections: Mapping[str, CollectionSpec], embedder: EmbedderOf) -> None:
        self._store = store
        self._collections = collections
        self._embedder = embedder

    async def search(self, request: SearchRequest, scope: Scope, /) -> Found:
        """The passages nearest to the question over all its collections, best first. Raises SourceNotConfigured for a
        collection that is not there or empty, NotPermitted, ConfigError and StorageError when no collection could answer;
        when one could, what the others said is a warning."""
        outcome = _Outcome()
        wanted = list(dict.fromkeys(request.collections or ()))
        allowed: list[tuple[CollectionSpec, str | None]] = []
        for id in wanted:
            try:
                spec = self._spec(id)
                allowed.append((spec, _tenant(spec, scope)))
            except HostError as exc:
                outcome.problems[id] = exc
        vectors = await self._vectors(request.query, [spec for spec, _ in allowed], outcome)
        async with anyio.create_task_group() as tasks:
            for spec, tenant in allowed:
                if spec.id not in outcome.problems:
                    tasks.start_soon(
                        self._search_one, request, scope, spec, tenant, vectors[spec.embedding.model_dump_json()], outcome
                    )
        if outcome.problems and not outcome.items:
            raise next(outcome.problems[id] for id in wanted if id in outcome.problems)
        for id in wanted:
            if id in outcome.problems:
                await scope.warn(outcome.problems[id].code, str(outcome.problems[id]))
        items = [item for id in wanted for item in outcome.items.get(id, ())]
        items.sort(key=lambda item: -item.score)
        return Found(items=tuple(items[: request.limit]))

    async def fetch_document(self, collection: str, document_id: str, scope: Scope, /) -> Found:
        """A whole document, passage by passage. Raises SourceNotConfigured when there is none of this id, NotPermitted."""
        spec = self._spec(collection)
        hits = await self._store.passages(spec.id, _tenant(spec, scope), document_id)
        if not hits:
            raise SourceNotConfigured(
                f"collection {collection!r} has no document {document_id!r}",
                hint=f"see `groundhook kb list`; {_how_to_add(spec)}",
            )
        return Found(items=tuple(_item(spec, hit, 1.0) for hit in hits))

    async def _vectors(self, query: str, specs: Sequence[CollectionSpec], outcome: _Outcome) -> dict[str, bytes]:
        """The question's vector for each embedding that the collections use."""
        vectors: dict[str, bytes] = {}
        for spec in specs:
            key = spec.embedding.model_dump_json()
            if key in vectors:
                continue
            try:
                embedder = self._embedder(spec)
                with span("embedding", f"{embedder.provider}:{embedder.model}", dimensions=embedder.dimensions):
                    vectors[key] = packed(await embedder.embed_query(query))
            except HostError as exc:
                outcome.problems[spec.id] = exc
        return vectors

    async def _search_one(
        self, request: SearchRequest, scope: Scope, spec: CollectionSpec, tenant: str | None, vector: bytes, outcome: _Outcome
    ) -> None:
        threshold = next(value for value in (request.threshold, spec.threshold, scope.settings.kb.threshold) if value is not None)
        try:
            with span("vector_search", spec.id, threshold=threshold) as node:
                embedder = self._embedder(spec)
                question = Question(
                    vector=vector,
                    text=request.query,
                    limit=request.limit or scope.settings.kb.max_results,
                    least_cosine=least_cosine(embedder.similarity, threshold),
                    tenant=tenant,
                )
                made = made_with(spec, embedder, known_language(spec.analyser.language, spec.id))
                answer = await self._store.search(spec.id, made, question)
                if not answer.exists:
                    raise SourceNotConfigured(f"collection {spec.id!r} is empty", hint=_how_to_add(spec))
                outcome.items[spec.id] = _items(spec, answer, embedder)
                node.data |= {
                    "candidates": answer.candidates,
                    "below_threshold": answer.below,
                    "found": len(answer.hits),
                    "words": answer.lexical,
                    "best": max((round(embedder.similarity(hit.cosine), 3) for hit in answer.hits), default=None),
                }
        except HostError as exc:
            outcome.problems[spec.id] = exc

    def _spec(self, id: str) -> CollectionSpec:
        if id not in self._collections:
            hint = suggestion(id, sorted(self._collections))
            raise SourceNotConfigured(
                f"there is no collection {id!r}", hint=f"{hint}; collections are declared in kb/<id>.kb.yao"
            )
        return self._collections[id]


def _tenant(spec: CollectionSpec, scope: Scope) -> str | None:
    """Whose documents may be seen; None in a collection without tenants."""
    if not spec.tenant_field:
        return None
    if not scope.identity.tenant_id:
        raise NotPermitted(
            f"collection {spec.id!r} keeps its tenants apart, and the request names none", hint="the identity needs a tenant_id"
        )
    return scope.identity.tenant_id


def _items(spec: CollectionSpec, answer: Answer, embedder: Embedder) -> tuple[Item, ...]:
    scores = fusion.descending([embedder.similarity(hit.cosine) for hit in answer.hits])
    return tuple(_item(spec, hit, score) for hit, score in zip(answer.hits, scores, strict=True))


def _item(spec: CollectionSpec, hit: Hit, score: float) -> Item:
    page = f"#page={hit.page}" if hit.page and hit.url else ""
    return Item(
        type="kb",
        key=f"kb:{spec.id}/{hit.document}#{hit.passage}",
        title=HEADINGS.join(filter(None, [hit.title, hit.heading])),
        content=hit.content,
        url=hit.url + page,
        score=score,
        document_id=hit.document,
        collection=spec.id,
    )


def _how_to_add(spec: CollectionSpec) -> str:
    return f"fill it with `groundhook kb add {spec.id} PATH…`"
