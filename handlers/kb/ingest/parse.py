"""Parse the files of an add: with the built-in readers in processes that a deadline kills
(`core.readers.pool`), with the readers of plug-ins in a thread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from groundhook.core.errors import IngestError
from groundhook.core.readers.pool import ReaderPool
from groundhook.core.types.documents import Document, Reader
from groundhook.core.workers import restore
from groundhook.handlers.kb.reading.files import (
    document_of,
    failing_as,
    read,
    read_files,
)
from groundhook.handlers.kb.reading.readers import READERS, TEXTS

MAX_FILE_S, MAX_MEGABYTE_S = 60.0, 20.0  # seconds to parse a file, and more for each megabyte of it
# Bytes of a text that is parsed in a thread: no parser takes long for so few, and to start a
# process for a single note would.
FEW = 2048

Content = tuple[bytes, str]  # of a file, and its name
ParsedDocument = Document | IngestError


class FileParser:
    """Parses with `readers`, by file ending; those of `READERS` run in processes of `pool`."""

    def __init__(self, pool: ReaderPool, readers: Mapping[str, Reader] = READERS) -> None:
        self._pool = pool
        self._readers = readers

    async def parse(self, contents: Sequence[Content]) -> list[ParsedDocument]:
        """Return the documents of the files. A file that cannot be read is its error."""
        apart = [content for content in contents if self._apart(*content)]
        here = [content for content in contents if not self._apart(*content)]
        near = iter(await anyio.to_thread.run_sync(lambda: list(map(self._read_here, here))))
        far = iter(await self._read_apart(apart))
        return [next(far if self._apart(*content) else near) for content in contents]

    def _apart(self, data: bytes, name: str) -> bool:
        suffix = Path(name).suffix.lower()
        built_in = suffix in READERS and self._readers.get(suffix) is READERS[suffix]
        return built_in and not (suffix in TEXTS and len(data) <= FEW)

    def _read_here(self, content: Content) -> ParsedDocument:
        try:
            with failing_as(f"{content[1]!r} was not added"):
                return read(*content, self._readers)
        except IngestError as exc:
            return exc

    async def _read_apart(self, contents: Sequence[Content]) -> list[ParsedDocument]:
        """Parse files in one request, since many are small. If it fails, each has its own, so that
        the one that is at fault is named and the others are read."""
        if not contents:
            return []
        megabytes = sum(len(data) for data, _ in contents) / 1e6
        try:
            answers = await self._pool.call_within(
                math.ceil(MAX_FILE_S + MAX_MEGABYTE_S * megabytes), read_files, contents
            )
        except IngestError as exc:
            if len(contents) == 1:
                return [IngestError(f"{contents[0][1]!r} was not added: {exc.message}")]
            return [each for one in contents for each in await self._read_apart([one])]
        return [_parsed(answer) for answer in answers]


def _parsed(answer: dict[str, Any]) -> ParsedDocument:
    if "error" not in answer:
        return document_of(answer)
    error = restore(answer["error"])
    if isinstance(error, IngestError):
        return error
    return IngestError(error.message, place=error.place, hint=error.hint)
