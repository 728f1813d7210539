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
from email.message import EmailMessage, MIMEPart
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from groundhook.core.errors import IngestError
from groundhook.core.extras import extra
from groundhook.core.json_text import read_json
from groundhook.core.types.base import well_formed
from groundhook.core.types.documents import Block, BlockKind, Document
from groundhook.handlers.kb.reading.dialects import plain_markdown
from groundhook.handlers.kb.reading.drawn import (
    DrawnRows,
    charts_of_sheets,
    drawings_of,
    named,
    reference,
    relations,
)
from groundhook.handlers.kb.reading.hidden import hidden_words
from groundhook.handlers.kb.reading.html import AS_BROWSERS, shown_part
from groundhook.handlers.kb.reading.html_markdown import markdown_of
from groundhook.handlers.kb.reading.markdown import from_markdown
from groundhook.handlers.kb.reading.text import decode, stem

_BROKEN = (
    *(zipfile.BadZipFile, zlib.error, ElementTree.ParseError, UnicodeDecodeError),
    *(OSError, RuntimeError, NotImplementedError),
)
_LARGEST = 256 << 20  # bytes of an archive when unpacked: a small one can unpack to gigabytes
_MOST_CELLS = 2_000_000  # of a workbook
_HEADERS = ("From", "To", "Cc", "Date")
_OLE = b"\xd0\xcf\x11\xe0"  # older formats of Office, and encrypted files of the newer ones
_CHARSET = re.compile(
    rb"(?P<before>charset=[\"']?|=\?)(?P<name>[A-Za-z0-9_-]{3,20})(?![A-Za-z0-9_-])", re.IGNORECASE
)
_HEAD = re.compile(rb"(?>(?:[^\r\n]++\r?\n)+)")  # up to the first empty line
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_VISIBLE = "SheetVisibleEnum.Visible"
_SLIDE = re.compile(r"ppt/slides/slide(\d+)\.xml")


def notebook(data: bytes, name: str) -> Document:
    """Return the document in a Jupyter notebook: its texts, code, and results that are text."""
    text, notes = decode(data, name)
    try:
        found = read_json(text)
        sheets = found.get("worksheets") or [found]  # of older notebooks
        cells = [dict(cell) for sheet in sheets for cell in sheet["cells"]]
    except (ValueError, TypeError, LookupError, AttributeError) as exc:
        raise IngestError(f"{name!r} was not added: it is no notebook: {exc}") from exc
    written = "\n\n".join(part for cell in cells for part in _cell(cell) if part.strip())
    document = from_markdown(written, name, front=False)
    return replace(document, notes=notes)


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = _joined(cell.get("source") or cell.get("input"))
    if cell.get("cell_type") == "heading":
        yield f"# {source}"
    elif cell.get("cell_type") != "code":
        yield plain_markdown(source)
    else:
        yield _fenced(source)
        yield from map(_output, cell.get("outputs") or ())


def _output(output: dict[str, Any]) -> str:
    """Return the part of a result that is text."""
    if output.get("output_type") in ("error", "pyerr"):
        return _fenced(f"{output.get('ename', '')}: {output.get('evalue', '')}")
    return _fenced(_joined(output.get("text") or (output.get("data") or {}).get("text/plain")))


def _joined(lines: Any) -> str:
    return "".join(map(str, lines)) if isinstance(lines, list) else str(lines or "")


def _fenced(code: str) -> str:
    return f"~~~~\n{code.rstrip()}\n~~~~" if code.strip() else ""


def mail(data: bytes, name: str) -> Document:
    """Return the document in an e-mail: its subject, who wrote to whom when, and its text."""
    if data.startswith(_OLE):
        raise IngestError(
            f"{name!r} was not added: it is a message of Outlook (.msg), or another binary file",
            hint="save it as .eml",
        )
    head = _HEAD.match(data)
    wide = _CHARSET.sub(_as_browsers, head[0]) + data[head.end() :] if head else data
    message = email.message_from_bytes(wide, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    subject = " ".join(str(message["Subject"] or "").split()) or stem(name)
    heads = [f"{head}: {message[head]}" for head in _HEADERS if message[head]]
    body, attached = _body(message)
    named = [f"attachment {file!r} was not read" for file in attached]
    written = well_formed("\n\n".join([f"# {subject}", "\n".join(heads), *body]))
    return replace(from_markdown(written, name, front=False), title=subject, notes=tuple(named))


def _body(message: EmailMessage) -> tuple[list[str], list[str]]:
    """Return the texts of an e-mail, of several versions the plain one, and the names of what is
    attached. A text without a name is shown below the first one, such as the foot of a list."""
    body = message.get_body(("plain", "html"))
    texts, attached = [] if body is None else [_content(body)], list[str]()
    for part in message.iter_attachments():
        file = part.get_filename()
        if not (file or part.is_attachment() or part.get_content_maintype() != "text"):
            texts.append(_content(part))
        else:
            attached.append(file or part.get_content_type())
    return texts, attached


def _content(part: MIMEPart) -> str:
    if declared := _larger(str(part.get_content_charset() or "")):
        part.set_param("charset", declared)
    content = str(part.get_content())
    return markdown_of(content) if part.get_content_type() == "text/html" else content


def _as_browsers(found: re.Match[bytes]) -> bytes:
    """Return the declaration of a charset as the larger one that programs read it as."""
    return found["before"] + (_larger(found["name"].decode()).encode() or found["name"])


def _larger(charset: str) -> str:
    return AS_BROWSERS.get(charset.lower().replace("_", "-"), "")


def workbook(data: bytes, name: str) -> Document:
    """Return the document in a workbook: a table for each sheet that is shown, under its name."""
    book = _open_workbook(data, name)
    hidden = {each.name for each in book.sheets_metadata if str(each.visible) != _VISIBLE}
    sheets = _read_sheets(book, name, whole=False, spread=True)
    charts = _charts(data)
    parts = [
        "\n\n".join(
            [f"# {sheet}", *([_table(rows)] if any(map(any, rows)) else []), *charts.get(sheet, ())]
        )
        for sheet, rows in sheets
        if sheet not in hidden and (any(map(any, rows)) or charts.get(sheet))
    ]
    document = from_markdown("\n\n".join(parts), name, front=False)
    notes = [
        f"the sheet {sheet!r} is hidden, and was not read" for sheet, _ in sheets if sheet in hidden
    ]
    return replace(document, title=stem(name), notes=tuple(notes))


def _charts(data: bytes) -> dict[str, list[str]]:
    """Return a line for each chart of a sheet, by the sheets' names. Those of older formats, and of
    a file that is not as it should be, are not read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            if sum(part.file_size for part in parts.infolist()) > _LARGEST:
                return {}
            found = charts_of_sheets(parts)
    except (*_BROKEN, KeyError):
        return {}
    return {sheet: [_shown(cell) for row in rows for cell in row] for sheet, rows in found.items()}


def sheets_of(data: bytes, name: str, *, whole: bool = False) -> list[tuple[str, list[list[Any]]]]:
    """Return the sheets of a workbook, each with the cells of its rows: numbers, texts, dates; ""
    for an empty cell. `whole`: with empty rows and columns before the first cell. Raises
    IngestError."""
    return _read_sheets(_open_workbook(data, name), name, whole=whole, spread=False)


def _open_workbook(data: bytes, name: str) -> Any:
    with extra("documents", "reading workbooks", IngestError):
        from python_calamine import CalamineError, CalamineWorkbook

    if data.startswith(_OLE) and not name.lower().endswith(".xls"):
        raise IngestError(
            f"{name!r} was not added: it is encrypted, or in the older format .xls",
            hint="save it again as XLSX, without a password",
        )
    try:
        return CalamineWorkbook.from_filelike(io.BytesIO(data))
    except (CalamineError, OSError, ValueError) as exc:
        raise IngestError(f"{name!r} was not added: it is no readable workbook: {exc}") from exc


def _read_sheets(
    book: Any, name: str, *, whole: bool, spread: bool
) -> list[tuple[str, list[list[Any]]]]:
    from python_calamine import CalamineError

    sheets: list[tuple[str, list[list[Any]]]] = []
    cells = 0
    try:
        for title in book.sheet_names:
            sheet = book.get_sheet_by_name(title)
            rows = sheet.to_python(skip_empty_area=not whole)
            cells += sum(map(len, rows))
            if cells > _MOST_CELLS:
                raise IngestError(f"{name!r} was not added: it has more than {_MOST_CELLS} cells")
            if spread and sheet.start is not None:
                _spread(rows, sheet.start, sheet.merged_cell_ranges or ())
            sheets.append((title, rows))
    except (CalamineError, OSError, ValueError) as exc:
        raise IngestError(f"{name!r} was not added: it is no readable workbook: {exc}") from exc
    return sheets


def _spread(
    rows: list[list[Any]],
    start: tuple[int, int],
    merged: Sequence[tuple[tuple[int, int], tuple[int, int]]],
) -> None:
    """Repeat a cell that spans rows in each of them, so that every row says what it belongs to."""
    left = _MOST_CELLS  # ranges may overlap
    for (top, column), (bottom, _) in merged:
        first, at = top - start[0], column - start[1]
        if not (0 <= first < len(rows) and 0 <= at < len(rows[first])):
            continue
        value = rows[first][at]
        last = min(bottom - start[0], len(rows) - 1, first + left)
        left -= max(0, last - first)
        for row in rows[first + 1 : last + 1]:
            if at < len(row) and any(cell not in ("", None) for cell in row):
                row[at] = value


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
        seen: set[str] = set()
        found = [
            (n, ElementTree.fromstring(parts.read(path)), drawings_of(parts, path, seen))
            for n, path in _slides(parts)
        ]
    hidden = [str(number) for number, root, _ in found if root.get("show") in ("0", "false")]
    shown = [(n, _paragraphs(root, drawn)) for n, root, drawn in found if str(n) not in hidden]
    notes = (f"hidden slides were not read: {', '.join(hidden)}",) if hidden else ()
    return replace(_deck(shown, name), notes=notes)


def _deck(shown: Sequence[tuple[int, Sequence[str]]], name: str) -> Document:
    """Return the document of slides, each with its number and paragraphs."""
    text, blocks = "", list[Block]()
    for number, paragraphs in shown:
        for at, paragraph in enumerate(paragraphs):
            long = len(paragraph) > 120 or " | " in paragraph
            start, mark = len(text), "" if at or long else "## "
            text += mark + paragraph
            kind: BlockKind = "heading" if mark else "paragraph"
            named, level = (paragraph, 2) if mark else ("", 0)
            blocks.append(Block(kind, start, len(text), level=level, name=named, page=number))
            text += "\n\n"
    title = next((block.name for block in blocks if block.name), "") or stem(name)
    return Document(title, text, tuple(blocks))


def _slides(parts: zipfile.ZipFile) -> list[tuple[int, str]]:
    """Return the slides in the order in which they are shown, each with its number and file; by
    the numbers of the files if the presentation does not say it."""
    found = filter(None, map(_SLIDE.fullmatch, parts.namelist()))
    numbered = sorted((int(slide[1]), slide[0]) for slide in found)
    path = "ppt/presentation.xml"
    files = relations(parts, path)
    if not files or path not in parts.namelist():
        return numbered
    shown = ElementTree.fromstring(parts.read(path))
    order = [files.get(each.get(_RELATION, ""), ("", ""))[1] for each in named(shown, "sldId")]
    known = sorted(order) == sorted(path for _, path in numbered)
    return list(enumerate(order, 1)) if known else numbered


def _paragraphs(root: Element, drawn: dict[str, DrawnRows]) -> list[str]:
    """Return the paragraphs of a slide, and the rows of its tables, charts and diagrams."""
    found: list[str] = []
    rows: set[int] = set()
    row: list[str] = []
    for element in root.iter():
        found += map(" | ".join, drawn.pop(reference(element), ()))
        kind = element.tag.rpartition("}")[2]
        if kind == "tr":
            row = _row(element, row)
            found.append(" | ".join(row))
            rows.update(id(each) for each in element.iter())
        elif kind == "p" and id(element) not in rows:
            found.append(_words(element))
    return [text for text in found if text.strip(" |")]


def _row(element: Element, above: Sequence[str]) -> list[str]:
    """Return the cells of a row. One that spans rows is repeated in each that has others."""
    cells = [cell for cell in element if cell.tag.endswith("}tc")]
    words = [*map(_words, cells)]
    if any(words):
        for at, (cell, upper) in enumerate(zip(cells, above, strict=False)):
            words[at] = upper if cell.get("vMerge") in ("1", "true") else words[at]
    return words


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
            for each in named(package, "item")
        }
        spine = [each.get("idref") for each in named(package, "itemref")]
        chapters = [
            shown_part(parts.read(posixpath.normpath(files[each])).decode())
            for each in [id for id in spine if id not in _contents(package)] or spine
            if each in files
        ]
        titles = [each.text or "" for each in named(package, "title")]
    document = from_markdown("\n\n".join(text for text, _ in chapters), name, front=False)
    title = " ".join(titles[0].split()) if titles else document.title
    hidden = sum(words for _, words in chapters)
    return replace(document, title=title, notes=hidden_words(hidden))


def _contents(package: Element) -> set[str | None]:
    """Return the ids of the files of a book that are its table of contents."""
    pages = {each.get("href") for each in named(package, "reference") if each.get("type") == "toc"}
    return {
        each.get("id")
        for each in named(package, "item")
        if "nav" in each.get("properties", "").split() or each.get("href") in pages
    }


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
    except (*_BROKEN, LookupError, StopIteration) as exc:
        raise IngestError(f"{name!r} was not added: it cannot be read: {exc}") from exc
