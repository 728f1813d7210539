"""Lists and tables of commands, as values that `rich` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from groundhook.core.types.search import Item, SearchResult
from groundhook.core.types.search import Table as SourceTable
from groundhook.core.types.tables import tables_of
from groundhook.host.output.flow import compact, one_line
from groundhook.host.output.query_words import in_words
from groundhook.host.output.single_lines import SOURCES, marker_style, place_of, title_of
from groundhook.host.output.tree import duration

SNIPPET = 320  # characters of an item's content
NARROW = 60  # columns of a terminal in which no column of a table is folded
FOLDED = 12  # least width to which a column is folded
GAP = 3  # columns between two of a table


class RowTable:
    """Rows under columns. The first column, those in `ids` and numbers are never folded, so that
    they can be copied; in a terminal that is too narrow for that each cell has a line of its own,
    and the numbers share one. `numbers` names the columns that are aligned right. Control
    characters in a cell are made visible."""

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        *,
        numbers: Sequence[str] = (),
        ids: Sequence[str] = (),
    ) -> None:
        self._columns = columns
        self._numbers = numbers
        self._whole = {columns[0], *ids, *numbers}
        self._rows = [
            [cell if isinstance(cell, Text) else Text(one_line(str(cell))) for cell in row]
            for row in rows
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._least_width(options.max_width) > options.max_width:
            yield from self._lines()
        else:
            yield self._table()

    def _least_width(self, available: int) -> int:
        """Return the width that the table needs to be readable in a terminal of that width."""
        cells = zip(self._columns, *self._rows, strict=True)
        widths = [max(cell_len(str(cell)) for cell in column) for column in cells]
        if available >= NARROW:
            widths = [
                width if column in self._whole else min(width, FOLDED)
                for column, width in zip(self._columns, widths, strict=True)
            ]
        return sum(widths) + GAP * (len(widths) - 1)

    def _table(self) -> Table:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in self._columns:
            made.add_column(
                column,
                justify="right" if column in self._numbers else "left",
                overflow="fold",
                no_wrap=column in self._whole,
            )
        for row in self._rows:
            made.add_row(*row)
        return made

    def _lines(self) -> Iterator[Text]:
        for name, *cells in self._rows:
            yield Text.assemble((name.plain, "bold"))
            counts: list[Text] = []
            for column, cell in zip(self._columns[1:], cells, strict=True):
                if cell.plain:
                    labelled = Text.assemble((f"{column}: " if column else "", "dim"), cell)
                    if column in self._numbers:
                        counts.append(labelled)
                    else:
                        yield Text.assemble("  ", labelled)
            if counts:
                yield Text.assemble("  ", Text(", ").join(counts))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> RowTable:
    """Return a value that prints as a table, or as lines in a narrow terminal."""
    return RowTable(columns, rows, numbers=numbers, ids=ids)


def found(result: SearchResult, offset: int = 0) -> Iterator[RenderableType]:
    """Yield a search result: rows of one query as a table, each other item with its score, its
    place, and the beginning of its content. Numbers of items start after `offset`."""
    yield _heading(result)
    if result.explanation:
        yield Text(one_line(result.explanation), "yellow")
    if result.certainty is not None:
        unread = ", ".join(map(one_line, result.unread))
        yield Text(
            f"certainty: {result.certainty}" + (f"; not understood: {unread}" if unread else ""),
            "dim",
        )
    yield from _items(result.items, offset)
    for node in result.graph_nodes or ():
        relation = f" ({one_line(node.relation)})" if node.relation else ""
        yield Text(
            f"   related: {one_line(node.name)}, {one_line(node.type)}{relation} {node.score:.2f}",
            "dim",
        )
    for field, counts in (result.facets or {}).items():
        counted = ", ".join(f"{one_line(compact(each.value))} ({each.count})" for each in counts)
        yield Text(f"{one_line(field)}: {counted or 'no document has one'}", "dim")
    if result.dsl is not None:
        read = [result.read_as] if result.read_as else in_words(result.dsl)
        for query in read:
            yield Text(f"understood: {one_line(query)}", "dim")
        yield Text(f"query: {one_line(compact(result.dsl))}", "dim")


def _items(items: Sequence[Item], number: int) -> Iterator[RenderableType]:
    for of, rows in tables_of(items):
        if of is None or len(rows) == 1:
            yield from _item(number + 1, rows[0])
        else:
            yield _row_table(of, rows)
        number += len(rows)


def _row_table(of: SourceTable, rows: Sequence[Item]) -> RowTable:
    cells = [item.row.cells if item.row else () for item in rows]
    marked = [
        (Text(one_line(item.citation_id), marker_style("ok", item.url)), *each)
        for item, each in zip(rows, cells, strict=True)
    ]
    return RowTable(("", *of.columns), marked)


def _heading(result: SearchResult) -> Text:
    count = len(result.items)
    least = "at least " if result.total_is == "at_least" else ""
    of = f" of {least}{result.total}" if result.total > count else ""
    noun = "result" if count == 1 and not of else "results"
    by = f" by {one_line(result.provider)}" if result.provider else ""
    return Text(
        f"{count}{of} {noun} from the {SOURCES[result.type]}{by} in {duration(result.duration_ms)}",
        "bold",
    )


def _item(number: int, item: Item) -> Iterator[Text]:
    marker = (one_line(item.citation_id), marker_style("ok", item.url))
    yield Text.assemble(
        f"{number:>2}. ", marker, (f"  {item.score:.2f}  ", "green"), (title_of(item), "bold")
    )
    about = [place_of(item), item.published, "read" if item.status == "fetched" else ""]
    if place := "  ".join(filter(None, about)):
        yield Text(f"    {place}", "dim")
    # A record has a field on each line.
    content = one_line("; ".join(item.content.splitlines()) if item.type == "db" else item.content)
    if content and content != one_line(item.title):  # a record may consist of its title
        yield Text(f"    {content[:SNIPPET]}{'…' if len(content) > SNIPPET else ''}")
