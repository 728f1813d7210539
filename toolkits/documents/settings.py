"""The file of a toolkit of the type `documents`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.toolkit_spec import ToolkitSettings

IdentityField = Literal["user_id", "team_id", "tenant_id"]


class DocumentsSource(Value):
    """The summaries API, or a file that is served through the same code."""

    url: str = Field(default="", description="Base address of the API, such as https://api.example")
    file: str = Field(
        default="", description="A JSON Lines file, relative to the assistant's folder"
    )
    headers: dict[str, str] = Field(default={}, description="Of each request; use $ENV for keys")
    timeout_ms: int = Field(default=10_000, ge=1, description="Deadline of one request")

    @model_validator(mode="after")
    def _check_one_source(self) -> DocumentsSource:
        if bool(self.url) == bool(self.file):
            raise ValueError("give either url or file")
        return self


class RankerSettings(Value):
    """The model that ranks the summaries of a page, and how many of them are kept."""

    by: str = Field(
        default="builtin",
        description=(
            "`builtin` (meaning and words), `connector:<id>`, an assistant, or"
            " `mcp:<server>[.<tool>]`. A page that fails is ranked by the built-in"
        ),
    )
    top: int = Field(default=10, ge=1, le=100, description="Documents kept of a page")
    least: float = Field(
        default=0.3,
        ge=0,
        le=1,
        description="The least relevance that is kept; the built-in's has a model's scale",
    )
    preview: int = Field(default=500, ge=50, le=4000, description="Characters of a summary")
    timeout_ms: int = Field(default=12_000, ge=1, description="Deadline of ranking one page")
    most: int = Field(
        default=0,
        ge=0,
        le=20_000,
        description=(
            "Summaries that a model ranks at most; of more, the built-in chooses them. 0: all"
        ),
    )
    prompts: str = Field(
        default="",
        description=(
            "The messages before the summaries, for a language model: `ranker` is the file"
            " `prompts/ranker.yml` of the assistant (none: the built-in ones)"
        ),
    )
    final: Literal["scores", "rerank"] = Field(
        default="scores",
        description="Order of all pages together: by score, or by one more ranking",
    )


class DocumentsIdentity(Value):
    """The parts of the identity that the API gets."""

    member: IdentityField = "user_id"
    partner: IdentityField = "tenant_id"


class DocumentsSettings(ToolkitSettings):
    """A toolkit that ranks summaries of documents by a model."""

    type: Literal["documents"]
    source: DocumentsSource
    ranker: RankerSettings = defaults_of(RankerSettings)
    identity: DocumentsIdentity = defaults_of(DocumentsIdentity)
    collection: str = Field(
        default="collection_id", description="Key of the request's metadata with the collection"
    )
    keep: int = Field(default=20, ge=1, le=200, description="Documents of a result")
    page: int = Field(default=50, ge=1, le=100, description="Summaries of one request")
    concurrency: int = Field(
        default=4, ge=1, le=16, description="Requests, and rankings, at a time"
    )
    most_pages: int = Field(default=200, ge=1, description="Pages that are read at most")
    cache_s: float = Field(
        default=0,
        ge=0,
        le=3600,
        description="Seconds for which pages are kept, each for the identity that it was read for",
    )
