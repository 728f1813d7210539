"""Read HTML by converting it to Markdown."""

from __future__ import annotations

from codecs import lookup
from dataclasses import replace
from typing import TYPE_CHECKING

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.core.types.documents import Document
from groundhook.handlers.kb.reading.hidden import hidden_words
from groundhook.handlers.kb.reading.html_links import remove_links
from groundhook.handlers.kb.reading.html_markdown import (
    markdown_of,
    parse_html,
    remove_hidden,
    remove_non_text,
)
from groundhook.handlers.kb.reading.markdown import from_markdown
from groundhook.handlers.kb.reading.text import MARK, encoding_of, stray_nuls

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

# Declared encodings that browsers read as larger ones.
AS_BROWSERS = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "l1", "ascii", "us-ascii"), "cp1252"),
    **dict.fromkeys(("iso-8859-9", "latin5", "latin-5"), "cp1254"),
    **dict.fromkeys(("iso-8859-11", "tis-620", "windows-874"), "cp874"),
    **dict.fromkeys(("gbk", "gb2312", "gb-2312-80", "x-gbk"), "gb18030"),
    **dict.fromkeys(("shift-jis", "sjis", "x-sjis", "ms932", "windows-31j"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks-c-5601-1987", "korean"), "cp949"),
    "big5": "big5hkscs",
}
_DECLARED = 4096  # bytes of a page that may declare its encoding


def shown_part(html: str) -> tuple[str, int]:
    """Return a page of a larger document as Markdown, without lists of links and what it hides, and
    how many words it hides."""
    soup = parse_html(html)
    remove_non_text(soup)
    hidden = remove_hidden(soup)
    remove_links(soup)
    return markdown_of(soup), hidden


def html(data: bytes, name: str) -> Document:
    """Return the document. Raises IngestError for binary data."""
    notes: tuple[str, ...] = ()
    if b"\0" in data and encoding_of(data) == "utf-8":
        notes = stray_nuls(data.count(b"\0"), len(data), f"{name!r} was not added: it")
        data = data.replace(b"\0", b" ")
    soup = parse_html(_decoded(data))
    named = soup.select_one("title:not(svg title)")  # a picture may have one, too
    title = " ".join(named.get_text(" ").lstrip(MARK).split()) if named else ""
    canonical = soup.find("link", rel="canonical")
    address = str(canonical.get("href") or "") if canonical else ""
    remove_non_text(soup)
    hidden = remove_hidden(soup)
    remove_links(soup)
    document = from_markdown(markdown_of(soup).lstrip(MARK), name, front=False)
    url = address if address.startswith(("http://", "https://")) else ""
    return replace(
        document,
        title=title or document.title,
        url=url,
        notes=(*notes, *_encoding_note(soup), *hidden_words(hidden)),
    )


def _decoded(data: bytes) -> str | bytes:
    """Return a page that declares a legacy encoding as text, as browsers decode it."""
    if encoding_of(data) != "utf-8":
        return data
    with extra("documents", "reading HTML files", IngestError):
        from bs4.dammit import EncodingDetector

    declared = EncodingDetector.find_declared_encoding(data[:_DECLARED], is_html=True)
    label = (declared or "").lower().strip()
    try:
        codec = lookup(AS_BROWSERS.get(label.replace("_", "-"), label)).name
    except LookupError:
        return data
    if not declared or codec.startswith("utf"):
        return data  # what is not UTF-8 is guessed
    return data.decode(codec, "replace")


def _encoding_note(soup: BeautifulSoup) -> tuple[str, ...]:
    """Return a note for a page that declares no encoding."""
    read_as = (soup.original_encoding or "utf-8").lower()
    if (
        soup.declared_html_encoding
        or soup.contains_replacement_characters
        or read_as.startswith(("utf", "ascii"))
    ):
        return ()
    return (
        (
            f"it declares no encoding and was read as {read_as}, which is a guess (save it as"
            ' UTF-8, or add <meta charset="…">)'
        ),
    )
