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

from groundhook.core.types.fields import Fields, Scalar
from groundhook.core.types.filters import Filter
from groundhook.core.types.search import TotalIs
from groundhook.handlers.kb.language import ANALYSER, PLAIN

MOST_PASSAGES = (1 << 20) - 1  # of one document
EVERY = -1.0  # the least cosine that every passage has
_NO_FIELDS: Fields = {}

# The version of the messages between client and worker. Increased when a message changes, and when
# modules move that a running worker may import later.
PROTOCOL = "13"

StoreProgress = Callable[[int, int], None]  # passages stored, passages in all
PutOutcome = Literal["added", "replaced"]
# document → ordinals of its passages; None: all of them
PassageOrdinals = Mapping[str, Sequence[int] | None]


@dataclass(frozen=True, kw_only=True)
class CollectionSettings:
    """What a collection is created with. A store refuses a request with other settings, except for
    `fields`, which may change: the store updates its indexes when a document is put."""

    provider: str  # of the embedding model
    model: str
    dimensions: int
    language: str = "auto"  # "auto": detected in the first documents, then kept
    analyser: int = ANALYSER  # the version of the analyser
    tenanted: bool = False  # whether every document belongs to a tenant
    fields: Mapping[str, str] = field(default_factory=dict)  # payload fields with their types
    # These configure the storage when the collection is created, and are not compared.
    shards: int = field(default=1, compare=False)
    replicas: int = field(default=1, compare=False)
    quantisation: Literal["none", "scalar", "binary"] = field(default="none", compare=False)
    on_disk: bool = field(default=False, compare=False)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A piece of a document, with its embedding."""

    passage: str  # its id, unique in the document
    content: str
    text: str  # the headings and the content: words of a question are matched with it
    vector: bytes  # the embedding, as little-endian float32
    heading: str = ""
    page: int = 0  # counted from 1; 0: the document has no pages
    start: int = 0  # characters of the document's text
    end: int = 0
    gap: str = ""  # the blanks before `start`


@dataclass(frozen=True, kw_only=True)
class FullDocument:
    """A document with all its passages, as it is stored."""

    document: str  # its id, unique for the tenant
    title: str
    # Identifies its source and the settings it was built with: a document with the same fingerprint
    # need not be stored again.
    fingerprint: str
    passages: tuple[Passage, ...]
    tenant: str = ""  # "": the collection has no tenants
    url: str = ""
    bytes: int = 0  # the size of its source
    fields: Fields = field(default_factory=dict)  # the payload
    source: str = ""  # the path of its file


@dataclass(frozen=True, kw_only=True)
class DocumentRecord:
    """A stored document without its passages. The attributes are those of `FullDocument`."""

    document: str
    tenant: str
    title: str
    url: str
    fingerprint: str
    chunks: int  # the number of passages
    bytes: int
    source: str = ""


class MatchingDocument(NamedTuple):
    """A document that fulfils a filter, with its payload."""

    document: str
    title: str
    url: str
    fields: Fields


class Hit(NamedTuple):
    """A passage that was found, with the title, url and payload of its document. A tuple, since
    searches create and send many."""

    document: str
    title: str
    url: str
    passage: str
    content: str
    heading: str
    page: int
    ordinal: int  # its place among the passages of the document, from 0
    start: int = 0
    end: int = 0
    fields: Fields = _NO_FIELDS
    gap: str = ""
    words: float = 0.0  # BM25 score for the question; 0: not among the best by words
    cosine: float = 1.0  # of question and passage, however the passage was ranked
    vector: bytes = b""  # empty unless it was requested

    def with_scores(self, cosine: float, words: float = 0.0, vector: bytes = b"") -> Hit:
        """Return the passage with its scores for a question."""
        return Hit._make((*self[:-3], words, cosine, vector))


@dataclass(frozen=True, kw_only=True)
class VectorQuestion:
    """A question to one collection. Questions that differ in `offset` alone return pages of the
    same order."""

    vector: bytes  # as in `Passage`
    text: str  # its words
    limit: int  # passages to return, at most
    least_cosine: float = EVERY  # of the passages that match
    tenant: str | None = None  # None: the collection has no tenants
    filter: Filter | None = None
    vectors: bool = False  # whether the hits have their vectors
    # `vector` without what questions in its language have in common. It ranks the passages in place
    # of `vector`; empty: `vector` does.
    neutral_vector: bytes = b""
    offset: int = 0  # matches before the first that is returned
    groups: int = 0  # passages of one document, at most; 0: any number
    page: int = 0  # the size of a page, if it is not `limit`
    counted: bool = True  # whether all matches are counted, or only those that were compared


class LanguageShare(NamedTuple):
    """A language of a collection in a search."""

    share: float  # of the collection's passages, 0-1
    shift: float  # added to their cosines, so that they compare with those of other languages
    word_weight: float  # of the question's words, 0-1

    def as_trace(self) -> dict[str, float]:
        """Return the values as the trace shows them."""
        return {
            "share": round(self.share, 3),
            "shifted": round(self.shift, 4),
            "words": round(self.word_weight, 2),
        }


class SearchEvidence(NamedTuple):
    """What a search knows of how far it answers the question (`ranking.certainty`), before the
    threshold: the greatest similarity of its first three passages, as a cosine; that of the tenth
    nearest one, or of the last of fewer, None where there are hardly any; and the rarity of the
    question's words, token → inverse document frequency, where one of `missing` is in no passage
    and one below `common` in too many to tell anything."""

    best: float
    tenth: float | None
    rarity: Mapping[int, float]
    missing: Sequence[int]
    common: float


@dataclass(frozen=True, kw_only=True)
class VectorAnswer:
    """What a collection returns for a question."""

    exists: bool = True  # False: nothing was ever added to the collection
    hits: tuple[Hit, ...] = ()  # best first
    candidates: int = 0  # passages that were compared
    below: int = 0  # those of them that are not similar enough
    total: int = 0  # passages that fulfil the filter and reach the threshold
    total_is: TotalIs = "exact"
    lexical: Literal["used", "no match"] = "used"  # "no match": too few of the words were found
    # Empty for a collection of an earlier version, which did not store the languages of passages.
    languages: Mapping[str, LanguageShare] = field(default_factory=dict)
    language: str = PLAIN  # of the collection
    evidence: SearchEvidence | None = None  # None: no passage was compared


@dataclass(frozen=True, kw_only=True)
class CollectionUsage:
    """What a collection stores."""

    documents: tuple[DocumentRecord, ...] = field(default=())
    disk_bytes: int = 0  # 0: unknown
    settings: CollectionSettings | None = None  # None: nothing was ever added

    @property
    def language(self) -> str:
        return self.settings.language if self.settings else ""


class DocumentStore(Protocol):
    """Where documents of collections are kept: what adding, removing, listing and moving them
    needs. Raises StorageError if it cannot store or read, and ConfigError if a collection was made
    with other settings."""

    async def start(self) -> None:
        """Start what requests wait for, such as a process. Raises nothing: requests report why it
        did not start."""
        ...

    async def put(
        self,
        collection: str,
        settings: CollectionSettings,
        /,
        *documents: FullDocument,
        reserve_bytes: int = 0,
        progress: StoreProgress | None = None,
    ) -> list[PutOutcome]:
        """Store documents, each in place of the one with the same id and tenant. Storing many small
        ones in one call is much faster. Searches see the old version of a document or the new one,
        never a part, even if the call fails. Raises StorageError if less than `reserve_bytes` of
        disk would remain free; some of the documents may be stored then."""
        ...

    async def settings(self, collection: str, /) -> CollectionSettings | None:
        """Return the settings of a collection, None if it does not exist. Cheap."""
        ...

    async def usage(
        self, collection: str, tenant: str | None, /, *, settings: CollectionSettings | None = None
    ) -> CollectionUsage:
        """Return what is stored; `tenant` None: of all tenants. With `settings`, raises the errors
        that adding with them would raise."""
        ...

    async def document_records(
        self, collection: str, tenant: str | None, documents: Sequence[str], /
    ) -> tuple[DocumentRecord, ...]:
        """Return the documents that exist, ordered by tenant and id."""
        ...

    def documents_from(
        self, collection: str, tenant: str | None, source: str, /
    ) -> AsyncIterator[DocumentRecord]:
        """Yield, in any order, the documents whose source is a file or is in a folder or its
        subfolders; "": all documents."""
        ...

    async def full_documents(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[FullDocument]:
        """Return documents, given as (tenant, document), in this order, as they were put.
        Documents that do not exist are omitted. All are in memory at once: request only a few."""
        ...

    async def relocate(
        self, collection: str, tenant: str, places: Mapping[str, tuple[str, str]], /
    ) -> None:
        """Set the url and the source of documents that moved and did not change: document → (url,
        source)."""
        ...

    async def remove(
        self, collection: str, tenant: str | None, documents: Sequence[str] | None, /
    ) -> list[str]:
        """Remove documents, or all of them (None), of one tenant or of all (None). Returns the ids
        of those that existed. A collection that becomes empty is deleted with its settings."""
        ...

    async def swap(self, building: str, collection: str, /) -> bool:
        """Replace a collection by `building` in one step. Returns False, and changes nothing, if
        documents were added or removed meanwhile, so that the two differ."""
        ...


class PassageSearch(Protocol):
    """The documents and passages of collections as searches read them. Raises StorageError."""

    async def search(
        self, collection: str, settings: CollectionSettings, question: VectorQuestion, /
    ) -> VectorAnswer: ...

    async def search_many(
        self, collection: str, settings: CollectionSettings, questions: Sequence[VectorQuestion], /
    ) -> list[VectorAnswer]:
        """Answer several questions to one collection together, in their order."""
        ...

    async def passages(
        self, collection: str, tenant: str | None, wanted: PassageOrdinals, /
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

    async def names(
        self, collection: str, tenant: str | None, words: Sequence[str], /
    ) -> list[str]:
        """Return those of the words that are the name of what the whole collection is about
        (`ranking.names`). Cheap for words that were asked before; a store may know none."""
        ...

    async def count(self, collection: str, tenant: str | None, filter: Filter | None, /) -> int:
        """Count the documents that fulfil `filter`; 0 if the collection does not exist."""
        ...

    async def matching_documents(
        self, collection: str, tenant: str | None, filter: Filter | None, /
    ) -> list[MatchingDocument]:
        """Return the documents that fulfil `filter`, ordered by id. Reads no text and no vector."""
        ...

    async def has_languages(self, collection: str, /) -> bool:
        """Return whether the languages of all passages are stored, which earlier versions did not
        do. True for a collection that does not exist. Cheap."""
        ...


class VectorStore(DocumentStore, PassageSearch, Protocol):
    """A store of collections, which each engine implements."""
