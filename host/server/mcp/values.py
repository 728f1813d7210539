"""The tools and answers of the MCP server as values, and the arguments and answers of its own
tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from groundhook.core.types.base import Few
from groundhook.core.types.search import KBOptions

MOST_RESULTS = 10
MOST_IDS = 20  # of one `batch_fetch`
LONGEST_ID = 4000  # characters
RESOURCES = "groundhook://"  # groundhook://kb/<collection>/<document>

ReportProgress = Callable[[float, float | None, str], Awaitable[None]]  # done, total, message


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A tool as an MCP client sees it. The schemas are JSON Schemas of objects."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    output: Mapping[str, Any] | None
    reads_only: bool
    destructive: bool = False
    open_world: bool = False


@dataclass(frozen=True, kw_only=True)
class UserForm:
    """A question to the user, before a call can answer: JSON Schemas of flat values, by name.
    `state` comes back with what is given."""

    message: str
    properties: Mapping[str, Mapping[str, Any]]
    state: str = ""


@dataclass(frozen=True, kw_only=True)
class FormAnswer:
    """What the user has answered to a form; no values: it was declined."""

    values: Mapping[str, Any]
    state: str = ""


@dataclass(frozen=True, kw_only=True)
class McpAnswer:
    """The answer to a call: `text` for a model, and the structured value of a success. `warnings`
    are sentences, `links` the sources of an answer as (address, title)."""

    text: str
    structured: Mapping[str, Any] | None = None
    failed: bool = False
    warnings: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()
    form: UserForm | None = None  # to be shown; then the call is repeated with what is given


class FoundSource(BaseModel):
    id: str
    title: str
    url: str


class FoundPassage(FoundSource):
    text: str
    score: float
    metadata: dict[str, Any]


class FetchedDocument(BaseModel):
    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


class AskArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1, max_length=100_000)
    assistant: str = Field(default="", description="The assistant that answers")


class SearchArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(min_length=1, max_length=10_000)


class FetchArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str = Field(min_length=1, max_length=LONGEST_ID, description="An id that search returned")


class BatchArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ids: Few[list[Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]]] = Field(
        min_length=1, max_length=MOST_IDS, description="Ids that search returned"
    )


class PassageArguments(SearchArguments):
    collections: Few[list[str]] = Field(default=[], max_length=50, description="Default: all")
    filter: dict[str, Any] | None = Field(
        default=None, description='Only documents that fulfil it: {"year": {"gte": 2020}}'
    )
    limit: int = Field(default=MOST_RESULTS, ge=1, le=100)

    @field_validator("filter")
    @classmethod
    def _is_a_filter(cls, filter: dict[str, Any] | None) -> dict[str, Any] | None:
        return KBOptions(filter=filter).filter


class Results(BaseModel):
    results: list[FoundSource]


class Fetched(BaseModel):
    results: list[FetchedDocument]
    missing: list[str] = Field(description="Ids of sources that cannot be read")


class Passages(BaseModel):
    items: list[FoundPassage]
