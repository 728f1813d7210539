"""The client of the knowledge base's worker: a `VectorStore` in another process.

Finds the worker of a state folder, or starts it. If it dies during a request, starts another and
repeats the request once; every request may be repeated. Nothing is started before the first
request.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import math
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import portalocker

from groundhook.core.errors import WAITS, StorageError, WorkerDied
from groundhook.core.types.fields import Scalar
from groundhook.core.types.filters import Filter, dumped
from groundhook.core.workers import WorkerConnection, interpreter
from groundhook.handlers.kb.embedded.folder import folder_of, identity
from groundhook.handlers.kb.embedded.manifest import has_languages
from groundhook.handlers.kb.store.messages import as_mapping, dump_question
from groundhook.handlers.kb.store.port import (
    PROTOCOL,
    CollectionSettings,
    CollectionUsage,
    DocumentRecord,
    FullDocument,
    Hit,
    LanguageShare,
    MatchingDocument,
    Passage,
    PassageOrdinals,
    PutOutcome,
    SearchEvidence,
    StoreProgress,
    VectorAnswer,
    VectorQuestion,
)

_NAME = "the knowledge base's worker"
_MODULE = "groundhook.handlers.kb.embedded.worker"
_LISTENS, _BUSY, _KILLED = 0, 3, 4  # exit codes of the module
_STARTS = 3  # attempts, when workers are killed before they listen
_PAGE = 1000  # documents that are listed at once
_PATIENCE_S = 30.0  # how long a worker that holds the folder may take to listen or to end
_LOOK_S = 0.02
_TELL_S = 1.0  # how long it waits in silence

waits = logging.getLogger(WAITS)


class KBClient:
    """A `VectorStore` for one event loop. Close it with `aclose`; the worker continues for other
    processes."""

    def __init__(self, state: Path, *, idle_s: float) -> None:
        self._folder = state.absolute() / "kb"
        self._idle_s = idle_s
        self._connection: WorkerConnection | None = None
        self._connecting = anyio.Lock()
        self._tickets = itertools.count(1)
        self._progress: dict[int, StoreProgress] = {}

    async def start(self) -> None:
        with suppress(StorageError):
            await self._connected()

    async def put(
        self,
        collection: str,
        settings: CollectionSettings,
        /,
        *documents: FullDocument,
        reserve_bytes: int = 0,
        progress: StoreProgress | None = None,
    ) -> list[PutOutcome]:
        if not documents:
            return []
        sent = [
            {
                **as_mapping(document),
                "passages": [as_mapping(passage) for passage in document.passages],
            }
            for document in documents
        ]
        body = {
            "collection": collection,
            "settings": as_mapping(settings),
            "documents": sent,
            "reserve_bytes": reserve_bytes,
        }
        outcomes: list[PutOutcome] = await self._ask("put", body, progress)
        return outcomes

    async def search(
        self, collection: str, settings: CollectionSettings, question: VectorQuestion, /
    ) -> VectorAnswer:
        [answer] = await self.search_many(collection, settings, [question])
        return answer

    async def search_many(
        self, collection: str, settings: CollectionSettings, questions: Sequence[VectorQuestion], /
    ) -> list[VectorAnswer]:
        sent = [dump_question(question) for question in questions]
        body = {"collection": collection, "settings": as_mapping(settings), "questions": sent}
        found = await self._ask("search", body)
        if found is None:
            return [VectorAnswer(exists=False)] * len(sent)
        return [_parse_answer(raw) for raw in found]

    async def passages(
        self, collection: str, tenant: str | None, wanted: PassageOrdinals, /
    ) -> dict[str, tuple[Hit, ...]]:
        sent = {
            document: None if ordinals is None else list(ordinals)
            for document, ordinals in wanted.items()
        }
        body = {"collection": collection, "tenant": tenant, "wanted": sent}
        found = await self._ask("passages", body)
        return {document: _parse_hits(raw) for document, raw in found.items()}

    async def facets(
        self,
        collection: str,
        tenant: str | None,
        fields: Sequence[str],
        filter: Filter | None,
        limit: int,
        /,
    ) -> dict[str, list[tuple[Scalar, int]]]:
        among = None if filter is None else dumped(filter)
        body = {
            "collection": collection,
            "tenant": tenant,
            "fields": list(fields),
            "filter": among,
            "limit": limit,
        }
        found = await self._ask("facets", body)
        return {
            name: [(value, count) for value, count in counted] for name, counted in found.items()
        }

    async def names(
        self, collection: str, tenant: str | None, words: Sequence[str], /
    ) -> list[str]:
        body = {"collection": collection, "tenant": tenant, "words": list(words)}
        found: list[str] = await self._ask("names", body)
        return found

    async def count(self, collection: str, tenant: str | None, filter: Filter | None, /) -> int:
        among = None if filter is None else dumped(filter)
        body = {"collection": collection, "tenant": tenant, "filter": among}
        counted: int = await self._ask("count", body)
        return counted

    async def matching_documents(
        self, collection: str, tenant: str | None, filter: Filter | None, /
    ) -> list[MatchingDocument]:
        among = None if filter is None else dumped(filter)
        body = {"collection": collection, "tenant": tenant, "filter": among}
        return [MatchingDocument._make(raw) for raw in await self._ask("matching_documents", body)]

    async def settings(self, collection: str, /) -> CollectionSettings | None:
        """Read from the disk; starts no worker."""
        contents = await anyio.to_thread.run_sync(
            folder_of(self._folder, collection).read, collection
        )
        return contents.settings if contents else None

    async def has_languages(self, collection: str, /) -> bool:
        """Read from the disk; starts no worker."""
        folder = folder_of(self._folder, collection)
        contents = await anyio.to_thread.run_sync(folder.read, collection)
        if contents is None:
            return True
        return await anyio.to_thread.run_sync(has_languages, folder.path / contents.manifest)

    async def usage(
        self, collection: str, tenant: str | None, /, *, settings: CollectionSettings | None = None
    ) -> CollectionUsage:
        body = {
            "collection": collection,
            "tenant": tenant,
            "settings": as_mapping(settings) if settings else None,
        }
        found = await self._ask("usage", body)
        if found is None:
            return CollectionUsage()
        stored = tuple(DocumentRecord(**raw) for raw in found["documents"])
        return CollectionUsage(
            **{**found, "documents": stored, "settings": CollectionSettings(**found["settings"])}
        )

    async def full_documents(
        self, collection: str, documents: Sequence[tuple[str, str]], /
    ) -> list[FullDocument]:
        found = await self._ask(
            "full_documents", {"collection": collection, "documents": documents}
        )
        return [
            FullDocument(**{**raw, "passages": tuple(Passage(**one) for one in raw["passages"])})
            for raw in found
        ]

    async def swap(self, building: str, collection: str, /) -> bool:
        done: bool = await self._ask("swap", {"collection": collection, "building": building})
        return done

    async def document_records(
        self, collection: str, tenant: str | None, documents: Sequence[str], /
    ) -> tuple[DocumentRecord, ...]:
        return await self._list_records(collection, tenant, documents=list(documents))

    async def documents_from(
        self, collection: str, tenant: str | None, source: str, /
    ) -> AsyncIterator[DocumentRecord]:
        after = ["", ""]
        while page := await self._list_records(
            collection, tenant, source=source, after=after, limit=_PAGE
        ):
            for stored in page:
                yield stored
            after = [page[-1].tenant, page[-1].document]

    async def _list_records(
        self, collection: str, tenant: str | None, **listing: Any
    ) -> tuple[DocumentRecord, ...]:
        found = await self._ask(
            "document_records", {"collection": collection, "tenant": tenant, "listing": listing}
        )
        return tuple(DocumentRecord(**raw) for raw in found)

    async def relocate(
        self, collection: str, tenant: str, places: Mapping[str, tuple[str, str]], /
    ) -> None:
        await self._ask(
            "relocate", {"collection": collection, "tenant": tenant, "places": dict(places)}
        )

    async def remove(
        self, collection: str, tenant: str | None, documents: Sequence[str] | None, /
    ) -> list[str]:
        wanted = None if documents is None else list(documents)
        removed: list[str] = await self._ask(
            "remove", {"collection": collection, "tenant": tenant, "documents": wanted}
        )
        return removed

    async def stop_worker(self) -> None:
        """End the worker, if one runs, and wait for it."""
        connection = await self._connect()
        if connection is not None:
            connection.post("stop")
            await connection.closed.wait()

    async def aclose(self) -> None:
        if self._connection is not None:
            self._connection.close()
            await self._connection.closed.wait()

    async def _ask(self, operation: str, body: Any, progress: StoreProgress | None = None) -> Any:
        if progress is not None:
            body = {**body, "ticket": next(self._tickets)}
            self._progress[body["ticket"]] = progress
        try:
            return await self._call_with_retry(operation, body)
        finally:
            if progress is not None:
                del self._progress[body["ticket"]]

    async def _call_with_retry(self, operation: str, body: Any) -> Any:
        for _ in range(2):
            try:
                return await (await self._connected()).call(operation, body)
            except WorkerDied:
                continue
        # The engine maps its files into memory: writing to them on a full disk ends the process.
        free = shutil.disk_usage(self._folder).free >> 20
        raise StorageError(
            f"{_NAME} ended twice under the same request in {str(self._folder)!r} ({free} MB of"
            " disk are free)",
            hint=(
                "what was added before is intact; free some disk, and see"
                f" {str(self._folder / 'worker.log')!r}"
            ),
        )

    def _receive(
        self, _connection: WorkerConnection, _id: int | None, operation: str, body: Any
    ) -> None:
        if operation == "progress" and (progress := self._progress.get(body["ticket"])) is not None:
            progress(body["done"], body["total"])

    async def _connected(self) -> WorkerConnection:
        if self._connection is not None and not self._connection.closed.is_set():
            return self._connection
        async with self._connecting:
            if self._connection is None or self._connection.closed.is_set():
                self._connection = await self._find_or_start()
            return self._connection

    async def _find_or_start(self) -> WorkerConnection:
        connection = await self._connect()
        killed = starts = 0
        now = anyio.current_time()
        tell_at, give_up_at = now + _TELL_S, now + _PATIENCE_S
        while connection is None and anyio.current_time() < give_up_at:
            if self._is_held():  # by a worker that is about to listen, or that is ending
                if anyio.current_time() >= tell_at:
                    tell_at = math.inf
                    waits.warning("waiting for %s, which another process started", _NAME)
                await anyio.sleep(_LOOK_S)
            else:
                # Shielded: if this were cancelled, nobody would wait for the started process.
                with anyio.CancelScope(shield=True):
                    code = await self._start()
                starts += 1
                if starts <= _STARTS:  # how long a start takes is not waited for a worker
                    give_up_at = anyio.current_time() + _PATIENCE_S
                if code == _KILLED or code < 0:
                    killed += 1
                    if killed == _STARTS:
                        raise StorageError(
                            f"{_NAME} was killed {killed} times while it started",
                            hint="the system ends processes when memory is short; see"
                            f" {str(self._folder / 'worker.log')!r}",
                        )
            with anyio.move_on_after(give_up_at - anyio.current_time()):
                connection = await self._connect()
        if connection is None:
            raise StorageError(
                f"{_NAME} holds {str(self._folder)!r} and does not listen",
                hint=(
                    f"see {str(self._folder / 'worker.log')!r}, or end the process that has"
                    " worker.lock open"
                ),
            )
        return connection

    def _is_held(self) -> bool:
        """Return whether a worker has the folder. One that is ending has it until its collections
        are closed."""
        try:
            with suppress(OSError), (self._folder / "worker.lock").open("r+b") as lock:
                portalocker.lock(lock, portalocker.LOCK_SH | portalocker.LOCK_NB)
        except portalocker.LockException:
            return True
        return False  # of a folder that cannot be read, `_start` says what is wrong

    async def _connect(self) -> WorkerConnection | None:
        """Return a connection to the running worker; None if no worker runs."""
        try:
            address = json.loads((self._folder / "worker.json").read_text(encoding="utf-8"))
            own = identity((self._folder / "worker.lock").stat())
            # Another lock: the folder is a copy, and the worker has the original. Older workers
            # write no lock.
            if address.get("lock", own) != own:
                return None
            connection = WorkerConnection(_NAME, self._receive)
            await asyncio.get_running_loop().create_unix_connection(
                lambda: connection, address["socket"]
            )
            # Raises if the worker was just killed: its socket still accepts connections.
            if await connection.call("hello") != PROTOCOL:
                # Another version of Groundhook started it; its data is on disk.
                connection.post("stop")
                await connection.closed.wait()
                return None
        except (FileNotFoundError, ConnectionError, NotADirectoryError, ValueError, WorkerDied):
            return None
        except OSError as exc:
            raise StorageError(f"{_NAME} cannot be reached: {exc}") from exc
        return connection

    async def _start(self) -> int:
        """Start a worker unless one runs, and return the exit code of the launcher, negative for a
        signal. Raises StorageError if the launcher cannot start."""
        log = self._folder / "worker.log"
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with log.open("ab") as output:
                arguments = [str(self._folder.parent), str(self._idle_s)]
                launcher = await asyncio.create_subprocess_exec(
                    *interpreter(_MODULE),
                    *arguments,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
        except OSError as exc:
            raise StorageError(
                f"{_NAME} cannot be started in {str(self._folder)!r}: {exc.strerror or exc}"
            ) from exc
        code = await launcher.wait()
        if code > 0 and code not in (_BUSY, _KILLED):
            raise StorageError(
                f"{_NAME} did not start in {str(self._folder)!r}", hint=f"see {str(log)!r}"
            )
        return code


def _parse_answer(raw: Mapping[str, Any]) -> VectorAnswer:
    languages = {name: LanguageShare(*values) for name, values in raw["languages"].items()}
    evidence = raw["evidence"] and SearchEvidence(*raw["evidence"])
    parsed = {"hits": _parse_hits(raw["hits"]), "languages": languages, "evidence": evidence}
    return VectorAnswer(**{**raw, **parsed})


def _parse_hits(raw: Sequence[Any]) -> tuple[Hit, ...]:
    return tuple(map(Hit._make, raw))
