"""The file of a toolkit of the type `memory`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from groundhook.core.types.base import Value, defaults_of
from groundhook.core.types.collection_queries import Owner
from groundhook.core.types.fields import FieldType
from groundhook.core.types.sync import SyncSettings
from groundhook.core.types.toolkit_spec import ToolkitSettings

# Fields that a collection of memories must declare. `tags`, `made` and `turn` are stored if it
# does.
FIELDS: Mapping[str, FieldType] = {
    "preview": "text",
    "written": "datetime",
    "supersedes": "keyword",
    "links": "keyword",
}


class MemorySource(Value):
    """The source from which `groundhook tools sync` reads memories."""

    file: str = Field(
        min_length=1,
        description="A JSON Lines file, or a folder of them, relative to the assistant's folder",
    )


class SplitSettings(Value):
    """The splitting of a question with several facts into a question for each."""

    by: str = Field(
        default="",
        description=(
            "`connector:<id>`, an assistant, or `mcp:<server>[.<tool>]`; empty: off. If it fails,"
            " the question is searched as a whole"
        ),
    )
    most: int = Field(default=4, ge=2, le=8, description="Most questions beside the whole one")
    timeout_ms: int = Field(default=3000, ge=1, description="Deadline of the splitting")


class MemoryToolkitSettings(ToolkitSettings):
    """A toolkit of two-stage memory: previews first, full text by id."""

    type: Literal["memory"]
    collections: dict[str, str] = Field(
        min_length=1,
        description="The collection of each shelf, by the name that tools and memories use for it",
    )
    owner: Owner = Field(
        default="user",
        description=(
            "Whose memories a request sees: `user`, `team`, `tenant`, or `app` for those of"
            " everybody; all but `app` need a `tenant_field` in the collections"
        ),
    )
    source: MemorySource | None = None
    sync: SyncSettings = defaults_of(SyncSettings)
    limit: int = Field(default=20, ge=1, le=1000, description="Previews of a search by default")
    threshold: float = Field(
        default=0.0, ge=0, le=1, description="The least score of a preview; 0: all are shown"
    )
    most_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens of all contents of one `batch_fetch` by default (none: no limit)",
    )
    neighbours: int = Field(
        default=1,
        ge=0,
        le=3,
        description=(
            "Turns before and after each found turn of a conversation that are found with it"
        ),
    )
    split: SplitSettings = defaults_of(SplitSettings)
    links: bool = Field(
        default=True, description="Whether `fetch` can follow links such as [[backend:12]]"
    )
    write: bool = Field(default=False, description="Whether the tool `remember` is offered")
    forget: bool = Field(default=False, description="Whether the tool `forget` is offered")
