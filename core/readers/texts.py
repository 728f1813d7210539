"""Reads texts that are no plain text, for turns and hooks: in processes (`core.readers.pool`) that
end when the turn, the hook or the search has no time left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from groundhook.core.readers.pool import ReaderPool

_Text = TypeVar("_Text", str, bytes)
T = TypeVar("T")


@dataclass(frozen=True)
class TextReaders:
    """`markdown` converts HTML: a function of a module."""

    pool: ReaderPool
    markdown: Callable[[str], str]

    async def html(self, html: str) -> str:
        """Return HTML as Markdown. Raises IngestError."""
        return await self.parse(self.markdown, html)

    async def pdf(self, data: bytes) -> list[str]:
        """Return the text of each page of a PDF file. Raises IngestError."""
        from groundhook.core.readers.pdf import pdf_pages

        return await self.parse(pdf_pages, data)

    async def parse(self, parser: Callable[[_Text], T], text: _Text) -> T:
        """Return `parser(text)`. It has no deadline but the caller's. Raises IngestError."""
        return await self.pool.call_within(math.inf, parser, text)
