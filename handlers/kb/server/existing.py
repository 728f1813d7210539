"""Collections of a Qdrant server that another program made, as a `VectorStore` that only reads.

Every point is a document of one passage: its id is the document's, its payload has the title, the
text, the address and the fields, at the places that the declaration (`ExistingSpec`) names. Of the
vectors one is searched, by itself: such a collection has no words that Groundhook analysed.

The tenant of a request is a condition of every call, at `tenant_field` of the payload.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, NoReturn

from qdrant_client import AsyncQdrantClient, models

from groundhook.core.app_settings import QdrantSettings
from groundhook.core.errors import ConfigError, NotPermitted, suggestion
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.fields import Scalar
from groundhook.core.types.filters import Filter
from groundhook.handlers.kb.language import PLAIN
from groundhook.handlers.kb.ranking import certainty
from groundhook.handlers.kb.server.connection import RequestRefused, ServerConnection
from groundhook.handlers.kb.server.foreign_points import ForeignPoints
from groundhook.handlers.kb.store.checks import refuse_read_only, refuse_without_tenant
from groundhook.handlers.kb.store.messages import unpack_vector
from groundhook.handlers.kb.store.port import (
    EVERY,
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

MOST_LISTED = 10_000  # points of a listing
_PAGE = 500  # points in one answer
_TOGETHER = 32  # questions in one request
_COMPARED = 50  # points that are compared, at least
_DISTANCES = (models.Distance.COSINE, models.Distance.DOT)

FindSpec = Callable[[str], CollectionSpec]
ExistingServers = dict[tuple[str, str], ServerConnection]


@dataclass(frozen=True)
class _Opened:
    """A collection as it is on its server: where it is, how its points are read, the number of
    points, and its vectors by name ("": one without a name)."""

    connection: ServerConnection
    read_as: ForeignPoints
    points: int
    vectors: Mapping[str, models.VectorParams]

    @property
    def name(self) -> str:
        return self.read_as.spec.collection


class ExistingStore:
    """A `VectorStore` of the collections that `declared` describes, by id. `settings` are those of
    the app's server, which a declaration without an address means. `connections`, by address and
    key, belong to the caller, who closes them."""

    def __init__(
        self, settings: QdrantSettings, declared: FindSpec, connections: ExistingServers
    ) -> None:
        self._settings = settings
        self._declared = declared
        self._connections = connections

    # ---- what is read

    async def start(self) -> None:
        """Do nothing: the server runs."""

    async def search(
        self, collection: str, settings: CollectionSettings, question: VectorQuestion, /
    ) -> VectorAnswer:
        return (await self.search_many(collection, settings, [question]))[0]

    async def search_many(
        self, collection: str, settings: CollectionSettings, questions: Sequence[VectorQuestion], /
    ) -> list[VectorAnswer]:
        for question in questions:
            refuse_without_tenant(collection, settings, question.tenant)
        opened = await self._open(collection)
        vector = self._vector(opened, settings)
        answers: list[VectorAnswer] = []
        for start in range(0, len(questions), _TOGETHER):
            some = questions[start : start + _TOGETHER]
            requests = [_query(opened, one, vector) for one in some]
            found = await opened.connection.read(
                partial(_query_points, name=opened.name, requests=requests)
            )
            answers += [
                _answer(opened, question, response.points, vector)
                for question, response in zip(some, found, strict=True)
            ]
        return answers

    async def passages(
        self, collection: str, tenant: str | None, wanted: PassageOrdinals, /
    ) -> dict[str, tuple[Hit, ...]]:
        opened = await self._open_for(collection, tenant)
        among = opened.read_as.condition(tenant, documents=list(wanted))
        hits = [opened.read_as.hit(record) async for record in self._scroll(opened, among)]
        found = {hit.document: hit for hit in hits}
        return {
            id: (found[id],)
            for id, ordinals in wanted.items()
            if id in found and (ordinals is None or 0 in ordinals)
        }

    async def full_documents(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[FullDocument]:
        opened = await self._open(collection)
        vector = self._only_vector(opened)
        made: dict[tuple[str, str], FullDocument] = {}
        for tenant in dict.fromkeys(tenant for tenant, _ in documents):
            ids = [document for owner, document in documents if owner == tenant]
            among = opened.read_as.condition(tenant or None, documents=ids)
            async for record in self._scroll(opened, among, vectors=[vector] if vector else True):
                full = opened.read_as.full_document(record, vector)
                made[tenant, full.document] = full
        return [made[each] for each in documents if each in made]

    async def facets(
        self,
        collection: str,
        tenant: str | None,
        fields: Sequence[str],
        filter: Filter | None,
        limit: int,
        /,
    ) -> dict[str, list[tuple[Scalar, int]]]:
        opened = await self._open_for(collection, tenant)
        among = opened.read_as.condition(tenant, filter)
        found: dict[str, list[tuple[Scalar, int]]] = {}
        for name in fields:
            counted = await opened.connection.read(
                partial(_count_values, name=opened.name, field=name, among=among)
            )
            pairs: list[tuple[Scalar, int]] = sorted(
                ((hit.value, hit.count) for hit in counted.hits),
                key=lambda pair: (-pair[1], str(pair[0])),
            )
            if pairs:
                found[name] = pairs[:limit]
        return found

    async def names(
        self, collection: str, tenant: str | None, words: Sequence[str], /
    ) -> list[str]:
        """Return none: nothing here knows the words of the collection."""
        return []

    async def count(self, collection: str, tenant: str | None, filter: Filter | None, /) -> int:
        opened = await self._open_for(collection, tenant)
        among = opened.read_as.condition(tenant, filter)
        counted = await opened.connection.read(
            lambda client: client.count(opened.name, among, exact=True)
        )
        return counted.count

    async def matching_documents(
        self, collection: str, tenant: str | None, filter: Filter | None, /
    ) -> list[MatchingDocument]:
        """Return the first `MOST_LISTED` of them."""
        opened = await self._open_for(collection, tenant)
        among = opened.read_as.condition(tenant, filter)
        hits = [opened.read_as.hit(record) async for record in self._scroll(opened, among)]
        listed = (MatchingDocument(hit.document, hit.title, hit.url, hit.fields) for hit in hits)
        return sorted(listed, key=lambda each: each.document)

    async def settings(self, collection: str, /) -> CollectionSettings | None:
        """Return None: another program made the collection. `verify` compares what can be."""
        return None

    async def has_languages(self, collection: str, /) -> bool:
        return True

    async def usage(
        self, collection: str, tenant: str | None, /, *, settings: CollectionSettings | None = None
    ) -> CollectionUsage:
        """Return the first `MOST_LISTED` points as documents."""
        opened = await self._open(collection)
        if settings is not None:
            self._vector(opened, settings)
        among = opened.read_as.condition(tenant)
        records = [opened.read_as.record(each) async for each in self._scroll(opened, among)]
        return CollectionUsage(documents=_in_order(records))

    async def document_records(
        self, collection: str, tenant: str | None, documents: Sequence[str], /
    ) -> tuple[DocumentRecord, ...]:
        opened = await self._open(collection)
        among = opened.read_as.condition(tenant or None, documents=documents)
        return _in_order(
            [opened.read_as.record(each) async for each in self._scroll(opened, among)]
        )

    async def documents_from(
        self, collection: str, tenant: str | None, source: str, /
    ) -> AsyncIterator[DocumentRecord]:
        """Yield every point for "", and none for a file: none is known to have been added."""
        if source:
            return
        opened = await self._open(collection)
        async for record in self._scroll(opened, opened.read_as.condition(tenant), most=inf):
            yield opened.read_as.record(record)

    # ---- what is refused

    async def put(
        self,
        collection: str,
        settings: CollectionSettings,
        /,
        *documents: FullDocument,
        reserve_bytes: int = 0,
        progress: StoreProgress | None = None,
    ) -> list[PutOutcome]:
        self._refuse(collection)

    async def relocate(
        self, collection: str, tenant: str, places: Mapping[str, tuple[str, str]], /
    ) -> None:
        self._refuse(collection)

    async def remove(
        self, collection: str, tenant: str | None, documents: Sequence[str] | None, /
    ) -> list[str]:
        self._refuse(collection)

    async def swap(self, building: str, collection: str, /) -> bool:
        self._refuse(collection)

    def _refuse(self, collection: str) -> NoReturn:
        refuse_read_only(self._declared(collection))
        raise AssertionError(collection)

    # ---- the server

    async def _open_for(self, collection: str, tenant: str | None) -> _Opened:
        """Return a collection. Raises NotPermitted if it has tenants and none is given."""
        if self._declared(collection).tenant_field and tenant is None:
            raise NotPermitted(f"not permitted: collection {collection!r} separates its tenants")
        return await self._open(collection)

    async def _open(self, collection: str) -> _Opened:
        """Return a collection as it is now. Raises ConfigError if it is not there."""
        spec = self._declared(collection)
        existing = spec.existing
        assert existing is not None, "the store of another collection"
        connection = self._connection(
            existing.url or self._settings.url,
            existing.api_key if existing.url else self._settings.api_key,
        )
        try:
            info = await connection.read(lambda client: client.get_collection(existing.collection))
        except RequestRefused as exc:
            if exc.status != 404:
                raise
            listed = await connection.read(lambda client: client.get_collections())
            names = sorted(each.name for each in listed.collections)
            raise ConfigError(
                f"collection {collection!r}: the Qdrant server {connection.url!r} has no collection"
                f" {existing.collection!r}",
                hint=suggestion(existing.collection, names) or "it has none",
            ) from exc
        vectors = info.config.params.vectors or {}
        named = vectors if isinstance(vectors, Mapping) else {"": vectors}
        return _Opened(connection, ForeignPoints(existing, spec), info.points_count or 0, named)

    def _connection(self, url: str, key: str) -> ServerConnection:
        if (url, key) not in self._connections:
            own = {"url": url, "api_key": key, "prefer_grpc": False}
            settings = self._settings.model_copy(update=own)
            self._connections[url, key] = ServerConnection(settings)
        return self._connections[url, key]

    def _only_vector(self, opened: _Opened) -> str:
        """Return the name of the vector to search. Raises ConfigError if it is not there, or if
        there are several and none is named."""
        wanted, names = opened.read_as.spec.vector, sorted(opened.vectors)
        if wanted in opened.vectors or (not wanted and len(names) == 1):
            return wanted or names[0]
        lacks = f"has no vector {wanted!r}" if wanted else "has several vectors"
        raise self._misfit(opened, lacks, "existing.vector names one")

    def _vector(self, opened: _Opened, settings: CollectionSettings) -> str:
        """Return the name of the vector to search. Raises ConfigError unless it fits the declared
        embedding model."""
        name = self._only_vector(opened)
        params = opened.vectors[name]
        if params.size != settings.dimensions:
            raise self._misfit(
                opened,
                f"has vectors of {params.size} dimensions, and the model {settings.model!r} makes"
                f" {settings.dimensions}",
                "declare the embedding model that it was made with",
            )
        if params.distance not in _DISTANCES:
            raise self._misfit(
                opened,
                f"compares its vectors by {params.distance.value}, and only Cosine and Dot are"
                " read",
                "name another vector with existing.vector",
            )
        return name

    def _misfit(self, opened: _Opened, problem: str, hint: str) -> ConfigError:
        there = ", ".join(
            f"{name or 'one without a name'} ({each.size}, {each.distance.value})"
            for name, each in sorted(opened.vectors.items())
        )
        return ConfigError(
            f"collection {opened.read_as.declared.id!r}: {opened.name!r} on"
            f" {opened.connection.url!r} {problem}",
            hint=f"{hint}; its vectors: {there or 'none'}",
        )

    async def _scroll(
        self,
        opened: _Opened,
        among: models.Filter,
        *,
        vectors: Any = False,
        most: float = MOST_LISTED,
    ) -> AsyncIterator[models.Record]:
        """Yield the first points that fulfil a condition."""
        offset: Any = None
        read = 0
        while read < most:
            call = partial(
                _scroll_points, name=opened.name, among=among, offset=offset, vectors=vectors
            )
            page, offset = await opened.connection.read(call)
            for record in page:
                yield record
            read += len(page)
            if offset is None:
                return


def _query_points(
    client: AsyncQdrantClient, *, name: str, requests: Sequence[models.QueryRequest]
) -> Awaitable[list[models.QueryResponse]]:
    return client.query_batch_points(name, requests)


def _scroll_points(
    client: AsyncQdrantClient, *, name: str, among: models.Filter, offset: Any, vectors: Any
) -> Awaitable[tuple[list[models.Record], Any]]:
    return client.scroll(name, among, _PAGE, offset=offset, with_vectors=vectors)


def _count_values(
    client: AsyncQdrantClient, *, name: str, field: str, among: models.Filter
) -> Awaitable[models.FacetResponse]:
    return client.facet(name, field, among, limit=MOST_LISTED, exact=True)


def _query(opened: _Opened, question: VectorQuestion, vector: str) -> models.QueryRequest:
    return models.QueryRequest(
        query=unpack_vector(question.vector),
        using=vector or None,
        filter=opened.read_as.condition(question.tenant, question.filter),
        limit=_compared(question),
        with_payload=True,
        with_vector=([vector] if vector else True) if question.vectors else False,
    )


def _compared(question: VectorQuestion) -> int:
    """Return the number of points that a question compares; one more than its page needs."""
    return max(question.offset + question.limit + 1, _COMPARED)


def _answer(
    opened: _Opened,
    question: VectorQuestion,
    points: Sequence[models.ScoredPoint],
    vector: str,
) -> VectorAnswer:
    # Equally near ones in the order of their ids, so that pages do not overlap.
    found = sorted(points, key=lambda point: (-point.score, str(point.id)))
    cosines = {str(point.id): min(1.0, max(EVERY, point.score)) for point in found}
    enough = [point for point in found if cosines[str(point.id)] >= question.least_cosine]
    whole = len(enough) < len(found) or len(found) < _compared(question)
    page = enough[question.offset : question.offset + question.limit]
    return VectorAnswer(
        hits=tuple(
            opened.read_as.hit(point).with_scores(
                cosines[str(point.id)],
                vector=opened.read_as.vector(point, vector) if question.vectors else b"",
            )
            for point in page
        ),
        candidates=len(found),
        below=len(found) - len(enough),
        total=len(enough),
        total_is="exact" if whole else "at_least",
        lexical="no match",
        language=PLAIN,
        evidence=certainty.evidence([*cosines], cosines, {}, max(opened.points, 1)),
    )


def _in_order(records: Sequence[DocumentRecord]) -> tuple[DocumentRecord, ...]:
    return tuple(sorted(records, key=lambda each: (each.tenant, each.document)))
