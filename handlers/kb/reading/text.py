"""Decode text files, and split plain text into paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from groundhook.core.errors import IngestError, Place
from groundhook.core.types.documents import Block, Document

MARK = "\ufeff"  # the byte order mark, as a character
BINARY = "is binary, or UTF-16 without its mark"
AS_UTF_8 = "save it as UTF-8, or leave it out if it is binary"
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def encoding_of(beginning: bytes) -> str:
    """Return the encoding of the byte order mark; UTF-8 without one."""
    return next((encoding for mark, encoding in _MARKS if beginning.startswith(mark)), "utf-8")


def decode(data: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with `\\n` line ends, and notes on what was omitted from it. Raises
    IngestError for data that is not text."""
    encoding = encoding_of(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise IngestError(
            f"{name!r} was not added: byte {exc.start} is not {encoding.upper()}",
            hint="save it as UTF-8, or remove it if binary",
        ) from exc
    notes = stray_nuls(text.count("\0"), len(text), f"{name!r} was not added: it")
    # Programs that add a mark to a file that has one leave a second one in the text.
    return text.lstrip(MARK).replace("\0", " ").replace("\r\n", "\n").replace("\r", "\n"), notes


def stray_nuls(count: int, size: int, subject: str, place: Place | None = None) -> tuple[str, ...]:
    """Return the note on NUL characters in a text of this size: one, or one in a thousand, is
    damage. Raises IngestError, "<subject> is binary …", for more."""
    if count > max(1, size // 1000):
        raise IngestError(f"{subject} {BINARY}", place=place, hint=AS_UTF_8)
    plural = "s were" if count > 1 else " was"
    return (f"{count} NUL character{plural} read as blank",) if count else ()


def paragraphs(text: str, start: int = 0, end: int | None = None, page: int = 0) -> Iterator[Block]:
    """Yield the runs of lines between blank lines."""
    for found in re.compile(r"\S.*?(?=\n[ \t]*\n|\Z)", re.DOTALL).finditer(
        text, start, len(text) if end is None else end
    ):
        yield Block("paragraph", found.start(), found.end(), page=page)


def plain(data: bytes, name: str) -> Document:
    """Return the document in a plain text file. Raises IngestError."""
    text, notes = decode(data, name)
    return Document(stem(name), text, tuple(paragraphs(text)), notes=notes)


def stem(name: str) -> str:
    """Return the name of a file as a title: without its ending, `_` as spaces."""
    return Path(name).stem.replace("_", " ").strip() or name
