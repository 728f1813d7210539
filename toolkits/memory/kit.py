"""The toolkit `memory`: the tools search, fetch, batch_fetch and, where it is switched on,
remember.

Reads memories from JSON Lines files for `groundhook tools sync`.

    {"id": 12, "collection": "backend", "title": "…", "content": "…", "team": "red"}

`preview`, `tags`, `supersedes`, `written` (a date or time, which `as_of` needs), and `conversation`
with `turn` (a whole number that counts its turns) are optional; which of
`tenant`, `team` and `user` a line needs follows from the toolkit's `owner`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from groundhook.core.errors import ConfigError, Place, SourceMalformed, suggestion
from groundhook.core.sync_source import ListedDocuments
from groundhook.core.tool_ports import ToolScope
from groundhook.core.types.collection_queries import CollectionDocument, Owner, partition
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.search import Item
from groundhook.core.types.toolkit_spec import ToolkitSpec
from groundhook.core.types.tools import IdentityPart, Needs, Tool
from groundhook.core.types.turn import Identity
from groundhook.toolkits.jsonl import lines_of
from groundhook.toolkits.memory import documents
from groundhook.toolkits.memory.engine import MemoryEngine
from groundhook.toolkits.memory.settings import FIELDS, MemoryToolkitSettings
from groundhook.toolkits.memory.values import (
    LONGEST_CONVERSATION,
    DocId,
    ForgetArguments,
    Forgotten,
    Memories,
    MemoryBatchArguments,
    MemoryFetchArguments,
    MemoryRecord,
    MemorySearchArguments,
    Preview,
    Previews,
    RememberArguments,
    Remembered,
    ShelvedMemory,
)


class _MemoryLine(BaseModel):
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
    conversation: str = Field(default="", max_length=LONGEST_CONVERSATION)
    turn: DocId | None = None
    tenant: str = ""
    team: str = ""
    user: str = ""

    @model_validator(mode="after")
    def _check_turn(self) -> Self:
        if bool(self.conversation) != (self.turn is not None):
            raise ValueError("a turn needs both `conversation` and `turn`")
        return self


def memory_files(settings: MemoryToolkitSettings, path: Path, shown: str) -> ListedDocuments:
    """Return the memories of a file, or of all `*.jsonl` files in a folder, as a source. Reading it
    raises ConfigError for a path that does not exist, SourceMalformed for a line that is wrong."""
    reader = _Reader(settings, path, shown)
    return ListedDocuments(
        f"the file {shown!r}", "memories", str(path), reader.documents, settings.sync
    )


class _Reader:
    def __init__(self, settings: MemoryToolkitSettings, path: Path, shown: str) -> None:
        self._settings = settings
        self._path = path
        self._shown = shown

    def documents(self) -> Iterator[tuple[str, CollectionDocument]]:
        for line, place in lines_of(self._path, self._shown, _MemoryLine):
            yield self._document(line, place)

    def _document(self, line: _MemoryLine, place: Place) -> tuple[str, CollectionDocument]:
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
            turn=documents.turn_of(line.conversation, line.turn),
            tenant=tenant,
        )


class MemoryToolkit:
    """The tools over the collections that a toolkit's file names. `declared` are the collections of
    the app by full id. Raises ConfigError if one of them lacks a field."""

    def __init__(self, spec: ToolkitSpec, declared: Mapping[str, CollectionSpec]) -> None:
        self._settings = spec.read(MemoryToolkitSettings)
        self._full_ids: dict[str, str] = {}
        for shelf, name in self._settings.collections.items():
            own = f"agents.{spec.assistant}.{name}"
            self._full_ids[shelf] = own if own in declared else name
            if found := declared.get(self._full_ids[shelf]):
                _check_fields(found)
        self._spec = spec
        self._engine = MemoryEngine(self._settings, spec.name)

    def sync(self) -> ListedDocuments | None:
        """Return the reader of the source's files; None without a source."""
        if self._settings.source is None:
            return None
        file = self._settings.source.file
        return memory_files(self._settings, self._spec.folder / file, file)

    def owners(self) -> Mapping[str, Owner]:
        """Return whose memories each collection holds."""
        return dict.fromkeys(self._settings.collections.values(), self._settings.owner)

    def tools(self) -> Sequence[Tool]:
        """Return search, fetch and batch_fetch, and what else the settings offer."""
        names = ", ".join(sorted(self._settings.collections))
        needs = self._needs()
        engine = self._engine

        async def search(arguments: MemorySearchArguments, scope: ToolScope) -> Previews:
            return await engine.search(scope, arguments)

        async def fetch(arguments: MemoryFetchArguments, scope: ToolScope) -> MemoryRecord:
            return await engine.fetch(scope, arguments)

        async def batch_fetch(arguments: MemoryBatchArguments, scope: ToolScope) -> Memories:
            return await engine.batch_fetch(scope, arguments)

        return [
            Tool(
                name="search",
                description=(
                    "Search memories. Returns previews (id, title, two or three sentences, score);"
                    f" read whole ones with fetch or batch_fetch. Collections: {names}"
                ),
                arguments=MemorySearchArguments,
                answers=Previews,
                run=search,
                needs=needs,
                items=self._preview_items,
                text=_with_notes,
            ),
            Tool(
                name="fetch",
                description=f"Read one memory whole, by its id. Collections: {names}",
                arguments=MemoryFetchArguments,
                answers=MemoryRecord,
                run=fetch,
                needs=needs,
                items=self._memory_items,
            ),
            Tool(
                name="batch_fetch",
                description=(
                    "Read several memories whole, of several collections at once. Those that do"
                    f" not exist are omitted. Collections: {names}"
                ),
                arguments=MemoryBatchArguments,
                answers=Memories,
                run=batch_fetch,
                needs=needs,
                items=self._batch_items,
                text=_with_notes,
            ),
            *self._writing(names, needs),
        ]

    def _writing(self, names: str, needs: Needs) -> Sequence[Tool]:
        """Return remember and forget, where the settings offer them."""
        engine = self._engine

        async def remember(arguments: RememberArguments, scope: ToolScope) -> Remembered:
            return await engine.remember(scope, arguments)

        async def forget(arguments: ForgetArguments, scope: ToolScope) -> Forgotten:
            return await engine.forget(scope, arguments)

        tools: list[Tool] = []
        if self._settings.write:
            tools.append(
                Tool(
                    name="remember",
                    description=f"Store a memory for later. Collections: {names}",
                    arguments=RememberArguments,
                    answers=Remembered,
                    run=remember,
                    needs=needs,
                    reads_only=False,
                )
            )
        if self._settings.forget:
            tools.append(
                Tool(
                    name="forget",
                    description=(
                        "Remove one memory for ever, by its id. Returns how often it is still"
                        f" found: 0 everywhere. Collections: {names}"
                    ),
                    arguments=ForgetArguments,
                    answers=Forgotten,
                    run=forget,
                    needs=needs,
                    text=_with_notes,
                    reads_only=False,
                )
            )
        return tools

    def _preview_items(self, answer: Previews) -> list[Item]:
        shelf = answer._collection
        return [self._item(one, shelf, one.preview, one.score) for one in answer.root]

    def _memory_items(self, answer: MemoryRecord) -> list[Item]:
        return [self._item(answer, answer._collection, answer.content)]

    def _batch_items(self, answer: Memories) -> list[Item]:
        return [self._item(one, one.collection, one.content or one.preview) for one in answer.root]

    def _item(
        self,
        memory: Preview | MemoryRecord | ShelvedMemory,
        shelf: str,
        content: str,
        score: float = 1.0,
    ) -> Item:
        """Return a memory as a source. Its collection and owner identify it: shelves of several
        toolkits may have one name."""
        collection = self._full_ids.get(shelf, shelf)
        return Item(
            score=score,
            type="kb",
            key=f"memory:{collection}/{self._settings.owner}/{memory.id}",
            title=memory.title,
            content=content,
            document_id=str(memory.id),
            collection=collection,
        )

    def _needs(self) -> Needs:
        """The parts of the identity that make the owner of the memories (`partition`); the tenant
        may be empty."""
        parts: dict[str, tuple[IdentityPart, ...]] = {
            "app": (),
            "tenant": ("tenant",),
            "team": ("team",),
            "user": ("user",),
        }
        return Needs(identity=parts[self._settings.owner])


def _check_fields(collection: CollectionSpec) -> None:
    missing = {
        name: type
        for name, type in FIELDS.items()
        if name not in collection.fields or collection.fields[name].type != type
    }
    if missing:
        raise ConfigError(
            f"the collection {collection.id!r} lacks fields that memories need",
            hint=f"declare under `fields` of its .kb.yao: {json.dumps(missing)[1:-1]}",
        )


def _with_notes(answer: Previews | Memories | Forgotten) -> str:
    text = json.dumps(answer.model_dump(mode="json"), ensure_ascii=False)
    return "\n".join([text, *answer._notes])
