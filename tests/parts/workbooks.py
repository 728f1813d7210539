"""Files that are archives of parts, and workbooks of cells."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def packed(parts: Mapping[str, str]) -> bytes:
    """Return an archive of these texts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def workbook(
    sheets: Mapping[str, Sequence[Sequence[str | float]]], *, hidden: str = "", merged: str = ""
) -> bytes:
    """Return a workbook with the cells of its sheets, one of which may be `hidden`; each has a
    `merged` range, such as `A1:A2`."""
    hides = ' state="hidden"'
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{at}" r:id="r{at}"'
        f"{hides if name == hidden else ''}/>"
        for at, name in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="r{at}" Type="{OFFICE}/worksheet" Target="worksheets/sheet{at}.xml"/>'
        for at in range(1, len(sheets) + 1)
    )
    parts = {
        "_rels/.rels": (
            f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r1"'
            f' Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ),
        "xl/workbook.xml": (
            f'<workbook xmlns="{SHEET}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{links}</Relationships>',
    }
    spans = f'<mergeCells count="1"><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    for at, rows in enumerate(sheets.values(), 1):
        written = "".join(map(_row, range(1, len(rows) + 1), rows))
        parts[f"xl/worksheets/sheet{at}.xml"] = (
            f'<worksheet xmlns="{SHEET}"><sheetData>{written}</sheetData>{spans}</worksheet>'
        )
    return packed(parts)


def _row(number: int, cells: Sequence[str | float]) -> str:
    written = "".join(
        f'<c r="{chr(65 + at)}{number}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
        if isinstance(cell, str)
        else f'<c r="{chr(65 + at)}{number}"><v>{cell}</v></c>'
        for at, cell in enumerate(cells)
    )
    return f'<row r="{number}">{written}</row>'
