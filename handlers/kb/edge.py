"""The door to the embedded vector engine: the only file that imports `qdrant_edge`.

One `Shard` is one collection's points on disk. It is synchronous, and the engine holds the interpreter's lock in every
call: only the knowledge base's worker process may use it. Point ids carry the generation of their document
(`generation << 20 | ordinal`), so that a version of a document is one range of numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import qdrant_edge as engine

from handlers.kb.language import PLAIN, STEMMED, UNSPACED
from host.errors import StorageError

ORDINALS = 20  # bits of a point id for the place in the document
DENSE, WORDS = "dense", "bm25"


@dataclass(frozen=True)
class Rankings:
    """The two rankings of one question: point id → cosine, point id → BM25 score. `cosines` has every id of both."""

    dense: dict[int, float]
    words: dict[int, float]
    cosines: dict[int, float]


class Analyser:
    """Cuts text into weighted words for one language. `mean_length` is the collection's words in a passage."""

    def __init__(self, language: str, mean_length: float) -> None:
        options: dict[str, Any] = {"avg_len": mean_length}
        if language in UNSPACED:
            options["tokenizer"] = engine.TokenizerType.Multilingual
        if language == PLAIN:
            options["stopwords"], options["stemmer"] = engine.StopwordsSet(), engine.DisabledStemmer()
        elif language in STEMMED:
            options["language"] = language
        else:
            options["stopwords"], options["stemmer"] = getattr(engine.Language, language.capitalize()), engine.DisabledStemmer()
        self._model = engine.Bm25(engine.Bm25Config(**options))

    def document(self, text: str) -> engine.SparseVector:
        return self._model.embed_document(text)

    def question(self, text: str) -> engine.SparseVector:
        return self._model.embed_query(text)


@dataclass(frozen=True)
class NewPoint:
    id: int
    vector: list[float]
    words: engine.SparseVector
    payload: dict[str, Any]


class Shard:
    """Open at most once at a time, in one process."""

    def __init__(self, path: Path, handle: engine.EdgeShard) -> None:
        self._path = path
        self._handle = handle

    @classmethod
    def create(cls, path: Path, dimensions: int) -> Shard:
        """Raises StorageError."""
        config = engine.EdgeConfig(
            vectors={DENSE: engine.EdgeVectorParams(dimensions, engine.Distance.Cosine)},
            sparse_vectors={WORDS: engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)},
        )
        with _engine_at(path):
            path.mkdir(parents=True)
            shard = cls(path, engine.EdgeShard.create(str(path), config))
            shard._index("tenant", engine.KeywordIndexParams(is_tenant=True))
            shard._index("generation", engine.IntegerIndexParams(lookup=True, range=False))
        return shard

    @classmethod
    def load(cls, path: Path) -> Shard:
        """Raises StorageError, also when another process has it open."""
        with _engine_at(path):
            return cls(path, engine.EdgeShard.load(str(path)))

    def upsert(self, points: Sequence[NewPoint]) -> None:
        made = [engine.Point(point.id, {DENSE: point.vector, WORDS: point.words}, point.payload) for point in points]
        with _engine_at(self._path):
            self._handle.update(engine.UpdateOperation.upsert_points(made))

    def delete_generation(self, generation: int) -> None:
        with _engine_at(self._path):
            wanted = engine.Filter(must=[_equals("generation", generation)])
            self._handle.update(engine.UpdateOperation.delete_points_by_filter(wanted))

    def flush(self) -> None:
        with _engine_at(self._path):
            self._handle.flush()

    def close(self) -> None:
        with _engine_at(self._path):
            self._handle.close()

    def rank(
        self,
        vector: list[float],
        words: engine.SparseVector | None,
        *,
        limit: int,
        tenant: str | None,
        hidden: Collection[int],
    ) -> Rankings:
        """The `limit` nearest passages by vector, and by words when there are any; each passage has its cosine. Generations
        in `hidden` are left out."""
        wanted = _filter(tenant, hidden)
        questions = [engine.QueryRequest(limit=limit, query=engine.Query.Nearest(vector, using=DENSE), filter=wanted)]
        if words is not None and words.indices:
            questions.append(engine.QueryRequest(limit=limit, query=engine.Query.Nearest(words, using=WORDS), filter=wanted))
        with _engine_at(self._path):
            found = [{int(point.id): point.score for point in leg} for leg in self._legs(questions)]
            by_words = found[1] if len(found) > 1 else {}
            unmeasured = by_words.keys() - found[0].keys()
            cosines = found[0] | (self._cosines(vector, unmeasured) if unmeasured else {})
        return Rankings(found[0], by_words, cosines)

    def payloads(self, ids: Sequence[int]) -> dict[int, Mapping[str, Any]]:
        with _engine_at(self._path):
            records = self._handle.retrieve(list(ids), True, False)
        return {int(record.id): record.payload or {} for record in records}

    def _legs(self, questions: list[engine.QueryRequest]) -> list[list[engine.ScoredPoint]]:
        return self._handle.query_batch(engine.QueryBatchRequest(questions))

    def _cosines(self, vector: list[float], ids: Collection[int]) -> dict[int, float]:
        among = engine.Filter(must=[engine.HasIdCondition(set(ids))])
        nearest = engine.Query.Nearest(vector, using=DENSE)
        points = self._handle.query(engine.QueryRequest(limit=len(ids), query=nearest, filter=among))
        return {int(point.id): point.score for point in points}

    def _index(self, field: str, params: engine.KeywordIndexParams | engine.IntegerIndexParams) -> None:
        self._handle.update(engine.UpdateOperation.create_field_index(field, params))


def _equals(field: str, value: str | int) -> engine.FieldCondition:
    return engine.FieldCondition(field, match=engine.MatchValue(value))


def _filter(tenant: str | None, hidden: Collection[int]) -> engine.Filter | None:
    if tenant is None and not hidden:
        return None
    # A filter on generations makes the engine's plan twice as slow, so it is there only while a document is being replaced.
    return engine.Filter(
        must=[_equals("tenant", tenant)] if tenant is not None else None,
        must_not=[engine.FieldCondition("generation", match=engine.MatchAny(sorted(hidden)))] if hidden else None,
    )


@contextmanager
def _engine_at(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StorageError(f"the vector store {str(path)!r} cannot be used: {exc.strerror or exc}") from exc
    except Exception as exc:  # the engine raises nothing more specific
        if type(exc) is not Exception:
            raise
        raise StorageError(f"the vector store {str(path)!r} cannot be used: {exc}") from exc
