"""Word documents (DOCX) to documents, by way of HTML: headings, lists and tables as they are
styled; footnotes stand behind the paragraph that refers to them; images, comments and hidden text
are left out, and of changes that were tracked the last version counts."""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError

from groundhook.handlers.kb.reading.docx_parts import mended
from groundhook.handlers.kb.reading.hidden import hidden_words
from groundhook.handlers.kb.reading.html import markdown_of, parsed
from groundhook.handlers.kb.reading.markdown import from_markdown
from groundhook.handlers.kb.reading.text import stem
from groundhook.host.core.errors import IngestError
from groundhook.host.core.extras import extra
from groundhook.host.core.types.documents import Document

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_STYLES = "p[style-name='Title'] => h1:fresh"  # beside those of the converter
_REFERENCES = 'a[id^="footnote-ref-"], a[id^="endnote-ref-"]'  # as the converter writes them
_BROKEN = (zipfile.BadZipFile, zlib.error, ElementTree.ParseError, ExpatError)
_LARGEST, _MOST_TEXT = (
    512 << 20,
    64 << 20,
)  # bytes of all parts, and of text, when unpacked: a small file can hold very much
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def docx(data: bytes, name: str) -> Document:
    """Raises IngestError for what is no DOCX, or is encrypted."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            if sum(part.file_size for part in parts.infolist()) > _LARGEST:
                raise IngestError(
                    f"{name!r} was not added: unpacked it has more than {_LARGEST >> 20} MB"
                )
            if (
                sum(part.file_size for part in parts.infolist() if part.filename.endswith(".xml"))
                > _MOST_TEXT
            ):
                raise IngestError(
                    f"{name!r} was not added: unpacked it has more than {_MOST_TEXT >> 20} MB of"
                    " text"
                )
            title = _title(parts)
        shown, hidden = mended(data)
        text = markdown_of(_html(shown))
    # The converter meets broken files with whatever its own code raises.
    except (*_BROKEN, OSError, LookupError, ValueError, TypeError, AttributeError) as exc:
        encrypted = data.startswith(b"\xd0\xcf\x11\xe0")
        reason = (
            "it is encrypted, or in the format before DOCX"
            if encrypted
            else f"it is not a DOCX that can be read: {exc}"
        )
        raise IngestError(
            f"{name!r} was not added: {reason}", hint="save it anew as DOCX, without a password"
        ) from exc
    document = replace(from_markdown(text, name, front=False), notes=hidden_words(hidden))
    if title and document.title == stem(name):
        return replace(document, title=title)
    return document


def _html(data: bytes) -> BeautifulSoup:
    with extra("documents", "reading DOCX files", IngestError):
        import mammoth  # with its parser 40 ms, and few folders hold such files

    no_images: Any = mammoth.images.img_element(lambda _: {})
    found: str = mammoth.convert_to_html(
        io.BytesIO(data), convert_image=no_images, style_map=_STYLES
    ).value
    soup = parsed(found)
    _put_notes_in_place(soup)
    return soup


def _put_notes_in_place(soup: BeautifulSoup) -> None:
    """The converter gathers footnotes at the end, far from what they are about."""
    last: dict[
        int, Tag
    ] = {}  # of a part of the document, the note behind it that was put there last
    for reference in soup.select(_REFERENCES):
        note = soup.find(id=str(reference["href"]).removeprefix("#"))
        outer = list(reference.parents)[-2]
        marker = reference.get_text()
        raised = reference.parent
        (raised if raised is not None and raised.name == "sup" else reference).replace_with(marker)
        if note is None:
            continue
        for back in note.select('a[href*="note-ref-"]'):
            back.decompose()
        paragraph = soup.new_tag("p")
        paragraph.string = f"{marker} {' '.join(note.get_text(' ').split())}"
        last.get(id(outer), outer).insert_after(paragraph)
        last[id(outer)] = paragraph
        note.decompose()
    for gathered in soup.find_all("ol", recursive=False):
        if not gathered.get_text(strip=True):
            gathered.decompose()


def _title(parts: zipfile.ZipFile) -> str:
    try:
        core = ElementTree.fromstring(parts.read("docProps/core.xml"))
    except KeyError:
        return ""
    return (core.findtext(_TITLE) or "").strip()
