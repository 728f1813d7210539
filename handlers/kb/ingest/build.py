"""Build what a store keeps of a document: read it, cut it, embed it. Imports no store.

The texts of all documents that are built together are embedded in order of length
(`handlers.kb.ingest.throttle`).
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Concatenate, ParamSpec, TypeVar

import anyio.to_thread

from groundhook.core.addresses import WEB
from groundhook.core.addresses import address as web_address
from groundhook.core.errors import IngestError, Place
from groundhook.core.ports import Embedder
from groundhook.core.types.collection_spec import CollectionSpec
from groundhook.core.types.documents import Document, DocumentField
from groundhook.core.types.fields import Fields, FieldType, FieldValue, field_value
from groundhook.handlers.kb.embed import (
    TokenCounter,
    embedding_tokens,
    in_context,
    without_markup,
)
from groundhook.handlers.kb.ingest.chunk import Chunk, chunks
from groundhook.handlers.kb.ingest.parse import FileParser, ParsedDocument
from groundhook.handlers.kb.ingest.sources import FEED, PlannedDocument, make_absolute
from groundhook.handlers.kb.ingest.throttle import CORES, Throttle, run_concurrently
from groundhook.handlers.kb.reading.files import failing_as
from groundhook.handlers.kb.store.messages import pack_vector
from groundhook.handlers.kb.store.points import HEADINGS
from groundhook.handlers.kb.store.port import FullDocument, Passage

_Result = TypeVar("_Result")

_FORMAT = b"3"  # increased when reading or cutting changes, so that documents are built again
# The same for one kind of file: the version of its reader.
_READ_BY = {
    ".md": ".md 4",
    ".markdown": ".markdown 4",
    ".mdx": ".mdx 4",
    ".rst": ".rst 2",
    ".pdf": ".pdf 7",
    ".docx": ".docx 5",
    ".html": ".html 6",
    ".htm": ".htm 6",
    ".xhtml": ".xhtml 6",
    ".ipynb": ".ipynb 2",
    ".eml": ".eml 2",
    ".xlsx": ".xlsx 2",
    ".xls": ".xls 2",
    ".ods": ".ods 2",
    ".pptx": ".pptx 2",
    ".epub": ".epub 2",
}
_FRONT_MATTER = ("title", "url")  # keys that front matter may have beside declared fields


@dataclass(frozen=True)
class LoadedDocument:
    """A document whose source was read. `fingerprint` changes with the source and with every
    setting that affects the result."""

    item: PlannedDocument
    fingerprint: str
    tenant: str
    data: bytes = b""


Given = TypeVar("Given", PlannedDocument, LoadedDocument)
More = ParamSpec("More")


@dataclass(frozen=True)
class ChunkedDocument:
    """A document cut into chunks. `undeclared` are fields of it that the collection does not
    declare."""

    loaded: LoadedDocument
    document: Document
    parts: Sequence[Chunk]
    fields: Fields
    undeclared: Collection[str]


@dataclass
class _BuiltPassage:
    """A passage that is being built. `owner` is the index of its document."""

    owner: int
    chunk: Chunk
    heading: str
    text: str
    vector: bytes = field(default=b"")


class DocumentBuilder:
    """Builds the documents of one add to one collection. `tenant` is that of all documents; if it
    is empty, each document names its own."""

    def __init__(
        self,
        spec: CollectionSpec,
        embedder: Embedder,
        tenant: str,
        parser: FileParser,
    ) -> None:
        self._parser = parser
        self._spec = spec
        self._embedder = embedder
        self._tenant = tenant
        self._count = (
            embedder.count_tokens if isinstance(embedder, TokenCounter) else embedding_tokens
        )
        self._throttle = Throttle(embedder)
        types = json.dumps(spec.types, sort_keys=True)
        self._settings = (
            _FORMAT,
            spec.chunk.model_dump_json().encode(),
            types.encode(),
            spec.rows.model_dump_json().encode(),
            *(scheme.encode() for scheme in spec.schemes),
        )

    async def load_all(
        self, items: Sequence[PlannedDocument]
    ) -> list[LoadedDocument | IngestError]:
        """Read the sources of items. An item that fails is its error."""
        found = await anyio.to_thread.run_sync(lambda: [_catch(self._load, each) for each in items])
        if self._tenant or not self._spec.tenant_field:
            return found
        # A file that names its own tenant is parsed twice, here and in `cut_all`: few files do, and
        # keeping the parsed document would hold it in memory until then.
        loaded = [each for each in found if isinstance(each, LoadedDocument)]
        parsed = zip(loaded, await self._parse(loaded), strict=True)
        named = iter([_catch(self._with_tenant, each, document) for each, document in parsed])
        return [next(named) if isinstance(each, LoadedDocument) else each for each in found]

    async def cut_all(
        self, loaded: Sequence[LoadedDocument]
    ) -> list[ChunkedDocument | IngestError]:
        """Parse documents and cut them into chunks. A document that fails is its error."""
        parsed = await self._parse(loaded)
        return await anyio.to_thread.run_sync(
            lambda: [
                _catch(self._cut, each, document)
                for each, document in zip(loaded, parsed, strict=True)
            ]
        )

    async def _parse(self, loaded: Sequence[LoadedDocument]) -> list[ParsedDocument]:
        """Return the documents of files and rows."""
        contents = [(each.data, str(each.item.file.path)) for each in loaded if not each.item.row]
        parsed = iter(await self._parser.parse(contents))
        return [each.item.row.document if each.item.row else next(parsed) for each in loaded]

    def _load(self, item: PlannedDocument) -> LoadedDocument:
        """Read the item's source and compute its fingerprint. Raises IngestError."""
        if item.error:
            raise IngestError(item.error)
        if item.row is not None:
            values = {name: each.value for name, each in item.row.document.fields.items()}
            content = json.dumps(values, sort_keys=True, default=str).encode()
            return LoadedDocument(
                item, self._fingerprint(b"row", content), self._tenant_of(item, item.row.document)
            )
        try:
            data = item.file.path.read_bytes()
        except OSError as exc:
            raise IngestError(
                f"{str(item.file.path)!r} cannot be read: {exc.strerror or exc}"
            ) from exc
        kind = item.file.path.suffix.lower()
        return LoadedDocument(
            item, self._fingerprint(_READ_BY.get(kind, kind).encode(), data), self._tenant, data
        )

    def _with_tenant(self, loaded: LoadedDocument, parsed: ParsedDocument) -> LoadedDocument:
        return replace(loaded, tenant=self._tenant_of(loaded.item, _document(parsed)))

    def _cut(self, loaded: LoadedDocument, parsed: ParsedDocument) -> ChunkedDocument:
        """Cut a document into chunks. Raises IngestError."""
        item, document = loaded.item, _document(parsed)
        spec = self._spec
        self._tenant_of(item, document)
        fields = fields_of(document.fields, spec.types, str(item.file.path))
        used = {*spec.fields, spec.tenant_field, *(item.row.used if item.row else _FRONT_MATTER)}
        parts = chunks(
            document,
            size=spec.chunk.size,
            overlap=spec.chunk.overlap,
            by=spec.chunk.by,
            count=self._count,
        )
        return ChunkedDocument(
            loaded, document, parts, fields, sorted(document.fields.keys() - used)
        )

    async def build(
        self, cuts: Sequence[ChunkedDocument], done: Callable[[ChunkedDocument, float, int], None]
    ) -> list[FullDocument]:
        """Embed the passages and return the documents for the store. `done` is called after every
        batch, for each document with passages in it: the document, the share of its text that is
        embedded (time is proportional to text), and the number of passages in the batch."""
        parts = [part for owner, cut in enumerate(cuts) for part in _start_passages(owner, cut)]
        length, finished = [0] * len(cuts), [0] * len(cuts)
        for part in parts:
            length[part.owner] += len(part.text)
        batches = self._batches(parts)

        async def work() -> None:
            for batch in batches:
                vectors = await self._throttle.embed([without_markup(part.text) for part in batch])
                for part, vector in zip(batch, vectors, strict=True):
                    part.vector = pack_vector(vector)
                    finished[part.owner] += len(part.text)
                passages = Counter(part.owner for part in batch)
                for owner, count in passages.items():
                    done(cuts[owner], finished[owner] / length[owner], count)

        # Also the parts of one large document: with one call at a time, cores would be idle at the
        # end of each.
        await run_concurrently(*[work] * CORES)
        return [
            _full_document(cut, [part for part in parts if part.owner == owner], self._spec.schemes)
            for owner, cut in enumerate(cuts)
        ]

    def portions(self, cuts: Sequence[ChunkedDocument]) -> Iterator[list[ChunkedDocument]]:
        """Yield the documents in groups that are embedded and stored together, each of at least two
        batches of texts. An add that is stopped loses one group for each core, and of that only
        vectors that are not in the cache."""
        portion: list[ChunkedDocument] = []
        for cut in cuts:
            portion.append(cut)
            if sum(len(each.parts) for each in portion) >= 2 * self._throttle.batch_size:
                yield portion
                portion = []
        if portion:
            yield portion

    def _batches(self, parts: Sequence[_BuiltPassage]) -> Iterator[list[_BuiltPassage]]:
        """Yield the parts of each call: all parts of one document for a model that embeds them in
        context, else parts of similar length."""
        if in_context(self._embedder):
            yield from (list(own) for _, own in groupby(parts, key=lambda part: part.owner))
        else:
            yield from self._throttle.batches(parts, lambda part: len(part.text))

    def _fingerprint(self, kind: bytes, data: bytes) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for part in (*self._settings, kind, data):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.hexdigest()

    def _tenant_of(self, item: PlannedDocument, document: Document) -> str:
        """Return the tenant of the document: that of the add, or the one that the document names.
        Raises IngestError if they differ or if neither names one."""
        name = self._spec.tenant_field
        named = document.fields.get(name) if name else None
        own = str(named.value).strip() if named is not None and named.value is not None else ""
        if self._tenant and own and own != self._tenant:
            raise IngestError(
                f"{_quoted_name(item)} was not added: it belongs to the tenant {own!r}, not to"
                f" {self._tenant!r}"
            )
        if name and not self._tenant and not own:
            hint = "set it there, or name the tenant with --tenant"
            raise IngestError(
                f"{_quoted_name(item)} was not added: it has no tenant in {name!r}", hint=hint
            )
        return self._tenant or own


def address(item: PlannedDocument) -> str:
    """Return the `file:` address of a document that has no address of its own; "" for a feed and
    for a file that is not kept."""
    gone = item.file.uploaded or item.file.source == FEED
    return "" if gone else make_absolute(item.file.path).as_uri()


def _catch(
    step: Callable[Concatenate[Given, More], _Result],
    given: Given,
    /,
    *more: More.args,
    **named: More.kwargs,
) -> _Result | IngestError:
    item = given.item if isinstance(given, LoadedDocument) else given
    try:
        with failing_as(f"{_quoted_name(item)} was not added"):
            return step(given, *more, **named)
    except IngestError as exc:
        return exc


def _document(parsed: ParsedDocument) -> Document:
    if isinstance(parsed, IngestError):
        raise parsed
    return parsed


def _quoted_name(item: PlannedDocument) -> str:
    return repr(item.document if item.row else str(item.file.path))


def _start_passages(owner: int, cut: ChunkedDocument) -> list[_BuiltPassage]:
    made = []
    for number, chunk in enumerate(cut.parts):
        heading = _heading(cut.document.title, chunk)
        about = cut.document.about if number == 0 else ""
        above = filter(None, (text_with_headings(cut.document.title, chunk), about))
        text = "\n\n".join((*above, chunk.content))
        made.append(_BuiltPassage(owner, chunk, heading, text))
    return made


def _full_document(
    cut: ChunkedDocument, parts: Sequence[_BuiltPassage], schemes: Sequence[str]
) -> FullDocument:
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
    return FullDocument(
        document=item.document,
        title=cut.document.title,
        fingerprint=cut.loaded.fingerprint,
        passages=passages,
        tenant=cut.loaded.tenant,
        url=web_address(cut.document.url, (*WEB, *schemes)) or address(item),
        bytes=len(cut.document.text.encode()) if item.row else len(cut.loaded.data),
        fields=cut.fields,
        source=item.file.source,
    )


def text_with_headings(title: str, chunk: Chunk) -> str:
    """Return the title of a document and the headings above a chunk of it."""
    return HEADINGS.join(filter(None, [title, _heading(title, chunk)]))


def _heading(title: str, chunk: Chunk) -> str:
    """Return the headings above a chunk, without a first one that repeats the title."""
    first = " ".join(chunk.headings[0].split()) if chunk.headings else ""
    # A title and a heading may differ in their blanks: "2.&nbsp;NEWS".
    repeats = bool(first) and first == " ".join(title.split())
    return HEADINGS.join(chunk.headings[1:] if repeats else chunk.headings)


def _passage_id(content: str, seen: dict[str, int]) -> str:
    """Return the id of a passage: a hash of its text, numbered where a document repeats itself."""
    digest = hashlib.blake2b(content.encode(), digest_size=6).hexdigest()
    seen[digest] = seen.get(digest, 0) + 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


def fields_of(
    metadata: Mapping[str, DocumentField], types: Mapping[str, FieldType], name: str
) -> dict[str, FieldValue]:
    """Return the declared fields that have a value. Raises IngestError, with file and line, for a
    value of another type."""
    fields: dict[str, FieldValue] = {}
    for key, type in types.items():
        if key not in metadata:
            continue
        try:
            value = field_value(metadata[key].value, type)
        except ValueError as exc:
            raise IngestError(
                f"was not added: {key!r} {exc}",
                place=Place(name, metadata[key].line),
                hint=f"`fields` declares it as {type}",
            ) from exc
        if value is not None:
            fields[key] = value
    return fields
