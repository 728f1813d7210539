"""PDF to documents: the text of each page in the order in which the file has it, with the parts
that its setting shows, headings and tables as Markdown has them.

A file says where each line stands and in which type, and nothing of headings, paragraphs and
tables. A line in larger type than most of the text, or in bold type alone, is a heading; more room
than usual between two lines ends a paragraph; pieces that stand side by side, line after line, are
a table. A first or last line that most pages have, letter for letter and at the same place, is read
once, and a page's number never; whatever else may be a running head is kept, since text that is
lost is worse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from groundhook.handlers.kb.reading.pdf_tables import Row, rows_of, table_at
from groundhook.handlers.kb.reading.text import stem
from groundhook.host.core.errors import IngestError
from groundhook.host.core.types.base import well_formed
from groundhook.host.core.types.documents import Block, Document, Kind
from groundhook.host.readers.pdf import Line, Pdf, read_pdf

LARGER = 1.15  # times the size of most of the text: a heading
LONGEST_HEADING = 120  # characters
LINE = 30  # characters of a line of text
ROOM = 1.3  # times the usual distance of two lines: a paragraph ends
HEADING_ROOM = 1.4  # times its size: the next line is a heading of its own
# pages at least that have the same line at the same place, and more than half of all: it is read
# once
AGAIN = 3
MOST_NAMED = 10  # pages
EDGE = 2  # rows at most above and below the text
# times its size: a row of several pieces that is nearer to another such row is one of a table
TABLE_ROOM = 3.0
_GENERATED = re.compile(
    r"(?i)^(?:microsoft \w+ - .*|untitled.*|\((?:anonymous|untitled|unspecified)\)"
    r"|.*\.(?:docx?|odt|tex|dvi|indd|pptx?|xlsx?|pdf|rtf|qxd))$"
)
_LEADERS = re.compile(r"(?:\. ?){4}")  # of a table of contents
_PARTED = re.compile(
    r"(?<![^\W\d_])([^\W\d_]+)-\n([^\W\d_]+)"
)  # from a word's beginning only, or a long one takes its square
_WORD = re.compile(r"\w+(?:-\w+)*")
_JOINING = frozenset(
    {"and", "or", "to", "und", "oder", "bis", "et", "ou", "y", "o", "e"}
)  # "two- and threefold"
# Whole lines: "Page 3 of 12", "- 3 -", "3 / 12", "3". A number of four digits on its own may be a
# year.
_PAGE_NUMBER = re.compile(
    r"(?i)(?:(?:page|seite|p[aá]gina)\s*\d{1,4}|[-–—]\s*\d{1,3}\s*[-–—]|\d{1,3})(?:\s*(?:of|/|von|de|di|sur)\s*\d{1,4})?"
)
_NUMBER = re.compile(r"\d+")

_Same = tuple[
    str, int
]  # a line's text, where it is a page's number with how far that is from the page, and its height


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
    body = _body([line for page in found.lines for line in page])
    pages = _without_running(found, body)
    parts = [
        (number, part)
        for number, page in enumerate(pages, 1)
        for part in _parts(rows_of(page), body)
    ]
    sizes = sorted({part.style[0] for _, part in parts if part.kind == "heading"}, reverse=True)
    words = {word.casefold() for _, part in parts for word in _WORD.findall(part.text)}
    text, blocks = "", list[Block]()
    for number, part in parts:
        start, said = len(text), well_formed(_mended(part.text, words))
        level = min(6, sizes.index(part.style[0]) + 1) if part.kind == "heading" else 0
        text += f"{'#' * level} {said}" if level else said
        blocks.append(
            Block(part.kind, start, len(text), level=level, name=said if level else "", page=number)
        )
        text += "\n\n"
    title = well_formed(_title(found.title, blocks)) or stem(name)
    return Document(title, text, tuple(blocks), notes=_scanned(found))


def _scanned(found: Pdf) -> tuple[str, ...]:
    """What to say of pages that were left out."""
    if not found.scanned:
        return ()
    some, many = found.scanned[:MOST_NAMED], len(found.scanned)
    shown = ", ".join(map(str, some)) + (", …" if many > len(some) else "")
    said = (
        f"page {shown} has no text, only images"
        if many == 1
        else f"{many} pages have no text, only images: {shown}"
    )
    return (f"{said} (recognise its text (OCR) first, to have it found)",)


def _mended(text: str, words: Collection[str]) -> str:
    """The text with words whole that were parted at the end of a line. Where the file has the word
    with its hyphen elsewhere, and not without, the hyphen stays."""

    def mended(parted: re.Match[str]) -> str:
        left, right = parted.group(1), parted.group(2)
        if right in _JOINING or not (right[0].islower() or (left.isupper() and right.isupper())):
            return parted.group()
        hyphened = f"{left}-{right}"
        return (
            hyphened
            if hyphened.casefold() in words and (left + right).casefold() not in words
            else left + right
        )

    return _PARTED.sub(mended, text.replace("\u00ad\n", "").replace("\u00ad", ""))


def _title(given: str, blocks: Sequence[Block]) -> str:
    """The one that the file gives itself, unless a program did; else the highest heading of the
    first page where it is the only one of its level: the first of several chapters is not what the
    others are parts of."""
    if given and not _GENERATED.match(given):
        return given
    first = min(
        (block for block in blocks if block.page == 1 and block.level),
        key=lambda block: block.level,
        default=None,
    )
    return first.name if first and [block.level for block in blocks].count(first.level) == 1 else ""


def _without_running(found: Pdf, body: tuple[float, bool]) -> list[list[Line]]:
    """The pages without their numbers, and with a running head or foot only where it stands
    first."""
    seen: Counter[_Same] = Counter()
    for page, lines in enumerate(found.lines, 1):
        seen.update(
            {_same(line, page) for end in _ends(lines) for row in end[:EDGE] for line in row}
        )
    least = max(AGAIN, len(found.lines) // 2 + 1)
    told: set[_Same] = set()
    pages = []
    for page, lines in enumerate(found.lines, 1):
        running: list[Line] = []
        for end in _ends(lines):
            for at, row in enumerate(end[:EDGE]):
                again = all(
                    seen[_same(line, page)] >= least or _says_page(line, page) for line in row
                )
                if (
                    not again
                    or any(_in_heading_type(line, body) for line in row)
                    or _in_table(row, end[at + 1 : at + 2])
                ):
                    break
                running += row
        left_out = {
            line
            for line in running
            if _PAGE_NUMBER.fullmatch(line.text) or _same(line, page) in told
        }
        told.update(_same(line, page) for line in running)
        pages.append([line for line in lines if line not in left_out] or list(lines))
    return pages


def _same(line: Line, page: int) -> _Same:
    text = line.text
    if _PAGE_NUMBER.fullmatch(text):
        text = _NUMBER.sub(lambda number: f"{int(number.group()) - page:+d}", text, count=1)
    return text, round(line.base)


def _says_page(line: Line, page: int) -> bool:
    """Whether a line names its page in so many words, which needs no other pages to be
    understood."""
    named = line.text[0].isalpha() and _PAGE_NUMBER.fullmatch(line.text)
    return bool(named) and int(_NUMBER.findall(line.text)[0]) == page


def _ends(lines: Sequence[Line]) -> tuple[list[list[Line]], list[list[Line]]]:
    """What stands at one height, from the top of a page downwards and from its bottom upwards."""
    rows: dict[int, list[Line]] = {}
    for line in lines:
        rows.setdefault(round(line.base), []).append(line)
    down = [rows[height] for height in sorted(rows, reverse=True)]
    return down, down[::-1]


def _in_heading_type(line: Line, body: tuple[float, bool]) -> bool:
    size, bold = Row((line,)).style
    return size >= LARGER * body[0] or (bold and not body[1] and size >= body[0])


def _in_table(row: Sequence[Line], following: Sequence[Sequence[Line]]) -> bool:
    near = following and abs(following[0][0].base - row[0].base) < TABLE_ROOM * row[0].size
    return bool(near) and len(row) > 1 and len(following[0]) > 1


def _body(lines: Sequence[Line]) -> tuple[float, bool]:
    """The type that most of the text has."""
    letters: Counter[tuple[float, bool]] = Counter()
    for line in lines:
        letters[Row((line,)).style] += len(line.text)
    return max(letters, key=lambda style: letters[style], default=(0.0, False))


def _parts(rows: Sequence[Row], body: tuple[float, bool]) -> Iterator[_Part]:
    """The headings, tables and paragraphs of a page."""
    headings = [
        _is_heading(row, body, rows[at + 1] if at + 1 < len(rows) else None)
        for at, row in enumerate(rows)
    ]
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
            at < len(rows)
            and headings[at] == heading
            and not _apart(rows[at - 1], rows[at], room)
            and not table_at(rows, at)[1]
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
    """Larger type alone makes a heading; bold type does above a line of text, but not above the
    short lines of a table."""
    if (
        len(row.cells) > 1
        or len(row.text) > LONGEST_HEADING
        or row.text[-1] in ".,;:"
        or _LEADERS.search(row.text)
    ):
        return False
    larger = row.style[0] >= LARGER * body[0]
    above_text = (
        following is not None and not following.cells[0].bold and len(following.text) >= LINE
    )
    stands_out = larger or (above_text and _in_heading_type(row.cells[0], body))
    return stands_out and sum(letter.isalpha() for letter in row.text) > 1


def _usual(rows: Sequence[Row]) -> float:
    """The distance that lines of one paragraph have on a page, as a multiple of their size: one of
    the smaller that there are."""
    steps = [
        (one.cells[0].base - two.cells[0].base) / two.cells[0].size
        for one, two in pairwise(rows)
        if two.cells[0].size
    ]
    down = sorted(step for step in steps if 0.8 < step < 3)
    return down[len(down) // 3] if down else 1.2


def _apart(one: Row, two: Row, room: float) -> bool:
    """Whether two rows that follow one another are two paragraphs: there is room between them, more
    than so many times the type's size, or the second stands higher, at the top of a column, and the
    first ends a sentence or is another kind of text."""
    step = one.cells[0].base - two.cells[0].base
    if step < 0:
        return one.text[-1:] in ".!?:。！？" or one.style != two.style or len(one.text) < LINE
    return step > room * max(two.cells[0].size, 1.0)
