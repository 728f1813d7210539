"""The rows of a PDF page, and the tables in them.

A table is recognised by pieces of text side by side in at least two rows. Text wrapped inside a
cell is a line of its own that begins at the left edge of a column. Cells are expected in the order
of the file, which is row by row in nearly all files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groundhook.core.readers.pdf import Line

LEVEL = 0.3  # × the size: difference in height of the lines of one row
ALIGNED = 3.0  # points: difference of the left edges of one column
WRAPPED = 1.6  # × the size: distance at most from one line of a cell to the next


@dataclass(frozen=True)
class Row:
    """Lines side by side; nearly always one."""

    cells: tuple[Line, ...]

    @property
    def text(self) -> str:
        return "  ".join(cell.text for cell in self.cells)

    @property
    def style(self) -> tuple[float, bool]:
        return round(self.cells[0].size * 2) / 2, self.cells[0].bold


def rows_of(lines: Sequence[Line]) -> list[Row]:
    """Return the lines of a page as rows."""
    rows: list[list[Line]] = []
    for line in lines:
        before = rows[-1][-1] if rows else None
        if before and _is_level(before, line) and line.left > before.left:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [Row(tuple(row)) for row in rows]


def table_at(rows: Sequence[Row], start: int) -> tuple[str, int]:
    """Return the table that begins with the row, in Markdown with that row as its header, and its
    number of rows; ("", 0) if there is none."""
    if len(rows[start].cells) < 2:
        return "", 0
    table = _Table(rows[start])
    end = start
    while end < len(rows) and table.add(rows[end]):
        end += 1
    return (_markdown(table.rows), end - start) if len(table.rows) > 1 else ("", 0)


class _Table:
    """A table while it is read. The cells of the header define the left edges of its columns."""

    def __init__(self, header: Row) -> None:
        self.rows: list[dict[int, str]] = []  # column → text
        self._columns = [cell.left for cell in header.cells]
        self._last: dict[int, Line] = {}  # column → the lowest line of the cell in the last row

    def add(self, row: Row) -> bool:
        """Add a row of the page, as a row of the table or as text wrapped in the cells of its last
        row. Returns False if it is neither: the table has ended."""
        columns = [_column(self._columns, cell) for cell in row.cells]
        wrapped = _continues_row(row.cells, columns, self._last)
        if len(row.cells) > 1 and (columns[0] in (None, 0) or not wrapped):
            self.rows.append({number: cell.text for number, cell in enumerate(row.cells)})
            self._last = dict(enumerate(row.cells))
        elif wrapped:
            self._append_text(columns, row.cells)
        else:
            return False
        return True

    def _append_text(self, columns: Sequence[int | None], cells: Sequence[Line]) -> None:
        """Append wrapped text to the cells of the last row."""
        texts = self.rows[-1]
        for column, cell in zip(columns, cells, strict=True):
            assert column is not None  # `_continues_row` has checked it
            texts[column] = f"{texts[column]} {cell.text}" if column in texts else cell.text
            self._last[column] = cell


def _continues_row(
    cells: Sequence[Line], places: Sequence[int | None], last: dict[int, Line]
) -> bool:
    """Return whether lines continue the last row of a table: below the text of their cells, or
    level with the row if the cell is empty. A line in the first column does not, since it may be a
    paragraph after the table."""
    return (
        bool(last)
        and places[0] != 0
        and all(_fits(cell, place, last) for place, cell in zip(places, cells, strict=True))
    )


def _fits(cell: Line, place: int | None, last: dict[int, Line]) -> bool:
    if place is None:
        return False
    if place in last:
        return 0 < last[place].base - cell.base < WRAPPED * cell.size
    return any(_is_level(cell, other) for other in last.values()) or cell.base < min(
        other.base for other in last.values()
    )


def _column(columns: Sequence[float], cell: Line) -> int | None:
    return next(
        (number for number, left in enumerate(columns) if abs(left - cell.left) < ALIGNED), None
    )


def _is_level(one: Line, other: Line) -> bool:
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
