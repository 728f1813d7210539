"""Search values: what is asked, what is found, and where an item stands in the pool.

Field names are those of the wire and of JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import AliasChoices, Field, field_validator

from groundhook.host.core.errors import UsageError
from groundhook.host.core.types.base import Few, Value
from groundhook.host.core.types.filters import parse_filter
from groundhook.host.core.types.query_language import Aggregate, Order, Wheres

SearchType = Literal["web", "kb", "db"]
Source = Literal["user", "hook", "auto"]
SEARCH_TYPES: tuple[SearchType, ...] = ("web", "kb", "db")


class RerankOptions(Value):
    """How to reorder: `type` picks the reranker, the key of the same name its model, agent or
    server."""

    type: Literal["score", "model", "agent", "mcp"] | None = None
    model: str | None = None
    agent: str | None = None
    mcp: str | None = None
    top_k: int | None = Field(
        default=None, ge=1, validation_alias=AliasChoices("top_k", "topK", "top_n", "topN")
    )


def rerank_type(said: Mapping[str, Any]) -> str | None:
    """The type that `RerankOptions` as said amount to: `{agent: "x"}` means the type `agent`."""
    named = [key for key in ("model", "agent", "mcp") if said.get(key)]
    return said.get("type") or (named[0] if len(named) == 1 else None)


class WebOptions(Value):
    """Options of `ctx.search.Web`."""

    limit: int | None = Field(
        default=None, ge=1, le=1000, description="Most results to return (default 10)"
    )
    sites: Few[tuple[str, ...]] | None = Field(
        default=None, description="Only results from these sites"
    )
    exclude_sites: Few[tuple[str, ...]] | None = Field(
        default=None,
        validation_alias=AliasChoices("exclude_sites", "excludeSites"),
        description="No results from these sites (default: search.web.exclude_sites)",
    )
    time_range: Literal["day", "week", "month", "year"] | None = Field(
        default=None,
        validation_alias=AliasChoices("time_range", "timeRange"),
        description="Only results of the last day, week, month or year",
    )
    language: str | None = Field(
        default=None,
        max_length=35,
        description=(
            "Language of the results, such as `en` or `pt-BR` (default: search.web.language)"
        ),
    )
    fetch: int | None = Field(
        default=None,
        ge=0,
        le=10,
        description="So many of the first pages are read (default: search.web.fetch)",
    )
    rerank: RerankOptions | None = None


class KBOptions(Value):
    """Options of `ctx.search.KB`."""

    limit: int | None = Field(
        default=None, ge=1, le=1000, description="Most results to return (default 10)"
    )
    collections: Few[tuple[str, ...]] | None = Field(
        default=None, description="Collections to search (default: the assistant's)"
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Least similarity, 0-1, the same scale for every embedding model",
    )
    filter: dict[str, Any] | None = Field(
        default=None,
        description=(
            'Only documents whose fields fulfil it: {"year": {"gte": 2020}, "tag": ["a", "b"]}'
        ),
    )
    facets: Few[tuple[str, ...]] | None = Field(
        default=None,
        description="Count the documents that fulfil the filter by the values of these fields",
    )
    groups: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description=(
            "Most passages of one document; true: its best one; false: as many as there are"
        ),
    )
    neighbours: int | None = Field(
        default=None,
        ge=0,
        le=20,
        validation_alias=AliasChoices("neighbours", "neighbors"),
        description="Passages before and after each hit that are added to it",
    )
    passage_tokens: int | None = Field(
        default=None,
        ge=0,
        le=100_000,
        validation_alias=AliasChoices("passage_tokens", "passageTokens"),
        description="Of a longer chunk, so much that answers is the content; 0: chunks as they are",
    )
    diversity: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How much passages that repeat others fall behind, 0-1; 0: not at all",
    )
    document: str | None = Field(
        default=None, description="The whole document of this id, in its order, instead of a search"
    )
    graph: bool | None = Field(default=None, description="Also walk the knowledge graph")
    rerank: RerankOptions | None = None

    @field_validator("filter")
    @classmethod
    def _is_a_filter(cls, filter: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            parse_filter(filter or {})
        except UsageError as exc:
            raise ValueError(str(exc).removeprefix("filter").lstrip(". ")) from exc
        return filter


class DBOptions(Value):
    """Options of `ctx.search.DB`."""

    limit: int | None = Field(default=None, ge=1, le=1000, description="Most records to return")
    models: Few[tuple[str, ...]] | None = Field(
        default=None, description="Models to query (default: the assistant's)"
    )
    wheres: Wheres | None = Field(
        default=None, description="Conditions ANDed with those of the question"
    )
    orders: Few[tuple[Order, ...]] | None = Field(default=None, description="Sort orders")
    select: Few[tuple[str, ...]] | None = Field(
        default=None, description="Fields to return (default: all)"
    )
    group_by: Few[tuple[str, ...]] | None = Field(
        default=None,
        validation_alias=AliasChoices("group_by", "groupBy"),
        description="Fields by which records are grouped; each group is one item",
    )
    aggregates: Few[tuple[Aggregate, ...]] | None = Field(
        default=None, description="Figures instead of records, one item a group"
    )
    rerank: RerankOptions | None = None


class RecordQuery(Value):
    """Records of one model, by conditions alone."""

    model: str
    record_id: Any = Field(default=None, description="The primary key: that record alone")
    select: tuple[str, ...] = Field(default=(), description="Fields to return (default: all)")
    wheres: Wheres = Field(default=(), description="Conditions, all of which must hold")
    orders: Few[tuple[Order, ...]] = Field(default=(), description="Sort orders")
    limit: int = Field(default=1000, ge=1, le=1000, description="Most records to return")


class SearchRequest(WebOptions, KBOptions, DBOptions):
    """One search as a caller asks for it; what is None is filled from the layers of
    configuration."""

    type: SearchType
    query: str = Field(min_length=1)


class ComputedBy(Value):
    """What a figure was computed with: the query, and of how many records."""

    dsl: dict[str, Any]
    rows: int


class Sentences(Value):
    """Which sentences of a chunk, counted from 1, an item's content is. Rows of tables, entries of
    lists and lines of code count as sentences."""

    first: int
    last: int
    of: int


class Extent(Value):
    """Where the content of an item stands: characters `start` to `end` of its document's text,
    counted from 0. `sentences` is there when the content is a part of a chunk."""

    start: int
    end: int
    sentences: Sentences | None = None


class Item(Value):
    """One thing found. Never changed after it was handed over.

    `key` says what the source *is* (canonical URL; collection, document and passage; model and
    primary key): the citation id derives from it and duplicates share it. A source may leave it
    empty: `host.citations.ids.key_of` derives one. It does not go over the wire.
    """

    citation_id: str = Field(default="", description="The marker as the model writes it")
    type: SearchType
    title: str = ""
    content: str = Field(default="", description="The passage, snippet or record, as text")
    url: str = ""
    score: float = Field(default=0.0, ge=0, le=1, description="The source's own relevance, 0-1")
    weight: float = Field(default=1.0, description="That of where it came from: user, hook or auto")
    document_id: str = Field(default="", description="kb: the document")
    collection: str = Field(default="", description="kb: the collection")
    extent: Extent | None = Field(
        default=None, description="kb: where the content stands in the document"
    )
    model: str = Field(default="", description="db: the model")
    record_id: Any = Field(default=None, description="db: the primary key")
    data: dict[str, Any] | None = Field(
        default=None, description="db: the record or the figures; kb: the document's fields"
    )
    query: ComputedBy | None = Field(
        default=None, description="db: of figures (a count, a sum): what they were computed with"
    )
    published: str = Field(
        default="", description="web: when the page was published, YYYY-MM-DD; empty: not known"
    )
    status: Literal["listed", "fetched"] | None = Field(
        default=None,
        description=(
            "web: `listed` with a search engine's snippet, or `fetched`: `content` is a passage of"
            " the page"
        ),
    )
    key: str = Field(default="", exclude=True, repr=False)


class GraphNode(Value):
    """An entity of a collection's graph, related to the query."""

    id: str
    type: str
    name: str
    description: str = ""
    relation: str = ""
    score: float = 0.0
    metadata: dict[str, Any] = {}


class FacetCount(Value):
    """How many documents have a value."""

    value: str | int | float | bool
    count: int


class SearchResult(Value):
    """What one search answered. A failed search is a result too: `error` says what happened,
    `items` is empty."""

    type: SearchType
    query: str
    source: Source = "hook"
    items: tuple[Item, ...] = ()
    total: int = 0
    duration_ms: int = 0
    error: str | None = None
    provider: str = Field(default="", description="web: who was asked")
    facets: dict[str, tuple[FacetCount, ...]] | None = Field(
        default=None, description="kb: counts by field, the most frequent first"
    )
    graph_nodes: tuple[GraphNode, ...] | None = None
    dsl: dict[str, Any] | None = None
