"""A query as a sentence of labels, in the language of the question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundhook.core.types.query_language import (
    Aggregate,
    Compared,
    DateBucket,
    Group,
    Order,
    Where,
    group_field,
    group_name,
)
from groundhook.handlers.db.model.coerce import to_json
from groundhook.handlers.db.model.schema import Field, Schema, route
from groundhook.handlers.db.query.dsl import (
    EVERY_TEXT,
    MATCH_ANY,
    MATCH_NONE,
    NULL_OPERATORS,
    QueryDSL,
    model_named,
)
from groundhook.handlers.db.question.vocabulary import Vocabulary

MOST_LISTED = 8  # values of a condition that are written out
DATES = ("date", "moment")
OPS = {"!=": "≠", ">=": "≥", "<=": "≤", "not in": "≠", "in": "="}


@dataclass(frozen=True)
class Teller:
    """Writes queries on some models in the language of `words`."""

    schemas: Mapping[str, Schema]
    words: Vocabulary

    @property
    def say(self) -> Mapping[str, str]:
        """The sentences of the language, with names in braces, by their keys in its file."""
        return self.words.file.say

    def phrase(self, key: str, **named: object) -> str:
        """Return a sentence of the language with its names filled in."""
        return self.say[key].format(**named)

    def sentence(self, dsl: QueryDSL) -> str:
        """Return the query as a sentence: "number of Invoice records where Country = Norway"."""
        schema = self.schemas[dsl.model]
        label: Callable[[str], str] = lambda name: self.label(schema, name)  # noqa: E731
        if dsl.aggregates:
            what = f" {self.say['and']} ".join(self._figure(schema, one) for one in dsl.aggregates)
        elif dsl.select:
            fields = ", ".join(map(label, dsl.select))
            what = self.phrase("of", what=fields, model=schema.name)
        else:
            what = schema.name
        beside = [one for one in dsl.wheres if self._stands_beside_the_name(schema, one)]
        what = " ".join([what, *(self._condition(schema, one) for one in beside)])
        if rest := [one for one in dsl.wheres if one not in beside]:
            what = self.phrase("where", what=what, conditions=self.conditions(schema, rest))
        if dsl.groups:
            own = [one for one in dsl.groups if not _is_link(schema, one, dsl)]
            groups = ", ".join(self._group(schema, one) for one in own)
            what = self.phrase("each", what=what, groups=groups)
        return self._rows(schema, dsl, what)

    def heads(self, dsl: QueryDSL) -> list[str]:
        """Return the heads of the columns of figures: groups come first."""
        schema = self.schemas[dsl.model]
        groups = [_own_name(one) or self._group(schema, one) for one in dsl.groups]
        figures = [_own_name(one) or self._figure(schema, one) for one in dsl.aggregates]
        return [text[:1].upper() + text[1:] for text in (*groups, *figures)]

    def quoted(self, words: Iterable[str]) -> str:
        """Return words in the quotation marks of the language."""
        return ", ".join(self.phrase("quoted", text=word) for word in words)

    def field(self, schema: Schema, name: str) -> Field | None:
        """Return the field of a name such as `product.brand.name`."""
        found = route(schema, name, self.schemas)
        return found.field if found else None

    def _rows(self, schema: Schema, dsl: QueryDSL, what: str) -> str:
        """Add which of the rows are returned, and in which order."""
        figures = {one.called: self._figure(schema, one) for one in dsl.aggregates}
        if dsl.havings:
            kept = self._havings(dsl.havings, figures, self.say["and"])
            what = self.phrase("having", what=what, conditions=kept)
        parts = {group_name(one): self._group(schema, one) for one in dsl.groups}
        buckets = [group_name(one) for one in dsl.groups if isinstance(one, DateBucket)]
        for order in dsl.orders if dsl.limit or not dsl.groups else ():
            form = self._direction(schema, order, buckets)
            called = {**parts, **figures}.get(order.field) or self.label(schema, order.field)
            what = form.format(what=what, field=called)
        if not dsl.limit:
            return what
        first = self.phrase("first_one" if dsl.limit == 1 else "first", what=what, count=dsl.limit)
        return self.phrase("ties", what=first) if dsl.ties else first

    def _direction(self, schema: Schema, order: Order, buckets: Collection[str]) -> str:
        """Return the form for an order: of dates and their `buckets` the latest or earliest comes
        first, of texts A or Z."""
        of = self.field(schema, order.field)
        kind = of.kind if of else ""
        if kind in DATES or order.field in buckets:
            kind = "date"
        more = f"_{kind}" if kind in ("date", "text") else ""
        return self.say[f"{order.order}{more}"]

    def _group(self, schema: Schema, group: Group) -> str:
        label = self.label(schema, group_field(group))
        return (
            f"{label} ({self.words.file.parts[group.by]})"
            if isinstance(group, DateBucket)
            else label
        )

    def _havings(self, havings: Sequence[Where], figures: Mapping[str, str], joined: str) -> str:
        parts = []
        for one in havings:
            if one.group is not None:
                inner = self.say["and"] if one.any_of is None else self.say["or"]
                parts.append(f"({self._havings(one.group, figures, inner)})")
            else:
                figure = figures.get(one.field, one.field)
                empty = {"null": "empty", "not null": "filled"}.get(one.op)
                compared = self._comparison(figure, one) if not empty else ""
                parts.append(self.phrase(empty, field=figure) if empty else compared)
        return f" {joined} ".join(parts)

    def label(self, schema: Schema, name: str) -> str:
        """Return what readers call a field: "Customer › City" of a related record."""
        found = route(schema, name, self.schemas)
        if found is None or found.field is None:
            return name.replace("_", " ").replace(".", " › ")
        hops = [hop.name.replace("_", " ").capitalize() for hop in found.hops]
        return " › ".join([*hops, found.field.shown])

    def _figure(self, schema: Schema, one: Aggregate) -> str:
        if one.field == EVERY_TEXT:
            return self.phrase("count", model=schema.name)
        of, called = self.field(schema, one.field), str(one.function)
        if called in ("min", "max") and of and of.kind in DATES:
            called = f"{called}_date"
        if called == "count":
            called = "different" if one.distinct else "given"
        return self.phrase(called, field=self.label(schema, one.field), model=schema.name)

    def conditions(self, schema: Schema, wheres: Sequence[Where], joined: str = "") -> str:
        parts = dict.fromkeys(self._condition(schema, one) for one in wheres)
        return f" {joined or self.say['and']} ".join(parts)

    def _stands_beside_the_name(self, schema: Schema, where: Where) -> bool:
        """Return whether a condition is said behind the model: "Customers without orders"."""
        if where.related:
            return not where.count and not where.every
        no_field = where.group is None and self.field(schema, where.field) is None
        return no_field and (where.op in NULL_OPERATORS or where.value == "")

    def _condition(self, schema: Schema, where: Where) -> str:
        if where.group is not None:
            if listed := _element_of_list(where):
                return self.phrase(
                    "contains", field=self.label(schema, where.group[0].field), value=listed
                )
            joined = self.say["or"] if where.any_of is not None else self.say["and"]
            inner = self.conditions(schema, where.group, joined)
            return f"({inner})" if f" {joined} " in inner else inner
        if where.related:
            return self._related(schema, where)
        if where.other is not None:
            other = self._other(schema, where.other)
            return f"{self.label(schema, where.field)} {OPS.get(where.op, where.op)} {other}"
        if where.field == EVERY_TEXT:
            return self._anywhere(where)
        label, there = self.label(schema, where.field), where.op in ("not null", "!=")
        if where.op in NULL_OPERATORS or where.value == "":
            if self.field(schema, where.field) is None:
                return self.phrase("with" if there else "without", relation=label)
            return self.phrase("filled" if there else "empty", field=label)
        if where.op == "like":
            text = str(where.value)
            form = "contains" if text.startswith("%") else "begins"
            return self.phrase(form, field=label, value=text.strip('%"'))
        return self._comparison(label, where)

    def _anywhere(self, where: Where) -> str:
        """Return a condition on all texts of a record: "any text contains oak and ash"."""
        if where.op == MATCH_NONE:
            return self.phrase("without", relation=self._listed(where, "or"))
        words = self._listed(where, "or" if where.op == MATCH_ANY else "and")
        return self.phrase("contains", field=self.say["any_text"], value=words)

    def _related(self, schema: Schema, where: Where) -> str:
        """Return a condition on related records: "number of Orders (Total > 5) > 6"."""
        found = route(schema, where.related, self.schemas)
        text = self.label(schema, where.related)
        if where.all_of and found is not None:
            text = f"{text} ({self.conditions(found.schema, where.all_of)})"
        if where.count:
            number = self.phrase("number", relation=text)
            bars = (f"{number} {OPS.get(op, op)} {bar}" for op, bar in where.count.items())
            return f" {self.say['and']} ".join(bars)
        form = "without" if where.none else "all" if where.every else "with"
        return self.phrase(form, relation=text)

    def _other(self, schema: Schema, other: Compared) -> str:
        if other.aggregate is None:
            return self.label(schema, other.field)
        there = self.schemas[model_named(schema, other.model, self.schemas)]
        figure = self._figure(there, other.aggregate)
        if other.model and other.aggregate.field != EVERY_TEXT:
            figure = self.phrase("model_figure", figure=figure, model=there.name)
        if not other.wheres:
            return figure
        inner = self.conditions(there, other.wheres)
        return f"({self.phrase('where', what=figure, conditions=inner)})"

    def _comparison(self, label: str, where: Where) -> str:
        if where.op == "between":
            low, high = (self._value(value) for value in where.value)
            return f"{low} ≤ {label} ≤ {high}"
        return f"{label} {OPS.get(where.op, where.op)} {self._listed(where, 'or')}"

    def _listed(self, where: Where, joined: str) -> str:
        values = where.value if isinstance(where.value, (list, tuple)) else [where.value]
        shown = f" {self.say[joined]} ".join(self._value(value) for value in values[:MOST_LISTED])
        return f"{shown} …" if len(values) > MOST_LISTED else shown

    def _value(self, value: Any) -> str:
        if isinstance(value, bool):
            return self.say["yes"] if value else self.say["no"]
        return str(to_json(value)).removesuffix(" 00:00:00")


def _element_of_list(where: Where) -> str:
    """Return the text of which a condition says that a list has it as a whole element, or ""."""
    first, *rest = where.any_of or (where,)
    same = (one.op == "like" and one.field == first.field for one in rest)
    listed = rest and first.op == "=" and all(same)
    return str(first.value) if listed and all(str(first.value) in one.value for one in rest) else ""


def _own_name(one: Aggregate | Group) -> str:
    """Return the name that the query gives a column."""
    return "" if isinstance(one, str) else one.name.replace("_", " ").strip()


def _is_link(schema: Schema, group: Group, dsl: QueryDSL) -> bool:
    """Return whether a group only keeps related records apart whose titles are groups too."""
    links = {one.foreign: one.name for one in schema.relations.values()}
    if not isinstance(group, str) or group not in links:
        return False
    return any(group_field(one).startswith(f"{links[group]}.") for one in dsl.groups)
