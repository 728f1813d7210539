"""The port between the knowledge base and the stores of its vectors, and the values that pass
through it.

A store keeps documents as passages, each with its text and its embedding, and analyses words
itself. It knows nothing about files, embedding models or assistants. All values are plain data, so
that a store can be another process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from groundhook.handlers.kb.language import ANALYSER, PLAIN
from groundhook.host.core.types.fields import Fields, Scalar
from groundhook.host.core.types.filters import Filter
from groundhook.host.core.types.search import TotalIs

MOST_PASSAGES = (1 << 20) - 1  # of one document
EVERY = -1.0  # the least cosine that every passage has
_NO_FIELDS: Fields = {}

# The version of the messages between client and worker. Increased when a message changes, and when
# modules move that a running worker may import later.
PROTOCOL = "9"

StoreProgress = Callable[[int, int], None]  # passages stored, passages in all
Outcome = Literal["added", "replaced"]
Places = Mapping[str, Sequence[int] | None]  # documents → ordinals of passages; None: all of them


@dataclass(frozen=True, kw_only=True)
class Made:
    """The settings of a collection; a store refuses documents with other ones. `language` may be
    "auto": it is detected in the first documents and kept; `analyser` is the analyser's version.
    `tenanted`: every document belongs to a tenant. `fields` are the payload fields with their
    types; they may change, and a store updates its indexes when a document is put. The others
    configure storage; they are not compared, and apply from the creation of the collection."""

    provider: str
    model: str
    dimensions: int
    language: str = "auto"
    analyser: int = ANALYSER
    tenanted: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)
    shards: int = field(default=1, compare=False)
    replicas: int = field(default=1, compare=False)
    quantisation: Literal["none", "scalar", "binary"] = field(default="none", compare=False)
    on_disk: bool = field(default=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of a document. `vector` is the embedding as little-endian float32; `text` is what
    words are taken from; `start` and `end` count characters of the document's text, `gap` are the
    blanks before `start`; `page` is counted from 1, 0 where there are none."""

    passage: str
    content: str
    text: str
    vector: bytes
    heading: str = ""
    page: int = 0
    start: int = 0
    end: int = 0
    gap: str = ""


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """A document to be stored. `fingerprint` identifies its source and settings: a document with
    an equal one need not be stored again. `fields` are its payload, with the types in
    `Made.fields`; `source` is the path of its file."""

    document: str
    title: str
    fingerprint: str
    passages: tuple[Passage, ...]
    tenant: str = ""
    url: str = ""
    bytes: int = 0
    fields: Fields = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A document as a store lists it. `bytes` is the size of its source."""

    document: str
    tenant: str
    title: str
    url: str
    fingerprint: str
    chunks: int
    bytes: int
    source: str = ""


class Listed(NamedTuple):
    """A document that fulfils a filter, with its payload."""

    document: str
    title: str
    url: str
    fields: Fields


class Hit(NamedTuple):
    """A passage that was found. `start` and `end` are characters of the document, `gap` the blanks
    before them; `fields` its payload. `cosine` is the similarity of question and passage, however
    the passage was ranked; `vector` is empty unless it was requested. A tuple, since searches
    create and send many."""

    document: str
    title: str
    url: str
    passage: str
    content: str
    heading: str
    page: int
    ordinal: int
    start: int = 0
    end: int = 0
    fields: Fields = _NO_FIELDS
    gap: str = ""
    cosine: float = 1.0
    vector: bytes = b""

    def found(self, cosine: float, vector: bytes = b"") -> Hit:
        """Return the passage as the result of a search."""
        return Hit._make((*self[:-2], cosine, vector))


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is searched for: a vector as in `Passage`, the question's words, and at most `limit`
    passages from `offset` on of at least `least_cosine`, of one tenant (None: the collection has
    none), that fulfil `filter`; at most `groups` of one document (0: as many as there are).
    `vectors`: the hits bring theirs. `freed`: the vector without what questions in its language
    have in common, which passages are ranked by in place of `vector`; empty: none. Pages are parts
    of one order if their questions differ in `offset` alone; `page` is the size of a page, if it is
    not `limit`. `counted`: all matches are counted, not only those that were compared."""

    vector: bytes
    text: str
    limit: int
    least_cosine: float = EVERY
    tenant: str | None = None
    filter: Filter | None = None
    vectors: bool = False
    freed: bytes = b""
    offset: int = 0
    groups: int = 0
    page: int = 0
    counted: bool = True


class Spoken(NamedTuple):
    """A language of a collection in a search: its `share` of the passages, the amount by which
    their cosines were `shifted` to be comparable with those of other languages, and the weight of
    the question's `words` in it, 0-1."""

    share: float
    shifted: float
    words: float

    def shown(self) -> dict[str, float]:
        """Return the values as the trace shows them."""
        return {
            "share": round(self.share, 3),
            "shifted": round(self.shifted, 4),
            "words": round(self.words, 2),
        }


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a search found: hits, best first. `candidates` passages were compared, of which `below`
    were not similar enough. `total` passages match, exactly or at least: they fulfil the filter and
    reach the threshold. `lexical`: whether words counted, or too few of them match. `languages` are
    those of the passages; empty where they are not known: the collection was made before they were
    kept. `language` is the collection's. `exists` is False when nothing was ever added to it."""

    exists: bool = True
    hits: tuple[Hit, ...] = ()
    candidates: int = 0
    below: int = 0
    total: int = 0
    total_is: TotalIs = "exact"
    lexical: Literal["used", "no match"] = "used"
    languages: Mapping[str, Spoken] = field(default_factory=dict)
    language: str = PLAIN


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The contents of a store: documents, and bytes on disk (0: unknown). `made` is None if nothing
    was ever added."""

    documents: tuple[Stored, ...] = field(default=())
    disk_bytes: int = 0
    made: Made | None = None

    @property
    def language(self) -> str:
        return self.made.language if self.made else ""


class VectorStore(Protocol):
    """A store of collections. Raises StorageError if it cannot store or read, and ConfigError if a
    collection was made with other settings."""

    async def start(self) -> None:
        """Start what requests wait for, such as a process. Raises nothing: requests report why it
        did not start."""
        ...

    async def put(
        self,
        collection: str,
        made: Made,
        /,
        *documents: Incoming,
        reserve_bytes: int = 0,
        progress: StoreProgress | None = None,
    ) -> list[Outcome]:
        """Store documents, each in place of the one with the same id and tenant. Storing many small
        ones in one call is much faster. Searches see the old version of a document or the new one,
        never a part, even if the call fails. Raises StorageError if less than `reserve_bytes` of
        disk would remain free; some of the documents may be stored then."""
        ...

    async def search(self, collection: str, made: Made, question: Question, /) -> Answer: ...

    async def search_many(
        self, collection: str, made: Made, questions: Sequence[Question], /
    ) -> list[Answer]:
        """Answer several questions to one collection together, in their order."""
        ...

    async def passages(
        self, collection: str, tenant: str | None, wanted: Places, /
    ) -> dict[str, tuple[Hit, ...]]:
        """Look up passages of documents by id, all in one request. Documents that do not exist are
        left out, and so are ordinals that they do not have. Cosines are 1."""
        ...

    async def facets(
        self,
        collection: str,
        tenant: str | None,
        fields: Sequence[str],
        filter: Filter | None,
        limit: int,
        /,
    ) -> dict[str, list[tuple[Scalar, int]]]:
        """Count the documents that fulfil `filter` by the values of fields: field → (value,
        documents), the most frequent `limit` first, ties ordered by value. Fields have the type
        keyword, integer or boolean; a field that no document has is omitted."""
        ...

    async def count(self, collection: str, tenant: str | None, filter: Filter | None, /) -> int:
        """Count the documents that fulfil `filter`; 0 if the collection does not exist."""
        ...

    async def matching(
        self, collection: str, tenant: str | None, filter: Filter | None, /
    ) -> list[Listed]:
        """Return the documents that fulfil `filter`, ordered by id. Reads no text and no vector."""
        ...

    async def whole(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[Incoming]:
        """Return documents, given as (tenant, document), as they were put, with their vectors, in
        this order. Documents that do not exist are omitted. All are in memory at once: request
        only a few."""
        ...

    async def swap(self, building: str, collection: str, /) -> bool:
        """Replace a collection by another one, in one step. Returns False, and changes nothing, if
        they do not hold the same documents because some were added or removed since."""
        ...

    async def made(self, collection: str, /) -> Made | None:
        """Return the settings of a collection, None if it does not exist. Cheap."""
        ...

    async def usage(
        self, collection: str, tenant: str | None, /, *, made: Made | None = None
    ) -> Usage:
        """Return what is stored; `tenant` None: of all tenants. With `made`, raises the errors that
        adding would raise."""
        ...

    async def stored(
        self, collection: str, tenant: str | None, documents: Sequence[str], /
    ) -> tuple[Stored, ...]:
        """Return the documents that exist, ordered by tenant and id."""
        ...

    def come_from(
        self, collection: str, tenant: str | None, source: str, /
    ) -> AsyncIterator[Stored]:
        """Yield the documents that come from a file, or from a folder and its subfolders, or all
        of them (""), in no order."""
        ...

    async def relocate(
        self, collection: str, tenant: str, places: Mapping[str, tuple[str, str]], /
    ) -> None:
        """Set the places of documents that did not change: document → (url, source)."""
        ...

    async def remove(
        self, collection: str, tenant: str | None, documents: Sequence[str] | None, /
    ) -> list[str]:
        """Remove documents, or all of them (None), of one tenant or of all (None). Returns the ids
        of those that existed. A collection that becomes empty is deleted with its settings."""
        ...
