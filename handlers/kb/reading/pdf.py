"""PDF to documents: the text of each page, in the order in which the file has it."""

from __future__ import annotations

from handlers.kb.reading.document import Block, Document
from handlers.kb.reading.text import paragraphs, stem
from host.errors import IngestError
from host.pdf import read_pdf
from host.types.base import well_formed


def pdf(data: bytes, name: str) -> Document:
    """Raises IngestError."""
    try:
        found = read_pdf(data)
    except IngestError as exc:
        raise IngestError(f"{name!r} was not added: {exc.message}", hint=exc.hint) from exc
    text, blocks = "", list[Block]()
    for number, page in enumerate(found.pages, 1):
        start = len(text)
        text += well_formed(page) + "\n\n"
        blocks += paragraphs(text, start, page=number)
    return Document(well_formed(found.title) or stem(name), text, tuple(blocks))
