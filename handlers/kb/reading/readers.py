"""The built-in document readers, by file ending. A reader imports its libraries when it is first
used."""

from __future__ import annotations

from collections.abc import Mapping

from groundhook.host.core.types.documents import Document, Reader


def _markdown(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.markdown import markdown

    return markdown(data, name)


def _plain(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.text import plain

    return plain(data, name)


def _html(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.html import html

    return html(data, name)


def _pdf(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.pdf import pdf

    return pdf(data, name)


def _docx(data: bytes, name: str) -> Document:
    from groundhook.handlers.kb.reading.docx import docx

    return docx(data, name)


READERS: Mapping[str, Reader] = {
    ".md": _markdown,
    ".markdown": _markdown,
    ".mdx": _markdown,
    ".txt": _plain,
    ".text": _plain,
    ".rst": _plain,
    ".html": _html,
    ".htm": _html,
    ".xhtml": _html,
    ".pdf": _pdf,
    ".docx": _docx,
}
