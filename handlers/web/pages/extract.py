"""Extraction of a page's text from its bytes: charset detection, main content of HTML without menus
and advertisements, and PDF files.

Runs in a process of its own (`core.readers.pool`): pages are untrusted, and a
malicious one costs seconds and hundreds of megabytes.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.core.readers.pdf import read_pdf

HTML = frozenset({"text/html", "application/xhtml+xml", "application/xml", "text/xml", ""})
TEXT = frozenset({"text/plain", "text/markdown", "text/x-markdown"})
PDF = frozenset({"application/pdf", "application/x-pdf"})
READABLE = "text/html, application/xhtml+xml, text/plain, text/markdown, application/pdf"

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*+=\s*+[\"']?\s*+([A-Za-z0-9_:.-]{1,40})", re.I)
_PROLOG = 1024  # bytes in which a page names its charset (HTML Standard, section 4.2.5.4)
# Labels that browsers decode as a larger charset (Encoding Standard, section 4.2).
_WIDER = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}


@dataclass(frozen=True)
class ExtractedPage:
    """A page's text. `published` is its date as the page writes it."""

    title: str
    text: str
    published: str = ""


def warm() -> None:
    """Import the slow libraries before the first page needs them: they take a third of a second."""
    with extra("web", "reading pages", IngestError):
        import_module("trafilatura")


def extract_page(body: bytes, media_type: str, charset: str) -> ExtractedPage:
    """Return the text of a page. `media_type` and `charset` are the server's, or "". Raises
    IngestError for a page that has no text or is of an unsupported type."""
    if body.startswith(b"%PDF-") or media_type in PDF:
        pdf = read_pdf(body)
        return ExtractedPage(pdf.title, "\n\n".join(pdf.pages))
    if media_type in TEXT:
        return ExtractedPage("", decode_text(body, charset))
    if media_type not in HTML:
        raise IngestError(f"its type {media_type} is not supported")
    return _extract_html(decode_text(body, charset))


def decode_text(body: bytes, charset: str) -> str:
    """Decode the bytes of a page. The charset is that of the byte order mark, else the server's,
    else the page's own, else UTF-8 if the bytes are valid, else a guess from the bytes."""
    mark = next((encoding for mark, encoding in _MARKS if body.startswith(mark)), "")
    named = _META.search(body[:_PROLOG])
    for label in (mark, charset, named[1].decode("ascii") if named else "", "utf-8"):
        encoding = _codec_name(label)
        if encoding and (label != "utf-8" or _decodes_as(body, encoding)):
            return body.decode(encoding, "replace")
    with extra("web", "reading pages", IngestError):
        from charset_normalizer import from_bytes

    best = from_bytes(body[:65536]).best()
    return body.decode(_codec_name(best.encoding if best else "") or "utf-8", "replace")


def _decodes_as(body: bytes, encoding: str) -> bool:
    try:
        body.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _codec_name(label: str) -> str:
    """Return the name of the codec for a charset label of the web; "" for unknown labels and for
    Python codecs that are not charsets."""
    try:
        codec = codecs.lookup(label.strip().strip("\"'"))
    except (LookupError, ValueError):
        return ""
    if not codec._is_text_encoding or codec.name in _NOT_ON_THE_WEB:
        return ""
    return _WIDER.get(codec.name, codec.name)


_NOT_ON_THE_WEB = frozenset(
    {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined"}
)


def _extract_html(html: str) -> ExtractedPage:
    with extra("web", "reading pages", IngestError):
        import trafilatura

    extracted: Any = trafilatura.bare_extraction(
        html,
        include_comments=False,
        include_tables=True,
        favor_recall=True,
        with_metadata=True,
        deduplicate=False,
    )
    if extracted is None or not (extracted.text or "").strip():
        raise IngestError("it has no text; scripts of the page are not run")
    return ExtractedPage(extracted.title or "", extracted.text, extracted.date or "")
