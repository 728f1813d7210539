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
    Compared,
    DateBucket,
    Group,
    Where,
    group_field,
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
from groundhook.handlers.db.model.schema import Field, Schema, route
from groundhook.handlers.db.query.dsl import (
    EVERY_TEXT,
    MATCH,
    MATCH_ANY,
    MATCH_NONE,
    QueryDSL,
    conditions,
)
from groundhook.handlers.db.query.statement import ROWS

MAX_LISTED = 12  # values of a list in a described condition
EXCLUDING = 0.45  # the highest score where records with a word that was not understood are omitted
# Parts of a query that choose rows and columns of figures, and change none.
ROWS_ALONE = frozenset({"orders", "limit", "select", "havings", "ties", "offset"})
DIGITS = 6  # after the decimal point of figures; engines differ beyond
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FUNCTIONS = {"sum": "Sum of", "avg": "Average", "min": "Least", "max": "Greatest"}

Record = Mapping[str, Any]
_Schemas = Mapping[str, Schema]


def items_of(rows: Sequence[Record], dsl: QueryDSL, schemas: _Schemas, limit: int) -> list[Item]:
    """Return one item per row, in the order of the rows."""
    make = _figures if dsl.computed else _record
    return [
        make(row, dsl, schemas, 0.05 * min(1.0, position / max(1, limit)))
        for position, row in enumerate(rows)
    ]


def tabulated(
    items: Sequence[Item],
    rows: Sequence[Record],
    dsl: QueryDSL,
    schemas: _Schemas,
    *,
    total: int,
    at_least: bool,
    whole: bool,
) -> list[Item]:
    """Return the items of a query, one for each of its rows, as the rows of one table. `total`
    counts all rows, or `at_least` as many; `whole`: the question asks for as many as there are."""
    names, cells = (_figure_cells if dsl.computed else _record_cells)(rows, dsl, schemas)
    query = {key: value for key, value in dsl.wire().items() if key != "limit"}
    table = Table(
        id=json.dumps(query, sort_keys=True, ensure_ascii=False),
        name=schemas[dsl.model].name,
        columns=tuple(names),
        total=max(total, len(items)),
        total_is="at_least" if at_least else "exact",
        whole=whole,
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


def _record(row: Record, dsl: QueryDSL, schemas: _Schemas, less: float) -> Item:
    schema = schemas[dsl.model]
    values = {name: to_json(value) for name, value in row.items()}
    record_id = schema.record_id(values)
    title = _title_of(row, schema)
    selected = dsl.select or tuple(field.name for field in schema.visible)
    data = {name: values[name] for name in dict.fromkeys((*schema.keys, *selected))}
    # Foreign keys are omitted from the text, since they mean nothing to a reader; `data` has them.
    keys = {relation.foreign for relation in schema.relations.values()} - {
        *schema.keys,
        *dsl.select,
    }
    filled = {name: value for name, value in data.items() if not _empty(value) and name not in keys}
    lines = [
        f"{_display_name(name, schema, schemas)}:"
        f" {written(row[name], _field(name, schema, schemas))}"
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


def _display_name(name: str, schema: Schema, schemas: _Schemas) -> str:
    """Return a field's name for readers: `Unit price`, or `Product name` for a field of a related
    product."""
    found = route(schema, name, schemas)
    if found is None or found.field is None:
        return name
    return " ".join(
        [*(hop.name.replace("_", " ").capitalize() for hop in found.hops[-1:]), found.field.shown]
    )


def _field(name: str, schema: Schema, schemas: _Schemas) -> Field | None:
    found = route(schema, name, schemas)
    return found.field if found is not None else None


def _title_of(row: Record, schema: Schema) -> str:
    names = (*schema.keys, *schema.title_fields)
    return schema.title_of({name: written(row[name], schema.fields[name]) for name in names})


def _record_cells(
    rows: Sequence[Record], dsl: QueryDSL, schemas: _Schemas
) -> tuple[list[str], list[list[str]]]:
    """Return the columns of a table of records, and the cells of each row. What stands for a record
    comes first, unless the query selects it. Without a selection, foreign keys and columns without
    any value are omitted."""
    schema = schemas[dsl.model]
    title = schema.title_fields or schema.keys
    named = set(title) <= set(dsl.select)
    columns = dsl.select or _filled_columns(rows, schema)
    names = [name for name in dict.fromkeys(columns) if named or name not in title]
    heads = [_display_name(name, schema, schemas) for name in names]
    by_column = [_column_texts(rows, name, _field(name, schema, schemas)) for name in names]
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


def _figures(row: Record, dsl: QueryDSL, schemas: _Schemas, less: float) -> Item:
    """Return a row of figures as an item that can be cited by its query."""
    schema, count = schemas[dsl.model], int(row[ROWS])
    data = {name: _round(to_json(value)) for name, value in row.items() if name != ROWS}
    groups = {group_name(one): data[group_name(one)] for one in dsl.groups}
    computed = [
        f"{_title(one, schema, schemas)}: {_format_figure(row[one.called], one, schema, schemas)}"
        for one in dsl.aggregates
    ]
    about = [
        f"{_group_title(one, schema, schemas)}:"
        f" {_format_group(one, row[group_name(one)], schema, schemas)}"
        for one in dsl.groups
    ]
    where = [f"of the records where {describe(dsl.wheres)}"] if dsl.wheres else []
    basis = [f"computed of {count} {'record' if count == 1 else 'records'} of {schema.name}"]
    identity = {key: value for key, value in dsl.wire().items() if key not in ROWS_ALONE}
    return Item(
        type="db",
        title=", ".join([*about, *computed]) or schema.name,
        content="\n".join([*about, *computed, *where, *basis]),
        score=round(_score_of_figures(dsl) - less, 4),
        model=schema.id,
        data={name: data[name] for name in dsl.select} if dsl.select else data,
        query=ComputedBy(dsl=dsl.wire(), rows=count),
        key=f"db:query:{json.dumps([identity, groups], sort_keys=True, ensure_ascii=False)}",
    )


def _group_title(group: Group, schema: Schema, schemas: _Schemas) -> str:
    name = _display_name(group_field(group), schema, schemas)
    if not isinstance(group, DateBucket):
        return name
    return group.name.replace("_", " ").strip().capitalize() or f"{name} ({group.by})"


def _format_group(group: Group, value: Any, schema: Schema, schemas: _Schemas) -> str:
    if not isinstance(group, DateBucket):
        return written(value, _field(group, schema, schemas)) or "none"
    if isinstance(value, int):
        return WEEKDAYS[value - 1] if group.by == "weekday" else str(value)
    return written(value) or "none"


def _round(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _format_figure(value: Any, one: Aggregate, schema: Schema, schemas: _Schemas) -> str:
    of = _field(one.field, schema, schemas) if one.function != "count" else None
    value = round(value, DIGITS) if isinstance(value, float) else value
    return written(value, of, average=one.function == "avg") or "none"


def _figure_cells(
    rows: Sequence[Record], dsl: QueryDSL, schemas: _Schemas
) -> tuple[list[str], list[list[str]]]:
    """Return the columns of a table of figures, and the cells of each row: groups come first."""
    schema = schemas[dsl.model]
    groups = [_group_title(one, schema, schemas) for one in dsl.groups]
    figures = [_title(one, schema, schemas) for one in dsl.aggregates]
    return [*groups, *figures], [
        [
            *(_format_group(one, row[group_name(one)], schema, schemas) for one in dsl.groups),
            *(_format_figure(row[one.called], one, schema, schemas) for one in dsl.aggregates),
        ]
        for row in rows
    ]


def exact_rows(
    rows: Sequence[Record], dsl: QueryDSL, schemas: _Schemas
) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Return the columns of a query as readers call them, and the exact values of its rows."""
    schema = schemas[dsl.model]
    if dsl.computed:
        heads = {group_name(one): _group_title(one, schema, schemas) for one in dsl.groups}
        heads |= {one.called: _title(one, schema, schemas) for one in dsl.aggregates}
    else:
        chosen = dsl.select or tuple(field.name for field in schema.visible)
        heads = {name: _display_name(name, schema, schemas) for name in chosen}
    values = tuple(tuple(_round(to_json(row[name])) for name in heads) for row in rows)
    return tuple(heads.values()), values


def _title(one: Aggregate, schema: Schema, schemas: _Schemas) -> str:
    if one.name:
        return one.name.replace("_", " ").strip().capitalize()
    if one.field == EVERY_TEXT:
        return f"Number of {schema.name} records"
    name = _display_name(one.field, schema, schemas)
    if one.function == "count":
        return (
            f"Number of different values of {name}"
            if one.distinct
            else f"Number of records with {name}"
        )
    return f"{FUNCTIONS[one.function]} {name}"


def _score_of_figures(dsl: QueryDSL) -> float:
    words = {where.op for where in conditions(dsl.wheres) if where.field == EVERY_TEXT}
    if MATCH_NONE in words:
        return EXCLUDING
    return 0.7 if words else 0.9


def describe(wheres: Sequence[Where], joined: str = "and") -> str:
    """Return conditions as one line: `price < 100 and (city = Berlin or city = Zürich)`."""
    return f" {joined} ".join(_describe_condition(where) for where in wheres)


def _describe_condition(where: Where) -> str:
    if where.group is not None:
        inner = describe(where.group, "and" if where.any_of is None else "or")
        return f"({inner})" if len(where.group) > 1 else inner
    if where.related:
        return _describe_related(where)
    name = "any text" if where.field == EVERY_TEXT else where.field
    if where.op in ("null", "not null"):
        return f"{name} is {where.op}"
    if where.other is not None:
        return f"{name} {where.op} {_describe_other(where.other)}"
    return f"{name} {where.op} {_join_list(where.value)}"


def _describe_related(where: Where) -> str:
    inner = f" with {describe(where.all_of)}" if where.all_of else ""
    if where.count:
        number = " and ".join(f"{op} {number}" for op, number in where.count.items())
        return f"number of {where.related}{inner} {number}"
    return f"{'no' if where.none else 'all' if where.every else 'some'} {where.related}{inner}"


def _describe_other(other: Compared) -> str:
    if other.function is None:
        return other.field
    of = f" of {other.field}" if other.field not in ("", EVERY_TEXT) else ""
    model = f" of {other.model}" if other.model else ""
    return f"{other.function}{of}{model}" + (
        f" where {describe(other.wheres)}" if other.wheres else ""
    )


def _join_list(value: Any) -> str:
    if not isinstance(value, (list, tuple)):
        return written(value) or "none"
    more = ", …" if len(value) > MAX_LISTED else ""
    return f"({', '.join(_join_list(one) for one in value[:MAX_LISTED])}{more})"
