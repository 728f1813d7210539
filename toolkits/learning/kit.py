"""The toolkit `learning`: the tool `searchResources`.

Reads sections from JSON Lines files for `groundhook tools sync`.

    {"id": "bio-1", "title": "…", "bookTitle": "…", "summary": "…", "text": "…", "url": "https://…"}

`collection` names one of the toolkit's collections (default: the first), `institution` the tenant
of a section in a collection that has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from groundhook.core.errors import SourceMalformed, suggestion
from groundhook.core.sync_source import ListedDocuments
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.collection_queries import CollectionDocument
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.search import Item
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.core.types.tools import Needs, Tool
from groundhook.toolkits.jsonl import lines_of
from groundhook.toolkits.learning.search import search_resources
from groundhook.toolkits.learning.settings import LearningSettings
from groundhook.toolkits.learning.values import Resources, SectionSearchArguments


class _SectionLine(BaseModel):
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
    for line, place in lines_of(path, shown, _SectionLine):
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


class LearningToolkit:
    """The tool over the collections that a toolkit's file names. `declared` are the collections of
    the app by full id: if one of them separates institutions, a request must name one."""

    def __init__(self, spec: ToolkitSpec, declared: Mapping[str, CollectionSpec]) -> None:
        self._spec = spec
        self._settings = spec.read(LearningSettings)
        self._separated = any(
            collection.tenant_field
            for name in self._settings.collections
            if (collection := declared.get(f"agents.{spec.assistant}.{name}") or declared.get(name))
        )

    def sync(self) -> ListedDocuments | None:
        """Return the reader of the source's files; None without a source."""
        if self._settings.source is None:
            return None
        file = self._settings.source.file
        return section_files(self._settings, self._spec.folder / file, file)

    def tools(self) -> Sequence[Tool]:
        """Return `searchResources`."""

        async def run(arguments: SectionSearchArguments, scope: ToolScope) -> Resources:
            return await search_resources(scope, self._settings, self._spec.name, arguments)

        return [
            Tool(
                name="searchResources",
                description=(
                    "Find learning resources (sections of books) for what a teacher or student"
                    " looks for in a course. Returns id, title, bookTitle, summary and a relevance"
                    " score of 0-1 for each, best first."
                ),
                arguments=SectionSearchArguments,
                answers=Resources,
                run=run,
                needs=Needs(identity={"tenant": "institution"} if self._separated else {}),
                items=_list_items,
                text=_text,
            )
        ]


def _list_items(answer: Resources) -> list[Item]:
    return answer._items


def _text(answer: Resources) -> str:
    text = json.dumps(answer.model_dump(mode="json"), ensure_ascii=False)
    return "\n".join([text, *answer._notes])
