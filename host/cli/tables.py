"""Lists and tables that commands print: plain values in, something rich can print out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from host.output.flow import one_line
from host.output.terminal import SOURCES, duration, marker_style, place_of, title_of
from host.types.search import Item, SearchResult

SNIPPET = 240  # characters of an item's content
LONGEST_NAME = 32  # columns that a name takes at most without being folded


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()) -> Table:
    """A table; `numbers` names the columns that are set flush right. The first holds what a row is called, which stays in one
    piece in a narrow terminal too. Nothing in a cell is obeyed by the terminal."""
    cells = [[cell if isinstance(cell, Text) else Text(one_line(str(cell))) for cell in row] for row in rows]
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for index, column in enumerate(columns):
        whole = min(max((row[0].cell_len for row in cells), default=0), LONGEST_NAME) if index == 0 else None
        made.add_column(column, justify="right" if column in numbers else "left", overflow="fold", min_width=whole)
    for row in cells:
        made.add_row(*row)
    return made


def found(result: SearchResult) -> Iterator[Text]:
    """A search result as lines: each item with its score, where it is, and how it begins."""
    count = len(result.items)
    of = f" of {result.total}" if result.total > count else ""
    noun = "result" if count == 1 and not of else "results"
    yield Text(f"{count}{of} {noun} from the {SOURCES[result.type]} in {duration(result.duration_ms)}", "bold")
    for number, item in enumerate(result.items, 1):
        yield from _item(number, item)
    for node in result.graph_nodes or ():
        relation = f" ({one_line(node.relation)})" if node.relation else ""
        yield Text(f"   related: {one_line(node.name)}, {one_line(node.type)}{relation} {node.score:.2f}", "dim")
    if result.dsl is not None:
        yield Text(f"query: {one_line(compact(result.dsl))}", "dim")


def _item(number: int, item: Item) -> Iterator[Text]:
    marker = (one_line(item.citation_id), marker_style("ok", item.url))
    yield Text.assemble(f"{number:>2}. ", marker, (f"  {item.score:.2f}  ", "green"), (title_of(item), "bold"))
    if place := place_of(item):
        yield Text(f"    {place}", "dim")
    content = one_line(item.content)
    if content and content != one_line(item.title):
        yield Text(f"    {content[:SNIPPET]}{'…' if len(content) > SNIPPET else ''}")


def compact(value: Any) -> str:
    """A value as the shortest text that shows it: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
