"""Records, and figures computed of them, as items of a search result. Pure.

The score says how well the conditions carried the question, and falls slightly with the position so
that the order that was asked for survives a sort by score:

    0.90   every word of the question became a condition (or the caller gave the conditions);
    figures 0.70   some words were searched for as text, and all were found (+0.10 × the share found
    in the title) 0.45   only some of those words were found (+0.10 × that share) 0.50   no
    condition at all: the model's records as they come −0.05 × position / limit
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from groundhook.handlers.db.coerce import plain
from groundhook.handlers.db.dsl import EVERY_TEXT, MATCH, MATCH_ANY, QueryDSL, conditions
from groundhook.handlers.db.schema import Schema, route
from groundhook.handlers.db.statement import ROWS
from groundhook.host.core.types.search import Aggregate, ComputedBy, Item, Where

MOST_TEXT = 2000  # characters of one field in an item's content; `data` has all of it
MOST_SHOWN = 12  # values of a list in a described condition
DIGITS = 6  # behind the point of what is computed; engines differ further on
FUNCTIONS = {"sum": "Sum of", "avg": "Average", "min": "Least", "max": "Greatest"}

Row = Mapping[str, Any]
Schemas = Mapping[str, Schema]


def items_of(rows: Sequence[Row], dsl: QueryDSL, schemas: Schemas, limit: int) -> list[Item]:
    """One item a row, in the order of the rows."""
    make = _figures if dsl.computed else _record
    return [
        make(row, dsl, schemas, 0.05 * position / max(1, limit))
        for position, row in enumerate(rows)
    ]


# ------------------------------------------------------------------------------------------ records


def _record(row: Row, dsl: QueryDSL, schemas: Schemas, less: float) -> Item:
    schema = schemas[dsl.model]
    values = {name: plain(value) for name, value in row.items()}
    record_id = values[schema.key]
    title = str(values.get(schema.title) or "") or f"{schema.name} {record_id}"
    asked = dsl.select or tuple(field.name for field in schema.visible)
    data = {name: values[name] for name in dict.fromkeys((schema.key, *asked))}
    # A key of another record says nothing to a reader; `data` has it.
    keys = {relation.foreign for relation in schema.relations.values()} - {schema.key, *dsl.select}
    told = {name: value for name, value in data.items() if not _empty(value) and name not in keys}
    said = [
        f"{_shown_name(name, schema, schemas)}: {_shown(value)}" for name, value in told.items()
    ]
    return Item(
        type="db",
        title=title,
        content="\n".join(said),
        score=round(_score(title, dsl) - less, 4),
        model=schema.id,
        record_id=record_id,
        data=data,
        key=f"db:{schema.id}/{record_id}",
    )


def _shown_name(name: str, schema: Schema, schemas: Schemas) -> str:
    """`Unit price`, and `Product name` for the name of a related product."""
    found = route(schema, name, schemas)
    if found is None or found.field is None:
        return name
    return " ".join(
        [*(hop.name.replace("_", " ").capitalize() for hop in found.hops[-1:]), found.field.shown]
    )


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = (
        f"{value:g}"
        if isinstance(value, float) and value == int(value) and abs(value) < 1e6
        else str(value)
    )
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _score(title: str, dsl: QueryDSL) -> float:
    searched = [(where.op, where.value) for where in dsl.wheres if where.op in (MATCH, MATCH_ANY)]
    if not searched:
        return 0.9 if dsl.wheres else 0.5
    op, words = searched[0]
    share = sum(word.casefold() in title.casefold() for word in words) / max(1, len(words))
    return (0.7 if op == MATCH else 0.45) + 0.1 * share


# ------------------------------------------------------------------------------------------ figures


def _figures(row: Row, dsl: QueryDSL, schemas: Schemas, less: float) -> Item:
    """A row of figures as an item of its own, which can be cited: what stands behind it is the
    query."""
    schema, count = schemas[dsl.model], int(row[ROWS])
    data = {name: _rounded(plain(value)) for name, value in row.items() if name != ROWS}
    groups = {name: data[name] for name in dsl.groups}
    figures = [(_title(one, schema, schemas), data[one.called]) for one in dsl.aggregates]
    found = [f"{title}: {_figure(value)}" for title, value in figures]
    about = [
        f"{_shown_name(name, schema, schemas)}: {_figure(value)}" for name, value in groups.items()
    ]
    where = [f"of the records where {describe(dsl.wheres)}"] if dsl.wheres else []
    computed = [f"computed of {count} {'record' if count == 1 else 'records'} of {schema.name}"]
    asked = {
        key: value for key, value in dsl.wire().items() if key not in ("orders", "limit", "select")
    }
    return Item(
        type="db",
        title=", ".join([*about, *found]) or schema.name,
        content="\n".join([*about, *found, *where, *computed]),
        score=round((0.9 if not _searches(dsl) else 0.7) - less, 4),
        model=schema.id,
        data={name: data[name] for name in dsl.select} if dsl.select else data,
        query=ComputedBy(dsl=dsl.wire(), rows=count),
        key=f"db:query:{json.dumps([asked, groups], sort_keys=True, ensure_ascii=False)}",
    )


def _rounded(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value


def _figure(value: Any) -> str:
    return "none" if value is None else _shown(value)


def _title(one: Aggregate, schema: Schema, schemas: Schemas) -> str:
    if one.name:
        return one.name.replace("_", " ").strip().capitalize()
    if one.field == EVERY_TEXT:
        return f"Number of {schema.name} records"
    name = _shown_name(one.field, schema, schemas)
    if one.function == "count":
        return (
            f"Number of different values of {name}"
            if one.distinct
            else f"Number of records with {name}"
        )
    return f"{FUNCTIONS[one.function]} {name}"


def _searches(dsl: QueryDSL) -> bool:
    return any(where.op in (MATCH, MATCH_ANY) for where in conditions(dsl.wheres))


def describe(wheres: Sequence[Where], joined: str = "and") -> str:
    """Conditions in one line: `price < 100 and (city = Berlin or city = Zürich)`."""
    return f" {joined} ".join(_described(where) for where in wheres)


def _described(where: Where) -> str:
    if where.group is not None:
        inner = describe(where.group, "and" if where.any_of is None else "or")
        return f"({inner})" if len(where.group) > 1 else inner
    name = "any text" if where.field == EVERY_TEXT else where.field
    if where.op in ("null", "not null"):
        return f"{name} is {where.op}"
    return f"{name} {where.op} {_listed(where.value)}"


def _listed(value: Any) -> str:
    if not isinstance(value, (list, tuple)):
        return _shown(plain(value)).removesuffix(" 00:00:00")
    more = ", …" if len(value) > MOST_SHOWN else ""
    return f"({', '.join(_listed(one) for one in value[:MOST_SHOWN])}{more})"
