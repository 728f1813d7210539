"""The rows of one query as the model reads them: how the question was read, how many rows there are
and how many are shown, then one line for each row, which begins with its id. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from groundhook.core.types.search import Item, SearchAccount, Table
from groundhook.core.types.tables import in_line

TABLE_LIMIT = 12_000  # characters of the rows of one table, about 3,000 tokens
CELL_LIMITS = (1000, 300, 120, 60)  # characters of a cell, tried in this order

_Plain = Callable[[str], str]


def table_block(table: Table, rows: Sequence[Item], plain: _Plain) -> str:
    """Return the table with as many of its first rows as fit. `plain` makes text of strangers
    harmless."""
    names = " | ".join(["id", *(_cell(name, CELL_LIMITS[-1], plain) for name in table.columns)])
    shown = _fitting(rows, plain)
    lines = [
        *account_lines(table.account, plain),
        count_line(table, len(shown)),
        "Each line begins with the id of its row; cite a row by its id.",
        names,
        *shown,
    ]
    return "\n".join(lines)


def account_lines(account: SearchAccount, plain: _Plain) -> Iterator[str]:
    """Yield what the search says of itself, one statement on each line."""
    if account.read_as:
        yield f"The question was read as: {plain(in_line(account.read_as))}"
    if account.unread:
        words = ", ".join(f'"{plain(in_line(word))}"' for word in account.unread)
        yield f"Not understood, and without effect: {words}"
    for other in account.readings:
        total = "" if other.total is None else f" ({other.total} rows)"
        yield f"Another reading that fits as well: {plain(in_line(other.read_as))}{total}"
    if account.explanation and account.certainty != "sure":
        yield f"Note: {plain(in_line(account.explanation))}"


def count_line(table: Table, shown: int) -> str:
    """Return how many rows there are, and how many are shown."""
    least = "at least " if table.total_is == "at_least" else ""
    if shown >= table.total and not least:
        return f"{table.total} rows, all of them:"
    return f"There are {least}{table.total} rows; only the first {shown} are shown:"


def _fitting(rows: Sequence[Item], plain: _Plain) -> list[str]:
    """Return the lines of as many rows as fit, with cells that are cut only where it helps."""
    kept: list[str] = []
    for limit in CELL_LIMITS:
        kept, size = [], 0
        for item in rows:
            line = _line(item, limit, plain)
            size += len(line)
            if size > TABLE_LIMIT and kept:
                break
            kept.append(line)
        if len(kept) == len(rows):
            break
    return kept


def _line(item: Item, limit: int, plain: _Plain) -> str:
    cells = item.row.cells if item.row else ()
    return " | ".join([item.citation_id, *(_cell(text, limit, plain) for text in cells)])


def _cell(text: str, limit: int, plain: _Plain) -> str:
    line = in_line(text[: 2 * limit])
    cut = len(line) > limit or len(text) > 2 * limit
    return plain(line[: limit - 1] + "…" if cut else line).replace("|", "\\|")
