"""Draws the steps of a turn as a tree for a terminal, with the factors that rank each item."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text as Styled
from rich.tree import Tree

from groundhook.core.types.events import TraceNode
from groundhook.host.output.flow import one_line, shortened

_LEVELS = {"warn": "yellow", "error": "red"}
LONGEST_TITLE = 60
MOST_ITEMS = 20  # shown of the remaining items, and of the dropped ones


def trace_tree(nodes: Iterable[TraceNode], warnings: Iterable[Styled] = ()) -> Tree:
    """Return the steps in the order of their beginning; below a merge its items, best first, and
    then the dropped ones. The warnings of the turn come last: since searches run at the same time,
    it is not certain to which step a warning belongs."""
    trees: dict[str, Tree] = {"": Tree(Styled("Trace", "bold"))}
    for node in nodes:
        tree = trees[node.id] = trees.get(node.parent, trees[""]).add(_node_line(node))
        for line in (*_list_found(node), *_item_lines(node)):
            tree.add(line)
    for warning in warnings:
        trees[""].add(warning)
    return trees[""]


def duration(ms: float) -> str:
    """Return a duration in milliseconds as text: `12 ms`, `1.2s`."""
    return f"{ms:.0f} ms" if ms < 100 else f"{ms / 1000:.1f}s"


def _node_line(node: TraceNode) -> Styled:
    style = {"running": "yellow", "completed": "green", "failed": "red"}[node.status]
    level = str(node.data.get("level", "info"))
    graver = ("" if level == "info" else f" {one_line(level)}:", _LEVELS.get(level, "dim"))
    # What is searched: several searches of a turn often have the same question as their label.
    labels = (str(node.data.get("search_type", "")), node.label)
    shown = "".join(f" {one_line(label)}" for label in labels if label)
    line = Styled.assemble((one_line(node.type), "bold"), graver, shown)
    if node.status != "running":
        line.append(f"  {duration(node.duration_ms)}", "dim")
    line.append(f"  {node.status}", style)
    if error := node.data.get("error"):
        line.append(f": {one_line(str(error))}", style)
    return line


def _list_found(node: TraceNode) -> Iterator[Styled]:
    """Yield the numbers of a search in a collection, and the statement that a database ran with its
    bound values."""
    data = node.data
    if node.type == "vector_search" and "candidates" in data:
        numbers = (
            f"{data['found']} found of {data['candidates']} compared, {data['below_threshold']}"
            " below the threshold"
        )
        lifted = data.get("lifted", 0)
        rare = f"; {lifted} below it, found by a rare word" if lifted else ""
        yield Styled(
            f"{numbers} {data['threshold']:g}{rare}; words: {one_line(data['words'])}",
            "dim",
        )
        if languages := data.get("languages"):
            shown = ", ".join(
                f"{one_line(name)} {own['share']:.0%} (similarity {own['shifted']:+.3f}, words"
                f" {own['words']:g})"
                for name, own in languages.items()
            )
            language = one_line(data.get("question") or "unknown")
            yield Styled(f"question in language: {language}; passages: {shown}", "dim")
        elif "languages" in data:
            yield Styled(
                "languages of passages: unknown; `groundhook kb rebuild` finds them", "dim"
            )
    if node.type == "db_query" and "sql" in data:
        bound = ", ".join(
            f"{name} = {value!r}" for name, value in data.get("parameters", {}).items()
        )
        yield Styled(one_line(f"{data['sql']} [{bound}]"), "dim")


def _item_lines(node: TraceNode) -> Iterator[Styled]:
    if node.type != "merge":
        return
    for key in ("entries", "dropped"):
        items = node.data.get(key) or ()
        yield from map(_item_line, items[:MOST_ITEMS])
        if len(items) > MOST_ITEMS:
            yield Styled(
                f"… and {len(items) - MOST_ITEMS} more"
                f" {'dropped' if key == 'dropped' else 'items'}",
                "dim",
            )


def _item_line(item: Mapping[str, Any]) -> Styled:
    """Return an item as: score × weight of its source × rerank score = final score."""
    more = f" and {item['rows'] - 1} more rows" if item.get("rows", 1) > 1 else ""
    line = Styled(
        f"{one_line(str(item['citation_id']))}"
        f" {shortened(one_line(str(item['title'])), LONGEST_TITLE)}{more}  "
    )
    product = (
        f"{item['score']:.2f} × {item['weight']:.2f} {item['source']} × {item['rerank']:.2f}"
        f" reranked = {item['final']:.2f}"
    )
    line.append(product, "dim")
    if item.get("dropped"):
        line.append(f"  dropped: {one_line(str(item['dropped']))}", "yellow")
    return line
