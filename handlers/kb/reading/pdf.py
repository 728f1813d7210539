"""Read PDF: the text of each page in file order, with headings and tables as Markdown, recovered
from the layout.

A PDF records the position and the font of each line, and nothing about headings, paragraphs or
tables. A line in a larger font than most of the text, or a line entirely in bold, is a heading.
More space than usual between two lines ends a paragraph. Pieces of text side by side on consecutive
lines are a table. A first or last line that most pages repeat exactly at the same position is read
once, and page numbers are dropped; any other possible running head is kept, since losing text is
worse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from groundhook.core.errors import IngestError
from groundhook.core.readers.pdf import Pdf, PdfLine, read_pdf
from groundhook.core.types.base import well_formed
from groundhook.core.types.documents import Block, BlockKind, Document
from groundhook.handlers.kb.reading.pdf_tables import PdfRow, rows_of, table_at
from groundhook.handlers.kb.reading.text import stem

LARGER = 1.15  # × the size of most of the text: a heading
LONGEST_HEADING = 120  # characters
LINE = 30  # characters of a full line of text
ROOM = 1.3  # × the usual distance of two lines: a paragraph ends
HEADING_ROOM = 1.4  # × its size: the next line is a heading of its own
# Pages that must have a line at one position, and more than half of all pages, for it to be read
# only once.
AGAIN = 3
MOST_NAMED = 10  # pages without text that a note lists
EDGE = 2  # rows at most of a running head or foot
# × its size: a row of several pieces that is nearer to another such row is in a table
TABLE_ROOM = 3.0
_GENERATED = re.compile(
    r"(?i)^(?:microsoft \w+ - .*|untitled.*|\((?:anonymous|untitled|unspecified)\)"
    r"|.*\.(?:docx?|odt|tex|dvi|indd|pptx?|xlsx?|pdf|rtf|qxd))$"
)
_NUMBERED = re.compile(r"(?:\d+(?:\.\d+)*+\.?\s++)?[^\W\d_]")
_LETTERS = re.compile(r"[^\W\d_]+")
_LEADERS = re.compile(r"(?:\. ?){4}")  # of a table of contents
# Matches from the beginning of a word only: else the time for a long word grows with its square.
_PARTED = re.compile(r"(?<![^\W\d_])([^\W\d_]+)-\n([^\W\d_]+)")
_PARTED_CODE = re.compile(r"(?<=[A-Z0-9])-\n(?=[0-9])")
_WORD = re.compile(r"\w+(?:-\w+)*")
# "two- and threefold"
_JOINING = frozenset({"and", "or", "to", "und", "oder", "bis", "et", "ou", "y", "o", "e"})
# Whole lines: "Page 3 of 12", "- 3 -", "3 / 12", "3". A number of four digits on its own may be a
# year.
_PAGE_NUMBER = re.compile(
    r"(?i)(?:(?:page|seite|p[aá]gina)\s*\d{1,4}|[-–—]\s*\d{1,3}\s*[-–—]|\d{1,3})(?:\s*(?:of|/|von|de|di|sur)\s*\d{1,4})?"
)
_NUMBER = re.compile(r"\d+")

# The text of a line and its height. A page number is replaced by its difference from the page.
_LineKey = tuple[str, int]


@dataclass(frozen=True)
class _Part:
    kind: BlockKind
    text: str
    style: tuple[float, bool] = (0.0, False)


def _is_entry(text: str) -> bool:
    """Return whether a line is one of a table of contents: a title, leaders and a page."""
    rest = text.rstrip("0123456789")
    title = rest.rstrip(" \t\n\u00a0.…")
    page, leaders = len(text) - len(rest), len(rest) - len(title)
    return 1 <= page <= 4 and leaders >= 2 and _NUMBERED.match(title) is not None


def pdf(data: bytes, name: str) -> Document:
    """Return the document. Raises IngestError."""
    try:
        found = read_pdf(data)
    except IngestError as exc:
        raise IngestError(f"{name!r} was not added: {exc.message}", hint=exc.hint) from exc
    body = _body([line for page in found.lines for line in page])
    pages = _drop_contents(_drop_running_lines(found, body))
    parts = [
        (number, part)
        for number, page in enumerate(pages, 1)
        for part in _parts(rows_of(page), body)
    ]
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
    title = well_formed(_title(found.title, blocks)) or stem(name)
    return Document(title, text, tuple(blocks), notes=_scan_note(found))


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
        return (
            hyphened
            if hyphened.casefold() in words and (left + right).casefold() not in words
            else left + right
        )

    text = _PARTED_CODE.sub("-", text)
    return _PARTED.sub(rejoined, text.replace("\u00ad\n", "").replace("\u00ad", ""))


def _title(own_title: str, blocks: Sequence[Block]) -> str:
    """Return the title in the file's metadata, unless a program generated it; else the highest
    heading of the first page if no other heading has its level (else it is the first of several
    chapters); else ""."""
    if own_title and not _GENERATED.match(own_title):
        return own_title
    first = min(
        (block for block in blocks if block.page == 1 and block.level),
        key=lambda block: block.level,
        default=None,
    )
    return first.name if first and [block.level for block in blocks].count(first.level) == 1 else ""


def _drop_running_lines(found: Pdf, body: tuple[float, bool]) -> list[list[PdfLine]]:
    """Return the pages without page numbers, and with a running head or foot only at its first
    occurrence."""
    repeated = _repeated_lines(found.lines)
    read: set[_LineKey] = set()
    pages = []
    for page, lines in enumerate(found.lines, 1):
        running = _running_lines(lines, page, repeated, body)
        dropped = {
            line
            for line in running
            if _PAGE_NUMBER.fullmatch(line.text) or _line_key(line, page) in read
        }
        read.update(_line_key(line, page) for line in running)
        pages.append([line for line in lines if line not in dropped] or list(lines))
    return pages


def _drop_contents(pages: Sequence[Sequence[PdfLine]]) -> list[list[PdfLine]]:
    """Return the pages without tables of contents: rows that end with the number of a page, and
    without it repeat a line of the text. A page with other rows of this form has none."""
    rows = [rows_of(page) for page in pages]
    texts = (row.text for page in rows for row in page)
    titles = {_letters(text) for text in texts if not _is_entry(text)}
    contents = [_contents(page, titles) for page in rows]
    return [
        [line for line in lines if line not in entries]
        for lines, entries in zip(pages, contents, strict=True)
    ]


def _contents(page: Sequence[PdfRow], titles: Collection[str]) -> set[PdfLine]:
    entries = [row for row in page if _is_entry(row.text)]
    known = sum(_letters(row.text) in titles for row in entries)
    return {cell for row in entries for cell in row.cells if known >= max(AGAIN, len(entries) / 2)}


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(text)).casefold()


def _repeated_lines(pages: Sequence[Sequence[PdfLine]]) -> set[_LineKey]:
    """Return the lines at the top and the bottom of pages that most pages have."""
    seen: Counter[_LineKey] = Counter()
    for page, lines in enumerate(pages, 1):
        edges = (row for end in _rows_from_ends(lines) for row in end[:EDGE])
        seen.update({_line_key(line, page) for row in edges for line in row})
    least = max(AGAIN, len(pages) // 2 + 1)
    return {key for key, count in seen.items() if count >= least}


def _running_lines(
    lines: Sequence[PdfLine], page: int, repeated: Collection[_LineKey], body: tuple[float, bool]
) -> list[PdfLine]:
    """Return the running head and foot of a page: its rows from the top and from the bottom, up to
    the first one that belongs to the text."""
    running: list[PdfLine] = []
    for end in _rows_from_ends(lines):
        for at, row in enumerate(end[:EDGE]):
            if not _is_running(row, page, repeated, body) or _in_table(row, end[at + 1 : at + 2]):
                break
            running += row
    return running


def _is_running(
    row: Sequence[PdfLine], page: int, repeated: Collection[_LineKey], body: tuple[float, bool]
) -> bool:
    """Return whether every line of a row is repeated or names its page, and none is a heading."""
    return all(
        (_line_key(line, page) in repeated or _names_page(line, page))
        and not _in_heading_type(line, body)
        for line in row
    )


def _line_key(line: PdfLine, page: int) -> _LineKey:
    """Return what running lines of different pages have in common."""
    text = line.text
    if _PAGE_NUMBER.fullmatch(text):
        text = _NUMBER.sub(lambda number: f"{int(number.group()) - page:+d}", text, count=1)
    return text, round(line.base)


def _names_page(line: PdfLine, page: int) -> bool:
    """Return whether a line names its page in words ("Page 3"), which needs no comparison with
    other pages."""
    named = line.text[0].isalpha() and _PAGE_NUMBER.fullmatch(line.text)
    return bool(named) and int(_NUMBER.findall(line.text)[0]) == page


def _rows_from_ends(lines: Sequence[PdfLine]) -> tuple[list[list[PdfLine]], list[list[PdfLine]]]:
    """Return the rows of a page (lines at one height), from the top downwards and from the bottom
    upwards."""
    rows: dict[int, list[PdfLine]] = {}
    for line in lines:
        rows.setdefault(round(line.base), []).append(line)
    down = [rows[height] for height in sorted(rows, reverse=True)]
    return down, down[::-1]


def _in_heading_type(line: PdfLine, body: tuple[float, bool]) -> bool:
    size, bold = PdfRow((line,)).style
    return size >= LARGER * body[0] or (bold and not body[1] and size >= body[0])


def _in_table(row: Sequence[PdfLine], following: Sequence[Sequence[PdfLine]]) -> bool:
    near = following and abs(following[0][0].base - row[0].base) < TABLE_ROOM * row[0].size
    return bool(near) and len(row) > 1 and len(following[0]) > 1


def _body(lines: Sequence[PdfLine]) -> tuple[float, bool]:
    """Return the size and weight of the font of most of the text."""
    letters: Counter[tuple[float, bool]] = Counter()
    for line in lines:
        letters[PdfRow((line,)).style] += len(line.text)
    return max(letters, key=lambda style: letters[style], default=(0.0, False))


def _parts(rows: Sequence[PdfRow], body: tuple[float, bool]) -> Iterator[_Part]:
    """Yield the headings, tables and paragraphs of a page."""
    headings = [
        _is_heading(row, body, rows[at + 1] if at + 1 < len(rows) else None)
        for at, row in enumerate(rows)
    ]
    usual = _usual_step(rows)
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
            and not _paragraph_ends(rows[at - 1], rows[at], room)
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


def _is_heading(row: PdfRow, body: tuple[float, bool], following: PdfRow | None) -> bool:
    """Return whether a row is a heading: in a larger font, or in bold above a line of text, but not
    above the short lines of a table."""
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
