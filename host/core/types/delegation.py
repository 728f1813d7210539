"""What an assistant or an MCP tool is asked that does a step in the place of the built-in, and what
it answers.

One `Use` for each step. The models of the answers take the dialects that published packages speak
and make one shape of them; `docs/delegation.md` is generated from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from groundhook.host.core.types.base import Few, Value
from groundhook.host.core.types.search import SearchType

Asked = TypeVar("Asked", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel)
TimeRange = Literal["day", "week", "month", "year"]


class Reply(BaseModel):
    """An answer from outside: keys that nothing reads are left alone, since models like to say more
    than they were asked."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, defer_build=True)


# ------------------------------------------------------------------------------------------ keyword


class KeywordAsk(Value):
    """Which words to search the web for."""

    query: str = Field(description="The question, as the user or a hook wrote it")
    max_keywords: int = Field(default=10, description="Most keywords that are used")
    language: str = Field(default="auto", description="Of the question; `auto`: not known")


class Keyword(Reply):
    k: str = Field(
        min_length=1,
        max_length=200,
        validation_alias=AliasChoices("k", "keyword", "text", "word"),
        description="A word or a phrase",
    )
    w: float = Field(
        default=1.0,
        ge=0,
        allow_inf_nan=False,
        validation_alias=AliasChoices("w", "weight", "score"),
        description="How much it counts",
    )

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, raw: Any) -> Any:
        return {"k": raw} if isinstance(raw, str) else raw


class KeywordAnswer(Reply):
    """`{"keywords": [{"k", "w"}]}`; also with plain strings in the list, or the list alone."""

    keywords: Few[tuple[Keyword, ...]] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"keywords": raw} if isinstance(raw, list) else raw


# -------------------------------------------------------------------------------------------- query


class QueryAsk(Value):
    """Which records of these models a question asks for."""

    query: str = Field(description="The question")
    models: tuple[dict[str, Any], ...] = Field(
        description="Their schemas: {model, name, description, fields: [{name, kind, …}]}"
    )
    wheres: tuple[dict[str, Any], ...] = Field(
        default=(), description="Conditions that hold already: {field, op, value}"
    )
    orders: tuple[dict[str, Any], ...] = Field(
        default=(), description="Orders that come first: {field, order}"
    )
    limit: int = Field(description="Most records that are returned")
    now: str = Field(description="The time of day, ISO 8601, for words such as `yesterday`")
    language: str = Field(default="en", description="Of the question")


_DSL = {"dsl", "queries", "query_dsl"}


class QueryAnswer(Reply):
    """`{"dsl": {…}, "explain", "warnings"}`; also the query alone, and a list of queries, one for
    each model."""

    dsl: dict[str, Any] | Few[list[dict[str, Any]]] = Field(
        validation_alias=AliasChoices("dsl", "queries", "query_dsl"),
        description=(
            "{model, select, wheres: [{field, op, value}], groups, aggregates, orders: [{field,"
            " order}], limit}"
        ),
    )
    explain: str = Field(default="", description="How the question was read, for people")
    warnings: Few[tuple[str, ...]] = Field(
        default=(), description="What of the question could not be placed"
    )

    @property
    def queries(self) -> list[dict[str, Any]]:
        return [self.dsl] if isinstance(self.dsl, dict) else self.dsl

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        if isinstance(raw, list):
            return {"dsl": raw}
        if (
            isinstance(raw, Mapping)
            and not raw.keys() & {"dsl", "queries", "query_dsl"}
            and raw.keys() & {"model", "wheres", "orders"}
        ):
            return {"dsl": dict(raw)}
        return raw


# ------------------------------------------------------------------------------------------- rerank


class RerankEntry(Value):
    """An item as a reranker sees it."""

    citation_id: str = Field(description="Names the item in the answer")
    type: SearchType
    title: str = ""
    content: str = Field(default="", description="The passage, cut where it is very long")
    url: str = ""
    score: float = Field(description="Its relevance so far, 0-1")
    weight: float = Field(default=1.0, description="That of where it came from")


class RerankAsk(Value):
    """In which order these items answer the question."""

    query: str = Field(description="The question")
    items: tuple[RerankEntry, ...]
    top_n: int = Field(description="How many will be used")


class RankedEntry(Reply):
    citation_id: str = Field(
        default="",
        validation_alias=AliasChoices("citation_id", "id"),
        description="Of an item that was sent",
    )
    index: int | None = Field(
        default=None, description="Instead of `citation_id`: its position in `items`, from 0"
    )
    score: float | None = Field(
        default=None,
        allow_inf_nan=False,
        validation_alias=AliasChoices("score", "relevance_score", "relevance"),
        description="0-1; none: the order counts",
    )

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, raw: Any) -> Any:
        if isinstance(raw, str):
            return {"citation_id": raw}
        return {"index": raw} if isinstance(raw, int) and not isinstance(raw, bool) else raw

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if not self.citation_id and self.index is None:
            raise ValueError("must name an item by its citation_id")
        return self


class RerankAnswer(Reply):
    """`{"order": [citation_id, …]}`, `{"items": [{"citation_id", "score"}]}`, or such a list alone.
    Best first."""

    items: Few[tuple[RankedEntry, ...]] = Field(
        validation_alias=AliasChoices("items", "order", "results", "data"), min_length=1
    )

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"items": raw} if isinstance(raw, list) else raw


# ---------------------------------------------------------------------------------------------- web


class WebAsk(Value):
    """Pages of the web."""

    query: str = Field(description="What to search for, after keyword extraction")
    limit: int = Field(description="Most results that are used")
    sites: tuple[str, ...] = Field(default=(), description="Only results from these sites")
    exclude_sites: tuple[str, ...] = Field(default=(), description="No results from these")
    time_range: TimeRange | None = Field(
        default=None, description="Only results of the last day, week, month or year"
    )
    language: str = Field(default="", description="Of the results; empty: any")


class WebPage(Reply):
    url: str = Field(min_length=1, validation_alias=AliasChoices("url", "link", "href"))
    title: str = ""
    content: str = Field(
        default="", validation_alias=AliasChoices("content", "snippet", "text", "description")
    )
    score: float | None = Field(
        default=None,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Relevance, 0-1; none: the order counts",
    )
    published: str = Field(
        default="",
        validation_alias=AliasChoices("published", "published_date", "publishedDate", "date"),
    )


class WebAnswer(Reply):
    """`{"results": [{"url", "title", "content", "score"}]}`, or the list alone. Best first; empty:
    nothing was found."""

    results: Few[tuple[WebPage, ...]] = Field(
        validation_alias=AliasChoices("results", "items", "organic", "data")
    )

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"results": raw} if isinstance(raw, list) else raw


# ----------------------------------------------------------------------------------------- entities


class EntityAsk(Value):
    """Who and what a passage speaks of, and how they are related."""

    text: str = Field(description="The passage")
    types: tuple[str, ...] = Field(
        default=(), description="Types of entities that are wanted; none: any"
    )
    language: str = Field(default="auto", description="Of the passage")


class Entity(Reply):
    name: str = Field(min_length=1, max_length=200)
    type: str = Field(default="", max_length=80)
    description: str = Field(default="", max_length=2000)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, raw: Any) -> Any:
        return {"name": raw} if isinstance(raw, str) else raw


class Relation(Reply):
    source: str = Field(
        min_length=1,
        max_length=200,
        validation_alias=AliasChoices("source", "from", "subject", "head"),
    )
    target: str = Field(
        min_length=1,
        max_length=200,
        validation_alias=AliasChoices("target", "to", "object", "tail"),
    )
    relation: str = Field(
        default="", max_length=200, validation_alias=AliasChoices("relation", "type", "predicate")
    )
    description: str = Field(default="", max_length=2000)


class EntityAnswer(Reply):
    """`{"entities": [{"name", "type", "description"}], "relations": [{"source", "target",
    "relation"}]}`; names of relations are names of entities."""

    entities: Few[tuple[Entity, ...]] = Field(validation_alias=AliasChoices("entities", "nodes"))
    relations: Few[tuple[Relation, ...]] = Field(
        default=(), validation_alias=AliasChoices("relations", "edges", "relationships")
    )

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"entities": raw} if isinstance(raw, list) else raw
