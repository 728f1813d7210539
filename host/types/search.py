"""Search values: what is asked, what is found, and where an item stands in the pool.

Field names are those of the wire and of JavaScript.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasChoices, Field

from host.types.base import Few, Value

SearchType = Literal["web", "kb", "db"]
Source = Literal["user", "hook", "auto"]
SEARCH_TYPES: tuple[SearchType, ...] = ("web", "kb", "db")


class Where(Value):
    """One condition on a model's field; conditions of a list are ANDed."""

    field: str = Field(validation_alias=AliasChoices("field", "column"))
    op: str = "="
    value: Any = None


class Order(Value):
    """A sort order; descending unless said, as in the query language hooks know."""

    field: str = Field(validation_alias=AliasChoices("field", "column"))
    order: Literal["asc", "desc"] = "desc"


class RerankOptions(Value):
    """How to reorder: `type` picks the reranker, the key of the same name its model, agent or server."""

    type: Literal["score", "model", "agent", "mcp"] | None = None
    model: str | None = None
    agent: str | None = None
    mcp: str | None = None
    top_k: int | None = Field(default=None, ge=1, validation_alias=AliasChoices("top_k", "topK", "top_n", "topN"))


class WebOptions(Value):
    """Options of `ctx.search.Web`."""

    limit: int | None = Field(default=None, ge=1, le=1000, description="Most results to return (default 10)")
    sites: Few[tuple[str, ...]] | None = Field(default=None, description="Only results from these sites")
    time_range: Literal["day", "week", "month", "year"] | None = Field(
        default=None,
        validation_alias=AliasChoices("time_range", "timeRange"),
        description="Only results of the last day, week, month or year",
    )
    rerank: RerankOptions | None = None


class KBOptions(Value):
    """Options of `ctx.search.KB`."""

    limit: int | None = Field(default=None, ge=1, le=1000, description="Most results to return (default 10)")
    collections: Few[tuple[str, ...]] | None = Field(default=None, description="Collections to search (default: the assistant's)")
    threshold: float | None = Field(
        default=None, ge=0, le=1, description="Least similarity, 0-1, the same scale for every embedding model"
    )
    graph: bool | None = Field(default=None, description="Also walk the knowledge graph")
    rerank: RerankOptions | None = None


class DBOptions(Value):
    """Options of `ctx.search.DB`."""

    limit: int | None = Field(default=None, ge=1, le=1000, description="Most records to return")
    models: Few[tuple[str, ...]] | None = Field(default=None, description="Models to query (default: the assistant's)")
    wheres: Few[tuple[Where, ...]] | None = Field(default=None, description="Conditions ANDed with those of the question")
    orders: Few[tuple[Order, ...]] | None = Field(default=None, description="Sort orders")
    select: Few[tuple[str, ...]] | None = Field(default=None, description="Fields to return (default: all)")
    rerank: RerankOptions | None = None


class RecordQuery(Value):
    """Records of one model, by conditions alone."""

    model: str
    record_id: Any = Field(default=None, description="The primary key: that record alone")
    select: tuple[str, ...] = Field(default=(), description="Fields to return (default: all)")
    wheres: Few[tuple[Where, ...]] = Field(default=(), description="Conditions, all of which must hold")
    orders: Few[tuple[Order, ...]] = Field(default=(), description="Sort orders")
    limit: int = Field(default=1000, ge=1, le=1000, description="Most records to return")


class SearchRequest(WebOptions, KBOptions, DBOptions):
    """One search as a caller asks for it; what is None is filled from the layers of configuration."""

    type: SearchType
    query: str = Field(min_length=1)


class Item(Value):
    """One thing found. Never changed after it was handed over.

    `key` says what the source *is* (canonical URL; collection, document and passage; model and primary key): the
    citation id derives from it and duplicates share it. A source may leave it empty: `host.citations.key_of` derives one. It does
    not go over the wire.
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
    model: str = Field(default="", description="db: the model")
    record_id: Any = Field(default=None, description="db: the primary key")
    data: dict[str, Any] | None = Field(default=None, description="db: the record; kb: the document's fields")
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


class SearchResult(Value):
    """What one search answered. A failed search is a result too: `error` says what happened, `items` is empty."""

    type: SearchType
    query: str
    source: Source = "hook"
    items: tuple[Item, ...] = ()
    total: int = 0
    duration_ms: int = 0
    error: str | None = None
    graph_nodes: tuple[GraphNode, ...] | None = None
    dsl: dict[str, Any] | None = None


class Dropped(Value):
    """An item that did not reach the prompt, and why."""

    citation_id: str
    title: str
    reason: str
