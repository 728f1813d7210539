"""Conversion of records, and of figures computed from them, to items of a search result: the rows
of one query are one table. Pure.

The score is higher the more of the question became conditions. It falls slightly with the position,
so that the query's order survives a sort by score:

    0.90  every word of the question became a condition, or the caller gave the conditions; figures
    0.70  some words were searched for as text and all were found, + 0.10 × their share in the title
    0.45  the conditions hold, and no word was found; at most, where records with a word are omitted
    0.05  likewise without a condition: the list that the question requests
    0.45  only some of these words were found, + 0.10 × their share in the title
    0.50  no condition at all: the model's records in their own order
    − 0.05 × position / limit
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from groundhook.core.types.query_language import (
    Aggregate,
    DateBucket,
    Group,
    group_name,
)
from groundhook.core.types.search import (
    ComputedBy,
    Item,
    Row,
    Table,
)
from groundhook.handlers.db.model.cells import has_time, written
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.model.schema import Field, Schema
from groundhook.handlers.db.query.dsl import (
    EVERY_TEXT,
    MATCH,
    MATCH_ANY,
    MATCH_NONE,
    QueryDSL,
    conditions,
)
from groundhook.handlers.db.query.statement import ROWS
from groundhook.handlers.db.question.sentence import Teller

EXCLUDING = 0.45  # the highest score where records with a word that was not understood are omitted
# Parts of a query that choose rows and columns of figures, and change none.
ROWS_ALONE = frozenset({"orders", "limit", "select", "havings", "ties", "offset"})
DIGITS = 6  # after the decimal point of figures; engines differ beyond

Record = Mapping[str, Any]


def items_of(rows: Sequence[Record], dsl: QueryDSL, teller: Teller, limit: int) -> list[Item]:
    """Return one item per row, in the order of the rows. `teller` names the columns."""
    make = _figures if dsl.computed else _record
    return [
        make(row, dsl, teller, 0.05 * min(1.0, position / max(1, limit)))
        for position, row in enumerate(rows)
    ]


def tabulated(
    items: Sequence[Item],
    rows: Sequence[Record],
    dsl: QueryDSL,
    teller: Teller,
    *,
    total: int,
    at_least: bool,
) -> list[Item]:
    """Return the items of a query, one for each of its rows, as the rows of one table. `total`
    counts all rows, or `at_least` as many."""
    names, cells = (_figure_cells if dsl.computed else _record_cells)(rows, dsl, teller)
    table = Table(
        id=json.dumps(dsl.wire(), sort_keys=True, ensure_ascii=False),
        name=teller.schemas[dsl.model].name,
        language=teller.words.language,
        columns=tuple(names),
        total=max(total, len(items)),
        total_is="at_least" if at_least else "exact",
        whole=dsl.limit is not None,
    )
    return [
        item.model_copy(update={"row": Row(table=table, cells=tuple(texts))})
        for item, texts in zip(items, cells, strict=True)
    ]


def first_rows(tables: Sequence[list[Item]], limit: int) -> Iterator[Item]:
    """Yield the rows of several tables, that with the best row first: of each as many of its first
    rows as are among the best `limit` of all."""
    best = sorted(
        ((item.score, -at) for at, rows in enumerate(tables) for item in rows), reverse=True
    )
    counts = Counter(-at for _, at in best[:limit])
    by_best = sorted(counts, key=lambda at: -max(item.score for item in tables[at]))
    for at in by_best:
        yield from tables[at][: counts[at]]


# ------------------------------------------------------------------------------------------ records


def _record(row: Record, dsl: QueryDSL, teller: Teller, less: float) -> Item:
    schema = teller.schemas[dsl.model]
    data = values_of(row, dsl, schema)
    record_id = schema.record_id(data)
    title = _title_of(row, schema)
    # Foreign keys are omitted from the text, since they mean nothing to a reader; `data` has them.
    keys = {relation.foreign for relation in schema.relations.values()} - {
        *schema.keys,
        *dsl.select,
    }
    filled = {name: value for name, value in data.items() if not _empty(value) and name not in keys}
    lines = [
        f"{teller.label(schema, name)}: {written(row[name], teller.field(schema, name))}"
        for name in filled
    ]
    return Item(
        type="db",
        title=title,
        content="\n".join(lines),
        score=round(_score(title, dsl) - less, 4),
        model=schema.id,
        record_id=record_id,
        data=data,
        key=f"db:{schema.id}/{record_id}",
    )


def values_of(row: Record, dsl: QueryDSL, schema: Schema) -> dict[str, Any]:
    """Return the JSON values of a record's key and of its selected or visible fields."""
    selected = dsl.select or tuple(field.name for field in schema.visible)
    return {name: to_json(row[name]) for name in dict.fromkeys((*schema.keys, *selected))}


def _title_of(row: Record, schema: Schema) -> str:
    names = (*schema.keys, *schema.title_fields)
    return schema.title_of({name: written(row[name], schema.fields[name]) for name in names})


def _record_cells(
    rows: Sequence[Record], dsl: QueryDSL, teller: Teller
) -> tuple[list[str], list[list[str]]]:
    """Return the columns of a table of records, and the cells of each row. What stands for a record
    comes first, unless the query selects it. Without a selection, foreign keys and columns without
    any value are omitted."""
    schema = teller.schemas[dsl.model]
    title = schema.title_fields or schema.keys
    named = set(title) <= set(dsl.select)
    columns = dsl.select or _filled_columns(rows, schema)
    names = [name for name in dict.fromkeys(columns) if named or name not in title]
    heads = [teller.label(schema, name) for name in names]
    by_column = [_column_texts(rows, name, teller.field(schema, name)) for name in names]
    if not named:
        heads.insert(0, schema.fields[title[0]].shown if len(title) == 1 else schema.name)
        alone = schema.titled or len(schema.keys) > 1
        key = schema.keys[0]
        by_column.insert(
            0,
            [_title_of(row, schema) for row in rows]
            if alone
            else _column_texts(rows, key, schema.fields[key]),
        )
    return heads, [list(cells) for cells in zip(*by_column, strict=True)]


def _filled_columns(rows: Sequence[Record], schema: Schema) -> list[str]:
    """Return the visible columns with a value in any row, without foreign keys."""
    foreign = {relation.foreign for relation in schema.relations.values()}
    names = [field.name for field in schema.visible if field.name not in foreign]
    return [name for name in names if any(not _empty(row[name]) for row in rows)]


def _column_texts(rows: Sequence[Record], name: str, of: Field | None) -> list[str]:
    """Return the texts of a column; midnight is written where other moments have a time."""
    timed = any(has_time(row[name]) for row in rows)
    return [written(row[name], of, timed=timed) for row in rows]


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _score(title: str, dsl: QueryDSL) -> float:
    words = {where.op: where.value for where in dsl.wheres if where.field == EVERY_TEXT}
    most = EXCLUDING if MATCH_NONE in words else 1.0
    sought = words.get(MATCH, words.get(MATCH_ANY))
    if not sought:
        return min(most, 0.9 if dsl.wheres else 0.5)
    share = sum(word.casefold() in title.casefold() for word in sought) / len(sought)
    return min(most, (0.7 if MATCH in words else 0.45) + 0.1 * share)


# ------------------------------------------------------------------------------------------ figures


def _figures(row: Record, dsl: QueryDSL, teller: Teller, less: float) -> Item:
    """Return a row of figures as an item that can be cited by its query."""
    schema, count = teller.schemas[dsl.model], int(row[ROWS])
    data = {name: _round(to_json(value)) for name, value in row.items() if name != ROWS}
    groups = {group_name(one): data[group_name(one)] for one in dsl.groups}
    texts = zip(teller.heads(dsl), _figure_texts(row, dsl, teller), strict=True)
    lines = [f"{head}: {text}" for head, text in texts]
    kept = teller.conditions(schema, dsl.wheres)
    whole = teller.phrase("where", what=schema.name, conditions=kept) if kept else schema.name
    identity = {key: value for key, value in dsl.wire().items() if key not in ROWS_ALONE}
    return Item(
        type="db",
        title=", ".join(lines) or schema.name,
        content="\n".join([*lines, teller.phrase("basis", what=whole, count=count)]),
        score=round(_score_of_figures(dsl) - less, 4),
        model=schema.id,
        data={name: data[name] for name in dsl.select} if dsl.select else data,
        query=ComputedBy(dsl=dsl.wire(), rows=count),
        key=f"db:query:{json.dumps([identity, groups], sort_keys=True, ensure_ascii=False)}",
    )


def _figure_cells(
    rows: Sequence[Record], dsl: QueryDSL, teller: Teller
) -> tuple[list[str], list[list[str]]]:
    """Return the columns of a table of figures, and the cells of each row."""
    return teller.heads(dsl), [_figure_texts(row, dsl, teller) for row in rows]


def _figure_texts(row: Record, dsl: QueryDSL, teller: Teller) -> list[str]:
    """Return the groups of a row and its figures as texts, in the order of the heads."""
    schema = teller.schemas[dsl.model]
    return [
        *(_format_group(one, row[group_name(one)], schema, teller) for one in dsl.groups),
        *(_format_figure(row[one.called], one, schema, teller) for one in dsl.aggregates),
    ]


def _format_group(group: Group, value: Any, schema: Schema, teller: Teller) -> str:
    of = None if isinstance(group, DateBucket) else teller.field(schema, group)
    if isinstance(group, DateBucket) and group.by == "weekday" and value is not None:
        return teller.words.file.days_of_week[value - 1]
    return written(value, of) or teller.say["nothing"]


def _round(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _format_figure(value: Any, one: Aggregate, schema: Schema, teller: Teller) -> str:
    of = teller.field(schema, one.field) if one.function != "count" else None
    return written(_round(value), of, average=one.function == "avg") or teller.say["nothing"]


def exact_rows(
    rows: Sequence[Record], dsl: QueryDSL, teller: Teller
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Return the columns of a query as readers call them, and the exact values of its rows."""
    schema = teller.schemas[dsl.model]
    if dsl.computed:
        names = [
            *(group_name(one) for one in dsl.groups),
            *(one.called for one in dsl.aggregates),
        ]
        heads = teller.heads(dsl)
    else:
        names = list(dsl.select or (field.name for field in schema.visible))
        heads = [teller.label(schema, name) for name in names]
    values = tuple(tuple(_round(to_json(row[name])) for name in names) for row in rows)
    return tuple(heads), values


def _score_of_figures(dsl: QueryDSL) -> float:
    words = {where.op for where in conditions(dsl.wheres) if where.field == EVERY_TEXT}
    if MATCH_NONE in words:
        return EXCLUDING
    return 0.7 if words else 0.9
