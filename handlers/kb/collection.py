"""One collection on disk: vectors, the list of documents, and what it is made with.

`<state>/kb/<collection>/` holds `made.json` (embedding, language, tenants; written last, so that a folder without it is half
made and starts again), `manifest.sqlite` and `shard/`. Synchronous, for the worker process alone; `put` gives way
between batches, so that searches go on while a large document is stored.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from handlers.kb import fusion
from handlers.kb.edge import FIRST, ORDINALS, Analyser, NewPoint, Shard, shown_fields, stored_fields
from handlers.kb.language import UNSPACED, language_of, scripts, words_can_match
from handlers.kb.manifest import Manifest
from handlers.kb.store import Answer, Hit, Incoming, Made, Question, Stored, Usage, packed, unpacked
from host.errors import ConfigError, StorageError
from host.types.fields import Scalar
from host.types.filters import Filter

BATCH = 64  # points written before others get their turn
POOL = 64  # passages of each ranking that are fused, at least
_PRIOR_WORDS, _PRIOR_PASSAGES = 120, 32  # the mean length before a collection has one of its own
_MOST = (1 << ORDINALS) - 1
_KEPT = ("passage", "content", "heading", "page", "start", "end")


class Collection:
    """An open collection. Raises StorageError."""

    def __init__(self, id: str, folder: Path, made: Made, shard: Shard, manifest: Manifest) -> None:
        self.id = id
        self.made = made
        self._folder = folder
        self._shard = shard
        self._manifest = manifest
        self._question = Analyser(made.language, 1.0)

    @classmethod
    def open(cls, folder: Path, id: str) -> Collection | None:
        """The collection, cleared of what a killed process left; None when there is none."""
        try:
            made = Made(**json.loads((folder / "made.json").read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as exc:
            raise StorageError(f"collection {id!r} in {str(folder)!r} cannot be read: {exc}") from exc
        opened = cls(id, folder, made, Shard.load(folder / "shard"), Manifest(folder / "manifest.sqlite"))
        opened.sweep()
        return opened

    @classmethod
    def create(cls, folder: Path, id: str, made: Made, first: Incoming) -> Collection:
        if made.language == "auto":
            made = replace(made, language=language_of(" ".join(passage.text for passage in first.passages[:20])))
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            shard = Shard.create(folder / "shard", made.dimensions)
            manifest = Manifest(folder / "manifest.sqlite")
            shard.index_fields({}, made.fields)
            _write_made(folder, made)
        except OSError as exc:
            raise StorageError(f"collection {id!r} cannot be made in {str(folder)!r}: {exc.strerror or exc}") from exc
        return cls(id, folder, made, shard, manifest)

    def close(self) -> None:
        self._manifest.close()
        self._shard.close()

    def check(self, asked: Made) -> None:
        """Raises ConfigError when the collection was made with something else than is asked for now."""
        there, now = _worded(self.made), _worded(asked)
        same_language = asked.language in ("auto", self.made.language)
        if there == now and same_language:
            return
        if not same_language:
            there, now = f"analyser language {self.made.language!r}", f"{asked.language!r}"
        raise ConfigError(
            f"collection {self.id!r} was made with {there}, and is declared with {now}",
            hint=f"declare it as it was, or remove all its documents (`groundhook kb remove {self.id} ID…`) and add them again",
        )

    def declare(self, fields: Mapping[str, str]) -> None:
        """Bring the indexes of payload fields in line with what is declared now. Raises StorageError."""
        if self.made.fields == fields:
            return
        try:
            self._shard.index_fields(self.made.fields, fields)
            self.made = replace(self.made, fields=dict(fields))
            _write_made(self._folder, self.made)
        except OSError as exc:
            raise StorageError(f"collection {self.id!r} cannot be changed in {str(self._folder)!r}: {exc.strerror}") from exc

    def put(self, document: Incoming) -> Generator[int, None, Literal["added", "replaced"]]:
        """Store a document in place of its last version; yields after each batch how many passages are written, so that
        others get their turn. A document is shown whole when it is shown. One at a time."""
        if len(document.passages) > _MOST:
            raise StorageError(f"document {document.document!r} has more than {_MOST} passages", hint="split the file")
        lexical = Analyser(self.made.language, self._mean_length(document))
        counted = Counter[str]()
        for passage in document.passages:
            counted.update(scripts(passage.text))
        generation = self._manifest.begin(document, sum(self._length(passage.text) for passage in document.passages), counted)
        try:
            for start in range(0, len(document.passages), BATCH):
                self._shard.upsert(self._points(document, generation, start, lexical))
                yield min(start + BATCH, len(document.passages))
            self._shard.flush()
            replaced = self._manifest.commit(generation)
        except StorageError:
            with suppress(StorageError):  # what cannot be removed now stays hidden, and is removed when opened again
                self.sweep()
            raise
        self.sweep()
        return "replaced" if replaced else "added"

    def search(self, question: Question) -> Answer:
        fits = words_can_match(question.text, self._manifest.scripts)
        vector = unpacked(question.vector)
        words = self._question.question(question.text) if fits else None
        pool = max(POOL, 4 * question.limit)
        ranked = self._shard.rank(
            vector, words, limit=pool, tenant=question.tenant, hidden=self._manifest.hidden, among=question.filter
        )
        order = fusion.fuse(ranked.dense, ranked.words, ranked.cosines, limit=pool)
        enough = [id for id in order if ranked.cosines[id] >= question.least_cosine]
        return Answer(
            hits=self._hits({id: ranked.cosines[id] for id in enough[: question.limit]}, vectors=question.vectors),
            candidates=len(order),
            below=len(order) - len(enough),
            lexical="used" if ranked.words else "no match" if fits else "other script",
        )

    def facets(
        self, tenant: str | None, fields: Sequence[str], among: Filter | None, limit: int
    ) -> dict[str, list[tuple[Scalar, int]]]:
        known = {name: self.made.fields[name] for name in fields if name in self.made.fields}
        return self._shard.facets(known, tenant=tenant, hidden=self._manifest.hidden, among=among, limit=limit)

    def passages(self, tenant: str, document: str, ordinals: Sequence[int] | None = None) -> tuple[Hit, ...]:
        found = self._manifest.generation(tenant, document)
        if found is None:
            return ()
        generation, chunks = found
        wanted = range(chunks) if ordinals is None else [ordinal for ordinal in ordinals if 0 <= ordinal < chunks]
        return self._hits({generation << ORDINALS | ordinal: 1.0 for ordinal in wanted})

    def usage(self, tenant: str | None, documents: Sequence[str] | None = None) -> Usage:
        size = sum(path.stat().st_blocks * 512 for path in self._folder.rglob("*") if path.is_file())
        stored = self._manifest.stored(tenant, documents)
        return Usage(documents=tuple(stored), disk_bytes=size, language=self.made.language)

    def stored(self, tenant: str | None) -> list[Stored]:
        return self._manifest.stored(tenant)

    def relocate(self, tenant: str, urls: Mapping[str, str]) -> None:
        self._manifest.relocate(tenant, urls)

    def remove(self, documents: Sequence[Stored]) -> None:
        self._manifest.drop([(stored.tenant, stored.document) for stored in documents])
        self.sweep()

    def sweep(self) -> None:
        """Remove the points of versions that nobody is to see."""
        for generation in sorted(self._manifest.hidden):
            self._shard.delete_generation(generation)
            self._manifest.forget(generation)

    def _points(self, document: Incoming, generation: int, start: int, lexical: Analyser) -> list[NewPoint]:
        return [
            NewPoint(
                id=generation << ORDINALS | ordinal,
                vector=unpacked(passage.vector),
                words=lexical.document(passage.text),
                payload={
                    "generation": generation,
                    "tenant": document.tenant,
                    "document": document.document,
                    **({"fields": stored_fields(document.fields)} if document.fields else {}),
                    **({FIRST: 1} if ordinal == 0 else {}),
                    **{name: getattr(passage, name) for name in _KEPT},
                },
            )
            for ordinal, passage in enumerate(document.passages[start : start + BATCH], start)
        ]

    def _hits(self, cosines: Mapping[int, float], *, vectors: bool = False) -> tuple[Hit, ...]:
        """The passages of these points, in this order."""
        payloads = self._shard.payloads(list(cosines))
        brought = self._shard.vectors(list(cosines)) if vectors else {}
        hits = []
        for id, cosine in cosines.items():
            document, title, url = self._manifest.shown(id >> ORDINALS)
            kept = {name: payloads[id][name] for name in _KEPT}
            kept |= {"fields": shown_fields(payloads[id].get("fields", {}), self.made.fields)}
            vector = packed(brought[id]) if vectors else b""
            hits.append(Hit(document=document, title=title, url=url, ordinal=id & _MOST, cosine=cosine, vector=vector, **kept))
        return tuple(hits)

    def _mean_length(self, document: Incoming) -> float:
        """Words in a passage, by what is there, what is coming, and a little of what is usual."""
        coming = sum(self._length(passage.text) for passage in document.passages)
        words = self._manifest.words + coming + _PRIOR_WORDS * _PRIOR_PASSAGES
        return words / (self._manifest.chunks + len(document.passages) + _PRIOR_PASSAGES)

    def _length(self, text: str) -> int:
        """About how many words; about two letters each where no spaces part them."""
        return len(text) // 2 if self.made.language in UNSPACED else len(text.split())


def _write_made(folder: Path, made: Made) -> None:
    unfinished = folder / "made.json.new"
    unfinished.write_text(json.dumps(asdict(made), indent=2) + "\n", encoding="utf-8")
    unfinished.replace(folder / "made.json")


def _worded(made: Made) -> str:
    tenants = "with tenants" if made.tenanted else "without tenants"
    return f"embedding {made.provider!r} {made.model!r} of {made.dimensions} dimensions, {tenants}"
