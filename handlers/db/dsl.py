"""QueryDSL: a query on one model as a value, and its linter.

`{"model", "select", "wheres": [{"field", "op", "value"}], "orders": [{"field", "order"}], "limit"}`; `column` may be said for
`field`. Values are data for ever: nothing here or behind it turns one into the text of a statement.

Three conditions look into every text field at once; their field is `*` and their value a list of words or phrases: `match`
wants all of them, `match any` at least one, `match none` none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field as Setting
from pydantic import ValidationError

from handlers.db.coerce import coerce
from handlers.db.schema import Field, Schema
from host.errors import SourceError, suggestion
from host.types.base import Value, dotted, problems, read
from host.types.search import Order, Where

EVERY_TEXT = "*"
MATCH, MATCH_ANY, MATCH_NONE = "match", "match any", "match none"
MATCHES = frozenset({MATCH, MATCH_ANY, MATCH_NONE})
MOST_VALUES = 1000

PLAIN = ("=", "!=", ">", ">=", "<", "<=", "like", "in", "not in", "between", "null", "not null")
OPERATORS = (*PLAIN, MATCH, MATCH_ANY, MATCH_NONE)
SYNONYMS = {
    "": "=",
    "==": "=",
    "eq": "=",
    "<>": "!=",
    "ne": "!=",
    "neq": "!=",
    "gt": ">",
    "gte": ">=",
    "ge": ">=",
    "lt": "<",
    "lte": "<=",
    "le": "<=",
    "contains": "like",
    "nin": "not in",
    "notin": "not in",
    "is null": "null",
    "isnull": "null",
    "is not null": "not null",
    "notnull": "not null",
}
LISTS = frozenset({"in", "not in", "between", *MATCHES})
ORDERED = frozenset({">", ">=", "<", "<=", "between"})
NOTHING = frozenset({"null", "not null"})


class QueryDSL(Value):
    """One query on one model. `select` empty: every visible field. `limit` None: the caller's."""

    model: str
    select: tuple[str, ...] = ()
    wheres: tuple[Where, ...] = ()
    orders: tuple[Order, ...] = ()
    limit: int | None = Setting(default=None, ge=1)

    def wire(self) -> dict[str, Any]:
        """As JSON, without what was not said."""
        said = self.model_dump(mode="json")
        return {key: value for key, value in said.items() if key == "model" or value}


def parse(raw: dict[str, Any]) -> QueryDSL:
    """A query that came from outside as JSON. Raises SourceError that names the key."""
    try:
        dsl, unknown = read(QueryDSL, raw)
    except ValidationError as exc:
        path, message = problems(exc)[0]
        raise SourceError(f"the query's {dotted(path)!r}: {message}") from exc
    if unknown:
        raise SourceError(f"the query has an {unknown[0]}")
    return dsl


def lint(dsl: QueryDSL, schema: Schema) -> QueryDSL:
    """The query with every operator in its one spelling and every value in the type of its field (dates, numbers, …),
    ready for `compile_query`. Raises SourceError: an unknown field or operator, or a value that does not fit."""
    for name in dsl.select:
        known(schema, name)
    for order in dsl.orders:
        known(schema, order.field)
    wheres = tuple(_checked(where, schema) for where in dsl.wheres)
    return dsl.model_copy(update={"wheres": wheres})


def known(schema: Schema, name: str) -> Field:
    """The field of that name. Raises SourceError with the nearest name, or all of them."""
    field = schema.fields.get(name)
    if field is None:
        names = [visible.name for visible in schema.visible]
        raise SourceError(f"the model {schema.id!r} has no field {name!r}", hint=suggestion(name, names))
    return field


def operator(op: str) -> str:
    """The one spelling of an operator. Raises SourceError with those there are."""
    said = " ".join(op.lower().replace("_", " ").split())
    found = SYNONYMS.get(said, said)
    if found not in OPERATORS and found not in ("is", "is not"):
        raise SourceError(f"there is no operator {op!r}", hint=f"known: {', '.join(OPERATORS)}")
    return found


def _checked(where: Where, schema: Schema) -> Where:
    op, value = operator(where.op), where.value
    if op in ("is", "is not"):
        op = "=" if op == "is" else "!="
    if op in MATCHES:
        return _words(where.field, op, value, schema)
    field = known(schema, where.field)
    if value is None and op in ("=", "!=", *NOTHING):
        op = "null" if op in ("=", "null") else "not null"
    if op in NOTHING:
        return Where(field=field.name, op=op)
    _fits(field, op)
    if op in LISTS:
        value = [coerce(field, one) for one in _listed(field, op, value)]
    elif op == "like":
        value = coerce(field, value) if field.kind == "text" else str(value)
    else:
        value = coerce(field, value)
    return Where(field=field.name, op=op, value=value)


def _fits(field: Field, op: str) -> None:
    if (op == "like" and field.kind not in ("text", "json")) or (op in ORDERED and field.kind in ("boolean", "json")):
        raise SourceError(f"the operator {op!r} cannot be used on {field.name!r}, which is of the kind {field.kind!r}")
    if field.kind == "json" and op != "like":
        raise SourceError(f"the field {field.name!r} holds JSON: only 'like', 'null' and 'not null' can be asked of it")


def _listed(field: Field, op: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise SourceError(f"the operator {op!r} on {field.name!r} needs a list, not {value!r}")
    if op == "between" and len(value) != 2:
        raise SourceError(f"'between' on {field.name!r} needs a list of two values, not {len(value)}")
    if len(value) > MOST_VALUES:
        raise SourceError(f"the operator {op!r} on {field.name!r} takes at most {MOST_VALUES} values, not {len(value)}")
    return value


def _words(name: str, op: str, value: Any, schema: Schema) -> Where:
    if name != EVERY_TEXT:
        field = known(schema, name)
        if field.kind != "text":
            raise SourceError(f"the operator {op!r} cannot be used on {name!r}, which holds no text")
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        raise SourceError(f"the operator {op!r} needs words, not {value!r}")
    if len(words) > MOST_VALUES:
        raise SourceError(f"the operator {op!r} takes at most {MOST_VALUES} words, not {len(words)}")
    return Where(field=name, op=op, value=[coerce(Field(name, "text"), word) for word in words])
