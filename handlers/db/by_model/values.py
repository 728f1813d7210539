"""Values in a model's query against the data: spelled as the table has them, or unknown, with those
that are near. Only rows that the identity may see are looked at."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from groundhook.core.types.query_language import Where
from groundhook.handlers.db.model.schema import Field, Schema, route
from groundhook.handlers.db.query.dsl import QueryDSL, model_named
from groundhook.handlers.db.question.tokens import folded
from groundhook.handlers.db.store import SAMPLE_LENGTH

COMPARED = frozenset({"=", "!=", "in", "not in"})
MOST_NEAR = 3
MOST_LOOKED_UP = 40  # values of one query
LIKENESS = 0.6

# Returns the spellings of a value in a field of a model, in any case and without accents; and some
# values of the field.
LookUp = Callable[[str, Field, str], Awaitable[tuple[Sequence[str], Sequence[str]]]]


@dataclass(frozen=True)
class UnknownValue:
    """A value that no record of the model has in this field, and near ones."""

    model: str
    field: str
    value: str
    near: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"no {self.model} has {self.field} = {self.value!r}"
        return f"{text} (near: {', '.join(map(repr, self.near))})" if self.near else text


@dataclass
class Spelling:
    """Spells the values of one query. `unknown` has those that no record has."""

    schemas: Mapping[str, Schema]
    look_up: LookUp
    unknown: list[UnknownValue] = field(default_factory=list)
    _looked: int = 0

    async def spelled(self, query: QueryDSL) -> QueryDSL:
        """Return the query with its values as the table has them."""
        wheres = await self._wheres(query.wheres, self.schemas[query.model])
        return query.model_copy(update={"wheres": wheres})

    async def _wheres(self, wheres: Sequence[Where], here: Schema) -> tuple[Where, ...]:
        return tuple([await self._where(where, here) for where in wheres])

    async def _where(self, where: Where, here: Schema) -> Where:
        if where.group is not None:
            name = "all_of" if where.any_of is None else "any_of"
            return where.model_copy(update={name: await self._wheres(where.group, here)})
        if where.other is not None:
            there = self.schemas[model_named(here, where.other.model, self.schemas)]
            inner = await self._wheres(where.other.wheres, there)
            other = where.other.model_copy(update={"wheres": inner})
            return where.model_copy(update={"other": other})
        found = route(here, where.name, self.schemas)
        if found is None:
            return where
        if where.related:
            inner = await self._wheres(where.all_of or (), found.schema)
            return where.model_copy(update={"all_of": inner})
        one = found.field
        if one is None or where.op not in COMPARED or one.kind != "text" or one.long or one.options:
            return where
        return await self._compared(where, found.schema, one)

    async def _compared(self, where: Where, schema: Schema, one: Field) -> Where:
        """Return a condition on a short text, with its values as the table has them."""
        listed = where.value if isinstance(where.value, (list, tuple)) else [where.value]
        spelled = [each for value in listed for each in await self._value(schema, one, value)]
        if spelled == list(listed):
            return where
        if len(spelled) == 1 and where.op in ("=", "!="):
            return where.model_copy(update={"value": spelled[0]})
        op = {"=": "in", "!=": "not in"}.get(where.op, where.op)
        return where.model_copy(update={"op": op, "value": tuple(dict.fromkeys(spelled))})

    async def _value(self, schema: Schema, one: Field, value: object) -> list[object]:
        """Return the spellings of a value; the value itself where it is unknown."""
        self._looked += 1
        text = value if isinstance(value, str) else ""
        if not text or len(text) > SAMPLE_LENGTH or self._looked > MOST_LOOKED_UP:
            return [value]
        same, known = await self.look_up(schema.id, one, text)
        if value in same:
            return [value]
        if not same:
            near = _near(text, known)
            self.unknown.append(UnknownValue(schema.name, one.shown, text, near))
            return [value]
        return list(same)


def _near(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return known values that resemble a text, or have its words, the nearest first."""
    by_fold = {folded(value): value for value in known}
    wanted = folded(text)
    alike = difflib.get_close_matches(wanted, by_fold, n=MOST_NEAR, cutoff=LIKENESS)
    within = [fold for fold in by_fold if wanted in fold or (len(fold) > 2 and fold in wanted)]
    return tuple(by_fold[fold] for fold in dict.fromkeys([*alike, *within]))[:MOST_NEAR]
