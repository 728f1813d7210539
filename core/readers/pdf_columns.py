"""The rows of a PDF page in reading order, where it has columns of text: those of the first before
those of the second. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from groundhook.core.readers.pdf_glyphs import Glyph, Type

WIDE = 0.2  # × the width of the page: a line of a column
CROSSED = 0.3  # × the lines: what may reach across both columns
FEW, LONG = 5, 15  # lines of each of two columns, and letters of each line
PROSE, MANY = 30, 15  # letters of a line, and lines, that are text whatever the order of the file
DEEPEST = 3  # columns of columns


@dataclass(slots=True)
class PdfPiece:
    """Glyphs that the file draws side by side: their place in points, the largest type, and their
    number in its order."""

    glyphs: list[Glyph]
    left: float
    right: float
    type: Type
    at: int  # its number in the order of the file

    @property
    def value(self) -> bool:
        """Whether it is what is filled into a field of a form."""
        return self.glyphs[0].value


PdfCells = list[list[PdfPiece]]  # its cells, from left to right


def in_columns(rows: Sequence[PdfCells], *, backward: bool, depth: int = DEEPEST) -> list[PdfCells]:
    """Return the rows in reading order: where the page has two columns, those of the first before
    those of the second, and what reaches across both between."""
    place = _gutter(rows) if depth else None
    if place is None:
        return list(rows)
    ordered: list[PdfCells] = []
    sides: tuple[list[PdfCells], list[PdfCells]] = ([], [])

    def flush() -> None:
        for side in reversed(sides) if backward else sides:
            ordered.extend(in_columns(side, backward=backward, depth=depth - 1))
            side.clear()

    for row in rows:
        if any(left_of(cell) < place < right_of(cell) for cell in row):
            flush()
            ordered.append(row)
            continue
        for side, cells in zip(sides, _parted(row, place), strict=True):
            if cells:
                side.append(cells)
    flush()
    return ordered


def _parted(row: PdfCells, place: float) -> tuple[PdfCells, PdfCells]:
    return [cell for cell in row if right_of(cell) <= place], [
        cell for cell in row if right_of(cell) > place
    ]


def _gutter(rows: Sequence[PdfCells]) -> float | None:
    """Return the place between two columns of text; None if the page has none."""
    long = _long([cell for row in rows for cell in row])
    best, most = None, FEW - 1
    for place in {round(left_of(cell)) - 1.0 for cell in long}:
        ones = [cell for cell in long if right_of(cell) <= place]
        twos = [cell for cell in long if left_of(cell) >= place]
        number = min(len(ones), len(twos))
        if number > most and _crossing(rows, place) <= CROSSED * number and _is_text(ones, twos):
            best, most = place, number
    return best


def _long(cells: Sequence[list[PdfPiece]]) -> list[list[PdfPiece]]:
    wide = max(map(right_of, cells), default=0.0) - min(map(left_of, cells), default=0.0)
    return [
        cell
        for cell in cells
        if _letters(cell) >= LONG and right_of(cell) - left_of(cell) > WIDE * wide
    ]


def _crossing(rows: Sequence[PdfCells], place: float) -> int:
    """Return how often text across the place interrupts text beside it."""
    crosses = [any(left_of(cell) < place < right_of(cell) for cell in row) for row in rows]
    return sum(one and not two for one, two in pairwise(crosses))


def _is_text(ones: Sequence[list[PdfPiece]], twos: Sequence[list[PdfPiece]]) -> bool:
    """Return whether two columns are text, not cells of a table: the file draws one after the
    other, or the lines are many and long."""
    order = sorted([(cell[0].at, False) for cell in ones] + [(cell[0].at, True) for cell in twos])
    changes = sum(one[1] != two[1] for one, two in pairwise(order))
    number = min(len(ones), len(twos))
    if changes <= max(1, number // 3):
        return True
    letters = sum(map(_letters, ones)) / len(ones), sum(map(_letters, twos)) / len(twos)
    return number >= MANY and min(letters) >= PROSE


def left_of(cell: Sequence[PdfPiece]) -> float:
    """Return where a cell begins, in points from the left."""
    return min(piece.left for piece in cell)


def right_of(cell: Sequence[PdfPiece]) -> float:
    """Return where a cell ends, in points from the left."""
    return max(piece.right for piece in cell)


def _letters(cell: Sequence[PdfPiece]) -> int:
    return sum(len(piece.glyphs) for piece in cell)
