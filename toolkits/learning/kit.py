"""The toolkit `learning`: the tool `searchResources`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from groundhook.core.sync_source import ListedDocuments
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.search import Item
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.core.types.tools import Needs, Tool
from groundhook.toolkits.learning.search import search_resources
from groundhook.toolkits.learning.settings import LearningSettings
from groundhook.toolkits.learning.source import section_files
from groundhook.toolkits.learning.values import Resources, SearchArguments


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

        async def run(arguments: SearchArguments, scope: ToolScope) -> Resources:
            return await search_resources(scope, self._settings, self._spec.name, arguments)

        return [
            Tool(
                name="searchResources",
                description=(
                    "Find learning resources (sections of books) for what a teacher or student"
                    " looks for in a course. Returns id, title, bookTitle, summary and a relevance"
                    " score of 0-1 for each, best first."
                ),
                arguments=SearchArguments,
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
