"""PDF to documents: the text of each page in the order in which the file has it, with the parts that its setting shows, headings
and tables as Markdown has them.

A file says where each line stands and in which type, and nothing of headings, paragraphs and tables. A line in larger type than
most of the text, or in bold type alone, is a heading; more room than usual between two lines ends a paragraph; pieces that stand
side by side, line after line, are a table. What stands at the same place above or below the text of several pages belongs to
none of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from handlers.kb.reading.document import Block, Document, Kind
from handlers.kb.reading.pdf_tables import Row, rows_of, table_at
from handlers.kb.reading.text import stem
from host.errors import IngestError
from host.pdf import Line, Pdf, read_pdf
from host.types.base import well_formed

LARGER = 1.15  # times the size of most of the text: a heading
LONGEST_HEADING = 120  # characters
LINE = 30  # characters of a line of text
ROOM = 1.3  # times the usual distance of two lines: a paragraph ends
HEADING_ROOM = 1.4  # times its size: the next line is a heading of its own
AGAIN = 3  # pages that have a line at the same place: it belongs to none of them; in short files two
SHORT = 5  # pages
RUNNING_ROOM = 1.6  # times its size: a second line above or below the text is none of it
_GENERATED = re.compile(r"(?i)^(?:microsoft \w+ - .*|untitled.*|.*\.(?:docx?|odt|tex|dvi|indd|pptx?|xlsx?|pdf|rtf|qxd))$")
_LEADERS = re.compile(r"(?:\. ?){4}")  # of a table of contents
_PARTED = re.compile(r"([^\W\d_]+)-\n([^\W\d_]+)")
_WORD = re.compile(r"\w+(?:-\w+)*")
_JOINING = frozenset({"and", "or", "to", "und", "oder", "bis", "et", "ou", "y", "o", "e"})  # "two- and threefold"
_PAGE_NUMBER = re.compile(r"(?i)(?:page|seite|p[aá]gina)\s*\d{1,4}(?:\s*(?:of|/|von|de|di)\s*\d{1,4})?|[-–]\s*\d{1,4}\s*[-–]")
_DIGITS = re.compile(r"\d+")

_Running = tuple[str, int]  # a line's text with # for its numbers, and its height


@dataclass(frozen=True)
class _Part:
    kind: Kind
    text: str
    style: tuple[float, bool] = (0.0, False)


def pdf(data: bytes, name: str) -> Document:
    """Raises IngestError."""
    try:
        found = read_pdf(data)
    except IngestError as exc:
        raise IngestError(f"{name!r} was not added: {exc.message}", hint=exc.hint) from exc
    pages = _without_running(found)
    body = _body([line for page in pages for line in page])
    parts = [(number, part) for number, page in enumerate(pages, 1) for part in _parts(rows_of(page), body)]
    styles = sorted({part.style for _, part in parts if part.kind == "heading"}, reverse=True)
    words = {word.casefold() for _, part in parts for word in _WORD.findall(part.text)}
    text, blocks = "", list[Block]()
    for number, part in parts:
        start, said = len(text), well_formed(_mended(part.text, words))
        level = min(6, styles.index(part.style) + 1) if part.kind == "heading" else 0
        text += f"{'#' * level} {said}" if level else said
        blocks.append(Block(part.kind, start, len(text), level=level, name=said if level else "", page=number))
        text += "\n\n"
    return Document(well_formed(_title(found.title, blocks)) or stem(name), text, tuple(blocks))


def _mended(text: str, words: Collection[str]) -> str:
    """The text with words whole that were parted at the end of a line. Where the file has the word with its hyphen elsewhere, and
    not without, the hyphen stays."""

    def mended(parted: re.Match[str]) -> str:
        left, right = parted.group(1), parted.group(2)
        if right in _JOINING or not (right[0].islower() or (left.isupper() and right.isupper())):
            return parted.group()
        hyphened = f"{left}-{right}"
        return hyphened if hyphened.casefold() in words and (left + right).casefold() not in words else left + right

    return _PARTED.sub(mended, text.replace("\u00ad\n", "").replace("\u00ad", ""))


def _title(given: str, blocks: Sequence[Block]) -> str:
    """The one that the file gives itself, unless a program did; else the highest heading of the first page."""
    if given and not _GENERATED.match(given):
        return given
    headings = [block for block in blocks if block.page == 1 and block.level]
    return min(headings, key=lambda block: block.level).name if headings else ""


def _without_running(found: Pdf) -> list[list[Line]]:
    """The pages without their running heads and feet and their numbers; what is not a number stays where it stands first."""
    seen: Counter[_Running] = Counter()
    for lines in found.lines:
        seen.update({_running(line) for row in _outermost(lines) for line in row})
    least = AGAIN if len(found.lines) >= SHORT else 2
    told: set[_Running] = set()
    pages = []
    for lines in found.lines:
        again: set[_Running] = set()
        for row in _outermost(lines):
            # The last row of a table has a number at the same place too, and other things beside it.
            if all(seen[_running(line)] >= least or _PAGE_NUMBER.fullmatch(line.text) for line in row):
                again.update(map(_running, row))
        pages.append([line for line in lines if _running(line) not in again or not _known(_running(line), told)])
        told |= again
    return pages


def _running(line: Line) -> _Running:
    return _DIGITS.sub("#", line.text), round(line.base)


def _known(line: _Running, told: Collection[_Running]) -> bool:
    return "#" in line[0] or line in told


def _outermost(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines that stand highest and lowest on a page, by their height, and the next ones where there is room between them and
    the others."""
    rows: dict[int, list[Line]] = {}
    for line in lines:
        rows.setdefault(round(line.base), []).append(line)
    outer = set()
    for inward in (sorted(rows), sorted(rows, reverse=True)):
        apart = len(inward) > 2 and abs(inward[2] - inward[1]) > RUNNING_ROOM * rows[inward[1]][0].size
        outer.update(inward[: 2 if apart else 1])
    return [rows[height] for height in sorted(outer)]


def _body(lines: Sequence[Line]) -> tuple[float, bool]:
    """The type that most of the text has."""
    letters: Counter[tuple[float, bool]] = Counter()
    for line in lines:
        letters[Row((line,)).style] += len(line.text)
    return max(letters, key=lambda style: letters[style], default=(0.0, False))


def _parts(rows: Sequence[Row], body: tuple[float, bool]) -> Iterator[_Part]:
    """The headings, tables and paragraphs of a page."""
    headings = [_is_heading(row, body, rows[at + 1] if at + 1 < len(rows) else None) for at, row in enumerate(rows)]
    usual = _usual(rows)
    at = 0
    while at < len(rows):
        table, taken = table_at(rows, at)
        if taken:
            yield _Part("table", table)
            at += taken
            continue
        first, heading = at, headings[at]
        room = HEADING_ROOM if heading else ROOM * usual
        at += 1
        while (
            at < len(rows) and headings[at] == heading and not _apart(rows[at - 1], rows[at], room) and not table_at(rows, at)[1]
        ):
            if heading and rows[at].style != rows[first].style:
                break
            at += 1
        text = [row.text for row in rows[first:at]]
        if heading and sum(map(len, text)) <= LONGEST_HEADING:
            yield _Part("heading", " ".join(text), rows[first].style)
        else:
            yield _Part("paragraph", "\n".join(text))


def _is_heading(row: Row, body: tuple[float, bool], following: Row | None) -> bool:
    """Larger type alone makes a heading; bold type does above a line of text, but not above the short lines of a table."""
    size, bold = row.style
    if len(row.cells) > 1 or len(row.text) > LONGEST_HEADING or row.text[-1] in ".,;:" or _LEADERS.search(row.text):
        return False
    above_text = following is not None and not following.cells[0].bold and len(following.text) >= LINE
    stands_out = size >= LARGER * body[0] or (bold and not body[1] and size >= body[0] and above_text)
    return stands_out and sum(letter.isalpha() for letter in row.text) > 1


def _usual(rows: Sequence[Row]) -> float:
    """The distance that lines of one paragraph have on a page, as a multiple of their size: one of the smaller that there are."""
    steps = [(one.cells[0].base - two.cells[0].base) / two.cells[0].size for one, two in pairwise(rows) if two.cells[0].size]
    down = sorted(step for step in steps if 0.8 < step < 3)
    return down[len(down) // 3] if down else 1.2


def _apart(one: Row, two: Row, room: float) -> bool:
    """Whether two rows that follow one another are two paragraphs: there is room between them, more than so many times the type's
    size, or the second stands higher, at the top of a column, and the first ends a sentence or is another kind of text."""
    step = one.cells[0].base - two.cells[0].base
    if step < 0:
        return one.text[-1:] in ".!?:。！？" or one.style != two.style or len(one.text) < LINE
    return step > room * max(two.cells[0].size, 1.0)
