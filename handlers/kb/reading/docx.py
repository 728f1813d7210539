"""Read Word documents (DOCX) by converting them to HTML. Headings, lists and tables follow the
styles; a footnote comes after the paragraph that refers to it; images, comments and hidden text are
omitted; tracked changes are read as accepted."""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.docx_parts import prepare_docx
from groundhook.handlers.kb.reading.hidden import hidden_words
from groundhook.handlers.kb.reading.html_markdown import markdown_of, parse_html
from groundhook.handlers.kb.reading.markdown import from_markdown
from groundhook.handlers.kb.reading.text import stem

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_STYLES = "p[style-name='Title'] => h1:fresh"  # beside those of the converter
_REFERENCES = 'a[id^="footnote-ref-"], a[id^="endnote-ref-"]'  # as the converter writes them
_BROKEN = (zipfile.BadZipFile, zlib.error, ElementTree.ParseError, ExpatError)
# Bytes of all parts, and of text, when unpacked: a small ZIP file can unpack to gigabytes.
_LARGEST, _MOST_TEXT = 512 << 20, 64 << 20
_TITLE = "{http://purl.org/dc/elements/1.1/}title"


def docx(data: bytes, name: str) -> Document:
    """Return the document. Raises IngestError for a file that is not DOCX, is encrypted or is too
    large when unpacked."""
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
        shown, hidden = prepare_docx(data)
        text = markdown_of(_html(shown))
    # The converter has no error class for broken files: it raises what its code runs into.
    except (*_BROKEN, OSError, LookupError, ValueError, TypeError, AttributeError) as exc:
        encrypted = data.startswith(b"\xd0\xcf\x11\xe0")
        reason = (
            "it is encrypted, or in the older format .doc"
            if encrypted
            else f"it is not a readable DOCX file: {exc}"
        )
        raise IngestError(
            f"{name!r} was not added: {reason}", hint="save it again as DOCX, without a password"
        ) from exc
    document = replace(from_markdown(text, name, front=False), notes=hidden_words(hidden))
    if title and document.title == stem(name):
        return replace(document, title=title)
    return document


def _html(data: bytes) -> BeautifulSoup:
    with extra("documents", "reading DOCX files", IngestError):
        import mammoth  # 40 ms with its parser, and few folders have such files

    no_images: Any = mammoth.images.img_element(lambda _: {})
    found: str = mammoth.convert_to_html(
        io.BytesIO(data), convert_image=no_images, style_map=_STYLES
    ).value
    soup = parse_html(found)
    _place_notes(soup)
    return soup


def _place_notes(soup: BeautifulSoup) -> None:
    """Move each footnote after the paragraph that refers to it. The converter collects them at the
    end of the document, where they would be in a chunk without their context."""
    # id of a top-level element → the last note that was placed after it
    last: dict[int, Tag] = {}
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
