"""Records as items of a search result. Pure.

The score says how well the conditions carried the question, and falls slightly with the position so that the order that
was asked for survives a sort by score:

    0.90   every word of the question became a condition (or the caller gave the conditions)
    0.70   some words were searched for as text, and all were found (+0.10 × the share found in the title)
    0.45   only some of those words were found (+0.10 × that share)
    0.50   no condition at all: the model's records as they come
    −0.05 × position / limit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handlers.db.coerce import plain
from handlers.db.dsl import MATCH, MATCH_ANY, QueryDSL
from handlers.db.schema import Schema
from host.types.search import Item

MOST_TEXT = 2000  # characters of one field in an item's content; `data` has all of it


def items_of(rows: Sequence[Mapping[str, Any]], schema: Schema, dsl: QueryDSL, limit: int) -> list[Item]:
    """One item a row, in the order of the rows."""
    return [_item(row, schema, dsl, 0.05 * position / max(1, limit)) for position, row in enumerate(rows)]


def _item(row: Mapping[str, Any], schema: Schema, dsl: QueryDSL, less: float) -> Item:
    values = {name: plain(value) for name, value in row.items()}
    record_id = values[schema.key]
    title = str(values.get(schema.title) or "") or f"{schema.name} {record_id}"
    asked = dsl.select or tuple(field.name for field in schema.visible)
    data = {name: values[name] for name in dict.fromkeys((schema.key, *asked))}
    return Item(
        type="db",
        title=title,
        content=_content(data, schema),
        score=round(_score(title, dsl) - less, 4),
        model=schema.id,
        record_id=record_id,
        data=data,
        key=f"db:{schema.id}/{record_id}",
    )


def _content(data: Mapping[str, Any], schema: Schema) -> str:
    lines = [f"{schema.fields[name].shown}: {_shown(value)}" for name, value in data.items() if value not in (None, "", [], {})]
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:g}" if isinstance(value, float) and value == int(value) and abs(value) < 1e6 else str(value)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _score(title: str, dsl: QueryDSL) -> float:
    searched = [(where.op, where.value) for where in dsl.wheres if where.op in (MATCH, MATCH_ANY)]
    if not searched:
        return 0.9 if dsl.wheres else 0.5
    op, words = searched[0]
    share = sum(word.casefold() in title.casefold() for word in words) / max(1, len(words))
    return (0.7 if op == MATCH else 0.45) + 0.1 * share
