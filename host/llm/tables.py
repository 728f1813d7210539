"""Writes the rows of one query for a reader: a Markdown table, the true number of rows, and what
was not understood, in the language of the question. Pure.

The sentences are in the section `rows` of a language's file; a language without them has English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from groundhook.core.language.phrases import phrases
from groundhook.core.types.search import Item, Table
from groundhook.core.types.tables import in_line, most_shown

MOST_COLUMNS = 10
LONGEST_CELL = 120  # characters
WIDEST = 40  # up to this width, cells are padded so that columns are aligned as plain text

# What Markdown or HTML in a cell could begin; a pipe would begin another cell. "<" and a blank is
# no tag: "Price < 5" stays readable where Markdown is shown as it is written.
# Not in the pattern: each match of one with several signs takes a microsecond.
_ESCAPES = str.maketrans({sign: f"\\{sign}" for sign in "\\|`*[]"})
_TAG = re.compile(r"<(?![\s\d])")


def table_parts(table: Table, rows: Sequence[Item], question: str) -> Iterator[str]:
    """Yield the parts of an answer for one table: its name, its rows, and sentences."""
    say = phrases("rows", question)
    yield f"**{escaped(in_line(table.account.read_as or table.name))}**"
    shown = rows[: most_shown(table)]
    yield "\n".join(_lines(table, shown))
    if len(shown) < table.total:
        key = "at least" if table.total_is == "at_least" else "more"
        yield f"{say[key].format(shown=len(shown), total=table.total)} {say['rest']}"
    yield from doubts(table, question)


def doubts(table: Table, question: str) -> Iterator[str]:
    """Yield a sentence where something was left over, or several readings fit."""
    account, say = table.account, phrases("rows", question)
    if account.certainty == "sure":
        return
    if account.explanation:
        yield escaped(in_line(account.explanation))
        return
    if account.unread:
        words = ", ".join(f'"{escaped(in_line(word))}"' for word in account.unread)
        yield say["unread"].format(words=words)
    if account.readings:
        readings = "; ".join(escaped(in_line(each.read_as)) for each in account.readings)
        yield say["readings"].format(readings=readings)


def escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return _TAG.sub(r"\\<", text.translate(_ESCAPES))


def _lines(table: Table, rows: Sequence[Item]) -> Iterator[str]:
    columns = [_cell(name) for name in table.columns[:MOST_COLUMNS]]
    cells = [[_cell(text) for text in item.row.cells[:MOST_COLUMNS]] for item in rows if item.row]
    widths = [
        min(WIDEST, max(map(len, (name, *(each[at] for each in cells)))))
        for at, name in enumerate(columns)
    ]
    yield _row(columns, widths, "")
    yield _row(["-" * max(3, width) for width in widths], widths, "---")
    for each, item in zip(cells, rows, strict=True):
        yield _row(each, widths, item.citation_id)


def _row(cells: Sequence[str], widths: Sequence[int], last: str) -> str:
    padded = [text.ljust(width) for text, width in zip(cells, widths, strict=True)]
    return f"| {' | '.join([*padded, last])} |"


def _cell(text: str) -> str:
    line = in_line(text[: 2 * LONGEST_CELL])
    cut = len(line) > LONGEST_CELL or len(text) > 2 * LONGEST_CELL
    return escaped(f"{line[: LONGEST_CELL - 1].rstrip()}…" if cut else line)
