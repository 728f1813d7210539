"""Search values: requests and their options, items, results.

Field names are those of the wire and of JavaScript.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, get_args

from pydantic import AliasChoices, Field, field_validator, model_validator

from groundhook.core.errors import UsageError
from groundhook.core.types.base import FewOf, Value, defaults_of
from groundhook.core.types.filters import parse_filter
from groundhook.core.types.query_language import Aggregate, Group, Order, Wheres

TimeRange = Literal["day", "week", "month", "year"]
SearchType = Literal["web", "kb", "db"]
# What an item can come from: the types that can be searched, and APIs, which a message refers to.
SourceType = Literal[SearchType, "api"]
Origin = Literal["user", "hook", "auto"]
# Where each searches, in words for readers of answers.
PLACES: dict[SourceType, str] = {
    "web": "the web",
    "kb": "the knowledge base",
    "db": "the database",
    "api": "an API",
}
TotalIs = Literal["exact", "at_least"]
Certainty = Literal["sure", "partial", "none"]
MOST_SKIPPED = 1000  # results before a page
SEARCH_TYPES: tuple[SearchType, ...] = get_args(SearchType)


RerankType = Literal["score", "model", "agent", "mcp"]
RERANK_TYPES = get_args(RerankType)
RerankProvider = Literal["cohere", "voyage", "endpoint", "tei", "onnx"]  # of `type: model`


class RerankOptions(Value):
    """The options of a reranking: `type` chooses the reranker, and the key of the same name its
    model, agent or server."""

    type: RerankType | None = None
    model: str | None = None
    agent: str | None = None
    mcp: str | None = None
    top_k: int | None = Field(
        default=None, ge=1, validation_alias=AliasChoices("top_k", "topK", "top_n", "topN")
    )

    @field_validator("type", mode="before")
    @classmethod
    def _is_a_type(cls, type: Any) -> Any:
        if type is None or type in RERANK_TYPES:
            return type
        raise ValueError(
            "should be 'score', 'model', 'agent' or 'mcp' (uses.rerank names a plug-in's reranker)"
        )


def rerank_type(options: Mapping[str, Any]) -> str | None:
    """Return the type of reranker for the options that are set: `{agent: "x"}` implies `agent`;
    None without a type."""
    named = [key for key in ("model", "agent", "mcp") if options.get(key)]
    return options.get("type") or (named[0] if len(named) == 1 else None)


class WebOptions(Value):
    """Options of `ctx.search.Web`."""

    limit: int | None = Field(
        default=None, ge=1, le=1000, description="Maximum results to return (default 10)"
    )
    sites: FewOf[str] | None = Field(default=None, description="Only results from these sites")
    exclude_sites: FewOf[str] | None = Field(
        default=None,
        validation_alias=AliasChoices("exclude_sites", "excludeSites"),
        description="No results from these sites (default: search.web.exclude_sites)",
    )
    time_range: TimeRange | None = Field(
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
        description="First results whose pages are read (default: search.web.fetch)",
    )
    rerank: RerankOptions | None = None


class KBOptions(Value):
    """Options of `ctx.search.KB`."""

    limit: int | None = Field(
        default=None, ge=1, le=1000, description="Maximum results to return (default 10)"
    )
    offset: int | None = Field(
        default=None,
        ge=0,
        le=MOST_SKIPPED,
        description="Results to skip: pages of the same limit neither overlap nor leave gaps",
    )
    collections: FewOf[str] | None = Field(
        default=None, description="Collections to search (default: the assistant's)"
    )
    threshold: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="Minimum similarity, 0-1, the same scale for every embedding model",
    )
    filter: dict[str, Any] | None = Field(
        default=None,
        description=('Only documents that fulfil it: {"year": {"gte": 2020}, "tag": ["a", "b"]}'),
    )
    facets: FewOf[str] | None = Field(
        default=None,
        description="Count the documents that fulfil the filter, by values of these fields",
    )
    groups: int | None = Field(
        default=None,
        ge=0,
        le=1000,
        description=("Maximum passages of one document; true: its best one; false: no limit"),
    )
    neighbours: int | None = Field(
        default=None,
        ge=0,
        le=20,
        validation_alias=AliasChoices("neighbours", "neighbors"),
        description="Passages before and after each hit that are added to its content",
    )
    passage_tokens: int | None = Field(
        default=None,
        ge=0,
        le=100_000,
        validation_alias=AliasChoices("passage_tokens", "passageTokens"),
        description="Tokens of the content: the part of a longer chunk that answers; 0: all",
    )
    diversity: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How far passages that repeat others are ranked down, 0-1; 0: not at all",
    )
    document: str | None = Field(
        default=None,
        description="Id of a document: return its passages in reading order, instead of a search",
    )
    graph: bool | None = Field(default=None, description="Also search the knowledge graph")
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

    limit: int | None = Field(default=None, ge=1, le=1000, description="Maximum records to return")
    models: FewOf[str] | None = Field(
        default=None, description="Models to query (default: the assistant's)"
    )
    wheres: Wheres | None = Field(
        default=None, description="Conditions ANDed with those of the question"
    )
    orders: FewOf[Order] | None = Field(default=None, description="Sort orders")
    select: FewOf[str] | None = Field(default=None, description="Fields to return (default: all)")
    distinct: bool | None = Field(
        default=None, description="Different combinations of the fields in `select`"
    )
    group_by: FewOf[Group] | None = Field(
        default=None,
        validation_alias=AliasChoices("group_by", "groupBy"),
        description=(
            'Fields to group by, or parts of dates: {"field": "paid_at", "by": "month"}; each group'
            " is one item"
        ),
    )
    aggregates: FewOf[Aggregate] | None = Field(
        default=None, description="Figures instead of records, one item for each group"
    )
    havings: Wheres | None = Field(
        default=None, description="Conditions on figures of each group, by their names"
    )
    ties: bool | None = Field(
        default=None,
        description="Also return results beyond the limit that equal its last one in `orders`",
    )
    offset: int | None = Field(
        default=None, ge=0, le=MOST_SKIPPED, description="Results to skip, in the same order"
    )
    rerank: RerankOptions | None = None


class RecordQuery(Value):
    """A query of the records of one model, by conditions alone."""

    model: str
    record_id: Any = Field(default=None, description="The primary key: that record alone")
    select: FewOf[str] = Field(default=(), description="Fields to return (default: all)")
    wheres: Wheres = Field(default=(), description="Conditions, all of which must hold")
    orders: FewOf[Order] = Field(default=(), description="Sort orders")
    limit: int = Field(default=1000, ge=1, le=1000, description="Maximum records to return")


class SearchRequest(WebOptions, KBOptions, DBOptions):
    """One search. Fields that are None take their values from the layers of configuration."""

    type: SearchType = Field(description="`web`, `kb` or `db`")
    query: str = Field(min_length=1, description="The question, or words")

    @model_validator(mode="after")
    def _check_offset(self) -> Self:
        if self.offset is not None and self.type == "web":
            raise ValueError("offset: a web search has no pages; raise 'limit' instead")
        return self


class ComputedBy(Value):
    """The query that computed a figure, and the number of records."""

    dsl: dict[str, Any]
    rows: int


class Sentences(Value):
    """The sentences of a chunk that are an item's content, counted from 1. Rows of tables, entries
    of lists and lines of code count as sentences."""

    first: int
    last: int
    of: int


class Extent(Value):
    """The place of an item's content in its document: characters `start` to `end` of the text,
    counted from 0. `sentences` is set if the content is a part of a chunk."""

    start: int
    end: int
    sentences: Sentences | None = None


class OtherReading(Value):
    """Another way to read a question, which fits as well."""

    read_as: str = Field(description="The query as a sentence, in the language of the question")
    total: int | None = Field(default=None, description="Records it finds; null: not counted")


class SearchAccount(Value):
    """What a search says of itself: how the question was read, and how far the result answers
    it."""

    certainty: Certainty | None = Field(
        default=None,
        description=(
            "`sure`: understood whole, and the result answers it; `partial`: something was left"
            " over, two readings fit, or the result is only near; `none`: nothing answers it; null:"
            " the source does not judge"
        ),
    )
    read_as: str = Field(
        default="",
        description="db: the query as a sentence of labels; others: the query that was searched",
    )
    unread: tuple[str, ...] = Field(
        default=(), description="Words of the question that became nothing, as typed"
    )
    readings: tuple[OtherReading, ...] = Field(
        default=(), max_length=3, description="Other readings that fit as well"
    )
    read_by: str = Field(
        default="",
        description=(
            "`builtin`, `connector:<id>`, the id of an assistant, or `mcp:<server>`; empty: the"
            " question was not read"
        ),
    )
    explanation: str = Field(
        default="",
        description=(
            "For readers, in the language of the question: what was not understood, what is near,"
            " or why nothing was searched"
        ),
    )

    @property
    def account(self) -> SearchAccount:
        """The fields of the account alone, of a value that has others too."""
        return SearchAccount(**{name: getattr(self, name) for name in SearchAccount.model_fields})


class Table(Value):
    """The rows of one query on a database, which are one source.

    `id` is the query as JSON; `columns` are names for readers, in the order asked, in `language`.
    `total` counts all rows, also those that were not returned. With `whole`, the question named the
    number of rows ("top 30"). `account` is that of the search."""

    id: str
    name: str
    columns: tuple[str, ...] = ()
    language: str = ""
    total: int = 0
    total_is: TotalIs = "exact"
    whole: bool = False
    account: SearchAccount = defaults_of(SearchAccount)


class LongTable(Value):
    """A table of a search of which answers show a part."""

    id: str = Field(description="Of its query, and without meaning for clients of the server")
    name: str = Field(description="How the question was read")
    rows: int = Field(description="Rows that the search returned")
    total: int = Field(description="All rows")
    total_is: TotalIs = "exact"
    language: str = Field(default="", description="Language of the names of its columns")
    csv: str = Field(default="", description="HTTP: where this reader gets all rows as CSV")


class Row(Value):
    """One row of a table: the text of each cell, as readers see it."""

    table: Table
    cells: tuple[str, ...] = ()


class OtherPlace(Value):
    """Another document that has the very same passage."""

    title: str = ""
    url: str = ""
    document_id: str = ""
    collection: str = ""


class Item(Value):
    """One result of a search, immutable.

    `key` identifies the source (canonical URL; collection, document and passage; model and primary
    key): the citation id is derived from it, and duplicates share it. It may be empty:
    `host.search.citations.ids.key_of` derives one. `row` is the place of a record or a figure in
    the table of its query. Neither is sent to clients.
    """

    citation_id: str = Field(default="", description="Marker of the item in answers")
    type: SourceType
    title: str = ""
    content: str = Field(default="", description="The passage, snippet or record, as text")
    url: str = ""
    score: float = Field(default=0.0, ge=0, le=1, description="Relevance by the source, 0-1")
    weight: float = Field(default=1.0, description="Weight of its origin: user, hook or auto")
    document_id: str = Field(default="", description="kb: the document; api: the entry's id")
    collection: str = Field(default="", description="kb: the collection; api: the API")
    extent: Extent | None = Field(
        default=None, description="kb: place of the content in the document"
    )
    model: str = Field(default="", description="db: the model")
    record_id: Any = Field(default=None, description="db: the primary key")
    data: dict[str, Any] | None = Field(
        default=None, description="db: the record or the figures; kb: fields of the document"
    )
    query: ComputedBy | None = Field(
        default=None, description="db: the query of figures (a count, a sum)"
    )
    published: str = Field(
        default="", description="web: date of publication, YYYY-MM-DD; empty: not known"
    )
    status: Literal["listed", "fetched"] | None = Field(
        default=None,
        description=(
            "web: `listed`: `content` is the snippet of the search engine; `fetched`: a passage of"
            " the page"
        ),
    )
    also: tuple[OtherPlace, ...] = Field(
        default=(), description="kb: other documents that have the very same passage"
    )
    key: str = Field(default="", exclude=True, repr=False)
    row: Row | None = Field(default=None, exclude=True, repr=False)


class GraphNode(Value):
    """An entity of a collection's graph that is related to the query."""

    id: str
    type: str
    name: str
    description: str = ""
    relation: str = ""
    score: float = 0.0
    metadata: dict[str, Any] = {}


class FacetCount(Value):
    """The number of documents with a value."""

    value: str | int | float | bool
    count: int


class SearchResult(SearchAccount):
    """The result of one search. Of a failed search `error` is the reason and `items` is empty."""

    type: SourceType
    query: str
    source: Origin = "hook"
    items: tuple[Item, ...] = ()
    total: int = Field(default=0, description="Matches, not only those that were returned")
    total_is: TotalIs = Field(
        default="exact", description="`at_least`: there are more than were counted (kb: 1,000)"
    )
    duration_ms: int = 0
    error: str | None = None
    provider: str = Field(default="", description="web: the provider that answered")
    facets: dict[str, tuple[FacetCount, ...]] | None = Field(
        default=None, description="kb: counts by field, the most frequent first"
    )
    graph_nodes: tuple[GraphNode, ...] | None = None
    dsl: dict[str, Any] | None = None
