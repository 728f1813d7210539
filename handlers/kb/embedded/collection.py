"""One collection on disk: its vectors, the list of its documents, and its settings.

`folder` has the places of the files. Synchronous, and used by the worker process alone. `put`
yields between batches, so that searches are answered while a large document is stored.
"""

from __future__ import annotations

import shutil
import time
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice, repeat, starmap
from operator import attrgetter
from pathlib import Path
from typing import Any, Self

from groundhook.core.errors import StorageError
from groundhook.core.types.fields import Scalar
from groundhook.core.types.filters import Filter
from groundhook.handlers.kb.analyse import Analyser
from groundhook.handlers.kb.embedded.edge import ORDINALS, NewPoint, Shard
from groundhook.handlers.kb.embedded.folder import Contents, Folder, remedy, size
from groundhook.handlers.kb.embedded.manifest import Manifest, ManifestEntry
from groundhook.handlers.kb.embedded.point_cache import PointCache
from groundhook.handlers.kb.embedded.search import PointScores, Search
from groundhook.handlers.kb.embedded.shard_copy import ShardCopy
from groundhook.handlers.kb.store import points
from groundhook.handlers.kb.store.checks import (
    detect_language,
    refuse_other_settings,
    refuse_too_long,
    refuse_without_tenant,
)
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.port import (
    MOST_PASSAGES,
    CollectionSettings,
    CollectionUsage,
    DocumentRecord,
    FullDocument,
    Hit,
    MatchingDocument,
    PassageOrdinals,
    PutOutcome,
    VectorAnswer,
    VectorQuestion,
)

# New points after which a collection is optimised again, and the least share of all points that
# they must be.
_WORTH_POINTS, _WORTH_SHARE = 5_000, 0.2
# Changes are flushed to the disk after this number of points, after 10 s of writing, or after 1 s
# without a write. A flush takes longer than writing thousands of points.
_SYNC_POINTS = 16_384
_SYNC_S, _QUIET_S = 10.0, 1.0
_HITS = 1024  # passages that are cached as hits
# Longer passages are not cached: one with long runs of blanks may have millions of characters.
_LONG = 32_768
BATCH = 64  # points that are written before other requests are answered
assert MOST_PASSAGES < 1 << ORDINALS


class Collection:
    """An open collection. Raises StorageError."""

    def __init__(self, id: str, folder: Folder, contents: Contents) -> None:
        self.id = id
        self.settings = contents.settings
        self._folder = folder
        self._contents = contents
        self._manifest = Manifest(folder.path / contents.manifest)
        self._shard = Shard.load(folder.path / contents.shard)
        self.written_at = time.monotonic()
        self._unsynced, self._synced_at = 0, self.written_at  # points since the last `sync`
        self._checked_settings: Mapping[str, Any] = {}
        self._hits = PointCache(_HITS, self._read_hits, lambda hit: len(hit.content) > _LONG)
        self._search: Search = Search(
            self._manifest, contents.settings.language, lambda: self._shard
        )

    @classmethod
    def open(cls, path: Path, id: str) -> Self | None:
        """Open the collection and remove what a killed process left. None if it does not exist."""
        folder = Folder(path)
        contents = folder.read(id)
        if contents is None:
            return None
        folder.tidy(contents)
        listed = path / contents.manifest
        try:
            if not listed.exists() or not listed.stat().st_size:  # SQLite would create its tables
                raise StorageError(f"the list of documents {str(listed)!r} is missing or empty")
            opened = cls(id, folder, contents)
        except StorageError as exc:
            raise StorageError(exc.message, hint=remedy(id)) from exc
        for generation, chunks in opened._manifest.unsynced_versions().items():
            if opened._shard.count_generation(generation) != chunks:
                # The power failed: the document counts as missing until it is added again.
                opened._manifest.hide_lost(generation)
        opened.sweep()
        return opened

    @classmethod
    def create(
        cls, path: Path, id: str, settings: CollectionSettings, *first: FullDocument
    ) -> Self:
        settings = detect_language(settings, first)
        folder, contents = Folder(path), Contents(settings=settings)
        try:
            folder.begin()
            shard = Shard.create(path / contents.shard, settings)
            shard.index_fields({}, settings.fields)
            shard.close()
            Manifest(path / contents.manifest).close()
            folder.write(contents)
        except OSError as exc:
            raise StorageError(
                f"collection {id!r} cannot be created in {str(path)!r}: {exc.strerror or exc}"
            ) from exc
        return cls(id, folder, contents)

    def sync(self) -> None:
        """Flush all changes to the disk, so that they survive a power failure. A killed process
        loses nothing without it."""
        if self._unsynced:
            self._shard.flush()
            self._manifest.sync()
            self._unsynced, self._synced_at = 0, time.monotonic()

    def settle(self) -> None:
        """Call `sync` if nothing was put for a while, or if the last call is long ago."""
        now = time.monotonic()
        if now - self.written_at >= _QUIET_S or now - self._synced_at >= _SYNC_S:
            self.sync()

    def close(self) -> None:
        with suppress(StorageError):
            self.sync()
        self._manifest.close()
        self._shard.close()

    def discard(self) -> None:
        """Remove the collection. If that is interrupted, the collection counts as removed."""
        self.close()
        self._folder.remove()

    def replace(self, building: Collection) -> bool:
        """Move the files of `building` here and close both. Returns False, and changes nothing, if
        they do not hold the same documents."""
        if _document_versions(self) != _document_versions(building):
            return False
        self.close()
        building.close()
        target, source = self._folder, building._folder
        taken = Contents(
            settings=building.settings,
            shard=target.free_name("shard"),
            manifest=target.free_name("manifest", ".sqlite"),
        )
        try:
            source.forget()
            (source.path / building._contents.shard).rename(target.path / taken.shard)
            (source.path / building._contents.manifest).rename(target.path / taken.manifest)
            target.write(taken)
        except OSError as exc:
            raise StorageError(
                f"collection {self.id!r} stays as it was: {exc.strerror or exc}"
            ) from exc
        target.tidy(taken)
        shutil.rmtree(source.path, ignore_errors=True)
        return True

    def wants_optimising(self) -> bool:
        """Return whether enough was written since the last optimisation to do it again."""
        unindexed, points = self._shard.count_unindexed
        return unindexed >= max(_WORTH_POINTS, points * _WORTH_SHARE)

    def begin_copy(self) -> ShardCopy:
        """Return a copy of the vectors to be optimised. `catch_up` adds what is written later."""
        self._unsynced += 1
        self.sync()
        source = self._folder.path / self._contents.shard
        needed, free = size(source), shutil.disk_usage(source).free
        if free < 3 * needed:
            raise StorageError(
                f"it needs {3 * needed >> 20} MB of disk, and {free >> 20} MB are free"
            )
        path = self._folder.path / self._folder.free_name("shard")
        return ShardCopy(
            source, path, self._manifest.generations | self._manifest.hidden, self.settings.fields
        )

    def catch_up(self, copy: ShardCopy) -> Iterator[None]:
        """Bring a copy up to date, in steps."""
        copy.shard = shard = Shard.load(copy.path)
        shard.index_fields(copy.fields, self.settings.fields)
        here = self._manifest.generations
        for generation in sorted(copy.generations - here):
            shard.delete_generations([generation])
            yield
        for generation in sorted(here - copy.generations):
            for batch in self._shard.points_of(generation):
                shard.store_points(batch)
                yield
        shard.flush()

    def adopt(self, copy: ShardCopy) -> None:
        """Use the copy from now on. Raises OSError; then nothing has changed."""
        assert copy.shard is not None
        contents = replace(self._contents, shard=copy.path.name)
        self._folder.write(contents)
        old, self._shard, copy.shard, self._contents = self._shard, copy.shard, None, contents
        copy.path = copy.source  # `discard` removes the old one
        old.close()

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise ConfigError if the collection was made with other settings than these, which are
        `CollectionSettings` from a message."""
        if settings != self._checked_settings:  # most questions have the settings of the last one
            refuse_other_settings(self.id, self.settings, CollectionSettings(**settings))
            self._checked_settings = settings

    def declare(self, fields: Mapping[str, str]) -> None:
        """Update the indexes of payload fields to the declared ones. Raises StorageError."""
        if self.settings.fields == fields:
            return
        try:
            self._shard.index_fields(self.settings.fields, fields)
            self.settings = replace(self.settings, fields=dict(fields))
            self._hits.forget()
            self._contents = replace(self._contents, settings=self.settings)
            self._folder.write(self._contents)
        except OSError as exc:
            raise StorageError(
                f"collection {self.id!r} cannot be changed in {str(self._folder.path)!r}:"
                f" {exc.strerror}"
            ) from exc

    def put(self, *documents: FullDocument) -> Generator[int, None, list[PutOutcome]]:
        """Store documents in place of their last versions. Yields the number of passages written
        after each batch, so that other requests are answered. Searches see all documents of the
        call from the same moment on. One call at a time."""
        refuse_too_long(documents)
        entries = [ManifestEntry(document, self.settings.language) for document in documents]
        total = sum(len(document.passages) for document in documents)
        lexical = Analyser(self.settings.language)
        generations = self._manifest.begin(entries)
        try:
            new = chain.from_iterable(map(self._points, documents, generations, repeat(lexical)))
            for written in range(0, total, BATCH):
                self._shard.upsert(list(islice(new, BATCH)))
                yield min(written + BATCH, total)
            self._unsynced += total
            self.written_at = time.monotonic()
            if self._unsynced >= _SYNC_POINTS:
                self.sync()
            replaced = self._manifest.commit(generations)
        except StorageError:
            # What cannot be removed now stays hidden until the collection is opened again.
            with suppress(StorageError):
                self.sweep()
            raise
        self.sweep()
        return ["replaced" if each else "added" for each in replaced]

    def search(self, question: VectorQuestion) -> VectorAnswer:
        refuse_without_tenant(self.id, self.settings, question.tenant)
        page, answer = self._search.page(question)
        return replace(answer, hits=self._hits_of(page, vectors=question.vectors))

    def names(self, tenant: str | None, words: Sequence[str]) -> list[str]:
        """Return those of the words that name what the whole collection is about."""
        refuse_without_tenant(self.id, self.settings, tenant)
        return [word for word in words if self._search.is_name(word, tenant)]

    def facets(
        self, tenant: str | None, fields: Sequence[str], among: Filter | None, limit: int
    ) -> dict[str, list[tuple[Scalar, int]]]:
        refuse_without_tenant(self.id, self.settings, tenant)
        known = {
            name: self.settings.fields[name] for name in fields if name in self.settings.fields
        }
        return self._shard.facets(
            known, tenant=tenant, hidden=self._manifest.hidden, among=among, limit=limit
        )

    def count(self, tenant: str | None, among: Filter | None) -> int:
        """Count documents."""
        refuse_without_tenant(self.id, self.settings, tenant)
        hidden = self._manifest.hidden
        return self._shard.count(tenant=tenant, hidden=hidden, among=among, documents=True)

    def matching_documents(
        self, tenant: str | None, among: Filter | None
    ) -> list[MatchingDocument]:
        """Return the documents that fulfil a filter, ordered by id."""
        refuse_without_tenant(self.id, self.settings, tenant)
        found = self._shard.matching_documents(
            tenant=tenant, hidden=self._manifest.hidden, among=among
        )
        shown, types = self._manifest.document_info, self.settings.fields
        listed = [
            MatchingDocument(*shown(id >> ORDINALS), points.decode_fields(own, types))
            for id, own in found.items()
        ]
        return sorted(listed, key=attrgetter("document"))

    def passages(self, tenant: str, wanted: PassageOrdinals) -> dict[str, tuple[Hit, ...]]:
        """Look up passages of documents by id."""
        ids: dict[str, list[int]] = {}
        for document, ordinals in wanted.items():
            found = self._manifest.find_live(tenant, document)
            if found is not None:
                generation, chunks = found
                chosen = range(chunks) if ordinals is None else ordinals
                ids[document] = [
                    generation << ORDINALS | each for each in chosen if 0 <= each < chunks
                ]
        hits = self._read_hits([*chain.from_iterable(ids.values())])
        return {document: tuple(hits[id] for id in own) for document, own in ids.items()}

    def full_documents(self, documents: Sequence[tuple[str, str]]) -> list[FullDocument]:
        """Return documents, given as (tenant, document), as they were put."""
        found = filter(None, starmap(self._manifest.find_live, documents))
        ids = {
            version: range(version << ORDINALS, (version << ORDINALS) + chunks)
            for version, chunks in found
        }
        kept = self._shard.payloads_with_vectors([*chain.from_iterable(ids.values())])
        listed = self._manifest.document
        return [
            points.full_document(listed(one), [kept[id] for id in own], self.settings.fields)
            for one, own in ids.items()
        ]

    def usage(self, tenant: str | None) -> CollectionUsage:
        return CollectionUsage(
            documents=tuple(self._manifest.document_records(tenant)),
            disk_bytes=size(self._folder.path),
            settings=self.settings,
        )

    def document_records(self, tenant: str | None, **listing: Any) -> list[DocumentRecord]:
        """List documents, with the arguments of `Manifest.document_records`."""
        return self._manifest.document_records(tenant, **listing)

    def relocate(self, tenant: str, places: Mapping[str, Sequence[str]]) -> None:
        self._manifest.relocate(tenant, places)
        self._hits.forget()

    def remove(self, documents: Sequence[DocumentRecord]) -> None:
        self._manifest.drop([(stored.tenant, stored.document) for stored in documents])
        self.sweep()

    def sweep(self) -> None:
        """Remove the points of hidden versions."""
        hidden = sorted(self._manifest.hidden)
        for start in range(0, len(hidden), BATCH):
            some = hidden[start : start + BATCH]
            self._shard.delete_generations(some)
            self._manifest.forget(some)

    @property
    def shard_folder(self) -> Path:
        """The folder of the vectors that are searched now."""
        return self._folder.path / self._contents.shard

    def _points(
        self, document: FullDocument, generation: int, lexical: Analyser
    ) -> Iterator[NewPoint]:
        for ordinal, passage in enumerate(document.passages):
            yield NewPoint(
                id=generation << ORDINALS | ordinal,
                vector=array("f", passage.vector),
                words=lexical.document(passage.text),
                payload={
                    "generation": generation,
                    **points.point_payload(document, ordinal, self.settings.language),
                },
            )

    def _hits_of(self, found: Sequence[PointScores], *, vectors: bool) -> tuple[Hit, ...]:
        """Return the passages of these points, in this order."""
        ids = [each.id for each in found]
        hits = zip(self._hits.of(ids), found, strict=True)
        if not vectors:
            return tuple([hit.with_scores(cosine, words) for hit, (_, cosine, words) in hits])
        brought = self._shard.vectors(ids)
        return tuple(
            [
                hit.with_scores(cosine, words, pack_vector(brought[id]))
                for hit, (id, cosine, words) in hits
            ]
        )

    def _read_hits(self, ids: Sequence[int]) -> dict[int, Hit]:
        payloads = self._shard.payloads(ids)
        read = {}
        for id in ids:
            document, title, url = self._manifest.document_info(id >> ORDINALS)
            read[id] = points.make_hit(
                payloads[id],
                self.settings.fields,
                document=document,
                title=title,
                url=url,
                ordinal=id & MOST_PASSAGES,
            )
        return read


def _document_versions(collection: Collection) -> set[tuple[str, str, str]]:
    return {
        (stored.tenant, stored.document, stored.fingerprint)
        for stored in collection.document_records(None)
    }
