"""Collections made anew, written to a file, and read from one: from what a store holds, whichever engine is behind it.

The file is JSON lines, so that it can be read anywhere and no more than a few documents are in memory at a time:

    {"groundhook": "collection", "version": 1, "collection": "docs", "made": {"provider": …, "model": …, "dimensions": …, …}}
    {"document": "a.md", "tenant": "", "title": …, "url": …, "fingerprint": …, "bytes": …, "fields": {…}, "passages": 2}
    {"passage": …, "content": …, "text": …, "heading": …, "page": …, "start": …, "end": …, "gap": …, "vector": …}
    {"passage": …}
    {"end": 1}

A vector is base64 of float32, little-endian. The last line counts the documents: a file without it was cut.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import IO, Any

import anyio.to_thread

from handlers.kb.adding.filling import Filling, Moved
from handlers.kb.store import Incoming, Made, Passage, Stored, VectorStore, agree
from host.errors import ConfigError, StorageError, UsageError
from host.ports import Embedder

_VERSION = 1
_BUILDING = "~new"  # what a collection that is being made anew is called, after its id
_PASSAGE = tuple(field.name for field in fields(Passage) if field.name != "vector")


@dataclass(frozen=True, kw_only=True)
class Transferred:
    """What became of it: documents and passages written, and those that were there already as they are."""

    collection: str
    documents: int = 0
    passages: int = 0
    unchanged: int = 0
    unchanged_passages: int = 0


class Transfer:
    """Between stores and files. `reserve_bytes` of disk stay free."""

    def __init__(self, store: VectorStore, *, reserve_bytes: int) -> None:
        self._store = store
        self._reserve_bytes = reserve_bytes

    async def rebuild(self, id: str, made: Made, embedder: Embedder, told: Moved | None = None) -> Transferred:
        """Make a collection anew with what is declared now, beside the one that is searched meanwhile, and put it in its
        place. What an attempt before this one made counts as unchanged. Raises UsageError when nothing to make it from."""
        building = id + _BUILDING
        there = await self._store.usage(id, None)
        if (was := there.made) is None:
            raise UsageError(f"collection {id!r} is empty: nothing to make it from", hint=f"groundhook kb add {id} PATH…")
        if not there.documents:  # an add that was refused has left it: the next one makes it as it is declared then
            await self._store.remove(id, None, None)
            return Transferred(collection=id)
        again = None if _same_vectors(was, made) else embedder
        await self._start(building, made)
        done = Transferred(collection=id)
        while True:
            changed = await self._catch_up(id, building, made, again, told, done)
            if changed == done and await self._store.swap(building, id):
                return done
            done = changed

    async def export(self, id: str, out: IO[str], told: Moved | None = None) -> Transferred:
        usage = await self._store.usage(id, None)
        if usage.made is None:
            raise UsageError(f"collection {id!r} is empty: there is nothing to export")
        made = {field.name: getattr(usage.made, field.name) for field in fields(Made)}
        await _write(out, [{"groundhook": "collection", "version": _VERSION, "collection": id, "made": made}])
        done, total = Transferred(collection=id), sum(stored.chunks for stored in usage.documents)
        for stored in usage.documents:
            document = await self._store.whole(id, stored.tenant, stored.document)
            if document is None:
                continue  # removed meanwhile
            await _write(out, _lines(document))
            done = _with(done, document)
            if told is not None:
                told(done.passages, total, document.document)
        await _write(out, [{"end": done.documents}])
        return done

    async def load(
        self, id: str, made: Made, embedder: Embedder, file: IO[str], told: Moved | None = None, *, embed: bool = False
    ) -> Transferred:
        """Add what `export` wrote to a collection as it is declared; `embed`: with new vectors. Raises ConfigError when it was
        made with another embedding and is not to be embedded, UsageError for another file, StorageError for one that was cut."""
        lines = _Lines(file)
        header = await lines.next()
        if header.get("groundhook") != "collection" or header.get("version") != _VERSION:
            raise UsageError(f"{lines.name!r} is no collection that `groundhook kb export` wrote")
        was = Made(**{field.name: header["made"][field.name] for field in fields(Made) if field.name in header["made"]})
        if made.language == "auto":
            made = replace(made, language=was.language)
        if not embed:
            _refuse_other_vectors(id, was, made)
        there = {(one.tenant, one.document): one for one in (await self._store.usage(id, None, made=made)).documents}
        filling = self._filling(id, made, embedder if embed else None, told)
        unchanged, passages = 0, 0
        try:
            while "end" not in (head := await lines.next()):
                document = await lines.document(head)
                known = there.get((document.tenant, document.document))
                if known is not None and known.fingerprint == document.fingerprint:
                    unchanged, passages = unchanged + 1, passages + known.chunks
                    filling.tell(document.document)
                else:
                    await filling.add(document)
        finally:  # what was read of a file that was cut counts
            await filling.flush()
        if head["end"] != filling.documents + unchanged:
            raise StorageError(f"{lines.name!r} says that it has {head['end']} documents and has another number")
        return Transferred(
            collection=id,
            documents=filling.documents,
            passages=filling.passages,
            unchanged=unchanged,
            unchanged_passages=passages,
        )

    def _filling(
        self, id: str, made: Made, embedder: Embedder | None, told: Moved | None, *, ready: int = 0, total: int = 0
    ) -> Filling:
        put = partial(self._store.put, id, made, reserve_bytes=self._reserve_bytes)
        return Filling(put, embedder, told, ready=ready, total=total)

    async def _start(self, building: str, made: Made) -> None:
        """Begin, or go on where an attempt before was stopped."""
        there = (await self._store.usage(building, None)).made
        try:
            if there is not None:
                agree(building, there, made)
        except ConfigError:
            await self._store.remove(building, None, None)

    async def _catch_up(
        self, id: str, building: str, made: Made, embedder: Embedder | None, told: Moved | None, done: Transferred
    ) -> Transferred:
        """Bring `building` to what `id` holds now."""
        wanted = {_key(one): one for one in (await self._store.usage(id, None)).documents}
        has = {_key(one): one for one in (await self._store.usage(building, None)).documents}
        for tenant, name, _ in has.keys() - wanted.keys():
            if not any(key[:2] == (tenant, name) for key in wanted):
                await self._store.remove(building, tenant, [name])
        kept = has.keys() & wanted.keys()
        total, ready = sum(one.chunks for one in wanted.values()), sum(has[key].chunks for key in kept)
        if not done.documents:  # nothing of it is from this attempt
            done = replace(done, unchanged=len(kept), unchanged_passages=ready)
        filling = self._filling(building, made, embedder, told, ready=ready, total=total)
        for key, stored in wanted.items():
            if key not in has and (document := await self._store.whole(id, stored.tenant, stored.document)) is not None:
                await filling.add(document)
        await filling.flush()
        return replace(done, documents=done.documents + filling.documents, passages=done.passages + filling.passages)


def _same_vectors(one: Made, other: Made) -> bool:
    return (one.provider, one.model, one.dimensions) == (other.provider, other.model, other.dimensions)


def _refuse_other_vectors(id: str, was: Made, made: Made) -> None:
    if not _same_vectors(was, made):
        raise ConfigError(
            f"the file's vectors are of {was.provider!r} {was.model!r} with {was.dimensions} dimensions, and collection {id!r} "
            f"is declared with {made.provider!r} {made.model!r} of {made.dimensions}",
            hint="add --embed to embed its texts anew, or declare the collection as it was",
        )


def _key(stored: Stored) -> tuple[str, str, str]:
    return stored.tenant, stored.document, stored.fingerprint


def _with(done: Transferred, document: Incoming) -> Transferred:
    return replace(done, documents=done.documents + 1, passages=done.passages + len(document.passages))


# ------------------------------------------------------------------------------------------------ lines


async def _write(out: IO[str], lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    await anyio.to_thread.run_sync(out.write, text)


def _lines(document: Incoming) -> list[dict[str, Any]]:
    head = {**vars(document), "fields": dict(document.fields), "passages": len(document.passages)}
    return [head, *(_line(passage) for passage in document.passages)]


def _line(passage: Passage) -> dict[str, Any]:
    return {
        **{name: getattr(passage, name) for name in _PASSAGE},
        "vector": base64.b64encode(passage.vector).decode("ascii"),
    }


class _Lines:
    """The lines of a file, one at a time."""

    def __init__(self, file: IO[str]) -> None:
        self.name = str(getattr(file, "name", "the file"))
        self.number = 0
        self._lines: Iterator[str] = iter(file)

    async def next(self) -> Mapping[str, Any]:
        return await anyio.to_thread.run_sync(self._next)

    async def document(self, head: Mapping[str, Any]) -> Incoming:
        """The document that a line begins."""
        try:
            return await anyio.to_thread.run_sync(self._document, head)
        except (KeyError, TypeError, ValueError) as exc:
            raise self._foreign(f"{exc!r}") from exc

    def _document(self, head: Mapping[str, Any]) -> Incoming:
        lines = [self._next() for _ in range(head["passages"])]
        passages = [Passage(**{**line, "vector": base64.b64decode(line["vector"])}) for line in lines]
        return Incoming(**{**head, "passages": tuple(passages)})

    def _next(self) -> Mapping[str, Any]:
        self.number += 1
        try:
            line = next(self._lines, "")
        except (OSError, EOFError, UnicodeDecodeError) as exc:
            raise StorageError(f"{self.name!r} cannot be read: {exc}") from exc
        if not line.endswith("\n"):
            raise StorageError(
                f"{self.name!r} was cut at line {self.number}", hint="export it again; what was read so far is added"
            )
        try:
            read: Mapping[str, Any] = json.loads(line)
        except ValueError as exc:
            raise self._foreign("no JSON") from exc
        if not isinstance(read, dict):
            raise self._foreign("no object")
        return read

    def _foreign(self, why: str) -> UsageError:
        return UsageError(f"{self.name!r} is no collection that `groundhook kb export` wrote (line {self.number}: {why})")
