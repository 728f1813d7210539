"""The embedded vector engine: this file and `conditions` alone import `qdrant_edge`.

One `Shard` is one collection's points on disk. It is synchronous, and the engine holds the
interpreter's lock in every call: only the knowledge base's worker process may use it. Point ids
carry the generation of their document (`points_of << 20 | ordinal`), so that a version of a
document is one range of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import qdrant_edge as engine

from groundhook.core.errors import StorageError
from groundhook.core.types.fields import Scalar
from groundhook.core.types.filters import Filter
from groundhook.handlers.kb.analyse import SparseVector
from groundhook.handlers.kb.embedded.conditions import (
    FIRST_PASSAGES,
    equals,
    filter_of,
    in_language,
)
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.points import (
    DENSE,
    FIRST,
    LANGUAGE,
    WORDS,
    decode_value,
    payload_path,
)
from groundhook.handlers.kb.store.port import CollectionSettings

ORDINALS = 20  # bits of a point id for the place in the document
_Vector = Any  # floats: the engine takes any sequence of them, although its stubs name lists


@dataclass(frozen=True)
class Rankings:
    """The two rankings of one question: point id → cosine, point id → BM25 score."""

    dense: dict[int, float]
    words: dict[int, float]


@dataclass(frozen=True)
class NewPoint:
    id: int
    vector: _Vector
    words: SparseVector
    payload: dict[str, Any]


class Shard:
    """One collection's points. Only one process may open a shard, and only once at a time."""

    def __init__(self, path: Path, handle: engine.EdgeShard) -> None:
        self._path = path
        self._handle = handle

    @classmethod
    def create(cls, path: Path, settings: CollectionSettings) -> Shard:
        """Create an empty shard. Raises StorageError."""
        config = engine.EdgeConfig(
            vectors={
                DENSE: engine.EdgeVectorParams(
                    settings.dimensions,
                    engine.Distance.Cosine,
                    quantization_config=_quantisation(settings.quantisation),
                    memory=engine.Memory.Cold if settings.on_disk else None,
                )
            },
            sparse_vectors={
                WORDS: engine.EdgeSparseVectorParams(_SCANNED, modifier=engine.Modifier.Idf)
            },
            # With more, every query is handed to other threads and back, which takes longer than
            # most queries.
            max_search_threads=1,
        )
        with _engine_at(path):
            path.mkdir(parents=True)
            shard = cls(path, engine.EdgeShard.create(str(path), config))
            shard._index("tenant", engine.KeywordIndexParams(is_tenant=True))
            shard._index("generation", engine.IntegerIndexParams(lookup=True, range=False))
            shard._index("document", engine.KeywordIndexParams())
            shard._index(LANGUAGE, engine.KeywordIndexParams())
            shard._index(FIRST, engine.IntegerIndexParams(lookup=True, range=False))
        return shard

    @classmethod
    def load(cls, path: Path) -> Shard:
        """Open a shard. Raises StorageError, also if another process has it open."""
        with _engine_at(path):
            return cls(path, engine.EdgeShard.load(str(path)))

    def index_fields(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Index payload fields by their types. A field that is no longer declared, or has another
        type now, loses its old index."""
        with _engine_at(self._path):
            for name, type in before.items():
                if now.get(name) != type and type in _INDEXES:
                    self._handle.update(
                        engine.UpdateOperation.delete_field_index(payload_path(name))
                    )
            for name, type in now.items():
                if before.get(name) != type and type in _INDEXES:
                    self._index(payload_path(name), _INDEXES[type]())

    def upsert(self, points: Sequence[NewPoint]) -> None:
        new = [
            engine.Point(
                point.id, {DENSE: point.vector, WORDS: _sparse(point.words)}, point.payload
            )
            for point in points
        ]
        with _engine_at(self._path):
            self._handle.update(engine.UpdateOperation.upsert_points(new))

    def delete_generations(self, generations: Sequence[int]) -> None:
        with _engine_at(self._path):
            wanted = engine.Filter(
                must=[engine.FieldCondition("generation", match=engine.MatchAny(list(generations)))]
            )
            self._handle.update(engine.UpdateOperation.delete_points_by_filter(wanted))

    @property
    def count_unindexed(self) -> tuple[int, int]:
        """Return (points whose embedding is in no graph yet, points)."""
        with _engine_at(self._path):
            info = self._handle.info()
        # A point counts once for each of its two vectors.
        return max(0, 2 * info.points_count - info.indexed_vectors_count), info.points_count

    def optimise(self) -> None:
        """Build the indexes of the vectors. Takes seconds to minutes, and holds the interpreter's
        lock throughout."""
        with _engine_at(self._path):
            self._handle.optimize()
            self._handle.flush()

    def points_of(self, generation: int) -> Iterator[list[engine.Point]]:
        """Yield the points of a version, in batches."""
        wanted, offset = engine.Filter(must=[equals("generation", generation)]), None
        while True:
            with _engine_at(self._path):
                page, offset = self._handle.scroll(
                    engine.ScrollRequest(
                        offset=offset,
                        limit=_PAGE,
                        filter=wanted,
                        with_payload=True,
                        with_vector=True,
                    )
                )
            yield [engine.Point(record.id, record.vector or {}, record.payload) for record in page]
            if offset is None:
                return

    def store_points(self, points: list[engine.Point]) -> None:
        """Store points of another shard."""
        with _engine_at(self._path):
            self._handle.update(engine.UpdateOperation.upsert_points(points))

    def count_generation(self, generation: int) -> int:
        with _engine_at(self._path):
            wanted = engine.Filter(must=[equals("generation", generation)])
            return self._handle.count(engine.CountRequest(exact=True, filter=wanted))

    def flush(self) -> None:
        with _engine_at(self._path):
            self._handle.flush()

    def close(self) -> None:
        with _engine_at(self._path):
            self._handle.close()

    def rank(
        self,
        vector: _Vector,
        words: SparseVector | None,
        *,
        limit: int,
        tenant: str | None,
        hidden: Collection[int],
        among: Filter | None = None,
        languages: Sequence[str] = ("",),
    ) -> list[Rankings]:
        """Return for each of `languages` the `limit` nearest passages by vector, and by words if
        there are any. The first language includes all that are not listed. Generations in `hidden`
        and passages that do not fulfil `among` are omitted."""
        questions = []
        for language in languages:
            wanted = filter_of(tenant, hidden, among, in_language(language, languages))
            legs: list[Any] = [engine.Query.Nearest(vector, using=DENSE)]
            if words is not None and words.indices:
                legs.append(engine.Query.Nearest(_sparse(words), using=WORDS))
            questions += [
                engine.QueryRequest(limit=limit, query=leg, filter=wanted) for leg in legs
            ]
        with _engine_at(self._path):
            found = self._handle.query_batch(engine.QueryBatchRequest(questions))
        lists = [scores(points) for points in found]
        legs_each = len(lists) // len(languages)
        return [
            Rankings(lists[at], lists[at + 1] if legs_each > 1 else {})
            for at in range(0, len(lists), legs_each)
        ]

    def nearest(
        self,
        vector: _Vector,
        *,
        limit: int,
        least: Mapping[str, float],
        tenant: str | None,
        hidden: Collection[int],
        among: Filter | None,
        languages: Sequence[str],
    ) -> list[list[engine.ScoredPoint]]:
        """Return for each language in `least`, one of `languages`, up to `limit` of the nearest
        passages with at least this cosine. Takes no payload from the disk. `scores` reads them,
        which takes as long as finding them: a count needs none."""
        questions = [
            engine.QueryRequest(
                limit=limit,
                query=engine.Query.Nearest(vector, using=DENSE),
                filter=filter_of(tenant, hidden, among, in_language(language, languages)),
                score_threshold=cosine,
            )
            for language, cosine in least.items()
        ]
        with _engine_at(self._path):
            return self._handle.query_batch(engine.QueryBatchRequest(questions))

    def best_for_tokens(
        self, indices: Sequence[int], *, tenant: str | None, hidden: Collection[int]
    ) -> list[dict[int, float]]:
        """Return for each token its two best passages, with their scores."""
        if not indices:
            return []
        wanted = filter_of(tenant, hidden, None)
        questions = [
            engine.QueryRequest(
                limit=2,
                query=engine.Query.Nearest(engine.SparseVector([index], [1.0]), using=WORDS),
                filter=wanted,
            )
            for index in indices
        ]
        with _engine_at(self._path):
            found = self._handle.query_batch(engine.QueryBatchRequest(questions))
        return [scores(points) for points in found]

    def having(
        self, index: int, *, limit: int, tenant: str | None, hidden: Collection[int]
    ) -> list[int]:
        """Return the passages that have a token."""
        token = engine.Query.Nearest(engine.SparseVector([index], [1.0]), using=WORDS)
        wanted = filter_of(tenant, hidden, None)
        with _engine_at(self._path):
            return [
                int(point.id)
                for point in self._handle.query(
                    engine.QueryRequest(limit=limit, query=token, filter=wanted)
                )
            ]

    def cosines(self, vector: _Vector, ids: Collection[int]) -> dict[int, float]:
        """Return the cosines of these passages and a question."""
        if not ids:
            return {}
        among = engine.Filter(must=[engine.HasIdCondition(set(ids))])
        nearest = engine.Query.Nearest(vector, using=DENSE)
        request = engine.QueryRequest(
            limit=len(ids), query=nearest, filter=among, params=_EVERY_ONE
        )
        with _engine_at(self._path):
            return scores(self._handle.query(request))

    def facets(
        self,
        fields: Mapping[str, str],
        *,
        tenant: str | None,
        hidden: Collection[int],
        among: Filter | None,
        limit: int,
    ) -> dict[str, list[tuple[Scalar, int]]]:
        """Count documents by the values of indexed fields: the most frequent `limit` of each."""
        found: dict[str, list[tuple[Scalar, int]]] = {}
        whole = filter_of(tenant, hidden, among, [FIRST_PASSAGES])
        for name, type in fields.items():
            with _engine_at(self._path):
                # The engine orders ties arbitrarily: all values are requested, and cut here.
                request = engine.FacetRequest(
                    payload_path(name), limit=_MOST_VALUES, exact=True, filter=whole
                )
                counted = [
                    (decode_value(hit.value, type), hit.count)
                    for hit in self._handle.facet(request).hits
                ]
            found[name] = sorted(counted, key=lambda pair: (-pair[1], pair[0]))[:limit]
        return found

    def count(
        self,
        *,
        tenant: str | None,
        hidden: Collection[int],
        among: Filter | None,
        documents: bool = False,
    ) -> int:
        """Count passages, or `documents` by their first ones."""
        wanted = filter_of(tenant, hidden, among, [FIRST_PASSAGES] if documents else [])
        with _engine_at(self._path):
            return self._handle.count(engine.CountRequest(exact=True, filter=wanted))

    def matching_documents(
        self, *, tenant: str | None, hidden: Collection[int], among: Filter | None
    ) -> dict[int, Mapping[str, Any]]:
        """Return the payload fields of documents, by their first passages."""
        wanted, offset = filter_of(tenant, hidden, among, [FIRST_PASSAGES]), None
        found: dict[int, Mapping[str, Any]] = {}
        while True:
            listing = engine.ScrollRequest(
                offset=offset, limit=_LISTED, filter=wanted, with_payload=["fields"]
            )
            with _engine_at(self._path):
                page, offset = self._handle.scroll(listing)
            found |= {int(one.id): (one.payload or {}).get("fields", {}) for one in page}
            if offset is None:
                return found

    def vectors(self, ids: Sequence[int]) -> dict[int, list[float]]:
        with _engine_at(self._path):
            records = self._handle.retrieve(list(ids), False, [DENSE])
        brought: dict[int, Any] = {int(record.id): record.vector for record in records}
        return {id: vector[DENSE] for id, vector in brought.items()}

    def tokens(self, ids: Sequence[int]) -> dict[int, frozenset[int]]:
        """Return the indices of each passage's words."""
        return {id: frozenset(words) for id, words in self.frequencies(ids).items()}

    def frequencies(self, ids: Collection[int]) -> dict[int, dict[int, float]]:
        """Return the words of each passage, index → the weight of its frequency."""
        if not ids:
            return {}
        with _engine_at(self._path):
            records = self._handle.retrieve(list(ids), False, [WORDS])
        brought: dict[int, Any] = {int(record.id): record.vector for record in records}
        return {
            id: dict(zip(vector[WORDS].indices, vector[WORDS].values, strict=True))
            for id, vector in brought.items()
        }

    def payloads_with_vectors(
        self, ids: Sequence[int]
    ) -> dict[int, tuple[Mapping[str, Any], bytes]]:
        """Return each passage's payload, and its vector as the bytes of a message."""
        with _engine_at(self._path):
            records = self._handle.retrieve(list(ids), True, [DENSE])
        brought: list[Any] = records
        return {
            int(record.id): (record.payload or {}, pack_vector(record.vector[DENSE]))
            for record in brought
        }

    def payloads(self, ids: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        with _engine_at(self._path):
            records = self._handle.retrieve(list(ids), True, False)
        return {int(record.id): record.payload or {} for record in records}

    def _index(self, field: str, params: Any) -> None:
        self._handle.update(engine.UpdateOperation.create_field_index(field, params))


def _quantisation(wanted: str) -> engine.QuantizationConfigType | None:
    match wanted:
        case "scalar":
            return engine.ScalarQuantizationConfig(
                engine.ScalarType.Int8, memory=engine.Memory.Pinned
            )
        case "binary":
            return engine.BinaryQuantizationConfig(memory=engine.Memory.Pinned)
        case _:
            return None


_SCORED = attrgetter("id", "score")


def scores(points: Sequence[engine.ScoredPoint]) -> dict[int, float]:
    """Return point id → score, best first."""
    return dict(map(_SCORED, points))


def _sparse(words: SparseVector) -> engine.SparseVector:
    return engine.SparseVector(words.indices, words.values)


_INDEXES: Mapping[str, Callable[[], Any]] = {
    "keyword": engine.KeywordIndexParams,
    "integer": lambda: engine.IntegerIndexParams(lookup=True, range=True),
    "boolean": lambda: engine.IntegerIndexParams(lookup=True, range=False),
    "float": engine.FloatIndexParams,
    "datetime": engine.DatetimeIndexParams,
}
# For a few points: comparing them all takes a fifth of the time of planning a search.
_EVERY_ONE = engine.SearchParams(exact=True)
_PAGE = 64  # points copied at a time
_LISTED = 1000  # documents read at a time
# If a filter passes fewer passages than this, their words are compared one by one, 50 ns each.
# Otherwise the lists of the question's words are read for all passages: 1.8 ms for 300,000,
# compared with 0.3 ms for 6,000 that a filter passes.
_SCANNED = 20_000
_MOST_VALUES = 100_000  # of one facet


@contextmanager
def _engine_at(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StorageError(
            f"the vector store {str(path)!r} cannot be used: {exc.strerror or exc}"
        ) from exc
    except Exception as exc:  # the engine raises nothing more specific
        if type(exc) is not Exception:
            raise
        raise StorageError(f"the vector store {str(path)!r} cannot be used: {exc}") from exc
