"""Requests to assistants and MCP tools that do a step in place of the built-in, and their answers.

The models of the answers accept the dialects of published packages and turn them into one shape.
`core.types.uses` joins them to steps; `docs/delegation.md` is generated from both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictBool, model_validator

from groundhook.core.types.base import Few, Value
from groundhook.core.types.search import SearchType, TimeRange

DelegateRequest = TypeVar("DelegateRequest", bound=BaseModel)
DelegateAnswer = TypeVar("DelegateAnswer", bound=BaseModel)


class DelegateReply(BaseModel):
    """An answer from outside. Unknown keys are ignored, since language models add keys of their
    own."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        defer_build=True,
        str_strip_whitespace=True,
    )


# ------------------------------------------------------------------------------------------ rewrite


class Outline(Value):
    """What a collection is about, as far as the asking person may read it."""

    name: str = Field(description="The name of the collection")
    description: str = Field(default="", description="Its description")
    headings: tuple[str, ...] = Field(
        default=(), description="Titles of its documents, and headings of its passages"
    )


class RewriteAsk(Value):
    """Rewrite the last question of a conversation for a search: into a self-contained one, or, with
    `collections`, into search words in the words of the texts."""

    query: str = Field(description="The last question, as the user wrote it")
    earlier: tuple[str, ...] = Field(
        default=(), description="The questions before it, the oldest first; none for search words"
    )
    answer: str = Field(default="", description="The beginning of the last answer")
    collections: tuple[Outline, ...] = Field(
        default=(), description="What is searched, for search words; else none"
    )


class RewriteAnswer(DelegateReply):
    """the question as it is searched."""

    query: str = Field(
        min_length=1,
        max_length=1000,
        validation_alias=AliasChoices("query", "question", "rewritten", "text"),
        description="The question; the same one where it is self-contained; or the search words",
    )


# -------------------------------------------------------------------------------------------- title


class TitleAsk(Value):
    """Write the title of a conversation that begins with a question."""

    question: str = Field(description="The first question")


class TitleAnswer(DelegateReply):
    """the title as lists of conversations show it."""

    title: str = Field(
        min_length=1,
        max_length=1000,
        validation_alias=AliasChoices("title", "name", "text"),
        description="A few words in the question's language; cut at 60 characters",
    )


# ------------------------------------------------------------------------------------------ keyword


class KeywordAsk(Value):
    """Extract the keywords of a web search from a question."""

    @model_validator(mode="before")
    @classmethod
    def _both_names(cls, raw: Any) -> Any:
        return {"content": raw.get("query", ""), **raw} if isinstance(raw, Mapping) else raw

    query: str = Field(description="The question, as the user or a hook wrote it")
    content: str = Field(
        default="", description="The same, for assistants and tools that read it by this name"
    )
    max_keywords: int = Field(default=10, description="Maximum keywords that are used")
    language: str = Field(default="auto", description="Language of the question; `auto`: not known")


class Keyword(DelegateReply):
    """A keyword and its weight."""

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
        description="Its weight",
    )

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, raw: Any) -> Any:
        return {"k": raw} if isinstance(raw, str) else raw


class KeywordAnswer(DelegateReply):
    """`{"keywords": [{"k", "w"}]}`; also with plain strings in the list, or the list alone."""

    keywords: Few[tuple[Keyword, ...]] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"keywords": raw} if isinstance(raw, list) else raw


# -------------------------------------------------------------------------------------------- query


class QueryAsk(Value):
    """Translate a question into a query of database models."""

    query: str = Field(description="The question")
    models: tuple[dict[str, Any], ...] = Field(
        description="Their schemas: {model, name, description, fields: [{name, kind, …}]}"
    )
    wheres: tuple[dict[str, Any], ...] = Field(
        default=(), description="Conditions that are already set: {field, op, value}"
    )
    orders: tuple[dict[str, Any], ...] = Field(
        default=(), description="Orders that take precedence: {field, order}"
    )
    limit: int = Field(description="Maximum records that are returned")
    now: str = Field(description="The current time, ISO 8601, for words such as `yesterday`")
    language: str = Field(default="en", description="Language of the question")


class QueryAnswer(DelegateReply):
    """`{"dsl": {…}, "explain", "warnings"}`; also the query alone, and a list of queries, one for
    each model."""

    dsl: dict[str, Any] | Few[list[dict[str, Any]]] = Field(
        validation_alias=AliasChoices("dsl", "queries", "query_dsl", "query"),
        description=(
            "{model, select, wheres: [{field, op, value}], groups, aggregates, havings, orders:"
            " [{field, order}], limit, ties, offset, distinct}"
        ),
    )
    explain: str = Field(default="", description="Interpretation of the question, for people")
    warnings: Few[tuple[str, ...]] = Field(
        default=(), description="Parts of the question without a place in the query"
    )

    @property
    def queries(self) -> list[dict[str, Any]]:
        """The queries as a list, also for an answer with one."""
        return [self.dsl] if isinstance(self.dsl, dict) else self.dsl

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        if isinstance(raw, list):
            return {"dsl": raw}
        if (
            isinstance(raw, Mapping)
            and not raw.keys() & {"dsl", "queries", "query_dsl", "query"}
            and raw.keys() & {"model", "from", "select", "wheres", "groups", "orders"}
        ):
            return {"dsl": dict(raw)}
        return raw


# ------------------------------------------------------------------------------------------- rerank


class RerankEntry(Value):
    """An item to rerank."""

    citation_id: str = Field(description="Id of the item for the answer")
    type: SearchType
    title: str = ""
    content: str = Field(default="", description="The passage, cut where it is very long")
    url: str = ""
    score: float = Field(description="Its relevance so far, 0-1")
    weight: float = Field(default=1.0, description="Weight of its origin")


class RerankAsk(Value):
    """Order items by how well they answer a question."""

    query: str = Field(description="The question")
    items: tuple[RerankEntry, ...]
    top_n: int = Field(description="Number of items that are used")


class RankedEntry(DelegateReply):
    """An item in the answer of a reranker."""

    citation_id: str = Field(
        default="",
        validation_alias=AliasChoices("citation_id", "id"),
        description="Id of an item in the request",
    )
    index: int | None = Field(
        default=None, description="Instead of `citation_id`: the position in `items`, from 0"
    )
    score: float | None = Field(
        default=None,
        allow_inf_nan=False,
        validation_alias=AliasChoices("score", "relevance_score", "relevance"),
        description="Relevance, 0-1; none: the order of the list",
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
            raise ValueError("needs the citation_id of an item")
        return self


class RerankAnswer(DelegateReply):
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
    """Search the web."""

    query: str = Field(description="Search words, after keyword extraction")
    limit: int = Field(description="Maximum results that are used")
    sites: tuple[str, ...] = Field(default=(), description="Only results from these sites")
    exclude_sites: tuple[str, ...] = Field(default=(), description="No results from these sites")
    time_range: TimeRange | None = Field(
        default=None, description="Only results of the last day, week, month or year"
    )
    language: str = Field(default="", description="Language of the results; empty: any")


class WebPage(DelegateReply):
    """A result of a web search."""

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
        description="Relevance, 0-1; none: the order of the list",
    )
    published: str = Field(
        default="",
        validation_alias=AliasChoices("published", "published_date", "publishedDate", "date"),
    )


class WebSearchAnswer(DelegateReply):
    """`{"results": [{"url", "title", "content", "score"}]}`, or the list alone. Best first; empty:
    no results."""

    results: Few[tuple[WebPage, ...]] = Field(
        validation_alias=AliasChoices("results", "items", "organic", "data")
    )

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"results": raw} if isinstance(raw, list) else raw


# ------------------------------------------------------------------------------------------- verify


class VerifySentence(Value):
    """A sentence of an answer."""

    id: str = Field(description="Made for this request alone: no source can name it")
    text: str = Field(description="The sentence, without its markers")
    before: str = Field(default="", description="The sentence before it, for what it refers to")


class VerifySource(Value):
    """A source that all sentences of the request cite."""

    title: str = ""
    text: str


class VerifyAsk(Value):
    """Say of each sentence of an answer whether the sources that it cites support it."""

    question: str = Field(description="The question that the answer is for")
    sentences: tuple[VerifySentence, ...]
    sources: tuple[VerifySource, ...]


class SentenceJudgement(DelegateReply):
    """What the verifier says of a sentence."""

    id: str = Field(max_length=40, description="Of a sentence in the request; others do not count")
    supported: StrictBool = Field(
        description="Whether the sources say all of it; `true` needs a `quote`"
    )
    quote: str = Field(
        default="",
        max_length=4000,
        description="What supports it, in the words of a source: it is looked for there",
    )


class VerifyAnswer(DelegateReply):
    """`{"verdicts": [{"id", "supported", "quote"}]}`. Of two verdicts on one sentence the negative
    one counts."""

    verdicts: Few[tuple[SentenceJudgement, ...]]


# -------------------------------------------------------------------------------------------- fetch


class FetchAsk(Value):
    """Read a page of the web."""

    url: str = Field(description="Address of the page, a public one")
    query: str = Field(
        default="", description="Words that the page should answer to; empty: the whole page"
    )
    max_length: int = Field(description="Maximum characters that are used")


class FetchAnswer(DelegateReply):
    """`{"title", "content", "published"}`, or the text of the page alone."""

    content: str = Field(
        min_length=1,
        validation_alias=AliasChoices("content", "text", "markdown", "body"),
        description="The text of the page, plain or Markdown; the host picks what answers",
    )
    title: str = Field(default="", description="Its title")
    published: str = Field(
        default="",
        validation_alias=AliasChoices("published", "published_date", "publishedDate", "date"),
        description="Its date",
    )

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"content": raw} if isinstance(raw, str) else raw


# ------------------------------------------------------------------------------------------- vision


class VisionAsk(Value):
    """Describe a picture for a model that does not see it. The text is kept for the whole
    conversation, so no question is asked about the picture."""

    prompt: str = Field(description="The task in words, the same for every picture")
    name: str = Field(default="", description="Name of the file, as the user has it")
    media_type: str = Field(description="Such as `image/png`")
    image: str = Field(
        description=(
            "The picture as a data URL. A model and an assistant get it as a part `image_url` of"
            " the message, beside the other keys"
        )
    )
    max_length: int = Field(description="Maximum characters that are used")


class VisionAnswer(DelegateReply):
    """`{"text": "…"}`, or the text alone."""

    text: str = Field(
        min_length=1,
        validation_alias=AliasChoices("text", "description", "content", "caption"),
        description="What the picture shows, and all text in it",
    )

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"text": raw} if isinstance(raw, str) else raw


# ----------------------------------------------------------------------------------------- entities


class EntityAsk(Value):
    """Extract the entities of a passage and their relations."""

    text: str = Field(description="The passage")
    types: tuple[str, ...] = Field(
        default=(), description="Types of entities to extract; none: any"
    )
    language: str = Field(default="auto", description="Language of the passage")


class NamedEntity(DelegateReply):
    """An entity in a passage."""

    name: str = Field(min_length=1, max_length=200)
    type: str = Field(default="", max_length=80)
    description: str = Field(default="", max_length=2000)

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, raw: Any) -> Any:
        return {"name": raw} if isinstance(raw, str) else raw


class NamedRelation(DelegateReply):
    """A relation between two entities, by their names."""

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


class EntityAnswer(DelegateReply):
    """`{"entities": [{"name", "type", "description"}], "relations": [{"source", "target",
    "relation"}]}`; names of relations are names of entities."""

    entities: Few[tuple[NamedEntity, ...]] = Field(
        validation_alias=AliasChoices("entities", "nodes")
    )
    relations: Few[tuple[NamedRelation, ...]] = Field(
        default=(), validation_alias=AliasChoices("relations", "edges", "relationships")
    )

    @model_validator(mode="before")
    @classmethod
    def _dialects(cls, raw: Any) -> Any:
        return {"entities": raw} if isinstance(raw, list) else raw
