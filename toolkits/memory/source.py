"""Reads memories from JSON Lines files for `groundhook tools sync`.

    {"id": 12, "collection": "backend", "title": "…", "content": "…", "team": "red"}

`preview`, `tags`, `supersedes` and `written` (a date or time, which `as_of` needs) are optional;
which of `tenant`, `team` and `user` a line needs follows from the toolkit's `owner`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from groundhook.core.errors import Place, SourceMalformed, suggestion
from groundhook.core.sync_source import ListedDocuments
from groundhook.core.types.collection_queries import CollectionDocument, partition
from groundhook.core.types.turn import Identity
from groundhook.toolkits.jsonl import lines_of
from groundhook.toolkits.memory import documents
from groundhook.toolkits.memory.settings import MemorySettings
from groundhook.toolkits.memory.values import DocId


class Line(BaseModel):
    """One memory in a file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: DocId
    collection: str = Field(min_length=1)
    title: str = Field(min_length=1)
    content: str = Field(min_length=1)
    preview: str = ""
    tags: list[str] = []
    supersedes: list[DocId] = []
    written: datetime | None = None
    tenant: str = ""
    team: str = ""
    user: str = ""


def memory_files(settings: MemorySettings, path: Path, shown: str) -> ListedDocuments:
    """Return the memories of a file, or of all `*.jsonl` files in a folder, as a source. Reading it
    raises ConfigError for a path that does not exist, SourceMalformed for a line that is wrong."""
    reader = _Reader(settings, path, shown)
    return ListedDocuments(
        f"the file {shown!r}", "memories", str(path), reader.documents, settings.sync
    )


class _Reader:
    def __init__(self, settings: MemorySettings, path: Path, shown: str) -> None:
        self._settings = settings
        self._path = path
        self._shown = shown

    def documents(self) -> Iterator[tuple[str, CollectionDocument]]:
        for line, place in lines_of(self._path, self._shown, Line):
            yield self._document(line, place)

    def _document(self, line: Line, place: Place) -> tuple[str, CollectionDocument]:
        collections = self._settings.collections
        if line.collection not in collections:
            raise SourceMalformed(
                f"there is no collection {line.collection!r}",
                place=place,
                hint=suggestion(line.collection, sorted(collections)),
            )
        owner = self._settings.owner
        identity = Identity(tenant_id=line.tenant, team_id=line.team, user_id=line.user)
        tenant = partition(identity, owner)
        if owner != "app" and not tenant:
            raise SourceMalformed(
                f"the memory has no {owner}, and the toolkit's owner is {owner!r}", place=place
            )
        return collections[line.collection], documents.document(
            line.id,
            title=line.title,
            content=line.content,
            preview=line.preview,
            tags=line.tags,
            supersedes=line.supersedes,
            written=line.written,
            tenant=tenant,
        )
