"""Adding files to a collection: found, read, cut, embedded, stored; one report a file.

A document's id is its path relative to the folder that was named, with `/` between the parts, or the name of a file that
was named itself: the same for everyone who has the same files, wherever they are. A file that did not change costs
reading it; one that changed replaces its last version. A file that cannot be added is a line of the report and the others go on;
a store that fails ends the add. What was added before stays, whatever happens.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from handlers.kb.chunk import Chunk, chunks
from handlers.kb.embed import CountsTokens, estimated_tokens
from handlers.kb.read import Document, read, readable
from handlers.kb.store import Incoming, Made, Passage, Stored, VectorStore, packed
from host.errors import HostError, IngestError, UsageError
from host.ports import Embedder
from host.types.specs import CollectionSpec

Progress = Callable[[int, int, str], None]  # bytes of the files done, bytes in all, document under way
Outcome = Literal["added", "replaced", "unchanged", "failed"]

HEADINGS = " › "
_FORMAT = b"1"  # raised when reading or cutting changes, so that documents are made anew
_TOGETHER = 16  # chunks embedded between two words to whoever watches


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """What became of a file. `chunks` counts the document's chunks where it was added or replaced."""

    path: str
    document: str
    outcome: Outcome
    chunks: int = 0
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class AddReport:
    """What became of an add. `skipped` files of the folders end in something that cannot be read."""

    collection: str
    files: tuple[FileReport, ...] = ()
    skipped: int = 0

    @property
    def failed(self) -> bool:
        return any(file.outcome == "failed" for file in self.files)


@dataclass(frozen=True)
class _File:
    path: Path
    document: str
    size: int
    error: str = ""


def made_with(spec: CollectionSpec, embedder: Embedder, language: str) -> Made:
    """What a store compares with what the collection was made with."""
    return Made(
        provider=embedder.provider,
        model=embedder.model,
        dimensions=embedder.dimensions,
        language=language,
        tenanted=bool(spec.tenant_field),
        fields=spec.types,
        **spec.storage.model_dump(),
    )


def tenant_of(spec: CollectionSpec, tenant: str) -> str:
    """The tenant that documents of a collection are stored for. Raises UsageError when the collection has tenants and none is
    named, and when it has none and one is: the documents would be everybody's."""
    if spec.tenant_field and not tenant:
        raise UsageError(
            f"collection {spec.id!r} keeps its tenants apart, and no tenant was named", hint="name one with --tenant"
        )
    if tenant and not spec.tenant_field:
        raise UsageError(
            f"collection {spec.id!r} has no tenants: what is added for {tenant!r} would be seen by all",
            hint="declare `tenant_field` in its .kb.yao, or leave out --tenant",
        )
    return tenant


class Ingestion:
    """Adds files to collections of one store."""

    def __init__(self, store: VectorStore, *, reserve_bytes: int) -> None:
        self._store = store
        self._reserve_bytes = reserve_bytes

    async def add(
        self,
        spec: CollectionSpec,
        embedder: Embedder,
        made: Made,
        paths: Sequence[Path],
        tenant: str,
        progress: Progress | None = None,
    ) -> AddReport:
        """Raises UsageError, ConfigError for a collection made with something else, and StorageError."""
        tenant = tenant_of(spec, tenant)
        there = (await self._store.usage(spec.id, tenant, made=made)).documents
        files, skipped = await anyio.to_thread.run_sync(_found, paths)
        adding = _Add(
            put=partial(self._store.put, spec.id, made, reserve_bytes=self._reserve_bytes),
            documents=_Documents(spec, embedder, tenant),
            files=files,
            there={stored.document: stored for stored in there},
            meter=_Meter(progress, sum(file.size for file in files)),
        )
        await adding.run()
        if adding.moved:
            await self._store.relocate(spec.id, tenant, adding.moved)
        return AddReport(collection=spec.id, files=tuple(adding.reports[index] for index in range(len(files))), skipped=skipped)


Put = Callable[[Incoming], Awaitable[Literal["added", "replaced"]]]
Ready = tuple[int, Incoming]  # a document, and which file it is of


@dataclass(kw_only=True)
class _Add:
    """One add under way: documents are made on every core, and while one is written to the disk, the next are embedded."""

    put: Put
    documents: _Documents
    files: Sequence[_File]
    there: Mapping[str, Stored]
    meter: _Meter
    reports: dict[int, FileReport] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)

    async def run(self) -> None:
        send, receive = anyio.create_memory_object_stream[Ready](0)
        waiting = iter(enumerate(self.files))
        with send:
            makers = [partial(self._make, waiting, send.clone()) for _ in range(os.cpu_count() or 1)]
        await _together(partial(self._store, receive), *makers)

    async def _make(self, waiting: Iterator[tuple[int, _File]], ready: MemoryObjectSendStream[Ready]) -> None:
        async with ready:
            for index, file in waiting:
                self.meter.part(file, 0)
                try:
                    data, fingerprint = await anyio.to_thread.run_sync(_loaded, file, self.documents.spec)
                    known = self.there.get(file.document)
                    if known is None or known.fingerprint != fingerprint:
                        await ready.send((index, await self.documents.made(file, data, fingerprint, self.meter)))
                    else:
                        self._leave(index, file, known)
                except IngestError as exc:
                    self.reports[index] = _report(file, "failed", error=str(exc))
                self.meter.part(file, 1)

    async def _store(self, ready: MemoryObjectReceiveStream[Ready]) -> None:
        async with ready:
            async for index, document in ready:
                outcome = await self.put(document)
                self.reports[index] = _report(self.files[index], outcome, chunks=len(document.passages))

    def _leave(self, index: int, file: _File, known: Stored) -> None:
        self.reports[index] = _report(file, "unchanged")
        if known.url.startswith("file:") and known.url != _url(file):
            self.moved[file.document] = _url(file)


async def _together(*jobs: Callable[[], Awaitable[None]]) -> None:
    """Run the jobs at the same time; the first that fails ends the others, and its error is raised as it is."""
    failed: list[HostError] = []
    async with anyio.create_task_group() as tasks:

        async def run(job: Callable[[], Awaitable[None]]) -> None:
            try:
                await job()
            except HostError as exc:
                failed.append(exc)
                tasks.cancel_scope.cancel()

        for job in jobs:
            tasks.start_soon(run, job)
    if failed:
        raise failed[0]


def _report(file: _File, outcome: Outcome, *, chunks: int = 0, error: str = "") -> FileReport:
    return FileReport(path=str(file.path), document=file.document, outcome=outcome, chunks=chunks, error=error)


def _url(file: _File) -> str:
    return file.path.absolute().as_uri()


class _Documents:
    """Files to documents that can be stored: what is the same for all files of one add."""

    def __init__(self, spec: CollectionSpec, embedder: Embedder, tenant: str) -> None:
        self.spec = spec
        self._embedder = embedder
        self._tenant = tenant
        self._count = embedder.count_tokens if isinstance(embedder, CountsTokens) else estimated_tokens

    async def made(self, file: _File, data: bytes, fingerprint: str, meter: _Meter) -> Incoming:
        document, parts = await anyio.to_thread.run_sync(self._cut, file, data)
        return Incoming(
            document=file.document,
            title=document.title,
            fingerprint=fingerprint,
            passages=await self._embedded(document, parts, partial(meter.part, file)),
            tenant=self._tenant,
            url=document.url or _url(file),
            bytes=len(data),
        )

    def _cut(self, file: _File, data: bytes) -> tuple[Document, list[Chunk]]:
        document = read(data, str(file.path))
        return document, chunks(document, size=self.spec.chunk.size, overlap=self.spec.chunk.overlap, count=self._count)

    async def _embedded(self, document: Document, parts: Sequence[Chunk], done: Callable[[float], None]) -> tuple[Passage, ...]:
        passages: list[Passage] = []
        seen: dict[str, int] = {}
        for start in range(0, len(parts), _TOGETHER):
            together = parts[start : start + _TOGETHER]
            headings = [_heading(document.title, chunk) for chunk in together]
            texts = [
                "\n\n".join([HEADINGS.join(filter(None, [document.title, heading])), chunk.content])
                for heading, chunk in zip(headings, together, strict=True)
            ]
            vectors = await self._embedder.embed_documents(texts)
            for chunk, heading, text, vector in zip(together, headings, texts, vectors, strict=True):
                passages.append(
                    Passage(
                        passage=_passage_id(chunk.content, seen),
                        content=chunk.content,
                        text=text,
                        vector=packed(vector),
                        heading=heading,
                        page=chunk.page,
                        start=chunk.start,
                        end=chunk.end,
                    )
                )
            done(len(passages) / len(parts))
        return tuple(passages)


class _Meter:
    """Bytes done, for whoever watches."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done: dict[str, int] = {}

    def part(self, file: _File, share: float) -> None:
        if self._progress is not None and not file.error:
            self._done[file.document] = int(file.size * share)
            self._progress(sum(self._done.values()), self._total, file.document)


def _heading(title: str, chunk: Chunk) -> str:
    """The headings that lead to a chunk, without one that only says the title again."""
    return HEADINGS.join(chunk.headings[1:] if chunk.headings[:1] == (title,) else chunk.headings)


def _passage_id(content: str, seen: dict[str, int]) -> str:
    """What a passage is called as long as its text stays: a hash of it, numbered where a document repeats itself."""
    digest = hashlib.blake2b(content.encode(), digest_size=6).hexdigest()
    seen[digest] = seen.get(digest, 0) + 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


def _loaded(file: _File, spec: CollectionSpec) -> tuple[bytes, str]:
    """A file's bytes, and what a document made of them now would be made from."""
    if file.error:
        raise IngestError(file.error)
    try:
        data = file.path.read_bytes()
    except OSError as exc:
        raise IngestError(f"{str(file.path)!r} cannot be read: {exc.strerror or exc}") from exc
    digest = hashlib.blake2b(digest_size=16)
    for part in (_FORMAT, file.path.suffix.lower().encode(), spec.chunk.model_dump_json().encode(), data):
        digest.update(len(part).to_bytes(8, "big") + part)
    return data, digest.hexdigest()


def _found(paths: Sequence[Path]) -> tuple[list[_File], int]:
    """The files to add, sorted within each path, and how many of the folders' files are of kinds that cannot be read."""
    files: list[_File] = []
    skipped = 0
    taken: dict[str, Path] = {}
    for given in paths:
        for path, document in _named(given):
            if given.is_dir() and not readable(path.name):
                skipped += 1
                continue
            if document in taken:
                if taken[document].resolve() != path.resolve():
                    other = f"{document!r} is the id of {str(taken[document])!r}"
                    error = f"{str(path)!r} was not added: {other} (add the folder that holds both)"
                    files.append(_File(path, document, 0, error))
                continue
            taken[document] = path
            files.append(_sized(path, document))
    return files, skipped


def _sized(path: Path, document: str) -> _File:
    try:
        return _File(path, document, path.stat().st_size)
    except OSError as exc:
        return _File(path, document, 0, f"{str(path)!r} cannot be read: {exc.strerror or exc}")


def _named(given: Path) -> Iterator[tuple[Path, str]]:
    """Files of a path with their ids. Hidden files and folders are left out; a file that was named itself never is."""
    if not given.is_dir():
        yield given, unicodedata.normalize("NFC", given.name)
        return
    for folder, folders, names in os.walk(given):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file():
                yield path, unicodedata.normalize("NFC", path.relative_to(given).as_posix())
