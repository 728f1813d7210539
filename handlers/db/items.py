"""Conversion of records, and of figures computed from them, to items of a search result. Pure.

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
from collections.abc import Mapping, Sequence
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
)
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.model.schema import Schema, route
from groundhook.handlers.db.query.dsl import (
    EVERY_TEXT,
    MATCH,
    MATCH_ANY,
    MATCH_NONE,
    QueryDSL,
    conditions,
)
from groundhook.handlers.db.query.statement import ROWS

MAX_TEXT = 2000  # characters of one field in an item's content; `data` has the whole value
MAX_LISTED = 12  # values of a list in a described condition
EXCLUDING = 0.45  # the highest score where records with a word that was not understood are omitted
# Parts of a query that choose rows and columns of figures, and change none.
ROWS_ALONE = frozenset({"orders", "limit", "select", "havings", "ties", "offset"})
DIGITS = 6  # after the decimal point of figures; engines differ beyond
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FUNCTIONS = {"sum": "Sum of", "avg": "Average", "min": "Least", "max": "Greatest"}

Row = Mapping[str, Any]
Schemas = Mapping[str, Schema]


def items_of(rows: Sequence[Row], dsl: QueryDSL, schemas: Schemas, limit: int) -> list[Item]:
    """Return one item per row, in the order of the rows."""
    make = _figures if dsl.computed else _record
    return [
        make(row, dsl, schemas, 0.05 * min(1.0, position / max(1, limit)))
        for position, row in enumerate(rows)
    ]


def less_certain(item: Item) -> Item:
    """Return the item of a query without the words of the question that no record has."""
    return item.model_copy(update={"score": round(item.score - 0.45, 4)})


# ------------------------------------------------------------------------------------------ records


def _record(row: Row, dsl: QueryDSL, schemas: Schemas, less: float) -> Item:
    schema = schemas[dsl.model]
    values = {name: to_json(value) for name, value in row.items()}
    record_id = values[schema.key]
    title = str(values.get(schema.title) or "") or f"{schema.name} {record_id}"
    selected = dsl.select or tuple(field.name for field in schema.visible)
    data = {name: values[name] for name in dict.fromkeys((schema.key, *selected))}
    # Foreign keys are omitted from the text, since they mean nothing to a reader; `data` has them.
    keys = {relation.foreign for relation in schema.relations.values()} - {schema.key, *dsl.select}
    filled = {name: value for name, value in data.items() if not _empty(value) and name not in keys}
    lines = [
        f"{_display_name(name, schema, schemas)}: {_format(value)}"
        for name, value in filled.items()
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


def _display_name(name: str, schema: Schema, schemas: Schemas) -> str:
    """Return a field's name for readers: `Unit price`, or `Product name` for a field of a related
    product."""
    found = route(schema, name, schemas)
    if found is None or found.field is None:
        return name
    return " ".join(
        [*(hop.name.replace("_", " ").capitalize() for hop in found.hops[-1:]), found.field.shown]
    )


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = (
        f"{value:g}"
        if isinstance(value, float) and value == int(value) and abs(value) < 1e6
        else str(value)
    )
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _score(title: str, dsl: QueryDSL) -> float:
    words = {where.op: where.value for where in dsl.wheres if where.field == EVERY_TEXT}
    most = EXCLUDING if MATCH_NONE in words else 1.0
    sought = words.get(MATCH, words.get(MATCH_ANY))
    if not sought:
        return min(most, 0.9 if dsl.wheres else 0.5)
    share = sum(word.casefold() in title.casefold() for word in sought) / len(sought)
    return min(most, (0.7 if MATCH in words else 0.45) + 0.1 * share)


# ------------------------------------------------------------------------------------------ figures


def _figures(row: Row, dsl: QueryDSL, schemas: Schemas, less: float) -> Item:
    """Return a row of figures as an item that can be cited by its query."""
    schema, count = schemas[dsl.model], int(row[ROWS])
    data = {name: _round(to_json(value)) for name, value in row.items() if name != ROWS}
    groups = {group_name(one): data[group_name(one)] for one in dsl.groups}
    figures = [(_title(one, schema, schemas), data[one.called]) for one in dsl.aggregates]
    computed = [f"{title}: {_format_figure(value)}" for title, value in figures]
    about = [
        f"{_group_title(one, schema, schemas)}: {_format_group(one, data[group_name(one)])}"
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


def _group_title(group: Group, schema: Schema, schemas: Schemas) -> str:
    name = _display_name(group_field(group), schema, schemas)
    if not isinstance(group, DateBucket):
        return name
    return group.name.replace("_", " ").strip().capitalize() or f"{name} ({group.by})"


def _format_group(group: Group, value: Any) -> str:
    if isinstance(group, DateBucket) and isinstance(value, int):
        return WEEKDAYS[value - 1] if group.by == "weekday" else str(value)
    return _format_figure(value)


def _round(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _format_figure(value: Any) -> str:
    return "none" if value is None else _format(value)


def _title(one: Aggregate, schema: Schema, schemas: Schemas) -> str:
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
        return _format(to_json(value)).removesuffix(" 00:00:00")
    more = ", …" if len(value) > MAX_LISTED else ""
    return f"({', '.join(_join_list(one) for one in value[:MAX_LISTED])}{more})"
