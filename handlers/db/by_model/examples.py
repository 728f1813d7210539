"""Worked examples for a prompt, made of the very tables that it shows: one of each kind of question
that the tables can express. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.handlers.db.by_model.offered import LONGEST_EXAMPLE, OfferedTable
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.model.schema import Field
from groundhook.handlers.db.question.scope import NUMBERS, TIMES

MOST = 6
REFUSED = {"cannot": "the tables have nothing about the weather"}
COUNT = {"function": "count", "field": "*", "as": "figure"}


@dataclass(frozen=True)
class Example:
    """A question and the answer to it."""

    question: str
    answer: Mapping[str, Any]


def examples(tables: Sequence[OfferedTable]) -> list[Example]:
    """Return up to six examples, of the tables that can express most."""
    pools = [list(_examples_of(table, tables)) for table in tables if table.searched]
    pools.sort(key=lambda pool: -len(pool))
    found: dict[str, Example] = {}
    for pool in pools:
        for kind, example in pool:
            found.setdefault(kind, example)
    chosen = list(found.values())[: MOST - 1]
    return [*chosen, Example("what is the weather tomorrow?", REFUSED)]


def _examples_of(
    table: OfferedTable, tables: Sequence[OfferedTable]
) -> Iterator[tuple[str, Example]]:
    """Yield the examples of one table, each with its kind."""
    schema = table.schema
    links = {*schema.keys, *(relation.foreign for relation in schema.relations.values())}
    known = [one for one in table.fields if one.name not in links and _value_of(table, one)]
    texts, numbers, dates = (_of_kinds(known, kinds) for kinds in (("text",), NUMBERS, TIMES))
    yield from (("count", _of_value(table, one)) for one in texts[:1])
    if numbers and texts:
        yield "group", _of_group(table, numbers[0], texts[-1])
    for one in (numbers or dates)[-1:]:
        yield "greatest", _of_greatest(table, one)
    yield from _with_related(table, tables)
    for one in dates[:1]:
        yield "period", _of_period(table, one)
    for one in numbers[:1]:
        yield "number", _of_number(table, one)


def _of_kinds(fields: Sequence[Field], kinds: Sequence[str]) -> list[Field]:
    return [one for one in fields if one.kind in kinds and not one.long]


def _of_value(table: OfferedTable, one: Field) -> Example:
    value = _value_of(table, one)
    query = {"wheres": [{"field": one.name, "op": "=", "value": value}], "aggregates": [COUNT]}
    return _example(
        table, f"how many {_name(table)} records have {_called(one)} {_said(value)}?", **query
    )


def _of_group(table: OfferedTable, number: Field, group: Field) -> Example:
    return _example(
        table,
        f"total {_called(number)} per {_called(group)}, largest first",
        groups=[group.name],
        aggregates=[{"function": "sum", "field": number.name, "as": "figure"}],
        orders=[{"field": "figure", "order": "desc"}],
    )


def _of_greatest(table: OfferedTable, one: Field) -> Example:
    return _example(
        table,
        f"the {_name(table)} with the greatest {_called(one)}",
        orders=[{"field": one.name, "order": "desc"}],
        limit=1,
    )


def _of_period(table: OfferedTable, one: Field) -> Example:
    year = str(_value_of(table, one))[:4]
    days = [f"{year}-01-01", f"{year}-12-31"]
    return _example(
        table,
        f"number of {_name(table)} records per month of {year}",
        wheres=[{"field": one.name, "op": "between", "value": days}],
        groups=[{"field": one.name, "by": "month"}],
        aggregates=[COUNT],
    )


def _of_number(table: OfferedTable, one: Field) -> Example:
    value = to_json(_value_of(table, one))
    return _example(
        table,
        f"list every {_name(table)} with {_called(one)} over {_said(value)}, please",
        wheres=[{"field": one.name, "op": ">", "value": value}],
    )


def _with_related(
    table: OfferedTable, tables: Sequence[OfferedTable]
) -> Iterator[tuple[str, Example]]:
    """Yield an example with a field of a related record, and one with related records counted."""
    shown = {each.schema.id: each for each in tables}
    for relation in table.schema.relations.values():
        called, there = relation.name.replace("_", " "), shown.get(relation.model)
        if there is None:
            continue
        if relation.many:
            question = f"each {_name(table)} with more than 3 {called}"
            where = {"related": relation.name, "count": {">": 3}}
            yield "related", _example(table, question, wheres=[where])
            continue
        for one in there.fields:
            value = _value_of(there, one) if one.kind == "text" and not one.long else None
            if value:
                question = (
                    f"{_name(table)} records whose {called} has {_called(one)} {_said(value)}"
                )
                where = {"field": f"{relation.name}.{one.name}", "op": "=", "value": value}
                yield "path", _example(table, question, wheres=[where])
                break


def _example(table: OfferedTable, question: str, **query: Any) -> Example:
    return Example(question, {"query": {"model": table.schema.id, **query}, "unused": []})


def _value_of(table: OfferedTable, one: Field) -> Any:
    """Return a value of a field; None where none is known."""
    return next(iter([*one.options[:1], *table.examples.get(one.name, ())]), None)


def _said(value: Any) -> str:
    """Return a value as a question names it: on one line, since rows are data of strangers."""
    line = " ".join(str(value).split())
    return line if len(line) <= LONGEST_EXAMPLE else f"{line[:LONGEST_EXAMPLE]}…"


def _name(table: OfferedTable) -> str:
    return table.schema.name.lower()


def _called(one: Field) -> str:
    return one.shown.lower()
