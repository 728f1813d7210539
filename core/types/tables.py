"""Tables of the rows of one query. Pure: who shows a table escapes it for its readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from groundhook.core.types.search import Item, LongTable, SearchAccount, Table, TotalIs

MOST_SHOWN = 20  # rows of a table in an answer without a model
MOST_NAMED = 200  # of one of which the question named the number


def most_shown(table: Table) -> int:
    """Return how many rows of a table an answer without a model shows at most."""
    return MOST_NAMED if table.whole else MOST_SHOWN


def tables_of(items: Iterable[Item]) -> Iterator[tuple[Table | None, list[Item]]]:
    """Yield the items in their order: rows of one table that follow one another together with it,
    and each other item alone."""
    for id, run in groupby(items, key=lambda item: item.row.table.id if item.row else None):
        rows = list(run)
        if id is None:
            yield from ((None, [item]) for item in rows)
        else:
            yield rows[0].row.table if rows[0].row else None, rows


def long_tables(items: Iterable[Item]) -> tuple[LongTable, ...]:
    """Return the tables of a search of which answers show a part."""
    return tuple(
        LongTable(
            id=table.id,
            name=table.account.read_as or table.name,
            rows=len(rows),
            total=table.total,
            total_is=table.total_is,
            language=table.language,
        )
        for table, rows in tables_of(items)
        if table is not None and table.total > min(len(rows), most_shown(table))
    )


def table_lines(rows: Sequence[Item]) -> Iterator[str]:
    """Yield the head and the rows of a table as lines of cells between ` | `."""
    if rows and rows[0].row:
        yield " | ".join(map(in_line, rows[0].row.table.columns))
    for item in rows:
        if item.row:
            yield " | ".join(map(in_line, item.row.cells))


def in_line(text: str) -> str:
    """Return a text as a part of one line."""
    return " ".join(text.split())


def with_account(items: Sequence[Item], account: SearchAccount) -> Sequence[Item]:
    """Return the items of a search with its account in their tables."""
    if account == SearchAccount():
        return items
    made: dict[str, Table] = {}

    def accounted(item: Item) -> Item:
        if item.row is None:
            return item
        old = item.row.table
        table = made.setdefault(old.id, old.model_copy(update={"account": account}))
        return item.model_copy(update={"row": item.row.model_copy(update={"table": table})})

    return [accounted(item) for item in items]


@dataclass(frozen=True)
class Exported:
    """All rows of one query, with exact values. `total` counts all matches, exactly or at least
    (`total_is`); with `cut` there are more than these rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    total_is: TotalIs = "exact"

    @property
    def cut(self) -> bool:
        """Whether rows are missing."""
        return len(self.rows) < self.total or self.total_is == "at_least"
