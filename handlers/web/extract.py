"""From the bytes of a page to its text: the charset found out, menus and advertisements left aside,
PDF files read.

Runs in a process of its own (`handlers.web.reader`): pages are strangers' files, and a bad one
takes seconds and hundreds of megabytes.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from groundhook.host.core.errors import IngestError
from groundhook.host.readers.pdf import read_pdf

HTML = frozenset({"text/html", "application/xhtml+xml", "application/xml", "text/xml", ""})
TEXT = frozenset({"text/plain", "text/markdown", "text/x-markdown"})
PDF = frozenset({"application/pdf", "application/x-pdf"})
READABLE = "text/html, application/xhtml+xml, text/plain, text/markdown, application/pdf"

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.I)
_PROLOG = 1024  # bytes in which a page names its charset (HTML Standard, section 4.2.5.4)
# Labels that stand for a charset which has more characters (Encoding Standard, section 4.2).
_WIDER = {
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}


@dataclass(frozen=True)
class Page:
    """What is written on a page. `published` is its date in its own words."""

    title: str
    text: str
    published: str = ""


def warm() -> None:
    """Import what takes a while: a third of a second, and more on a busy machine."""
    import_module("trafilatura")


def page_of(body: bytes, media_type: str, charset: str) -> Page:
    """`media_type` and `charset` are what the server says, or empty. Raises IngestError for what is
    no text."""
    if body.startswith(b"%PDF-") or media_type in PDF:
        pdf = read_pdf(body)
        return Page(pdf.title, "\n\n".join(pdf.pages))
    if media_type in TEXT:
        return Page("", decoded(body, charset))
    if media_type not in HTML:
        raise IngestError(f"it is {media_type}, which is not read")
    return _from_html(decoded(body, charset))


def decoded(body: bytes, charset: str) -> str:
    """The text in the bytes. What marks their order says comes first, then the server, the page,
    UTF-8 where it fits, and a guess by the bytes themselves."""
    mark = next((encoding for mark, encoding in _MARKS if body.startswith(mark)), "")
    named = _META.search(body[:_PROLOG])
    for label in (mark, charset, named[1].decode("ascii") if named else "", "utf-8"):
        encoding = _encoding(label)
        if encoding and (label != "utf-8" or _fits(body, encoding)):
            return body.decode(encoding, "replace")
    from charset_normalizer import from_bytes

    best = from_bytes(body[:65536]).best()
    return body.decode(_encoding(best.encoding if best else "") or "utf-8", "replace")


def _fits(body: bytes, encoding: str) -> bool:
    try:
        body.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _encoding(label: str) -> str:
    """The codec of a charset of the web; "" for none, and for codecs of Python that are no
    charsets."""
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


def _from_html(html: str) -> Page:
    import trafilatura

    found: Any = trafilatura.bare_extraction(
        html,
        include_comments=False,
        include_tables=True,
        favor_recall=True,
        with_metadata=True,
        deduplicate=False,
    )
    if found is None or not (found.text or "").strip():
        raise IngestError("it has no text to read, without a browser that runs its scripts")
    return Page(found.title or "", found.text, found.date or "")
