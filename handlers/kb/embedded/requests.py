"""The requests that the knowledge base's worker answers. `worker` is its process."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from groundhook.core.errors import HostError, StorageError
from groundhook.core.types.filters import loaded
from groundhook.core.workers import WorkerConnection
from groundhook.handlers.kb.embedded.collection import Collection
from groundhook.handlers.kb.embedded.folder import folder_of, read_ahead, remedy
from groundhook.handlers.kb.embedded.optimise import Optimiser
from groundhook.handlers.kb.store.messages import as_mapping, load_question
from groundhook.handlers.kb.store.port import (
    PROTOCOL,
    CollectionSettings,
    FullDocument,
    Passage,
    PutOutcome,
)


class WorkerRequests:
    """Answers requests. Searches are answered where they arrive; documents are stored one at a time
    for each collection, giving way to searches between batches."""

    def __init__(self, folder: Path, tasks: anyio.abc.TaskGroup) -> None:
        self.stopped = asyncio.Event()
        self.last_at = time.monotonic()
        self.busy = 0
        self.connections: set[WorkerConnection] = set()
        self._folder = folder
        self._tasks = tasks
        self._open: dict[str, Collection] = {}
        self._changes = {"put": self._put, "remove": self._remove, "swap": self._swap}
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self.optimiser = Optimiser(self._open, self._locks)

    def accept(self) -> WorkerConnection:
        connection = WorkerConnection("a client of the knowledge base", self.receive)
        self.connections = {other for other in self.connections if not other.closed.is_set()} | {
            connection
        }
        return connection

    def receive(
        self, connection: WorkerConnection, id: int | None, operation: str, body: Any
    ) -> None:
        self.last_at = time.monotonic()
        if id is None or operation == "stop":
            self.stopped.set()
        elif operation == "hello":
            connection.answer(id, PROTOCOL)
        elif operation in self._changes:
            self._tasks.start_soon(self._change, connection, id, operation, body)
        else:
            self._answer(connection, id, operation, body)

    def settle(self) -> None:
        """Write what was put to the disk if it is time."""
        for collection in self._open.values():
            with contextlib.suppress(StorageError):
                collection.settle()

    def close(self) -> None:
        for collection in self._open.values():
            with contextlib.suppress(StorageError):
                collection.close()

    def _answer(self, connection: WorkerConnection, id: int, operation: str, body: Any) -> None:
        try:
            collection = self._collection(body["collection"])
            answer, none = _READS[operation]
            connection.answer(id, none if collection is None else answer(collection, body))
        except HostError as exc:
            if isinstance(exc, StorageError) and not exc.hint:
                exc.hint = remedy(body["collection"])
            connection.refuse(id, exc)

    async def _change(
        self, connection: WorkerConnection, id: int, operation: str, body: Any
    ) -> None:
        self.busy += 1
        try:
            async with self._locks[body["collection"]]:
                connection.answer(id, await self._changes[operation](connection, body))
        except HostError as exc:
            connection.refuse(id, exc)
        finally:
            self.busy -= 1
            self.last_at = time.monotonic()

    async def _put(self, connection: WorkerConnection, body: Any) -> list[PutOutcome]:
        name, settings = body["collection"], CollectionSettings(**body["settings"])
        documents = [_parse_document(raw) for raw in body["documents"]]
        total = self._refuse_full_disk(documents, body["reserve_bytes"])
        collection = self._collection(name)
        if collection is None:
            collection = self._open[name] = Collection.create(
                self._path(name), name, settings, *documents
            )
        collection.check(body["settings"])
        collection.declare(settings.fields)
        try:
            writing = collection.put(*documents)
            while True:
                done = next(writing)
                if "ticket" in body:
                    connection.post(
                        "progress", {"ticket": body["ticket"], "done": done, "total": total}
                    )
                await anyio.lowlevel.checkpoint()
        except StopIteration as end:
            outcomes: list[PutOutcome] = end.value
            return outcomes
        except StorageError:
            # After a failed write the engine's state is unknown: it is read from the disk again.
            del self._open[name]
            with contextlib.suppress(StorageError):
                collection.close()
            raise

    async def _remove(self, _connection: WorkerConnection, body: Any) -> list[str]:
        name, tenant, wanted = body["collection"], body["tenant"], body["documents"]
        try:
            collection = self._collection(name)
        except StorageError:
            if tenant is not None or wanted is not None:
                raise
            folder_of(self._folder, name).remove()  # all of it, which is damaged
            return []
        if collection is None:
            return []
        removed = [
            stored
            for stored in collection.document_records(tenant)
            if wanted is None or stored.document in wanted
        ]
        if len(removed) == len(collection.document_records(None)):
            del self._open[name]
            collection.discard()
        else:
            collection.remove(removed)
        return [stored.document for stored in removed]

    async def _swap(self, _connection: WorkerConnection, body: Any) -> bool:
        name, other = body["collection"], body["building"]
        async with self._locks[other]:
            building, collection = self._collection(other), self._collection(name)
            if building is None:
                raise StorageError(f"collection {name!r} has no rebuilt version to replace it")
            if collection is None:
                return False
            try:
                return collection.replace(building)
            finally:  # both are read from the disk again
                del self._open[name], self._open[other]
                for one in (collection, building):
                    with contextlib.suppress(StorageError):
                        one.close()

    def _refuse_full_disk(self, documents: Sequence[FullDocument], reserve: int) -> int:
        """Return the number of passages to write. Raises StorageError if the disk is too full."""
        # The engine maps its files into memory: a full disk would end the process during a write.
        passages = [passage for document in documents for passage in document.passages]
        needed = 4 * sum(
            len(passage.vector) + len(passage.text.encode()) * 3 for passage in passages
        )
        free = shutil.disk_usage(self._folder).free
        if free < needed + reserve:
            names = repr(documents[0].document) + (
                f" and {len(documents) - 1} more" if documents[1:] else ""
            )
            raise StorageError(
                f"not added: {names}; {free >> 20} MB of disk are free at {str(self._folder)!r},"
                f" and adding it needs {(needed + reserve) >> 20} MB",
                hint="free some space; what was added before is intact",
            )
        return len(passages)

    def _collection(self, name: str) -> Collection | None:
        if name not in self._open:
            opened = Collection.open(self._path(name), name)
            if opened is None:
                return None
            self._open[name] = opened
            self._tasks.start_soon(self._read_ahead, opened.shard_folder)
        return self._open[name]

    async def _read_ahead(self, folder: Path) -> None:
        await anyio.to_thread.run_sync(read_ahead, folder, abandon_on_cancel=True)

    def _path(self, name: str) -> Path:
        return folder_of(self._folder, name).path


def _search(collection: Collection, body: Any) -> Any:
    collection.check(body["settings"])
    return [as_mapping(collection.search(load_question(raw))) for raw in body["questions"]]


def _passages(collection: Collection, body: Any) -> Any:
    return collection.passages(body["tenant"] or "", body["wanted"])


def _facets(collection: Collection, body: Any) -> Any:
    among = None if body["filter"] is None else loaded(body["filter"])
    return collection.facets(body["tenant"], body["fields"], among, body["limit"])


def _names(collection: Collection, body: Any) -> Any:
    return collection.names(body["tenant"], body["words"])


def _count(collection: Collection, body: Any) -> Any:
    among = None if body["filter"] is None else loaded(body["filter"])
    return collection.count(body["tenant"], among)


def _matching_documents(collection: Collection, body: Any) -> Any:
    among = None if body["filter"] is None else loaded(body["filter"])
    return collection.matching_documents(body["tenant"], among)


def _full_documents(collection: Collection, body: Any) -> Any:
    return [_dump_document(document) for document in collection.full_documents(body["documents"])]


def _usage(collection: Collection, body: Any) -> Any:
    if body["settings"]:
        collection.check(body["settings"])
    return asdict(collection.usage(body["tenant"]))


def _relocate(collection: Collection, body: Any) -> Any:
    collection.relocate(body["tenant"], body["places"])


def _document_records(collection: Collection, body: Any) -> Any:
    return [
        as_mapping(record)
        for record in collection.document_records(body["tenant"], **body["listing"])
    ]


# request → the function that answers it at once, and the answer if the collection does not exist
_READS: Mapping[str, tuple[Callable[[Collection, Any], Any], Any]] = {
    "search": (_search, None),
    "passages": (_passages, {}),
    "facets": (_facets, {}),
    "names": (_names, []),
    "count": (_count, 0),
    "matching_documents": (_matching_documents, []),
    "full_documents": (_full_documents, []),
    "usage": (_usage, None),
    "relocate": (_relocate, None),
    "document_records": (_document_records, []),
}


def _parse_document(raw: Mapping[str, Any]) -> FullDocument:
    return FullDocument(**{**raw, "passages": tuple(Passage(**one) for one in raw["passages"])})


def _dump_document(document: FullDocument) -> dict[str, Any]:
    return {
        **as_mapping(document),
        "passages": [as_mapping(passage) for passage in document.passages],
    }
