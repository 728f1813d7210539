"""The rows of a PDF's page, and the tables that they make.

A table is told by pieces of text that stand side by side, in at least two rows. Text that is
wrapped in its cell comes as lines of its own, which begin where a column does. In which order a
file has the cells is its own business; nearly all have them row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groundhook.host.readers.pdf import Line

LEVEL = 0.3  # times the size: how far the lines of a row may stand apart in height
ALIGNED = 3.0  # points: how far beginnings of one column may be apart
WRAPPED = 1.6  # times the size: how far below the last line of a cell its next one stands at most


@dataclass(frozen=True)
class Row:
    """Lines that stand side by side; nearly always one."""

    cells: tuple[Line, ...]

    @property
    def text(self) -> str:
        return "  ".join(cell.text for cell in self.cells)

    @property
    def style(self) -> tuple[float, bool]:
        return round(self.cells[0].size * 2) / 2, self.cells[0].bold


def rows_of(lines: Sequence[Line]) -> list[Row]:
    rows: list[list[Line]] = []
    for line in lines:
        before = rows[-1][-1] if rows else None
        if before and _level(before, line) and line.left > before.left:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [Row(tuple(row)) for row in rows]


def table_at(rows: Sequence[Row], start: int) -> tuple[str, int]:
    """The table that begins with a row, in Markdown with that row as its header, and how many rows
    it takes; 0: there is none."""
    if len(rows[start].cells) < 2:
        return "", 0
    columns = [cell.left for cell in rows[start].cells]
    table: list[dict[int, str]] = []
    last: dict[int, Line] = {}  # of the table's last row the lowest line of each cell
    at = start
    for at in range(start, len(rows) + 1):
        cells = rows[at].cells if at < len(rows) else ()
        places = [_column(columns, cell) for cell in cells]
        if len(cells) > 1 and (places[0] in (None, 0) or not _goes_on(cells, places, last)):
            table.append({number: cell.text for number, cell in enumerate(cells)})
            last = dict(enumerate(cells))
        elif cells and _goes_on(cells, places, last):
            for place, cell in zip(places, cells, strict=True):
                assert place is not None
                table[-1][place] = (
                    f"{table[-1][place]} {cell.text}" if place in table[-1] else cell.text
                )
                last[place] = cell
        else:
            break
    return (_markdown(table), at - start) if len(table) > 1 else ("", 0)


def _goes_on(cells: Sequence[Line], places: Sequence[int | None], last: dict[int, Line]) -> bool:
    """Whether lines belong to the last row of a table: below what their cells have, or level with
    the row where they have nothing yet. The first column says no more than the others, so that no
    paragraph behind a table is taken for it."""
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
    return any(_level(cell, other) for other in last.values()) or cell.base < min(
        other.base for other in last.values()
    )


def _column(columns: Sequence[float], cell: Line) -> int | None:
    return next(
        (number for number, left in enumerate(columns) if abs(left - cell.left) < ALIGNED), None
    )


def _level(one: Line, other: Line) -> bool:
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
