"""Decode text files, and split plain text into paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from groundhook.host.core.errors import IngestError
from groundhook.host.core.types.documents import Block, Document

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def encoding_of(beginning: bytes) -> str:
    """Return the encoding of the byte order mark; UTF-8 without one."""
    return next((encoding for mark, encoding in _MARKS if beginning.startswith(mark)), "utf-8")


def decoded(data: bytes, name: str) -> str:
    """Return the text with `\\n` line ends. Raises IngestError for data that is not text."""
    encoding = encoding_of(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise IngestError(
            f"{name!r} was not added: byte {exc.start} is not {encoding.upper()}",
            hint="save it as UTF-8, or remove it if binary",
        ) from exc
    if "\0" in text:
        raise binary(name)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def binary(name: str) -> IngestError:
    """Return the error for a binary file with the ending of a text file."""
    return IngestError(
        f"{name!r} was not added: it is binary, not text",
        hint="its ending is that of a text file; rename it or leave it out",
    )


def paragraphs(text: str, start: int = 0, end: int | None = None, page: int = 0) -> Iterator[Block]:
    """Yield the runs of lines between blank lines."""
    for found in re.compile(r"\S.*?(?=\n[ \t]*\n|\Z)", re.DOTALL).finditer(
        text, start, len(text) if end is None else end
    ):
        yield Block("paragraph", found.start(), found.end(), page=page)


def plain(data: bytes, name: str) -> Document:
    """Return the document in a plain text file. Raises IngestError."""
    text = decoded(data, name)
    return Document(stem(name), text, tuple(paragraphs(text)))


def stem(name: str) -> str:
    """Return the name of a file as a title: without its ending, `_` as spaces."""
    return Path(name).stem.replace("_", " ").strip() or name
