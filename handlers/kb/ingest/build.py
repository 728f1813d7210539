"""Documents to be made into what a store keeps: read, cut, embedded. Knows no store.

Texts are embedded sorted by length, over all documents that are made together
(`handlers.kb.ingest.throttle`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

import anyio.to_thread

from groundhook.handlers.kb.embed import CountsTokens, estimated_tokens, in_context
from groundhook.handlers.kb.ingest.chunk import Chunk, chunks
from groundhook.handlers.kb.ingest.payload import fields_of
from groundhook.handlers.kb.ingest.sources import FEED, Item, absolute
from groundhook.handlers.kb.ingest.throttle import Pace
from groundhook.handlers.kb.points import HEADINGS
from groundhook.handlers.kb.reading.files import read, told_as
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.store import Incoming, Passage, packed
from groundhook.host.core.addresses import address as web_address
from groundhook.host.core.errors import IngestError
from groundhook.host.core.ports import Embedder
from groundhook.host.core.types.documents import Document, Reader
from groundhook.host.core.types.fields import Fields
from groundhook.host.core.types.specs import CollectionSpec

Made = TypeVar("Made")

_FORMAT = b"3"  # raised when reading or cutting changes, so that documents are made anew
# The same for one kind of file: what its reader is.
_READ_BY = {
    ".md": ".md 2",
    ".markdown": ".markdown 2",
    ".mdx": ".mdx 2",
    ".pdf": ".pdf 6",
    ".docx": ".docx 3",
    ".html": ".html 3",
    ".htm": ".htm 3",
    ".xhtml": ".xhtml 3",
}
_SHOWN = ("title", "url")  # what front matter may say beside declared fields


@dataclass(frozen=True)
class Loaded:
    """A document whose source was read. `fingerprint` says what would be made of it now."""

    item: Item
    fingerprint: str
    tenant: str
    data: bytes = b""


Given = TypeVar("Given", Item, Loaded)


@dataclass(frozen=True)
class Cut:
    """A document in its parts."""

    loaded: Loaded
    document: Document
    parts: Sequence[Chunk]
    fields: Fields
    undeclared: Collection[str]


@dataclass
class _Part:
    """A passage under way."""

    owner: int
    chunk: Chunk
    heading: str
    text: str
    vector: bytes = field(default=b"")


class Making:
    """For one collection and one add. `tenant` is that of all documents; where it is empty, each
    says its own."""

    def __init__(
        self,
        spec: CollectionSpec,
        embedder: Embedder,
        tenant: str,
        readers: Mapping[str, Reader] = READERS,
    ) -> None:
        self._readers = readers
        self._spec = spec
        self._embedder = embedder
        self._tenant = tenant
        self._count = (
            embedder.count_tokens if isinstance(embedder, CountsTokens) else estimated_tokens
        )
        self._pace = Pace(embedder)
        types = json.dumps(spec.types, sort_keys=True)
        self._made_by = (
            _FORMAT,
            spec.chunk.model_dump_json().encode(),
            types.encode(),
            spec.rows.model_dump_json().encode(),
        )

    def load(self, item: Item) -> Loaded:
        """Raises IngestError."""
        if item.error:
            raise IngestError(item.error)
        if item.row is not None:
            said = {name: each.value for name, each in item.row.document.fields.items()}
            told = json.dumps(said, sort_keys=True, default=str).encode()
            return Loaded(
                item, self._fingerprint(b"row", told), self._tenant_of(item, item.row.document)
            )
        try:
            data = item.file.path.read_bytes()
        except OSError as exc:
            raise IngestError(
                f"{str(item.file.path)!r} cannot be read: {exc.strerror or exc}"
            ) from exc
        # A file that says its own tenant is read for it here, and once more when it is cut: few do.
        own = self._spec.tenant_field and not self._tenant
        tenant = (
            self._tenant_of(item, read(data, str(item.file.path), self._readers))
            if own
            else self._tenant
        )
        kind = item.file.path.suffix.lower()
        return Loaded(
            item, self._fingerprint(_READ_BY.get(kind, kind).encode(), data), tenant, data
        )

    def cut(self, loaded: Loaded) -> Cut:
        """Raises IngestError."""
        item = loaded.item
        document = (
            item.row.document if item.row else read(loaded.data, str(item.file.path), self._readers)
        )
        spec = self._spec
        self._tenant_of(item, document)
        fields = fields_of(document.fields, spec.types, str(item.file.path))
        used = {*spec.fields, spec.tenant_field, *(item.row.used if item.row else _SHOWN)}
        parts = chunks(
            document,
            size=spec.chunk.size,
            overlap=spec.chunk.overlap,
            by=spec.chunk.by,
            count=self._count,
        )
        return Cut(loaded, document, parts, fields, sorted(document.fields.keys() - used))

    async def made(
        self, cuts: Sequence[Cut], done: Callable[[Cut, float, int], None]
    ) -> list[Incoming]:
        """The documents with their vectors; `done` is called with a document, what share of its
        text is embedded (the time goes by the text), and how many more passages that is."""
        parts = [part for owner, cut in enumerate(cuts) for part in _parts(owner, cut)]
        length, finished = [0] * len(cuts), [0] * len(cuts)
        for part in parts:
            length[part.owner] += len(part.text)
        for together in self._batches(parts):
            vectors = await self._pace.embed([part.text for part in together])
            for part, vector in zip(together, vectors, strict=True):
                part.vector = packed(vector)
                finished[part.owner] += len(part.text)
            passages = Counter(part.owner for part in together)
            for owner, count in passages.items():
                done(cuts[owner], finished[owner] / length[owner], count)
        return [
            _incoming(cut, [part for part in parts if part.owner == owner])
            for owner, cut in enumerate(cuts)
        ]

    def portions(self, cuts: Sequence[Cut]) -> Iterator[list[Cut]]:
        """Documents in the groups that are embedded and stored together, two batches or more of
        texts: an add that is stopped has lost one group of each core, and of that only what no
        cache holds."""
        portion: list[Cut] = []
        for cut in cuts:
            portion.append(cut)
            if sum(len(each.parts) for each in portion) >= 2 * self._pace.together:
                yield portion
                portion = []
        if portion:
            yield portion

    def _batches(self, parts: Sequence[_Part]) -> Iterator[list[_Part]]:
        """What is embedded in one call: the parts of a document where they know each other, else
        parts of about one length."""
        if in_context(self._embedder):
            yield from (list(own) for _, own in groupby(parts, key=lambda part: part.owner))
        else:
            yield from self._pace.batches(parts, lambda part: len(part.text))

    def _fingerprint(self, kind: bytes, data: bytes) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for part in (*self._made_by, kind, data):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    def _tenant_of(self, item: Item, document: Document) -> str:
        """Whose the document is: the add's tenant, or what the document itself says, which may not
        be another."""
        name = self._spec.tenant_field
        said = document.fields.get(name) if name else None
        own = str(said.value).strip() if said is not None and said.value is not None else ""
        if self._tenant and own and own != self._tenant:
            raise IngestError(
                f"{_shown(item)} was not added: it belongs to the tenant {own!r}, and is added for"
                f" {self._tenant!r}"
            )
        if name and not self._tenant and not own:
            hint = "say it there, or add it for one with --tenant"
            raise IngestError(
                f"{_shown(item)} was not added: it says no tenant in {name!r}", hint=hint
            )
        return self._tenant or own


async def prepared(making: Making, items: Sequence[Item]) -> list[Loaded | IngestError]:
    """Items with their fingerprints, read in a thread; or why not."""
    return await anyio.to_thread.run_sync(lambda: [_caught(making.load, item) for item in items])


async def cut_up(making: Making, loaded: Sequence[Loaded]) -> list[Cut | IngestError]:
    """Documents in parts, cut in a thread; or why not."""
    return await anyio.to_thread.run_sync(lambda: [_caught(making.cut, each) for each in loaded])


def address(item: Item) -> str:
    """Where a document without an address of its own is found."""
    return "" if item.file.source == FEED else absolute(item.file.path).as_uri()


def _caught(step: Callable[[Given], Made], given: Given) -> Made | IngestError:
    item = given.item if isinstance(given, Loaded) else given
    try:
        with told_as(f"{_shown(item)} was not added"):
            return step(given)
    except IngestError as exc:
        return exc


def _shown(item: Item) -> str:
    return repr(item.document if item.row else str(item.file.path))


def _parts(owner: int, cut: Cut) -> list[_Part]:
    made = []
    for chunk in cut.parts:
        heading = _heading(cut.document.title, chunk)
        text = f"{headed(cut.document.title, chunk)}\n\n{chunk.content}"
        made.append(_Part(owner, chunk, heading, text))
    return made


def _incoming(cut: Cut, parts: Sequence[_Part]) -> Incoming:
    seen: dict[str, int] = {}
    passages = tuple(
        Passage(
            passage=_passage_id(part.chunk.content, seen),
            content=part.chunk.content,
            text=part.text,
            vector=part.vector,
            heading=part.heading,
            page=part.chunk.page,
            start=part.chunk.start,
            end=part.chunk.end,
            gap=part.chunk.gap,
        )
        for part in parts
    )
    item = cut.loaded.item
    return Incoming(
        document=item.document,
        title=cut.document.title,
        fingerprint=cut.loaded.fingerprint,
        passages=passages,
        tenant=cut.loaded.tenant,
        url=web_address(cut.document.url) or address(item),
        bytes=len(cut.document.text.encode()) if item.row else len(cut.loaded.data),
        fields=cut.fields,
        source=item.file.source,
    )


def headed(title: str, chunk: Chunk) -> str:
    """The title of a document with the headings that lead to a chunk of it."""
    return HEADINGS.join(filter(None, [title, _heading(title, chunk)]))


def _heading(title: str, chunk: Chunk) -> str:
    """The headings that lead to a chunk, without one that only says the title again."""
    return HEADINGS.join(chunk.headings[1:] if chunk.headings[:1] == (title,) else chunk.headings)


def _passage_id(content: str, seen: dict[str, int]) -> str:
    """What a passage is called as long as its text stays: a hash of it, numbered where a document
    repeats itself."""
    digest = hashlib.blake2b(content.encode(), digest_size=6).hexdigest()
    seen[digest] = seen.get(digest, 0) + 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
