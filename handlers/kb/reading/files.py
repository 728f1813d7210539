"""Files to documents, by their endings.

Markdown, HTML and DOCX (as Markdown), PDF and plain text. A block is a range of the document's text, so nothing is lost on the
way and every passage can say which characters it is. It refuses what it cannot read, with an IngestError that names the file;
it knows nothing of chunks. Files whose rows are documents are read by `rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from handlers.kb.reading.document import Document
from handlers.kb.reading.docx import docx
from handlers.kb.reading.html import html
from handlers.kb.reading.markdown import markdown
from handlers.kb.reading.pdf import pdf
from handlers.kb.reading.rows import TABLES, has_rows
from handlers.kb.reading.text import plain
from host.errors import IngestError

Reader = Callable[[bytes, str], Document]
READERS: Mapping[str, Reader] = {
    ".md": markdown,
    ".markdown": markdown,
    ".mdx": markdown,
    ".txt": plain,
    ".text": plain,
    ".rst": plain,
    ".html": html,
    ".htm": html,
    ".xhtml": html,
    ".pdf": pdf,
    ".docx": docx,
}


def read(data: bytes, name: str) -> Document:
    """The document in the bytes of the file `name`, whose suffix says what it is. Raises IngestError."""
    suffix = Path(name).suffix.lower()
    reader = READERS.get(suffix)
    if reader is None:
        raise IngestError(
            f"{name!r} was not added: files ending in {suffix or 'nothing'!r} cannot be read",
            hint=f"these can: {', '.join(sorted([*READERS, *TABLES]))}",
        )
    document = reader(data, name)
    if document.empty:
        raise IngestError(f"{name!r} was not added: it is empty", hint="nothing to search for in it")
    return document


def readable(name: str) -> bool:
    """Whether files that end like this one can be read, as a document or as rows."""
    return Path(name).suffix.lower() in READERS or has_rows(name)
