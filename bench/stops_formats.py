"""Documents of each format that is read, with a text in every place where a format has one."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable, Mapping
from xml.sax.saxutils import escape

from reportlab.pdfgen.canvas import Canvas

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DRAWN = "http://schemas.openxmlformats.org/drawingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
OPEN = "urn:oasis:names:tc:opendocument:xmlns"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
LINE = 1000  # characters of a line of a PDF file, and of a cell of an older workbook
SECTOR = 512  # bytes
NONE, LAST, OF_TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD  # in the place of a sector's number


def _html(text: str) -> bytes:
    body = f"<h1>{text}</h1><p>{text}</p><table><tr><td>{text}</table><pre>{text}</pre>"
    return f"<!doctype html><html><title>{text}</title><body>{body}</html>".encode()


def _rst(text: str) -> bytes:
    return f"Title\n=====\n\n{text}\n\n- {text}\n\n::\n\n  {text}\n".encode()


def _pdf(text: str) -> bytes:
    buffer = io.BytesIO()
    canvas = Canvas(buffer)
    canvas.setTitle(text)
    for at in range(0, len(text), LINE):
        canvas.drawString(72, 720 - at // LINE * 12, text[at : at + LINE])
    canvas.save()
    return buffer.getvalue()


def _word(text: str) -> bytes:
    shown = escape(_visible(text))
    part = f"<w:r><w:t>{shown}</w:t></w:r>"
    cells = f"<w:tbl><w:tr><w:tc><w:p>{part}</w:p></w:tc></w:tr></w:tbl>"
    parts = {
        "word/document.xml": (
            f'<w:document xmlns:w="{WORD}"><w:body><w:p>{part}</w:p>{cells}</w:body></w:document>'
        ),
        "[Content_Types].xml": (
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml"'
            ' ContentType="application/xml"/></Types>'
        ),
    }
    return _packed({**parts, **_related("", "officeDocument", "word/document.xml")})


def _workbook(text: str) -> bytes:
    cell = f'<c r="A1" t="inlineStr"><is><t>{escape(_visible(text))}</t></is></c>'
    parts = {
        "xl/workbook.xml": (
            f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}"><sheets><sheet name="One" sheetId="1"'
            ' r:id="r1"/></sheets></workbook>'
        ),
        "xl/worksheets/sheet1.xml": (
            f'<worksheet xmlns="{SHEET}"><sheetData><row r="1">{cell}</row></sheetData></worksheet>'
        ),
    }
    related = {
        **_related("", "officeDocument", "xl/workbook.xml"),
        **_related("xl/", "worksheet", "worksheets/sheet1.xml", of="workbook.xml"),
    }
    return _packed({**parts, **related})


def _old_workbook(text: str) -> bytes:
    """Return a sheet of Excel before 2007: records (MS-XLS) in a file system (MS-CFB)."""
    shown = _visible(text)
    parts = [shown[at : at + LINE].encode("utf-16-le") for at in range(0, len(shown), LINE)]
    cells = b"".join(
        _record(0x0204, struct.pack("<HHHHB", row, 0, 15, len(part) // 2, 1) + part)
        for row, part in enumerate(parts)
    )
    book, sheet = (_record(0x0809, struct.pack("<HHHHII", 0x600, n, 0, 0, 0, 0)) for n in (5, 16))
    name, end = b"\x03\x00One", _record(0x000A, b"")
    begins = len(book) + 4 + 6 + len(name) + len(end)
    listed = _record(0x0085, struct.pack("<IH", begins, 0) + name)
    return _file_system("Workbook", book + listed + end + sheet + cells + end)


def _record(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, len(data)) + data


def _file_system(name: str, data: bytes) -> bytes:
    """Return a file system with one file."""
    sectors = max(8, -(-len(data) // SECTOR))  # shorter files are kept in another way
    tables = -(-(sectors + 2) // (SECTOR // 4 - 1))
    table = [*[OF_TABLE] * tables, LAST, *range(tables + 2, tables + 1 + sectors), LAST]
    table += [NONE] * (tables * SECTOR // 4 - len(table))
    magic, versions = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", (0x3E, 3, 0xFFFE, 9, 6)
    sizes = (0, tables, tables, 0, 4096, LAST, 0, LAST, 0)
    places = [at if at < tables else NONE for at in range(109)]
    head = struct.pack("<8s16x5H6x9I109I", magic, *versions, *sizes, *places)
    root = _entry("Root Entry", 5, 1, LAST, 0)
    folder = root + _entry(name, 2, NONE, tables + 1, sectors * SECTOR)
    written = struct.pack(f"<{len(table)}I", *table)
    return head + written + folder.ljust(SECTOR, b"\0") + data.ljust(sectors * SECTOR, b"\0")


def _entry(name: str, kind: int, child: int, start: int, size: int) -> bytes:
    written = f"{name}\0".encode("utf-16-le")
    links = (kind, 1, NONE, NONE, child, start, size)
    return struct.pack("<64sHBB3I36xIQ", written, len(written), *links)


def _sheet(text: str) -> bytes:
    names = " ".join(f'xmlns:{name}="{OPEN}:{name}:1.0"' for name in ("office", "table", "text"))
    shown = f"<text:p>{escape(_visible(text))}</text:p>"
    cell = f'<table:table-cell office:value-type="string">{shown}</table:table-cell>'
    table = f'<table:table table:name="One"><table:table-row>{cell}</table:table-row></table:table>'
    body = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    parts = {
        "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
        "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{OPEN}:manifest:1.0"/>',
        "content.xml": f"<office:document-content {names}>{body}</office:document-content>",
    }
    return _packed(parts)


def _slides(text: str) -> bytes:
    run = f"<a:p><a:r><a:t>{escape(_visible(text))}</a:t></a:r></a:p>"
    return _packed({"ppt/slides/slide1.xml": f'<s xmlns:a="{DRAWN}">{run}{run}</s>'})


def _book(text: str) -> bytes:
    manifest = '<manifest xmlns="x"><item id="a" href="a.xhtml"/></manifest>'
    parts = {
        "META-INF/container.xml": '<c><rootfile full-path="book.opf"/></c>',
        "book.opf": f'<p>{manifest}<spine><itemref idref="a"/></spine></p>',
        "a.xhtml": f"<h1>One</h1><p>{text}</p>",
    }
    return _packed(parts)


def _notebook(text: str) -> bytes:
    code = {"cell_type": "code", "source": text, "outputs": [{"text": text}]}
    return json.dumps({"cells": [{"cell_type": "markdown", "source": [text]}, code]}).encode()


def _mail(text: str) -> bytes:
    subject = " ".join(_visible(text).split())[:900]
    head = f"From: a@b.example\r\nTo: {subject}\r\nSubject: {subject}\r\nMIME-Version: 1.0\r\n"
    return f"{head}Content-Type: text/html; charset=utf-8\r\n\r\n{text}".encode()


def _related(folder: str, kind: str, target: str, *, of: str = "") -> dict[str, str]:
    entry = f'<Relationship Id="r1" Type="{OFFICE}/{kind}" Target="{target}"/>'
    written = f'<Relationships xmlns="{PACKAGE}/relationships">{entry}</Relationships>'
    return {f"{folder}_rels/{of}.rels": written}


def _packed(parts: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, written in parts.items():
            archive.writestr(name, written)
    return buffer.getvalue()


def _visible(text: str) -> str:
    return "".join(sign for sign in text if sign >= " " or sign in "\n\t")


# The maker of a file, by its ending.
FORMATS: Mapping[str, Callable[[str], bytes]] = {
    "md": str.encode,
    "txt": str.encode,
    "html": _html,
    "rst": _rst,
    "adoc": str.encode,
    "pdf": _pdf,
    "docx": _word,
    "xlsx": _workbook,
    "xls": _old_workbook,
    "ods": _sheet,
    "pptx": _slides,
    "epub": _book,
    "ipynb": _notebook,
    "eml": _mail,
}
