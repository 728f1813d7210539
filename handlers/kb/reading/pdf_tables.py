"""The rows of a PDF page, and the tables in them.

A table is recognised by pieces of text side by side in at least two rows. Text wrapped inside a
cell is a line of its own that begins at the left edge of a column. Cells are expected in the order
of the file, which is row by row in nearly all files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groundhook.host.readers.pdf import Line

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
    columns = [cell.left for cell in rows[start].cells]
    table: list[dict[int, str]] = []
    last: dict[int, Line] = {}  # column → the lowest line of the cell in the last row
    at = start
    for at in range(start, len(rows) + 1):
        cells = rows[at].cells if at < len(rows) else ()
        places = [_column(columns, cell) for cell in cells]
        if len(cells) > 1 and (places[0] in (None, 0) or not _continues_row(cells, places, last)):
            table.append({number: cell.text for number, cell in enumerate(cells)})
            last = dict(enumerate(cells))
        elif cells and _continues_row(cells, places, last):
            for place, cell in zip(places, cells, strict=True):
                assert place is not None
                table[-1][place] = (
                    f"{table[-1][place]} {cell.text}" if place in table[-1] else cell.text
                )
                last[place] = cell
        else:
            break
    return (_markdown(table), at - start) if len(table) > 1 else ("", 0)


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
