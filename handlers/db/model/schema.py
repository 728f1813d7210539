"""The schema of a model for queries: fields with their kinds, relations, primary key, title, and
searched texts.

Pure and independent of a database. Columns that a model's options add (timestamps, soft deletes,
permission columns) are fields marked `hidden`: conditions may name them, and they are returned or
searched only if selected.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as part
from typing import Any, Literal

from groundhook.core.json_text import NotJson, read_json
from groundhook.core.types.model_spec import (
    DELETED,
    PERMISSION,
    TIMESTAMPS,
    TITLES,
    ColumnFormat,
    ColumnSpec,
    ModelSpec,
    fill_title,
    title_columns,
)
from groundhook.core.types.query_language import Aggregate

ColumnKind = Literal["text", "integer", "number", "boolean", "date", "moment", "json"]

KINDS: dict[str, ColumnKind] = {
    "ID": "integer",
    "string": "text",
    "char": "text",
    "uuid": "text",
    "text": "text",
    "longText": "text",
    "enum": "text",
    "smallInteger": "integer",
    "integer": "integer",
    "bigInteger": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "boolean": "boolean",
    "date": "date",
    "datetime": "moment",
    "timestamp": "moment",
    "json": "json",
}
LONGEST_LIST = 2000  # characters of a JSON list that is read
LONG = frozenset({"text", "longText"})


@dataclass(frozen=True)
class Field:
    """A field of a model. `options` are the values of an enum; `long` marks prose."""

    name: str
    kind: ColumnKind
    label: str = ""
    comment: str = ""
    options: tuple[str, ...] = ()
    nullable: bool = True
    long: bool = False
    hidden: bool = False
    format: ColumnFormat | None = None

    @property
    def shown(self) -> str:
        """The name for readers: its label, or `Unit price` for a column `unit_price` without a
        label."""
        return self.label or self.name.replace("_", " ").strip().capitalize()


@dataclass(frozen=True)
class Through:
    """A join table: its field `key` has values of this model's `foreign`, its field `foreign` those
    of the other model's `key`. `model` is a full id."""

    model: str
    key: str
    foreign: str


@dataclass(frozen=True)
class Relation:
    """A relation to the records of another model whose field `key` equals this model's field
    `foreign`, or meets it in the join table `through`. `many`: there may be several (hasMany).
    `model` is a full id."""

    name: str
    model: str
    many: bool
    key: str
    foreign: str
    through: Through | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The models that it reads."""
        return (self.through.model, self.model) if self.through else (self.model,)


@dataclass(frozen=True)
class Schema:
    """A model's fields by name, in the order of declaration. `names` are its names in questions;
    `title` is the field by which questions name a record, or "". `titled` is what stands for a
    record where it is shown (`ModelSpec.titled`); "": its key. `connection` names its database."""

    id: str
    name: str
    names: tuple[str, ...]
    fields: dict[str, Field]
    keys: tuple[str, ...]
    title: str
    relations: dict[str, Relation] = part(default_factory=dict)
    titled: str = ""
    connection: str = ""

    @property
    def title_fields(self) -> tuple[str, ...]:
        """The fields that stand for a record where it is shown."""
        return title_columns(self.titled)

    def title_of(self, texts: Mapping[str, str]) -> str:
        """Return what stands for a record with these texts of its fields."""
        named = fill_title(self.titled, texts) if self.titled else ""
        key = " / ".join(texts.get(name, "") for name in self.keys)
        return named or f"{self.name} {key}".strip()

    def record_id(self, values: Mapping[str, Any]) -> Any:
        """Return the id of a record with these JSON values: that of its key; of a key of several
        columns a JSON list as text."""
        of_key = [values[name] for name in self.keys]
        return of_key[0] if len(of_key) == 1 else json.dumps(of_key, ensure_ascii=False)

    def key_values(self, record_id: Any) -> tuple[Any, ...] | None:
        """Return the values of the key's columns in an id; None for an id that no record has."""
        if len(self.keys) == 1:
            return (record_id,)
        try:
            values = read_json(record_id) if isinstance(record_id, str) else record_id
        except NotJson:
            return None
        fits = isinstance(values, (list, tuple)) and len(values) == len(self.keys)
        return tuple(values) if fits else None

    @property
    def visible(self) -> list[Field]:
        return [field for field in self.fields.values() if not field.hidden]

    @property
    def texts(self) -> list[Field]:
        """The fields of a text search."""
        return [field for field in self.visible if field.kind == "text"]


MAX_HOPS = 2  # relations in a path: `product.brand.name`


@dataclass(frozen=True)
class Route:
    """The resolution of a dotted name: over the relations `hops` to a field, or to the last
    relation itself if `field` is None. `schema` is that of the model at the end."""

    hops: tuple[Relation, ...]
    schema: Schema
    field: Field | None

    @property
    def many(self) -> bool:
        """Whether it may reach several records."""
        return any(hop.many for hop in self.hops)


class Schemas(Mapping[str, Schema]):
    """The schemas of models by full id, each built by the first access."""

    def __init__(self, models: Mapping[str, ModelSpec]) -> None:
        self._models = models
        self._made: dict[str, Schema] = {}

    def __getitem__(self, id: str) -> Schema:
        if id not in self._made:
            spec = self._models[id]
            made = schema_of(spec, self._models)
            near = {
                name: each
                for name, each in made.relations.items()
                if all(self._is_near(spec, model) for model in each.models)
            }
            self._made[id] = replace(made, relations=near)
        return self._made[id]

    def _is_near(self, spec: ModelSpec, model: str) -> bool:
        """Return whether a model is in the same database: no query reads two."""
        return model not in self._models or self._models[model].connection == spec.connection

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)

    def __contains__(self, id: object) -> bool:
        return id in self._models


def route(schema: Schema, name: str, schemas: Mapping[str, Schema]) -> Route | None:
    """Resolve a field's name, such as `product.brand.name` from an order; None if it is unknown."""
    hops: list[Relation] = []
    here, rest = schema, name
    while rest not in here.fields:
        head, _, rest = rest.partition(".")
        relation = here.relations.get(head)
        if relation is None or any(model not in schemas for model in relation.models):
            return None
        hops.append(relation)
        here = schemas[relation.model]
        if not rest:
            return Route(tuple(hops), here, None)
    return Route(tuple(hops), here, here.fields[rest])


def schema_of(spec: ModelSpec, known: Collection[str] = ()) -> Schema:
    """Build the schema of a model. `known` are the ids among which a relation's model is looked up;
    a model of the same assistant comes first."""
    fields = {column.name: _field(column) for column in spec.columns}
    if spec.option.timestamps:
        fields.update(
            (name, Field(name, "moment", hidden=True)) for name in TIMESTAMPS if name not in fields
        )
    if spec.option.soft_deletes and DELETED not in fields:
        fields[DELETED] = Field(DELETED, "moment", hidden=True)
    if spec.option.permission is True:
        fields.update((name, Field(name, "text", hidden=True)) for name in PERMISSION)
    own = spec.id.rpartition(".")[2].replace("_", " ")
    name = spec.name or own.capitalize()
    table = spec.table.name.replace("_", " ")
    names = (name, own, *filter(None, [spec.label]), table, *short_pieces(spec.table.comment))
    relations = {name: _relation(spec, name, known) for name in spec.relations}
    title = _title(spec, fields)
    return Schema(
        spec.id, name, names, fields, spec.keys, title, relations, spec.titled, spec.connection
    )


def _relation(spec: ModelSpec, name: str, known: Collection[str]) -> Relation:
    one = spec.relations[name]
    through = None
    if one.through is not None:
        model = full_id(spec.id, one.through.model, known)
        through = Through(model, one.through.key, one.through.foreign)
    model, many = full_id(spec.id, one.model, known), one.type == "hasMany"
    return Relation(name, model, many, one.key, one.foreign, through)


def full_id(id: str, name: str, known: Collection[str]) -> str:
    """Return the full id of a model that the model `id` refers to: `agents.shop.customer` for
    `customer` in `agents.shop.order`."""
    own = f"{id.rpartition('.')[0]}.{name}"
    return own if own in known else name


def short_pieces(comment: str) -> list[str]:
    """Return the parts of a comment between commas that are names rather than sentences: up to
    three words."""
    pieces = (piece.strip() for piece in comment.replace(";", ",").split(","))
    return [piece for piece in pieces if 0 < len(piece.split()) <= 3]


def _field(column: ColumnSpec) -> Field:
    return Field(
        column.name,
        KINDS[column.type],
        column.label,
        column.comment,
        column.option,
        nullable=column.nullable,
        long=column.type in LONG,
        format=column.format,
    )


def _title(spec: ModelSpec, fields: dict[str, Field]) -> str:
    """Return the field that names a record best: the first of the model's `title`; "" if there is
    no short text."""
    if spec.title:
        return title_columns(spec.title)[0]
    short = [
        field.name
        for field in fields.values()
        if field.kind == "text" and not (field.long or field.options or field.hidden)
    ]
    return next((name for name in TITLES if name in short), short[0] if short else "")


def list_members(text: str) -> list[str] | None:
    """Return the texts in a JSON list of up to `LONGEST_LIST` characters; None for other text."""
    if not text.startswith("[") or len(text) > LONGEST_LIST:
        return None
    try:
        members = read_json(text)
    except NotJson:
        return None
    return [one for one in members if isinstance(one, str)] if isinstance(members, list) else None


DATES = frozenset({"date", "moment"})
NUMBERS = frozenset({"integer", "number"})


def figure_field(one: Aggregate, of: Field | None) -> Field:
    """Return a figure as a field, under its name in results. `of` is the field that it is computed
    of; None for the number of records."""
    if one.function == "count" or of is None:
        return Field(one.called, "integer")
    if one.function in ("sum", "avg"):
        return Field(one.called, "number")
    return replace(of, name=one.called)


def comparable(one: Field, other: Field) -> bool:
    """Return whether values of two fields can be compared with each other."""
    if "json" in (one.kind, other.kind):
        return False
    return one.kind == other.kind or any(
        {one.kind, other.kind} <= kinds for kinds in (DATES, NUMBERS)
    )
