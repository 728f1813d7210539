"""Read PDF: the text of each page in file order, with headings and tables as Markdown, recovered
from the layout.

A PDF records the position and the font of each line, and nothing about headings, paragraphs or
tables. A line in a larger font than most of the text, or a line entirely in bold, is a heading.
More space than usual between two lines ends a paragraph. Pieces of text side by side on consecutive
lines are a table. What surrounds the text of pages is omitted (`pdf_around`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from groundhook.core.errors import IngestError
from groundhook.core.readers.pdf import Pdf, read_pdf
from groundhook.core.readers.pdf_rows import PdfLine
from groundhook.core.types.base import well_formed
from groundhook.core.types.documents import Block, BlockKind, Document
from groundhook.handlers.kb.reading.pdf_around import (
    LARGER,
    in_heading_type,
    without_contents,
    without_running_lines,
)
from groundhook.handlers.kb.reading.pdf_tables import PdfRow, rows_of, table_at
from groundhook.handlers.kb.reading.text import stem

LONGEST_HEADING = 120  # characters
LINE = 30  # characters of a full line of text
ROOM = 1.3  # × the usual distance of two lines: a paragraph ends
HEADING_ROOM = 1.4  # × its size: the next line is a heading of its own
MOST_NAMED = 10  # pages without text that a note lists
_GENERATED = re.compile(
    r"(?i)^(?:microsoft \w+ - .*|untitled.*|\((?:anonymous|untitled|unspecified)\)"
    r"|.*\.(?:docx?|odt|tex|dvi|indd|pptx?|xlsx?|pdf|rtf|qxd))$"
)
_LEADERS = re.compile(r"(?:\. ?){4}")  # of a table of contents
# Matches from the beginning of a word only: else the time for a long word grows with its square.
_PARTED = re.compile(r"(?<![^\W\d_])([^\W\d_]+)-\n([^\W\d_]+)")
_PARTED_CODE = re.compile(r"(?<=[A-Z0-9])-\n(?=[0-9])")
_WORD = re.compile(r"\w+(?:-\w+)*")
# "two- and threefold"
_JOINING = frozenset({"and", "or", "to", "und", "oder", "bis", "et", "ou", "y", "o", "e"})
# Parts of words that a hyphen joins when a line ends after the first: "long-term".
_FIRST = frozenset(
    {"full", "high", "long", "low", "medium", "mid", "near", "part", "real", "short"}
)
_SECOND = frozenset({"end", "level", "quality", "range", "scale", "speed", "term", "time"})


@dataclass(frozen=True)
class _Part:
    kind: BlockKind
    text: str
    style: tuple[float, bool] = (0.0, False)


def pdf(data: bytes, name: str) -> Document:
    """Return the document. Raises IngestError."""
    try:
        found = read_pdf(data)
    except IngestError as exc:
        raise IngestError(f"{name!r} was not added: {exc.message}", hint=exc.hint) from exc
    body = _body([line for page in found.lines for line in page])
    own_title = "" if _GENERATED.match(found.title) else found.title
    pages = without_contents(without_running_lines(found.lines, body.style, own_title))
    chapters = {(_letters(title), page) for title, page in found.outline}
    parts = [
        (number, part)
        for number, page in enumerate(pages, 1)
        for part in _Layout(body, {title for title, at in chapters if at == number}).parts(
            rows_of(page)
        )
    ]
    text, blocks = _written(parts)
    title = well_formed(_title(own_title, blocks)) or stem(name)
    return Document(title, text, tuple(blocks), notes=_scan_note(found))


def _written(parts: Sequence[tuple[int, _Part]]) -> tuple[str, list[Block]]:
    """Return the text of the parts of pages, and its blocks."""
    sizes = sorted({part.style[0] for _, part in parts if part.kind == "heading"}, reverse=True)
    words = {word.casefold() for _, part in parts for word in _WORD.findall(part.text)}
    text, blocks = "", list[Block]()
    for number, part in parts:
        start, content = len(text), well_formed(_rejoin_words(part.text, words))
        level = min(6, sizes.index(part.style[0]) + 1) if part.kind == "heading" else 0
        text += f"{'#' * level} {content}" if level else content
        blocks.append(
            Block(
                part.kind, start, len(text), level=level, name=content if level else "", page=number
            )
        )
        text += "\n\n"
    return text, blocks


def _scan_note(found: Pdf) -> tuple[str, ...]:
    """Return a note about pages that have only images."""
    if not found.scanned:
        return ()
    some, many = found.scanned[:MOST_NAMED], len(found.scanned)
    shown = ", ".join(map(str, some)) + (", …" if many > len(some) else "")
    problem = (
        f"page {shown} has no text, only images"
        if many == 1
        else f"{many} pages have no text, only images: {shown}"
    )
    return (f"{problem} (recognise its text (OCR) first)",)


def _rejoin_words(text: str, words: Collection[str]) -> str:
    """Join words that were hyphenated at the end of a line. The hyphen stays if the file has the
    word elsewhere with it and never without."""

    def rejoined(parted: re.Match[str]) -> str:
        left, right = parted.group(1), parted.group(2)
        if right in _JOINING or not (right[0].islower() or (left.isupper() and right.isupper())):
            return parted.group()
        hyphened = f"{left}-{right}"
        if (left + right).casefold() in words:
            return left + right
        usual = left.casefold() in _FIRST and right.casefold() in _SECOND
        return hyphened if usual or hyphened.casefold() in words else left + right

    text = _PARTED_CODE.sub("-", text)
    return _PARTED.sub(rejoined, text.replace("\u00ad\n", "").replace("\u00ad", ""))


def _title(own_title: str, blocks: Sequence[Block]) -> str:
    """Return the title in the file's metadata; else the highest
    heading of the first page if no other heading has its level (else it is the first of several
    chapters); else ""."""
    if own_title:
        return own_title
    first = min(
        (block for block in blocks if block.page == 1 and block.level),
        key=lambda block: block.level,
        default=None,
    )
    return first.name if first and [block.level for block in blocks].count(first.level) == 1 else ""


@dataclass(frozen=True)
class _Body:
    """The type of most of the text: its size and weight, and whether its letters are equally
    wide."""

    style: tuple[float, bool]
    fixed: bool


def _body(lines: Sequence[PdfLine]) -> _Body:
    letters, fixed = Counter[tuple[float, bool]](), 0
    for line in lines:
        letters[PdfRow((line,)).style] += len(line.text)
        fixed += len(line.text) if line.fixed else -len(line.text)
    return _Body(max(letters, key=lambda style: letters[style], default=(0.0, False)), fixed > 0)


@dataclass(frozen=True)
class _Layout:
    """Finds the parts of a page. `chapters` are the letters of its titles in the outline."""

    body: _Body
    chapters: Collection[str]

    def parts(self, rows: Sequence[PdfRow]) -> Iterator[_Part]:
        """Yield the headings, tables and paragraphs of a page."""
        headings = [
            self._is_heading(row, rows[at + 1] if at + 1 < len(rows) else None)
            for at, row in enumerate(rows)
        ]
        usual = _usual_step(rows)
        at = 0
        while at < len(rows):
            table, taken = self._table_at(rows, at)
            if taken:
                yield _Part("table", table)
                at += taken
                continue
            first, heading = at, headings[at]
            room = HEADING_ROOM if heading else ROOM * usual
            at += 1
            while (
                at < len(rows)
                and headings[at] == heading
                and not _paragraph_ends(rows[at - 1], rows[at], room)
                and not self._table_at(rows, at)[1]
                and not (heading and rows[at].style != rows[first].style)
            ):
                at += 1
            text = [row.text for row in rows[first:at]]
            if heading and sum(map(len, text)) <= LONGEST_HEADING:
                yield _Part("heading", " ".join(text), rows[first].style)
            else:
                yield _Part("paragraph", "\n".join(text))

    def _table_at(self, rows: Sequence[PdfRow], at: int) -> tuple[str, int]:
        """Return the table at a row, as `table_at`. Code has gaps as well, and is none."""
        if not self.body.fixed and all(cell.fixed for cell in rows[at].cells):
            return "", 0
        return table_at(rows, at)

    def _is_heading(self, row: PdfRow, following: PdfRow | None) -> bool:
        """Return whether a row is a heading: in the outline, in a larger font, or in bold above a
        line of text, but not above the short lines of a table."""
        if (
            (len(row.cells) > 1 and not row.numbered)
            or len(row.text) > LONGEST_HEADING
            or row.text[-1] in ".,;:"
            or _LEADERS.search(row.text)
        ):
            return False
        larger = row.style[0] >= LARGER * self.body.style[0]
        above_text = (
            following is not None and not following.cells[0].bold and len(following.text) >= LINE
        )
        stands_out = (
            larger
            or (above_text and in_heading_type(row.cells[0], self.body.style))
            or _letters(row.text) in self.chapters
        )
        return stands_out and sum(letter.isalpha() for letter in row.text) > 1


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalpha())


def _usual_step(rows: Sequence[PdfRow]) -> float:
    """Return the distance of lines within a paragraph of this page, as a multiple of their size:
    the lower third of all distances."""
    steps = [
        (one.cells[0].base - two.cells[0].base) / two.cells[0].size
        for one, two in pairwise(rows)
        if two.cells[0].size
    ]
    down = sorted(step for step in steps if 0.8 < step < 3)
    return down[len(down) // 3] if down else 1.2


def _paragraph_ends(one: PdfRow, two: PdfRow, room: float) -> bool:
    """Return whether a paragraph ends between two consecutive rows: the space between them is more
    than `room` times the font size, or the second is higher, at the top of a column, and the first
    ends a sentence, is short or has another font."""
    step = one.cells[0].base - two.cells[0].base
    if step < 0:
        return one.text[-1:] in ".!?:。！？" or one.style != two.style or len(one.text) < LINE
    return step > room * max(two.cells[0].size, 1.0)
