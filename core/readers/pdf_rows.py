"""Lines of a PDF page from the places of its glyphs: words, raised numbers, cells of tables. Pure.

Glyphs that the file draws one after the other side by side are a piece; pieces at one height are a
row; space or an upright rule between pieces parts a row into cells.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from groundhook.core.readers.pdf_columns import PdfCells, PdfPiece, in_columns, left_of, right_of
from groundhook.core.readers.pdf_glyphs import Drawn, Glyph, Rule
from groundhook.core.readers.superscripts import superscript_text
from groundhook.core.readers.visual import as_read, is_right_to_left

# × the size of the text:
CELLS_APART = 1.0  # space between two cells
SENTENCES_APART = 1.6  # the same after the end of a sentence
WORDS_APART = 0.13  # space between two words that are drawn apart
LEVEL = 0.3  # difference in height of the pieces of one row
SHIFTED = 0.6  # difference in height at most of a raised number
SMALLER = 0.85  # size of a raised number at most
FIELD = 0.8  # difference in height of a field and its label
HIGHER = 0.12  # difference in height at least of a raised number


@dataclass(frozen=True)
class PdfLine:
    """A line of a page, or a cell of a table row. `size` is the font size of most of its letters;
    `left`, `right` and `base` are its place from the lower left corner of the page, in points; on a
    page from right to left `left` is where it begins to be read. `fixed`: in letters of one
    width."""

    text: str
    size: float
    bold: bool
    left: float
    base: float
    right: float = 0.0
    fixed: bool = False


def lines_of(drawn: Drawn) -> list[PdfLine]:
    """Return the lines of a page in reading order."""
    found: list[PdfLine] = []
    for glyphs, rules in ((drawn.glyphs, _Rules(drawn.upright)), *((g, None) for g in drawn.aside)):
        backward = _is_backward(glyphs)
        rows = [_cells(row, rules, backward=backward) for row in _rows(_pieces(glyphs, rules))]
        ordered = in_columns(rows, backward=backward)
        found += [
            _line(cell, row, backward=backward)
            for row in ordered
            for cell in (reversed(row) if backward else row)
        ]
    return [line for line in found if line.text] + [
        PdfLine(text, 0.0, False, 0.0, 0.0) for text in drawn.stamps
    ]


class _Rules:
    """Upright rules, by their place."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = sorted(rules)
        self._places = [place for place, *_ in self._rules]

    def between(self, left: float, right: float, height: float) -> bool:
        """Return whether a rule at this height is between two places."""
        for at in range(bisect_left(self._places, left - 0.5), len(self._places)):
            place, low, high = self._rules[at]
            if place > right + 0.5:
                return False
            if low <= height <= high:
                return True
        return False


def _is_backward(glyphs: Sequence[Glyph]) -> bool:
    """Return whether most of the letters are read from right to left."""
    letters = Counter(unicodedata.bidirectional(glyph.text[0]) for glyph in glyphs)
    return letters["R"] + letters["AL"] > letters["L"]


# -------------------------------------------------------------------------------- pieces and rows


def _pieces(glyphs: Sequence[Glyph], rules: _Rules | None) -> list[PdfPiece]:
    pieces: list[PdfPiece] = []
    for at, glyph in enumerate(glyphs):
        piece = pieces[-1] if pieces else None
        if piece is not None and _follows(piece.glyphs[-1], glyph, rules):
            piece.glyphs.append(glyph)
            piece.left, piece.right = min(piece.left, glyph.left), max(piece.right, glyph.right)
            if glyph.type.size > piece.type.size:
                piece.type = glyph.type
        else:
            pieces.append(PdfPiece([glyph], glyph.left, glyph.right, glyph.type, at))
    return [piece for piece in pieces if any(glyph.text != " " for glyph in piece.glyphs)]


def _follows(before: Glyph, glyph: Glyph, rules: _Rules | None) -> bool:
    """Return whether a glyph is beside the one that the file draws before it."""
    one, two = before.type, glyph.type
    size = max(one.size, two.size)
    resized = min(one.size, two.size) < SMALLER * size
    if one is not two and abs(before.base - glyph.base) > (SHIFTED if resized else HIGHER) * size:
        return False
    if before.value or glyph.value:
        return False
    gap = glyph.left - before.right
    if gap < -0.5 * size:
        back = before.left - glyph.right
        return (
            -0.5 * size <= back < CELLS_APART * size
            and (is_right_to_left(before.text) or is_right_to_left(glyph.text))
        ) or (abs(glyph.left - before.left) < 0.1 * size)
    if gap >= CELLS_APART * size:
        return False
    return (
        gap <= WORDS_APART * size
        or rules is None
        or not rules.between(before.right, glyph.left, before.base)
    )


def _rows(pieces: Sequence[PdfPiece]) -> list[list[PdfPiece]]:
    """Return the pieces by rows from the top."""
    rows: list[list[PdfPiece]] = []
    base = 0.0
    drawn = [piece for piece in pieces if not piece.value]
    for piece in sorted(drawn, key=lambda piece: (-piece.type.base, piece.left)):
        if rows and base - piece.type.base < LEVEL * max(piece.type.size, rows[-1][0].type.size):
            rows[-1].append(piece)
        else:
            rows.append([piece])
            base = piece.type.base
    return _with_values(_with_raised(rows), [piece for piece in pieces if piece.value])


def _with_values(rows: list[list[PdfPiece]], values: Sequence[PdfPiece]) -> list[list[PdfPiece]]:
    """Return the rows with what is filled into fields, in the row of its label or by itself."""
    for value in values:
        base = value.type.base
        near = [row for row in rows if abs(_level(row) - base) < FIELD * value.type.size]
        if near:
            min(near, key=lambda row: abs(_level(row) - base)).append(value)
        else:
            rows.insert(sum(_level(row) > base for row in rows), [value])
    return rows


def _level(row: Sequence[PdfPiece]) -> float:
    return max(row, key=lambda piece: piece.type.size * (not piece.value)).type.base


def _with_raised(rows: Sequence[list[PdfPiece]]) -> list[list[PdfPiece]]:
    """Return the rows, with those that are only small pieces beside the text of a neighbour in
    it."""
    kept: list[list[PdfPiece]] = []
    for row in rows:
        if (kept and _beside(row, kept[-1])) or (kept and _beside(kept[-1], row)):
            kept[-1] += row
        else:
            kept.append(row)
    return kept


def _beside(small: Sequence[PdfPiece], row: Sequence[PdfPiece]) -> bool:
    size = max(piece.type.size for piece in row)
    if abs(small[0].type.base - row[0].type.base) > SHIFTED * size:
        return False
    return all(
        piece.type.size < SMALLER * size
        and any(
            -0.2 * size < piece.left - other.right < 0.3 * size
            or -0.2 * size < other.left - piece.right < 0.3 * size
            for other in row
            if other.type.size > piece.type.size
        )
        for piece in small
    )


def _cells(row: Sequence[PdfPiece], rules: _Rules | None, *, backward: bool) -> PdfCells:
    cells: PdfCells = []
    for piece in sorted(row, key=lambda piece: piece.left):
        if cells and _joins(cells[-1], piece, rules, backward=backward):
            cells[-1].append(piece)
        else:
            cells.append([piece])
    return cells


def _joins(
    cell: Sequence[PdfPiece], piece: PdfPiece, rules: _Rules | None, *, backward: bool
) -> bool:
    end = max(each.right for each in cell)
    size = max(piece.type.size, cell[-1].type.size)
    if (
        rules is not None
        and piece.left - end > 0
        and rules.between(end, piece.left, piece.type.base)
    ):
        return False
    # What is filled in goes with its label, however long the field is.
    if piece.value != cell[-1].value and (cell[-1].value == backward or piece.value != backward):
        return True
    room = SENTENCES_APART if cell[-1].glyphs[-1].text in ".!?:" else CELLS_APART
    return piece.left - end < room * size


# ------------------------------------------------------------------------------------------- lines


def _line(cell: Sequence[PdfPiece], row: PdfCells, *, backward: bool) -> PdfLine:
    glyphs = [glyph for piece in cell for glyph in piece.glyphs]
    types = Counter(glyph.type for glyph in glyphs)
    sizes = Counter[float]()
    for type_, count in types.items():
        sizes[type_.size] += count
    size = max(sizes, key=lambda size: (sizes[size], size))
    base = max(
        (type_ for type_ in types if type_.size == size), key=lambda type_: types[type_]
    ).base
    left, right = left_of(cell), right_of(cell)
    return PdfLine(
        _text(cell, size, base, backward=backward),
        size,
        all(type_.bold for type_ in types),
        -right if backward else left,
        _base(row),
        -left if backward else right,
        fixed=all(type_.fixed for type_ in types),
    )


def _base(row: PdfCells) -> float:
    """Return the height of a row: that of its largest piece."""
    return max((piece for cell in row for piece in cell), key=lambda each: each.type.size).type.base


def _text(cell: Sequence[PdfPiece], size: float, base: float, *, backward: bool) -> str:
    if any(is_right_to_left(glyph.text) for piece in cell for glyph in piece.glyphs):
        return as_read(_seen(cell), backward=backward)
    text, end = "", None
    for piece in cell:
        gap = 0.0 if end is None else (piece.left - end) / size
        end = piece.right
        for at, (shift, glyphs) in enumerate(_by_shift(piece.glyphs, size, base)):
            blank = glyphs[0].parted if at else gap > WORDS_APART or glyphs[0].value
            if shift and not glyphs[0].value:
                blank = gap > 2 * WORDS_APART and not at
            words = _spelled(glyphs)
            text += " " * (blank and bool(text)) + (
                superscript_text(words, text) if shift > 0 else words
            )
    return text


def _spelled(glyphs: Sequence[Glyph]) -> str:
    return "".join(" " * (glyph.parted and at > 0) + glyph.text for at, glyph in enumerate(glyphs))


def _by_shift(
    glyphs: Sequence[Glyph], size: float, base: float
) -> Iterator[tuple[int, list[Glyph]]]:
    """Yield the glyphs by their height: 1 raised, -1 lowered, 0 on the line."""
    run: list[Glyph] = []
    last = 0
    for glyph in glyphs:
        if glyph.text == " ":
            continue
        shift = 0
        off = glyph.base - base
        if glyph.type.size < SMALLER * size and abs(off) > HIGHER * size:
            shift = 1 if off > 0 else -1
        if run and shift != last:
            yield last, run
            run = []
        run.append(glyph)
        last = shift
    yield last, run


def _seen(cell: Sequence[PdfPiece]) -> str:
    """Return the text of a cell as it is seen, from left to right. Marks stay with their letter."""
    clusters: dict[int, list[list[Glyph]]] = {}  # by the text object that draws them
    for glyph in (glyph for piece in cell for glyph in piece.glyphs):
        drawn = clusters.setdefault(glyph.drawn, [])
        if drawn and unicodedata.combining(glyph.text[0]):
            drawn[-1].append(glyph)
        else:
            drawn.append([glyph])
    for drawn in clusters.values():
        drawn.sort(key=lambda each: each[0].left + each[0].right)
    text, end = "", None
    for cluster in chain(*sorted(clusters.values(), key=lambda each: each[0][0].left)):
        first = cluster[0]
        if end is not None and first.left - end > WORDS_APART * first.type.size:
            text += " "
        end = first.right if end is None else max(end, first.right)
        signs = "".join(glyph.text for glyph in cluster)
        text += signs[::-1] if is_right_to_left(signs) else signs
    return " ".join(text.split())
