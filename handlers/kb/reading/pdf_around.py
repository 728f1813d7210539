"""What surrounds the text of a PDF's pages and is no part of it: running heads and feet, page
numbers, and tables of contents. Pure.

A head or foot that most pages repeat at the same position is read once, and page numbers are
dropped; any other possible running head is kept, since losing text is worse.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from groundhook.core.readers.pdf_rows import PdfLine
from groundhook.handlers.kb.reading.pdf_tables import PdfRow, rows_of

LARGER = 1.15  # × the size of most of the text: a heading
# A line that so many pages, and more than half of all, have at one position is read only once.
AGAIN = 3
AGAIN_LARGE = 5  # the same of a line that is as large as a heading
EDGE = 2  # rows at most of a running head or foot
# × its size: a row of several pieces that is nearer to another such row is in a table
TABLE_ROOM = 3.0
MOST_BETWEEN = 2  # rows between two entries of a table of contents: of a title of several lines
# Whole lines: "Page 3 of 12", "- 3 -", "3 / 12", "3". A number of four digits on its own may be a
# year.
_PAGE_NUMBER = re.compile(
    r"(?i)(?:(?:page|seite|p[aá]gina)\s*\d{1,4}|[-–—]\s*\d{1,3}\s*[-–—]|\d{1,3})(?:\s*(?:of|/|von|de|di|sur)\s*\d{1,4})?"
)
_ROMAN = re.compile(r"(?=[ivxl])(?:xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_NUMBER = re.compile(r"\d+")
_LETTERS = re.compile(r"[^\W\d_]+")
_NUMBERED = re.compile(r"(?:\d+(?>(?:\.\d+)*)\.?\s++)?[^\s\d]")
_CONTENTS = re.compile(
    r"(?i)(?:table of )?contents|inhalt(?:sverzeichnis)?|table des matières|sommaire|índice|indice"
)

# The text of a line and its position from the foot of the page. A page number is replaced by its
# difference from the page.
_LineKey = tuple[str, int]


@dataclass(frozen=True)
class _Seen:
    """How often lines are there: those at the top and the bottom of pages by their key, all by
    their letters."""

    keys: Counter[_LineKey]
    texts: Counter[str]
    pages: int
    body: tuple[float, bool]

    @property
    def least(self) -> int:
        return max(AGAIN, self.pages // 2 + 1)

    def repeats(self, line: PdfLine, page: int) -> bool:
        """Return whether a line is a running one."""
        count, number = self.keys[_line_key(line, page)], _PAGE_NUMBER.fullmatch(line.text)
        if self._is_large(line):
            return count >= max(AGAIN_LARGE, self.least) and not number
        roman = bool(_ROMAN.fullmatch(line.text))
        return count >= (AGAIN if roman else self.least) or _names_page(line, page)

    def stands_beside(self, line: PdfLine) -> bool:
        """Return whether a line beside the number of a page is a running one: the title of a
        chapter, which is a line of the text or of other pages."""
        return self.texts[_letters(line.text)] > 1 and not self._is_large(line)

    def _is_large(self, line: PdfLine) -> bool:
        return line.size >= LARGER * self.body[0]


def without_running_lines(
    pages: Sequence[Sequence[PdfLine]], body: tuple[float, bool], title: str
) -> list[list[PdfLine]]:
    """Return the pages without page numbers, and with a running head or foot only where it is
    first; without it if it is the title of the file."""
    seen = _count(pages, body)
    read: set[str] = {title} - {""}
    kept = []
    for page, lines in enumerate(pages, 1):
        running = _running_lines(lines, page, seen)
        dropped = {line for line in running if _is_number(line, page, seen) or _name(line) in read}
        read.update(map(_name, running))
        kept.append([line for line in lines if line not in dropped] or list(lines))
    return kept


def _name(line: PdfLine) -> str:
    """Return the text of a running line without the page number behind it."""
    return _unglued(line.text)[0]


def _unglued(text: str) -> tuple[str, str]:
    """Return a line, such as "Acme, confidential 2020 5", without the page number behind it, and
    that number."""
    rest = text.rstrip("0123456789")
    number, words = text[len(rest) :], rest.split()
    if not 1 <= len(number) <= 3 or len(words) < 3 or not rest[-1].isspace():
        return text, ""
    return rest.strip(), number


def _is_number(line: PdfLine, page: int, seen: _Seen) -> bool:
    if _ROMAN.fullmatch(line.text):
        return seen.repeats(line, page)
    return _PAGE_NUMBER.fullmatch(line.text) is not None


def _count(pages: Sequence[Sequence[PdfLine]], body: tuple[float, bool]) -> _Seen:
    keys, texts = Counter[_LineKey](), Counter[str]()
    for page, lines in enumerate(pages, 1):
        edges = {line for end in _rows_from_ends(lines) for row in end[:EDGE] for line in row}
        keys.update({_line_key(line, page) for line in edges})
        texts.update(_letters(line.text) for line in lines)
    return _Seen(keys, texts, len(pages), body)


def _running_lines(lines: Sequence[PdfLine], page: int, seen: _Seen) -> list[PdfLine]:
    """Return the running head and foot of a page: its rows from the top and from the bottom, up to
    the first one that belongs to the text."""
    running: list[PdfLine] = []
    for end in _rows_from_ends(lines):
        for at, row in enumerate(end[:EDGE]):
            if not _is_running(row, page, seen) or _in_table(row, end[at + 1 : at + 2]):
                break
            running += row
    return running


def _is_running(row: Sequence[PdfLine], page: int, seen: _Seen) -> bool:
    """Return whether every line of a row is repeated, names its page, or is beside one."""
    repeated = [seen.repeats(line, page) for line in row]
    return any(repeated) and all(
        again or seen.stands_beside(line) for again, line in zip(repeated, row, strict=True)
    )


def _line_key(line: PdfLine, page: int) -> _LineKey:
    """Return what running lines of different pages have in common."""
    text = line.text
    if _PAGE_NUMBER.fullmatch(text):
        text = _NUMBER.sub(lambda number: f"{int(number.group()) - page:+d}", text, count=1)
    elif _ROMAN.fullmatch(text):
        text = f"roman {_value(text) - page:+d}"
    elif (glued := _unglued(text))[1]:
        text = f"{glued[0]} {int(glued[1]) - page:+d}"
    return text, round(line.base)


def _value(roman: str) -> int:
    values = [{"i": 1, "v": 5, "x": 10, "l": 50}[sign] for sign in roman]
    return sum(-value if value < max(values[at:]) else value for at, value in enumerate(values))


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


def in_heading_type(line: PdfLine, body: tuple[float, bool]) -> bool:
    """Return whether a line is larger than most of the text, or bold where that is not."""
    size, bold = PdfRow((line,)).style
    return size >= LARGER * body[0] or (bold and not body[1] and size >= body[0])


def _in_table(row: Sequence[PdfLine], following: Sequence[Sequence[PdfLine]]) -> bool:
    near = following and abs(following[0][0].base - row[0].base) < TABLE_ROOM * row[0].size
    return bool(near) and len(row) > 1 and len(following[0]) > 1


# --------------------------------------------------------------------------------------- contents


def without_contents(pages: Sequence[Sequence[PdfLine]]) -> list[list[PdfLine]]:
    """Return the pages without tables of contents: rows that end with the number of a page, and
    without it repeat a line of the text. Where fewer than half of such rows on a page do, they are
    text, such as a table of prices."""
    rows = [rows_of(page) for page in pages]
    texts = (row.text for page in rows for row in page)
    titles = {_letters(text) for text in texts if not _is_entry(text)}
    contents: list[set[PdfLine]] = []
    for page in rows:
        goes_on = bool(contents and contents[-1])
        contents.append(set(_contents(page, titles, 1 if goes_on else AGAIN)))
    return [
        [line for line in lines if line not in entries]
        for lines, entries in zip(pages, contents, strict=True)
    ]


def _contents(page: Sequence[PdfRow], titles: Collection[str], least: int) -> Iterator[PdfLine]:
    """Yield the lines of a table of contents: its entries, what is between two of them, and its
    title. At least so many entries must be known titles."""
    entries = [at for at, row in enumerate(page) if _is_entry(row.text)]
    known = sum(_letters(page[at].text) in titles for at in entries)
    if not entries or known < max(least, len(entries) / 2):
        return
    taken = set(entries)
    for one, two in pairwise(entries):
        if two - one - 1 <= MOST_BETWEEN:
            taken.update(range(one, two))
    first = min(taken) - 1
    if first >= 0 and _CONTENTS.fullmatch(page[first].text.strip()):
        taken.add(first)
    for at in taken:
        yield from page[at].cells


def _is_entry(text: str) -> bool:
    """Return whether a line is one of a table of contents: a title, leaders and a page."""
    rest = text.rstrip("0123456789")
    title = rest.rstrip(" \t\n\u00a0.…")
    page, leaders = len(text) - len(rest), len(rest) - len(title)
    return 1 <= page <= 4 and leaders >= 2 and _NUMBERED.match(title) is not None


def _letters(text: str) -> str:
    return "".join(_LETTERS.findall(text)).casefold()
