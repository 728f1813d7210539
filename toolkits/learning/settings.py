"""The file of a toolkit of the type `learning`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.sync import SyncSettings
from groundhook.core.types.toolkit_spec import ToolkitSettings


class LearningSource(Value):
    """The source from which `groundhook tools sync` reads sections."""

    file: str = Field(
        min_length=1,
        description="A JSON Lines file, or a folder of them, relative to the assistant's folder",
    )


class QueriesSettings(Value):
    """The making of search queries from an intent and a course."""

    by: str = Field(
        default="builtin",
        description=(
            "`builtin` (rules), `connector:<id>`, an assistant, or `mcp:<server>[.<tool>]`. What"
            " fails is replaced by the rules"
        ),
    )
    most: int = Field(
        default=5, ge=1, le=10, description="Queries of one call, the intent included"
    )
    timeout_ms: int = Field(default=3000, ge=1, description="Deadline of the model's queries")
    languages: tuple[str, ...] = Field(
        default=(),
        max_length=5,
        description=(
            "Languages of the sections, such as `en`: the author of the queries translates the"
            " intent into them. The rules do not translate"
        ),
    )


class SectionRerankSettings(Value):
    """A second judgement of the first sections."""

    by: str = Field(
        default="",
        description=(
            "`connector:<id>`, an assistant, or `mcp:<server>[.<tool>]`; empty: off. If it fails,"
            " the order stays"
        ),
    )
    most: int = Field(default=20, ge=2, le=50, description="Sections that are judged")
    timeout_ms: int = Field(default=5000, ge=1, description="Deadline of the judgement")


class FieldNames(Value):
    """The fields of a section that hold what a result shows."""

    book_title: str = Field(default="bookTitle", alias="bookTitle")
    summary: str = "summary"


class LearningSettings(ToolkitSettings):
    """A toolkit that finds sections of books for a course."""

    type: Literal["learning"]
    collections: tuple[str, ...] = Field(
        min_length=1, max_length=10, description="Collections whose documents are sections"
    )
    source: LearningSource | None = None
    sync: SyncSettings = defaults_of(SyncSettings)
    queries: QueriesSettings = defaults_of(QueriesSettings)
    rerank: SectionRerankSettings = defaults_of(SectionRerankSettings)
    fields: FieldNames = defaults_of(FieldNames)
    limit: int = Field(default=10, ge=1, le=50, description="Sections of a result")
    threshold: float = Field(
        default=0.0, ge=0, le=1, description="The least similarity to a query; 0: all are compared"
    )
    most_of_a_book: int = Field(
        default=0, ge=0, description="Most sections of one book; 0: no limit"
    )
    coverage: bool = Field(
        default=True,
        description="Whether the outcomes that no section serves are reported, of the first eight",
    )
