"""Reads files that messages bring: with the readers of documents, cut as documents are.

Nothing is stored: a file is read when a turn needs it, and the newest texts stay in memory, by
content, with the vectors of their passages (`handlers.kb.attached_text`).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import anyio.to_thread

from groundhook.core.errors import IngestError
from groundhook.core.ports import Embedder
from groundhook.core.readers.pool import ReaderPool
from groundhook.core.types.attached import AttachedPassage
from groundhook.core.types.collection_spec import EmbeddingSpec
from groundhook.core.types.documents import Document, Reader
from groundhook.handlers.kb.attached_text import ReadText
from groundhook.handlers.kb.embed import embedding_tokens
from groundhook.handlers.kb.ingest.chunk import chunks
from groundhook.handlers.kb.ingest.parse import FileParser
from groundhook.handlers.kb.language import language_of
from groundhook.handlers.kb.reading.readers import READERS
from groundhook.handlers.kb.store.points import HEADINGS

PASSAGE_TOKENS = 400
MOST_PASSAGES = 5000  # of one file
MOST_KEPT = 20_000_000  # characters of texts in memory
_SAMPLE = 20_000  # characters by which the language of a text is recognised
# Endings of files that clients name by their type alone.
_ENDINGS = {
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/x-ipynb+json": ".ipynb",
    "application/xhtml+xml": ".html",
    "message/rfc822": ".eml",
    "text/asciidoc": ".adoc",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/x-rst": ".rst",
}


class AttachedFiles:
    """Implements `core.types.attached.AttachedReader`, with processes of `pool` for the built-in
    readers, and `embedder` for a search by meaning."""

    def __init__(
        self,
        pool: ReaderPool,
        embedder: Callable[[EmbeddingSpec], Embedder],
        readers: Mapping[str, Reader] = READERS,
    ) -> None:
        self._embedder = embedder
        self._parser = FileParser(pool, readers)
        self._readers = readers
        self._kept: OrderedDict[str, ReadText] = OrderedDict()

    async def read(self, name: str, media_type: str, data: bytes, /) -> ReadText:
        readable = self._readable_name(name, media_type, data)
        key = hashlib.sha256(f"{readable}\0".encode() + data).hexdigest()
        if found := self._kept.get(key):
            self._kept.move_to_end(key)
            return found
        (parsed,) = await self._parser.parse([(data, readable)])
        if isinstance(parsed, IngestError):
            message = parsed.message.replace("was not added", "was not read")
            raise IngestError(message, place=parsed.place, hint=parsed.hint)
        text = await anyio.to_thread.run_sync(partial(_cut, parsed, self._embedder))
        self._kept[key] = text
        while len(self._kept) > 1 and sum(map(_size, self._kept.values())) > MOST_KEPT:
            self._kept.popitem(last=False)
        return text

    def _readable_name(self, name: str, media_type: str, data: bytes) -> str:
        """Return the name with the ending of a reader: of its media type, or of plain text where
        the file is text of another kind, such as a program or a table."""
        if Path(name).suffix.lower() in self._readers:
            return name
        kind = media_type.partition(";")[0].strip().lower()
        if ending := _ENDINGS.get(kind):
            return f"{name}{ending}"
        return f"{name}.txt" if kind.startswith("text/") or _is_text(data) else name


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data[:1000]


def _cut(document: Document, embedder: Callable[[EmbeddingSpec], Embedder]) -> ReadText:
    """Return the text in passages: by section and page, and by size within both."""
    parts = chunks(document, size=PASSAGE_TOKENS, overlap=0, by="heading", count=embedding_tokens)
    notes = list(document.notes)
    if len(parts) > MOST_PASSAGES:
        notes.append(f"of its {len(parts)} passages the first {MOST_PASSAGES} are used")
    return ReadText(
        passages=[
            AttachedPassage(
                text=part.content,
                start=part.start,
                end=part.end,
                heading=HEADINGS.join(part.headings),
                page=part.page,
            )
            for part in parts[:MOST_PASSAGES]
        ],
        notes=notes,
        _language=language_of(document.text[:_SAMPLE]),
        _embedder=embedder,
    )


def _size(text: ReadText) -> int:
    return sum(len(each.text) for each in text.passages)
