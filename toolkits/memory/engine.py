"""Two-stage memory: `search` returns previews, `fetch` and `batch_fetch` whole memories by id.

    engine = MemoryEngine(settings, "memory")
    question = SearchArguments(query="rate limits", collection="backend")
    previews = await engine.search(scope, question)

Every method takes the scope of a tool call, whose identity decides which memories exist for it. The
memory of another owner is reported in the same words as one that does not exist.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import anyio

from groundhook.core.errors import NotFound, StorageError, suggestion
from groundhook.core.tokens import estimated_tokens
from groundhook.core.tool_ports import ToolScope
from groundhook.core.trace import span
from groundhook.core.types.collection_queries import (
    CollectionDocument,
    CollectionMatch,
    CollectionQuery,
)
from groundhook.toolkits.memory import documents, notices, ordering
from groundhook.toolkits.memory.facts import split
from groundhook.toolkits.memory.settings import MemoryToolkitSettings
from groundhook.toolkits.memory.values import (
    ForgetArguments,
    Forgotten,
    Left,
    LinkedMemory,
    Memories,
    MemoryBatchArguments,
    MemoryFetchArguments,
    MemoryRecord,
    MemorySearchArguments,
    MemoryWithLinks,
    Preview,
    Previews,
    RememberArguments,
    Remembered,
    ShelvedMemory,
)

MOST_NAMING = 100  # memories that name or supersede others, read for one question
MOST_WITH_TURNS, MOST_TURNS = 50, 1000  # first ones found that bring turns, and turns brought
_TRIES = 5  # of finding an id that is free


class MemoryNotFound(NotFound, ValueError):
    """The collection has no memory of that id that this identity may see, or does not exist."""


class MemoryEngine:
    """The operations on the collections of one toolkit. `name` is that of the toolkit."""

    def __init__(self, settings: MemoryToolkitSettings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._last_id = 0  # that a new memory got

    async def search(self, scope: ToolScope, arguments: MemorySearchArguments) -> Previews:
        """Return previews by falling score; no content. A newer memory comes before the one that it
        supersedes, and a turn of a conversation brings those beside it. `[]` and a warning for an
        unknown collection."""
        collection = self._settings.collections.get(arguments.collection)
        if collection is None:
            await scope.warn("unknown_collection", self._unknown_collection(arguments.collection))
            return Previews([])
        written = (
            {"written": {"lte": documents.moment(arguments.as_of)}} if arguments.as_of else None
        )
        limit = arguments.limit or self._settings.limit
        given = arguments.threshold
        threshold = self._settings.threshold if given is None else given
        answers = await scope.collections.find(
            [
                CollectionQuery(
                    collection=collection,
                    text=text,
                    filter=written,
                    limit=limit,
                    threshold=threshold,
                    owner=self._settings.owner,
                )
                for text in await split(scope, self._settings.split, arguments.query)
            ]
        )
        answer, matches = answers[0], ordering.joined([each.matches for each in answers])
        if not matches:
            await notices.explain_nothing(
                scope, self._settings, self._name, answer, filtered=bool(written)
            )
        found = await notices.memories_of(scope, arguments.collection, matches)
        found = (await self._with_turns_beside(scope, collection, found, written))[:limit]
        newer = await self._newer(scope, collection, found, written)
        previews = Previews(
            [
                Preview(
                    id=int(match.id),
                    title=match.title,
                    preview=documents.preview_in(match.fields, match.passage),
                    score=match.score,
                )
                for match in ordering.newest_first(found, newer)
            ]
        )
        previews._collection = arguments.collection
        previews._notes = notices.of_search(answer, newer)
        return previews

    async def fetch(self, scope: ToolScope, arguments: MemoryFetchArguments) -> MemoryRecord:
        """Return a whole memory. Raises MemoryNotFound, which is a ValueError."""
        collection = self._settings.collections.get(arguments.collection)
        if collection is None:
            raise MemoryNotFound(self._unknown_collection(arguments.collection))
        id = str(arguments.doc_id)
        found = await self._read(scope, arguments.collection, collection, [id])
        document = found.get(id)
        if document is None:
            raise MemoryNotFound(
                f"collection {arguments.collection!r} has no document {arguments.doc_id}"
            )
        memory = MemoryRecord(
            id=arguments.doc_id,
            title=document.title,
            preview=documents.preview_in(document.fields, document.text),
            content=document.text,
            tags=documents.values_in(document.fields, "tags"),
        )
        if arguments.links and self._settings.links:
            memory = MemoryWithLinks(
                **memory.model_dump(),
                names=await self._named(scope, documents.links_of(document.text)),
                named_by=await self._naming(scope, f"{arguments.collection}:{arguments.doc_id}"),
            )
        memory._collection = arguments.collection
        return memory

    async def batch_fetch(self, scope: ToolScope, arguments: MemoryBatchArguments) -> Memories:
        """Return whole memories in the order of the references, one request for each collection.
        Missing memories are omitted; above `most_tokens` the content is omitted."""
        wanted: dict[str, dict[str, None]] = {}
        for ref in arguments.doc_refs:
            wanted.setdefault(ref.collection, {})[str(ref.doc_id)] = None
        found = await self._get(scope, wanted)
        left = arguments.most_tokens or self._settings.most_tokens
        memories: list[ShelvedMemory] = []
        shortened: list[str] = []
        for ref in arguments.doc_refs:
            document = found.get(ref.collection, {}).get(str(ref.doc_id))
            if document is None:
                continue
            content = document.text
            if left is not None:
                cost = estimated_tokens(content)
                if cost > left:
                    content = ""
                    shortened.append(f"{ref.collection}:{ref.doc_id}")
                else:
                    left -= cost
            memories.append(
                ShelvedMemory(
                    id=ref.doc_id,
                    collection=ref.collection,
                    title=document.title,
                    preview=documents.preview_in(document.fields, document.text),
                    content=content,
                    tags=documents.values_in(document.fields, "tags"),
                )
            )
        answer = Memories(memories)
        if shortened:
            answer._notes = [
                f"Without content, because of `most_tokens`: {', '.join(shortened)}."
                " Fetch them one by one."
            ]
        return answer

    async def remember(self, scope: ToolScope, arguments: RememberArguments) -> Remembered:
        """Store a memory of the identity's under a new id. Raises MemoryNotFound for an unknown
        collection, StorageError if it could not be stored."""
        collection = self._settings.collections.get(arguments.collection)
        if collection is None:
            raise MemoryNotFound(self._unknown_collection(arguments.collection))
        id = await self._free_id(scope, collection)
        made = documents.document(
            id,
            title=arguments.title.strip(),
            content=arguments.content,
            preview=arguments.preview,
            tags=arguments.tags,
            supersedes=arguments.supersedes,
            written=scope.now(),
            turn=documents.turn_of(arguments.conversation, arguments.turn),
        )
        report = await scope.collections.put(collection, [made], owner=self._settings.owner)
        if report.failed:
            raise StorageError(f"the memory was not stored: {'; '.join(report.failed.values())}")
        return Remembered(
            id=id,
            collection=arguments.collection,
            preview=str(made.fields["preview"]),
            made=made.fields["made"] is True,
        )

    async def forget(self, scope: ToolScope, arguments: ForgetArguments) -> Forgotten:
        """Remove a memory of the identity's, then look for it in every way it could be found.
        Raises MemoryNotFound, StorageError if it is still there."""
        await self.fetch(
            scope, MemoryFetchArguments(doc_id=arguments.doc_id, collection=arguments.collection)
        )
        collection, id = self._settings.collections[arguments.collection], str(arguments.doc_id)
        owner = self._settings.owner
        await scope.collections.remove(collection, [id], owner=owner)
        by_id = await scope.collections.get(collection, [id], owner=owner)
        only = {"document_id": id}
        listed, found = await scope.collections.find(
            [
                CollectionQuery(
                    collection=collection, text=text, filter=only, threshold=0, owner=owner
                )
                for text in ("", "memory")  # not its own: vectors of questions are cached
            ]
        )
        left = Left(by_id=len(by_id), by_listing=listed.total, by_search=len(found.matches))
        if any(left.model_dump().values()):
            raise StorageError(f"memory {id} of {arguments.collection!r} was not removed: {left!r}")
        answer = Forgotten(id=arguments.doc_id, collection=arguments.collection, left=left)
        if self._settings.source is not None:
            answer._notes = ["If the toolkit's source file names it, a sync adds it again."]
        return answer

    # -------------------------------------------------------------------------------------- within

    def _unknown_collection(self, name: str) -> str:
        known = sorted(self._settings.collections)
        return f"there is no collection {name!r} ({suggestion(name, known)})"

    async def _read(
        self, scope: ToolScope, shelf: str, collection: str, ids: Sequence[str]
    ) -> dict[str, CollectionDocument]:
        with span("memory_fetch", shelf, collection=shelf, asked=len(ids)) as node:
            found = await scope.collections.get(collection, ids, owner=self._settings.owner)
            node.data["found"] = len(found)
        return found

    async def _get(
        self, scope: ToolScope, wanted: Mapping[str, Mapping[str, None]]
    ) -> dict[str, dict[str, CollectionDocument]]:
        """Return the documents by shelf and id; all shelves are read at the same time."""
        found: dict[str, dict[str, CollectionDocument]] = {}

        async def one(shelf: str, collection: str, ids: Sequence[str]) -> None:
            found[shelf] = await self._read(scope, shelf, collection, ids)

        async with anyio.create_task_group() as group:
            for shelf, ids in wanted.items():
                if collection := self._settings.collections.get(shelf):
                    group.start_soon(one, shelf, collection, [*ids])
        return found

    async def _with_turns_beside(
        self,
        scope: ToolScope,
        collection: str,
        found: list[CollectionMatch],
        written: Mapping[str, object] | None,
    ) -> list[CollectionMatch]:
        """Return what was found with the turns beside it, in one more request if there may be
        any."""
        width = self._settings.neighbours
        turns = dict.fromkeys(
            turn
            for match in found[:MOST_WITH_TURNS]
            for turns in documents.turns_beside(match.fields, width)
            for turn in turns
        )
        if not turns:
            return found
        with span("turns_beside", collection, asked=len(turns)) as node:
            answers = await scope.collections.find(
                [
                    CollectionQuery(
                        collection=collection,
                        filter={"turn": [*turns], **(written or {})},
                        limit=MOST_TURNS,
                        owner=self._settings.owner,
                    )
                ]
            )
            beside = [
                match for match in answers[0].matches if documents.number_of(match.id) is not None
            ]
            node.data["found"] = len(beside)
        return ordering.with_turns_beside(found, beside, width)

    async def _newer(
        self,
        scope: ToolScope,
        collection: str,
        matches: Sequence[CollectionMatch],
        written: Mapping[str, object] | None,
    ) -> dict[str, list[str]]:
        """Return the ids of the memories that supersede those found, by the older id."""
        ids = [match.id for match in matches]
        if not ids:
            return {}
        newer = await scope.collections.find(
            [
                CollectionQuery(
                    collection=collection,
                    filter={"supersedes": ids, **(written or {})},
                    limit=MOST_NAMING,
                    owner=self._settings.owner,
                )
            ]
        )
        by_old: dict[str, list[str]] = {}
        for match in newer[0].matches:
            for old in documents.values_in(match.fields, "supersedes"):
                if old in ids and old != match.id and documents.number_of(match.id) is not None:
                    by_old.setdefault(old, []).append(match.id)
        return by_old

    async def _named(self, scope: ToolScope, links: Sequence[str]) -> list[LinkedMemory]:
        wanted: dict[str, dict[str, None]] = {}
        for shelf, id in map(documents.parsed_link, links):
            wanted.setdefault(shelf, {})[id] = None
        found = await self._get(scope, wanted)
        return [
            LinkedMemory(
                id=int(id),
                collection=shelf,
                title=document.title,
                preview=documents.preview_in(document.fields, document.text),
            )
            for shelf, ids in wanted.items()
            for id in ids
            if (document := found.get(shelf, {}).get(id))
        ]

    async def _naming(self, scope: ToolScope, link: str) -> list[LinkedMemory]:
        shelves = self._settings.collections
        answers = await scope.collections.find(
            [
                CollectionQuery(
                    collection=collection,
                    filter={"links": link},
                    limit=MOST_NAMING,
                    owner=self._settings.owner,
                )
                for collection in shelves.values()
            ]
        )
        return [
            LinkedMemory(
                id=int(match.id),
                collection=shelf,
                title=match.title,
                preview=documents.preview_in(match.fields, match.passage),
            )
            for shelf, answer in zip(shelves, answers, strict=True)
            for match in await notices.memories_of(scope, shelf, answer.matches)
        ]

    async def _free_id(self, scope: ToolScope, collection: str) -> int:
        """Return an id that no memory of this owner has. It begins with the time, so that the id of
        a memory that was removed does not come back."""
        for _ in range(_TRIES):
            at = int(scope.now().timestamp() * 1000) * 1000 + random.randrange(1000)
            # Calls of one answer run at the same time, and none of them is stored yet.
            id = self._last_id = max(at, self._last_id + 1)
            if not await scope.collections.get(collection, [str(id)], owner=self._settings.owner):
                return id
        raise StorageError("no free id was found for a memory: is the clock set right?")
