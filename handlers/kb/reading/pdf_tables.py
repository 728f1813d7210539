"""The rows of a PDF page, and the tables in them.

A table is recognised by pieces of text side by side in at least two rows. Text wrapped inside a
cell is a line of its own that begins at the left edge of a column. Cells are expected in the order
of the file, which is row by row in nearly all files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groundhook.core.readers.pdf_rows import PdfLine

LEVEL = 0.3  # × the size: difference in height of the lines of one row
ALIGNED = 3.0  # points: difference of the left edges of one column
NUMBERED = 3.0  # × the size: space at most between a number and its text
WRAPPED = 1.6  # × the size: distance at most from one line of a cell to the next

ENOUGH = 0.6  # of the cells of a table are aligned

# "1.", "(c)", "iv)", "2.1", "•"
_MARKER = re.compile(
    r"\(?(?:\d{1,3}(?:\.\d{1,3})*|[A-Za-z]|[ivx]{1,5})[.)]|\d{1,2}(?:\.\d{1,2})+|[•▪➢✓◦–—-]"
)
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class PdfRow:
    """Lines side by side; nearly always one."""

    cells: tuple[PdfLine, ...]

    @property
    def text(self) -> str:
        return (" " if self.numbered else "  ").join(cell.text for cell in self.cells)

    @property
    def numbered(self) -> bool:
        """Whether the row is a number or a bullet and its text: of a list, or of a heading."""
        if len(self.cells) != 2:
            return False
        mark, text = self.cells
        return (
            text.left - mark.right < NUMBERED * text.size
            and (_MARKER.fullmatch(mark.text) or mark.text.isdigit()) is not None
            and len(_LETTER.findall(text.text)) > 1
        )

    @property
    def style(self) -> tuple[float, bool]:
        return round(self.cells[0].size * 2) / 2, self.cells[0].bold


def rows_of(lines: Sequence[PdfLine]) -> list[PdfRow]:
    """Return the lines of a page as rows."""
    rows: list[list[PdfLine]] = []
    for line in lines:
        before = rows[-1][-1] if rows else None
        if before and _is_level(before, line) and line.left > before.left:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [PdfRow(tuple(row)) for row in rows]


def table_at(rows: Sequence[PdfRow], start: int) -> tuple[str, int]:
    """Return the table that begins with the row, in Markdown with that row as its header, and its
    number of rows; ("", 0) if there is none."""
    if len(rows[start].cells) < 2:
        return "", 0
    table = _Table(rows[start])
    end = start
    while end < len(rows) and table.add(rows[end]):
        end += 1
    if len(table.rows) < 2 or _is_list(table.rows) or not _is_aligned(table.shape):
        return "", 0
    return _markdown(_in_columns(table.rows)), end - start


class _Table:
    """A table while it is read. `rows` have the text of each cell by its left edge. The cells of
    the header define the columns that wrapped text belongs to."""

    def __init__(self, header: PdfRow) -> None:
        self.rows: list[dict[float, str]] = []
        self.shape: list[tuple[PdfLine, ...]] = []  # the cells of each row, without wrapped text
        self._columns = [[cell.left] for cell in header.cells]
        self._last: dict[int, PdfLine] = {}  # column → the lowest line of the cell in the last row
        self._edges: dict[int, float] = {}  # column → the left edge of the cell in the last row

    def add(self, row: PdfRow) -> bool:
        """Add a row of the page, as a row of the table or as text wrapped in the cells of its last
        row. Returns False if it is neither: the table has ended."""
        columns = [_column(self._columns, cell) for cell in row.cells]
        wrapped = _continues_row(row.cells, columns, self._last)
        if len(row.cells) > 1 and (columns[0] in (None, 0) or not wrapped):
            self.rows.append({cell.left: cell.text for cell in row.cells})
            self.shape.append(row.cells)
            places = _places([cell.left for cell in row.cells], self._columns)
            self._last = dict(zip(places, row.cells, strict=True))
            self._edges = {place: cell.left for place, cell in self._last.items()}
        elif wrapped:
            self._append_text(columns, row.cells)
        else:
            return False
        return True

    def _append_text(self, columns: Sequence[int | None], cells: Sequence[PdfLine]) -> None:
        """Append wrapped text to the cells of the last row."""
        texts = self.rows[-1]
        for column, cell in zip(columns, cells, strict=True):
            assert column is not None  # `_continues_row` has checked it
            edge = self._edges.setdefault(column, cell.left)
            texts[edge] = f"{texts[edge]} {cell.text}" if edge in texts else cell.text
            self._last[column] = cell


def _is_list(rows: Sequence[Mapping[float, str]]) -> bool:
    """Return whether rows are a numbered list: a marker, and words beside it."""
    marked = [tuple(texts for _, texts in sorted(row.items())) for row in rows if len(row) > 1]
    return all(
        len(row) == 2 and _MARKER.fullmatch(row[0]) and len(_LETTER.findall(row[1])) > 3
        for row in marked
    )


def _is_aligned(rows: Sequence[Sequence[PdfLine]]) -> bool:
    """Return whether most cells but the first of a row are below or above others: gaps between the
    words of a text are not."""
    cells = [cell for row in rows for cell in row[1:]]
    places = Counter(round(place / ALIGNED) for cell in cells for place in _edges(cell))
    aligned = sum(
        any(
            sum(places[round(place / ALIGNED) + off] for off in (-1, 0, 1)) > 1
            for place in _edges(cell)
        )
        for cell in cells
    )
    return aligned >= ENOUGH * len(cells)


def _edges(cell: PdfLine) -> tuple[float, float, float]:
    """Return the places by which cells of a column are aligned. Those of the middle are apart from
    the others."""
    return cell.left, cell.right + 1e5, (cell.left + cell.right) / 2 + 1e6


def _in_columns(rows: Sequence[Mapping[float, str]]) -> list[dict[int, str]]:
    """Return the rows by the numbers of their columns: those of the rows with most cells. A row
    with fewer has its cells in the nearest ones, in order."""
    most = max(map(len, rows))
    edges = list(zip(*(sorted(row) for row in rows if len(row) == most), strict=True))
    return [
        {
            place: text
            for place, (_, text) in zip(
                _places(sorted(row), edges), sorted(row.items()), strict=True
            )
        }
        for row in rows
    ]


def _places(lefts: Sequence[float], columns: Sequence[Sequence[float]]) -> list[int]:
    """Return the column of each cell, in rising order, so that all are nearest to the left edges of
    their columns. A row with as many cells as columns, or more, has one in each."""
    spare = len(columns) - len(lefts)
    if spare <= 0:
        return list(range(len(lefts)))
    # cost and places of the first cells, by the number of columns that are empty before the next
    best: list[tuple[float, list[int]]] = [(0.0, [])] * (spare + 1)
    for number, left in enumerate(lefts):
        nearer: list[tuple[float, list[int]]] = []
        for empty, (cost, places) in enumerate(best):
            place = number + empty
            here = cost + min(abs(edge - left) for edge in columns[place])
            found = (here, [*places, place])
            nearer.append(min(found, nearer[-1]) if nearer else found)
        best = nearer
    return best[-1][1]


def _continues_row(
    cells: Sequence[PdfLine], places: Sequence[int | None], last: dict[int, PdfLine]
) -> bool:
    """Return whether lines continue the last row of a table: below the text of their cells, or
    level with the row if the cell is empty. A line in the first column does not, since it may be a
    paragraph after the table."""
    return (
        bool(last)
        and places[0] != 0
        and all(_fits(cell, place, last) for place, cell in zip(places, cells, strict=True))
    )


def _fits(cell: PdfLine, place: int | None, last: dict[int, PdfLine]) -> bool:
    if place is None:
        return False
    if place in last:
        return 0 < last[place].base - cell.base < WRAPPED * cell.size
    return any(_is_level(cell, other) for other in last.values()) or cell.base < min(
        other.base for other in last.values()
    )


def _column(columns: Sequence[Sequence[float]], cell: PdfLine) -> int | None:
    return next(
        (number for number, [left] in enumerate(columns) if abs(left - cell.left) < ALIGNED), None
    )


def _is_level(one: PdfLine, other: PdfLine) -> bool:
    return abs(one.base - other.base) < LEVEL * other.size


def _markdown(table: Sequence[dict[int, str]]) -> str:
    columns = max(max(row) for row in table) + 1
    lines = [
        "| "
        + " | ".join(row.get(number, "").replace("|", "\\|") for number in range(columns))
        + " |"
        for row in table
    ]
    return "\n".join([lines[0], "|" + " --- |" * columns, *lines[1:]])
