"""The narrow port between the knowledge base and whatever stores its vectors, and the values that
pass through it.

A store keeps documents as passages, each with its text and its embedding; it analyses words itself.
It knows nothing of files, embedding models or assistants. Everything said here is plain data, so
that a store may live in another process.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, NamedTuple, Protocol

from groundhook.handlers.kb.language import ANALYSER, PLAIN, language_of
from groundhook.host.core.errors import ConfigError, NotPermitted, StorageError
from groundhook.host.core.types.fields import Fields, Scalar
from groundhook.host.core.types.filters import Filter, dumped, loaded
from groundhook.host.core.types.search import TotalIs

MOST_PASSAGES = (1 << 20) - 1  # of one document
_DECIDE = 100  # passages that decide in which language a collection is
_NO_FIELDS: Fields = {}

# Raised when what is said to a worker, or by it, is put otherwise, and when modules move, which one
# that runs may import later.
SPEAKS = "7"

Told = Callable[[int, int], None]  # passages stored, of how many
Outcome = Literal["added", "replaced"]
Places = Mapping[str, Sequence[int] | None]  # documents → ordinals of passages; None: all of them


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a collection is made with; a store refuses to mix. `language` may be "auto": decided by
    the documents that are put first and kept; `analyser` is its version. `tenanted`: every document
    belongs to a tenant. `fields` are the payload fields with their types; they may change without
    harm, and a store brings its indexes in line when a document is put. The rest is how it lies on
    disk and on a cluster; it is not compared, and holds from when the collection is made."""

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
    """A document to be stored. `fingerprint` says what it was made from: equal ones need not be
    stored again. `fields` are its payload, of the types that `Made.fields` names; `source` is the
    path of the file that it comes from."""

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


class Hit(NamedTuple):
    """A passage that was found. `start` and `end` are characters of the document, `gap` the blanks
    before them; `fields` its payload. `cosine` is that of question and passage, whatever put the
    passage where it stands; `vector` is there when it was asked for. A tuple, since searches make
    many and send them on."""

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
        """The same passage by another question."""
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
    least_cosine: float = -1.0
    tenant: str | None = None
    filter: Filter | None = None
    vectors: bool = False
    freed: bytes = b""
    offset: int = 0
    groups: int = 0
    page: int = 0
    counted: bool = True


class Spoken(NamedTuple):
    """A language of a collection's passages in a search: its `share` of them, what its passages'
    cosines were `shifted` by to be comparable with those of others, and what the question's `words`
    count in it, 0-1."""

    share: float
    shifted: float
    words: float


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
    """What a store holds: documents, and bytes on disk (0 where it does not know). `made` is None
    when nothing was ever added."""

    documents: tuple[Stored, ...] = field(default=())
    disk_bytes: int = 0
    made: Made | None = None

    @property
    def language(self) -> str:
        return self.made.language if self.made else ""


class VectorStore(Protocol):
    """Raises StorageError when it cannot store or read, ConfigError when a collection was made with
    something else."""

    async def put(
        self,
        collection: str,
        made: Made,
        /,
        *documents: Incoming,
        reserve_bytes: int = 0,
        told: Told | None = None,
    ) -> list[Outcome]:
        """Store documents, each in place of the one of the same id and tenant: many small ones
        together take far less time. Of each document searches see the old one or the new one, never
        a part, whatever happens meanwhile. Raises StorageError when less than `reserve_bytes` of
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
        """How many documents that fulfil `filter` have each value of a field: field → (value,
        documents), the most frequent `limit` first, equal ones by value. Fields are of the types
        keyword, integer or boolean; one that no document has gives nothing."""
        ...

    async def whole(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[Incoming]:
        """Those of the documents, given as (tenant, document), that are there: as they were put,
        with their vectors, in this order. All of them are in memory at once: ask for a few."""
        ...

    async def swap(self, building: str, collection: str, /) -> bool:
        """Put one collection in the place of another, which is gone then. Searches see the one or
        the other. False, and nothing happened, when they do not hold the same documents: some were
        added or removed meanwhile."""
        ...

    async def made(self, collection: str, /) -> Made | None:
        """What a collection was made with; None when there is none. Costs little."""
        ...

    async def usage(
        self, collection: str, tenant: str | None, /, *, made: Made | None = None
    ) -> Usage:
        """What is stored; `tenant` None: of all tenants. With `made`, refuses as adding would."""
        ...

    async def stored(
        self, collection: str, tenant: str | None, documents: Sequence[str], /
    ) -> tuple[Stored, ...]:
        """Those of the documents that are there, by tenant and id."""
        ...

    def come_from(
        self, collection: str, tenant: str | None, source: str, /
    ) -> AsyncIterator[Stored]:
        """The documents that come from that file, or from that folder and those in it, or all of
        them (""); in no order, a few at a time."""
        ...

    async def relocate(
        self, collection: str, tenant: str, places: Mapping[str, tuple[str, str]], /
    ) -> None:
        """Documents that did not change and are found elsewhere now: document → (url, source)."""
        ...

    async def remove(
        self, collection: str, tenant: str | None, documents: Sequence[str] | None, /
    ) -> list[str]:
        """Remove documents, or all of them (None), of one tenant or of all (None). Returns the ids
        that were there. A collection left empty is gone, with what it was made with."""
        ...


def agree(collection: str, there: Made, asked: Made) -> None:
    """Raises ConfigError when a collection was made with something else than is asked for now."""
    if there.analyser != asked.analyser:
        raise ConfigError(
            f"collection {collection!r} was made by version {there.analyser} of the analyser, and"
            f" questions cut by version {asked.analyser} would not match its words",
            hint=f"make it anew from what it holds: `groundhook kb rebuild {collection}`",
        )
    refuse_other_tenancy(collection, there, asked)
    was, now = _worded(there), _worded(asked)
    same_language = asked.language in ("auto", there.language)
    if was == now and same_language:
        return
    if not same_language:
        was, now = f"analyser language {there.language!r}", f"{asked.language!r}"
    raise ConfigError(
        f"collection {collection!r} was made with {was}, and is declared with {now}",
        hint=(
            "declare it as it was, or make it anew from what it holds: `groundhook kb rebuild"
            f" {collection}`"
        ),
    )


def refuse_other_tenancy(collection: str, there: Made, asked: Made) -> None:
    """Raises ConfigError when a collection got or lost its tenants: its documents would be found by
    nobody, or by everybody."""
    if there.tenanted != asked.tenanted:
        was, now = (
            ("with" if made.tenanted else "without") + " tenants" for made in (there, asked)
        )
        raise ConfigError(
            f"collection {collection!r} was made {was}, and is declared {now}",
            hint=(
                "declare `tenant_field` as it was, or remove its documents and add them anew: "
                f"`groundhook kb remove {collection} --all`"
            ),
        )


def decided(made: Made, documents: Iterable[Incoming]) -> Made:
    """With the language that the documents begin in, where it is "auto"."""
    if made.language != "auto":
        return made
    texts = (passage.text for document in documents for passage in document.passages)
    return replace(made, language=language_of(" ".join(islice(texts, _DECIDE))))


def refuse_too_long(documents: Sequence[Incoming]) -> None:
    """Raises StorageError for a document with more passages than a store can number."""
    for document in documents:
        if len(document.passages) > MOST_PASSAGES:
            raise StorageError(
                f"document {document.document!r} has more than {MOST_PASSAGES} passages",
                hint="split the file",
            )


def refuse_without_tenant(collection: str, made: Made, tenant: str | None) -> None:
    """Raises NotPermitted when a collection keeps tenants apart and the question is of none: the
    last of several locks."""
    if made.tenanted and not tenant:
        raise NotPermitted(
            f"collection {collection!r} keeps its tenants apart, and the search names none"
        )


def _worded(made: Made) -> str:
    return f"embedding {made.provider!r} {made.model!r} of {made.dimensions} dimensions"


def packed(vector: Sequence[float]) -> bytes:
    """A vector as it travels: float32, 4 bytes a dimension."""
    return struct.pack(
        f"{len(vector)}f", *vector
    )  # an array made of a list takes four times as long


def unpacked(vector: bytes) -> list[float]:
    values = array("f")
    values.frombytes(vector)
    return values.tolist()


def question_out(question: Question) -> dict[str, Any]:
    """A question as a mapping for a message."""
    return {
        **vars(question),
        "filter": None if question.filter is None else dumped(question.filter),
    }


def question_in(raw: Mapping[str, Any]) -> Question:
    return Question(**{**raw, "filter": None if raw["filter"] is None else loaded(raw["filter"])})


def plain(value: Any) -> dict[str, Any]:
    """A flat value of this module as a mapping for a message."""
    return dict(vars(value))
