"""The built-in document readers, by file ending. A reader imports its libraries when it is first
used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra, install
from groundhook.core.types.documents import Document, Reader


def _markdown(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.markdown import markdown

    return markdown(data, name)


def _plain(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.text import plain

    return plain(data, name)


def _html(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.html import html

    with _naming(name):
        return html(data, name)


def _rst(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.rst import rst

    with _naming(name):
        return rst(data, name)


def _adoc(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.adoc import adoc

    return adoc(data, name)


def _pdf(data: bytes, name: str) -> Document:
    with _naming(name), extra("documents", "reading PDF files", IngestError):
        from groundhook.handlers.kb.reading.pdf import pdf

    return pdf(data, name)


def _docx(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.docx import docx

    with _naming(name):
        return docx(data, name)


def _packaged(read: str) -> Reader:
    """Return a reader of the module `packaged`."""

    def reader(data: bytes, name: str) -> Document:
        from groundhook.handlers.kb.reading import packaged

        with _naming(name):
            found: Document = getattr(packaged, read)(data, name)
            return found

    return reader


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the name of the file to the error that is raised if the extra is not installed."""
    try:
        yield
    except IngestError as exc:
        if exc.hint != install("documents"):
            raise
        raise IngestError(f"{name!r} was not added: {exc.message}", hint=exc.hint) from exc


READERS: Mapping[str, Reader] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".mdx": _markdown,
    ".txt": _plain,
    ".text": _plain,
    ".rst": _rst,
    ".adoc": _adoc,
    ".asciidoc": _adoc,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".pdf": _pdf,
    ".docx": _docx,
    ".ipynb": _packaged("notebook"),
    ".eml": _packaged("mail"),
    ".xlsx": _packaged("workbook"),
    ".xls": _packaged("workbook"),
    ".ods": _packaged("workbook"),
    ".pptx": _packaged("slides"),
    ".epub": _packaged("book"),
}
TEXTS = frozenset((".md", ".markdown", ".mdx", ".txt", ".text", ".html", ".htm", ".xhtml"))
