"""Read notebooks, e-mails, workbooks, slides and e-books by what is text in them, as Markdown."""

from __future__ import annotations

import email
import email.policy
import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from email.message import EmailMessage
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.core.json_text import read_json
from groundhook.core.types.base import well_formed
from groundhook.core.types.documents import Block, BlockKind, Document
from groundhook.handlers.kb.reading.html_markdown import markdown_of
from groundhook.handlers.kb.reading.markdown import from_markdown
from groundhook.handlers.kb.reading.text import decode, stem

_LARGEST = 256 << 20  # bytes of an archive when unpacked: a small one can unpack to gigabytes
_MOST_CELLS = 2_000_000  # of a workbook
_HEADERS = ("From", "To", "Cc", "Date")
_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")


def notebook(data: bytes, name: str) -> Document:
    """Return the document in a Jupyter notebook: its texts, code, and results that are text."""
    text, notes = decode(data, name)
    try:
        found = read_json(text)
        cells = [dict(cell) for cell in found["cells"]]
    except (ValueError, TypeError, LookupError) as exc:
        raise IngestError(f"{name!r} was not added: it is no notebook: {exc}") from exc
    written = "\n\n".join(part for cell in cells for part in _cell(cell) if part.strip())
    document = from_markdown(written, name, front=False)
    return replace(document, notes=notes)


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = _joined(cell.get("source"))
    if cell.get("cell_type") != "code":
        yield source
        return
    yield _fenced(source)
    for output in cell.get("outputs") or ():
        shown = output.get("text") or (output.get("data") or {}).get("text/plain")
        yield _fenced(_joined(shown))


def _joined(lines: Any) -> str:
    return "".join(map(str, lines)) if isinstance(lines, list) else str(lines or "")


def _fenced(code: str) -> str:
    return f"~~~~\n{code.rstrip()}\n~~~~" if code.strip() else ""


def mail(data: bytes, name: str) -> Document:
    """Return the document in an e-mail: its subject, who wrote to whom when, and its text."""
    message = email.message_from_bytes(data, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    body = message.get_body(("plain", "html"))
    content = str(body.get_content()) if body is not None else ""
    if body is not None and body.get_content_type() == "text/html":
        content = markdown_of(content)
    subject = " ".join(str(message["Subject"] or "").split()) or stem(name)
    heads = [f"{head}: {message[head]}" for head in _HEADERS if message[head]]
    attached = [part.get_filename() for part in message.iter_attachments()]
    named = [f"attachment {file!r} was not read" for file in attached if file]
    written = well_formed("\n\n".join([f"# {subject}", "\n".join(heads), content]))
    return replace(from_markdown(written, name, front=False), title=subject, notes=tuple(named))


def workbook(data: bytes, name: str) -> Document:
    """Return the document in a workbook: a table for each sheet, under its name."""
    sheets = sheets_of(data, name)
    parts = [f"# {sheet}\n\n{_table(rows)}" for sheet, rows in sheets if any(map(any, rows))]
    document = from_markdown("\n\n".join(parts), name, front=False)
    return replace(document, title=stem(name))


def sheets_of(data: bytes, name: str, *, whole: bool = False) -> list[tuple[str, list[list[Any]]]]:
    """Return the sheets of a workbook, each with the cells of its rows: numbers, texts, dates; ""
    for an empty cell. `whole`: with empty rows and columns before the first cell. Raises
    IngestError."""
    with extra("documents", "reading workbooks", IngestError):
        from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = [
            (sheet, book.get_sheet_by_name(sheet).to_python(skip_empty_area=not whole))
            for sheet in book.sheet_names
        ]
    except (CalamineError, OSError, ValueError) as exc:
        raise IngestError(f"{name!r} was not added: it is no readable workbook: {exc}") from exc
    if sum(map(len, (row for _, rows in sheets for row in rows))) > _MOST_CELLS:
        raise IngestError(f"{name!r} was not added: it has more than {_MOST_CELLS} cells")
    return sheets


def _table(rows: Sequence[Sequence[Any]]) -> str:
    filled = [row for row in rows if any(cell not in ("", None) for cell in row)]
    lines = ["| " + " | ".join(map(_shown, row)) + " |" for row in filled]
    return "\n".join([lines[0], "|" + " --- |" * len(filled[0]), *lines[1:]])


def _shown(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return " ".join(str(cell).replace("|", "\\|").split())


def slides(data: bytes, name: str) -> Document:
    """Return the document in a presentation. The number of a slide is that of its page."""
    with _archive(data, name) as parts:
        found = filter(None, map(_SLIDE.fullmatch, parts.namelist()))
        numbers = {int(slide[1]): slide[0] for slide in found}
        shown = [
            (number, _paragraphs(ElementTree.fromstring(parts.read(numbers[number]))))
            for number in sorted(numbers)
        ]
    text, blocks = "", list[Block]()
    for number, paragraphs in shown:
        for at, paragraph in enumerate(paragraphs):
            start, mark = len(text), "" if at or len(paragraph) > 120 else "## "
            text += mark + paragraph
            kind: BlockKind = "heading" if mark else "paragraph"
            named, level = (paragraph, 2) if mark else ("", 0)
            blocks.append(Block(kind, start, len(text), level=level, name=named, page=number))
            text += "\n\n"
    title = next((block.name for block in blocks if block.name), "") or stem(name)
    return Document(title, text, tuple(blocks))


def _paragraphs(root: Element) -> list[str]:
    """Return the paragraphs of a slide, and the rows of its tables."""
    found: list[str] = []
    rows: set[int] = set()
    for element in root.iter():
        kind = element.tag.rpartition("}")[2]
        if kind == "tr":
            cells = [_words(cell) for cell in element if cell.tag.endswith("}tc")]
            rows.update(id(each) for each in element.iter())
            found.append(" | ".join(cells))
        elif kind == "p" and id(element) not in rows:
            found.append(_words(element))
    return [text for text in found if text.strip(" |")]


def _words(element: Element) -> str:
    words = (each.text or "" for each in element.iter() if each.tag.endswith("}t"))
    return " ".join("".join(words).split())


def book(data: bytes, name: str) -> Document:
    """Return the document in an e-book (EPUB): its chapters in order."""
    with _archive(data, name) as parts:
        container = ElementTree.fromstring(parts.read("META-INF/container.xml"))
        path = next(filter(None, (each.get("full-path") for each in container.iter())))
        package = ElementTree.fromstring(parts.read(path))
        files = {
            each.get("id"): posixpath.join(posixpath.dirname(path), unquote(each.get("href", "")))
            for each in _named(package, "item")
        }
        spine = [each.get("idref") for each in _named(package, "itemref")]
        chapters = [
            markdown_of(parts.read(posixpath.normpath(files[each])).decode())
            for each in spine
            if each in files
        ]
        titles = [each.text or "" for each in _named(package, "title")]
    document = from_markdown("\n\n".join(chapters), name, front=False)
    return replace(document, title=" ".join(titles[0].split()) if titles else document.title)


def _named(root: Element, name: str) -> Iterator[Element]:
    return (each for each in root.iter() if each.tag.rpartition("}")[2] == name)


@contextmanager
def _archive(data: bytes, name: str) -> Iterator[zipfile.ZipFile]:
    """Open the archive that a file is. Raises IngestError if it or a part of it is broken."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            if sum(part.file_size for part in parts.infolist()) > _LARGEST:
                raise IngestError(
                    f"{name!r} was not added: unpacked it has more than {_LARGEST >> 20} MB"
                )
            yield parts
    # Of the archive, of its text, and of the XML; `zipfile` raises RuntimeError for a password,
    # NotImplementedError for a compression that it lacks, and the readers LookupError and
    # StopIteration for a part that is missing.
    except (
        *(zipfile.BadZipFile, zlib.error, ElementTree.ParseError, UnicodeDecodeError),
        *(OSError, LookupError, StopIteration, RuntimeError, NotImplementedError),
    ) as exc:
        raise IngestError(f"{name!r} was not added: it cannot be read: {exc}") from exc
