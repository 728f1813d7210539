"""Reads sections from JSON Lines files for `groundhook tools sync`.

    {"id": "bio-1", "title": "…", "bookTitle": "…", "summary": "…", "text": "…", "url": "https://…"}

`collection` names one of the toolkit's collections (default: the first), `institution` the tenant
of a section in a collection that has one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from groundhook.core.errors import SourceMalformed, suggestion
from groundhook.core.sync_source import ListedDocuments
from groundhook.core.types.collection_queries import CollectionDocument
from groundhook.toolkits.jsonl import lines_of
from groundhook.toolkits.learning.settings import LearningSettings


class Line(BaseModel):
    """One section in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    id: str = Field(min_length=1)
    collection: str = ""
    title: str = Field(min_length=1)
    book_title: str = Field(default="", alias="bookTitle")
    summary: str = ""
    text: str = Field(min_length=1)
    url: str = ""
    institution: str = ""


def section_files(settings: LearningSettings, path: Path, shown: str) -> ListedDocuments:
    """Return the sections of a file, or of all `*.jsonl` files in a folder, as a source. Reading it
    raises ConfigError for a path that does not exist, SourceMalformed for a line that is wrong."""
    return ListedDocuments(
        f"the file {shown!r}",
        "sections",
        str(path),
        lambda: _documents(settings, path, shown),
        settings.sync,
    )


def _documents(
    settings: LearningSettings, path: Path, shown: str
) -> Iterator[tuple[str, CollectionDocument]]:
    for line, place in lines_of(path, shown, Line):
        collection = line.collection or settings.collections[0]
        if collection not in settings.collections:
            raise SourceMalformed(
                f"there is no collection {collection!r}",
                place=place,
                hint=suggestion(collection, sorted(settings.collections)),
            )
        fields = {
            settings.fields.book_title: line.book_title,
            settings.fields.summary: line.summary,
        }
        yield (
            collection,
            CollectionDocument(
                id=line.id,
                title=line.title,
                text=line.text,
                url=line.url,
                fields={name: value for name, value in fields.items() if value},
                tenant=line.institution,
            ),
        )
